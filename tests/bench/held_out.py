"""Places for the bench of completions: lines that real commits added, taken out again, in the workspace as it was.

The workspace is that of the commit's parent, with the commit's file less the lines: nothing of the future is in it.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.index.grammars import is_source

LONGEST_BLOCK = 8
LARGEST = 200_000
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A place: the file, its text without the lines, the cursor, and what was there: the rest of a line, or a block.

    `recent` are the files changed by the commits before, the last first.
    """

    commit: str
    parent: str
    path: str
    text: str
    offset: int
    expected: str
    kind: str
    recent: tuple[str, ...]


class History:
    """A bare repository, and a folder into which its states are laid, oldest first."""

    def __init__(self, git: str, ending: str, folder: Path) -> None:
        self.name = Path(git).parent.name.partition("+")[2] or Path(git).name
        self.folder = folder
        self._git_folder = git
        self._ending = ending

    def places(self, count: int, seed: int) -> list[HeldOut]:
        """Return so many places, one a commit, two lines to one block, in the order of time."""
        dice = random.Random(f"{seed} {self.name}")
        found: list[HeldOut] = []
        for commit, recent in self._commits():
            place = self._place(commit, recent, dice, "line" if len(found) % 3 else "block")
            if place is not None:
                found.append(place)
            if len(found) == count:
                break
        return found[::-1]

    def lay(self, place: HeldOut) -> None:
        """Lay the workspace of a place into the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._git(f"--work-tree={self.folder}", "read-tree", "--reset", "-u", place.parent)
        target = self.folder / place.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(place.text)

    def _commits(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        out = self._git("log", "--no-merges", "--name-only", "--diff-filter=AM", "-n", "1500", "--format=%x01%H")
        log = [(each.split("\n")[0], each.split("\n")[2:]) for each in out.split("\x01")[1:]]
        for at, (commit, _) in enumerate(log):
            before = [name for _, names in log[at + 1 : at + 12] for name in names if name.endswith(self._ending)]
            yield commit, tuple(dict.fromkeys(before))[:6]

    def _place(self, commit: str, recent: tuple[str, ...], dice: random.Random, kind: str) -> HeldOut | None:
        try:
            diff = self._git(
                "diff", "--unified=0", "--no-color", "--no-ext-diff", f"{commit}^", commit, "--", f"*{self._ending}"
            )
        except subprocess.CalledProcessError:
            return None
        runs = [run for part in diff.split("\ndiff --git ") if (run := self._run(part, kind, dice))]
        if not runs:
            return None
        path, first, length = dice.choice(runs)
        text = self._git("show", f"{commit}:{path}")
        if len(text) > LARGEST or "\r" in text or not is_source(path):
            return None
        lines = text.splitlines(keepends=True)
        taken = lines[first : first + length]
        begin = len("".join(lines[:first]))
        cut = _cut(taken[0], dice) if kind == "line" else len(taken[0]) - len(taken[0].lstrip())
        expected = "".join(taken)[cut:].rstrip() if kind == "block" else taken[0][cut:].rstrip()
        if len(expected.strip()) < 2:
            return None
        held = text[: begin + cut] + "\n" + "".join(lines[first + length :])
        parent = self._git("rev-parse", f"{commit}^").strip()
        return HeldOut(commit, parent, path, held, begin + cut, expected, kind, recent)

    def _run(self, part: str, kind: str, dice: random.Random) -> tuple[str, int, int] | None:
        """Return one run of added lines of a file that fits: the path, the first line from 0, how many."""
        named = re.search(r"^\+\+\+ b/(.+)$", part, re.MULTILINE)
        if named is None:
            return None
        runs = []
        for found in _HUNK.finditer(part):
            length = int(found[2] or 1)
            lines = [line[1:] for line in part[found.end() :].split("\n@@")[0].splitlines() if line.startswith("+")]
            code = lines[:length] and lines[0].strip() and not lines[0].lstrip().startswith(("#", "//", "*", "/*"))
            if code and (length == 1 if kind == "line" else 2 <= length <= LONGEST_BLOCK):
                runs.append((named[1], int(found[1]) - 1, length))
        return dice.choice(runs) if runs else None

    def _git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self._git_folder}", *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")


def _cut(line: str, dice: random.Random) -> int:
    """Return where the cursor is in a line: after its indentation, or after one of its tokens, not the last."""
    tokens = [found.end() for found in _TOKEN.finditer(line)]
    begin = len(line) - len(line.lstrip())
    return begin if dice.random() < 0.5 or len(tokens) < 2 else dice.choice(tokens[:-1])
