"""Masks the secrets in what one server shows to models or stores, and records its events.

The heavy parts are imported late, in a thread with the first run; events before that are kept and recorded then. Not
here: the masks and records themselves (`records/`), what is recorded (`recording.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.llm.model import Model

if TYPE_CHECKING:
    from codeagent_lsp.session.redaction.recording import OpenRecords

MOST_WAITING = 1000
WITH_TEXTS = frozenset(
    kind.type for kind in (events.FileChanged, events.ChangesIntended, events.ChangesApplied, events.SessionRewound)
)


class Redactor:
    """Masks secrets and records events; one per server. `load` blocks and is called once, in a thread. `keys` returns
    the secrets in the present settings; call `settings_changed` when they may have changed.
    """

    def __init__(self, load: Callable[[], OpenRecords], keys: Callable[[], Iterable[str]] = tuple) -> None:
        self._load = load
        self._keys = keys
        self._opened: OpenRecords | None = None
        self._loading: asyncio.Task[OpenRecords] | None = None
        self._waiting: list[events.Event] = []

    async def ready(self) -> OpenRecords:
        """Return the records, after loading them in a thread if that has not happened; concurrent calls load them once,
        also if one is cancelled. Errors of `load` are raised.
        """
        if self._opened is None:
            if self._loading is None:
                # One task for all callers, shielded: a run that is cancelled must not end the loading for the others.
                self._loading = asyncio.ensure_future(asyncio.to_thread(self._load))
            opened = await asyncio.shield(self._loading)
            # Several may have waited for the same task; only the first finds events that were kept.
            self._opened = self._opened or opened
            self.settings_changed()
            waiting, self._waiting = self._waiting, []
            for event in waiting:
                opened.recording.observe(event)
        return self._opened

    def settings_changed(self) -> None:
        """Mask the keys in the present settings from now on. Before the parts are loaded it does nothing."""
        if self._opened is not None:
            self._opened.masking.own.learn(self._keys())

    def clean(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a stored event, as plain data, with its secrets masked. Left as they are: events with the texts of
        files, the `place` and the pictures of a task, and data that a model needs back byte for byte. Unchanged before
        the parts are loaded.
        """
        if self._opened is None or record.get("type") in WITH_TEXTS:
            return record
        cleaned: dict[str, Any] = self._opened.masking.clean(record)
        if isinstance(message := record.get("message"), Mapping):
            cleaned["message"] = _exact(message, cleaned["message"])
        if messages := record.get("messages"):
            cleaned["messages"] = [_exact(*pair) for pair in zip(messages, cleaned["messages"], strict=True)]
        return {**cleaned, **{name: record[name] for name in ("place", "images") if record.get(name)}}

    def hide(self, text: str) -> str:
        """Return a text with its secrets masked; unchanged before the parts are loaded."""
        return text if self._opened is None else self._opened.masking.hide(text)

    async def learn(self, secrets: Iterable[str]) -> None:
        """Mask these secrets as well, from when this returns: our own keys that were added while the server runs."""
        (await self.ready()).masking.own.learn(secrets)

    async def note(self, what: str, **details: Any) -> None:
        """Write a note of the type `what` that belongs to no run into the audit log, with `details` as its fields;
        loads the parts if necessary.
        """
        (await self.ready()).recording.note(what, **details)

    @property
    def opened(self) -> OpenRecords | None:
        """The records; None before they are loaded."""
        return self._opened

    def observe(self, event: events.Event) -> None:
        """Record an event; before the parts are loaded, keep it until then, up to 1000 events."""
        if self._opened is not None:
            self._opened.recording.observe(event)
        # The oldest are kept: they are the ones with the first requests.
        elif len(self._waiting) < MOST_WAITING:
            self._waiting.append(event)

    async def before(self, model: Model, session_id: str, run_id: str) -> Model:
        """Return the model wrapped for a run: secrets in requests are masked, requests and replies are recorded. Waits
        for the parts to be loaded.
        """
        # late: with the rest of what a run needs
        from codeagent_lsp.session.redaction.recording import GuardedModel

        opened = await self.ready()
        return GuardedModel(model, opened.masking.hide, partial(opened.recording.model, session_id, run_id))

    async def close(self) -> None:
        """Write the remaining records, for at most about 10 s in a thread; what is not written by then may be lost."""
        # Loaded only for them: a server that never ran anything ends without the heavy imports.
        if self._waiting:
            await self.ready()
        if self._opened is not None:
            await asyncio.to_thread(self._opened.recording.close)


def _exact(message: Mapping[str, Any], cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that was masked with what has to stay as it was."""
    return {**cleaned, **{name: message[name] for name in ("carried", "images") if name in message}}
