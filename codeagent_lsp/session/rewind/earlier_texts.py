"""The texts that files had before some applied changes, the changes that lead back to them, and where files are now.

Each file gets the text it had before, with what was typed since. Used by undo (`../proposal.py`) and rewinds
(`rewinding.py`), which know what is taken back. Files that the user has renamed or moved since are followed: editors
tell of that in different ways, and other programs (`git mv`) in none, so it is seen by what is there. Not here: how
texts reach the buffers (the editor), moves that the agent has made itself (`workspace/changes/staging.py`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from codeagent_lsp.session.rewind.rewinds import AppliedPart
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, Current, FileChange, HunkConflict
from codeagent_lsp.workspace.changes.reviewed import on_present
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText, FileView, own_file
from codeagent_lsp.workspace.text.position import split_lines

Read = Callable[[str], str | None]

ALIKE = 0.8  # share of lines; the user may have typed in the file since
UNLIKE = 0.5  # below that, another file stands where the old one was
FEW_LINES = 3
CLOCK_SECONDS = 1.0  # so much the clocks of a file system may differ


@dataclass(slots=True)
class EarlierTexts:
    """Files by absolute path as they will be after changes were taken back: `texts` (None: no such file), and
    `origins`, the present paths of moved ones. `conflicts` are places on lines that were changed since: the user's text
    stays there, unless the earlier one goes `over` it.
    """

    read: Read
    over: bool = False
    texts: dict[str, str | None] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    runs: dict[str, bool] = field(default_factory=dict)
    """Which files could be executed, or could not, by their paths."""
    conflicts: list[HunkConflict] = field(default_factory=list)

    def text(self, path: str) -> str | None:
        """Return the text that the file at this path will have, None if there will be none; read at the first call,
        then kept.
        """
        # Read once and kept, None included: later changes are taken back on what earlier ones have left.
        if path not in self.texts:
            self.texts[path] = self.read(path)
        return self.texts[path]

    def take_back(self, applied: Changeset) -> None:
        """Take back changes that were applied; call it for the newest changeset first. Places that were changed since
        become `conflicts`; no file is written.
        """
        for change in applied.inverse():
            taken = self.text(change.path) if change.moved_from is not None else None
            if self.over and taken is not None and self.text(change.moved_from or "") is None:
                change = replace(change, moved_from=None)  # moved back already, but for lines that stayed
                taken = None
            if change.moved_from is not None and self.text(change.moved_from) is None:
                continue  # it was never moved, as where the process died before
            if taken is not None:  # by a file of the user's own, where the moved one was
                self.conflicts.append(HunkConflict(change.path, 1, change.text or "", taken))
                continue
            source = change.moved_from or change.path
            now = self.text(source)
            # `beside`: lines typed right next to a hunk are no conflict; `formatted`: nor is what a formatter did to
            # it on save.
            rebased = Changeset((change,)).rebase({source: Current(now)}, formatted=True)
            if self.over and rebased.conflicts and now is not None and change.base is not None:
                self._make(_over(change, now))
                continue
            self.conflicts.extend(rebased.conflicts)
            for made in rebased.changeset:
                self._make(made)

    def moves(self) -> dict[str, str]:
        """Return the files that will be at another path: absolute paths, the present one by the new one."""
        return {
            path: origin
            for path, origin in self.origins.items()
            if self.texts.get(path) is not None
            and self.texts.get(origin) is None
            and self.read(origin) is not None
            and self.read(path) is None
        }

    def changed(self) -> dict[str, str | None]:
        """Return the new texts, by absolute path (None: deleted), of all files that will be different; of moved ones
        only those that change as well.
        """
        moved = self.moves()
        # Their texts are None because the move takes them away; a deletion besides would be done twice.
        left = set(moved.values())
        return {
            path: text
            for path, text in self.texts.items()
            if path not in left and text != self.read(moved.get(path, path))
        }

    def _make(self, change: FileChange) -> None:
        if change.moved_from is not None:
            self.texts[change.moved_from] = None
            # A file that was moved twice comes from where it is now, not from the place between.
            origin = self.origins.pop(change.moved_from, change.moved_from)
            if origin != change.path:
                self.origins[change.path] = origin
        self.texts[change.path] = change.text
        if change.runs is not None and change.text is not None:
            self.runs[change.path] = change.runs


def _over(change: FileChange, now: str) -> FileChange:
    """Return a change, of a file that was there before it, on the user's present text, where its lines win. Of a file
    that it deletes the lines stay that are the user's alone.
    """
    text = on_present(replace(change, moved_from=None, text=change.text or ""), now)[0].text
    return replace(change, base=now, text=text if change.text is not None else text or None)


def earlier_texts(applied: Iterable[Changeset], read: Read, *, over: bool = False) -> EarlierTexts:
    """Return the texts before these changes, which were applied in this order; `read` returns the present ones by
    absolute path. With `over`, what was changed on the same lines since is taken back, too. No file is written; blocks
    for reading.
    """
    result = EarlierTexts(read, over)
    for changeset in reversed(tuple(applied)):
        result.take_back(changeset)
    return result


class FirstRead:
    """The user's files, each as it was when first asked for during a rewind. What is typed later is merged, as the
    user's edits always are, and never taken for a part of the changes that are taken back.
    """

    def __init__(self, view: FileView, deleted: Mapping[str, str | None] | None = None) -> None:
        self.view = view
        self._deleted = deleted or {}
        self._files: dict[str, FileText | None] = {}

    def file(self, path: str) -> FileText | None:
        """Return the file at this absolute path; None if there is none that can be read. Blocks at the first call."""
        if path not in self._files:
            self._files[path] = file = own_file(self.view, path)
            # An editor may go on showing a file that is deleted: its buffer goes with the window, unsaved.
            if file is not None and self._deleted.get(path) == file.text:
                self._files[path] = None
        return self._files[path]

    def text(self, path: str) -> str | None:
        """Return the text that the file at this absolute path had when it was first asked for; None if none could be
        read, or if it was deleted. Blocks the first time.
        """
        file = self.file(path)
        return None if file is None else file.text


@dataclass(frozen=True, slots=True)
class TakingBack:
    """The changes that take back what was applied; `conflicts` are places that the user rewrote since, which stay.
    `stayed` are the changes there, as far as they can be taken back over the user's lines: made on the texts that these
    changes lead to, and nothing else.
    """

    changeset: Changeset
    conflicts: tuple[HunkConflict, ...]
    stayed: Changeset = Changeset()

    @property
    def deleted(self) -> frozenset[str]:
        """The paths of the files that will be deleted: the agent had made them, and nothing was typed into them
        since.
        """
        return frozenset(change.path for change in self.changeset if change.kind == "delete")

    def result(self, applied: Applied) -> Applied:
        """Return the editor's result of applying these changes, with `conflicts` added: if there are any, the outcome
        is never `full`.
        """
        if not self.conflicts:
            return applied
        outcome = applied.outcome
        if outcome == "full":
            outcome = "partial" if applied.done else "none"
        return replace(applied, outcome=outcome, conflicts=(*self.conflicts, *applied.conflicts))

    def places(self) -> tuple[HunkConflict, ...]:
        """Return the hunks of these changes, and `conflicts`, as places of the user's present text, their lines counted
        from 1.
        """
        found = []
        for change in self.changeset:
            base, text = split_lines(change.base or ""), split_lines(change.text or "")
            for hunk in change.hunks():
                ours = "".join(text[hunk.new_start : hunk.new_end])
                theirs = "".join(base[hunk.old_start : hunk.old_end])
                found.append(HunkConflict(change.path, hunk.old_start + 1, ours, theirs))
        return (*found, *self.conflicts)


def names_of(files: Iterable[str], applied: Iterable[Changeset]) -> frozenset[str]:
    """Return these files (absolute paths) with all other paths that they had before or got later by the moves in these
    changes, also by several in a row. Pure.
    """
    names, moves = set(files), [(each.path, each.moved_from) for made in applied for each in made if each.moved_from]
    for _ in moves:
        names.update(path for pair in moves if not names.isdisjoint(pair) for path in pair)
    return frozenset(names)


def taking_back(
    applied: Iterable[Changeset],
    view: FileView,
    *,
    over: bool = False,
    still_shown: Callable[[str], bool] = lambda path: False,
) -> TakingBack:
    """Return the changes that take back these, which were applied in this order; with `over` also on lines that the
    user has changed since. `still_shown` is `Editor.still_shows`. Blocks.
    """
    applied = tuple(applied)
    read = FirstRead(view, deleted_by(applied, still_shown))
    earlier = earlier_texts(applied, read.text, over=over)
    back = rebased_on_present(earlier, read)
    if over or not earlier.conflicts:
        return back
    whole = earlier_texts(applied, read.text, over=True)
    both = ((path, whole.text(path), earlier.text(path)) for path in dict.fromkeys((*earlier.texts, *whole.texts)))
    # As if the user's lines had been put there by changes from the earlier texts.
    return replace(back, stayed=Changeset(tuple(FileChange(*each) for each in both if each[1] != each[2])))


def deleted_by(applied: Iterable[Changeset], still_shown: Callable[[str], bool]) -> dict[str, str | None]:
    """Return the texts of the files, by absolute path (None if it is not known), that these changes have deleted or
    moved away and that the editor still shows.
    """
    changes = [each for made in applied for each in made]
    gone = {each.path: each.base for each in changes if each.kind == "delete"}
    gone |= {each.moved_from: each.base for each in changes if each.moved_from is not None}
    return {path: text for path, text in gone.items() if still_shown(path)}


def rebased_on_present(earlier: EarlierTexts, read: FirstRead) -> TakingBack:
    """Return the changes that bring the files from their present texts, which `read` has, to these earlier ones, with
    the conflicts found before. No file is written.
    """
    changed, moves = earlier.changed(), earlier.moves()
    files = {
        file.path: file for path in (*changed, *moves.values(), *earlier.runs) if (file := read.file(path)) is not None
    }
    staging = Staging(read.file)
    there = {path for path, text in earlier.texts.items() if text is not None}
    runs = {path: bit for path, bit in earlier.runs.items() if path in there}
    staging.stage(changed, {path: files[origin] for path, origin in moves.items()}, files.values(), runs)
    return TakingBack(staging.changeset, tuple(earlier.conflicts))


def renamed_since(texts: Mapping[str, str], view: FileView, since: float, made: Collection[str] = ()) -> dict[str, str]:
    """Return the new paths of files that have left their old ones, by these; all are absolute. `texts` are those that
    they had at `since`, seconds since the epoch. A file has left if nothing is there, or if one unlike it came to its
    place. Only one that has come since, not `made` by the agent, and is unlike all others counts. Blocks.
    """
    asked = {path: text for path, text in texts.items() if text.strip()}
    present = {path: own_file(view, path) for path in asked}
    # A file that cannot be read, such as one that grew too large, is still there.
    gone = {path for path, file in present.items() if file is None and not os.path.lexists(path)}
    replaced = {
        path
        for path, file in present.items()
        if file is not None and _is_new(path, since) and _likeness(asked[path], file.text, path, path)[0] < UNLIKE
    }
    found: dict[str, str] = {}
    known = {*texts, *made} - replaced  # two files may have been swapped
    there = dict(_come_since(view, since, known, _lost_folders(gone))) if gone or replaced else {}
    for path in (*(path for path in texts if path in gone), *(path for path in texts if path in replaced)):
        text = asked[path]
        likeness = {other: _likeness(text, now, path, other) for other, now in there.items() if other != path}
        best = sorted(likeness, key=lambda other: likeness[other], reverse=True)[:2]
        # Two that are equally alike decide nothing: a change that follows the wrong file is worse than one that is
        # refused.
        if not best or likeness[best[0]][0] < ALIKE or (len(best) == 2 and likeness[best[0]] == likeness[best[1]]):
            continue
        # A few lines that were typed anew, and a copy of them beside: only a move keeps the time of the text.
        if path in replaced and len(split_lines(text)) < FEW_LINES and not _is_as_before(best[0], since):
            continue
        found[path] = best[0]
        del there[best[0]]
    return found


def along_with(renamed: Mapping[str, str], changeset: Changeset) -> dict[str, str]:
    """Return the new paths, by the old ones, of new files whose folder is gone because the user has renamed it, as
    other files of it that were `renamed` show. Blocks.
    """
    folders = {old: new for pair in renamed.items() for old, new in [_folders(*map(Path, pair))] if not old.exists()}
    new = {}
    for change in changeset:
        path = Path(change.path)
        folder = next((each for each in path.parents if each in folders), None)
        if change.kind in ("create", "move") and folder is not None:
            new[change.path] = str(folders[folder] / path.relative_to(folder))
    return {old: path for old, path in new.items() if not os.path.lexists(path)}


def _folders(old: Path, new: Path) -> tuple[Path, Path]:
    """Return the topmost folders of two paths of a file below which both are alike."""
    while old.name == new.name and old.parent != new.parent:
        old, new = old.parent, new.parent
    return old, new


def edited_texts(changeset: Changeset) -> dict[str, str]:
    """Return the texts, by absolute path, that the files of edits had before these; other changes are left out."""
    return {each.path: each.base for each in changeset if each.kind == "edit" and each.base is not None}


def made_texts(changeset: Changeset) -> dict[str, str]:
    """Return the texts, by path, of new files that are long enough, at least 3 lines, to be known again under another
    name.
    """
    new = {each.path: each.text for each in changeset if each.kind == "create" and each.text is not None}
    return {path: text for path, text in new.items() if len(split_lines(text)) >= FEW_LINES}


def follow_moves(parts: Iterable[AppliedPart], view: FileView) -> tuple[list[Changeset], dict[str, str]]:
    """Return what was applied as changes of the files at their present paths, and the new paths of files that the user
    has renamed, by the old ones; those that the agent moved or deleted are not among them. Blocks.
    """
    parts, changes, moved = tuple(parts), list[Changeset](), dict[str, str]()
    own = [change for part in parts for change in part.changeset if change.kind != "edit"]
    removed = {change.moved_from if change.kind == "move" else change.path for change in own if change.kind != "create"}
    made = {change.path for change in own if change.kind != "delete"}
    for part in parts:
        texts = {**edited_texts(part.changeset.inverse()), **made_texts(part.changeset)}
        texts = {path: text for path, text in texts.items() if path not in removed}
        new = renamed_since(texts, view, part.ts, made)
        # Earlier parts too: all are about the file that has this name now.
        changes = [each.renamed(new) for each in (*changes, part.changeset.renamed(moved))]
        moved.update(new)
    return changes, moved


def _lost_folders(gone: Collection[str]) -> frozenset[str]:
    """Return the names of the files that are gone with their folders."""
    return frozenset(Path(path).name for path in gone if not Path(path).parent.exists())


def _come_since(
    view: FileView, since: float, known: Collection[str], lost: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files that came since; of those with a `lost` name also by a renamed folder."""
    paths = ((root, path) for root in view.roots.folders for path in view.walk(root))
    for root, path in dict.fromkeys((*((None, path) for path in view.open_paths()), *paths)):
        if path in known:
            continue
        came = _is_new(path, since) or (root and Path(path).name in lost and _in_renamed_folder(path, root, since))
        if came and (file := own_file(view, path)) is not None:
            yield path, file.text


