"""Brings accepted changes into the user's buffers through `workspace/applyEdit`, and reports what is really there.

Every file is looked at again right before: what has moved since is merged, what conflicts is left out. Success
is what the buffers hold afterwards, never the client's word. Not here: who accepts (`session/proposal.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError, FileRefused
from codeagent_lsp.server.minimal_edits import minimal_edits
from codeagent_lsp.workspace import uris
from codeagent_lsp.workspace.changeset import Changeset, Current, FileChange, HunkConflict
from codeagent_lsp.workspace.document import Document
from codeagent_lsp.workspace.editor import Applied, Outcome
from codeagent_lsp.workspace.lines import with_newlines

if TYPE_CHECKING:
    from codeagent_lsp.server.clients import ClientPolicy
    from codeagent_lsp.server.server import CodeAgentServer

APPLY_SECONDS = 30.0
SETTLE_SECONDS = 0.5
POLL_SECONDS = 0.02

Operation = types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile


@dataclass(frozen=True, slots=True)
class _Try:
    """One attempted change: what the client said and what is there now."""

    change: FileChange
    arrived: bool
    said_yes: bool
    reason: str = ""


class LspEditor:
    """The `Editor` port over LSP. `read_disk` gives the text of a file on disk, None when there is none."""

    def __init__(
        self,
        server: CodeAgentServer,
        policy: Callable[[], ClientPolicy],
        read_disk: Callable[[str], str | None],
    ) -> None:
        self._server = server
        self._policy = policy
        self._read_disk = read_disk

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        """See `workspace.editor.Editor`."""
        paths = [change.moved_from or change.path for change in changeset]
        current = {path: self._current(path) for path in (*paths, *changeset.paths)}
        rebased = changeset.rebase(current)
        conflicts = list(rebased.conflicts)
        tries: list[_Try] = []
        for group in self._groups(rebased.changeset):
            safe = [change for change in group if self._is_safe(change, may_lose, conflicts)]
            if safe:
                tries.extend(await self._apply_group(safe, label))
        return _report(changeset, tries, conflicts)

    def _groups(self, changeset: Changeset) -> list[list[FileChange]]:
        """One file a request, unless the client applies a request wholly or not at all."""
        together = [change for change in changeset if self._policy().transactional and change.kind == "edit"]
        alone = [[change] for change in changeset if change not in together]
        return [together, *alone] if together else alone

    def has_unsaved_text(self, path: str) -> bool:
        """See `workspace.editor.Editor`."""
        document = self._document(path)
        return document is not None and not same_text(self._disk(path), document.text)

    def _is_safe(self, change: FileChange, may_lose: frozenset[str], conflicts: list[HunkConflict]) -> bool:
        """False where the change would meet something that must not be lost; that becomes a conflict."""
        now = self._current(change.path).text
        taken = change.kind in ("create", "move") and now is not None
        lost = change.kind == "delete" and change.path not in may_lose and self.has_unsaved_text(change.path)
        if taken or lost:
            conflicts.append(HunkConflict(change.path, 1, change.text or "", now or ""))
        return not (taken or lost)

    async def _apply_group(self, group: Sequence[FileChange], label: str) -> list[_Try]:
        operations = [operation for change in group for operation in self._operations(change)]
        said_yes, reason = await self._send(operations, label)
        wait = SETTLE_SECONDS if said_yes else 0.0
        return [await self._look(change, wait, said_yes=said_yes, reason=reason) for change in group]

    async def _look(self, change: FileChange, wait: float, *, said_yes: bool, reason: str) -> _Try:
        """What came of a change, with the text that is there: editors choose line ends themselves."""
        arrived = await self._arrives(change, wait)
        if arrived and change.text is not None:
            change = replace(change, text=self._current(change.path).text)
        return _Try(change, arrived, said_yes, reason)

    def _operations(self, change: FileChange) -> list[Operation]:
        policy = self._policy()
        uri = self._uri(change.path)
        if change.kind == "delete":
            return [types.DeleteFile(uri=uri)] if policy.deletes else []
        operations: list[Operation] = []
        old = change.base or ""
        if change.kind == "move":
            origin = self._uri(change.moved_from or change.path)
            if policy.renames:
                _make_folder(change.path)
                operations.append(types.RenameFile(old_uri=origin, new_uri=uri))
            else:
                operations.extend(self._creation(change.path, uri))
                operations.extend([types.DeleteFile(uri=origin)] if policy.deletes else [])
                old = ""
        elif change.kind == "create":
            operations.extend(self._creation(change.path, uri))
        edits = minimal_edits(old, change.text or "", self._server.documents.encoding)
        if edits:
            version = change.version if change.kind == "edit" else None
            identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
            operations.append(types.TextDocumentEdit(identifier, edits))
        return operations

    def _creation(self, path: str, uri: str) -> list[Operation]:
        """Have the client create a file; where it cannot, create the empty file for it. The user has accepted."""
        _make_folder(path)
        if self._policy().creates:
            return [types.CreateFile(uri=uri)]
        target = Path(path)
        if not target.exists():
            target.touch(exist_ok=False)
        return []

    async def _send(self, operations: Sequence[Operation], label: str) -> tuple[bool, str]:
        """Whether the client said yes, and what it said otherwise."""
        policy = self._policy()
        if not policy.applies_edits or not operations:
            return False, "the editor cannot apply this change"
        if policy.versioned_edits:
            edit = types.WorkspaceEdit(document_changes=list(operations))
        else:
            edits = [item for item in operations if isinstance(item, types.TextDocumentEdit)]
            if len(edits) != len(operations):
                return False, "the editor cannot create, rename or delete files"
            plain = {item.text_document.uri: _plain_edits(item) for item in edits}
            edit = types.WorkspaceEdit(changes=plain)
        params = types.ApplyWorkspaceEditParams(edit=edit, label=label)
        try:
            result = await self._server.request(types.WORKSPACE_APPLY_EDIT, params, APPLY_SECONDS)
        except EditorError as error:
            return False, str(error)
        return bool(result and result.applied), (result and result.failure_reason) or ""

    async def _arrives(self, change: FileChange, seconds: float) -> bool:
        """Whether the change is there now, or within `seconds`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not self._is_there(change):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True

    def _is_there(self, change: FileChange) -> bool:
        now = self._current(change.path).text
        gone = change.moved_from is None or self._current(change.moved_from).text is None
        return gone and same_text(now, change.text)

    def _current(self, path: str) -> Current:
        document = self._document(path)
        if document is not None:
            return Current(document.text, document.version)
        return Current(None if uris.to_path(self._uri(path)) is None else self._disk(path))

    def _disk(self, path: str) -> str | None:
        try:
            return self._read_disk(path)
        except FileRefused:
            return None

    def _document(self, path: str) -> Document | None:
        return self._server.documents.get(self._uri(path))

    def _uri(self, path: str) -> str:
        if not path.startswith("/") and ":" in path:
            return path
        known = self._server.documents.by_path(path)
        return known.uri if known is not None else uris.from_path(path)


