"""Commits of a history that make the same small change in many places, for the bench of next edits.

A commit counts when at least 4 of its places, and at most 60, have the same words less and the same words more: those
places are the refactoring, whatever else the commit does. Not here: what is proposed for them (`next_edit.py`).
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

FEWEST, MOST = 4, 60
LONGEST = 4
"""Lines of one place."""
LARGEST = 300_000
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Place:
    """A changed place of a file: its lines in the parent's text, from 0, and the lines that are there afterwards."""

    path: str
    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Refactoring:
    """A commit: its places, the files in order, and the texts before and after."""

    commit: str
    parent: str
    places: tuple[Place, ...]
    before: dict[str, str]
    after: dict[str, str]


class GitHistory:
    """A repository, read by git; `ending` is that of its sources."""

    def __init__(self, folder: str, ending: str) -> None:
        self.folder = folder
        self._ending = ending

    def refactorings(self, most: int) -> Iterator[Refactoring]:
        """Yield suitable commits, the last first."""
        log = self.git("log", "--no-merges", "-n", "6000", "--format=%H", "--", f"*{self._ending}").split()
        found = 0
        for commit in log:
            made = self._refactoring(commit)
            if made is not None:
                yield made
                found += 1
            if found == most:
                return

    def files_with(self, commit: str, words: tuple[str, ...]) -> list[str]:
        """Return the sources of a commit that have all of the words."""
        command = ["git", f"--git-dir={self.folder}", "grep", "-l", "-F", "--all-match"]
        command += [part for word in words for part in ("-e", word)]
        done = subprocess.run([*command, commit, "--", f"*{self._ending}"], capture_output=True, check=False)
        return [line.partition(":")[2] for line in done.stdout.decode("utf-8", "replace").splitlines()]

    def tree(self, commit: str) -> frozenset[str]:
        """Return the names of all files of a commit."""
        return frozenset(self.git("ls-tree", "-r", "--name-only", commit).splitlines())

    def text(self, commit: str, path: str) -> str | None:
        """Return the text of a file; None if it has none, or a long one."""
        try:
            text = self.git("show", f"{commit}:{path}")
        except subprocess.CalledProcessError:
            return None
        return text if len(text) <= LARGEST and "\r" not in text else None

    def git(self, *arguments: str) -> str:
        """Return what git prints."""
        command = ["git", f"--git-dir={self.folder}", *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")

    def _refactoring(self, commit: str) -> Refactoring | None:
        try:
            stat = self.git("diff", "--numstat", "--no-renames", "--diff-filter=M", f"{commit}^", commit)
        except subprocess.CalledProcessError:
            return None
        rows = [line.split("\t") for line in stat.splitlines()]
        rows = [row for row in rows if len(row) == 3 and row[2].endswith(self._ending) and row[0].isdigit()]
        changed = sum(int(row[1]) for row in rows)
        if not FEWEST <= changed <= 4 * MOST:
            return None
        before: dict[str, str] = {}
        after: dict[str, str] = {}
        places: list[Place] = []
        for path in sorted(row[2] for row in rows):
            old, new = self.text(f"{commit}^", path), self.text(commit, path)
            if old is None or new is None:
                return None
            before[path], after[path] = old, new
            places += _places(path, old, new)
        places = _alike(places, before)
        if not FEWEST <= len(places) <= MOST:
            return None
        parent = self.git("rev-parse", f"{commit}^").strip()
        return Refactoring(commit, parent, tuple(places), before, after)


def _places(path: str, old: str, new: str) -> Iterator[Place]:
    """Yield the changed places of a file; as many lines for as many are a place each."""
    one, other = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "replace":
            continue
        if b - a == d - c:
            for number in range(b - a):
                yield Place(path, a + number, a + number + 1, (other[c + number],))
        else:
            yield Place(path, a, b, tuple(other[c:d]))


def _alike(places: list[Place], before: dict[str, str]) -> list[Place]:
    """Return the places with the commonest change of words: those of a comment alone, and longer ones, are none."""
    groups: dict[tuple[frozenset[str], frozenset[str]], list[Place]] = {}
    for place in places:
        lines = before[place.path].splitlines(keepends=True)[place.start : place.end]
        if max(len(lines), len(place.lines)) > LONGEST or lines[0].lstrip().startswith(("#", "//", "*", "/*", ".. ")):
            continue
        old, new = set(_WORD.findall("".join(lines))), set(_WORD.findall("".join(place.lines)))
        if old != new:
            groups.setdefault((frozenset(old - new), frozenset(new - old)), []).append(place)
    return max(groups.values(), key=len, default=[])
