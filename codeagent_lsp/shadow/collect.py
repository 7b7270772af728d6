"""The files that one command wrote, gathered within limits and made into new texts, deletions and moves.

The rules are those for the agent's edits. Too many changes are refused as a whole; every file that cannot be an edit is
reported. Reads the disk and changes nothing; call it in a thread. Not here: finding out what was written (`upper.py`,
`mirror.py`), asking the user and staging (`workspace.py`).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from unicodedata import normalize

from codeagent_lsp.errors import FileRefused, PathRefused
from codeagent_lsp.shadow.shell import Writings, Written, WrittenKind
from codeagent_lsp.shadow.wanted import LeftOut, UnsavedState
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.text.encoding import Decoded, Encoding, decode


@dataclass(frozen=True, slots=True)
class WrittenLimits:
    """Limits on what is read of one command's changes: bytes of one text (`file_bytes`), number of files, and bytes of
    all together. A larger file is reported as such; files beyond the others are only counted.
    """

    file_bytes: int = 1 << 20
    files: int = 500
    total_bytes: int = 16 << 20


@dataclass
class WrittenFiles:
    """The changed files of one command found so far, by absolute path, within the limits; `more` counts those beyond
    them, `size` is in bytes.
    """

    limits: WrittenLimits
    files: dict[str, Written] = field(default_factory=dict)
    more: int = 0
    size: int = 0

    def add(self, path: str, kind: WrittenKind, data: bytes = b"", *, runs: bool = False) -> None:
        """Add one changed file with its bytes; a path that is there already is ignored, and beyond the limits the file
        is only counted. `runs` says that it was made executable.
        """
        if path in self.files:
            return
        if len(self.files) >= self.limits.files or self.size + len(data) > self.limits.total_bytes:
            self.more += 1
            return
        self.size += len(data)
        self.files[path] = Written(path, kind, data, runs)


_TOLD_PER_REASON = 20
_WHY: dict[WrittenKind, str] = {
    "mode": "Only its permissions changed; they stay in the private copy.",
    "symlink": "A symbolic link; it stays in the private copy.",
    "binary": "A binary file; it stays in the private copy. export_artifact keeps a copy of it for the user.",
    "large": "Too large to be proposed; it stays in the private copy. export_artifact keeps a copy of it for the user.",
    "special": "A device, socket or pipe; it stays in the private copy.",
    "deep": "A folder that lies too deep; nothing in it was looked at, and it stays in the private copy.",
    "git": "Version control data; it stays in the private copy, the user's repository is unchanged.",
}
_MEANWHILE = "The user changed this file while the command ran, so what it wrote was dropped. Run it again."
_ENCODING = "Only its encoding changed, which an edit cannot do; it stays in the private copy."
_NEW_ENCODING = "A new file that is not plain UTF-8, which an edit cannot make; it stays in the private copy."
_ALIKE = (
    "A file is there whose name only looks the same, as Unicode composes it otherwise: change that one by its tools."
)
_REFUSED = "The user did not approve a change to this file, which can run code later."


@dataclass(frozen=True, slots=True)
class CollectLimits:
    """Limits on the changes of one command that are proposed: number of files and bytes of all together. If one is
    exceeded, none of the changes are proposed, as there would be too many to review.
    """

    files: int = 1000
    total_bytes: int = 32 << 20


@dataclass(frozen=True, slots=True)
class Collected:
    """The changes of one command that can be staged, by absolute path. `texts` are new texts (None deletes), `moves`
    pairs of old and new path, `read` the texts that both are based on.

    `protected` are the paths among them that only the user can allow; `runs` are files that can be executed now and
    could not before; `left_out` are all others with the reasons, in English.
    """

    texts: Mapping[str, str | None] = field(default_factory=dict)
    moves: tuple[tuple[str, str], ...] = ()
    read: Mapping[str, FileText] = field(default_factory=dict)
    protected: tuple[str, ...] = ()
    left_out: LeftOut = ()
    runs: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All absolute paths that would be staged, including the old paths of moves."""
        paths = (*self.texts, *(path for move in self.moves for path in move))
        return (*paths, *(path for path in self.runs if path not in paths))

    def without_protected(self) -> Collected:
        """Return the changes without the protected paths, which are reported in `left_out` as not
        approved by the user.
        """
        return self.without(self.protected, _REFUSED)

    def without(self, paths: Iterable[str], reason: str) -> Collected:
        """Return the changes without the absolute `paths`, which are reported in `left_out` with `reason`, an English
        sentence; a move is dropped as a whole.
        """
        gone = set(paths)
        gone.update(path for move in self.moves if not gone.isdisjoint(move) for path in move)
        return replace(
            self,
            texts={path: text for path, text in self.texts.items() if path not in gone},
            moves=tuple(move for move in self.moves if gone.isdisjoint(move)),
            protected=tuple(path for path in self.protected if path not in gone),
            runs=tuple(path for path in self.runs if path not in gone),
            left_out=(*self.left_out, *_shorten((path, reason) for path in sorted(gone))),
        )


