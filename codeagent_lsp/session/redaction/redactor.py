"""What stands between a server and whoever must not see everything: masks for the model, records of what happened.

Loaded with the first run, in a thread, for it is heavy; what happens before that is kept and told then. Not here: the
masks and records themselves (`records/`), what is recorded (`recording.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.llm.model import Model

if TYPE_CHECKING:
    from codeagent_lsp.records.masking import Masking
    from codeagent_lsp.session.redaction.recording import Recording

MOST_WAITING = 1000
WITH_TEXTS = frozenset((events.FileChanged.type, events.ChangesApplied.type))


@dataclass(frozen=True, slots=True)
class OpenRecords:
    """The parts, once they are loaded."""

    masking: Masking
    recording: Recording


class Redactor:
    """One for a server. `load` blocks; it is called once, in a thread. `keys` are the secrets in the settings of now;
    `settings_changed` is to be called when they may be others.
    """

    def __init__(self, load: Callable[[], OpenRecords], keys: Callable[[], Iterable[str]] = tuple) -> None:
        self._load = load
        self._keys = keys
        self._opened: OpenRecords | None = None
        self._loading: asyncio.Task[OpenRecords] | None = None
        self._waiting: list[events.Event] = []

    async def ready(self) -> OpenRecords:
        """Load the parts, unless they are there."""
        if self._opened is None:
            if self._loading is None:
                self._loading = asyncio.ensure_future(asyncio.to_thread(self._load))
            opened = await asyncio.shield(self._loading)
            self._opened = self._opened or opened
            self.settings_changed()
            waiting, self._waiting = self._waiting, []
            for event in waiting:
                opened.recording.observe(event)
        return self._opened

    def settings_changed(self) -> None:
        """Nobody sees the keys that the settings have now. What is not loaded yet asks for them itself."""
        if self._opened is not None:
            self._opened.masking.own.learn(self._keys())

    def clean(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A stored event without secrets. Those with the texts of files stay: their bytes are what they are for."""
        if self._opened is None or record.get("type") in WITH_TEXTS:
            return record
        cleaned: Mapping[str, Any] = self._opened.masking.clean(record)
        return cleaned

    def hide(self, text: str) -> str:
        """A text that is shown or kept, without secrets."""
        return text if self._opened is None else self._opened.masking.hide(text)

    async def learn(self, secrets: Iterable[str]) -> None:
        """Nobody sees these any more when this returns: keys of ours that came while the server runs."""
        (await self.ready()).masking.own.learn(secrets)

    async def note(self, what: str, **details: Any) -> None:
        """Write something into the audit that belongs to no run."""
        (await self.ready()).recording.note(what, **details)

    @property
    def opened(self) -> OpenRecords | None:
        """The parts, where they are loaded."""
        return self._opened

    def observe(self, event: events.Event) -> None:
        """Record an event, now or as soon as that is possible."""
        if self._opened is not None:
            self._opened.recording.observe(event)
        elif len(self._waiting) < MOST_WAITING:
            self._waiting.append(event)

    async def before(self, model: Model, session_id: str, run_id: str) -> Model:
        """The model as a run may use it: it reads no secrets, and what it reads and says is recorded."""
        # late: with the rest of what a run needs
        from codeagent_lsp.session.redaction.guarded_model import GuardedModel

        opened = await self.ready()

        def record(kind: str, data: Mapping[str, Any]) -> None:
            opened.recording.model(session_id, run_id, kind, data)

        return GuardedModel(model, opened.masking.hide, record)

    async def close(self) -> None:
        """Write what waits, within seconds."""
        if self._waiting:
            await self.ready()
        if self._opened is not None:
            await asyncio.to_thread(self._opened.recording.close)
