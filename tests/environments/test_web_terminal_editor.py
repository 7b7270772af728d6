"""A web terminal started in a run: the editor is asked to open it, and it ends with the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.children import command_lines
from tests.environments.screens import needs_terminal
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = [pytest.mark.slow, *needs_terminal]  # a whole server, and a real shell in a real sandbox


def started(workspace: Path, state: Path, answer: str, **options: Any) -> tuple[StockEditor, list[dict[str, Any]]]:
    """An editor in which a run has started a terminal; what it was asked to show."""
    shown: list[dict[str, Any]] = []

    def show(params: dict[str, Any]) -> dict[str, bool]:
        shown.append(params)
        return {"success": True}

    editor = StockEditor(
        workspace,
        state,
        script=[call("terminal"), say("It runs.")],
        answers={"window/showDocument": show},
        choose=lambda params: answer,
        **options,
    )
    try:
        editor.run("codeagent.run", task="open a terminal", seconds=120)
    except BaseException:
        editor.client.kill()
        raise
    return editor, shown


def kept(state: Path) -> str:
    return "\n".join(path.read_text("utf-8", "replace") for path in state.rglob("*") if path.is_file())


def test_it_is_opened_when_the_user_agrees(workspace: Path, tmp_path: Path) -> None:
    before = set(command_lines())
    editor, shown = started(workspace, tmp_path / "state", "Open")
    with editor:
        (asked,) = editor.prompts
        assert [action["title"] for action in asked["actions"]] == ["Not now", "Open"]
        (opened,) = [params for params in shown if params.get("external")]
        assert opened["uri"].startswith("http://127.0.0.1:")
        page = httpx.get(opened["uri"], trust_env=False)
        assert (page.status_code, "<title>Terminal</title>" in page.text) == (200, True)
        token = opened["uri"].split("/")[3]
        assert token not in kept(tmp_path / "state") and token not in json.dumps(editor.prompts)
        assert "setsid --ctty" in (next((tmp_path / "state").rglob("audit.jsonl"))).read_text()
        assert [line for pid, line in command_lines().items() if pid not in before and "serving_program" in line]
        assert editor.close() == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(opened["uri"], trust_env=False)


def test_it_is_not_opened_when_the_user_does_not(workspace: Path, tmp_path: Path) -> None:
    editor, shown = started(workspace, tmp_path / "state", "Not now")
    with editor:
        assert len(editor.prompts) == 1
        assert [params for params in shown if params.get("external")] == []
        assert not [line for line in command_lines().values() if "serving_program" in line and str(tmp_path) in line]


def test_a_client_that_opens_nothing_is_told_the_address(workspace: Path, tmp_path: Path) -> None:
    capabilities = {**STOCK, "window": {"workDoneProgress": True}}
    editor, shown = started(workspace, tmp_path / "state", "Open", capabilities=capabilities)
    with editor:
        message = editor.told("Open this address in a browser: http://127.0.0.1:")
        assert httpx.get(message.split(": ")[1], trust_env=False).status_code == 200
        assert shown == []


def test_it_goes_with_its_session(workspace: Path, tmp_path: Path) -> None:
    editor, shown = started(workspace, tmp_path / "state", "Open")
    with editor:
        (opened,) = [params["uri"] for params in shown if params.get("external")]
        assert httpx.get(opened, trust_env=False).status_code == 200
        (session,) = (path.stem for path in (tmp_path / "state").rglob("sessions/*.jsonl"))
        assert editor.command("codeagent.session.delete", sessionId=session) == {"ok": True}
        editor.wait_until(lambda: not reachable(opened), 30)


def reachable(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
