"""A state folder in which nothing can be kept: the agent works, its change can be undone, and the user is told once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeagent_lsp.cli import main
from tests.server.replies import calls, say
from tests.server.stock_editor import StockEditor

REPLIES = (
    calls(
        ("edit_file", {"path": "a.py", "old_str": "x = 1", "new_str": "x = 2"}),
        ("run_cmd", {"command": "cat a.py"}),
    ),
    say("Done."),
    say("Done."),
)


@pytest.mark.slow  # two whole servers
@pytest.mark.parametrize("kind", ["a file", "not to be made"])
def test_a_run_is_done_and_undone(tmp_path: Path, kind: str) -> None:
    workspace, script = tmp_path / "ws", tmp_path / "script.json"
    workspace.mkdir()
    (workspace / "a.py").write_text("x = 1\n")
    script.write_text(json.dumps(list(REPLIES)))
    state = tmp_path / "state" if kind == "a file" else Path("/proc/nothing/here")
    if kind == "a file":
        state.write_text("no folder")
    settings = {"model": {"provider": "scripted", "name": str(script)}, "permissions": {"allow": ["run_cmd"]}}
    with StockEditor(workspace, state, settings=settings) as editor:
        editor.open(workspace / "a.py")
        ended = editor.run("codeagent.run", task="change x")
        assert ended["message"] == "Applied 1 file." and editor.text(workspace / "a.py") == "x = 2\n"
        editor.command("codeagent.undo")
        editor.wait_until(lambda: editor.text(workspace / "a.py") == "x = 1\n")
        told = [params["message"] for params in editor.notifications("window/showMessage")]
        warned = [words for words in told if words.startswith("Cannot record this session (")]
        assert len(warned) == 1 and "CODEAGENT_STATE_DIR" in warned[0], told
        assert editor.command("codeagent.session.list") == []


@pytest.mark.parametrize("arguments", [["sessions", "list"], ["sessions", "search", "words"], ["index"], ["map"]])
def test_a_command_says_it_in_one_line(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("no folder")
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path / "state"))
    assert main(arguments) != 0
    said = capsys.readouterr().err
    assert said.startswith("codeagent-lsp: ") and said.count("\n") == 1 and "Traceback" not in said


def test_the_doctor_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state").write_text("no folder")
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("! state") for line in lines), lines