def collect(writings: Writings, view: FileView, seen: UnsavedState, limits: CollectLimits | None = None) -> Collected:
    """Turn what a command wrote into changes to `view`. `seen` is the unsaved state that the command saw: a file that
    the user has changed since is left out. Reads files and blocks; changes nothing.
    """
    files = [file for file in writings.files if not _hidden(view, file)]
    scripts = [file.path for file in files if file.kind == "mode" and file.runs and _is_text(view, file.path)]
    proposed = [file for file in files if file.kind in ("text", "deleted")]
    told = [
        (file.path, _WHY[file.kind])
        for file in files
        if file.kind not in ("text", "deleted") and file.path not in scripts
    ]
    # All or nothing: a part of a generated tree would be a change that nobody meant.
    excess = _excess(writings, proposed, limits or CollectLimits())
    if excess:
        where = view.roots.folders[0] if view.roots.folders else ""
        return Collected(left_out=((where, excess), *_shorten(told)))
    sorting = _Sorting(view, seen)
    for file in sorted(proposed, key=lambda file: os.fsencode(file.path)):
        sorting.add(file)
    collected = sorting.done()
    protected = tuple(path for path in scripts if view.roots.is_protected(path))
    collected = replace(collected, runs=(*collected.runs, *scripts), protected=(*collected.protected, *protected))
    return replace(collected, left_out=_shorten([*collected.left_out, *told]))


def _is_text(view: FileView, path: str) -> bool:
    """Return whether `path` has a text, the user's or a staged one, whose mode can be proposed to be changed."""
    try:
        view.read(path)
        return view.roots.resolve(path) == path
    except (FileRefused, PathRefused):
        return False


class _Sorting:
    """Collects the files of one command into a `Collected`."""

    def __init__(self, view: FileView, seen: UnsavedState) -> None:
        self._view = view
        self._seen = seen
        self._texts: dict[str, str | None] = {}
        self._read: dict[str, FileText] = {}
        self._encodings: dict[str, Encoding] = {}
        self._left_out: list[tuple[str, str]] = []
        self._runs: list[str] = []

    def add(self, file: Written) -> None:
        """Add one file to the changes, or report why it is left out."""
        try:
            decoded = self._decode(file)
            before = self._before(file.path)
        except (FileRefused, PathRefused) as error:
            self._left_out.append((file.path, str(error)))
            return
        if self._is_touched(file.path):
            self._left_out.append((file.path, _MEANWHILE))
            return
        text = None if decoded is None else decoded.text
        # A file of equal bytes is no writing, so only the encoding can differ.
        if text == (None if before is None else before.text):
            self._left_out.append((file.path, _ENCODING))
            return
        self._texts[file.path] = text
        if file.runs:
            self._runs.append(file.path)
        if before is not None:
            self._read[file.path] = before
        elif decoded is not None:
            self._encodings[file.path] = decoded.encoding

    def done(self) -> Collected:
        """Return the collected changes, with moves detected. An editor makes new files in UTF-8, so those in another
        encoding are left out; only a move keeps it.
        """
        old = {path: self._read[path].text for path, text in self._texts.items() if text is None}
        new = {path: text for path, text in self._texts.items() if text is not None and path not in self._read}
        # Only now: a move is seen from both of its ends, which may be far apart in the order of files.
        moves = tuple(pairs(old, new))
        moved = {path for move in moves for path in move}
        texts = {path: text for path, text in self._texts.items() if path not in moved}
        protected = tuple(path for path in (*texts, *sorted(moved)) if self._view.roots.is_protected(path))
        kept = {target: self._read[source].encoding for source, target in moves}
        other = [path for path, encoding in self._encodings.items() if encoding not in ("utf-8", kept.get(path))]
        # What is moved by the editor keeps its mode.
        runs = tuple(path for path in self._runs if path not in moved)
        found = Collected(texts, moves, self._read, protected, tuple(self._left_out), runs)
        return found.without(other, _NEW_ENCODING)

    def _decode(self, file: Written) -> Decoded | None:
        """Return the new text with its encoding; None for a deletion. PathRefused or FileRefused by the rules for
        edits.
        """
        # A folder above it may be a link by now, on the disk or through the command.
        there = self._view.roots.resolve(file.path)
        if there != file.path and normalize("NFC", there) == normalize("NFC", file.path):
            raise PathRefused(_ALIKE)
        if there != file.path:
            raise PathRefused("It is behind a symbolic link, so it stays in the private copy.")
        if file.kind == "deleted":
            return None
        if len(file.data) > self._view.max_bytes:
            raise FileRefused(_WHY["large"])
        return decode(file.data)

    def _before(self, path: str) -> FileText | None:
        """Return the file that the command found at `path`; None if there was none."""
        if path in self._seen.read:
            return self._seen.read[path]
        if path in self._seen.files:  # staged as deleted
            return None
        return self._view.saved(path)

    def _is_touched(self, path: str) -> bool:
        """Return whether the user changed the file since, so that the base of the command's text is unknown.

        The text of an open or staged file is known; for all others the change time (ctime) decides.
        """
        if path in self._seen.read or path in self._seen.files:
            return False
        info = self._view.roots.stat(path)
        if info is None:
            return self._view.base(path) is not None
        # Equal too: time stamps are as coarse as the kernel's clock tick.
        return info.st_ctime_ns >= self._seen.moment


