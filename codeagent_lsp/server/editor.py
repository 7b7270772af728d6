"""Applies accepted changes to the user's buffers through `workspace/applyEdit`, and checks which text is there
afterwards.

The user may type while the files are sent one after the other, so each is read again right before: what has changed
since is merged, conflicts are left out. Not here: accepting changes (`session/proposal.py`) and how the outcome is
judged (`outcomes.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server.current_texts import CurrentTexts
from codeagent_lsp.server.minimal_edits import minimal_edits
from codeagent_lsp.server.missing_operations import delete_for_client, drop_places, make_places
from codeagent_lsp.server.outcomes import Said, Try, report, without_stray_returns
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
        """Apply the changes; see `workspace.changes.editor.Editor`. A cancellation is put off to the caller's next
        wait, so that it learns what had been applied until then.
        """
        return await _Applying(self._client, self._texts, changeset, label, may_lose).run()

    def has_unsaved_text(self, path: str) -> bool:
        """Return whether the buffer differs from the file; see `workspace.changes.editor.Editor`."""
        return self._texts.has_unsaved_text(path)


class _Applying:
    """One changeset on its way into the buffers, with the account of what has come there."""

    def __init__(
        self, client: Client, texts: CurrentTexts, changeset: Changeset, label: str, may_lose: frozenset[str]
    ) -> None:
        self._client = client
        self._policy = client.policy
        self._texts = texts
        self._label = label
        self._wanted = changeset
        self._may_lose = may_lose
        self._waiting = deque(self._groups())
        self._tries: list[Try] = []
        self._conflicts: list[HunkConflict] = []

    async def run(self) -> Applied:
        """Apply the groups one after the other; also after a cancellation, return the account."""
        try:
            while self._waiting:
                await self._apply(self._waiting.popleft())
        except asyncio.CancelledError as error:
            _cancel_later(error)
        untried = [_untried(change) for group in self._waiting for change in group]
        return report(self._wanted, [*self._tries, *untried], self._conflicts)

    def _groups(self) -> list[list[FileChange]]:
        """Group changes into requests: one file each, unless the client applies a request wholly or not at all."""
        together = [change for change in self._wanted if self._policy.transactional and change.kind == "edit"]
        alone = [[change] for change in self._wanted if change not in together]
        return [together, *alone] if together else alone

    async def _apply(self, group: Sequence[FileChange]) -> None:
        """Send the changes of a group as they fit now. There is no wait between reading the texts and sending."""
        ready = self._ready(group)
        if len(ready) == 1 and ready[0].moved_from is not None and not self._policy.renames:
            await self._apply_move(ready[0], ready[0].moved_from)
        elif ready:
            await self._try(ready)

    async def _apply_move(self, change: FileChange, origin: str) -> None:
        """Make the new file for a client that cannot rename. The old one is deleted next, if the new one has come."""
        try:
            await self._try([FileChange(change.path, None, change.text)])
        finally:
            if self._tries[-1].arrived:
                deletion = FileChange(origin, change.base, None)
                self._wanted = self._wanted.with_change(deletion)
                self._waiting.appendleft([deletion])
                self._may_lose |= {origin}  # its unsaved text is in the new file
            else:
                self._tries[-1] = replace(self._tries[-1], change=change)

    def _ready(self, group: Sequence[FileChange]) -> list[FileChange]:
        """Return the changes rebased on the texts of this moment, without those that would overwrite or delete text
        that must be kept.
        """
        sources = [change.moved_from or change.path for change in group]
        current = {source: self._texts.current(source) for source in sources}
        rebased = _filling(Changeset(tuple(group)), current).rebase(current)
        self._conflicts.extend(rebased.conflicts)
        return [change for change in rebased.changeset if self._is_safe(change)]

    def _is_safe(self, change: FileChange) -> bool:
        """Return False, and record a conflict, where the change would overwrite or delete text that must be kept."""
        now = self._texts.current(change.path).text
        taken = change.kind in ("create", "move") and (now is not None or os.path.lexists(change.path))
        may_go = change.kind != "delete" or change.path in self._may_lose
        lost = not may_go and self._texts.has_unsaved_text(change.path)
        if taken or lost:
            self._conflicts.append(HunkConflict(change.path, 1, change.text or "", now or ""))
        return not (taken or lost)

    async def _try(self, group: Sequence[FileChange]) -> None:
        """Send changes, wait for their texts, and record what has become of each; also when it is cancelled."""
        before, made = self._now(group), list[str]()
        said: Said = "nothing"
        reason = str(EditorError("editor.stopped"))
        try:
            made = make_places(self._policy, group)
            delete_for_client(self._policy, group)
            before = self._now(group)  # the client is judged by what it does, not by what was made for it
            answer = await self._send(group)
            for change in group:
                await self._texts.arrives(change, REFUSED_SECONDS if answer[0] == "no" else SETTLE_SECONDS)
                await self._correct(change)
            said, reason = answer
        except OSError as error:
            path = error.filename or group[0].path
            said, reason = "no", str(EditorError("editor.file", path=path, reason=error.strerror or error))
        finally:
            tries = [
                Try(change, self._texts.holds(change), old, now, said, reason)
                for change, old, now in zip(group, before, self._now(group), strict=True)
            ]
            self._tries.extend(tries)
        if said == "no" and not any(item.arrived for item in tries):
            drop_places(self._texts, made)

    async def _correct(self, change: FileChange) -> None:
        """Take the CRs out again that an editor has inserted into lines whose ends it shows without them."""
        document = self._texts.document(change.path)
        plain = without_stray_returns(change, document.text) if document is not None else None
        if document is not None and plain is not None:
            correction = FileChange(change.path, document.text, plain, document.version)
            await self._send([correction])
            await self._texts.arrives(correction, SETTLE_SECONDS)

    def _now(self, group: Sequence[FileChange]) -> list[str | None]:
        return [self._texts.current(change.path).text for change in group]

    async def _send(self, group: Sequence[FileChange]) -> tuple[Said, str]:
        """Send `workspace/applyEdit` and return the client's answer with its reason for a refusal."""
        operations = [operation for change in group for operation in self._operations(change)]
        if not self._policy.applies_edits or not operations:
            return "no", CANNOT
        if self._policy.versioned_edits:
            edit = types.WorkspaceEdit(document_changes=operations)
        else:
            edits = [item for item in operations if isinstance(item, types.TextDocumentEdit)]
            edit = types.WorkspaceEdit(changes={item.text_document.uri: _plain_edits(item) for item in edits})
        params = types.ApplyWorkspaceEditParams(edit=edit, label=self._label)
        try:
            result = await self._client.server.request(types.WORKSPACE_APPLY_EDIT, params, APPLY_SECONDS)
        except EditorError as error:
            if error.key == "editor.timeout":
                return "nothing", str(error)
            return "no", CANNOT if error.values.get("code") == METHOD_NOT_FOUND else str(error)
        if result is not None and result.applied:
            return "yes", ""
        return "no", (result and result.failure_reason) or ""

    def _operations(self, change: FileChange) -> list[Operation]:
        """Return the operations to request from the client; none where it cannot do them."""
        uri = self._texts.uri(change.path)
        if change.kind == "delete":
            return [types.DeleteFile(uri=self._texts.file_uri(change.path))] if self._policy.deletes else []
        operations: list[Operation] = []
        if change.moved_from is not None:
            operations.append(types.RenameFile(old_uri=self._texts.file_uri(change.moved_from), new_uri=uri))
        elif change.kind == "create" and self._policy.creates:
            operations.append(types.CreateFile(uri=uri))
        encoding = self._client.server.documents.encoding
        edits = minimal_edits(change.base or "", change.text or "", encoding, ended_lines=self._policy.ended_lines)
        if edits:
            version = change.version if change.kind == "edit" else None
            identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
            operations.append(types.TextDocumentEdit(identifier, edits))
        return operations


def _cancel_later(error: asyncio.CancelledError) -> None:
    """Cancel the task again, which takes effect at its next wait; the number of its cancellations stays the same."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel(*error.args)


def _untried(change: FileChange) -> Try:
    return Try(change, arrived=False, before=None, now=None, said="no", reason=str(EditorError("editor.stopped")))


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


def _plain_edits(edit: types.TextDocumentEdit) -> list[types.TextEdit]:
    return [types.TextEdit(item.range, item.new_text) for item in edit.edits if isinstance(item, types.TextEdit)]
