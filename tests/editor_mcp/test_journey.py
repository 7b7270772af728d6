"""Another agent in the user's editor, from the question to the undo: a real client of MCP, a real server."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.editor_mcp.rig import ASKS, agent, choosing, listening, meeting, said
from tests.server.conftest import StartEditor

pytestmark = pytest.mark.slow  # whole servers at work

SAVED = "def total(items):\n    return 0\n"
UNSAVED = "# typed\n" + SAVED


async def test_it_is_asked_for_reads_edits_and_is_undone(start: StartEditor, workspace: Path, state: Path) -> None:
    cart = workspace / "cart.py"
    cart.write_text(SAVED)
    editor = start(state=state, choose=choosing())
    uri = editor.open(cart, UNSAVED)
    editor.wait_until(lambda: len(meeting(state)) == 1)
    assert not listening(state)
    async with agent(workspace, state) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"open_files", "read", "diagnostics", "definition", "references", "hover"} < tools
        assert not editor.prompts and not listening(state)
        assert "cart.py (not saved)" in await said(client, "open_files")
        assert ASKS in editor.prompts[0]["message"]
        assert [action["title"] for action in editor.prompts[0]["actions"]] == ["Not now", "Allow", "Never"]
        assert len(listening(state)) == 1
        assert "1|# typed" in await said(client, "read", path="cart.py")
        await said(client, "edit", path="cart.py", old_str="return 0", new_str="return sum(items)")
        assert "return sum(items)" in await said(client, "read", path="cart.py")
        assert editor.text(cart) == UNSAVED and cart.read_text() == SAVED
        ran = await said(client, "run", command="cat cart.py")
        assert "# typed" in ran and "sum(items)" in ran
        assert await anyio.to_thread.run_sync(lambda: editor.edits) == []
        assert "Accepted" in await said(client, "propose")
        assert editor.text(cart) == UNSAVED.replace("return 0", "return sum(items)") and cart.read_text() == SAVED
    editor.wait_until(lambda: not listening(state))
    editor.command("codeagent.undo")
    editor.wait_until(lambda: editor.text(cart) == UNSAVED)
    assert uri
