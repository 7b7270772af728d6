"""The shadow workspace of a session: commands run in it one at a time, and what they write becomes staged changes.

What a command wrote is staged as one step or not at all: nothing if it was cancelled or stopped at a limit. Not here:
how the disk is kept from it (the layers), how the process runs (`process.py`), what may be staged (`collect.py`).
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import EditRefused, ToolFailed, UserError
from codeagent_lsp.shadow.collect import Collected, collect
from codeagent_lsp.shadow.mounts import TRIES, HeldOutput, never_began
from codeagent_lsp.shadow.process import run_process
from codeagent_lsp.shadow.shell import (
    Approve,
    Command,
    CommandResult,
    Finished,
    Isolation,
    Launch,
    Layer,
    OnOutput,
    ProcessLimits,
    Writings,
    no_output,
)
from codeagent_lsp.shadow.wanted import LeftOut, UnsavedState, unsaved_state
from codeagent_lsp.state import STATE_VARIABLE
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.edits.merge import merge
from codeagent_lsp.workspace.files.file_view import FileText, FileView, StagedFile

OpenLayer = Callable[[tuple[str, ...]], Layer]
"""Opens the private view of the workspace folders; blocks. OSError or ToolFailed if that is impossible."""

Execute = Callable[[Launch, Command, OnOutput], Awaitable[Finished]]
"""Runs a process to its end or to a limit; cancelling kills its whole tree."""

_R = TypeVar("_R")
_FULL = (errno.ENOSPC, errno.EDQUOT)

_WAIT_SECONDS = 900.0  # longer than any one command may take
_CLOSE_SECONDS = 30.0
_SAVED_ONLY = "The command saw the saved file: at the isolation level direct, unsaved and proposed text is not seen."
Lookup = Callable[[str], StagedFile | None]
Base = Callable[[str], FileText | None]

_TAKEN_BACK = "What the command changed in this file was taken back while it ran, so what it wrote was dropped."
_EDITED = "You changed this file differently while the command ran, so what the command wrote was dropped."


@dataclass(frozen=True, slots=True)
class _Owner:
    """The run that owns a command's changes: its view, its staging and its approval."""

    view: FileView
    staging: Staging
    approve: Approve


class _Binding:
    """The owner of the changes of a command. Only a command that outlives its run changes owners; meanwhile it may have
    none.
    """

    def __init__(self, owner: _Owner) -> None:
        self.owner: _Owner | None = owner
        self.view = owner.view
        self._changed = asyncio.Event()

    def give(self, owner: _Owner | None) -> None:
        """Set the owner; a pending question to the previous owner no longer counts."""
        self.owner = owner
        self._changed.set()
        # A new one, as whoever waits next must not be woken by this change.
        self._changed = asyncio.Event()

    async def taken(self) -> _Owner:
        """Wait for an owner and return it."""
        while self.owner is None:
            await self._changed.wait()
        return self.owner

    async def approved(self, owner: _Owner, paths: tuple[str, ...]) -> bool:
        """Return whether the owner approves these paths; False if the owner changes meanwhile."""
        asking, changed = asyncio.ensure_future(owner.approve(paths)), asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((asking, changed), return_when=asyncio.FIRST_COMPLETED)
            return asking.done() and asking.result()
        finally:
            asking.cancel()
            changed.cancel()
            # Until both are over: a question must not go on when nobody waits for its answer.
            await asyncio.wait((asking, changed))


