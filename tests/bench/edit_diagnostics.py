"""Diagnostics after real edits: `python -m tests.bench.edit_diagnostics --repo PATH:.py --repo PATH:.ts [--commits N]`.

Each commit is an edit of its parent's files, staged as an agent stages it, without and with one type error in a
function that it changes (`injected_errors.py`). Prints how often the error is reported as new, what else is that the
error did not cause (what the commit without it does not have), what is not known in time, and the wait.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from codeagent_lsp.language_servers import running_servers
from codeagent_lsp.language_servers.session_servers import SessionServers
from codeagent_lsp.tools.diagnostics.difference import Difference
from codeagent_lsp.tools.edit_diagnostics import REMARK_SECONDS, AfterEdits, BeforeAndAfter, EditDiagnostics
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.bench.histories import Repository
from tests.bench.injected_errors import Injected, injected
from tests.language_servers.real import real_session
from tests.tools.fakes import Bench

COLUMNS = (
    *("history", "commits", "found as new", "other new", "not known in time"),
    *("wait after a run's first edit, median / p95, s", "after the next one"),
)
SUITABLE = 30
"""How many commits are looked at for each that is taken."""


@dataclass
class Counts:
    """What one history gave."""

    commits: int = 0
    found: int = 0
    others: list[str] = field(default_factory=list)
    unknown: int = 0
    missed: list[str] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)

    def row(self, name: str) -> str:
        """Return the line of the table."""
        times = [f"{median(each):.2f} / {quantiles(each, n=20)[-1]:.2f}" for each in (self.first, self.later)]
        columns = [name, self.commits, self.found, len(self.others), self.unknown, *times]
        return f"| {' | '.join(map(str, columns))} |"


class Checkout:
    """A folder with the files of one commit after another."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._repository = repository
        self._folder = folder
        self._there: dict[str, str] = {}
        folder.mkdir()

    def to(self, commit: str) -> None:
        """Make the folder that of a commit: what is the same stays."""
        tree = self._repository.tree(commit)
        for path in self._there.keys() - tree.keys():
            (self._folder / path).unlink()
        changed = [path for path, blob in tree.items() if self._there.get(path) != blob]
        blobs = self._repository.blobs({tree[path] for path in changed})
        for path in changed:
            target = self._folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(blobs[tree[path]])
        self._there = tree


async def tried(each: Injected, folder: Path, servers: SessionServers, counts: Counts, seconds: float) -> None:
    """Stage a commit without and with its error, and count what is reported."""
    base = FileView(Roots([str(folder)]), NoBuffers(), NothingStaged())
    await looked_anew(base, servers, str(folder / each.path))
    bench = Bench(folder)
    after = AfterEdits(EditDiagnostics(BeforeAndAfter(base, bench.view), servers, None))
    without = await reported(bench, after, each.after, counts.first, seconds)
    found = await reported(bench, after, {each.path: each.text}, counts.later, seconds)
    path, known = bench.path(each.path), {(item.path, item.code, item.message) for item in without.new}
    here = [item for item in found.new if item.path == path and item.line == each.line]
    is_found = any(item.severity == "error" for item in here)
    counts.commits += 1
    counts.unknown += path in found.unknown
    counts.found += is_found
    if not is_found:
        counts.missed.append(f"{each.commit.name[:10]} {each.path}:{each.line}")
    compared = [item for item in found.new if item not in here and item.path not in without.unknown]
    rest = [item for item in compared if (item.path, item.code, item.message) not in known]
    counts.others += [f"{each.commit.name[:10]} {item.path}:{item.line} {item.message}" for item in rest]


async def reported(
    bench: Bench, after: AfterEdits, texts: Mapping[str, str | None], waits: list[float], seconds: float
) -> Difference:
    """Stage texts by name; return the difference that all staged ones make, and note the wait."""
    staged = {bench.path(name): text for name, text in texts.items()}
    bench.staging.stage(staged, {}, [bench.view.read(path) for path in staged if bench.view.exists(path)])
    started = time.monotonic()
    found = await after.of(bench.context, bench.changeset, seconds)
    waits.append(time.monotonic() - started)
    return found


async def looked_anew(base: FileView, servers: SessionServers, path: str) -> None:
    """Bring the copy to a new commit, and have the file looked at once, as a run that reads it would."""
    seconds, running_servers.LOOK_SECONDS = running_servers.LOOK_SECONDS, 0.0
    try:
        await servers.diagnostics(base, [path], 60.0)
    finally:
        running_servers.LOOK_SECONDS = seconds


def suitable(repository: Repository, suffix: str, most: int) -> Iterator[Injected]:
    """Yield the last commits that change a function, the oldest first."""
    found: list[Injected] = []
    for commit in reversed(repository.tasks(most * SUITABLE)):
        if len(found) < most and (each := injected(repository, commit, suffix)) is not None:
            found.append(each)
    yield from reversed(found)


async def history(repository: Repository, edits: Iterable[Injected], seconds: float) -> Counts:
    """Return the counts of one history, by the servers of one session."""
    counts = Counts()
    with tempfile.TemporaryDirectory() as place:
        checkout = Checkout(repository, folder := Path(place, "ws"))
        async with real_session(Path(place) / "state") as servers:
            for each in edits:
                checkout.to(each.commit.parent)
                await tried(each, folder, servers, counts, seconds)
            for trouble in servers.take_troubles():
                print(f"trouble: {trouble}")
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.edit_diagnostics", description=__doc__)
    parser.add_argument("--repo", action="append", required=True, help="a git repository and a suffix: PATH:.py")
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument(
        "--seconds", type=float, default=REMARK_SECONDS, help="the time for the diagnostics of one edit"
    )
    parser.add_argument("--show", type=int, default=0, help="print so many that are missed or reported besides")
    chosen = parser.parse_args(arguments)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for named in chosen.repo:
        path, _, suffix = named.rpartition(":")
        repository = Repository(path)
        counts = asyncio.run(history(repository, suitable(repository, suffix, chosen.commits), chosen.seconds))
        print(counts.row(f"{Path(path).parent.name} {suffix}"), flush=True)
        for line in [*counts.missed[: chosen.show], *counts.others[: chosen.show]]:
            print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
