"""Changes that the agent did not make, in a real VS Code: by another program, and by an agent that borrows it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import Editor, Window, window
from tests.clients.vscode.test_runs import LAST, ONE, SOURCE, buffer, changed, until
from tests.editor_mcp.rig import agent, said
from tests.living import files_below

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

OUTSIDE = SOURCE.replace(ONE, "return 10\n\n\ndef f0").replace(LAST, "return 990")
WAITS = {"text": "Nothing to do."}


def lens(opened: Window, words: str) -> Any:
    """The lenses over code that say so."""
    return opened.page.locator(".codelens-decoration a").filter(has_text=words)


def decision(opened: Window, words: str) -> Any:
    """What the chat tells of a decision."""
    return opened.transcript().locator(".decision").filter(has_text=words)


@pytest.mark.volume
def test_what_another_program_changed_is_kept_and_reverted_in_those_words(tmp_path: Path, editor: Editor) -> None:
    settings = {"codeagent.foreign.watch": "auto"}
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[WAITS], settings=settings) as opened:
        opened.open("a.py")
        until(lambda: bool(files_below(opened.state, "before/*/*")), "the server does not follow the files")
        opened.page.wait_for_timeout(2000)  # what it still reads of the start is not from outside
        (opened.workspace / "a.py").write_text(OUTSIDE)
        opened.command("CodeAgent: Open the Chat")
        opened.transcript().locator(".changes .summary").filter(has_text="Changed outside").wait_for()
        for label in ("Keep", "Revert"):
            opened.in_bar(label).wait_for()
        assert opened.transcript().locator(".barActs button").all_inner_texts() == ["Review", "Keep", "Revert"]
        assert not opened.transcript().locator(".prompt .acts").count(), "nobody asked for this, so nobody asks again"
        changed(opened, "a.py").wait_for()
        opened.in_bar("Review").click()
        opened.page.locator(".tab.active").filter(has_text="Changed outside").wait_for()
        lens(opened, "Keep file").first.wait_for()
        assert not opened.page.locator(".quick-input-widget").is_visible(), "it asked over the code"
        lens(opened, "Revert change").first.click()
        decision(opened, "Reverted: a.py").wait_for()
        assert decision(opened, "Reverted").locator("button").all_inner_texts()[:2] == ["Save", "Bring it back"]
        opened.in_bar("Keep").click()
        decision(opened, "Kept: a.py").wait_for()
        assert not decision(opened, "Kept").locator("button").count()
        assert buffer(opened) == SOURCE.replace(LAST, "return 990")
        opened.in_bar("Keep").wait_for(state="detached")


def test_another_agent_is_allowed_once_and_its_changes_are_reviewed(tmp_path: Path, editor: Editor) -> None:
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[WAITS]) as opened:
        opened.open("a.py")
        opened.page.keyboard.type("# typed\n")
        opened.command("CodeAgent: Open the Chat")
        found: list[str] = []

        async def works() -> None:
            async with agent(opened.workspace, opened.state) as client:
                found.append(await said(client, "read", path="a.py"))
                await said(client, "edit", path="a.py", old_str=LAST, new_str="return 990")
                found.append(await said(client, "propose"))

        # The page's library has a loop in this thread.
        other = threading.Thread(target=lambda: asyncio.run(works()))
        other.start()
        opened.transcript().locator(".question button").filter(has_text="Allow").click()
        opened.in_bar("Apply").click()
        other.join(60)
        assert not other.is_alive()
        assert "# typed" in found[0]
        decision(opened, "Accepted: a.py").wait_for()
        assert buffer(opened) == "# typed\n" + SOURCE.replace(LAST, "return 990")
        opened.command("CodeAgent: Standing Approvals…")
        opened.pick("claude-code may use this editor")
        opened.command("CodeAgent: Standing Approvals…")
        opened.page.locator(".notification-list-item").filter(has_text="Nothing is allowed or refused").wait_for()
