"""Applies accepted changes to the user's buffers through `workspace/applyEdit`, and checks which text is there
afterwards.

Every file is read again right before: what has changed since is merged, conflicts are left out. Not here: accepting
changes (`session/proposal.py`) and how the outcome is judged (`outcomes.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server.current_texts import CurrentTexts
from codeagent_lsp.server.minimal_edits import minimal_edits
from codeagent_lsp.server.missing_operations import delete_for_client, drop_empty_files, make_empty_files, make_folder
from codeagent_lsp.server.outcomes import Said, Try, report
from codeagent_lsp.server.wire.client_requests import METHOD_NOT_FOUND
from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange, HunkConflict
from codeagent_lsp.workspace.changes.editor import Applied

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client

APPLY_SECONDS = 30.0
SETTLE_SECONDS = 0.5
REFUSED_SECONDS = 0.2  # a client that refuses may have applied a part, and sends it up to 150 ms later
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
        self._texts = CurrentTexts(client.server.documents, read_disk)

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        """Apply the changes; see `workspace.changes.editor.Editor`."""
        paths = [change.moved_from or change.path for change in changeset]
        current = {path: self._texts.current(path) for path in (*paths, *changeset.paths)}
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
        return self._texts.has_unsaved_text(path)

    def _is_safe(self, change: FileChange, may_lose: frozenset[str], conflicts: list[HunkConflict]) -> bool:
        """Return False, and record a conflict, where the change would overwrite or delete text that must be kept."""
        now = self._texts.current(change.path).text
        taken = change.kind in ("create", "move") and (now is not None or os.path.lexists(change.path))
        lost = change.kind == "delete" and change.path not in may_lose and self._texts.has_unsaved_text(change.path)
        if taken or lost:
            conflicts.append(HunkConflict(change.path, 1, change.text or "", now or ""))
        return not (taken or lost)

    async def _apply_group(self, group: Sequence[FileChange], label: str) -> list[Try]:
        made = make_empty_files(self._client.policy, group)
        delete_for_client(self._client.policy, group)
        before = [self._texts.current(change.path).text for change in group]
        operations = [operation for change in group for operation in self._operations(change)]
        said, reason = await self._send(operations, label)
        wait = REFUSED_SECONDS if said == "no" else SETTLE_SECONDS
        tries = []
        for change, text in zip(group, before, strict=True):
            arrived = await self._texts.arrives(change, wait)
            tries.append(Try(change, arrived, text, self._texts.current(change.path).text, said, reason))
        if said == "no":
            drop_empty_files(self._texts, made)
        return tries

    def _operations(self, change: FileChange) -> list[Operation]:
        """Return the operations to request from the client; none where it cannot do them."""
        policy = self._client.policy
        uri = self._texts.uri(change.path)
        if change.kind == "delete":
            return [types.DeleteFile(uri=uri)] if policy.deletes else []
        operations: list[Operation] = []
        if change.kind == "move":
            make_folder(change.path)
            operations.append(types.RenameFile(old_uri=self._texts.uri(change.moved_from or change.path), new_uri=uri))
        elif change.kind == "create" and policy.creates:
            make_folder(change.path)
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


def _plain_edits(edit: types.TextDocumentEdit) -> list[types.TextEdit]:
    return [types.TextEdit(item.range, item.new_text) for item in edit.edits if isinstance(item, types.TextEdit)]
