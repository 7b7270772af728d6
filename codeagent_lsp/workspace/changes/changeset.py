"""Staged file changes as immutable values, which the agent intends to make, and the port by which accepted ones are
applied to the user's buffers: the only place where the agent waits for the editor.

A changeset holds one `FileChange` per path. It can be diffed, split by file or hunk, inverted, and rebased onto texts
that have changed since. Not here: reading files (`files/file_view.py`), the editor behind the port
(`server/editor.py`).

Paths are absolute; a buffer without a path is named by its URI. A text of None means that the file does not exist: no
base text is a creation, no new text a deletion.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.text.encoding import as_read_in
from codeagent_lsp.workspace.text.position import split_lines

ChangeKind = Literal["edit", "create", "delete", "move"]

HunkNumbers = Mapping[str, frozenset[int]]
"""0-based numbers of hunks by absolute path."""
LENGTH = 8
ApplyOutcome = Literal["full", "partial", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file: an edit, a creation, a deletion or a move; paths are absolute. `base` is the text the
    change was made on, `text` the one after it (None: no such file), and `version` that buffer's version (None: not
    open; 0 is a version). `moved_from` is the path the file had before, None if it was not moved.

    `runs` says whether the file is executable afterwards (None: as before), and `ran` whether it was before, if that is
    known and differs.
    """

    path: str
    base: str | None
    text: str | None
    version: int | None = None
    moved_from: str | None = None
    runs: bool | None = None
    ran: bool | None = None

    @property
    def kind(self) -> ChangeKind:
        """`move`, `create`, `delete` or `edit`, derived in this order from `moved_from`, `base` and `text`: a moved
        file with other text is a move.
        """
        if self.moved_from is not None:
            return "move"
        if self.base is None:
            return "create"
        return "delete" if self.text is None else "edit"

    @property
    def empty(self) -> bool:
        """Whether this changes nothing: neither text, path nor whether it can be executed."""
        return self.base == self.text and self.moved_from is None and self.runs is None

    @property
    def only_mode(self) -> bool:
        """Whether this changes neither text nor path, only whether the file can be executed."""
        return self.runs is not None and self.base == self.text and self.moved_from is None

    def hunks(self) -> tuple[merge.Run, ...]:
        """Return the hunks of its diff, the runs of changed lines (0-based, half-open), in order; () if the text stays.
        Changes with an unchanged line between them are two hunks, each of which can be accepted alone; a creation or
        deletion can only be accepted as a whole.
        """
        return merge.runs(self.base or "", self.text or "")

    def hunk_ids(self) -> tuple[str, ...]:
        """Return the ids of its hunks, in order, by which each can be accepted alone; () for anything but an edit, as a
        creation, a deletion or a move has no parts.
        """
        return hunk_ids(self.base or "", self.text or "") if self.kind == "edit" else ()

    def counts(self) -> tuple[int, int]:
        """Return how many lines are added and how many are removed, in this order; of a creation or deletion all lines
        count.
        """
        runs = merge.runs(self.base or "", self.text or "")
        added = sum(run.new_end - run.new_start for run in runs)
        return added, sum(run.old_end - run.old_start for run in runs)

    def diff(self, name: Callable[[str], str]) -> str:
        """Return a unified diff in which each hunk has its id in its header, and moves and modes are written as git
        does; '' for an edit that changes nothing. `name` gets an absolute path and returns the one to display.
        """
        old = "/dev/null" if self.base is None else f"a/{name(self.moved_from or self.path)}"
        new = "/dev/null" if self.text is None else f"b/{name(self.path)}"
        labels = [f"{name(self.path)}#{each}" for each in self.hunk_ids()]
        body = merge.unified_diff(self.base or "", self.text or "", old, new, labels, apart=True)
        if self.moved_from is not None:
            return f"diff --git {old} {new}\nrename from {old[2:]}\nrename to {new[2:]}\n{body}"
        if self.runs is not None and self.text is not None:
            # Below the names, not above as git has it: clients find a file by these.
            head = f"--- {old}\n+++ {new}\n"
            return f"{head}{self._modes()}{body.removeprefix(head)}"
        return body if body or self.kind == "edit" else f"--- {old}\n+++ {new}\n"

    def _modes(self) -> str:
        modes = {True: "100755", False: "100644"}
        if self.base is None:
            return f"new file mode {modes[bool(self.runs)]}\n"
        return f"old mode {modes[not self.runs]}\nnew mode {modes[bool(self.runs)]}\n"

    def read_as(self, now: str | None) -> FileChange | None:
        """Return the change in the encoding in which the user's editor has read `now`, the present text (None: no such
        file, for which the change stays as it is); None if that encoding is not known.
        """
        if self.base is None or now is None or now == self.base:
            return self
        known = as_read_in(now, self.base, self.text or "")
        return known and replace(self, base=known[0], text=None if self.text is None else known[1])

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON data, from which `from_dict` makes it again: the fields by name, `runs` and
        `ran` only if they are not None.
        """
        return {
            "path": self.path,
            "base": self.base,
            "text": self.text,
            "version": self.version,
            "moved_from": self.moved_from,
            **{name: value for name, value in (("runs", self.runs), ("ran", self.ran)) if value is not None},
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> FileChange:
        """Return the change from the result of `to_dict`; other members are ignored. KeyError if `path`, `base` or
        `text` is missing.
        """
        modes = data.get("runs"), data.get("ran")
        return FileChange(data["path"], data["base"], data["text"], data.get("version"), data.get("moved_from"), *modes)


@dataclass(frozen=True, slots=True)
class Current:
    """The present state of a file: its text (None: absent) and the version of its buffer (None: not open)."""

    text: str | None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class HunkConflict:
    """A part of a change of the file at the absolute `path` that does not fit the user's present text; `line` is
    1-based in the user's text. `ours` is what the change wants there, `theirs` what the user has.
    """

    path: str
    line: int
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Rebased:
    """A changeset rebased on the current texts, without the parts that did not fit them, and these parts as
    `conflicts`, () if all fitted.
    """

    changeset: Changeset
    conflicts: tuple[HunkConflict, ...]


@dataclass(frozen=True, slots=True)
class Changeset:
    """All staged changes of a run, one per path, in the order they were first made; immutable. Paths are absolute."""

    files: tuple[FileChange, ...] = ()

    def __iter__(self) -> Iterator[FileChange]:
        """Iterate over the changes in order."""
        return iter(self.files)

    def __bool__(self) -> bool:
        """Return whether there is any change."""
        return bool(self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """The absolute paths of the changed files; of moved ones the new path."""
        return tuple(change.path for change in self.files)

    def get(self, path: str) -> FileChange | None:
        """Return the change of the file that has this absolute path afterwards; None if there is none."""
        return next((change for change in self.files if change.path == path), None)

    def with_change(self, change: FileChange) -> Changeset:
        """Return a changeset with `change` in the place of the one for its path, or at the end if there is none; an
        empty change removes it. This one stays as it is.
        """
        known = self.get(change.path)
        if known is None:
            return self if change.empty else Changeset((*self.files, change))
        kept = (change if item is known else item for item in self.files)
        return Changeset(tuple(item for item in kept if not item.empty))

    def without(self, paths: Iterable[str]) -> Changeset:
        """Return a changeset without the changes of the files that have these absolute paths afterwards."""
        gone = frozenset(paths)
        return Changeset(tuple(change for change in self.files if change.path not in gone))

    def of(self, files: Collection[str]) -> Changeset:
        """Return the changes of these files, by their absolute paths before or after a move; paths without a change are
        ignored.
        """
        return Changeset(tuple(each for each in self.files if each.path in files or each.moved_from in files))

    def without_files(self, files: Collection[str]) -> Changeset:
        """Return all changes but those of these files, by their absolute paths before or after a move; others are
        ignored.
        """
        return Changeset(tuple(each for each in self.files if each.path not in files and each.moved_from not in files))

    def renamed(self, paths: Mapping[str, str]) -> Changeset:
        """Return a changeset of the same changes for files that were moved since: `paths` maps their old paths to the
        new ones, and the versions of buffers are dropped.
        """
        new = (replace(change, path=paths.get(change.path, change.path), version=None) for change in self.files)
        return Changeset(tuple(new)) if paths else self

    def counts(self) -> tuple[int, int]:
        """Return how many lines are added and how many are removed over all files, in this order."""
        pairs = [change.counts() for change in self.files]
        return sum(added for added, _ in pairs), sum(removed for _, removed in pairs)

    def diff(self, name: Callable[[str], str] = str) -> str:
        """Return one unified diff of all changes, '' if there are none. `name` gets an absolute path and returns the
        one to display.
        """
        return "".join(change.diff(name) for change in self.files)

    def split(self, files: Iterable[str] | None, hunks: HunkNumbers | None = None) -> tuple[Changeset, Changeset]:
        """Return two changesets: the chosen part, and the rest rebased on it.

        `files` are accepted whole, `hunks` are 0-based hunk numbers, both by the absolute path that a file has
        afterwards; both None: everything is chosen. Paths and numbers that do not exist are ignored. A chosen hunk of a
        moved file includes the move; one of a creation or deletion means all of it.
        """
        if files is None and hunks is None:
            return self, Changeset()
        whole, parts = frozenset(files or ()), hunks or {}
        taken, rest = Changeset(), Changeset()
        for change in self.files:
            if change.path in whole:
                taken = taken.with_change(change)
            elif change.path in parts:
                first, second = _split_change(change, parts[change.path])
                taken, rest = taken.with_change(first), rest.with_change(second)
            else:
                rest = rest.with_change(change)
        return taken, rest

    def inverse(self) -> Changeset:
        """Return the changes that undo these, last one first, each based on the text that this changeset makes."""
        return Changeset(tuple(_inverse_change(change) for change in reversed(self.files)))

    def rebase(self, current: Mapping[str, Current], *, formatted: bool = False) -> Rebased:
        """Rebase these changes onto the texts in `current`, keyed by the path the user has now, for a moved file the
        old one; a file that is not in it counts as absent. On conflict the user's text wins. Changes of adjacent lines
        do not conflict, nor, with `formatted`, lines that only a formatter has changed.
        """
        kept: list[FileChange] = []
        conflicts: list[HunkConflict] = []
        for change in self.files:
            source = change.moved_from or change.path
            rebased, problems = _rebase_change(change, current.get(source, Current(None)), formatted=formatted)
            conflicts.extend(problems)
            if rebased is not None and not rebased.empty:
                kept.append(rebased)
        return Rebased(Changeset(tuple(kept)), tuple(conflicts))


def _split_change(change: FileChange, chosen: frozenset[int]) -> tuple[FileChange, FileChange]:
    nothing = FileChange(change.path, None, None)
    # A change without any hunk, such as a mere move, counts as one.
    known = chosen & frozenset(range(max(1, len(change.hunks()))))
    if not known:
        return nothing, change
    if change.base is None or change.text is None:  # creations and deletions have no parts
        return change, nothing
    # The rest has the chosen part as its base, as that is what it will be applied on.
    part = merge.select_hunks(change.base, change.text, known)
    return replace(change, text=part), FileChange(change.path, part, change.text)


def _inverse_change(change: FileChange) -> FileChange:
    if change.moved_from is not None:
        return FileChange(change.moved_from, change.text, change.base, None, change.path, change.ran, change.runs)
    return FileChange(change.path, change.text, change.base, runs=change.ran, ran=change.runs)


def _rebase_change(
    change: FileChange, now: Current, *, formatted: bool
) -> tuple[FileChange | None, list[HunkConflict]]:
    change = change.read_as(now.text) or change
    if now.text == change.base:
        return replace(change, version=now.version), []
    # The user has made the same change.
    if now.text == change.text and change.moved_from is None:
        same = replace(change, base=now.text, version=now.version)
        return (None if same.empty else same), []
    if change.base is None or change.text is None or now.text is None:
        return None, [HunkConflict(change.path, 1, change.text or "", now.text or "")]
    merged = merge.merge(change.base, change.text, now.text, beside=True)
    # Read loosely, lines may be alike by chance, so only where it would conflict otherwise.
    if merged.conflicts and formatted:
        respelt = merge.merge(change.base, change.text, now.text, beside=True, formatted=True)
        merged = min(merged, respelt, key=lambda each: len(each.conflicts))
    conflicts = [
        HunkConflict(change.path, conflict.line + 1, conflict.ours, conflict.theirs) for conflict in merged.conflicts
    ]
    return replace(change, base=now.text, text=merged.text, version=now.version), conflicts


# Names hunks by their text, so that a name means the same hunk whatever else was decided meanwhile. Pure.


def hunk_ids(base: str, text: str) -> tuple[str, ...]:
    """Return the ids of the hunks between two texts, in order: hexadecimal, with a letter in each. They are made of the
    hunk and the lines before and after it, so that decisions about other hunks do not change them.

    Of equal hunks, each id says which of how many it is, so that none is taken for another once one of them is decided
    about.
    """
    old, new = split_lines(base), split_lines(text)
    shown = [_hunk_key(hunk, old, new) for hunk in merge.runs(base, text)]
    alike, before = Counter(shown), Counter[str]()
    ids = []
    for each in shown:
        before[each] += 1
        ids.append(_fingerprint(each if alike[each] == 1 else f"{each} {before[each]}/{alike[each]}"))
    return tuple(ids)


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of applying a changeset to the user's buffers. `outcome` is `full`, `partial`, `none` or `unknown`.
    `done` are the changes that were applied, on the texts they were applied to; `left` are those that were not; `late`
    those of them that the editor did not refuse, so that it may still make them, and `denied` those that it did refuse:
    some say no while they are busy, and make them later; `conflicts` the hunks that met text changed by the user;
    `reason` is one English sentence unless the outcome is `full`. `unconfirmed` are the paths of changes whose outcome
    is not known: the editor did not answer, or the text is another one. `mode_waits` are the paths of changes that were
    made, but the permission to be executed could not be set yet: an editor may write a new file only when it is saved.
    """

    outcome: ApplyOutcome
    done: Changeset = Changeset()
    left: Changeset = Changeset()
    conflicts: tuple[HunkConflict, ...] = ()
    reason: str = ""
    late: Changeset = Changeset()
    unconfirmed: tuple[str, ...] = ()
    mode_waits: tuple[str, ...] = ()
    denied: Changeset = Changeset()

    @property
    def refused(self) -> tuple[str, ...]:
        """The absolute paths of the files, also the old ones of moved files, that the editor did not change although
        nothing in them conflicts.
        """
        conflicting = {conflict.path for conflict in self.conflicts}
        paths = (path for change in self.left for path in (change.path, change.moved_from) if path is not None)
        return tuple(dict.fromkeys(path for path in paths if path not in conflicting))