def same_text(one: str | None, other: str | None) -> bool:
    """Whether two texts are the same but for their line ends and one at the very end.

    Editors store a buffer with the line ends of its file and some always end a file with one.
    """
    if one is None or other is None:
        return one is other
    return with_newlines(one, "\n").removesuffix("\n") == with_newlines(other, "\n").removesuffix("\n")


def _make_folder(path: str) -> None:
    """Folders are made once the user has accepted: clients differ in whether they make them."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)


def _plain_edits(edit: types.TextDocumentEdit) -> list[types.TextEdit]:
    return [types.TextEdit(item.range, item.new_text) for item in edit.edits if isinstance(item, types.TextEdit)]


def _report(wanted: Changeset, tries: Sequence[_Try], conflicts: Sequence[HunkConflict]) -> Applied:
    done = Changeset(tuple(item.change for item in tries if item.arrived))
    failed = [item for item in tries if not item.arrived]
    left = Changeset(tuple(replace(item.change, version=None) for item in failed))
    reason = next((item.reason for item in failed if item.reason), "")
    return Applied(_outcome(wanted, tries, conflicts), done, left, tuple(conflicts), reason)


def _outcome(wanted: Changeset, tries: Sequence[_Try], conflicts: Sequence[HunkConflict]) -> Outcome:
    arrived = sum(item.arrived for item in tries)
    if any(item.said_yes and not item.arrived for item in tries):
        return "partial" if arrived else "unknown"
    if arrived == len(tries) and not conflicts:
        return "full"
    return "partial" if arrived else "none"
