"""Searching in every layer against the simplest search there is: read each file, try each line."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path

import pytest

from codeagent_lsp.workspace.files.search import glob, grep
from tests.workspace.file_fakes import Workspace, workspace

ENGINES = [
    pytest.param("rg", marks=pytest.mark.skipif(shutil.which("rg") is None, reason="no ripgrep here")),
    pytest.param(None, id="python"),
]
WORDS = ("alpha", "Beta", "gamma_1", "(x)", "f(y)", "  ", "é", "字", "a.b", "$", "", "αβγ", "x = 1", "x\x0cy", "\u2028")
PIECES = (
    "a",
    "l",
    "B",
    r"\w",
    r"\s",
    ".",
    "[a-c]",
    "[^a]",
    "^",
    "$",
    r"\(",
    "x?",
    "a+",
    "(?:a|b)",
    r"\b",
    "é",
    "字",
    "=",
)


def fill(ws: Workspace, chance: random.Random) -> dict[str, str]:
    """Files in all layers, and what a run sees of them."""
    seen: dict[str, str] = {}
    for number in range(25):
        name = f"{chance.choice(['', 'src/', 'src/deep/', 'lib/'])}{number:02}.{chance.choice(['py', 'txt', 'md'])}"
        text = "".join(chance.choice(WORDS) + chance.choice(["\n", "\n", "\r\n", " "]) for _ in range(8))
        layer = chance.randrange(5)
        if layer != 4:
            ws.write(name, text)
            seen[name] = text
        if layer == 1:
            ws.open(name, text.upper())
            seen[name] = text.upper()
        if layer == 2:
            ws.stage(name, None)
            del seen[name]
        if layer in (3, 4):
            ws.stage(name, text[::-1])
            seen[name] = text[::-1]
    ws.write("bin.py", b"alpha\0")
    return seen


def below(ws: Workspace, path: str) -> str:
    return os.path.relpath(path, ws.root)


def naive(seen: dict[str, str], pattern: str, flags: int, wanted: str) -> list[tuple[str, int, str]]:
    compiled, found = re.compile(pattern, flags), []
    for name in sorted(seen, key=lambda name: name.encode().split(b"/")):
        lines = re.split("\r\n|\r|\n", seen[name])
        if lines[-1] == "":
            lines.pop()
        if name.endswith(wanted):
            found += [(name, number, line) for number, line in enumerate(lines, 1) if compiled.search(line)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
async def test_random_patterns_find_what_the_naive_search_finds(tmp_path: Path, engine: str | None) -> None:
    chance = random.Random(50)
    hits = 0
    for number in range(4):
        ws = workspace(tmp_path / str(number))
        seen = fill(ws, chance)
        for _ in range(20):
            pattern = "".join(chance.choices(PIECES, k=chance.randrange(1, 4)))
            folded, wanted = chance.random() < 0.3, chance.choice(["", ".py"])
            try:
                expected = naive(seen, pattern, re.IGNORECASE if folded else 0, wanted)
            except re.error:
                continue
            result = await grep(
                ws.view,
                pattern,
                glob=f"*{wanted}" if wanted else None,
                case_insensitive=folded,
                max_results=10_000,
                ripgrep=engine,
            )
            ours = [(below(ws, hit.path), hit.line, hit.text) for hit in result.matches]
            assert ours == expected, pattern
            assert not result.truncated
            hits += len(ours)
    assert hits > 500


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
async def test_context_is_the_lines_around(tmp_path: Path, engine: str | None) -> None:
    ws = workspace(tmp_path / "ws")
    lines = [f"line {number}" for number in range(1, 30)]
    ws.write("a.txt", "\n".join(lines))
    for context in (0, 1, 3, 40):
        result = await grep(ws.view, r"line (1|15|29)$", context=context, ripgrep=engine)
        assert [hit.line for hit in result.matches] == [1, 15, 29]
        for hit in result.matches:
            at = hit.line - 1
            assert hit.before == tuple(lines[max(0, at - context) : at])
            assert hit.after == tuple(lines[at + 1 : at + 1 + context])


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 7, 24, 25, 26])
async def test_the_limit_is_exact(tmp_path: Path, limit: int) -> None:
    ws = workspace(tmp_path / "ws")
    for number in range(5):
        ws.write(f"{number}.txt", "hit\n" * 5)
    result = await grep(ws.view, "hit", max_results=limit)
    assert len(result.matches) == min(limit, 25)
    assert result.truncated == (limit < 25)
    names = await glob(ws.view, "*.txt", limit=limit)
    assert (len(names.paths), names.truncated) == (min(limit, 5), limit < 5)


GLOBS = {
    "*.py": ["a.py", "src/b.py", "src/deep/c.py"],
    "src/*.py": ["src/b.py"],
    "src/**/*.py": ["src/b.py", "src/deep/c.py"],
    "**/c.*": ["src/deep/c.py", "src/deep/c.ts"],
    "*.{py,ts}": ["a.py", "src/b.py", "src/deep/c.py", "src/deep/c.ts"],
    "/a.py": ["a.py"],
    "./src/b.py": ["src/b.py"],
    "[ab].py": ["a.py", "src/b.py"],
    "?.md": ["x.md"],
    "deep": [],
    "src/deep/**": ["src/deep/c.py", "src/deep/c.ts", "src/deep/new.md"],
    "new.md": ["src/deep/new.md"],
    "gone.py": [],
    "*.log": [],
}


@pytest.mark.parametrize(("pattern", "names"), GLOBS.items())
async def test_globs_over_all_layers(tmp_path: Path, pattern: str, names: list[str]) -> None:
    ws = workspace(tmp_path / "ws")
    ws.write(".gitignore", "*.log\n")
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/c.ts", "x.md", "gone.py", "a.log"):
        ws.write(name, "")
    ws.stage("gone.py", None)
    ws.stage("src/deep/new.md", "")
    result = await glob(ws.view, pattern)
    assert sorted(below(ws, path) for path in result.paths) == names
