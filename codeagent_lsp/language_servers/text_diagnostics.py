"""The texts that one language server has open, each with its version, and its diagnostics for exactly these texts.

Every text that a run has changed is open in the server, so that its answers do not depend on how fast it notices files.
Diagnostics of another version are ignored. Some servers name no versions. What they publish counts as of the newest
text if it came after that was sent, the server has read it, and nothing newer comes for `QUIET_SECONDS`: what comes
first may still be of the text before. Not here: which texts (`session_servers.py`), what changed between two texts
(`tools/diagnostics/difference.py`).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.language_servers.server_connection import ServerConnection, ServerFailed, ServerLate
from codeagent_lsp.shadow.private_copy import FileChangeKind
from codeagent_lsp.workspace.files import uris

MAX_ITEMS = 2000
REMEMBERED = 500
RETRY_SECONDS = 0.05
QUIET_SECONDS = 0.5
_BROKEN = "}{(\n"  # an error in every language
_PLACES = 7

_CHANGES: Mapping[FileChangeKind, Literal[1, 2, 3]] = {"created": 1, "changed": 2, "deleted": 3}


class OpenTexts:
    """The texts that one server has open: `texts` and `versions` (from 1, growing) by absolute path."""

    def __init__(self, known: KnownServer, connection: ServerConnection) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self._known = known
        self._connection = connection
        self._unread = False  # whether something was sent that the server may not have read yet
        self._pause = 0.0  # seconds that the server rests before it has noticed everything

    def show(self, texts: Mapping[str, str]) -> None:
        """Open exactly these texts (by absolute path) and close all others; of more than the server may have open, the
        last ones. ServerGone if the server has ended.
        """
        texts = dict(list(texts.items())[-self._known.max_open :])
        for path in [path for path in self.texts if path not in texts]:
            del self.texts[path]
            self._connection.notify("textDocument/didClose", {"textDocument": {"uri": uris.from_path(path)}})
        for path, text in texts.items():
            if self.texts.get(path) != text:
                self.change(path, text)

    def change(self, path: str, text: str) -> None:
        """Open a text, by its absolute path, or change one that is open, under the next version; the whole text is
        sent. ServerGone if the server has ended.
        """
        uri, version = uris.from_path(path), self.versions.get(path, 0) + 1
        self.versions[path] = version
        if path in self.texts:
            params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
            self._connection.notify("textDocument/didChange", params)
        else:
            language = self._known.language_of(path) or "plaintext"
            item = {"uri": uri, "languageId": language, "version": version, "text": text}
            self._connection.notify("textDocument/didOpen", {"textDocument": item})
        self.texts[path] = text
        self._unread = True
        self._pause = max(self._pause, self._known.pause_texts)

    def note_files(self, changed: Mapping[str, FileChangeKind]) -> None:
        """Notify the server (`workspace/didChangeWatchedFiles`) of what happened to files (`created`, `changed`,
        `deleted`), by absolute path, except changes of open ones. ServerGone if it has ended.
        """
        # The text of an open one comes from us; its file on the disk does not count.
        told = {path: kind for path, kind in changed.items() if kind != "changed" or path not in self.texts}
        changes = [{"uri": uris.from_path(path), "type": _CHANGES[kind]} for path, kind in told.items()]
        if changes:
            self._connection.notify("workspace/didChangeWatchedFiles", {"changes": changes})
            self._unread = True
            self._pause = max(self._pause, self._known.pause_files)

    async def read(self, deadline: float) -> bool:
        """Wait until the server has read all that was sent before; return False if it has not by `deadline`, a time of
        `time.monotonic`. ServerGone if it has ended.
        """
        if self._unread:
            try:
                # No server knows this request: it refuses it once it has read all that came before.
                await self._connection.request("$/codeagent/read", None, deadline - time.monotonic())
            except ServerLate:
                return False
            except ServerFailed:  # a refusal, too, means that everything before has been read
                if self._connection.lost.is_set():
                    raise
            self._unread = False
        return True

    async def noticed(self, deadline: float) -> None:
        """Wait until the server has noticed what changed, at most until `deadline`, a time of `time.monotonic`. Some
        servers look at files other than the changed one only after a pause, and answer from old ones until then.
        ServerGone if it has ended.

        The pause begins when everything was read, and a timer that is over runs before the next message is read.
        """
        if not self._pause:
            return
        await self.read(deadline)
        await asyncio.sleep(min(self._pause, max(deadline - time.monotonic(), 0)))
        self._pause = 0.0


class _Published(NamedTuple):
    """Diagnostics of a version of a text; they count from `due` on, a time of `time.monotonic`."""

    version: int
    items: list[Any]
    due: float


class TextDiagnostics:
    """The diagnostics of the open texts of one server; each list counts only for the version of a text that it was made
    of.
    """

    def __init__(self, known: KnownServer, connection: ServerConnection, open_texts: OpenTexts) -> None:
        self._known = known
        self._connection = connection
        self._open = open_texts
        self._published: dict[str, _Published] = {}
        self._names_versions = False
        self._came = asyncio.Event()
        self._broken = 0

    async def of(self, path: str, deadline: float, *, pulls: bool) -> list[Any] | None:
        """Return the diagnostics of an open text (absolute path) as it is now, as plain JSON; None if they are not
        known by `deadline`, a time of `time.monotonic`, or the server fails. `pulls` says that the server answers
        `textDocument/diagnostic`.
        """
        text = self._open.texts.get(path)
        if text is None:
            return None
        try:
            found = await self._find(path, text, deadline, pulls=pulls)
        except ServerFailed:
            return None
        # Changed meanwhile, they would be those of another text.
        return found if self._open.texts.get(path) == text else None

    def take(self, params: Any) -> None:
        """Take the parameters of `textDocument/publishDiagnostics`; ignored if they are malformed or not of the text
        that is open now.
        """
        params = params if isinstance(params, dict) else {}
        path, items, version = uris.to_path(str(params.get("uri"))), params.get("diagnostics"), params.get("version")
        if path is None or path not in self._open.texts or not isinstance(items, list):
            return
        newest, due = self._open.versions[path], 0.0
        # A server that has named a version once always does, so without one it is of an older text. A quiet one says
        # it of the file on the disk, and would not say again what this text has in common with it.
        if version is None and not (self._names_versions or self._known.quiet):
            due = time.monotonic() + QUIET_SECONDS
        elif version == newest:
            self._names_versions = True
        else:
            return
        self._published.pop(path, None)  # the newest stands last
        self._published[path] = _Published(newest, items[:MAX_ITEMS], due)
        while len(self._published) > REMEMBERED:
            del self._published[next(iter(self._published))]
        self._came.set()

    async def _find(self, path: str, text: str, deadline: float, *, pulls: bool) -> list[Any] | None:
        if self._known.diagnostics == "pull" and pulls:
            return await self._pull(path, deadline)
        await self._open.noticed(deadline)
        if self._known.diagnostics == "tsserver":
            return await self._by_tsserver(path, deadline)
        if self._known.quiet:  # an error in and out again: then there is news, without which it says nothing
            self._broken += 1  # on another line than before, as a question that was cancelled may have left one
            lines = "\n" * (1 + self._broken % _PLACES)
            self._open.change(path, f"{text}{lines}{_BROKEN}")
            broken = await self._wait_for_push(path, deadline)
            self._open.change(path, text)
            return None if broken is None else await self._wait_for_push(path, deadline)
        return await self._wait_for_push(path, deadline)

    async def _pull(self, path: str, deadline: float) -> list[Any] | None:
        params = {"textDocument": {"uri": uris.from_path(path)}}
        while (seconds := deadline - time.monotonic()) > 0:
            try:
                report = await self._connection.request("textDocument/diagnostic", params, seconds)
            except ServerFailed:  # also when the server wants to be asked again
                if self._connection.lost.is_set():
                    return None
                await asyncio.sleep(RETRY_SECONDS)
                continue
            # No earlier result is named, so `unchanged` is no answer.
            items = report.get("items") if isinstance(report, dict) and report.get("kind") == "full" else None
            return items[:MAX_ITEMS] if isinstance(items, list) else None
        return None

    async def _wait_for_push(self, path: str, deadline: float) -> list[Any] | None:
        """Wait for the diagnostics of the newest version of a text."""
        items = await self._wait_for_publish(path, deadline)
        if items is None or self._names_versions:
            return items
        return await self._wait_for_publish(path, deadline) if await self._open.read(deadline) else None

    async def _wait_for_publish(self, path: str, deadline: float) -> list[Any] | None:
        """Wait for what was published after the newest version of a text was sent, until it counts."""
        while not self._connection.lost.is_set():
            now, found = time.monotonic(), self._published.get(path)
            due = math.inf if found is None or found.version != self._open.versions[path] else found.due
            if found is not None and due <= now:
                return found.items
            if now >= deadline:
                return None
            # Before the wait, but after the look: nothing that comes in between is missed, as there is no await.
            self._came.clear()
            await _either(self._came, self._connection.lost, min(due, deadline) - now)
        return None

    async def _by_tsserver(self, path: str, deadline: float) -> list[Any] | None:
        found: list[Any] = []
        # The others of tsserver answer by events, later and for whatever text there is then.
        for command in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
            params = {"command": "typescript.tsserverRequest", "arguments": [command, {"file": path}]}
            answer = await self._connection.request("workspace/executeCommand", params, deadline - time.monotonic())
            body = answer.get("body") if isinstance(answer, dict) else None
            if not isinstance(body, list):
                return None
            found += map(_from_tsserver, body[:MAX_ITEMS])
        return found


async def _either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    """Wait until one of two events is set, at most some seconds."""
    waiting = [asyncio.ensure_future(event.wait()) for event in (one, other)]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def _from_tsserver(item: Any) -> dict[str, Any]:
    """Return a diagnostic of the TypeScript compiler in the protocol's form; lines and columns there begin with 1."""
    item = item if isinstance(item, dict) else {}
    places = [item.get(name) if isinstance(item.get(name), dict) else {} for name in ("start", "end")]
    start, end = ({"line": _before(at.get("line")), "character": _before(at.get("offset"))} for at in places)
    severity = {"error": 1, "warning": 2, "suggestion": 4}.get(str(item.get("category")), 1)
    message = item.get("text") or item.get("message")
    return {
        "range": {"start": start, "end": end},
        "message": message,
        "code": item.get("code"),
        "severity": severity,
        "source": "typescript",
    }


def _before(number: Any) -> int:
    return number - 1 if isinstance(number, int) and number > 0 else 0
