"""Next edits on real refactorings: the first two edits given, the rest proposed. Precision, recall, time.

    python -m tests.bench.next_edit --repo PATH:.py [--repo PATH:.go …] [--commits N] [--show N]

A proposal is right if the commit has exactly its text at its place. Users decide about a change, which is all proposals
with one title: it is right if all of them are. `--show` prints wrong ones.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from codeagent_lsp.inline.next_edit.history import History
from codeagent_lsp.inline.next_edit.proposals import Proposed, search
from codeagent_lsp.server.next_edits import project_of
from tests.bench.refactorings import GitHistory, Place, Refactoring

GIVEN = 2
SECONDS = 20.0
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass
class CommitSource:
    """The files of a commit's parent, with the texts in which the first edits are made over them."""

    git: GitHistory
    commit: str
    over: dict[str, str]
    known: dict[str, str | None] = field(default_factory=dict)

    async def files_with(self, words: Sequence[str], limit: int) -> Sequence[str]:
        return self.git.files_with(self.commit, tuple(words))[:limit]

    async def text(self, path: str) -> str | None:
        if path in self.over:
            return self.over[path]
        if path not in self.known:
            self.known[path] = self.git.text(self.commit, path)
        return self.known[path]

    def project(self, path: str) -> str:
        return project_of(path, self._tree.__contains__)

    @cached_property
    def _tree(self) -> frozenset[str]:
        return self.git.tree(self.commit)


@dataclass
class Counts:
    """What became of the commits of one history."""

    commits: int = 0
    with_any: int = 0
    proposed: int = 0
    right: int = 0
    changes: int = 0
    changes_right: int = 0
    left: int = 0
    reached: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Add the counts of another history."""
        for name in ("commits", "with_any", "proposed", "right", "changes", "changes_right", "left", "reached"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds


def given(made: Refactoring) -> tuple[dict[str, str], list[Place]]:
    """Return the texts with the first edits made, and the places that are left."""
    texts = dict(made.before)
    for place in reversed(made.places[:GIVEN]):
        lines = texts[place.path].splitlines(keepends=True)
        lines[place.start : place.end] = place.lines
        texts[place.path] = "".join(lines)
    return texts, list(made.places[GIVEN:])


def history_of(made: Refactoring, texts: dict[str, str]) -> History:
    """Return the history of a user who has made the first edits, one after the other."""
    history = History()
    for place in made.places[:GIVEN]:
        history = history.opened(place.path, made.before[place.path]) if history.of(place.path) is None else history
    for place in made.places[:GIVEN]:
        history = history.noted(place.path, texts[place.path])
    return history


async def measure(git: GitHistory, most: int, show: int) -> Counts:
    """Propose for all refactorings of a history, and count."""
    counts = Counts()
    for made in git.refactorings(most):
        texts, left = given(made)
        source = CommitSource(git, made.parent, texts)
        began = time.perf_counter()
        due = await search(history_of(made, texts), source, SECONDS)
        counts.seconds.append(time.perf_counter() - began)
        good = [each for each in due.proposed if is_right(each, made, texts)]
        counts.commits += 1
        counts.with_any += bool(due.proposed)
        counts.proposed += len(due.proposed)
        counts.right += len(good)
        titles, wrong = {each.title for each in due.proposed}, {each.title for each in due.proposed if each not in good}
        counts.changes += len(titles)
        counts.changes_right += len(titles - wrong)
        counts.left += len(left)
        counts.reached += len(_reached(good, made, texts))
        for each in [each for each in due.proposed if each not in good][: max(0, show)]:
            print(f"wrong {made.commit[:9]} {each.path}: {each.title} :: {each.old[:60]!r} → {each.new[:60]!r}")
    return counts


def is_right(each: Proposed, made: Refactoring, texts: dict[str, str]) -> bool:
    """Return whether the commit has exactly the proposed text at this place."""
    now = texts.get(each.path)
    then = made.after.get(each.path)
    if now is None or then is None:
        return False
    changed = now[: each.start] + each.new + now[each.end :]
    begin, end = changed.rfind("\n", 0, each.start) + 1, changed.find("\n", each.start + len(each.new))
    end = len(changed) if end < 0 else end + 1
    first = changed.count("\n", 0, begin)
    mine, theirs = changed.splitlines(keepends=True), then.splitlines(keepends=True)
    count = changed.count("\n", begin, end) or 1
    block = _counterpart(mine, theirs, first, first + count)
    if block is None:
        return False
    return _kept(changed[begin:end], block, each.start - begin, each.start - begin + len(each.new))


def _counterpart(mine: list[str], theirs: list[str], first: int, last: int) -> str | None:
    """Return the lines of the commit that stand for lines of ours."""
    matcher = difflib.SequenceMatcher(None, mine, theirs, autojunk=False)
    found: list[str] = []
    for _, a, b, c, d in matcher.get_opcodes():
        if a < last and first < b:
            low, high = max(a, first), min(b, last)
            same = b - a == d - c
            found += theirs[c + low - a : c + high - a] if same else theirs[c:d]
    return "".join(found) if found else None


def _kept(line: str, block: str, start: int, end: int) -> bool:
    """Return whether the characters [start, end) of a line are in the block, and nothing inside of them is not."""
    mine, theirs = _TOKEN.findall(line), _TOKEN.findall(block)
    offsets = [0]
    for token in mine:
        offsets.append(offsets[-1] + len(token))
    first = next(n for n, at in enumerate(offsets) if at >= start)
    last = next(n for n, at in enumerate(offsets) if at >= end)
    for tag, a, b, _, _ in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if tag == "insert" and first < a < last:
            return False
        if tag in ("replace", "delete") and a < last and first < b:
            return False
    return True


def _reached(good: Sequence[Proposed], made: Refactoring, texts: dict[str, str]) -> set[tuple[str, str]]:
    """Return the changed lines that right proposals are in."""
    return {(each.path, str(texts[each.path].count("\n", 0, each.start))) for each in good}


def row(name: str, counts: Counts) -> str:
    """Return a row of the table."""
    precision = f"{counts.right / counts.proposed:.3f}" if counts.proposed else "–"
    recall = f"{counts.reached / counts.left:.3f}" if counts.left else "–"
    median = 1000 * statistics.median(counts.seconds) if counts.seconds else 0.0
    return (
        f"| {name} | {counts.commits} | {counts.with_any} | {counts.proposed} | {counts.right} | {precision}"
        f" | {counts.changes_right} of {counts.changes} | {recall} | {median:.0f} |"
    )


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", action="append", required=True, help="a git folder and the ending of its sources")
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args()
    everything = Counts()
    rows = []
    for spec in options.repo:
        folder, _, ending = spec.rpartition(":")
        counts = await measure(GitHistory(folder, ending), options.commits, options.show)
        rows.append(row(Path(folder).parent.name.partition("+")[2] or folder, counts))
        everything.add(counts)
    print("| history | commits | with any | proposals | right | precision | changes right | recall (lines) | ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join([*rows, row("all", everything)]))


if __name__ == "__main__":
    asyncio.run(main())
