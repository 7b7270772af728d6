"""Own tools as an editor meets them: the question of trust, a call with its approval, a broken file, what is left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.children import command_lines
from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor
from tests.tools.own.rig import GREET

pytestmark = pytest.mark.slow  # whole servers at work

EVENTS = {**STOCK, "experimental": {"codeagent": {"event": True}}}
WORKER = "codeagent_lsp.tools.own.worker"


def own_names(editor: StockEditor) -> list[str]:
    return [row["name"] for row in editor.command("codeagent.tools.list") if row["name"].startswith("own.")]


def second(params: dict[str, Any]) -> str:
    return str(params["actions"][1]["title"])


def written(folder: Path, code: str = GREET) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "greet.py").write_text(code)
    return folder / "greet.py"


def test_the_model_calls_a_tool_of_the_user(start: StartEditor, tmp_path: Path) -> None:
    path = written(tmp_path / "state/tools")
    script = (say("Hi."), call("own.greet", name="Ann"), say("Greeted."))
    editor = start(*script, capabilities=EVENTS, choose=second)
    assert own_names(editor) == [] and editor.prompts == []  # nothing is looked for before the first run
    editor.run("codeagent.run", task="say hi")
    editor.wait_until(lambda: own_names(editor) == ["own.greet"])
    editor.run("codeagent.run", task="greet Ann")
    trust, approval = editor.prompts
    assert str(path) in trust["message"] and trust["actions"][0]["title"] == "Deny"
    assert "own.greet" in approval["message"]
    (result,) = [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_result"]
    assert result["success"] is True and "Hello, Ann!" in result["output"]
    assert [row["shown"] for row in editor.command("codeagent.approvals.list")] == [str(path)]
    assert editor.command("codeagent.approvals.revoke") == {"revoked": 1}
    pids = [pid for pid, line in command_lines().items() if WORKER in str(line) and str(path) in str(line)]
    assert pids
    assert editor.close() == 0
    deadline = time.monotonic() + 10
    while set(pids) & set(command_lines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_workspace_s_tools_are_asked_about_with_what_else_it_brings(start: StartEditor, workspace: Path) -> None:
    written(workspace / ".codeagent/tools")
    written(workspace / ".codeagent/tools", GREET).rename(workspace / ".codeagent/tools/other.py")
    written(workspace / ".codeagent/tools", GREET.replace("greet", "welcome"))
    folder = workspace / ".claude/skills/pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: reads PDF files\n---\nDo it well.\n")
    load = call("skill_loader", skill_name="pdf")
    editor = start(say("Hi."), load, say("Read."), capabilities=EVENTS, choose=lambda params: "Trust all of this")
    rows = editor.command("codeagent.trust.list")
    assert [(row["kind"], row["name"], row["trusted"]) for row in rows] == [
        ("skills", "pdf", False),
        ("tools", "greet.py", False),
        ("tools", "other.py", False),
    ]
    editor.run("codeagent.run", task="say hi")
    editor.wait_until(lambda: len(own_names(editor)) == 2)
    editor.run("codeagent.run", task="read it")
    (question,) = editor.prompts
    assert "the skill pdf; the tools of greet.py; the tools of other.py" in question["message"]
    assert all(row["trusted"] for row in editor.command("codeagent.trust.list"))
    assert len(editor.command("codeagent.approvals.list")) == 3


def test_a_file_of_the_workspace_does_not_run_without_a_yes(
    start: StartEditor, workspace: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    written(workspace / ".codeagent/tools", f"open({str(mark)!r}, 'w')\n" + GREET)
    mode = {"permissions": {"mode": "bypass"}}
    script = (say("Hi."), call("own.greet", name="Ann"), say("Then not."))
    editor = start(*script, capabilities=EVENTS, settings=mode, choose=lambda params: "Deny")
    editor.run("codeagent.run", task="say hi")
    editor.wait_until(lambda: len(editor.prompts) == 1)
    editor.run("codeagent.run", task="greet Ann")
    (result,) = [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_result"]
    assert result["success"] is False and "no tool 'own.greet'" in result["error"]
    assert len(editor.prompts) == 1 and not mark.exists()


@pytest.mark.parametrize(
    ("rules", "prompts", "succeeds"),
    [({"allow": ["own.greet"]}, 1, True), ({"deny": ["own.*"]}, 1, False), ({"mode": "readOnly"}, 1, False)],
    ids=["allowed", "denied", "read only"],
)
def test_rules_decide_about_own_tools(
    start: StartEditor, tmp_path: Path, rules: dict[str, Any], prompts: int, succeeds: bool
) -> None:
    written(tmp_path / "state/tools")
    script = (say("Hi."), call("own.greet", name="Ann"), say("Well."))
    editor = start(*script, capabilities=EVENTS, settings={"permissions": rules}, choose=second)
    editor.run("codeagent.run", task="say hi")
    editor.wait_until(lambda: own_names(editor) == ["own.greet"])
    editor.run("codeagent.run", task="greet Ann")
    (result,) = [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_result"]
    assert result["success"] is succeeds and len(editor.prompts) == prompts


def test_a_broken_file_is_told(start: StartEditor, tmp_path: Path) -> None:
    written(tmp_path / "state/tools", "import no_such_module_here\n")
    editor = start(say("Hi."), choose=second)
    editor.run("codeagent.run", task="say hi")
    told = editor.told("own tools in")
    assert "greet.py" in told and "line 1: ModuleNotFoundError" in told and "the next run tries again" in told
