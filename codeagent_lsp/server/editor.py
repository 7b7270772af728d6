"""Applies accepted changes to the user's buffers through `workspace/applyEdit`, and checks which text is there
afterwards.

The user may type while the files are sent one after the other, so each is read again right before: what has changed
since is merged, conflicts are left out. What comes too late, because the text has another version by then, is merged
and sent again. Not here: accepting changes (`session/proposal.py`) and how the outcome is judged (`text_edits.py`).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server.current_texts import Arrivals, CurrentTexts
from codeagent_lsp.server.file_effects import Modes, delete_for_client, drop_places, make_places, set_mode
from codeagent_lsp.server.text_edits import (
    Said,
    Try,
    minimal_edits,
    nothing_of,
    report,
    same_text,
    without_stray_returns,
)
from codeagent_lsp.server.wire.outgoing import METHOD_NOT_FOUND
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, Current, FileChange, HunkConflict
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, offset_at, shared_ends, split_lines, units

if TYPE_CHECKING:
    from codeagent_lsp.server.front import Client

APPLY_SECONDS = 30.0
UNANSWERED_SECONDS = 2.0  # a client that has made the changes is not waited for longer
SETTLE_SECONDS = 0.8  # Eglot tells what has become of a text after half a second, also of one that it refuses
BUSY_SECONDS = 2.2  # so much later a busy editor may tell that it has done what it has said yes to
STALE_SECONDS = 0.7  # so much later some tell what was typed, for which they have refused; Eglot after half a second
TYPING_SECONDS = 20.0  # as long changes are sent again while the user types
PAUSE_SECONDS = 0.3  # without a key, afterwards: on a slow machine only a pause is longer than the editor's answer
PAUSES_SECONDS = 120.0  # as long pauses are waited for
MOST_IN_VAIN = 3  # times that the text is the same as the one that was refused
SHOWN_SECONDS = 5.0  # a client that says that it shows a file tells its text by then
_LOST = re.compile("[\0\ufffd]")  # where bytes are in another encoding than that in which they were read
_SAYS_STALE = re.compile(r"version|stale|outdated|newer|changed", re.IGNORECASE)
_SOURCE = re.compile(r"^[^\n]*?\.lua:\d+: ")  # Neovim says first where in its own files it has failed
TAKES_BACK = 4  # so often what was made in another text is taken out, if the user types meanwhile each time
CANNOT = "the editor cannot apply this change"

Operation = types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile


class LspEditor:
    """The `Editor` port over LSP. `read_disk` returns the text of a file on disk, None when there is none; `is_certain`
    whether every editor reads it as the same text.
    """

    def __init__(
        self,
        client: Client,
        read_disk: Callable[[str], str | None],
        is_certain: Callable[[str], bool] = lambda path: True,
    ) -> None:
        self._client = client
        self._is_certain = is_certain
        self._texts = CurrentTexts(client.server.documents, read_disk)
        self._turns = _Turns()

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        """Apply the changes as `Editor.apply` says, and return what is in the buffers afterwards. May wait for minutes,
        while the client does not answer or the user types. A cancellation is deferred to the caller's next wait, so
        that it learns what was applied until then.
        """
        modes = Modes(changeset)
        texts = Changeset(tuple(change for change in changeset if not change.only_mode))
        applied = await _Applying(self._client, self._texts, texts, label, may_lose, self._opened, self._turns).run()
        return modes.carried_out(applied, lambda path: self._texts.document(path) is not None)

    async def open_unclear(self, paths: Iterable[str]) -> None:
        """Have the client open those of the files (absolute paths) whose encoding only it can tell; waits for them for
        some seconds; never raises.
        """
        await self._opened(paths)

    async def _opened(self, paths: Iterable[str]) -> frozenset[str]:
        """Return those of the files of which only the editor can tell in which encoding they are. It is asked to open
        them, or for their texts where it does not tell them by itself.
        """
        await self._client.sync(map(self._texts.uri, paths := tuple(paths)))
        if self._client.policy.reads_as_we:
            return frozenset()
        unclear = frozenset(path for path in dict.fromkeys(paths) if not self._is_certain(path))
        for path in unclear:
            if self._texts.document(path) is None and await self._client.show(self._texts.uri(path), take_focus=False):
                await self._texts.opened(path, SHOWN_SECONDS)
        return unclear

    def set_mode(self, path: str, *, runs: bool) -> bool:
        """Make a file (absolute path) executable (`runs`), or no longer; return whether that was done, False for a
        link, a missing file or a failure.
        """
        try:
            if Path(path).is_symlink() or not Path(path).is_file():
                return False
            set_mode(path, runs=runs)
        except OSError:
            return False
        return True

    def still_shows(self, path: str) -> bool:
        """Return whether a deleted file (absolute path) is open in a client that cannot delete files; False while the
        file is on the disk. Blocks for looking at it.
        """
        return not self._client.policy.deletes and not os.path.lexists(path) and self._texts.document(path) is not None

    def has_unsaved_text(self, path: str) -> bool:
        """Return whether the buffer of a file (absolute path) differs from the file on disk; True also if the buffer's
        text is not known, False if it is not open.
        """
        return self._texts.has_unsaved_text(path)


class _Turns:
    """Lets those that change the same files go one after the other; who changes others need not wait."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, paths: Iterable[str | None]) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for path in sorted({path for path in paths if path is not None}):  # in one order: none waits for another
                await stack.enter_async_context(self._locks.setdefault(path, asyncio.Lock()))
            yield


