"""Callers of changed definitions on real commits: the definitions as the commit has them, the callers as before.

    python -m tests.bench.finish_change --repo GIT_FOLDER:.py [--repo GIT_FOLDER:.ts …] [--commits N] [--show]

Of a commit that changes a signature, a name or the place of a definition and its callers in other files, the files with
the definitions are given, as if typed by hand. *Broken* are the places that the language server calls wrong then,
*repaired* those with an offer (which brings no new error, or there is none), *equal* those of them that are as in the
commit. `--show` prints the others.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import re
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from codeagent_lsp.inline.finish_change.changes import Change
from codeagent_lsp.inline.finish_change.finishing import (
    MOST_FILES,
    Finished,
    affected_places,
    changed_declarations,
    finish,
)
from codeagent_lsp.inline.finish_change.sites import Site, apply_edits
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, StagedFile
from codeagent_lsp.workspace.files.paths import Roots
from tests.bench.refactorings import GitHistory
from tests.language_servers.real import real_session

MOST_CHANGED = 30
SECONDS = 90.0
AROUND = 3
"""Lines around a place in which its counterpart is looked for."""


@dataclass(frozen=True)
class ChangingCommit:
    """A commit: its changes of definitions, and the texts of the files that it edits. Paths are relative."""

    name: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    by_hand: tuple[str, ...]
    words: tuple[str, ...]


@dataclass
class Figures:
    """What became of the commits of one history."""

    commits: int = 0
    broken: int = 0
    with_broken: int = 0
    offers: int = 0
    repaired: int = 0
    equal: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add those of another history."""
        for name in ("commits", "broken", "with_broken", "offers", "repaired", "equal"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds


class Texts:
    """A staged view of texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def lookup(self, path: str) -> StagedFile | None:
        return StagedFile(self._texts[path]) if path in self._texts else None

    def paths(self) -> tuple[str, ...]:
        return tuple(self._texts)


def commits_of(git: GitHistory, ending: str, most: int, skip: int) -> Iterator[ChangingCommit]:
    """Yield the last commits that change definitions and, in other files, lines that name them."""
    log = git.git("log", "--no-merges", "-n", "8000", "--format=%H", "--", f"*{ending}").split()
    found = 0
    for name in log[skip:]:
        made = _commit(git, name, ending)
        if made is not None:
            yield made
            found += 1
        if found == most:
            return


def _commit(git: GitHistory, name: str, ending: str) -> ChangingCommit | None:
    try:
        listed = git.git("diff", "--name-only", "--no-renames", "--diff-filter=AM", f"{name}^", name)
    except subprocess.CalledProcessError:
        return None
    paths = [path for path in listed.splitlines() if path.endswith(ending)]
    if not 2 <= len(paths) <= MOST_CHANGED:
        return None
    before = {path: git.text(f"{name}^", path) or "" for path in paths}
    after = {path: git.text(name, path) or "" for path in paths}
    changes = changed_declarations(before, after)
    by_hand = {path for each in changes for path in (each.path, each.was_in)}
    callers = {path for path in paths if path not in by_hand and before[path]}
    olds = {path: before[path] for path in callers}
    used = [
        each
        for each in changes
        if any(_loses(before[path], after[path], each) for path in affected_places([each], olds))
    ]
    if not used:
        return None
    # All but the callers: what the changed definitions are made of may be in other files.
    broken = affected_places(used, olds)
    by_hand = {path for path in paths if path not in broken}
    return ChangingCommit(name, before, after, tuple(sorted(by_hand)), tuple({each.word for each in used}))


def _loses(before: str, after: str, change: Change) -> bool:
    word = re.compile(rf"\b{re.escape(change.word)}\b")
    old, new = set(before.splitlines()), set(after.splitlines())
    return any(word.search(line) for line in old - new)


def lay(git: GitHistory, commit: str, folder: Path) -> None:
    """Lay out the files of a commit."""
    command = ["git", f"--git-dir={git.folder}", "archive", "--format=tar", commit]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


async def measure(git: GitHistory, made: ChangingCommit, folder: Path, show: bool, figures: Figures) -> None:
    """Lay out the commit's parent, change the definitions, and count."""
    parent = f"{made.name}^"
    await asyncio.to_thread(lay, git, parent, folder)
    place = {path: str(folder / path) for path in made.before}
    bases = {place[path]: made.before[path] for path in made.by_hand}
    texts = {place[path]: made.after[path] for path in made.by_hand}
    for word in made.words:
        for path in git.files_with(parent, (word,))[:MOST_FILES]:
            text = git.text(parent, path)
            if str(folder / path) not in texts and text is not None and len(texts) < MOST_FILES:
                texts[str(folder / path)] = text
    changes = changed_declarations(bases, texts)
    began = time.perf_counter()
    async with real_session(folder.parent / "state") as servers:

        def over(over: Mapping[str, str]) -> FileView:
            return FileView(Roots([str(folder)]), NoBuffers(), Texts(over))

        found = await finish(changes, bases, texts, servers, over, SECONDS)
    figures.seconds.append(time.perf_counter() - began)
    figures.commits += 1
    figures.broken += len(found.left) + len(found.repaired)
    figures.with_broken += bool(found.left or found.repaired)
    figures.offers += bool(found.texts)
    figures.repaired += len(found.repaired)
    then = {place[path]: text for path, text in made.after.items()}
    for site in found.repaired:
        shown, equal = compared(site, texts[site.path], found, then.get(site.path, texts[site.path]))
        figures.equal += equal
        if show and not equal:
            print(f"differs {made.name[:9]} {Path(site.path).relative_to(folder)}: {changes[0].title}\n    {shown}")
    if show:
        for left in found.left:
            line = texts[left.path].splitlines()[left.line].strip()
            print(f"left {made.name[:9]} {Path(left.path).relative_to(folder)}:{left.line + 1}: {line[:150]}")
    state = f"{len(found.repaired)} of {len(found.left) + len(found.repaired)}"
    print(f"{made.name[:9]} {state} {'' if found.checked else 'unchecked '}{figures.seconds[-1]:.1f} s: "
          + "; ".join(each.title for each in changes)[:200], flush=True)  # fmt: skip


def compared(site: Site, text: str, found: Finished, then: str) -> tuple[str, bool]:
    """Return the repaired place, and whether the commit has it, too, but for blanks and line ends."""
    now = found.texts[site.path]
    edits = [edit for each in found.repaired if each.path == site.path for edit in each.edits or ()]
    mine = [edit for edit in edits if site.start <= edit.start and edit.end <= site.end]
    shift = sum(
        len(edit.new) - edit.end + edit.start for edit in set(edits) if edit.end <= site.start and edit not in mine
    )
    shown = apply_edits(text[: site.end], mine)[site.start :]
    start = site.start + shift
    first, last = now.count("\n", 0, start), now.count("\n", 0, start + len(shown))
    if "\n" not in shown:
        shown = now.splitlines()[first] if first < len(now.splitlines()) else shown
    # An import may stand at another place among its neighbours.
    is_import = shown.lstrip().startswith(("from ", "import "))
    block = then if is_import else counterpart(now.splitlines(), then.splitlines(), first, last + 1)
    return " ".join(shown.split()), plain(shown) in plain(block)


def counterpart(mine: list[str], theirs: list[str], first: int, last: int) -> str:
    """Return the lines of the commit that stand where lines of ours do, with some around."""
    found: list[int] = []
    for _, a, b, c, d in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if a <= last and first <= b:
            low, high = (c + max(a, first) - a, c + min(b, last) - a) if b - a == d - c else (c, d)
            found += [low, high]
    return "\n".join(theirs[max(0, min(found, default=0) - AROUND) : max(found, default=0) + AROUND])


def plain(text: str) -> str:
    """Return a text without what formatters change, and without names of arguments that say the same."""
    bare = re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", text)).replace("'", '"')
    # By name or by place: the same value for the same parameter.
    return re.sub(r"\b(\w+)=(?=\1\b[,)])", "", bare)


def row(name: str, figures: Figures) -> str:
    """Return a row of the table."""
    mean = sum(figures.seconds) / len(figures.seconds) if figures.seconds else 0.0
    return (
        f"| {name} | {figures.commits} | {figures.with_broken} | {figures.offers} | {figures.broken} "
        f"| {figures.repaired} | {figures.equal} | {mean:.1f} |"
    )


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", action="append", required=True, help="a git folder and the ending of its sources")
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--skip", type=int, default=0, help="commits of each history to leave out")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    everything, rows = Figures(), []
    for spec in options.repo:
        folder, _, ending = spec.rpartition(":")
        git, figures = GitHistory(folder, ending), Figures()
        for made in commits_of(git, ending, options.commits, options.skip):
            with tempfile.TemporaryDirectory() as name:
                place = Path(name) / "ws"
                place.mkdir()
                await measure(git, made, place, options.show, figures)
        rows.append(row(Path(folder).parent.name.partition("+")[2] or Path(folder).parent.name, figures))
        everything.add(figures)
    print("| history | commits | with broken callers | offers | broken | repaired | equal to the commit | s, mean |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join([*rows, row("all", everything)]))


if __name__ == "__main__":
    asyncio.run(main())
