"""Results of edits with their diagnostics: of the staged text, only new and fixed ones, or "not known yet"."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from codeagent_lsp.language_servers.session_servers import FoundDiagnostics
from codeagent_lsp.tools import edit_diagnostics
from codeagent_lsp.tools.edit_diagnostics import AfterEdits, BeforeAndAfter, EditDiagnostics
from codeagent_lsp.workspace.files.file_view import FileView, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.tools.fakes import Bench


class WordServer:
    """Finds the word BAD as an error, in `.py` files; as slow as `seconds`, and without an end for `slow` ones."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slow: set[str] = set()
        self.asked: list[tuple[str, ...]] = []

    async def diagnostics(
        self, view: FileView, paths: Sequence[str], seconds: float
    ) -> dict[str, tuple[FoundDiagnostics, ...] | None]:
        self.asked.append(tuple(paths))
        checked = [path for path in paths if path.endswith(".py")]
        if self.seconds > seconds or self.slow & {Path(path).name for path in paths}:
            await asyncio.sleep(max(seconds, 0))
            return dict.fromkeys(checked)
        await asyncio.sleep(self.seconds)
        return {path: (FoundDiagnostics("word", _items(view.read(path).text), view.read(path).text, "utf-16"),)
                for path in checked}  # fmt: skip


def _items(text: str) -> list[object]:
    return [
        {"range": {"start": {"line": number, "character": line.index("BAD")}, "end": {"line": number, "character": 99}},
         "message": f"BAD in {line!r}", "severity": 1}
        for number, line in enumerate(text.split("\n")) if "BAD" in line
    ]  # fmt: skip


@pytest.fixture
def server(bench: Bench) -> WordServer:
    made = WordServer()
    base = FileView(Roots([str(bench.root)]), bench.buffers, NothingStaged())
    bench.add((AfterEdits, AfterEdits(EditDiagnostics(BeforeAndAfter(base, bench.view), made, None))))
    return made


async def test_only_what_the_edit_made(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "x = 'BAD old'\ny = 1\n")
    result = await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 'BAD new'")
    assert result.text.splitlines()[-2:] == ["Diagnostics: 1 new:", "a.py:2:6 error BAD in \"y = 'BAD new'\""]


async def test_nothing_to_say_adds_nothing(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "x = 'BAD old'\ny = 1\n")
    result = await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 2")
    assert "Diagnostics" not in result.text


async def test_the_end_of_trouble_is_told_once(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "y = 1\n")
    await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 'BAD'")
    result = await bench.call("edit_file", path="a.py", old_str="y = 'BAD'", new_str="y = 2")
    assert result.text.splitlines()[-1] == "Diagnostics: no new problems any more."
    result = await bench.call("edit_file", path="a.py", old_str="y = 2", new_str="y = 3")
    assert "Diagnostics" not in result.text


async def test_what_was_told_is_not_told_after_another_edit(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "y = 1\n")
    bench.write("b.py", "y = 'BAD old'\n")
    await bench.call("edit_file", path="b.py", old_str="BAD old", new_str="good")
    await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 'BAD'")
    result = await bench.call("write_file", path="c.py", content="x = 1\n")
    assert "Diagnostics" not in result.text
    result = await bench.call("edit_file", path="b.py", old_str="good", new_str="BAD again")
    assert "Diagnostics: 1 new:" in result.text and "1 new from your earlier edits" in result.text


async def test_fixed(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "y = 'BAD'\n")
    result = await bench.call("edit_file", path="a.py", old_str="y = 'BAD'", new_str="y = 2")
    assert result.text.splitlines()[-1] == "Diagnostics: 1 fixed."


async def test_unsaved_text_is_the_base(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "y = 1\n")
    bench.open("a.py", "y = 1\nz = 'BAD typed'\n")
    result = await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 2")
    assert "Diagnostics" not in result.text


@pytest.mark.slow
async def test_what_is_late_is_not_known_yet(bench: Bench, server: WordServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_diagnostics, "REMARK_SECONDS", 0.2)
    bench.write("a.py", "y = 1\n")
    server.seconds = 10.0
    started = time.monotonic()
    result = await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 'BAD'")
    assert time.monotonic() - started < 5
    assert result.text.splitlines()[-1] == "Diagnostics of a.py: not known yet."
    server.seconds = 0.0
    result = await bench.call("edit_file", path="a.py", old_str="y = 'BAD'", new_str="y = 'BAD 2'")
    assert "1 new" in result.text