class _Applying:
    """One changeset on its way into the buffers, with the account of what has come there."""

    def __init__(
        self,
        client: Client,
        texts: CurrentTexts,
        changeset: Changeset,
        label: str,
        may_lose: frozenset[str],
        opened: Callable[[Iterable[str]], Awaitable[frozenset[str]]],
        turns: _Turns,
    ) -> None:
        self._client = client
        self._policy = client.policy
        self._texts = texts
        self._label = label
        self._wanted = changeset
        self._may_lose = may_lose
        self._opened = opened
        self._turns = turns
        self._unclear = frozenset[str]()
        self._waiting = deque(self._groups())  # groups of changes that are sent together
        self._tries: dict[str, Try] = {}  # the last attempt at each path, by which it is reported
        self._conflicts: dict[str, tuple[HunkConflict, ...]] = {}  # by path, as of the last rebase
        self._prepared: dict[str, Prepared] = {}  # by path, the edits as they were sent last
        self._in_the_way: str | None = None  # the path of the change for which the last request was refused, if told
        self._taken_back: set[str] = set()  # paths of the last request, of which the change was at a wrong place

    async def run(self) -> Applied:
        """Apply the groups one after the other; also after a cancellation, return the account."""
        # A new file has no encoding yet that could be misread.
        read = (change.moved_from or change.path for change in self._wanted if change.base is not None)
        try:
            self._unclear = await self._opened(read)
            while self._waiting:
                group = self._waiting[0]
                # Two runs may change one file: what one has sent is there, or known not to be, before the other reads.
                async with self._turns.of(path for change in group for path in (change.path, change.moved_from)):
                    await self._apply(self._waiting.popleft())
        # Nothing that was sent can be called back, so the account has to be given: it is what the user is told.
        except asyncio.CancelledError as error:
            _cancel_later(error)
        stopped = str(EditorError("editor.stopped"))
        untried = [_untried_change(change, stopped) for group in self._waiting for change in group]
        conflicts = [conflict for found in self._conflicts.values() for conflict in found]
        return report(self._wanted, [*self._tries.values(), *untried], conflicts)

    def _groups(self) -> list[list[FileChange]]:
        """Group changes into requests: one file each, unless the client applies a request wholly or not at all."""
        # Only edits: VS Code refuses to create a file that exists, but keeps what it has applied of the request before.
        together = [change for change in self._wanted if self._policy.transactional and change.kind == "edit"]
        alone = [[change] for change in self._wanted if change not in together]
        return [together, *alone] if together else alone

    async def _apply(self, group: Sequence[FileChange]) -> None:
        """Send the changes of a group as they fit now, and again while they come too late, in the end in pauses of the
        typing only. There is no wait between reading the texts and sending.
        """
        now = asyncio.get_running_loop().time
        # First at once, however fast the user types; later only in pauses, as each attempt may come too late again.
        slows = now() + TYPING_SECONDS
        ends = slows + PAUSES_SECONDS
        in_vain = 0
        while ready := self._ready(group):
            # A move is always alone in its group, as `_groups` joins edits only.
            if len(ready) == 1 and ready[0].moved_from is not None and not self._policy.renames:
                await self._apply_move(ready[0], ready[0].moved_from)
                return
            await self._try(ready)
            # Sent again: a change that was at the wrong place has been taken out, and is not there now.
            if taken_back := [change for change in ready if change.path in self._taken_back]:
                group = taken_back  # the others have come
            elif others := self._not_in_the_way(ready):
                group = others
                continue
            elif not self._came_too_late(ready):
                return
            # An editor that takes back what it has made has newer versions of the same text, however often it is asked.
            in_vain = in_vain + 1 if self._now(ready) == [change.base for change in ready] else 0
            if in_vain >= MOST_IN_VAIN:
                return
            if now() >= slows or in_vain:
                await self._texts.pause(PAUSE_SECONDS, ends - now())
            if now() >= ends:
                self._give_up(ready)
                return

    def _not_in_the_way(self, group: Sequence[FileChange]) -> list[FileChange]:
        """Return the changes that were refused only because the editor cannot make another one of the same request."""
        named = [change for change in group if change.path == self._in_the_way]
        if not named or self._has_moved(named) or any(self._tries[change.path].said != "no" for change in group):
            return []
        return [change for change in group if change.path != self._in_the_way and not self._tries[change.path].arrived]

    def _came_too_late(self, group: Sequence[FileChange]) -> bool:
        """Return whether nothing of a group was done because its texts were others by then."""
        tries = [self._tries[change.path] for change in group]
        untouched = all(
            item.said == "no" and (self._is_out(item.change, item.now) or nothing_of(item)) for item in tries
        )
        return untouched and self._has_moved(group)

    def _is_out(self, change: FileChange, now: str | None) -> bool:
        """Return whether a text differs in other lines only from the one that a change was sent for."""
        sent = self._prepared.get(change.path)
        return sent is not None and sent.change == change and sent.onto(Current(now)) is not None

    def _has_moved(self, group: Sequence[FileChange]) -> bool:
        """Return whether a text that was sent with its version is another one now."""
        return self._policy.versioned_edits and any(
            change.kind == "edit" and change.version is not None and self._is_other(change) for change in group
        )

    def _is_other(self, change: FileChange) -> bool:
        # The text as well: a file that is opened anew begins with the version that it began with before.
        now = self._texts.current(change.path)
        return now.version != change.version or now.text not in (change.base, change.text)

    def _is_opened_anew(self, change: FileChange) -> bool:
        """Return whether a file has another text under a version that the editor takes for the one that was sent, so
        that it may have made the change in it.
        """
        now = self._texts.current(change.path)
        known = None in (now.version, change.version) or (now.version or 0) > (change.version or 0)
        return change.kind == "edit" and not known and self._is_other(change)

    def _give_up(self, group: Sequence[FileChange]) -> None:
        names = ", ".join(PurePath(change.path).name for change in group)
        reason = str(EditorError("editor.typing", files=names))
        self._tries.update({change.path: replace(self._tries[change.path], reason=reason) for change in group})

    async def _apply_move(self, change: FileChange, origin: str) -> None:
        """Make the new file for a client that cannot rename. The old one is deleted next, if the new one has come."""
        try:
            await self._try([FileChange(change.path, None, change.text)])
        finally:
            # Else the old file stays: to delete it would lose the text.
            if self._tries[change.path].arrived:
                deletion = FileChange(origin, change.base, None)
                self._wanted = self._wanted.with_change(deletion)
                self._waiting.appendleft([deletion])
                self._may_lose |= {origin}  # its unsaved text is in the new file
            else:
                self._tries[change.path] = replace(self._tries[change.path], change=change)

    def _ready(self, group: Sequence[FileChange]) -> list[FileChange]:
        """Return the changes rebased on the texts of this moment, without those that would overwrite or delete text
        that must be kept.
        """
        ready: list[FileChange] = []
        for change in group:
            now = self._texts.current(change.moved_from or change.path)
            reason = self._reason_against(change, now)
            if reason:
                self._tries[change.path] = _untried_change(change, reason)
                continue
            if self._is_left_open(change):
                ready.append(change)
                continue
            sent = self._prepared.get(change.path)
            # Much quicker than a new merge, during which the user could type again and make this attempt late, too.
            follows = sent.onto(now) if sent is not None else None
            if follows is not None:
                self._prepared[change.path] = follows
                ready.append(follows.change)
                continue
            # Here the user's typing meets the change: where both touch the same lines, theirs stay.
            rebased = _filling(change, now).rebase({change.moved_from or change.path: now})
            self._conflicts[change.path] = rebased.conflicts
            ready.extend(each for each in rebased.changeset if self._is_safe(each))
        return ready

    def _reason_against(self, change: FileChange, now: Current) -> str:
        """Return why a change cannot be made, as the text in the editor is not known; '' if it is."""
        if lost := self._lost_files([change]):
            return str(EditorError("editor.out_of_step", file=lost[0]))
        if self._is_misread(change, now):
            return str(EditorError("editor.encoding", file=change.moved_from or change.path))
        return ""

    def _lost_files(self, group: Sequence[FileChange]) -> list[str]:
        """Return the files of which the text in the editor is not known; see `Documents.in_step`."""
        paths = (path for change in group for path in (change.moved_from, change.path))
        return [path for path in paths if path is not None and not self._texts.in_step(path)]

    def _is_left_open(self, change: FileChange) -> bool:
        """Return whether a file that is to be made is not there, but open with its text: it was deleted, and the
        editor has not closed it.
        """
        document = self._texts.document(change.path)
        is_absent = Path(change.path).is_absolute() and not os.path.lexists(change.path)
        return change.kind == "create" and is_absent and document is not None and document.text == change.text

    def _is_misread(self, change: FileChange, now: Current) -> bool:
        """Return whether it is not known how the editor reads a file, or it has lost characters of it: to edit it
        would put the edit elsewhere, to save it would lose them on disk, too.
        """
        # A file that every editor reads alike cannot be misread.
        if (change.moved_from or change.path) not in self._unclear or now.text is None:
            return False
        return now.version is None or bool(_LOST.search(now.text)) or change.read_as(now.text) is None

    def _is_safe(self, change: FileChange) -> bool:
        """Return False, and record a conflict, where the change would overwrite or delete text that must be kept."""
        now = self._texts.current(change.path).text
        # lexists: a dangling link is a taken place as well, and a text written there would land where it points.
        taken = change.kind in ("create", "move") and (now is not None or os.path.lexists(change.path))
        may_go = change.kind != "delete" or change.path in self._may_lose
        lost = not may_go and self._texts.has_unsaved_text(change.path)
        if taken or lost:
            self._conflicts[change.path] = (HunkConflict(change.path, 1, change.text or "", now or ""),)
        return not (taken or lost)

    async def _try(self, group: Sequence[FileChange]) -> None:
        """Send changes, wait for their texts, and record what has become of each; also when it is cancelled."""
        before, made = self._now(group), list[str]()
        self._taken_back.clear()
        self._in_the_way = None
        said: Said = "nothing"
        reason = str(EditorError("editor.stopped"))
        arrivals = Arrivals(self._texts, group, self._is_out)
        try:
            made = make_places(self._policy, group)
            delete_for_client(self._policy, group)
            before = self._now(group)  # the client is judged by what it does, not by what was made for it
            with arrivals:
                answer = await self._answer(group, arrivals)
                await self._settle(group, arrivals, answer)
            for change in group:
                await self._correct(change)
                await self._take_back(change, arrivals.heard(change.path))
            said, reason = answer
            if lost := self._lost_files(group):
                reason = str(EditorError("editor.out_of_step", file=lost[0]))
            # Neovim says yes to an edit that it has skipped because its version is old.
            if self._policy.drops_stale and self._has_moved(group) and len(arrivals.missing) == len(group):
                said = "no"
        except OSError as error:
            path = error.filename or group[0].path
            said, reason = "no", str(EditorError("editor.file", path=path, reason=error.strerror or error))
        # Also when cancelled: a copy that has come must leave the old file in the account as a deletion still to do.
        finally:
            # Right before `_now`, with no wait between: a change is judged by the texts of one moment.
            arrivals.look()
            tries = [
                self._judge(Try(change, self._is_there(change, arrivals, old, now, said), old, now, said, reason))
                for change, old, now in zip(group, before, self._now(group), strict=True)
            ]
            self._tries.update({item.change.path: item for item in tries})
        # Not after "nothing": a client that was slow to answer may still fill the file.
        if said == "no" and not any(item.arrived for item in tries):
            drop_places(self._texts, made)

    async def _answer(self, group: Sequence[FileChange], arrivals: Arrivals) -> tuple[Said, str]:
        """Send changes and return the client's answer; of one that has made them and does not answer, its silence."""
        now = asyncio.get_running_loop().time
        # Sent in this task, before anything else runs: between reading the texts and sending there is no wait.
        limit = asyncio.timeout(None)

        async def watch() -> None:
            await arrivals.until(lambda: False, APPLY_SECONDS)
            if not arrivals.missing:
                limit.reschedule(now() + UNANSWERED_SECONDS)

        watching = asyncio.create_task(watch())
        try:
            async with limit:
                return await self._send(group)
        except TimeoutError:
            # The outcome is judged by the text, which is there.
            return "nothing", ""
        finally:
            watching.cancel()

    async def _settle(self, group: Sequence[FileChange], arrivals: Arrivals, answer: tuple[Said, str]) -> None:
        """Wait for the texts after the client's answer, or until it is known that they were others before it."""
        said, reason = answer
        of_open = self._policy.versioned_edits and any(change.version is not None for change in group)
        # Where a yes can mean *skipped*, only a newer version or the change itself in the text ends the waiting.
        if said == "yes" and not (of_open and self._policy.drops_stale):
            await arrivals.until(lambda: False, SETTLE_SECONDS)
            if of_open and not self._has_moved(group):  # nothing is told yet: it is busy, or has done nothing
                await arrivals.until(lambda: self._has_moved(group), BUSY_SECONDS)
        elif said == "yes":
            await arrivals.until(lambda: self._has_moved(group), TYPING_SECONDS)  # one of the two it tells, in a pause
            if not all(self._is_out(each, self._texts.current(each.path).text) for each in arrivals.missing):
                await arrivals.until(lambda: False, SETTLE_SECONDS)  # it tells one edit after the other
        elif said == "no" and of_open:
            patience = TYPING_SECONDS if _SAYS_STALE.search(reason) else STALE_SECONDS
            await arrivals.until(lambda: self._has_moved(group), patience)
        else:
            await arrivals.until(lambda: False, SETTLE_SECONDS)
        if of_open and any(map(self._is_opened_anew, group)):
            await arrivals.until(lambda: False, BUSY_SECONDS)

    async def _correct(self, change: FileChange) -> None:
        """Take the CRs out again that an editor has inserted into lines whose ends it shows without them."""
        document = self._texts.document(change.path)
        plain = without_stray_returns(change, document.text) if document is not None else None
        if document is not None and plain is not None:
            correction = FileChange(change.path, document.text, plain, document.version)
            with Arrivals(self._texts, [correction], self._is_out) as arrivals:
                await self._send([correction])
                await arrivals.until(lambda: False, SETTLE_SECONDS)

    def _is_there(self, change: FileChange, arrivals: Arrivals, old: str | None, now: str | None, said: Said) -> bool:
        # An editor that has made it and then refuses it, or says nothing, has taken it back.
        taken_back = said != "yes" and change.kind == "edit" and old != change.text and same_text(old, now)
        return change not in arrivals.missing and not taken_back

    def _judge(self, item: Try) -> Try:
        """Return an attempt as it is once it has been taken back: the editor has not done it."""
        if item.change.path not in self._taken_back:
            return item
        return replace(item, arrived=False, before=item.now, said="no")

    async def _take_back(self, change: FileChange, heard: Sequence[str]) -> None:
        """Take a change out again that the editor has made in another text than the one it was made for, so that it is
        at another place, or over what the user has typed.

        Editors do so that know no versions, or have one version for two texts.
        """
        back = misplaced(change, self._edits(change), heard, self._client.server.documents.encoding)
        if back is not None and await self._put(back, TAKES_BACK):
            self._taken_back.add(change.path)

    async def _put(self, change: FileChange, times: int) -> bool:
        """Send a change as it fits now, and return whether it is there; one that is misplaced too is taken back. After
        the first time in pauses of the typing only.
        """
        encoding = self._client.server.documents.encoding
        # Bounded: while the user types, each attempt to take something back may be misplaced itself.
        for left in range(times, 0, -1):
            if left < TAKES_BACK:
                await self._texts.pause(PAUSE_SECONDS, PAUSES_SECONDS)
            rebased = Changeset((change,)).rebase({change.path: self._texts.current(change.path)})
            sent = rebased.changeset.get(change.path)
            if sent is None or rebased.conflicts:
                return not rebased.conflicts
            with Arrivals(self._texts, [sent], self._is_out) as arrivals:
                await self._send([sent])
                await arrivals.until(lambda: False, SETTLE_SECONDS)
            back = misplaced(sent, self._edits(sent), arrivals.heard(change.path), encoding)
            if back is None:
                return not arrivals.missing
            if not await self._put(back, left - 1):
                return False
        return False

    def _now(self, group: Sequence[FileChange]) -> list[str | None]:
        return [self._texts.current(change.path).text for change in group]

    async def _send(self, group: Sequence[FileChange]) -> tuple[Said, str]:
        """Send `workspace/applyEdit` and return the client's answer with its reason for a refusal."""
        owners = [(operation, change) for change in group for operation in self._operations(change)]
        operations = [operation for operation, _ in owners]
        # Nothing to ask for, as where we have deleted the file ourselves: what counts is the text that is there then.
        if not self._policy.applies_edits or not operations:
            return "no", CANNOT
        # Without versions the client has no way to refuse an edit for a text that is gone: what it makes of it is
        # judged by
        # `misplaced` afterwards.
        if self._policy.versioned_edits:
            edit = types.WorkspaceEdit(document_changes=operations)
        else:
            plain = [item for item in operations if isinstance(item, types.TextDocumentEdit)]
            edit = types.WorkspaceEdit(changes={item.text_document.uri: _plain_edits(item) for item in plain})
        params = types.ApplyWorkspaceEditParams(edit=edit, label=self._label)
        try:
            result = await self._client.server.request(types.WORKSPACE_APPLY_EDIT, params, APPLY_SECONDS)
        except EditorError as error:
            # Silence is not a refusal: the client may apply the edit later, so the outcome stays unknown.
            if error.key == "editor.timeout":
                return "nothing", str(error)
            return "no", CANNOT if error.values.get("code") == METHOD_NOT_FOUND else str(error)
        if result is not None and result.applied:
            return "yes", ""
        failed = None if result is None else result.failed_change
        if failed is not None and failed in range(len(owners)):
            self._in_the_way = owners[failed][1].path
        return "no", _SOURCE.sub("", (result and result.failure_reason) or "")

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
        edits = self._edits(change)
        if edits:
            # A new file has no version that the client could compare.
            version = change.version if change.kind == "edit" else None
            if version == 0 and self._policy.drops_stale:
                version = 1  # 0 it takes for no version; its later ones are greater than 1
            identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
            operations.append(types.TextDocumentEdit(identifier, edits))
        return operations

    def _edits(self, change: FileChange) -> Sequence[types.TextEdit]:
        document = self._texts.document(change.path)
        if change.kind == "create" and document is not None and change.text and document.text == change.text:
            return [_same_line(document.text, self._client.server.documents.encoding)]
        known = self._prepared.get(change.path)
        if known is None or known.change != change:
            encoding = self._client.server.documents.encoding
            ended_lines = self._policy.ended_lines
            known = Prepared(
                change, minimal_edits(change.base or "", change.text or "", encoding, ended_lines=ended_lines)
            )
            if change.kind == "edit" and change.version is not None:
                self._prepared[change.path] = known
        return known.edits


