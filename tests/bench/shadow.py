"""What the shadow costs a command: `python -m tests.bench.shadow [--runs N]`.

The same command is run plain and in the shadow, in turns, in one process. Then the time that preparing and collecting
take as the workspace grows and what changes stays the same, and the other way round. Figures of one machine in one
run; only their relation means something.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.shell import Command, Shell
from codeagent_lsp.shadow.workspace import ShadowWorkspace, executing
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.workspace.file_fakes import FakeBuffers, FakeStaged

GOAL_MS = 60.0
SIZES = (100, 5_000, 50_000)
CHANGES = (1, 50, 400)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=25, help="pairs of plain and shadowed commands")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_all(Path(folder), options.runs))


async def _all(folder: Path, runs: int) -> None:
    workspace = folder / "workspace"
    fill(workspace, SIZES[0])
    await _overhead(workspace, folder, "overlay", runs)
    await _overhead(workspace, folder, "copy", runs)
    for size in SIZES:
        place = folder / f"size{size}"
        fill(place, size)
        print(f"{size:7,} files, 1 changed      : {await _around(place, folder, 1):6.1f} ms beside the command")
    for changes in CHANGES:
        spent = await _around(folder / f"size{SIZES[1]}", folder, changes)
        print(f"{SIZES[1]:7,} files, {changes:3} changed    : {spent:6.1f} ms beside the command")


async def _overhead(workspace: Path, folder: Path, level: Literal["overlay", "copy"], runs: int) -> None:
    shadow, shell = _shell(workspace, folder, level)
    command = Command("cat file0.txt >/dev/null", str(workspace))
    await shell.run(command)
    plain, shadowed = [], []
    for _ in range(runs):
        started = time.perf_counter()
        await asyncio.to_thread(_plain, str(command.script), workspace)
        plain.append(time.perf_counter() - started)
        started = time.perf_counter()
        await shell.run(command)
        shadowed.append(time.perf_counter() - started)
    await shadow.close()
    over = statistics.median((after - before) * 1000 for before, after in zip(plain, shadowed, strict=True))
    one, other = statistics.median(plain) * 1000, statistics.median(shadowed) * 1000
    print(
        f"{level:8} plain {one:5.1f} ms, shadowed {other:5.1f} ms, "
        f"median of the differences {over:5.1f} ms (goal {GOAL_MS:.0f}): {'met' if over <= GOAL_MS else 'missed'}"
    )


def _plain(script: str, workspace: Path) -> None:
    subprocess.run(["bash", "-c", script], cwd=workspace, check=True, stdin=subprocess.DEVNULL)


async def _around(workspace: Path, folder: Path, changes: int) -> float:
    """Median milliseconds of a command that changes some files, without the time it runs itself."""
    shadow, shell = _shell(workspace, folder, "overlay")
    times = []
    for number in range(7):
        script = f"for i in $(seq {changes}); do echo {number} > file$i.txt; done"
        started = time.perf_counter()
        result = await shell.run(Command(script, str(workspace)))
        times.append((time.perf_counter() - started - result.finished.seconds) * 1000)
        assert len(result.staged) == changes
    await shadow.close()
    return statistics.median(times[1:])


def fill(folder: Path, count: int) -> None:
    """A folder with `count` small files, 100 to a folder beyond the first 500."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        place = folder if number < 500 else folder / f"part{number // 100}"
        place.mkdir(exist_ok=True)
        (place / f"file{number}.txt").write_text(f"text of file {number}\n")


def _shell(workspace: Path, folder: Path, level: Literal["overlay", "copy"]) -> tuple[ShadowWorkspace, Shell]:
    settings = ShellSettings(isolation=level)
    isolator = Isolator(str(folder / "state"))
    view = FileView(Roots([str(workspace)]), FakeBuffers(), FakeStaged())
    spool = folder / "spool"
    spool.mkdir(exist_ok=True)
    shadow = ShadowWorkspace(
        isolator.isolation(settings, view.roots.folders),
        lambda folders: isolator.open(settings, folders),
        executing(lambda: settings, spool),
    )
    return shadow, shadow.bind(view, Staging(view.base), _yes)


async def _yes(paths: tuple[str, ...]) -> bool:
    return True


if __name__ == "__main__":
    main()
