"""`get_diagnostics` as a whole: who is asked for which file, and what the model reads."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import FileRefused, ToolFailed
from codeagent_lsp.shadow.shell import Command, CommandResult, Finished, Isolation, OnOutput, no_output
from codeagent_lsp.tools.diagnostics import diagnostic_tools as diagnosing
from codeagent_lsp.tools.diagnostics.diagnostic_tools import GetDiagnostics
from codeagent_lsp.tools.diagnostics.difference import Diagnostic, Diagnostics
from codeagent_lsp.tools.tool import ToolOutput
from tests.tools.testing.rig import CopyShell, SaidShell, TestBench

OPEN = Isolation("direct", confined=False, offline=False, hidden=False)


@dataclass
class Client:
    """Shows the given diagnostics; for other files it cannot say."""

    shows: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def of(self, path: str) -> tuple[Diagnostic, ...] | None:
        self.asked.append(path)
        return self.shows.get(path)


class BrokenShell:
    """A shadow that cannot be made."""

    isolation = CopyShell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        raise ToolFailed("no space left")


@pytest.fixture
def bench(tmp_path: Path) -> TestBench:
    made = TestBench(tmp_path / "work", GetDiagnostics())
    assert isinstance(made.shell, CopyShell)
    made.shell.path = f"{Path(sys.executable).parent}:{made.shell.path}"
    return made


@pytest.fixture
def alone(bench: TestBench) -> TestBench:
    """A bench that can run no linter."""
    bench.shell = None
    return bench


def client(bench: TestBench, *shown: Diagnostic) -> Client:
    made = Client({item.path: (item,) for item in shown})
    bench.bench.context = bench.bench.context.having((Diagnostics, made))
    return made


def problem(bench: TestBench, name: str, message: str = "from the editor") -> Diagnostic:
    return Diagnostic(bench.bench.path(name), 1, 1, "warning", message, "server", "W1")


def lines(output: ToolOutput) -> list[str]:
    return output.text.splitlines()


# --- linters in the shadow


async def test_ruff_sees_what_is_staged(bench: TestBench) -> None:
    bench.put("a.py", "import os\n")
    bench.stage("a.py", "x = 1\nprint(undefined_name)\n")
    output = await bench.call(path="a.py")
    assert lines(output) == ["a.py:2:7 error F821 Undefined name `undefined_name` (ruff)", "(checked by: ruff)"]
    assert output.data[0]["path"] == bench.bench.path("a.py") and output.data[0]["line"] == 2


async def test_ruff_sees_what_is_not_saved(bench: TestBench) -> None:
    bench.put("a.py", "x = 1\n")
    bench.bench.open("a.py", "def f(:\n")
    assert lines(await bench.call(path="a.py"))[0].startswith("a.py:1:7 error ")
    assert bench.bench.disk() == {"a.py": b"x = 1\n"}


async def test_clean_files_say_who_looked(bench: TestBench) -> None:
    bench.put("a.py", "x = 1\n")
    assert lines(await bench.call(path="a.py")) == ["No problems found in a.py.", "(checked by: ruff)"]


async def test_the_settings_of_the_project_count(bench: TestBench) -> None:
    bench.put("pyproject.toml", '[tool.ruff.lint]\nselect = ["E501"]\n')
    bench.put("src/a.py", f"import os\nx = '{'y' * 100}'\n")
    assert lines(await bench.call(path="src"))[0].startswith("src/a.py:2:89 warning E501 ")


@pytest.mark.slow
async def test_a_folder_and_everything(bench: TestBench) -> None:
    bench.put("src/a.py", "import os\n")
    bench.put("b.py", "import sys\n")
    bench.put("notes.txt", "no code\n")
    assert [line.split(":")[0] for line in lines(await bench.call(path="src"))] == ["src/a.py", "(checked by"]
    assert {line.split(":")[0] for line in lines(await bench.call())[:-1]} == {"b.py", "src/a.py"}
    bench.bench.open("b.py", "import json\n")
    (found, _) = lines(await bench.call())
    assert found.startswith("b.py:1:8 warning F401") and "json" in found


@pytest.mark.parametrize("name", ["sp ace.py", "-x.py", "$(touch x).py", "new\nline.py", "ünï'\".py"])
async def test_unusual_names(bench: TestBench, name: str) -> None:
    bench.put(name, "import os\n")
    output = await bench.call(path=f"./{name}")
    assert [item["code"] for item in output.data] == ["F401"], output.text
    assert [path.name for path in bench.root.iterdir() if path.name != name] == []


async def test_a_linter_that_cannot_check_is_told_and_the_syntax_is_checked(bench: TestBench) -> None:
    bench.put("ruff.toml", "nonsense = [\n")
    bench.put("a.py", "def f(:\n")
    first, checked, failed = lines(await bench.call(path="a.py"))
    assert first.startswith("a.py:1:") and "(syntax)" in first
    assert checked == "(checked by: the syntax only)" and failed.startswith("(ruff could not check: ")


async def test_errors_elsewhere_are_counted(bench: TestBench) -> None:
    bench.put("tsconfig.json", "{}")
    bench.put("node_modules/.bin/tsc", "")
    bench.put("a.ts", "let a = 1;\n")
    elsewhere = [f"{name}(2,1): error TS2: there\n" for name in ("b.ts", "c.ts", "/outside/d.ts")]
    said = f"a.ts(1,5): error TS1: here\n{''.join(elsewhere)}".encode()
    bench.shell = SaidShell([Finished(2, "", reports={"stdout": said})])
    assert lines(await bench.call(path="a.ts")) == [
        "a.ts:1:5 error TS1 here (tsc)",
        "(2 errors in other files: b.ts, c.ts)",
        "(checked by: tsc)",
    ]


async def test_a_linter_that_takes_too_long(bench: TestBench) -> None:
    bench.put("a.py", "x = 1\n")
    bench.shell = SaidShell([Finished(137, "", ending="timeout")])
    text = (await bench.call(path="a.py")).text
    assert "No problems found" in text and "(ruff could not check: stopped at a limit (timeout))" in text
    assert "(checked by: the syntax only)" in text


async def test_a_shadow_that_fails(bench: TestBench) -> None:
    bench.put("a.py", "x = 1\n")
    context = replace(bench.bench.context, shell=BrokenShell())
    output = await bench.tool.run(bench.tool.parameters.model_validate({"path": "a.py"}), context)
    assert "(the shadow workspace could not check: no space left)" in output.text


async def test_nothing_runs_where_commands_are_not_kept_apart(bench: TestBench) -> None:
    bench.put("a.py", "import os\ndef f(:\n")
    bench.shell = SaidShell([], OPEN)
    output = await bench.call(path="a.py")
    assert bench.shell.commands == []
    assert [item["source"] for item in output.data] == ["syntax"]
    assert "linters were not run: commands are not fully isolated here" in output.text


async def test_commands_propose_nothing_and_write_no_caches(bench: TestBench) -> None:
    bench.put("a.py", "x = 1\n")
    await bench.call(path="a.py")
    assert isinstance(bench.shell, CopyShell)
    (command,) = bench.shell.commands
    assert not command.proposes and not command.network and command.seconds == 60
    assert "--no-cache" in command.script and command.cwd == str(bench.root)


# --- the client


async def test_the_client_counts_for_an_open_file(bench: TestBench) -> None:
    bench.bench.open("a.py", "import os\n")
    asked = client(bench, problem(bench, "a.py"))
    assert lines(await bench.call(path="a.py")) == [
        "a.py:1:1 warning W1 from the editor (server)",
        "(checked by: the editor)",
    ]
    assert asked.asked == [bench.bench.path("a.py")]


async def test_the_client_does_not_know_what_is_staged(bench: TestBench) -> None:
    bench.bench.open("a.py", "import os\n")
    asked = client(bench, problem(bench, "a.py"))
    bench.stage("a.py", "import sys\n")
    assert "`sys` imported but unused" in (await bench.call(path="a.py")).text
    assert asked.asked == []


async def test_a_client_that_shows_nothing_may_have_no_linter(bench: TestBench) -> None:
    bench.bench.open("a.py", "import os\n")
    made = client(bench)
    made.shows[bench.bench.path("a.py")] = ()
    output = await bench.call(path="a.py")
    assert "F401" in output.text and "(checked by: the editor, ruff)" in output.text


async def test_closed_files_are_not_asked_for(bench: TestBench) -> None:
    bench.put("a.py", "x = 1\n")
    asked = client(bench, problem(bench, "a.py"))
    assert "No problems" in (await bench.call(path="a.py")).text and asked.asked == []


# --- without any linter


async def test_the_syntax_always_works(alone: TestBench) -> None:
    alone.put("a.py", "def f(:\n    pass\n")
    first, second = lines(await alone.call(path="a.py"))
    assert first.startswith("a.py:1:") and second == "(checked by: the syntax only)"


async def test_what_nobody_can_check_is_said(alone: TestBench) -> None:
    alone.put("a.txt", "text\n")
    assert lines(await alone.call(path="a.txt")) == ["No problems found in a.txt.", "(nothing here can check: a.txt)"]


async def test_missing_and_outside(alone: TestBench) -> None:
    with pytest.raises(FileRefused, match="does not exist"):
        await alone.call(path="none.py")
    with pytest.raises(Exception, match="outside the workspace"):
        await alone.call(path="../x.py")


async def test_an_empty_workspace(alone: TestBench) -> None:
    assert lines(await alone.call()) == ["No problems found in 0 files."]


async def test_many_files(alone: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosing, "MAX_FILES", 3)
    for number in range(5):
        alone.put(f"f{number}.py", "def (\n")
    output = await alone.call()
    assert len({item["path"] for item in output.data}) == 3
    assert "(only the first 3 files were looked at)" in output.text


async def test_a_file_that_is_deleted_or_without_a_name_is_left_out(alone: TestBench) -> None:
    alone.put("a.py", "def (\n")
    alone.stage("a.py", None)
    alone.bench.buffers.open("untitled:1", "def (\n")
    output: Any = await alone.call()
    assert output.data == []
