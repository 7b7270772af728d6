"""What building the index costs: `python -m tests.bench.index_build [FOLDER ...] [--generated 1000 10000 100000]`.

For each folder, and for folders of generated files: cold with workers, an unchanged start, one file changed (found by
looking at everything), one that the editor tells of, the longest pause of the event loop meanwhile, memory with all
workers, and tree-sitter alone on the same texts. Figures of one machine in one run; only their relation means
something.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index import grammars
from codeagent_lsp.index.parse import MAX_BYTES
from codeagent_lsp.index.scan import Folders, scan
from codeagent_lsp.index.service import IndexService

_HEAD = ("workspace", "files", "code MB", "cold s", "files/s", "MB/s", "CPU s", "raw s", "pause ms", "MB", "disk MB",
         "warm ms", "changed ms", "saved ms")  # fmt: skip


@dataclass
class Meter:
    """What goes on beside the work: the longest pause of the event loop, the most memory of all processes."""

    pause: float = 0.0
    memory: int = 0


def main() -> None:
    """Print one row per workspace."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--generated", nargs="*", type=int, default=[])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    print(" | ".join(f"{title:>10}" for title in _HEAD))
    for folder in options.folders:
        _row(folder, options.processes)
    for count in options.generated:
        with tempfile.TemporaryDirectory() as place:
            generate(Path(place), count)
            _row(Path(place), options.processes, f"gen{count}")


def generate(root: Path, count: int) -> None:
    """Files of about fifty lines that call each other, a hundred to a folder."""
    for number in range(count):
        place = root / f"package{number // 100}" / f"module{number}.py"
        place.parent.mkdir(exist_ok=True)
        parts = [f"from package{number // 200} import module{number // 2}\n\n\nclass Thing{number}:\n"]
        for method in range(8):
            parts.append(f'    def act_{number}_{method}(self, value):\n        """Do part {method} of it."""\n')
            parts.append(f"        found = module{number // 2}.act_{number // 2}_{method}(value)\n")
            parts.append(f"        return self.act_{number}_{(method + 1) % 8}(found) + {method}\n\n")
        place.write_text("".join(parts))


def _row(folder: Path, processes: int, name: str = "") -> None:
    raw, size = _raw(folder)
    with tempfile.TemporaryDirectory() as state:
        figures = asyncio.run(_measure(folder, Path(state) / "index.sqlite", processes))
    files, cold, cpu, meter, disk, warm, changed, saved = figures
    row = (
        name or folder.name, f"{files:,}", f"{size / 1e6:.1f}", f"{cold:.2f}", f"{files / cold:,.0f}",
        f"{size / 1e6 / cold:.1f}", f"{cpu:.1f}", f"{raw:.2f}", f"{meter.pause * 1000:.0f}",
        f"{meter.memory / 1024:.0f}", f"{disk / 1e6:.1f}", f"{warm * 1000:.0f}", f"{changed * 1000:.0f}",
        f"{saved * 1000:.0f}",
    )  # fmt: skip
    print(" | ".join(f"{each:>10}" for each in row), flush=True)


def _raw(folder: Path) -> tuple[float, int]:
    """Seconds that tree-sitter takes alone in one process for the texts that are parsed, and their bytes."""
    spent, size = 0.0, 0
    for work in scan(Folders([str(folder)]), {}, threading.Event()).changed:
        grammar = grammars.grammar_of(work.path)
        if grammar is None or work.size > MAX_BYTES:
            continue
        data = Path(work.absolute).read_bytes()
        size += len(data)
        parser = grammars.parser(grammar)
        started = time.perf_counter()
        parser.parse(data)
        spent += time.perf_counter() - started
    return spent, size


async def _measure(
    folder: Path, store: Path, processes: int
) -> tuple[int, float, float, Meter, int, float, float, float]:
    before = _cpu()
    index = _service(folder, store, processes)
    async with asyncio.TaskGroup() as group:
        meter = Meter()
        watching = group.create_task(_watch(meter))
        started = time.perf_counter()
        status = await index.refresh()
        cold = time.perf_counter() - started
        watching.cancel()
    await index.close()
    cpu = _cpu() - before
    await asyncio.sleep(0.2)
    await _once(_service(folder, store, processes))  # files changed just before the build are looked at once more
    warm = min([await _once(_service(folder, store, processes)) for _ in range(3)])
    with _changed(folder) as probe:
        changed = await _once(_service(folder, store, processes))
        saved = min([await _saved(_service(folder, store, processes), probe) for _ in range(3)])
    disk = sum(each.stat().st_size for each in store.parent.iterdir())
    return status.files, cold, cpu, meter, disk, warm, changed, saved


async def _once(index: IndexService) -> float:
    started = time.perf_counter()
    await index.refresh()
    spent = time.perf_counter() - started
    await index.close()
    return spent


async def _saved(index: IndexService, path: Path) -> float:
    """The time for a file that the editor tells of: nothing else is looked at."""
    path.write_text(f"def probe_{time.time_ns()}():\n    return 1\n")  # noqa: ASYNC240 - nobody waits
    started = time.perf_counter()
    await index.changed([str(path)])
    spent = time.perf_counter() - started
    await index.close()
    return spent


def _service(folder: Path, store: Path, processes: int) -> IndexService:
    return IndexService([str(folder)], store, IndexSettings(), processes=processes)


@contextmanager
def _changed(folder: Path) -> Iterator[Path]:
    """One more file while it lasts: the folder may be somebody's checkout."""
    place = folder / "zz_bench_probe.py"
    place.write_text("def probe():\n    return probe()\n")
    try:
        yield place
    finally:
        place.unlink()


async def _watch(meter: Meter) -> None:
    last = time.perf_counter()
    while True:
        await asyncio.sleep(0.01)
        now = time.perf_counter()
        meter.pause = max(meter.pause, now - last - 0.01)
        meter.memory = max(meter.memory, _memory())
        last = time.perf_counter()


def _memory() -> int:
    """Kilobytes resident in this process and its children; 0 where there is no /proc."""
    return sum(_resident(process) for process in (os.getpid(), *_children()))


def _children() -> list[int]:
    try:
        listing = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return []
    return [int(each) for each in listing.split()]


def _resident(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def _cpu() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


if __name__ == "__main__":
    main()
