"""`index`, `map` and `search`: what is printed, in both languages, exit codes, and the file the server uses too."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from codeagent_lsp import cli
from codeagent_lsp.index.scan import scan
from codeagent_lsp.index.store import open_index
from codeagent_lsp.index.vectors import PLACES_FILE, ChunkPlace, Places
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal import index
from codeagent_lsp.terminal.index import IndexLocation, with_index
from tests.index.rig import SHOP
from tests.index.workspaces import children, many, settle, write


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    write(place, SHOP)
    settle()
    return place


def store_path(root: Path) -> Path:
    return workspace_state([str(root.resolve())]) / "index.sqlite"


class TestIndex:
    def test_built_then_up_to_date(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["index", "--workspace", str(root)]) == 0
        assert capsys.readouterr().out.startswith("8 files are indexed; 8 updated, 0 removed, ")

        assert cli.main(["index", "--workspace", str(root)]) == 0
        assert capsys.readouterr().out.startswith("8 files are indexed; 0 updated, 0 removed, ")
        assert set(open_index(store_path(root)).files()) == set(SHOP)

    def test_what_changed_and_what_is_gone(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cli.main(["index", "--workspace", str(root)])
        write(root, {"shop/mail.py": "def send_parcel():\n    pass\n"})
        (root / "shop/taxes.py").unlink()
        capsys.readouterr()

        assert cli.main(["index", "--workspace", str(root)]) == 0
        assert capsys.readouterr().out.startswith("7 files are indexed; 1 updated, 1 removed, ")
        store = open_index(store_path(root))
        assert store.defining("send_parcel") == ("shop/mail.py",)
        assert store.defining("value_added_tax") == ()

    def test_chinese(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
        assert cli.main(["index", "--workspace", str(root), "--stats"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("已索引 8 个文件；处理 8 个，移除 0 个，用时 ")
        assert "  定义: " in shown

    def test_statistics(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(root, {"logo.py": b"\0\1\2"})
        settle()
        cli.main(["index", "--workspace", str(root), "--stats"])
        shown = capsys.readouterr().out.splitlines()
        assert shown[1] == "  files: 9: python 5, – 3, javascript 1"
        assert "  definitions: 9" in shown
        assert "  without symbols: binary 1" in shown
        assert "  vectors: 0" in shown
        assert shown[-1] == f"  where: {store_path(root)}"

    def test_as_data(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["index", "--workspace", str(root), "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert set(data["symbols_by_file"]) == set(SHOP)
        [tax] = [row for row in data["symbols_by_file"]["shop/taxes.py"] if row["name"] == "value_added_tax"]
        assert (tax["type"], tax["file_path"]) == ("function", "shop/taxes.py") and tax["signature"]
        assert any(each["module"] for each in data["imports"]["shop/cart.py"])

    def test_vectors_are_counted_with_their_model(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        places = Places(store_path(root).with_name(PLACES_FILE), "small model 384")
        places.put({"a.py": (b"1", [ChunkPlace("aa", 1, 2, "f"), ChunkPlace("bb", 3, 4, "g")])})
        places.close()
        cli.main(["index", "--workspace", str(root), "--stats"])
        assert "  vectors: 2: small model 384" in capsys.readouterr().out.splitlines()

    @pytest.mark.parametrize("content", [b"", b"no database"])
    def test_vectors_that_cannot_be_read_count_as_none(
        self, root: Path, content: bytes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        place = store_path(root).with_name(PLACES_FILE)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        assert cli.main(["index", "--workspace", str(root), "--stats"]) == 0
        assert "  vectors: 0" in capsys.readouterr().out.splitlines()

    def test_an_empty_folder(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "empty").mkdir()
        assert cli.main(["index", "--workspace", str(tmp_path / "empty"), "--stats"]) == 0
        assert "0 files are indexed" in capsys.readouterr().out

    @pytest.mark.parametrize(("name", "word"), [("nowhere", "is not a folder"), ("ws/README.md", "is not a folder")])
    def test_no_folder(self, root: Path, name: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["index", "--workspace", str(root.parent / name)]) == 2
        assert word in capsys.readouterr().err

    def test_a_home_is_too_much(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HOME", str(root))
        for folder in (root, root.parent, Path("/")):
            assert cli.main(["index", "--workspace", str(folder)]) == 2
            assert "is too much for a code index" in capsys.readouterr().err
        assert not store_path(root).exists()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_state_folder_that_cannot_be_written(
        self, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "state").mkdir(mode=0o500)
        assert cli.main(["index", "--workspace", str(root)]) == 1
        assert "cannot be stored" in capsys.readouterr().err

    def test_a_state_folder_that_is_a_file(
        self, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "state").write_text("")
        assert cli.main(["index", "--workspace", str(root)]) == 1
        assert "The code index cannot be stored" in capsys.readouterr().err

    def test_a_damaged_index_is_built_anew(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cli.main(["index", "--workspace", str(root)])
        store_path(root).write_bytes(b"no database at all" * 1000)
        capsys.readouterr()
        assert cli.main(["index", "--workspace", str(root)]) == 0
        assert "8 updated" in capsys.readouterr().out


@pytest.mark.slow
class TestBuild:
    def test_many_files_under_a_bar(self, root: Path) -> None:
        many(root, 200)
        shown = io.StringIO()
        console = Console(file=shown, width=80, force_terminal=True)

        def action(place: IndexLocation) -> int:
            index.build(place, scan(place.folders, {}, threading.Event()), console)
            return len(place.store.files())

        assert with_index(str(root), action) == 208
        assert "Indexing the code" in shown.getvalue()
        assert "208/208" in shown.getvalue()
        assert children() == set()

    def test_the_bar_is_not_in_the_output(self, root: Path) -> None:
        many(root, 200)
        done = _run("index", "--workspace", str(root))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("208 files are indexed; 208 updated")

    @pytest.mark.parametrize("whole_group", [True, False])
    def test_ctrl_c_ends_it_and_the_index_is_right(self, root: Path, whole_group: bool) -> None:
        """As a terminal does it, to all processes of the group, or to this one alone."""
        many(root, 3000)
        process = subprocess.Popen(
            _command("index", "--workspace", str(root)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        store = open_index(store_path(root))
        _until(lambda: len(store.files()) > 100)
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        process.communicate(timeout=30)

        assert process.returncode == 130
        known = store.known()
        assert 100 < len(known) < 3008
        assert {each.note for each in known.values()} == {""}  # no file seems to have ended its process
        assert _run("index", "--workspace", str(root)).returncode == 0
        assert len(store.files()) == 3008
        assert all(store.defining(f"f{n}") for n in range(0, 3000, 250))

    def test_an_unchanged_folder_loads_no_parser_and_no_screen(self, root: Path) -> None:
        cli.main(["index", "--workspace", str(root)])
        program = (
            "import sys; from codeagent_lsp import cli; code = cli.main(sys.argv[1:]);"
            "print(code, *sorted({'rich', 'tree_sitter', 'asyncio', 'pydantic', 'httpx', 'pygls'} & set(sys.modules)))"
        )
        command = [sys.executable, "-c", program, "index", "--workspace", str(root)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines()[1:] == ["0"]


class TestMap:
    def test_an_unchanged_folder_loads_neither_the_parser_nor_edits_nor_commands(self, root: Path) -> None:
        cli.main(["index", "--workspace", str(root)])
        names = ("index.parse", "workspace.edits.patch", "shadow.shell", "llm.model", "agent.prompt")
        program = (
            "import sys; from codeagent_lsp import cli; cli.main(sys.argv[2:]);"
            "print('loaded', *(name for name in sys.argv[1].split() if 'codeagent_lsp.' + name in sys.modules))"
        )
        command = [sys.executable, "-c", program, " ".join(names), "map", "--workspace", str(root), "--query", "mail"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines()[-1] == "loaded"

    def test_the_overview(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["map", "--workspace", str(root)]) == 0
        shown = capsys.readouterr().out
        assert "shop/cart.py\n" in shown
        assert "class Cart" in shown

    def test_the_map_for_a_task_fits(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["map", "--workspace", str(root), "--query", "send the invoice by mail", "--tokens", "40", "--json"]
        assert cli.main(arguments) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["files"][0] == "shop/mail.py"
        assert made["text"].startswith("shop/mail.py")
        assert 0 < made["tokens"] <= 40

    def test_it_is_up_to_date(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cli.main(["index", "--workspace", str(root)])
        write(root, {"shop/refunds.py": "def refund_customer():\n    pass\n"})
        capsys.readouterr()
        cli.main(["map", "--workspace", str(root), "--query", "refund the customer"])
        assert capsys.readouterr().out.startswith("shop/refunds.py\n  def refund_customer()")

    def test_nothing_fits(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["map", "--workspace", str(root), "--tokens", "1"]) == 1
        assert capsys.readouterr().out == "There is nothing to show in a map.\n"

    def test_a_name_that_would_move_the_cursor(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(root, {"shop/\x1b[2Jevil.py": "def evil_invoice_walnut():\n    pass\n"})
        cli.main(["map", "--workspace", str(root), "--query", "evil invoice walnut"])
        shown = capsys.readouterr().out
        assert "\x1b" not in shown
        assert "<U+001B>[2Jevil.py" in shown


class TestSearch:
    def test_path_lines_score(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["search", "--workspace", str(root), "--limit", "2", "value added tax"]) == 0
        lines = capsys.readouterr().out.splitlines()
        place, score, symbol = lines[0].split()
        assert place == "shop/taxes.py:1-3"
        assert float(score) > 0
        assert symbol == "value_added_tax"
        assert len(lines) == 2

    def test_as_json_with_the_text(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["search", "--workspace", str(root), "--json", "value added tax"]) == 0
        best, *_ = json.loads(capsys.readouterr().out)
        assert (best["path"], best["line_start"], best["line_end"]) == ("shop/taxes.py", 1, 3)
        assert best["text"] == SHOP["shop/taxes.py"].rstrip("\n")

    @pytest.mark.parametrize(("locale", "words"), [("en_US", "Nothing was found."), ("zh_CN", "没有找到结果。")])
    def test_nothing(
        self, root: Path, locale: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("LC_ALL", locale)
        assert cli.main(["search", "--workspace", str(root), "zzyzx"]) == 1
        assert capsys.readouterr().out == f"{words}\n"
        assert cli.main(["search", "--workspace", str(root), "--json", "zzyzx"]) == 1
        assert json.loads(capsys.readouterr().out) == []

    def test_no_query(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["search", "--workspace", str(root), "  "]) == 2
        assert "The query is empty" in capsys.readouterr().err

    def test_a_reader_that_is_gone(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def gone(words: str) -> None:
            raise BrokenPipeError

        saved = os.dup(1)
        monkeypatch.setattr("codeagent_lsp.terminal.index.say", gone)
        try:
            assert cli.main(["search", "--workspace", str(root), "tax"]) == 1
        finally:
            os.dup2(saved, 1)
            os.close(saved)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "codeagent_lsp.cli", *arguments]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*arguments), capture_output=True, text=True, timeout=120)


def _until(condition: object) -> None:
    assert callable(condition)
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to that")
