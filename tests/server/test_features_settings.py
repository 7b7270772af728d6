"""Settings, modes, tools and languages as a user meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.server.clients import ClientPolicy
from tests.server.conftest import StartEditor
from tests.server.replies import call, edit, say
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

CONFIGURABLE = {**STOCK, "workspace": {**STOCK["workspace"], "configuration": True}}


@pytest.mark.parametrize(
    ("settings", "key", "allowed"),
    [
        ({"edits": {"apply": "perhaps"}}, "edits.apply", "review"),
        ({"agent": {"maxIterations": "many"}}, "agent.maxIterations", "number"),
        ({"model": {"apiMode": 3}}, "model.apiMode", "chat"),
    ],
)
def test_a_bad_initial_value_is_named_and_the_server_works(
    start: StartEditor, settings: dict[str, Any], key: str, allowed: str
) -> None:
    editor = start(say("Fine."), settings=settings)
    said = editor.told(key)
    assert allowed in said
    assert editor.run("codeagent.run", task="hello")["message"] == "Done."


def test_a_bad_value_from_the_configuration_request(start: StartEditor) -> None:
    editor = start(
        say("Fine."),
        capabilities=CONFIGURABLE,
        answers={"workspace/configuration": lambda params: [{"edits": {"apply": 7}}]},
    )
    assert "edits.apply" in editor.told("edits.apply")
    assert editor.run("codeagent.run", task="hello")["message"] == "Done."


def test_a_bad_value_from_a_change_is_told_once(start: StartEditor) -> None:
    editor = start(say("Fine."))
    for _ in range(3):
        editor.client.notify(
            "workspace/didChangeConfiguration", {"settings": {"codeagent": {"permissions": {"mode": "wild"}}}}
        )
    editor.told("permissions.mode")
    editor.command("codeagent.pending")
    assert not [note for note in editor.notifications("window/showMessage") if "permissions.mode" in note["message"]]


def test_an_unknown_key_is_named(start: StartEditor) -> None:
    assert "edits.aply" in start(settings={"edits": {"aply": "auto"}}).told("edits.aply")


def test_a_changed_setting_holds_from_then_on(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), say("Done."))
    editor.open(workspace / "a.py", "x = 1\n")
    editor.client.notify("workspace/didChangeConfiguration", {"settings": {"codeagent": {"edits": {"apply": "auto"}}}})
    assert editor.run("codeagent.run", task="go")["message"] == "Applied 1 file."
    assert editor.prompts == []
    assert editor.text(workspace / "a.py") == "x = 2\n"


def test_live_edits_arrive_before_the_answer(start: StartEditor, workspace: Path) -> None:
    script = [edit("a.py", "x = 1", "x = 2"), say("Done.", delay=20)]
    editor = start(*script, settings={"edits": {"apply": "live"}})
    editor.open(workspace / "a.py", "x = 1\n")
    run_id = editor.command("codeagent.run", task="go")["runId"]
    editor.wait_until(lambda: editor.text(workspace / "a.py") == "x = 2\n")
    assert editor.command("codeagent.cancel") == {"cancelled": [run_id]}
    editor.ended(run_id, 1)
    editor.command("codeagent.undo")
    editor.told("Undone")
    assert editor.text(workspace / "a.py") == "x = 1\n"


def test_read_only_blocks_writes_for_real(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), call("run_cmd", command="touch made"), say("I tried."))
    editor.open(workspace / "a.py", "x = 1\n")
    assert editor.command("codeagent.mode.set", mode="readOnly") == {"mode": "readOnly"}
    assert editor.command("codeagent.mode.set") == {"mode": "readOnly"}
    run = editor.command("codeagent.run", task="go")
    assert editor.ended(run["runId"])["message"] == "Done."
    assert editor.text(workspace / "a.py") == "x = 1\n"
    assert not (workspace / "made").exists()
    assert editor.prompts == []
    assert editor.command("codeagent.pending") == []


def test_an_answer_writes_nothing_whatever_the_model_tries(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), say("Because."))
    editor.open(workspace / "a.py", "x = 1\n")
    editor.run("codeagent.ask", question="why?")
    assert editor.command("codeagent.pending") == []
    assert editor.prompts == []
    editor.wait_until(lambda: any("/said/" in uri for uri in editor.shown))


def test_accept_edits_applies_without_a_question_and_ask_asks_again(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), say("Done."), edit("a.py", "x = 2", "x = 3"), say("Done."))
    editor.open(workspace / "a.py", "x = 1\n")
    editor.command("codeagent.mode.set", mode="acceptEdits")
    editor.run("codeagent.run", task="go")
    assert (editor.text(workspace / "a.py"), editor.prompts) == ("x = 2\n", [])
    editor.command("codeagent.mode.set", mode="ask")
    editor.run("codeagent.run", task="go")
    assert len(editor.prompts) == 1


def test_a_disabled_tool_does_not_run_and_can_be_switched_on_again(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), say("No tool."), edit("a.py", "x = 1", "x = 2"), say("Done."))
    editor.open(workspace / "a.py", "x = 1\n")
    assert editor.command("codeagent.tools.disable", name="edit_file") == {"name": "edit_file"}
    assert _state(editor, "edit_file") == "disabled"
    editor.run("codeagent.run", task="go")
    assert editor.text(workspace / "a.py") == "x = 1\n"
    editor.command("codeagent.tools.enable", name="edit_file")
    assert _state(editor, "edit_file") != "disabled"
    editor.run("codeagent.run", task="go")
    assert editor.text(workspace / "a.py") == "x = 2\n"
    (row,) = editor.client.result(
        "workspace/executeCommand", {"command": "codeagent.tools.stats", "arguments": [{"name": "edit_file"}]}
    )
    assert row["calls"] >= 1 and row["total_duration_ms"] == row["totalMs"]


def test_a_chinese_user_reads_chinese(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), say("好"), locale="zh-CN", choose=lambda params: "应用")
    uri = editor.open(workspace / "a.py", "x = 1\n")
    assert editor.run("codeagent.run", task="改")["message"] == "已应用 1 个文件。"
    assert [item["title"] for item in editor.prompts[0]["actions"]] == ["查看", "应用", "放弃"]
    assert "没有参数 colour" in editor.refusal("codeagent.run", {"colour": 1})
    titles = _action_titles(editor, uri)
    assert titles
    assert all(any(ord(char) > 0x2E80 for char in title) for title in titles)
    assert editor.text(workspace / "a.py") == "x = 2\n"


def test_the_setting_wins_over_the_locale(start: StartEditor, workspace: Path) -> None:
    editor = start(say("Fine."), locale="zh-CN", settings={"language": "en"})
    assert editor.run("codeagent.run", task="hello")["message"] == "Done."


def test_every_fact_of_a_client_starts_as_what_the_least_client_can() -> None:
    policy = ClientPolicy()
    assert [name for name in policy.__slots__ if getattr(policy, name)] == []


def _state(editor: StockEditor, name: str) -> str:
    rows: dict[str, str] = {tool["name"]: tool["state"] for tool in editor.command("codeagent.tools.list")}
    return rows[name]


def _action_titles(editor: StockEditor, uri: str) -> list[str]:
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    params = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    return [item["title"] for item in editor.client.result("textDocument/codeAction", params)]