def _is_new(path: str, since: float) -> bool:
    """Return whether a file got its name after `since`, as far as the file system tells."""
    try:
        # Not the time of its content, which a move keeps: ctime changes with the name.
        return Path(path).stat().st_ctime >= since - CLOCK_SECONDS
    except OSError:  # only in the editor
        return True


def _is_as_before(path: str, since: float) -> bool:
    """Return whether the content of a file on the disk is older than `since`."""
    try:
        return Path(path).stat().st_mtime < since - CLOCK_SECONDS
    except OSError:
        return False


def _in_renamed_folder(path: str, root: str, since: float) -> bool:
    """Return whether a folder above a file got its name after `since`: the files in it keep all their times. One that
    only got more files has new content too, at the same moment.
    """
    above = (parent for parent in Path(path).parents if str(parent).startswith(f"{root}{os.sep}"))
    return any(_is_new(str(parent), since) and _is_only_named(parent) for parent in above)


def _is_only_named(folder: Path) -> bool:
    """Return whether a folder got its name, or what else is about itself alone, after its last file."""
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_ctime_ns > status.st_mtime_ns


def _likeness(text: str, present: str, path: str, other: str) -> tuple[float, bool]:
    """Return the share of lines that are the same, and whether the name is."""
    lines, others = split_lines(text), split_lines(present)
    shared = (Counter(lines) & Counter(others)).total()
    return 2 * shared / ((len(lines) + len(others)) or 1), Path(path).name == Path(other).name
