"""What the check of suggestions costs and finds, without a model: `python -m tests.bench.inline_check [FOLDER]`.

Lines of real files are taken out and suggested again: as they were (one that is dropped is a loss) and with a name in
them that nothing defines (one that is shown brings an error). The language servers are real and warm, as after a run.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codeagent_lsp.inline.checking import SuggestionChecks
from codeagent_lsp.inline.context import Place
from codeagent_lsp.language_servers.session_servers import SessionServers
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, StagedFile
from codeagent_lsp.workspace.files.paths import Roots
from tests.language_servers.real import real_session

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".py", ".ts", ".go")
WARM_SECONDS = 120.0
# The time that a model takes at least, in which the text without the suggestion is looked at.
MODEL_SECONDS = 0.3
TOKEN_SECONDS = 0.08
PATIENT_SECONDS = 1.0
_NAME = re.compile(r"\b[a-zA-Z_]\w{2,}\b")
_PLAIN = re.compile(r"\s*(?:#|//|\*|/\*|\"\"\"|import\b|from\b|package\b|$)")


@dataclass
class Found:
    """What became of the suggestions of one language; `wrong` bring an error, as servers say that have all time."""

    right: int = 0
    right_dropped: int = 0
    wrong: int = 0
    wrong_dropped: int = 0
    seconds: list[float] = field(default_factory=list)


class Buffer:
    """One text that is not saved."""

    def __init__(self) -> None:
        self.path, self.text = "", ""

    def lookup(self, path: str) -> StagedFile | None:
        return StagedFile(self.text) if path == self.path else None

    def paths(self) -> tuple[str, ...]:
        return (self.path,) if self.path else ()


def files_of(folder: Path, suffix: str) -> list[Path]:
    """Return the files of a language that people write."""
    ours = [path for path in folder.rglob(f"*{suffix}") if not {"node_modules", ".venv", "dist"} & {*path.parts}]
    return [path for path in sorted(ours) if path.stat().st_size < 60_000 and not path.name.endswith(".d.ts")]


def places(files: Sequence[Path], count: int, chance: random.Random) -> Iterator[tuple[Path, str, int, str]]:
    """Yield files, their texts without one line of code, where that stood, and the line."""
    for _ in range(count):
        path = chance.choice(files)
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        fitting = [at for at, line in enumerate(lines) if not _PLAIN.match(line) and _NAME.search(line)]
        if not fitting:
            continue
        at = chance.choice(fitting)
        line = lines[at].rstrip("\n")
        indentation = line[: len(line) - len(line.lstrip())]
        before = "".join(lines[:at]) + indentation
        yield path, before + "\n" + "".join(lines[at + 1 :]), len(before), line.lstrip()


async def tried(servers: SessionServers, folder: Path, suffix: str, count: int, seed: int) -> Found:
    """Suggest lines of files of one suffix."""
    chance, found, buffer = random.Random(seed), Found(), Buffer()
    files = files_of(folder, suffix)
    if not files:
        return found
    view = FileView(Roots([str(folder)]), NoBuffers(), buffer)
    checks = SuggestionChecks(lambda: [servers], lambda: view)
    for path, text, offset, line in places(files, count, chance):
        buffer.path, buffer.text = str(path), text
        await servers.diagnostics(view, [str(path)], WARM_SECONDS)
        place = Place(path.name, text, offset, file=str(path))
        name = chance.choice(_NAME.findall(line))
        wrong = re.sub(rf"\b{name}\b", f"{name}_undefined", line, count=1)
        for answer in (line, wrong):
            check = checks.begin(place)
            assert check is not None
            await asyncio.sleep(MODEL_SECONDS)
            # The model goes on behind the line before it is known that this is all.
            check.expect(answer)
            await asyncio.sleep(TOKEN_SECONDS)
            began = time.perf_counter()
            fell = await check.brings_error(answer)
            found.seconds.append(time.perf_counter() - began)
            await asyncio.sleep(PATIENT_SECONDS)
            # The same question again, answered by now.
            falls = await check.brings_error(answer)
            await check.close()
            if falls and answer is wrong:
                found.wrong, found.wrong_dropped = found.wrong + 1, found.wrong_dropped + fell
            elif answer is line:
                found.right, found.right_dropped = found.right + 1, found.right_dropped + fell
                if falls:
                    print(f"  falls though right: {path.name}: {line}")
    return found


async def measured(folder: Path, count: int, seed: int) -> None:
    """Print a row for each language."""
    with tempfile.TemporaryDirectory() as state:
        async with real_session(Path(state)) as servers:
            print("| | right | of these dropped | with an error | of these dropped | ms added, median | 95th |")
            print("|---|---|---|---|---|---|---|")
            for suffix in SUFFIXES:
                found = await tried(servers, folder, suffix, count, seed)
                if len(found.seconds) < 2:
                    continue
                middle, high = statistics.median(found.seconds), statistics.quantiles(found.seconds, n=20)[-1]
                rows = (found.right, found.right_dropped, found.wrong, found.wrong_dropped)
                print(f"| {suffix} | {' | '.join(map(str, rows))} | {middle * 1000:.0f} | {high * 1000:.0f} |")
    print(f"servers that ran: {', '.join(servers.names) or 'ended'}; troubles: {servers.take_troubles()}")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=str(ROOT))
    parser.add_argument("--count", type=int, default=60, help="lines for each language")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    asyncio.run(measured(Path(given.folder).resolve(), given.count, given.seed))


if __name__ == "__main__":
    main()
