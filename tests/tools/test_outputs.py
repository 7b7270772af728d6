"""Long results: kept outside of the workspace, named, read again, and the oldest given up."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.files.find_tools import Grep
from codeagent_lsp.tools.files.read_tools import ReadFile
from codeagent_lsp.tools.outputs import OutputStore, locate_output, name_of
from tests.tools.fakes import Bench
from tests.tools.test_executor import Probe

LINES = "".join(f"line {number}\n" for number in range(1, 301))


@pytest.fixture
def store(tmp_path: Path) -> OutputStore:
    return OutputStore(tmp_path / "state" / "outputs")


def with_outputs(folder: Path, store: OutputStore | None, text: str = LINES, limit: int = 1024) -> Bench:
    bench = Bench(folder / "work", [ReadFile(), Grep(), Probe(text)])
    bench.limits(max_output_bytes=limit)
    bench.context = bench.context.having((OutputStore, store))
    bench.executor = ToolExecutor(bench.registry, bench.context, lambda: bench.mode, bench.approvals)
    return bench


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.rglob("*.txt")}


# --- the store


def test_names_count_up_and_files_are_private(tmp_path: Path, store: OutputStore) -> None:
    assert not (tmp_path / "state").exists()
    assert [store.keep("a"), store.keep("ü")] == ["@output/1.txt", "@output/2.txt"]
    assert files(tmp_path) == {"1.txt": "a", "2.txt": "ü"}
    path = Path(store.view.roots.resolve("@output/1.txt"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_resumed_session_goes_on_counting(tmp_path: Path, store: OutputStore) -> None:
    store.keep("a")
    store.keep("b")
    assert OutputStore(tmp_path / "state" / "outputs").keep("c") == "@output/3.txt"


def test_numbers_are_not_used_twice(tmp_path: Path) -> None:
    store = OutputStore(tmp_path, total_bytes=10)
    assert [store.keep("x" * 8) for _ in range(3)] == ["@output/1.txt", "@output/2.txt", "@output/3.txt"]
    assert files(tmp_path) == {"3.txt": "x" * 8}


def test_the_oldest_give_way(tmp_path: Path) -> None:
    store = OutputStore(tmp_path, total_bytes=100)
    for number in range(12):
        store.keep(f"{number}" * (30 // len(str(number))))
    assert sorted(files(tmp_path)) == ["10.txt", "11.txt", "12.txt"]


def test_one_result_is_bounded(tmp_path: Path) -> None:
    store = OutputStore(tmp_path, file_bytes=1000)
    store.keep(LINES)
    (text,) = files(tmp_path).values()
    assert len(text) < 1100
    assert text.startswith("line 1\n")
    assert text.endswith("line 300\n")
    assert "left out" in text
    assert store.view.read(store.view.roots.resolve("@output/1.txt")).text == text


def test_text_that_is_no_unicode(tmp_path: Path, store: OutputStore) -> None:
    store.keep("a\ud800b")
    assert files(tmp_path) == {"1.txt": "a?b"}


def test_a_file_is_taken_over(tmp_path: Path, store: OutputStore) -> None:
    spool = tmp_path / "spool.log"
    spool.write_text(LINES)
    spool.chmod(0o644)
    assert store.adopt(str(spool)) == "@output/1.txt"
    assert not spool.exists()
    path = Path(store.view.roots.resolve("@output/1.txt"))
    assert path.read_text() == LINES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_too_long_is_cut(tmp_path: Path) -> None:
    store = OutputStore(tmp_path / "out", file_bytes=1000)
    spool = tmp_path / "spool.log"
    spool.write_text(LINES)
    store.adopt(str(spool))
    (text,) = files(tmp_path).values()
    assert len(text) < 1100
    assert text.startswith("line 1\n")
    assert text.endswith("line 300\n")
    assert not spool.exists()


def test_a_file_that_is_not_there(tmp_path: Path, store: OutputStore) -> None:
    with pytest.raises(FileNotFoundError):
        store.adopt(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("@output/1.txt", "@output/1.txt"),
        ("./@output/12.txt", "@output/12.txt"),
        ("@output/0.txt", ""),
        ("@output/../1.txt", ""),
        ("@output/1.txt/..", ""),
        ("@output/1", ""),
        ("@output", ""),
        ("src/@output/1.txt", ""),
        ("@output/1.txt\n", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_which_paths_name_a_result(path: object, name: str) -> None:
    assert name_of(path) == name


def test_without_a_store_it_is_a_path_like_others(bench: Bench) -> None:
    view, path = locate_output(bench.view, None, "@output/1.txt")
    assert view is bench.view
    assert path == bench.path("@output/1.txt")


def test_a_result_that_is_gone_is_refused(bench: Bench, store: OutputStore) -> None:
    store.keep("a")
    with pytest.raises(FileRefused, match=r"@output/2\.txt is not kept"):
        locate_output(bench.view, store, "@output/2.txt")


# --- the tools


async def test_a_long_result_is_cut_kept_and_named(tmp_path: Path, store: OutputStore) -> None:
    bench = with_outputs(tmp_path, store)
    result = await bench.call("probe")
    found = re.search(r"\n\[\.\.\. (\d+) characters left out; all of it: read_file (\S+) \.\.\.\]\n", result.text)
    assert found
    assert len(LINES) == len(result.text) - len(found[0]) + int(found[1]) + 0
    assert len(result.text) < 1200
    whole = await bench.call("read_file", path=found[2], start_line=150, end_line=152)
    assert whole.text.startswith("150|line 150\n151|line 151\n152|line 152\n")
    assert bench.disk() == {}


async def test_a_short_result_is_not_kept(tmp_path: Path, store: OutputStore) -> None:
    result = await with_outputs(tmp_path, store, "short").call("probe")
    assert result.text == "short"
    assert files(tmp_path) == {}


async def test_without_a_store_a_long_result_is_only_cut(tmp_path: Path) -> None:
    result = await with_outputs(tmp_path, None).call("probe")
    assert "characters left out ...]" in result.text


async def test_what_cannot_be_kept_is_only_cut(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = await with_outputs(tmp_path, OutputStore(tmp_path / "file" / "no")).call("probe")
    assert result.ok
    assert "characters left out ...]" in result.text


async def test_reading_a_kept_result_does_not_keep_it_again(tmp_path: Path, store: OutputStore) -> None:
    bench = with_outputs(tmp_path, store)
    await bench.call("probe")
    result = await bench.call("read_file", path="@output/1.txt")
    assert "characters left out ...]" in result.text
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("ripgrep", [True, False])
async def test_lines_are_found_in_a_kept_result(
    tmp_path: Path, store: OutputStore, monkeypatch: pytest.MonkeyPatch, *, ripgrep: bool
) -> None:
    if not ripgrep:
        monkeypatch.setattr("shutil.which", lambda *_: None)
    bench = with_outputs(tmp_path, store)
    bench.write("a.txt", "line 77\n")
    await bench.call("probe")
    result = await bench.call("grep", pattern="line 7[78]$", path="@output/1.txt", context=1)
    assert result.text.splitlines() == [
        *("@output/1.txt-76-line 76", "@output/1.txt:77:line 77"),
        *("@output/1.txt:78:line 78", "@output/1.txt-79-line 79"),
    ]


async def test_a_search_of_the_workspace_does_not_see_results(tmp_path: Path, store: OutputStore) -> None:
    bench = with_outputs(tmp_path, store)
    bench.write("a.txt", "line 77\n")
    await bench.call("probe")
    assert (await bench.call("grep", pattern="line 77")).text == "a.txt:1:line 77"


@pytest.mark.parametrize("tool", ["read_file", "grep"])
async def test_the_model_is_told_when_a_result_is_gone(tmp_path: Path, store: OutputStore, tool: str) -> None:
    bench = with_outputs(tmp_path, store)
    arguments: dict[str, Any] = {"path": "@output/9.txt"} | ({"pattern": "x"} if tool == "grep" else {})
    result = await bench.call(tool, **arguments)
    assert result.status == "failed"
    assert "is not kept any more" in result.text


async def test_a_link_in_the_workspace_leads_nowhere(tmp_path: Path, store: OutputStore) -> None:
    bench = with_outputs(tmp_path, store)
    (bench.root / "@output").symlink_to("/etc")
    await bench.call("probe")
    assert (await bench.call("read_file", path="@output/1.txt", end_line=1)).text.startswith("1|line 1\n")


def test_tools_have_no_store_unless_given_one(bench: Bench) -> None:
    context: ToolContext = bench.context
    assert context.get(OutputStore) is None
