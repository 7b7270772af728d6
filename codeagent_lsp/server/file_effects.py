"""Does what no edit of a client can, once the user has accepted it: makes folders, makes and deletes files for clients
without the file operations of a WorkspaceEdit, and sets which files can be executed.

Not here: texts, which only the editor changes (`editor.py`).
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.current_texts import CurrentTexts
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange


class Modes:
    """Which files of a changeset can be executed, before it is applied and afterwards. No edit of LSP can set that, so
    it is done here for accepted changes, once the editor has made the files. Files that are not on the disk yet, as in
    editors that write a new file only when it is saved, wait (`Proposal.files_written`).
    """

    def __init__(self, changeset: Changeset) -> None:
        self._changes = {change.path: change for change in changeset}
        gone = [change.path for change in changeset if change.kind == "delete"]
        self._ran = {path: True for path in gone if _can_run(path)}
        self._waits: list[str] = []

    def carried_out(self, applied: Applied, is_open: Callable[[str], bool]) -> Applied:
        """Set which of the applied files can be executed, and return the result with that: files that failed are
        `left`, those that are not on the disk yet are `mode_waits`.
        """
        done = Changeset(tuple(self._with_mode(change) for change in applied.done))
        left, reason = applied.left, applied.reason
        for change in self._changes.values():
            if not change.only_mode:
                continue
            try:
                set_mode(change.path, runs=bool(change.runs))
                done = Changeset((*done, change))
            except OSError as error:
                if isinstance(error, FileNotFoundError) and is_open(change.path):  # not saved yet
                    done = Changeset((*done, change))
                    self._waits.append(change.path)
                    continue
                left = left.with_change(change)
                reason = reason or str(EditorError("editor.file", path=change.path, reason=error.strerror or error))
        outcome = applied.outcome
        if outcome != "unknown":
            outcome = "full" if not left else "partial" if done else "none"
        reason = "" if outcome == "full" else reason
        return replace(applied, outcome=outcome, done=done, left=left, reason=reason, mode_waits=tuple(self._waits))

    def _with_mode(self, change: FileChange) -> FileChange:
        wanted = self._changes.get(change.path)
        if change.kind == "delete":
            return replace(change, ran=self._ran.get(change.path))
        if wanted is None or wanted.runs is None:
            return change
        try:
            set_mode(wanted.path, runs=wanted.runs)
        except OSError:  # its text has come, which is what counts
            self._waits.append(wanted.path)
        return replace(change, runs=wanted.runs, ran=wanted.ran)


def set_mode(path: str, *, runs: bool) -> None:
    """Make a file (absolute path) executable (`runs`), or no longer. All who may read it may then execute it. OSError
    if that cannot be done.
    """
    mode = stat.S_IMODE(Path(path).stat().st_mode)
    # Who may read a file may run it, as git does.
    wanted = mode | (mode & 0o444) >> 2 if runs else mode & ~0o111
    if wanted != mode:
        Path(path).chmod(wanted)


def _can_run(path: str) -> bool:
    try:
        return bool(Path(path).stat().st_mode & 0o100)
    except (OSError, ValueError):
        return False


def make_places(policy: ClientPolicy, group: Sequence[FileChange]) -> list[str]:
    """Create the folders of new files, as clients differ in whether they do, and, for a client that cannot create
    files, the empty files for the edits to fill. Return the absolute paths made, the innermost first; [] for a client
    that applies no edits. After an OSError nothing of it is left. Blocks.
    """
    made: list[Path] = []
    new = [change for change in group if change.kind in ("create", "move") and Path(change.path).is_absolute()]
    try:
        for change in new if policy.applies_edits else ():
            path = Path(change.path)
            # Outermost first; only what is made here is noted, so that cleaning up never touches a folder of the
            # user's.
            for folder in (each for each in reversed(path.parents) if not each.is_dir()):
                folder.mkdir()
                made.insert(0, folder)
            if change.kind == "create" and not policy.creates:
                path.touch(exist_ok=False)
                made.insert(0, path)
    except OSError:
        # `made` has the innermost first, so that a folder is empty when its turn comes.
        for path in made:
            _remove(path)
        raise
    return [str(path) for path in made]


def delete_for_client(policy: ClientPolicy, group: Sequence[FileChange]) -> None:
    """Delete the accepted files that the client cannot delete; a missing one is no error, and nothing happens for a
    client that can. OSError if one cannot be deleted.
    """
    if policy.applies_edits and not policy.deletes:
        for change in group:
            if change.kind == "delete" and Path(change.path).is_absolute():
                Path(change.path).unlink(missing_ok=True)


def drop_places(texts: CurrentTexts, paths: Sequence[str]) -> None:
    """Remove the empty files and folders (absolute paths) made for a client that then refused, unless they have content
    now; never raises.
    """
    for path in paths:
        if Path(path).is_dir() or (texts.document(path) is None and texts.disk(path) == ""):
            _remove(Path(path))


def _remove(path: Path) -> None:
    """Remove an empty file or folder; one that cannot be removed stays."""
    with suppress(OSError):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
