"""A client in memory whose user types all the time, with a text of its own: what it tells arrives later, and an edit of
an older version is not applied, in the way of a real editor.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.workspace.files.uris import from_path
from codeagent_lsp.workspace.text.document import Change, Document

WIRE_SECONDS = 0.001


@dataclass(frozen=True)
class Habit:
    """How an editor behaves: `refuses` is its answer to an edit of an older version, `tells_after` how long it collects
    what is typed, or with `tells_idle` how long nothing may be typed before it tells. Without `counts` it has one
    version for all texts; `wire` is how long a message is on its way.
    """

    policy: ClientPolicy
    refuses: Callable[[], Any]
    tells_after: float = 0.0
    tells_idle: float = 0.0
    counts: bool = True
    wire: float = WIRE_SECONDS


def _no() -> Any:
    return types.ApplyWorkspaceEditResult(applied=False)


def _yes() -> Any:
    return types.ApplyWorkspaceEditResult(applied=True)


def _error() -> Any:
    raise EditorError("editor.error", method="workspace/applyEdit", message="Edits require version 3, have 7", code=-1)


VERSIONED = ClientPolicy(versioned_edits=True, creates=True, deletes=True, renames=True, applies_edits=True)
VSCODE = Habit(replace(VERSIONED, transactional=True), _no)
NEOVIM = Habit(replace(VERSIONED, ended_lines=True, drops_stale=True), _yes, tells_after=0.15)
EGLOT = Habit(VERSIONED, _error, tells_idle=0.5)


@dataclass
class TypingClient:
    """The client and its user; `documents` is what the server knows, `own` what stands in the editor."""

    habit: Habit
    documents: Documents = field(default_factory=lambda: Documents("utf-16"))
    own: dict[str, Document] = field(default_factory=dict)
    asked: int = 0
    after_apply: Callable[[str], str] | None = None
    meanwhile: Callable[[], bool] = lambda: False  # what happens before an edit comes; returns whether it is refused
    _untold: dict[str, list[Change]] = field(default_factory=dict)
    _telling: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    _told_at: float = 0.0

    @property
    def editor(self) -> LspEditor:
        return LspEditor(Client(cast("CodeAgentServer", self), policy=self.habit.policy), lambda path: None)

    def open(self, path: Path, text: str) -> None:
        document = Document(from_path(str(path)), text, 1)
        self.own[document.uri] = document
        self.documents.open(document)

    def text(self, path: Path) -> str:
        return self.own[from_path(str(path))].text

    async def until_known(self, path: Path, seconds: float = 5.0) -> None:
        """Wait until the server knows the text that stands in the editor."""
        uri, heard = from_path(str(path)), asyncio.Event()
        end = self.documents.subscribe(lambda *_: heard.set())
        try:
            async with asyncio.timeout(seconds):
                while (known := self.documents.get(uri)) is None or known.text != self.own[uri].text:
                    heard.clear()
                    await heard.wait()
        finally:
            end()

    def told_now(self) -> None:
        """Let the time begin after which it tells again."""
        self._told_at = asyncio.get_running_loop().time()

    def type(self, path: Path, change: Change) -> None:
        """Change the text as the user does."""
        self._change(from_path(str(path)), [change])

    async def request(self, method: str, params: types.ApplyWorkspaceEditParams, seconds: float) -> Any:
        self.asked += 1
        if self.meanwhile():
            return self.habit.refuses()
        await asyncio.sleep(self.habit.wire)
        edits = [cast("types.TextDocumentEdit", each) for each in params.edit.document_changes or ()]
        for uri, plain in (params.edit.changes or {}).items():
            edits.append(types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri), [*plain]))
        if params.edit.document_changes and any(
            self.own[each.text_document.uri].version != each.text_document.version for each in edits
        ):
            await asyncio.sleep(self.habit.wire)
            return self.habit.refuses()
        for each in edits:
            self._change(each.text_document.uri, [*map(_change_of, reversed(each.edits))])
            if self.after_apply is not None:
                self._change(each.text_document.uri, [Change(self.after_apply(self.own[each.text_document.uri].text))])
        await asyncio.sleep(self.habit.wire)
        return _yes()

    def _change(self, uri: str, changes: list[Change]) -> None:
        document = self.own[uri]
        version = (document.version or 0) + self.habit.counts
        for change in changes:
            document = document.apply(change, "utf-16", version=version)
        self.own[uri] = document
        self._untold.setdefault(uri, []).extend(changes)
        loop = asyncio.get_running_loop()
        if self.habit.tells_idle:
            wait = self.habit.tells_idle
            if uri in self._telling:
                self._telling.pop(uri).cancel()
        else:
            wait = max(0.0, self._told_at + self.habit.tells_after - loop.time())
        if uri not in self._telling:
            self._telling[uri] = loop.call_later(wait, self._tell, uri)

    def _tell(self, uri: str) -> None:
        loop = asyncio.get_running_loop()
        self._told_at = loop.time()
        self._telling.pop(uri)
        changes, version = self._untold.pop(uri), self.own[uri].version
        loop.call_later(self.habit.wire, self.documents.change, uri, version, changes)


async def while_typing(
    client: TypingClient, path: Path, mark: str, rate: float, work: Awaitable[Any], keys: int = 10_000
) -> tuple[Any, str]:
    """Type at the end of the line that begins with `mark`, while `work` is done, `keys` letters at most; return its
    result and what was typed.
    """
    hand = random.Random(rate)  # nobody types in step with an editor that tells each 150 ms
    task = asyncio.ensure_future(work)
    typed = ""
    while not task.done() and len(typed) < keys:
        letter = "abcdefghij"[len(typed) % 10]
        lines = client.text(path).split("\n")
        line = next(number for number, each in enumerate(lines) if each.startswith(mark))
        client.type(path, Change(letter, (line, len(lines[line])), (line, len(lines[line]))))
        typed += letter
        await asyncio.sleep(hand.uniform(0.5, 1.5) / rate)
    return await task, typed


def _change_of(edit: Any) -> Change:
    start, end = edit.range.start, edit.range.end
    return Change(edit.new_text, (start.line, start.character), (end.line, end.character))
