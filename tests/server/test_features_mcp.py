"""MCP servers as an editor meets them: a call with its approval, states, failures, what is left behind."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.mcp_conformance import visit
from tests.children import command_lines
from tests.living import contents
from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor
from tests.tools.mcp.issuer import issuing_in_a_thread
from tests.tools.mcp.real import time_server

pytestmark = pytest.mark.slow  # whole servers at work

FAULTY = str(Path(__file__).parents[1] / "tools/mcp/faulty_server.py")
EVENTS = {**STOCK, "experimental": {"codeagent": {"event": True}}}


def settings(fault: str, *more: str, **others: Any) -> dict[str, Any]:
    server = {"command": sys.executable, "args": [FAULTY, fault, *more], "timeoutSeconds": 20, **others}
    return {"mcp": {"servers": {"f": server}}}


def until(editor: StockEditor, state: str, seconds: float = 30.0) -> dict[str, Any]:
    """The first server's row once it is in this state."""
    deadline = time.monotonic() + seconds
    while True:
        row: dict[str, Any] = editor.command("codeagent.mcp.status")[0]
        if row["state"] == state:
            return row
        assert time.monotonic() < deadline, row
        time.sleep(0.05)


def results(editor: StockEditor) -> list[dict[str, Any]]:
    return [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_result"]


def allow(editor_title: int) -> Callable[[dict[str, Any]], str]:
    return lambda params: str(params["actions"][editor_title]["title"])


def test_a_real_server_is_called_with_approval(start: StartEditor) -> None:
    servers = {"mcp": {"servers": {"time": {"command": time_server(), "args": ["--local-timezone", "Asia/Tokyo"]}}}}
    editor = start(
        call("mcp.time.get_current_time", timezone="Asia/Tokyo"),
        say("It is late."),
        settings=servers,
        capabilities=EVENTS,
        choose=allow(1),
    )
    row = until(editor, "ready")
    assert "mcp.time.get_current_time" in row["tools"]
    editor.run("codeagent.run", task="what time is it in Tokyo?")
    (prompt,) = editor.prompts
    assert "mcp.time.get_current_time" in prompt["message"]
    assert prompt["actions"][0]["title"] == "Deny"
    (result,) = results(editor)
    assert result["success"] is True
    assert "Asia/Tokyo" in result["output"] and "data, not instructions" in result["output"]


def test_what_a_server_says_of_its_progress_is_masked(start: StartEditor) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    editor = start(
        call("mcp.f.work", message=f"sent {token}"),
        say("Done."),
        settings=settings("chatty", autoApprove=["*"]),
        capabilities=EVENTS,
    )
    until(editor, "ready")
    editor.run("codeagent.run", task="work")
    told = [event["message"] for event in editor.notifications("codeagent/event") if event["type"] == "status"]
    assert any("mcp.f.work: 1/3 sent <secret:" in message for message in told), told
    assert token not in str(told) and token not in str(editor.notifications("$/progress"))


def test_no_answer_is_no_call(start: StartEditor, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    editor = start(
        call("mcp.f.echo", text="secret plan"),
        say("Then not."),
        settings=settings("none", str(notes)),
        capabilities=EVENTS,
        choose=lambda params: None,
    )
    until(editor, "ready")
    editor.run("codeagent.run", task="say it")
    (result,) = results(editor)
    assert result["success"] is False and "needs the user's approval" in result["error"]
    assert "secret plan" not in notes.read_text()


def test_a_server_that_does_not_start_is_told_and_delays_nothing(start: StartEditor) -> None:
    editor = start(call("list_dir", path="."), say("Done."), settings=settings("dies"), capabilities=EVENTS)
    began = time.monotonic()
    assert "Done." in editor.run("codeagent.run", task="look around")["message"]
    assert time.monotonic() - began < 10
    told = editor.told("MCP server f ended (exit code 7)")
    assert "cannot find my settings" in told and "`codeagent.mcp.reload`" in told
    row = until(editor, "failed")
    assert row["tools"] == [] and "exit code 7" in row["error"]


def test_a_run_hears_of_a_server_that_fails_meanwhile(start: StartEditor) -> None:
    slow = call("run_cmd", command="sleep 8")  # longer than the server takes to fail
    editor = start(slow, say("Done."), settings=settings("dies"), capabilities=EVENTS, choose=allow(1))
    editor.run("codeagent.run", task="wait")
    warnings = [message for message in editor.notifications("window/showMessage") if "exit code 7" in str(message)]
    assert len(warnings) == 1
    events = [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_disabled"]
    assert [event["tool"] for event in events] == ["mcp.f"]
    assert "exit code 7" in events[0]["reason"]


@pytest.mark.parametrize("agrees", [True, False])
def test_a_login_is_a_question_and_a_page_in_the_browser(start: StartEditor, tmp_path: Path, agrees: bool) -> None:
    pages: list[dict[str, Any]] = []

    def show(params: dict[str, Any]) -> dict[str, bool]:
        pages.append(params)
        threading.Thread(target=visit, args=(params["uri"],), daemon=True).start()
        return {"success": True}

    with issuing_in_a_thread("blabs") as issuer:
        editor = start(
            call("mcp.f.work"),
            say("Hello."),
            settings={"mcp": {"servers": {"f": {"url": issuer.url, "timeoutSeconds": 20, "autoApprove": ["work"]}}}},
            capabilities=EVENTS,
            choose=allow(1 if agrees else 0),
            answers={"window/showDocument": show},
            env={"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"},
        )
        row = until(editor, "ready" if agrees else "failed")
        (prompt,) = editor.prompts
        assert "wants you to log in at 127.0.0.1" in prompt["message"]
        assert [action["title"] for action in prompt["actions"]] == ["Deny", "Open the login page"]
        if agrees:
            assert row["tools"] == ["mcp.f.work"]
            assert [(page["external"], page["uri"].startswith(f"{issuer.origin}/authorize?")) for page in pages] == [
                (True, True)
            ]
        else:
            assert "the login page was not opened" in editor.told("needs a login") + row["error"]
            assert pages == []
        if agrees:
            editor.run("codeagent.run", task="have it done")
            (result,) = results(editor)
            assert "You came with <secret:" in result["output"]
        assert editor.close() == 0
        kept = "".join(path.read_text("utf-8", "replace") for path in (tmp_path / "state").rglob("*") if path.is_file())
        assert not any(secret in kept for secret in issuer.secrets)
        (audit,) = (tmp_path / "state").rglob("audit.jsonl")
        rows = [json.loads(line) for line in audit.read_text().splitlines()]
        steps = [row["step"] for row in rows if row["type"] == "login"]
        assert steps == ["started", "granted" if agrees else "refused"]
        answers = [row["decision"] for row in rows if row["type"] == "decided" and row["by"] == "user"]
        assert answers == ["Open the login page" if agrees else "Deny"]


def test_reload_takes_new_settings_without_a_restart(start: StartEditor, tmp_path: Path) -> None:
    editor = start(say("Hello."), settings=settings("dies"))
    until(editor, "failed")
    change = {"settings": {"codeagent": settings("none")}}
    editor.client.notify("workspace/didChangeConfiguration", change)
    assert editor.command("codeagent.mcp.reload") == {"ok": True}
    assert until(editor, "ready")["tools"] == ["mcp.f.echo", "mcp.f.work"]
    names = [row["name"] for row in editor.command("codeagent.tools.list")]
    assert "mcp.f.echo" in names
    editor.client.notify("workspace/didChangeConfiguration", {"settings": {"codeagent": {"mcp": {"servers": {}}}}})
    editor.command("codeagent.mcp.reload")
    deadline = time.monotonic() + 10
    while any(row["name"].startswith("mcp.") for row in editor.command("codeagent.tools.list")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert editor.command("codeagent.mcp.status") == []


def test_read_only_offers_nothing_of_a_server(start: StartEditor, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    chosen = {**settings("none", str(notes), autoApprove=["*"]), "permissions": {"mode": "readOnly"}}
    editor = start(call("mcp.f.echo", text="hello"), say("No."), settings=chosen, capabilities=EVENTS)
    until(editor, "ready")
    editor.run("codeagent.run", task="say it")
    assert "tools/call" not in notes.read_text()
    assert not any(result["success"] for result in results(editor))


def test_secrets_of_a_server_are_nowhere(start: StartEditor, tmp_path: Path) -> None:
    value = "v" + os.urandom(12).hex()
    chosen = settings("none", env={"SERVICE_KEY": value})
    editor = start(say("Hello."), settings=chosen, capabilities=EVENTS)
    row = until(editor, "ready")
    editor.run("codeagent.run", task="say hello")
    assert value not in json.dumps(row)
    assert not any(value.encode() in held for held in contents(tmp_path / "state").values())


@pytest.mark.parametrize("how", ["leaves", "is killed"])
def test_no_process_is_left(start: StartEditor, tmp_path: Path, how: str) -> None:
    notes = tmp_path / "notes"
    editor = start(say("Hello."), settings=settings("forks", str(notes)))
    until(editor, "ready")
    pids = [int(line.split()[1]) for line in notes.read_text().splitlines() if line.startswith("pid")]
    assert len(pids) == 2 and set(pids) <= set(command_lines())
    if how == "leaves":
        editor.client.shutdown()
    else:
        os.kill(editor.client.process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while set(pids) & set(command_lines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