def _cancel_later(error: asyncio.CancelledError) -> None:
    """Cancel the task again, which takes effect at its next wait; the number of its cancellations stays the same."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel(*error.args)


def _untried_change(change: FileChange, reason: str) -> Try:
    return Try(change, arrived=False, before=None, now=None, said="no", reason=reason, sent=False)


def _filling(change: FileChange, now: Current) -> Changeset:
    """Return a new file that exists already but is empty as an edit: an earlier attempt may have made it."""
    fills = change.kind == "create" and now.text == ""
    return Changeset((replace(change, base="") if fills else change,))


def _same_line(text: str, encoding: Encoding) -> types.TextEdit:
    """Return an edit that changes nothing, after which an editor takes its text for unsaved: the file is empty."""
    line = split_lines(text)[0].rstrip("\r\n")
    end = types.Position(0, units(line, 0, len(line), encoding))
    return types.TextEdit(types.Range(types.Position(0, 0), end), line)


def _plain_edits(edit: types.TextDocumentEdit) -> list[types.TextEdit]:
    return [types.TextEdit(item.range, item.new_text) for item in edit.edits if isinstance(item, types.TextEdit)]


def misplaced(
    change: FileChange, edits: Sequence[types.TextEdit], heard: Sequence[str], encoding: Encoding
) -> FileChange | None:
    """Return the change that takes back `edits`, made for the change's base, if one of the texts in `heard` (which the
    client sent meanwhile) shows that they were made in another text and so at wrong places; None if none does. Computes
    only.
    """
    if change.kind != "edit" or not edits or change.text in heard:
        return None
    # Some editors give all lines of a file one end.
    if "\r" in f"{change.base}{change.text}" and any(same_text(each, change.text) for each in heard[1:]):
        return None
    # Quick tests first: while this works, the user may type, and the next attempt comes too late.
    added, last = sum(map(_added_lines, edits)), edits[-1].range.end.line
    later = {
        each: number for number, each in enumerate(heard) if number and all(edit.new_text in each for edit in edits)
    }
    for number, before in enumerate(heard) if later else ():
        ends = _ends(before)
        # Of lines that a shorter text has not, none can be removed.
        if not any(_ends(each) - ends == added or (ends < last and _ends(each) - ends > added) for each in later):
            continue
        if same_text(before, change.base):
            continue
        after = laid(before, edits, encoding)
        if later.get(after, 0) <= number:
            continue
        right = Changeset((change,)).rebase({change.path: Current(before)})
        meant = right.changeset.get(change.path)
        if right.conflicts or meant is None or not same_text(meant.text, after):
            return FileChange(change.path, after, before)
    return None


def _ends(text: str) -> int:
    """Return the number of line ends."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def laid(text: str, edits: Sequence[types.TextEdit], encoding: Encoding) -> str:
    """Return `text` with edits (in ascending order) at their places, even if they were made for another text. Pure."""
    lines, parts, place = LineIndex.of(text), list[str](), 0
    # Never before the end of the edit above: in another text two ranges may come to overlap.
    for edit in edits:
        ends = ((each.line, each.character) for each in (edit.range.start, edit.range.end))
        start, end = (max(place, offset_at(text, lines, each, encoding)) for each in ends)
        parts += [text[place:start], edit.new_text]
        place = end
    return "".join([*parts, text[place:]])


