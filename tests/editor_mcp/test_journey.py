"""Another agent in the user's editor, from the question to the undo: a real client of MCP, a real server."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from codeagent_lsp.session.lending.lent_run import MOST_BYTES
from tests.editor_mcp.rig import ASKS, agent, choosing, listening, meeting, said
from tests.language_servers.real import missing, path_with_servers
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
        long = await said(client, "run", command="seq 30000")
        assert len(long) < MOST_BYTES + 500 and "read @output/1.txt" in long and "read_file" not in long
        assert (await said(client, "read", path="@output/1.txt", start_line=9000, end_line=9000)).startswith(
            "9000|9000"
        )
        assert await anyio.to_thread.run_sync(lambda: editor.edits) == []
        assert "Accepted" in await said(client, "propose")
        assert editor.text(cart) == UNSAVED.replace("return 0", "return sum(items)") and cart.read_text() == SAVED
    editor.wait_until(lambda: not listening(state))
    editor.command("codeagent.undo")
    editor.wait_until(lambda: editor.text(cart) == UNSAVED)
    assert uri


async def test_it_asks_the_language_servers_and_renames_by_them(
    start: StartEditor, workspace: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := missing("basedpyright-langserver"):
        pytest.skip(why)
    monkeypatch.setenv("PATH", path_with_servers())
    cart, shop = workspace / "cart.py", workspace / "shop.py"
    cart.write_text(SAVED)
    shop.write_text('from cart import total\n\nprint(total([1]), "total")\n')
    editor = start(state=state, choose=choosing())
    editor.open(cart, UNSAVED)
    async with agent(workspace, state) as client:
        await said(client, "open_files")
        assert "cart.py:2" in await said(client, "definition", symbol="total")
        found = await said(client, "references", symbol="total")
        assert "shop.py:1" in found and "shop.py:3" in found
        await said(client, "rename", path="cart.py", symbol="total", new_name="sum_of")
        assert "def sum_of" in await said(client, "read", path="cart.py")
        assert "Accepted" in await said(client, "propose")
    assert editor.text(cart) == UNSAVED.replace("total", "sum_of")
    assert editor.text(shop) == 'from cart import sum_of\n\nprint(sum_of([1]), "total")\n'
    assert cart.read_text() == SAVED