def pairs(old: Mapping[str, str], new: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield the moves among deleted and new files, both texts by absolute path, as pairs of old and new path: files
    with the same text and no second candidate.

    Among files with equal texts, those that share the longest suffix of their paths are paired, as in a renamed folder.
    Empty files need at least the same name.
    """
    groups: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for path, text in old.items():
        groups[text][0].append(path)
    for path, text in new.items():
        groups[text][1].append(path)
    for text, (gone, come) in groups.items():
        yield from _pair(gone, come, shortest=1 if not text else 0)


def _pair(gone: list[str], come: list[str], *, shortest: int) -> Iterable[tuple[str, str]]:
    length = max((len(PurePath(path).parts) for path in gone), default=0) if come else 0
    # From whole paths down to names: what shares most of its path finds its partner before what shares less.
    for count in range(length, shortest - 1, -1):
        left, right = _by_end(gone, count), _by_end(come, count)
        for end in left.keys() & right.keys():
            if len(left[end]) == len(right[end]) == 1:
                source, target = left[end][0], right[end][0]
                gone.remove(source)
                come.remove(target)
                yield source, target


def _by_end(paths: Iterable[str], count: int) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path in paths:
        parts = PurePath(path).parts
        found[parts[len(parts) - count :] if count <= len(parts) else parts].append(path)
    return found


def _hidden(view: FileView, file: Written) -> bool:
    """Return whether a file is outside of the workspace, or ignored."""
    if view.roots.root_of(file.path) is None:
        return True
    # Repositories are ignored as a rule, but that a command wrote to one is to be said.
    return file.kind != "git" and view.is_ignored(file.path)


def _excess(writings: Writings, proposed: list[Written], limits: CollectLimits) -> str:
    count = len(proposed) + writings.more
    if count > limits.files or writings.more:
        return f"{count:,} files were written, more than can be reviewed, so none of them is proposed. {_NARROW}"
    total = sum(len(file.data) for file in proposed)
    if total > limits.total_bytes:
        return f"{total:,} bytes were written, more than can be reviewed, so none of them is proposed. {_NARROW}"
    return ""


_NARROW = "Let the command write less, or have its output ignored."


def _shorten(told: Iterable[tuple[str, str]]) -> LeftOut:
    """Return at most _TOLD_PER_REASON paths for each reason; the last one counts the rest."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for path, reason in told:
        by_reason[reason].append(path)
    kept = []
    for reason, paths in by_reason.items():
        kept += [(path, reason) for path in paths[:_TOLD_PER_REASON]]
        if len(paths) > _TOLD_PER_REASON:
            more = len(paths) - _TOLD_PER_REASON
            kept[-1] = (kept[-1][0], f"{reason} The same is true of {more:,} more.")
    return tuple(kept)
