"""Applies accepted changes to the user's buffers through `workspace/applyEdit`, and checks which text is there
afterwards.

Every file is read again right before: what has changed since is merged, conflicts are left out. Not here: accepting
changes (`session/proposal.py`) and how the outcome is judged (`outcomes.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError, FileRefused
from codeagent_lsp.server.minimal_edits import minimal_edits
from codeagent_lsp.server.outcomes import Said, Try, holds, report, same_text
from codeagent_lsp.server.wire.client_requests import METHOD_NOT_FOUND
from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange, HunkConflict
from codeagent_lsp.workspace.changes.editor import Applied
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.document import Document

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client

APPLY_SECONDS = 30.0
SETTLE_SECONDS = 0.5
REFUSED_SECONDS = 0.2  # a client that refuses may have applied a part, and sends it up to 150 ms later
POLL_SECONDS = 0.02
CANNOT = "the editor cannot apply this change"

Operation = types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile


class LspEditor:
    """The `Editor` port over LSP. `read_disk` returns the text of a file on disk, None when there is none."""

    def __init__(
        self,
        client: Client,
        read_disk: Callable[[str], str | None],
    ) -> None:
        self._client = client
        self._read_disk = read_disk

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        """Apply the changes; see `workspace.changes.editor.Editor`."""
        paths = [change.moved_from or change.path for change in changeset]
        current = {path: self._current(path) for path in (*paths, *changeset.paths)}
        rebased = _filling(changeset, current).rebase(current)
        conflicts, tries = list(rebased.conflicts), list[Try]()
        steps, origins = self._steps(rebased.changeset)
        for group in self._groups(steps):
            missing = [change for change in group if _must_wait(change, origins, tries)]
            tries.extend(Try(change, arrived=False, before=None, now=None, said="no") for change in missing)
            leave = may_lose | frozenset(origins)
            safe = [change for change in group if change not in missing and self._is_safe(change, leave, conflicts)]
            if safe:
                tries.extend(await self._apply_group(safe, label))
        return report(changeset, tries, conflicts)

    def _steps(self, changeset: Changeset) -> tuple[Changeset, dict[str, str]]:
        """Split moves into a new file and a deletion, for a client that cannot rename. Also return where each deleted
        file went.
        """
        if self._client.policy.renames:
            return changeset, {}
        steps: list[FileChange] = []
        origins: dict[str, str] = {}
        for change in changeset:
            if change.moved_from is None:
                steps.append(change)
                continue
            origins[change.moved_from] = change.path
            steps += [FileChange(change.path, None, change.text), FileChange(change.moved_from, change.base, None)]
        return Changeset(tuple(steps)), origins

    def _groups(self, changeset: Changeset) -> list[list[FileChange]]:
        """Group changes into requests: one file each, unless the client applies a request wholly or not at all."""
        together = [change for change in changeset if self._client.policy.transactional and change.kind == "edit"]
        alone = [[change] for change in changeset if change not in together]
        return [together, *alone] if together else alone

    def has_unsaved_text(self, path: str) -> bool:
        """Return whether the buffer differs from the file; see `workspace.changes.editor.Editor`."""
        document = self._document(path)
        return document is not None and not same_text(self._disk(path), document.text)

    def _is_safe(self, change: FileChange, may_lose: frozenset[str], conflicts: list[HunkConflict]) -> bool:
        """Return False, and record a conflict, where the change would overwrite or delete text that must be kept."""
        now = self._current(change.path).text
        taken = change.kind in ("create", "move") and (now is not None or os.path.lexists(change.path))
        lost = change.kind == "delete" and change.path not in may_lose and self.has_unsaved_text(change.path)
        if taken or lost:
            conflicts.append(HunkConflict(change.path, 1, change.text or "", now or ""))
        return not (taken or lost)

    async def _apply_group(self, group: Sequence[FileChange], label: str) -> list[Try]:
        made = self._make_empty_files(group)
        self._delete_for_client(group)
        before = [self._current(change.path).text for change in group]
        operations = [operation for change in group for operation in self._operations(change)]
        said, reason = await self._send(operations, label)
        wait = REFUSED_SECONDS if said == "no" else SETTLE_SECONDS
        tries = []
        for change, text in zip(group, before, strict=True):
            arrived = await self._arrives(change, wait)
            tries.append(Try(change, arrived, text, self._current(change.path).text, said, reason))
        if said == "no":
            self._drop_empty_files(made)
        return tries

    def _make_empty_files(self, group: Sequence[FileChange]) -> list[str]:
        """Create empty files for the edits to fill, for a client that cannot create files. The user has accepted.

        Returns what was made: the files, then their folders, the innermost first.
        """
        policy = self._client.policy
        if policy.creates or not policy.applies_edits:
            return []
        paths = [change.path for change in group if change.kind == "create" and Path(change.path).is_absolute()]
        folders: list[str] = []
        for path in paths:
            folders += _make_folder(path)
            Path(path).touch(exist_ok=False)
        return [*paths, *reversed(folders)]

    def _delete_for_client(self, group: Sequence[FileChange]) -> None:
        """Delete the files that the client cannot delete. The user has accepted, and nothing unsaved is in them."""
        policy = self._client.policy
        if policy.applies_edits and not policy.deletes:
            for change in group:
                if change.kind == "delete" and Path(change.path).is_absolute():
                    Path(change.path).unlink(missing_ok=True)

    def _drop_empty_files(self, paths: Sequence[str]) -> None:
        """Remove the empty files and folders made for a client that then refused."""
        for path in paths:
            if Path(path).is_dir():
                with suppress(OSError):  # the folder is no longer empty
                    Path(path).rmdir()
            elif self._document(path) is None and self._disk(path) == "":
                Path(path).unlink(missing_ok=True)

    def _operations(self, change: FileChange) -> list[Operation]:
        """Return the operations to request from the client; none where it cannot do them."""
        policy = self._client.policy
        uri = self._uri(change.path)
        if change.kind == "delete":
            return [types.DeleteFile(uri=uri)] if policy.deletes else []
        operations: list[Operation] = []
        if change.kind == "move":
            _make_folder(change.path)
            operations.append(types.RenameFile(old_uri=self._uri(change.moved_from or change.path), new_uri=uri))
        elif change.kind == "create" and policy.creates:
            _make_folder(change.path)
            operations.append(types.CreateFile(uri=uri))
        encoding = self._client.server.documents.encoding
        edits = minimal_edits(change.base or "", change.text or "", encoding, ended_lines=policy.ended_lines)
        if edits:
            version = change.version if change.kind == "edit" else None
            identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
            operations.append(types.TextDocumentEdit(identifier, edits))
        return operations

    async def _send(self, operations: Sequence[Operation], label: str) -> tuple[Said, str]:
        """Send `workspace/applyEdit` and return the client's answer with its reason for a refusal."""
        policy = self._client.policy
        if not policy.applies_edits or not operations:
            return "no", CANNOT
        if policy.versioned_edits:
            edit = types.WorkspaceEdit(document_changes=list(operations))
        else:
            edits = [item for item in operations if isinstance(item, types.TextDocumentEdit)]
            edit = types.WorkspaceEdit(changes={item.text_document.uri: _plain_edits(item) for item in edits})
        params = types.ApplyWorkspaceEditParams(edit=edit, label=label)
        try:
            result = await self._client.server.request(types.WORKSPACE_APPLY_EDIT, params, APPLY_SECONDS)
        except EditorError as error:
            if error.key == "editor.timeout":
                return "nothing", str(error)
            return "no", CANNOT if error.values.get("code") == METHOD_NOT_FOUND else str(error)
        if result is not None and result.applied:
            return "yes", ""
        return "no", (result and result.failure_reason) or ""

    async def _arrives(self, change: FileChange, seconds: float) -> bool:
        """Wait until the change is in the buffer or on disk; return False when it is not within `seconds`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not self._is_there(change):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True

    def _is_there(self, change: FileChange) -> bool:
        if change.text is None:
            return self._is_gone(change.path)
        now = self._current(change.path).text
        left = change.moved_from is None or self._is_gone(change.moved_from)
        return left and now is not None and holds(change.base, change.text, now)

    def _is_gone(self, path: str) -> bool:
        """Return whether the file is gone from disk; an editor may go on showing its text."""
        return not os.path.lexists(path) if Path(path).is_absolute() else self._document(path) is None

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
        return self._client.server.documents.get(self._uri(path))

    def _uri(self, path: str) -> str:
        if not path.startswith("/") and ":" in path:
            return path
        known = self._client.server.documents.by_path(path)
        return known.uri if known is not None else uris.from_path(path)


def _filling(changeset: Changeset, current: Mapping[str, Current]) -> Changeset:
    """Return the changes with new files that exist already but are empty as edits: an earlier attempt may have made
    them.
    """
    empty = {path for path, now in current.items() if now.text == ""}
    return Changeset(
        tuple(
            replace(change, base="") if change.kind == "create" and change.path in empty else change
            for change in changeset
        )
    )


def _must_wait(change: FileChange, origins: Mapping[str, str], tries: Sequence[Try]) -> bool:
    """Return whether this deletes a moved file whose text has not arrived at its new path."""
    target = origins.get(change.path) if change.kind == "delete" else None
    return target is not None and not any(item.arrived for item in tries if item.change.path == target)


def _make_folder(path: str) -> list[str]:
    """Create the folder of a file and return the new ones; clients differ in whether they create folders."""
    parent = Path(path).parent
    missing = [str(folder) for folder in (*reversed(parent.parents), parent) if not folder.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    return missing


def _plain_edits(edit: types.TextDocumentEdit) -> list[types.TextEdit]:
    return [types.TextEdit(item.range, item.new_text) for item in edit.edits if isinstance(item, types.TextEdit)]
