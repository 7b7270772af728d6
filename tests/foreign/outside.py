"""A watch over a folder, at a pace for tests, and the programs that change files in it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from codeagent_lsp.foreign.baseline import Baseline, Copies
from codeagent_lsp.foreign.disk import Tree
from codeagent_lsp.foreign.watch import ForeignWatch, Found, Saves
from codeagent_lsp.foreign.whose import DiskChange, Pace
from codeagent_lsp.workspace.files.paths import Roots

PACE = Pace(tick=0.03, quiet=0.08, longest=0.6, most=5.0)
PERSON = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    """What the user does with git."""
    command = ["git", *PERSON, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def repository(folder: Path, **files: str) -> None:
    """Make a repository with these files, committed; `a_py` is a.py."""
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "begin")


class Outside:
    """What a watch has found until now; all changes by `path`, in the end as one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[Found] = []
        self.watch: ForeignWatch

    async def take(self, found: Found) -> None:
        self.found.append(found)

    @property
    def foreign(self) -> dict[str, tuple[str | None, str | None]]:
        """Texts before and after of what another program has changed, by name."""
        changes = [each for found in self.found for each in found.changes if each.is_foreign]
        return {self.name(each.path): (each.was, each.now) for each in changes}

    @property
    def changes(self) -> list[DiskChange]:
        return [each for found in self.found for each in found.changes]

    @property
    def unknown(self) -> list[str]:
        return [self.name(path) for found in self.found for path in found.unknown]

    def name(self, path: str) -> str:
        return str(Path(path).relative_to(self.folder))

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 (about files, which tell of nothing)
                await asyncio.sleep(0.01)

    async def rest(self) -> None:
        """Wait until all that was done is looked at."""
        await asyncio.sleep(8 * PACE.quiet)

    def saves(self, name: str, text: str) -> None:
        """What the editor does: write a file and tell of it."""
        (self.folder / name).write_text(text)
        self.watch.saved((str(self.folder / name),), text)


@asynccontextmanager
async def watched(folder: Path, state: Path, *, is_told: bool = False) -> AsyncIterator[Outside]:
    """Follow a folder; the watch ends with the block."""
    outside = Outside(folder)
    baseline = Baseline(Tree(Roots([str(folder)]), (str(state),)), Copies(state / "before"))
    outside.watch = ForeignWatch(
        Tree(Roots([str(folder)]), (str(state),)), baseline, outside.take,
        is_told=is_told, saves=Saves(state), pace=PACE,
    )  # fmt: skip
    following = asyncio.ensure_future(outside.watch.follow())
    try:
        await outside.until(lambda: baseline.is_whole or following.done())
        await asyncio.sleep(PACE.tick)
        yield outside
    finally:
        following.cancel()
        await asyncio.wait([following])
        await baseline.close()
    if not following.cancelled():
        following.result()