@pytest.mark.slow
async def test_what_was_late_is_told_with_the_next_result_and_waited_for_once(
    bench: Bench, server: WordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_diagnostics, "REMARK_SECONDS", 1.0)
    bench.write("a.py", "y = 1\nz = 1\n")
    server.seconds = 30.0
    await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 'BAD'")
    started = time.monotonic()
    result = await bench.call("edit_file", path="a.py", old_str="z = 1", new_str="z = 2")
    assert "Diagnostics" not in result.text and time.monotonic() - started < 1
    server.seconds = 0.0
    assert "a.py:1:6 error BAD" in (await bench.call("list_dir", path=".")).text
    assert "Diagnostics" not in (await bench.call("list_dir", path=".")).text


@pytest.mark.slow
async def test_that_all_is_well_is_told_where_it_was_not_known(
    bench: Bench, server: WordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_diagnostics, "REMARK_SECONDS", 0.2)
    bench.write("a.py", "y = 1\n")
    server.seconds = 30.0
    await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 2")
    server.seconds = 0.0
    assert "Diagnostics: no new problems." in (await bench.call("list_dir", path=".")).text


async def test_what_only_its_syntax_was_checked_of_is_said_once_for_a_kind(bench: Bench, server: WordServer) -> None:
    first = await bench.call("write_file", path="a.js", content="let x = 1;\n")
    second = await bench.call("write_file", path="b.js", content="let x = 1;\n")
    assert f"Diagnostics of a.js: {edit_diagnostics.ONLY_SYNTAX}." in first.text
    assert "Diagnostics" not in second.text


@pytest.mark.slow
async def test_slow_files_beside_do_not_hide_what_changed(
    bench: Bench, server: WordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_diagnostics, "REMARK_SECONDS", 1.0)
    server.slow.add("use.py")
    bench.write("a.py", "def total(x):\n    return 'BAD old'\n")
    bench.write("use.py", "from a import total\n")
    result = await bench.call("edit_file", path="a.py", old_str="def total(x):", new_str="def total(BAD, x):")
    told = result.text.splitlines()[-3:]
    assert told[0] == "Diagnostics: 1 new:"
    assert told[2] == "Diagnostics of use.py: not known yet."


async def test_typing_meanwhile_makes_them_unknown(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "y = 1\n")
    await bench.call("edit_file", path="a.py", old_str="y = 1", new_str="y = 2")
    bench.open("a.py", "typed = 1\ny = 1\n")
    result = await bench.call("edit_file", path="a.py", old_str="y = 2", new_str="y = 'BAD'")
    assert result.text.splitlines()[-1] == "Diagnostics of a.py: not known yet."


async def test_a_caller_that_breaks_is_found(bench: Bench, server: WordServer) -> None:
    """The fake finds nothing there, but the file that uses the changed name is asked about."""
    bench.write("a.py", "def total(x):\n    return x\n")
    bench.write("b.py", "from a import total\n\ntotal(1)\n")
    await bench.call("edit_file", path="a.py", old_str="def total(x):", new_str="def total(x, y):")
    assert bench.path("b.py") in server.asked[-1]


async def test_files_without_a_server_are_checked_for_their_syntax(bench: Bench, server: WordServer) -> None:
    bench.write("a.js", "const a = 1;\n")
    result = await bench.call("edit_file", path="a.js", old_str="const a = 1;", new_str="const a = (1;")
    assert "Diagnostics: 1 new:" in result.text
    assert "a.js:1" in result.text.splitlines()[-2]


async def test_new_and_deleted_files(bench: Bench, server: WordServer) -> None:
    bench.write("old.py", "BAD = 1\n")
    result = await bench.call("write_file", path="new.py", content="BAD = 2\n")
    assert "new.py:1:1 error BAD" in result.text
    result = await bench.call("delete_file", path="old.py")
    assert "Diagnostics: 1 fixed." in result.text and "1 new from your earlier edits" in result.text


async def test_the_base_is_checked_once(bench: Bench, server: WordServer) -> None:
    bench.write("a.py", "y = 1\n")
    for number in range(1, 5):
        await bench.call("edit_file", path="a.py", old_str=f"y = {number}", new_str=f"y = {number + 1}")
    assert len(server.asked) == 5