class ShadowWorkspace:
    """The private view of one session, opened by its first command; its commands run one at a time. The owner closes
    it.

    `isolation` is what `open_layer` is going to give. `wait_seconds` is how long a command waits for the previous one.
    """

    def __init__(
        self,
        isolation: Isolation,
        open_layer: OpenLayer,
        execute: Execute,
        *,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        self.isolation = isolation
        self._open_layer = open_layer
        self._execute = execute
        self._wait_seconds = wait_seconds
        self._layer: Layer | None = None
        self._folders: tuple[str, ...] = ()
        self._turn = asyncio.Lock()
        # One thread for the layer: what a cancelled command left it doing is over before the next one begins.
        self._thread = ThreadPoolExecutor(1, "shadow")
        self._closed = self._shut = False  # `_closed`: no command begins any more; `_shut`: the view is being removed

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> BoundShell:
        """Return the shell of one run: its commands see `view`, what they write goes to `staging`, files that can run
        code later only if `approve` allows it.
        """
        return BoundShell(self, _Binding(_Owner(view, staging, approve)))

    async def run(self, binding: _Binding, command: Command, on_output: OnOutput) -> CommandResult:
        """Run one command in the view of `binding`, after the previous ones have ended, and stage what it wrote.
        ToolFailed if these take more than `wait_seconds`, if it cannot be started, or if the view is closed meanwhile.
        """
        async with self._in_turn():
            # Only now: what the previous command staged has to be in it.
            seen = await asyncio.to_thread(unsaved_state, binding.view)
            finished = await self._executed(binding.view.roots.folders, seen, command, on_output)
            try:
                return await self._result(finished, binding, seen, proposes=command.proposes)
            # Also when cancelled: nobody would ever remove the file.
            except BaseException:
                _forget(finished)
                raise

    async def close(self) -> None:
        """Let no further command begin, wait at most 30 s for the running one, and remove the view; what a command that
        still runs then writes is lost. If cancelled, the removal continues in its thread. Twice does no harm.
        """
        if self._closed:
            return
        self._closed = True
        try:
            async with asyncio.timeout(_CLOSE_SECONDS), self._turn:
                pass
        except TimeoutError:
            pass  # its run ends with an error when its view is gone
        finally:
            self._shut = True
            done = self._thread.submit(self._close_layer)
            # To wait here would block the event loop; `done` is awaited below.
            self._thread.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(done))

    async def _executed(
        self, folders: tuple[str, ...], seen: UnsavedState, command: Command, on_output: OnOutput
    ) -> Finished:
        """Run the command to its end, in a new view where it was not begun in the first."""
        # Pieces of input that were taken by what did not begin are gone.
        left = TRIES if isinstance(command.stdin, bytes) else 1
        while True:
            launch = await self._in_thread(lambda: self._prepare(folders, seen, command))
            held = HeldOutput(on_output)
            finished = await self._execute(launch, command, held)
            left -= 1
            if not left or not never_began(launch, finished):
                held.release()
                return finished

    async def _result(
        self, finished: Finished, binding: _Binding, seen: UnsavedState, *, proposes: bool
    ) -> CommandResult:
        writings = await self._in_thread(self._writings)
        if not proposes:
            return CommandResult(finished, self.isolation)
        while True:
            # For each owner anew: what may be staged depends on its view, and on the answer of its user.
            owner = await binding.taken()
            collected = await asyncio.to_thread(collect, writings, owner.view, seen)
            # What it wrote until then may be half of what it meant to write.
            if finished.ending != "exited":
                collected = collected.without(collected.paths, _stopped_words(finished))
            elif collected.protected and not await binding.approved(owner, collected.protected):
                collected = collected.without_protected()
            if binding.owner is owner:  # nothing is staged for a run that has let go of it
                break
        collected = merge_own_edits(
            collected, seen, owner.staging.lookup, owner.view.base
        )  # at once: nothing else is staged
        # After the merge, as the merged text is what would be staged.
        collected = _without_unstageable(collected, owner.staging)
        staged = _stage(collected, owner.staging)
        left_out = (*seen.left_out, *_unseen(self.isolation, seen), *collected.left_out)
        return CommandResult(finished, self.isolation, staged, left_out)

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise ToolFailed("Another command of this session is still running. Try again when it has ended.") from None
        try:
            if self._closed:
                raise ToolFailed("The session is closed, so no command can run.")
            yield
        finally:
            self._turn.release()

    async def _in_thread(self, work: Callable[[], _R]) -> _R:
        if self._shut:
            raise ToolFailed("The session was closed while the command ran; what it wrote was dropped.")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except UserError as error:
            raise ToolFailed(str(error)) from error
        except OSError as error:
            place = f" ({error.filename})" if error.filename else ""
            helps = "Free some space on the disk" if error.errno in _FULL else "Let the user make the folder writable"
            raise ToolFailed(
                f"The private copy of the workspace failed: {error.strerror or error}{place}. {helps}, or name another "
                f"one by {STATE_VARIABLE}; if it stays so, run codeagent-lsp doctor or choose another shell.isolation."
            ) from error

    def _prepare(self, folders: tuple[str, ...], seen: UnsavedState, command: Command) -> Launch:
        """Update the view, opening it first if necessary, and return the launch. Blocks; runs in the layer's thread."""
        # The user may have opened or closed a workspace folder since.
        if self._layer is None or self._folders != folders:
            self._close_layer()
            self._layer, self._folders = self._open_layer(folders), folders
        promised, self.isolation = self.isolation, self._layer.isolation
        if replace(promised, reason="") != replace(self.isolation, reason=""):  # what was agreed to was the other one
            why = f" {self.isolation.reason}" if self.isolation.reason else ""
            raise ToolFailed(f"Commands are isolated in another way now ({self.isolation.level}).{why} Run it again.")
        self._layer.prepare(seen.files)
        return self._layer.launch(command)

    def _writings(self) -> Writings:
        assert self._layer is not None  # it was prepared in this turn, and is closed only after the last one
        return self._layer.writings()

    def _close_layer(self) -> None:
        layer, self._layer = self._layer, None
        if layer is not None:
            layer.close()


