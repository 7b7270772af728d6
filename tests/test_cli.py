"""The command line: what starts what, usage errors, and how little a start loads."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp import __version__, cli
from tests.server.rawclient import RawClient

HEAVY = ("rich", "pydantic", "httpx", "tree_sitter", "tenacity", "yaml", "pathspec", "json_repair")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path / "state"))
    yield


def usage(*arguments: str) -> int:
    """The exit code of a call that argparse refuses."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert usage("--version") == 0
    assert capsys.readouterr().out.strip() == f"codeagent-lsp {__version__}"


@pytest.mark.slow
@pytest.mark.parametrize(("locale", "says"), [("de_DE.UTF-8", "language server"), ("zh_CN.UTF-8", "语言服务器")])
def test_a_bare_call_at_a_terminal_says_what_this_is(locale: str, says: str) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "LC_ALL": locale, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "codeagent_lsp.cli"]
    pipes = subprocess.PIPE
    with subprocess.Popen(command, stdin=theirs, stdout=pipes, stderr=pipes, env=environ) as process:
        assert process.stderr is not None and process.stdout is not None
        line = process.stderr.readline().decode()
        process.terminate()
        rest = process.stdout.read()
    os.close(theirs)
    os.close(ours)
    assert says in line and "codeagent-lsp doctor" in line and rest == b""


@pytest.mark.slow
def test_a_bare_call_from_an_editor_says_nothing() -> None:
    done = subprocess.run([sys.executable, "-m", "codeagent_lsp.cli"], input=b"", capture_output=True, timeout=60)
    assert done.stdout == done.stderr == b""


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert usage("--help") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("serve", "run", "doctor", "model", "schema"))


@pytest.mark.parametrize("command", ["serve", "run", "doctor", "model", "schema"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert usage(command, "--help") == 0
    assert "usage: codeagent-lsp" in capsys.readouterr().out


def test_run_tells_of_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    usage("run", "--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "--set KEY=VALUE" in shown
    assert "model.name=" in shown
    for told in (
        "which you approve",
        "by its tests",
        "writes them at once",
        "the answer to its question",
        "(this one)",
    ):
        assert told in shown


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("fly",), "fly"),
        (("run",), "TASK"),
        (("run", "--mode", "wild", "x"), "wild"),
        (("run", "--width", "0", "x"), "columns"),
        (("serve", "--tcp", "somewhere"), "127.0.0.1:2087"),
        (("--tcp", "host:99999"), "65535"),
        (("serve", "--log-level", "loud"), "loud"),
        (("--stdin",), "--stdin"),
        (("model", "push"), "push"),
        (("model", "serve", "--port", "x"), "--port"),
        (("schema", "cats"), "cats"),
    ],
)
def test_usage_errors_name_what_is_wrong(
    arguments: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert usage(*arguments) == cli.EXIT_USAGE
    output = capsys.readouterr()
    assert named in output.err
    assert output.out == ""


@pytest.mark.parametrize("options", [(), ("--workspace", "/no/such/folder")])
def test_run_refuses_before_it_starts_anything(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", *options, "x" if options else " "]) == cli.EXIT_USAGE
    assert capsys.readouterr().err.startswith("codeagent-lsp run: ")


def test_doctor_refuses_a_folder_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--workspace", "/no/such/folder"]) == cli.EXIT_USAGE
    assert "/no/such/folder" in capsys.readouterr().err


def test_schemas_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    for subject in ("settings", "events"):
        assert cli.main(["schema", subject]) == 0
        assert json.loads(capsys.readouterr().out)["$schema"].endswith("2020-12/schema")


@pytest.mark.slow
def test_a_log_file_that_cannot_be_written() -> None:
    command = [sys.executable, "-m", "codeagent_lsp.cli", "serve", "--log-file", "/no/such/folder/log"]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == cli.EXIT_USAGE
    assert "/no/such/folder/log" in result.stderr
    assert result.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--stdio",), ("serve",), ("serve", "--stdio"), ("--log-level", "error")])
def test_serving_is_the_default(arguments: tuple[str, ...]) -> None:
    with RawClient((sys.executable, "-m", "codeagent_lsp.cli", *arguments)) as client:
        assert client.initialize()["serverInfo"]["name"]
        assert client.shutdown() == 0
        assert client.stray == b""


@pytest.mark.slow
def test_the_start_of_the_server_loads_nothing_heavy() -> None:
    code = "import sys, codeagent_lsp.cli, codeagent_lsp.app; codeagent_lsp.app.create_server(); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert "pygls" in loaded
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))


@pytest.mark.slow
def test_the_command_line_alone_loads_next_to_nothing() -> None:
    code = "import sys, codeagent_lsp.cli; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert {name.partition(".")[0] for name in result.stdout.split()}.isdisjoint({*HEAVY, "pygls", "asyncio"})


@pytest.mark.slow
def test_doctor_as_json_with_a_scripted_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEAGENT_BASE_URL", "http://127.0.0.1:9/v1")
    result = subprocess.run(
        [sys.executable, "-m", "codeagent_lsp.cli", "doctor", "--json", "--workspace", str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert checks["version"]["verdict"] == "ok"
    assert checks["model"]["verdict"] == "failed"
    assert "127.0.0.1:9" in checks["model"]["detail"]
    assert checks["model"]["advice"]
    assert result.returncode == 1


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("model.baseUlr=http://a", "Did you mean model.baseUrl?"),
        ("nonsense=1", "There is no setting nonsense."),
        ("model.temperature=hot", "model.temperature cannot be 'hot'."),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_in_these_words(
    assignment: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--set", assignment, "x"]) == 2
    said = capsys.readouterr().err
    assert told in said and "ignored" not in said and "default" not in said


def test_a_folder_without_runs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sessions", "list", "--workspace", str(tmp_path)]) == 1
    assert "No run is recorded for" in capsys.readouterr().err


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "codeagent_lsp.cli", "schema", "settings"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")
