"""What the user decides about other agents, and every way in which a loan ends: real servers, real clients."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.editor_mcp.rig import ASKS, NAME, agent, choosing, listening, meeting, refused, said, text_of, until
from tests.server import hurried
from tests.server.conftest import StartEditor
from tests.server.replies import say
from tests.server.stock_editor import StockEditor
from tests.tidy.source import ROOT

pytestmark = pytest.mark.slow  # whole servers at work

SAVED = "def total(items):\n    return 0\n"
EDIT = {"path": "cart.py", "old_str": "return 0", "new_str": "return sum(items)"}


def asked(editor: StockEditor) -> int:
    return sum(ASKS in prompt["message"] for prompt in editor.prompts)


def audit(state: Path) -> list[dict[str, Any]]:
    files = state.glob("workspaces/*/audit.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def allowed(start: StartEditor, workspace: Path, state: Path, **options: Any) -> StockEditor:
    """An editor with an open file, whose user allows all agents."""
    (workspace / "cart.py").write_text(SAVED)
    editor = start(state=state, main=hurried.MAIN, **{"choose": choosing(), **options})
    editor.open(workspace / "cart.py", "# typed\n" + SAVED)
    editor.wait_until(lambda: len(meeting(state)) == 1)
    return editor


def started(workspace: Path, state: Path) -> subprocess.Popen[bytes]:
    """Another agent that stages an edit, says so and its process, and stays."""
    env = {**os.environ, "CODEAGENT_STATE_DIR": str(state)}
    command = [sys.executable, "-c", AGENT, str(workspace)]
    return subprocess.Popen(command, env=env, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


async def test_not_now_and_never_and_taken_back(start: StartEditor, workspace: Path, state: Path) -> None:
    editor = allowed(start, workspace, state, choose=choosing("Not now"))
    async with agent(workspace, state) as client:
        for _ in range(2):
            assert "does not want" in await refused(client, "open_files")
    assert asked(editor) == 1 and not listening(state)
    assert editor.command("codeagent.lend.list") == []
    assert editor.command("codeagent.lend.revoke", client=NAME) == {"revoked": [NAME]}
    editor.choose = choosing("Never")
    async with agent(workspace, state) as client:
        for _ in range(2):
            assert "never" in await refused(client, "open_files")
        assert editor.command("codeagent.lend.list") == [{"client": NAME, "allow": "never", "attached": False}]
        assert asked(editor) == 2 and not listening(state)
        row = editor.command("codeagent.approvals.list")[-1]
        assert row["approvalId"] == f"agent:{NAME}"
        assert row["shown"] == f"{NAME} may never use this editor"
        assert editor.command("codeagent.approvals.revoke", approvalId=row["approvalId"]) == {"revoked": 1}
        editor.choose = choosing()
        assert "cart.py" in await said(client, "open_files")
    assert "nobody" in editor.refusal("codeagent.lend.revoke", {"client": "nobody"})


async def test_once_allowed_it_is_remembered_by_name(start: StartEditor, workspace: Path, state: Path) -> None:
    editor = allowed(start, workspace, state)
    async with agent(workspace, state) as client:
        await said(client, "open_files")
    editor.wait_until(lambda: not editor.command("codeagent.lend.list")[0]["attached"])  # its session is free again
    async with agent(workspace, state) as client, agent(workspace, state) as second:
        await said(client, "open_files")
        await said(second, "open_files")
        assert asked(editor) == 1
        sessions = {row["sessionId"] for row in editor.command("codeagent.runs") if row["kind"] == "lent"}
        assert len(sessions) == 2, "one for each at a time"
        editor.choose = lambda params: "Not now" if "another wants" in params["message"] else "Apply"
        async with agent(workspace, state, "another") as other:
            assert "does not want" in await refused(other, "open_files")
        assert editor.command("codeagent.lend.list")[0]["attached"]
        editor.command("codeagent.lend.revoke", client=NAME)
        # A call may be on its way when the connection ends, and says so; the next one asks anew.
        said_so = await refused(client, "open_files")
        if "does not want" not in said_so:
            assert "The user has ended this" in said_so
            assert "does not want" in await refused(client, "open_files")
    editor.wait_until(lambda: not listening(state))


async def test_no_editor_then_one(start: StartEditor, workspace: Path, state: Path) -> None:
    (workspace / "sub").mkdir()
    async with agent(workspace / "sub", state) as client:
        assert "No editor with codeagent-lsp has" in await refused(client, "read", path="cart.py")
        allowed(start, workspace, state)
        assert "# typed" in await said(client, "read", path="cart.py")


async def test_another_workspace_is_none(start: StartEditor, workspace: Path, state: Path, tmp_path: Path) -> None:
    editor = allowed(start, workspace, state)
    other = tmp_path / "other"
    other.mkdir()
    async with agent(other, state) as client:
        assert "No editor" in await refused(client, "open_files")
    # Also not with a request of its own making.
    nonce = "f" * 32
    place = meeting(state)[0]
    (place / f"{nonce}.request").write_text(json.dumps({"client": NAME, "pid": os.getpid(), "workspace": str(other)}))
    answer = place / f"{nonce}.answer"
    editor.wait_until(answer.exists)
    assert json.loads(answer.read_text())["reason"] == "workspace" and not asked(editor)


async def test_off_by_the_settings(start: StartEditor, workspace: Path, state: Path) -> None:
    (workspace / "cart.py").write_text(SAVED)
    editor = start(state=state, main=hurried.MAIN, settings={"lend": {"editor": "off"}}, choose=choosing())
    editor.command("codeagent.pending")
    await anyio.sleep(0.5)
    assert meeting(state) == []
    change = {"settings": {"codeagent": {"lend": {"editor": "ask"}}}}
    editor.client.notify("workspace/didChangeConfiguration", change)
    editor.wait_until(lambda: len(meeting(state)) == 1)
    async with agent(workspace, state) as client:
        await said(client, "open_files")
        change["settings"]["codeagent"]["lend"]["editor"] = "off"
        editor.client.notify("workspace/didChangeConfiguration", change)
        editor.wait_until(lambda: not meeting(state) and not listening(state))
        assert "No editor" in await refused(client, "open_files")


async def test_a_policy_lets_nobody_ask(start: StartEditor, workspace: Path, state: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"lend.editor": "off"}))
    settings = {"lend": {"editor": "ask"}}
    editor = start(
        state=state, main=hurried.MAIN, settings=settings, choose=choosing(), env={"CODEAGENT_POLICY": str(policy)}
    )
    editor.command("codeagent.pending")
    await anyio.sleep(0.5)
    async with agent(workspace, state) as client:
        assert "No editor" in await refused(client, "open_files")
    assert meeting(state) == [] and not asked(editor)


async def test_a_killed_client_leaves_its_changes_for_review(start: StartEditor, workspace: Path, state: Path) -> None:
    editor = allowed(start, workspace, state)
    child = started(workspace, state)
    assert child.stdout is not None and b"staged" in await anyio.to_thread.run_sync(child.stdout.readline)
    pid = int(await anyio.to_thread.run_sync(child.stdout.readline))
    os.kill(pid, signal.SIGKILL)
    editor.wait_until(lambda: "sum(items)" in editor.text(workspace / "cart.py"))
    editor.wait_until(lambda: not listening(state))
    assert editor.text(workspace / "cart.py").startswith("# typed")
    child.kill()
    child.wait()


async def test_a_killed_server_is_told_and_replaced(start: StartEditor, workspace: Path, state: Path) -> None:
    editor = allowed(start, workspace, state, choose=choosing(changes=None))
    async with agent(workspace, state) as client:
        await said(client, "edit", **EDIT)
        editor.client.kill()
        text = await refused(client, "open_files")
        assert "ended" in text or "No editor" in text
        before = meeting(state)
        later = start(state=state, main=hurried.MAIN, choose=choosing())
        later.open(workspace / "cart.py", "# anew\n" + SAVED)
        until(lambda: len(meeting(state)) == 1 and meeting(state) != before)
        assert "# anew" in await said(client, "read", path="cart.py")
        assert asked(later) == 0
        # What was staged then still waits.
        (waiting,) = [each for each in later.command("codeagent.pending") if each["kind"] == "changes"]
        assert waiting["title"] == f"The editor lent to {NAME}"


async def test_the_user_ends_it(start: StartEditor, workspace: Path, state: Path) -> None:
    editor = allowed(start, workspace, state, choose=choosing(changes=None))
    async with agent(workspace, state) as client:
        await said(client, "edit", **EDIT)
        (run_id,) = editor.command("codeagent.cancel")["cancelled"]
        editor.wait_until(lambda: not listening(state))
        text = await refused(client, "edit", **EDIT)
        assert "ended" in text or "does not want" in text
        assert "does not want" in await refused(client, "read", path="cart.py")
        assert editor.command("codeagent.apply", runId=run_id)
        editor.wait_until(lambda: "sum(items)" in editor.text(workspace / "cart.py"))


async def test_it_proposes_by_itself_and_hears_what_became(start: StartEditor, workspace: Path, state: Path) -> None:
    editor = allowed(start, workspace, state, choose=choosing(changes="Discard"))
    async with agent(workspace, state) as client:
        assert await said(client, "propose") == "Nothing is staged."
        await said(client, "edit", **EDIT)
        assert "discarded" in await said(client, "propose")
        assert "return 0" in await said(client, "read", path="cart.py")
        await said(client, "write", path="new.py", content="x = 1\n")
        editor.choose = choosing()
    editor.wait_until((workspace / "new.py").exists)


async def test_it_is_no_session_of_the_user(start: StartEditor, workspace: Path, state: Path) -> None:
    (workspace / "cart.py").write_text(SAVED)
    editor = start(say("Done."), state=state, main=hurried.MAIN, choose=choosing())
    editor.wait_until(lambda: len(meeting(state)) == 1)
    async with agent(workspace, state) as client:
        await said(client, "open_files")
        assert "at work" in editor.refusal("codeagent.steer", {"text": "hello"})
        assert editor.run("codeagent.run", task="say done")["message"]
        await said(client, "open_files")


async def test_questions_name_the_agent_and_settings_do_not_apply_unasked(
    start: StartEditor, workspace: Path, state: Path
) -> None:
    titles = []

    def choose(params: dict[str, Any]) -> str:
        titles.append(params["message"])
        return "Allow" if ASKS in params["message"] else "Blue" if "colour" in params["message"] else "Discard"

    editor = allowed(start, workspace, state, choose=choose, settings={"edits": {"apply": "auto"}})
    async with agent(workspace, state) as client:
        answer = await said(client, "ask_user", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}])
        assert "Blue" in answer and titles[-1] == f"{NAME}: The agent asks: Which colour?"
        await said(client, "edit", **EDIT)
        assert "discarded" in await said(client, "propose")
        assert editor.edits == []


async def test_several_calls_at_a_time_one_that_is_wrong_and_one_that_is_cancelled(
    start: StartEditor, workspace: Path, state: Path
) -> None:
    allowed(start, workspace, state)
    async with agent(workspace, state) as client:
        await said(client, "open_files")
        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(_wrote, client, number)
        assert "no argument 'allow_network'" in await refused(client, "run", command="true", allow_network=True)
        text = await refused(client, "edit", path="cart.py", old_str="nowhere", new_str="x")
        assert "edit_file" not in text
        assert "cart.py" in await refused(client, "read", path="card.py")
        began = time.monotonic()
        with anyio.move_on_after(1.0):
            await client.call_tool("run", {"command": "sleep 60"})
        await said(client, "run", command="true")
        assert time.monotonic() - began < 20


async def test_the_protocol_without_a_handshake_and_its_progress(
    start: StartEditor, workspace: Path, state: Path
) -> None:
    editor = allowed(start, workspace, state)
    seen: list[str | None] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async with agent(workspace, state, mode="auto") as client:
        result = await client.call_tool("run", {"command": "sleep 5.5; echo done"}, progress_callback=heard)
        assert "done" in text_of(result) and seen and set(seen) == {"Waiting for the editor …"}
    assert ASKS in editor.prompts[0]["message"]


async def _wrote(client: Any, number: int) -> None:
    await said(client, "write", path=f"n{number}.txt", content=str(number))
    assert str(number) in await said(client, "read", path=f"n{number}.txt")


async def test_what_is_tried_at_the_socket_is_in_the_audit_log(
    start: StartEditor, workspace: Path, state: Path
) -> None:
    editor = allowed(start, workspace, state)
    async with agent(workspace, state) as client:
        await said(client, "open_files")
        (path,) = listening(state)
        for data, reason in ((b"GET / HTTP/1.1\r\n\r\n", "http"), (b'{"hello": {}}\n', "protocol")):
            with socket.socket(socket.AF_UNIX) as raw:
                raw.connect(path)
                raw.sendall(data)
                assert json.loads(raw.makefile().readline())["refused"]["reason"] == reason
        await said(client, "edit", **EDIT)
    editor.close()
    notes = {entry["event"]: entry for entry in audit(state)}
    assert notes["lend"]["decision"] == "always" and notes["lend_attached"]["client"] == NAME
    assert {entry["reason"] for entry in audit(state) if entry["event"] == "lend_refused"} == {"http", "protocol"}
    assert any(entry.get("tool") == "edit_file" for entry in audit(state))
    assert meeting(state) == [] and not listening(state)


AGENT = """
import asyncio, sys
from pathlib import Path
from tests.editor_mcp.rig import agent, said
import os, subprocess
async def main():
    folder, state = Path(sys.argv[1]), Path(os.environ["CODEAGENT_STATE_DIR"])
    async with agent(folder, state) as client:
        await said(client, "edit", path="cart.py", old_str="return 0", new_str="return sum(items)")
        print("staged", flush=True)
        print(os.getpid(), flush=True)
        sys.stdin.read()
asyncio.run(main())
"""
