"""Tools as an editor meets them: one that rests, decisions, and values that only commands get."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from tests.living import contents, files_below
from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

OWN_INPUT = {**STOCK, "experimental": {"codeagent": {"event": True, "input": True}}}


def state_of(editor: StockEditor, name: str) -> tuple[str, str, str]:
    rows = {row["name"]: row for row in editor.command("codeagent.tools.list")}
    return rows[name]["state"], rows[name]["circuit"], rows[name]["reason"]


def written(folder: Path) -> str:
    """Everything that is kept below a folder."""
    return "\n".join(held.decode("utf-8", "replace") for held in contents(folder).values())


def test_a_tool_that_rests_is_told_and_can_be_brought_back(start: StartEditor, workspace: Path) -> None:
    (workspace / "package.json").write_text('{"devDependencies": {"jest": "*"}, "scripts": {"test": "jest"}}')
    settings = {"circuitBreaker": {"failureThreshold": 1}}
    editor = start(call("run_tests"), call("run_tests"), say("It rests."), settings=settings)
    run_id = editor.command("codeagent.run", task="test it")["runId"]
    warning = editor.told("The tool run_tests rests: failed once")
    assert "`codeagent.tools.enable`" in warning
    editor.ended(run_id)
    state, circuit, reason = state_of(editor, "run_tests")
    assert (state, circuit, "failed once" in reason) == ("error", "open", True)
    assert editor.command("codeagent.tools.enable", name="run_tests") == {"name": "run_tests"}
    assert state_of(editor, "run_tests") == ("active", "closed", "")


def test_our_clients_get_both_events(start: StartEditor, workspace: Path) -> None:
    (workspace / "package.json").write_text('{"devDependencies": {"jest": "*"}, "scripts": {"test": "jest"}}')
    settings = {"circuitBreaker": {"failureThreshold": 1}}
    editor = start(call("run_tests"), say("It rests."), settings=settings, capabilities=OWN_INPUT)
    editor.run("codeagent.run", task="test it")
    rests = [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_disabled"]
    assert [(event["tool"], "failed once" in event["reason"]) for event in rests] == [("run_tests", True)]


@pytest.mark.parametrize(
    ("chosen", "told"), [("Merge", "'merge'"), ("Rebase ⚠", "'rebase'"), (None, "nothing is decided")]
)
def test_a_decision_in_a_stock_client(start: StartEditor, tmp_path: Path, chosen: str | None, told: str) -> None:
    options = [
        {"id": "rebase", "label": "Rebase", "risks": ["history changes"], "recommended": False},
        {"id": "merge", "label": "Merge"},
    ]
    ask = call("request_decision", question="How to join?", decision_type="branch", options=options)
    editor = start(ask, say("Good."), choose=lambda params: chosen)
    editor.run("codeagent.run", task="join the branches")
    (prompt,) = editor.prompts
    assert [action["title"] for action in prompt["actions"]] == ["Merge", "Rebase ⚠"]
    assert prompt["message"] == "The agent asks: How to join? [⚠ Risks: Rebase ⚠: history changes]"
    assert prompt["type"] == 2
    assert told in written(tmp_path / "state")


def test_a_stock_client_learns_how_to_set_a_secret(start: StartEditor, tmp_path: Path) -> None:
    editor = start(call("request_env_var", name="API_KEY", reason="to upload"), say("Then not."))
    editor.run("codeagent.run", task="upload it")
    assert "environment your editor is started from" in editor.told("Value of API_KEY for commands?")
    assert editor.prompts == []
    assert not files_below(tmp_path / "state", "answer/*")


def test_a_secret_reaches_the_command_and_nothing_else(start: StartEditor, tmp_path: Path, workspace: Path) -> None:
    value = secrets.token_urlsafe(30)
    asked: list[dict[str, Any]] = []

    def give(params: dict[str, Any]) -> dict[str, str]:
        asked.append(params)
        return {"value": value}

    check = f"test ${{#API_KEY}} = {len(value)} && echo it is $API_KEY; echo $API_KEY | rev"
    editor = start(
        call("request_env_var", name="API_KEY", reason="to upload"),
        call("run_cmd", command=check, env_vars=["API_KEY"]),
        call("get_env_var", name="API_KEY"),
        say("Uploaded."),
        capabilities=OWN_INPUT,
        answers={"codeagent/input": give},
        choose=lambda params: params["actions"][1]["title"],
    )
    assert editor.run("codeagent.run", task="upload it")["message"]
    assert asked[0]["secret"] is True
    events = json.dumps(editor.notifications("codeagent/event"))
    kept = written(tmp_path / "state") + written(workspace)
    for text in (events, kept, json.dumps(editor.notifications("window/showMessage")), json.dumps(editor.prompts)):
        assert value not in text
        assert value[::-1] not in text
    assert "it is [$API_KEY]" in events
    assert "it is [$API_KEY]" in kept
    assert f"{len(value)} characters" in kept


def test_our_own_key_is_not_for_commands(start: StartEditor, tmp_path: Path) -> None:
    value = secrets.token_urlsafe(30)
    editor = start(
        call("check_env_vars", names=["PATH"]),
        call("get_env_var", name="CODEAGENT_API_KEY"),
        call("run_cmd", command="env", env_vars=["CODEAGENT_API_KEY"]),
        say("No."),
        env={"CODEAGENT_API_KEY": value},
    )
    editor.run("codeagent.run", task="read the key")
    kept = written(tmp_path / "state")
    assert "PATH: set (environment)" in kept
    assert kept.count("CODEAGENT_API_KEY is not for commands") >= 2
    assert value not in kept