class BoundShell:
    """The `Shell` of one run: its commands see the private view of the session, one at a time."""

    def __init__(self, workspace: ShadowWorkspace, binding: _Binding) -> None:
        self._workspace = workspace
        self._binding = binding

    @property
    def isolation(self) -> Isolation:
        """The isolation of its commands from the user's files, as that of its workspace."""
        return self._workspace.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run a command to its end, after other commands of the session, and stage what it wrote. Cancelling kills its
        whole process tree. ToolFailed if it cannot be started, or the others take too long.
        """
        return await self._workspace.run(self._binding, command, on_output)

    def hand_over(self, view: FileView, staging: Staging, approve: Approve) -> None:
        """Give the changes of the running command to another run: to its `staging`, those of files that can run code
        later only if its `approve` allows it.
        """
        self._binding.give(_Owner(view, staging, approve))

    def let_go(self) -> None:
        """Leave the running command without an owner, as its run ends before it; its changes wait until `hand_over`."""
        self._binding.give(None)


def executing(settings: Callable[[], ShellSettings], spool_folder: Path) -> Execute:
    """Return a function that runs processes within the limits of the settings at that time, or of the command; long
    outputs that a command wants whole go to `spool_folder`.
    """

    async def execute(launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        now = settings()
        # The settings of now: they may have changed since the session began.
        limits = ProcessLimits(
            seconds=command.seconds or now.timeout_seconds,
            output_bytes=command.output_bytes or now.max_output_bytes,
        )
        folder = spool_folder if command.whole else None
        return await run_process(
            launch,
            limits,
            on_output,
            spool_folder=folder,
            apart=command.apart,
            stdin=command.stdin,
            keywords=command.keywords,
        )

    return execute


def _without_unstageable(collected: Collected, staging: Staging) -> Collected:
    """Return the changes without those whose texts must not be staged, which are reported with the reason."""
    for path, text in collected.texts.items():
        before = collected.read[path].text if path in collected.read else None
        try:
            if text is not None:
                staging.check(path, before, text)
        except EditRefused as refusal:
            collected = collected.without([path], str(refusal))
    return collected


def _stage(collected: Collected, staging: Staging) -> tuple[str, ...]:
    """Stage all changes as one step and return their paths."""
    runs = {path: True for path in collected.runs if not _runs_already(staging, path)}
    paths = tuple(
        path for path in collected.paths if path in runs or path not in collected.runs or path in collected.texts
    )
    if not paths:
        return ()
    read = {path: _base(file, staging) for path, file in collected.read.items()}
    moves = {new: read[old] for old, new in collected.moves}
    staging.stage(collected.texts, moves, read.values(), runs)
    return paths


def _runs_already(staging: Staging, path: str) -> bool:
    """Return whether it is staged that a file can be executed: commands find it so until that is applied."""
    change = staging.changeset.get(path)
    return change is not None and change.runs is True


def _base(file: FileText, staging: Staging) -> FileText:
    """Return a file as `Staging` expects it: a staged text that was applied meanwhile is a buffer now."""
    applied = file.source == "staged" and staging.lookup(file.path) is None
    return replace(file, source="buffer") if applied else file


def _forget(finished: Finished) -> None:
    """Remove the file with the complete output, which no caller will get."""
    if finished.whole is not None:
        Path(finished.whole).unlink(missing_ok=True)


def _unseen(isolation: Isolation, seen: UnsavedState) -> LeftOut:
    return tuple((path, _SAVED_ONLY) for path in seen.files) if isolation.level == "direct" else ()


def _stopped_words(finished: Finished) -> str:
    return f"The command was stopped at a limit ({finished.ending}), so what it wrote was dropped."


# What became of a run's staged changes while a command ran, kept beside what the command wrote. Changes nothing.


def merge_own_edits(collected: Collected, seen: UnsavedState, lookup: Lookup, base: Base) -> Collected:
    """Return the changes with the run's own edits since `seen` merged in. If both changed the same lines, or one
    deleted or moved the file, what the command wrote is left out.

    `lookup` returns the staged state of an absolute path; `base` returns a file without staged changes, for files whose
    staged changes were taken back or applied meanwhile.
    """
    collected = _on_present(collected, seen, lookup, base)
    changed = {path for path in collected.paths if _is_changed(collected, seen, path, lookup(path))}
    merged = {path: _merge(collected, path, lookup(path)) for path in changed.intersection(collected.texts)}
    lost = {path for path in changed if merged.get(path) is None}
    return replace(collected, texts={**collected.texts, **merged}).without(lost, _EDITED)


def _on_present(collected: Collected, seen: UnsavedState, lookup: Lookup, base: Base) -> Collected:
    """Return the changes of files whose staged changes are gone, on the user's text of now."""
    texts, read, lost = dict(collected.texts), dict(collected.read), set[str]()
    for path in collected.paths:
        then = _staged_then(seen, path)
        if then is None or lookup(path) is not None:
            continue
        now, written = base(path), collected.texts.get(path)
        if now is None or then.text is None or written is None:
            if (None if now is None else now.text) != then.text:
                lost.add(path)
        elif now.text != then.text:
            both = merge(then.text, written, now.text)
            texts[path], read[path] = both.text, now
            lost.update([path] if both.conflicts else [])
    return replace(collected, texts=texts, read=read).without(lost, _TAKEN_BACK)


def _is_changed(collected: Collected, seen: UnsavedState, path: str, now: StagedFile | None) -> bool:
    """Return whether the run staged something of its own for the path, which is not what the command wrote as well."""
    if now is None or now == _staged_then(seen, path):
        return False
    return path not in collected.texts or now.text != collected.texts[path]


def _staged_then(seen: UnsavedState, path: str) -> StagedFile | None:
    """Return what was staged for the path when the command began."""
    file = seen.read.get(path)
    if file is not None:
        return StagedFile(file.text) if file.source == "staged" else None
    return StagedFile(None) if path in seen.files else None


def _merge(collected: Collected, path: str, now: StagedFile | None) -> str | None:
    """Return both changes in one text; None if they cannot be had together."""
    before, written = collected.read.get(path), collected.texts[path]
    if now is None or now.text is None or written is None or before is None:
        return None
    both = merge(before.text, written, now.text)
    return None if both.conflicts else both.text