# A change as it goes to the client, which follows typing in other lines faster than one types. Pure.


@dataclass(frozen=True, slots=True)
class Prepared:
    """A change of an open file with its edits, in ascending order, as ranges in the change's base."""

    change: FileChange
    edits: Sequence[types.TextEdit]

    def onto(self, now: Current) -> Prepared | None:
        """Return the same edits for a text that differs from the change's base only in one span of lines that has no
        edit in or beside it; None for any other text.
        """
        if now.text is None or self.change.base is None or self.change.text is None:
            return None
        before, present, after = map(split_lines, (self.change.base, now.text, self.change.text))
        # One span: typing in two places at once, as with several cursors, is left to the merge.
        head, tail = shared_ends(before, present)
        start, end, new_end = head, len(before) - tail, len(present) - tail
        # Lines right beside an edit are left to the merge, too: ranges alone do not say which of the two texts comes
        # first.
        if any(edit.range.start.line <= end and start <= edit.range.end.line + 1 for edit in self.edits):
            return None
        # Where the typed-in lines are in the new text: the edits above them have moved them.
        moved = start + sum(map(_added_lines, self._before(start)))
        place = slice(moved, moved + end - start)
        # The lines that were typed into are not as they were in the new text, so the change is about them.
        if after[place] != before[start:end]:
            return None
        after[place] = present[start:new_end]
        shift = new_end - end
        edits = [edit if edit.range.start.line < start else _shift(edit, shift) for edit in self.edits]
        change = replace(self.change, base=now.text, text="".join(after), version=now.version)
        return Prepared(change, edits)

    def _before(self, line: int) -> list[types.TextEdit]:
        return [edit for edit in self.edits if edit.range.start.line < line]


def _added_lines(edit: types.TextEdit) -> int:
    """Return how many lines an edit adds; its text is counted with something behind it, so that its last end counts."""
    return len(split_lines(f"{edit.new_text}.")) - 1 - (edit.range.end.line - edit.range.start.line)


def _shift(edit: types.TextEdit, lines: int) -> types.TextEdit:
    start, end = edit.range.start, edit.range.end
    places = types.Range(
        types.Position(start.line + lines, start.character), types.Position(end.line + lines, end.character)
    )
    return types.TextEdit(places, edit.new_text)
