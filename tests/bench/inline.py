"""Completions at places of public histories: exact answers, likeness, latency; with our pieces and without.

    python -m tests.bench.inline --repo PATH:.py [--repo PATH:.go …] [--places N] [--requests none,ours,recent,plugin]
        [--kept FILE] [--url URL --name NAME]

All requests of a place go one after the other to the same server (the embedded model, or the one at URL). `none` has
prefix and suffix alone, `recent` the beginnings of recent files, `plugin` what a well-known editor plugin sends to
`/infill`: 256 lines before, 64 after, chunks of recent files. `--kept` keeps answers, so that a run can go on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from codeagent_lsp.config import IndexSettings, ModelSettings
from codeagent_lsp.errors import ModelTimeout
from codeagent_lsp.index.host import IndexHost
from codeagent_lsp.inline.completer import cut
from codeagent_lsp.inline.context import SLOW, Place, pieces_for, prefix_of, suffix_of, within
from codeagent_lsp.inline.workspace_source import WorkspaceSource
from codeagent_lsp.llm.factory import Surroundings
from codeagent_lsp.llm.fill.filler import Filler, FillRequest, Piece
from codeagent_lsp.llm.fill.open_filler import open_filler
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.bench.held_out import HeldOut, History

MAX_LINES = 12
CHUNK_LINES = 64
RECENT_LINES = 20
LINES_BEFORE, LINES_AFTER = 256, 64


class World:
    """One history with the index of its workspace."""

    def __init__(self, history: History, budget: int) -> None:
        self.history = history
        self.budget = budget
        folder = str(history.folder)

        async def unwatched() -> bool:
            return False

        self.index = IndexHost(lambda: [folder], IndexSettings, lambda status: None, unwatched)
        self._source = WorkspaceSource(self._view, self.index, lambda path: True, lambda: self.recent)
        self.recent: tuple[str, ...] = ()

    async def request(self, held: HeldOut, kind: str) -> FillRequest:
        """Return the request of one kind for a place whose workspace is laid."""
        place = Place(held.path, held.text, held.offset)
        texts = [
            (name, found.read_text(errors="replace")) for name in held.recent if (found := self._at(name)).is_file()
        ]
        budget = replace(SLOW, pieces=self.budget)
        prefix, suffix = prefix_of(place, budget), suffix_of(place, budget)
        pieces: tuple[Piece, ...] = ()
        if kind == "plugin":
            prefix = "".join(held.text[: held.offset].splitlines(keepends=True)[-LINES_BEFORE:])
            suffix = "".join(held.text[held.offset :].splitlines(keepends=True)[:LINES_AFTER])
            pieces = tuple(beginning(name, text, CHUNK_LINES) for name, text in texts[:4])
        elif kind == "recent":
            recent = (beginning(name, text, RECENT_LINES) for name, text in texts if name != held.path)
            pieces = tuple(reversed(within(recent, budget.pieces)))
        elif kind == "ours":
            self.recent = tuple(str(self._at(name)) for name in held.recent if self._at(name).is_file())
            pieces = pieces_for(place, await self._source.material(place), budget)
        return FillRequest(prefix, suffix, held.path, pieces, place.comment, SLOW.tokens)

    def _view(self) -> FileView:
        return FileView(Roots([str(self.history.folder)]), NoBuffers(), NothingStaged())

    def _at(self, name: str) -> Path:
        return self.history.folder / name


def beginning(path: str, text: str, lines: int) -> Piece:
    """Return the first lines of a text as a piece, as others send those of recent files."""
    return Piece(path, "\n".join(text.splitlines()[:lines]))


async def ask(filler: Filler, held: HeldOut, request: FillRequest) -> dict[str, Any]:
    """Return what became of a request: the answer as the editor would get it, seconds to the first text and in all."""
    place = Place(held.path, held.text, held.offset)
    began, first, received = time.perf_counter(), 0.0, ""
    with suppress(ModelTimeout):  # a prompt too long for this machine: the product gives up, too
        async with aclosing(filler.stream(request)) as texts:
            async for text in texts:
                first = first or time.perf_counter() - began
                received += text
                if cut(place, received, MAX_LINES).final or (held.kind == "line" and "\n" in received.lstrip("\n")):
                    break
    first = first or time.perf_counter() - began
    answer = cut(place, f"{received}\n", MAX_LINES).text
    return {"answer": answer, "first": first, "whole": time.perf_counter() - began}


async def measure(options: argparse.Namespace, filler: Filler, folder: Path) -> list[dict[str, Any]]:
    """Ask for all places, and return a record for each request."""
    kept = Path(options.kept) if options.kept else None
    records = [json.loads(line) for line in kept.read_text().splitlines()] if kept and kept.exists() else []
    known = {(each["repo"], each["commit"], each["path"], each["kind"], each["request"]) for each in records}
    for spec in options.repo:
        git, _, ending = spec.rpartition(":")
        history = History(git, ending, folder / Path(git).parent.name)
        world = World(history, options.pieces)
        for number, held in enumerate(history.places(options.places, options.seed)):
            wanted = [
                kind
                for kind in options.requests.split(",")
                if (history.name, held.commit, held.path, held.kind, kind) not in known
            ]
            if not wanted:
                continue
            history.lay(held)
            await world.index.refresh()
            for kind in wanted[:: -1 if number % 2 else 1]:
                found = await ask(filler, held, await world.request(held, kind))
                about = {"repo": history.name, "commit": held.commit, "path": held.path, "kind": held.kind}
                records.append({**about, "request": kind, "expected": held.expected, **found})
                if kept:
                    with kept.open("a") as file:
                        file.write(json.dumps(records[-1]) + "\n")
        await world.index.close()
    return records


def exact(record: dict[str, Any]) -> bool:
    """Return whether an answer is what was there: for a line its rest, for a block all of its lines."""
    return _plain(record) == _lines(record["expected"])


def likeness(record: dict[str, Any]) -> float:
    """Return how like the answer is to what was there, 0 to 1, by characters."""
    answer, expected = "\n".join(_plain(record)), "\n".join(_lines(record["expected"]))
    return SequenceMatcher(None, answer, expected, autojunk=False).ratio()


def typed_along(record: dict[str, Any]) -> tuple[int, int]:
    """Return how many keys of what was there could be typed along the answer, and how many keys there are."""
    expected, answer = record["expected"], record["answer"]
    same = next(
        (at for at, (a, b) in enumerate(zip(answer, expected, strict=False)) if a != b), min(len(answer), len(expected))
    )
    return same, len(expected)


def _plain(record: dict[str, Any]) -> list[str]:
    lines = _lines(record["answer"])
    return lines[:1] if record["kind"] == "line" else lines


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").rstrip().split("\n")]


def show(records: Sequence[dict[str, Any]]) -> None:
    """Print the table, over the places that every kind of request was asked at."""
    kinds = list(dict.fromkeys(each["request"] for each in records))
    print("| history | request | places | exact | lines | blocks | likeness | first text, s | whole, s | keys along |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    repos = list(dict.fromkeys(each["repo"] for each in records))
    for repo in [*repos, "all"]:
        for kind in kinds:
            mine = [each for each in records if each["request"] == kind and repo in (each["repo"], "all")]
            if mine:
                print(_row(repo, kind, mine))


def _row(repo: str, kind: str, mine: Sequence[dict[str, Any]]) -> str:
    good = [each for each in mine if exact(each)]
    lines, blocks = (sum(each["kind"] == sort for each in good) for sort in ("line", "block"))
    firsts = statistics.median(each["first"] for each in mine)
    wholes = statistics.median(each["whole"] for each in mine)
    same, keys = map(sum, zip(*map(typed_along, mine), strict=True))
    like = statistics.fmean(map(likeness, mine))
    return (
        f"| {repo} | {kind} | {len(mine)} | {len(good)} | {lines} | {blocks} | {like:.3f} | {firsts:.2f} | {wholes:.2f}"
        f" | {same} of {keys} |"
    )


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", action="append", required=True, help="a git folder and the ending of its sources")
    parser.add_argument("--places", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", default="none,ours")
    parser.add_argument("--pieces", type=int, default=SLOW.pieces, help="characters of pieces")
    parser.add_argument("--kept")
    parser.add_argument("--url")
    parser.add_argument("--name")
    options = parser.parse_args()
    embedded = ModelSettings(provider="embedded")
    settings = ModelSettings(base_url=options.url, name=options.name) if options.url else embedded
    found = await open_filler(settings, Surroundings(fills=True))
    assert found is not None, "no model that fills in"
    with tempfile.TemporaryDirectory() as folder:
        try:
            records = await measure(options, found.filler, Path(folder))
        finally:
            await found.filler.close()
    show(records)


if __name__ == "__main__":
    asyncio.run(main())
