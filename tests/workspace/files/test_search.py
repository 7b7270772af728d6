"""Searching: the same answer with and without ripgrep, in every layer, and an end in time."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import time
from pathlib import Path

import pytest

from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.workspace.files import search
from codeagent_lsp.workspace.files.search import GrepResult, glob, grep
from tests.children import children
from tests.examples import volume
from tests.workspace.file_fakes import Workspace, workspace

ENGINES = [
    pytest.param("rg", marks=pytest.mark.skipif(shutil.which("rg") is None, reason="no ripgrep here")),
    pytest.param(None, id="python"),
]


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return workspace(tmp_path / "ws")


def _short(ws: Workspace, result: GrepResult) -> list[str]:
    return [f"{os.path.relpath(match.path, ws.root)}:{match.line}:{match.text}" for match in result.matches]


def _fill(ws: Workspace) -> None:
    """One of everything that two engines could see differently."""
    ws.write(".gitignore", "*.log\n/out/\n!keep.log\n")
    ws.write("sub/.gitignore", "local.txt\n!again.log\n")
    ws.write(".codeagentignore", "*.csv\n")
    ws.write(".ignore", "*.py\n")  # means nothing here
    for name in ("a.log", "keep.log", "out/o.txt", "sub/local.txt", "sub/again.log", "t.csv", ".hidden/h.txt"):
        ws.write(name, f"needle in {name}\n")
    for name in ("node_modules/m.js", ".git/config", "__pycache__/x.py", "out/deep/p.py"):
        ws.write(name, "needle\n")
    ws.write("b/x.py", "def needle():\n    return 'Needle'\n\n")
    ws.write("b.py", "x\r\nneedle\r\nlast needle")
    ws.write("mac.txt", "one\rneedle\rthree\r")
    ws.write("mixed.txt", "one\rtwo\nneedle\r\nfour")
    ws.write("form.txt", "a\x0cneedle\u2028b\x85c\nneedle2\n")
    ws.write("bom.txt", b"\xef\xbb\xbfneedle at start\n")
    ws.write("wide.txt", b"\xff\xfe" + "wide needle\n".encode("utf-16-le"))
    ws.write("latin.txt", b"caf\xe9 needle\n\xe9\n")
    ws.write("unicode.txt", "größe café ı K ² ⓐ e\u0301 needle\n日本 needle\n")
    ws.write("bin.dat", b"needle\n\0needle\n")
    ws.write("big.txt", "needle\n" * 200_000)
    ws.write("long.txt", "a" * 5000 + "needle" + "b" * 5000 + "\n")
    ws.write("empty.txt", "")
    ws.write("blank.txt", "\n\n")
    (ws.root / "ln.txt").symlink_to("b.py")
    ws.write("open.py", "disk needle\n")
    ws.open("open.py", "no\nbuffer needle\n", 3)
    ws.write("staged.py", "disk needle\n")
    ws.stage("staged.py", "staged needle\n")
    ws.write("deleted.py", "needle\n")
    ws.stage("deleted.py", None)
    ws.stage("brand/new.py", "new needle\n")
    ws.stage("brand/new.log", "ignored needle\n")
    ws.buffers.open("untitled:U-1", "needle")


PATTERNS = [
    "needle",
    "^needle",
    "needle$",
    r"\bneedle\b",
    "Needle",
    r"n[e]+dle",
    r"(?i)NEEDLE",
    r"(?:x|needle)\s*$",
    r"\w+",
    r"^\w$",
    r"^.$",
    r"^\W",
    "^$",
    "",
    "é",
    "caf.",
    r"^caf\w needle",
    "größe",
    "日本",
    r"\d",
    r"[²]",
    r"\S²\s",
    r"(?<=last )needle",
    r"(n)(e)\2",
    "needle++",
    r"\Aneedle",
    r"needle\Z",
    r"\[",
    "{",
    r"\.",
    "a{3}",
    "k",
    "i",
    r"[[:alpha:]]",
    r"\u00e9",
    "x|y",
    "[^a-z ]",
    "--",
    "-e",
    r"\x0c",
]


@pytest.mark.skipif(shutil.which("rg") is None, reason="compares with ripgrep")
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
@pytest.mark.parametrize("case_insensitive", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_both_engines_agree(ws: Workspace, pattern: str, case_insensitive: bool) -> None:
    _fill(ws)
    (ws.root / "big.txt").unlink()
    answers = [
        await grep(ws.view, pattern, case_insensitive=case_insensitive, context=1, max_results=1000, ripgrep=engine)
        for engine in ("rg", None)
    ]
    assert _short(ws, answers[0]) == _short(ws, answers[1])
    assert answers[0] == answers[1]


# What ripgrep must be able to narrow down; for the rest of PATTERNS a full walk is right.
NARROWED = [
    "needle",
    "^needle",
    "needle$",
    r"\bneedle\b",
    r"n[e]+dle",
    r"\w+",
    "",
    "é",
    r"\d",
    "x|y",
    "--",
    r"\[",
    "größe",
]


@pytest.mark.skipif(shutil.which("rg") is None, reason="needs ripgrep")
@pytest.mark.parametrize("pattern", NARROWED)
async def test_ripgrep_is_really_asked(ws: Workspace, pattern: str) -> None:
    ws.write("hit.txt", "needle é größe [ 1 x --\r\nneedle\r\n")
    ws.write("miss.txt", "~\n")
    listed = await search._ripgrep(ws.view, "rg", re.compile(pattern), None)
    assert listed is not None
    assert ws.path("hit.txt") in listed
    assert pattern == "" or ws.path("miss.txt") not in listed


_TEXT = [*"aAbiIkKsSß_19 .-[$^{", "\r\n", "\n", "\n", "\r", "\t", "é", "e\u0301", "ı", "İ", "ſ", "K", "²", "Ⅷ", "ⓐ"]
_TEXT += ["\u200d", "‿", "\x1c", "\x0c", "\x85", "\u2028", "日", "🎉", "\ufeff", "ǅ", "µ", "Σ", "ς"]
_PIECES = [*"abikKsSß1é日ıµσ", ".", r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", r"\b", r"\B", "^", "$", "[^a]", "[a-z]"]
_PIECES += [r"\.", "(?:a|b)", "a*", "i+", "[é²]", r"\t", "|", r"\-", r"\$", "ſ", "k?"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("rg") is None, reason="compares with ripgrep")
async def test_engines_agree_on_random_texts_and_patterns(ws: Workspace) -> None:
    chance = random.Random(7)
    for number in range(60):
        text = "".join(chance.choices(_TEXT, k=chance.randrange(25)))
        codec = chance.choice(["utf-8", "utf-8", "latin-1", "utf-16"])
        ws.write(f"{number:02}", text.encode(codec, "replace"))
    asked = 0
    patterns = volume(150)
    for _ in range(patterns):
        pattern = "".join(chance.choices(_PIECES, k=chance.randrange(1, 5)))
        case = chance.random() < 0.4
        ours, theirs = [
            await grep(ws.view, pattern, case_insensitive=case, max_results=5000, ripgrep=engine)
            for engine in (None, "rg")
        ]
        assert ours == theirs, pattern
        compiled = re.compile(pattern, re.IGNORECASE if case else 0)
        asked += await search._ripgrep(ws.view, "rg", compiled, None) is not None
    assert asked > patterns / 2  # else little was compared


@pytest.mark.parametrize("engine", ENGINES)
class TestGrep:
    async def test_every_layer_and_nothing_ignored(self, ws: Workspace, engine: str | None) -> None:
        _fill(ws)
        result = await grep(ws.view, "needle", max_results=1000, ripgrep=engine)
        assert not result.truncated
        short = [line for line in _short(ws, result) if not line.startswith("long.txt")]
        assert short == [
            ".hidden/h.txt:1:needle in .hidden/h.txt",
            "b/x.py:1:def needle():",
            "b.py:2:needle",
            "b.py:3:last needle",
            "bom.txt:1:needle at start",
            "brand/new.py:1:new needle",
            "form.txt:1:a\x0cneedle\u2028b\x85c",
            "form.txt:2:needle2",
            "keep.log:1:needle in keep.log",
            "latin.txt:1:café needle",
            "mac.txt:2:needle",
            "mixed.txt:3:needle",
            "open.py:2:buffer needle",
            "staged.py:1:staged needle",
            "sub/again.log:1:needle in sub/again.log",
            "unicode.txt:1:größe café ı K ² ⓐ e\u0301 needle",
            "unicode.txt:2:日本 needle",
            "wide.txt:1:wide needle",
        ]

    async def test_path_glob_case_and_context(self, ws: Workspace, engine: str | None) -> None:
        ws.write("src/a.py", "one\nTWO\nthree\nfour\n")
        ws.write("src/a.txt", "two\n")
        ws.write("lib/a.py", "two\n")
        result = await grep(
            ws.view, "two", path=ws.path("src"), glob="*.py", case_insensitive=True, context=1, ripgrep=engine
        )
        [match] = result.matches
        assert (match.path, match.line, match.text) == (ws.path("src/a.py"), 2, "TWO")
        assert (match.before, match.after) == (("one",), ("three",))

    async def test_a_single_file_and_an_ignored_folder(self, ws: Workspace, engine: str | None) -> None:
        ws.write(".gitignore", "*.log\n")
        ws.write("a.log", "x\n")
        ws.write("node_modules/m/i.js", "x\n")
        ws.write("b.txt", "x\n")
        for path, expected in [
            ("a.log", ["a.log:1:x"]),
            ("b.txt", ["b.txt:1:x"]),
            ("node_modules", ["node_modules/m/i.js:1:x"]),
            ("none", []),
        ]:
            assert _short(ws, await grep(ws.view, "x", path=ws.path(path), ripgrep=engine)) == expected

    async def test_the_limit_keeps_the_first(self, ws: Workspace, engine: str | None) -> None:
        for number in range(5):
            ws.write(f"f{number}", "x\n" * 3)
        result = await grep(ws.view, "x", max_results=4, ripgrep=engine)
        assert _short(ws, result) == ["f0:1:x", "f0:2:x", "f0:3:x", "f1:1:x"]
        assert result.truncated
        assert not (await grep(ws.view, "x", max_results=15, ripgrep=engine)).truncated

    async def test_long_lines_are_cut_around_the_match(self, ws: Workspace, engine: str | None) -> None:
        ws.write("min.js", "a" * 5000 + "needle" + "b" * 5000)
        [match] = (await grep(ws.view, "needle", ripgrep=engine)).matches
        assert len(match.text) == search.MAX_LINE + 2
        assert "needle" in match.text and match.text.startswith("…") and match.text.endswith("…")

    async def test_several_folders_in_their_order(self, tmp_path: Path, engine: str | None) -> None:
        (tmp_path / "a").mkdir()
        ws = workspace(tmp_path / "z", tmp_path / "a")
        (tmp_path / "a/one").write_text("x\n")
        ws.write("two", "x\n")
        result = await grep(ws.view, "x", ripgrep=engine)
        assert [Path(match.path).name for match in result.matches] == ["two", "one"]

    async def test_a_workspace_inside_an_ignored_folder(self, tmp_path: Path, engine: str | None) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / ".gitignore").write_text("*.py\n")
        ws = workspace(tmp_path / "node_modules/pkg")
        ws.write("lib/a.py", "x\n")
        ws.write("node_modules/b.py", "x\n")
        assert _short(ws, await grep(ws.view, "x", ripgrep=engine)) == ["lib/a.py:1:x"]

    async def test_names_are_only_names(self, ws: Workspace, engine: str | None) -> None:
        odd = os.fsdecode(b"caf\xe9")
        for name in ("-rf", "a b;$(touch pwned)", "new\nline", odd, "'quote\""):
            ws.write(f"d/{name}", "x\n")
        result = await grep(ws.view, "x", path=ws.path("d"), ripgrep=engine)
        assert len(result.matches) == 5
        assert not (ws.root / "pwned").exists()

    async def test_a_pattern_that_runs_away_ends_in_time(self, ws: Workspace, engine: str | None) -> None:
        ws.write("a.txt", "a" * 40 + "!\n")
        start, ticks = time.monotonic(), 0
        task = asyncio.create_task(grep(ws.view, r"^(a|a)*$", time_limit=0.7, ripgrep=engine))
        while not task.done():
            await asyncio.sleep(0.02)
            ticks += 1
        if engine is None:  # ripgrep knows at once that nothing matches
            with pytest.raises(ToolFailed) as caught:
                await task
            assert caught.value.code is ErrorCode.TIMEOUT
            assert ticks > 10  # the loop was free all the while
        assert time.monotonic() - start < 5

    async def test_no_child_is_left_behind(self, ws: Workspace, engine: str | None) -> None:
        others = children()
        ws.write("a.txt", "a" * 40 + "!\n")
        task = asyncio.create_task(grep(ws.view, r"^(a|a)*!?$(?!b)x", ripgrep=engine))
        await asyncio.sleep(0.4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() <= others  # not even ended ones


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a\nb", "x" * 3000, r"\p{L}", "(?P<n"])
async def test_a_bad_pattern_comes_back_with_advice(ws: Workspace, pattern: str) -> None:
    with pytest.raises(ToolRetry, match="Python regular expressions"):
        await grep(ws.view, pattern)


async def test_a_bad_pattern_offers_the_literal(ws: Workspace) -> None:
    with pytest.raises(ToolRetry) as caught:
        await grep(ws.view, "foo(bar")
    assert r"foo\(bar" in str(caught.value)


async def test_a_missing_ripgrep_is_done_without(ws: Workspace) -> None:
    ws.write("a", "x\n")
    assert len((await grep(ws.view, "x", ripgrep="no-such-program")).matches) == 1


async def test_settings_of_ripgrep_do_not_matter(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    config = ws.write("rc", "--invert-match\n--glob=!*.py\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    ws.write("a.py", "needle\n")
    assert _short(ws, await grep(ws.view, "needle")) == ["a.py:1:needle"]


class TestGlob:
    async def test_newest_first_with_staged_and_open_ones_ahead(self, ws: Workspace) -> None:
        for age, name in enumerate(("new.py", "mid.py", "old.py", "x.txt", "open.py")):
            os.utime(ws.write(name, ""), (1e9 - age, 1e9 - age))
        ws.open("open.py", "")
        ws.stage("sub/staged.py", "")
        ws.stage("mid.py", None)
        found = (await glob(ws.view, "**/*.py")).paths
        assert [Path(path).name for path in found] == ["open.py", "staged.py", "new.py", "old.py"]

    async def test_below_a_path_and_bounded(self, ws: Workspace) -> None:
        ws.write(".gitignore", "*.gen.py")
        for name in ("src/a.py", "src/deep/b.py", "src/c.gen.py", "d.py"):
            ws.write(name, "")
        below = await glob(ws.view, "*.py", ws.path("src"))
        assert {Path(path).name for path in below.paths} == {"a.py", "b.py"}
        direct = await glob(ws.view, "./*.py", ws.path("src"))
        assert {Path(path).name for path in direct.paths} >= {"a.py"}
        cut = await glob(ws.view, "*.py", limit=2)
        assert len(cut.paths) == 2 and cut.truncated and not below.truncated

    async def test_a_bad_pattern(self, ws: Workspace) -> None:
        with pytest.raises(ToolRetry):
            await glob(ws.view, "")