class Editor(Protocol):
    """Port: applies changes to the user's buffers, and sets which files can be executed; one per session."""

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        """Apply `changeset` to the buffers as one undoable edit named `label`, as far as it still fits, and wait for
        the editor. A file with unsaved text is only deleted when its path is in `may_lose`. Never raises if the editor
        refuses.
        """

    async def open_unclear(self, paths: Iterable[str]) -> None:
        """Have the user's editor open those of the files (absolute paths) whose encoding only it can tell, and wait for
        them a bounded time.
        """

    def set_mode(self, path: str, *, runs: bool) -> bool:
        """Make a file (absolute path) executable, or no longer; return whether the file now is as `runs` says, False
        also if that fails. A link is left alone.
        """

    def still_shows(self, path: str) -> bool:
        """Return whether the editor shows a file (absolute path) that was deleted, as one does that cannot delete
        files.
        """

    def has_unsaved_text(self, path: str) -> bool:
        """Return whether a file (absolute path) is open with text that has not been saved to disk."""


def _hunk_key(hunk: merge.Run, old: list[str], new: list[str]) -> str:
    """Return what a diff shows of a hunk and the lines next to it, but for their numbers."""
    first, last = hunk.old_start, hunk.old_end
    changed = (old[first:last], new[hunk.new_start : hunk.new_end])
    return json.dumps([old[max(0, first - 1) : first], changed, old[last : last + 1]])


def _fingerprint(shown: str) -> str:
    digest = hashlib.sha256(shown.encode()).hexdigest()
    # An id of digits alone would read as the number of a hunk.
    pieces = (digest[at : at + LENGTH] for at in range(len(digest) - LENGTH))
    return next((piece for piece in pieces if not piece.isdecimal()), "f" * LENGTH)
