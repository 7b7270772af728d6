"""The plugin on a real screen: what stands where, the keys users press, and typing that nothing interrupts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clients.neovim.support import MARKS, SOURCE, call, edit, environment
from tests.clients.neovim_plugin.support import has_tmux, neovim, prepare
from tests.clients.scenarios import left_behind
from tests.clients.terminal.screen import Screen

pytestmark = [*MARKS, pytest.mark.skipif(not has_tmux(), reason="no tmux here")]

STATUS = """
vim.api.nvim_create_autocmd("LspAttach", {
  callback = function() vim.g.ready = "READY" vim.cmd.redrawstatus() end,
})
vim.o.laststatus = 3
vim.o.statusline = "%f %{get(g:, 'ready', '')} %{v:lua.require'codeagent'.statusline()}"
"""

Start = Callable[..., Screen]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    shown: list[Screen] = []

    def begin(
        script: Sequence[Mapping[str, Any]], more: str = "", settings: Mapping[str, Any] | None = None, **options: Any
    ) -> Screen:
        init = prepare(tmp_path, files={"a.py": SOURCE}, script=script, settings=settings, options=options)
        with init.open("a") as file:
            file.write(STATUS)
            file.write(more)
        variables = {**environment(tmp_path / "home", tmp_path / "state"), "TERM": "xterm-256color"}
        command = [neovim(), "--clean", "-u", str(init), str(tmp_path / "ws" / "a.py")]
        screen = Screen(tmp_path, command, variables)
        shown.append(screen)
        screen.wait("READY")
        return screen

    yield begin
    for screen in shown:
        screen.close()
    assert not left_behind(tmp_path / "state"), "the server outlived the editor"


def test_a_task_is_seen_reviewed_and_decided_by_keys_alone(start: Start) -> None:
    screen = start([edit("return 1", "return 10"), edit("return 3", "return 30"), {"text": "Changed **both**."}])
    screen.keys(":CodeAgent run change it", "Enter")
    asked = screen.wait("3: Discard")
    assert "## change it" in asked, "the transcript is there before the question"
    assert "✓ edit_file a.py" in asked
    assert "± Changes to a.py +2 −2" in asked
    assert "Changed both." in asked, "Markdown signs are hidden"
    screen.keys("1", "Enter")
    review = screen.wait("@@ -1")
    assert "a.py#" not in review
    assert "± a.py  +2 −2" in review
    assert "a accept · x discard" in review
    assert "a accept  x discard  A X whole file" in review.splitlines()[1]
    screen.keys("a")
    screen.wait(lambda shown: "return 10" not in shown and "return 30" in shown)
    screen.keys("x")
    decided = screen.wait("✗ Discarded: a.py")
    assert "return 10" in decided
    assert "return 30" not in decided
    assert "Every change is decided." in decided
    screen.keys(":CodeAgent undo", "Enter")
    screen.wait("↶ Undone: a.py")
    screen.keys(":qa!", "Enter")


def test_a_question_waits_until_the_user_has_stopped_typing(start: Start) -> None:
    question = call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}], format="single")
    screen = start([question | {"delay": 1}, {"text": "Fine."}])
    screen.keys(":CodeAgent run ask me", "Enter")
    screen.keys("O", "# mine")
    waiting = screen.wait("? codeagent waits for you (1)")
    assert "2: Blue" not in waiting
    screen.keys(" and more")
    screen.wait("# mine and more")
    time.sleep(0.5)
    assert "2: Blue" not in screen.text()
    screen.keys("Escape")
    screen.wait("2: Blue")
    screen.keys("2", "Enter")
    screen.wait("→ Blue")
    screen.keys(":qa!", "Enter")


def test_an_approval_is_given_by_keys(start: Start) -> None:
    reads = [call("read_file", path="a.py"), call("read_file", path="a.py"), {"text": "Read."}]
    screen = start(reads, settings={"permissions": {"ask": ["read_file"]}})
    screen.keys(":CodeAgent run read it", "Enter")
    asked = screen.wait("Allow once")
    assert "Allow read_file: a.py?" in asked
    assert "1: Deny" in asked, "the safe answer is the first"
    screen.keys("1", "Enter")
    screen.wait(lambda shown: "→ Deny" in shown and "Allow once" in shown)
    screen.keys("2", "Enter")
    screen.wait("→ Allow once")
    screen.wait("Read.")
    screen.keys(":qa!", "Enter")


@pytest.mark.volume
def test_with_manual_prompts_nothing_pops_up(start: Start) -> None:
    question = call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}], format="single")
    screen = start([question, {"text": "Fine."}], prompts="manual")
    screen.keys(":CodeAgent run ask me", "Enter")
    waiting = screen.wait("CodeAgent waits for you: The agent asks: Which colour?")
    assert "2: Blue" not in waiting
    screen.keys(":CodeAgent pending", "Enter")
    screen.wait("2: Blue")
    screen.keys("2", "Enter")
    screen.wait("→ Blue")
    screen.keys(":qa!", "Enter")


@pytest.mark.volume
def test_chinese(start: Start) -> None:
    screen = start([edit("return 1", "return 10"), {"text": "好了。"}], language="zh-cn")
    screen.keys(":CodeAgent run change", "Enter")
    asked = screen.wait("3: 放弃")
    assert "1: 查看" in asked
    screen.keys("1", "Enter")
    screen.wait("接受")
    screen.keys("ga")
    screen.wait("已应用：a.py")
    screen.keys(":qa!", "Enter")


def test_a_task_is_written_in_the_box_and_words_are_said_and_queued_there(start: Start) -> None:
    ask = call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}], format="single")
    look = call("list_dir", path=".") | {"delay": 4}
    screen = start([look, ask | {"expect": "be brief"}, {"text": "Blue it is."}, {"text": "Second answer."}])
    screen.keys(":CodeAgent chat", "Enter")
    screen.wait("What shall be done?")
    screen.keys("look at @a")
    screen.wait("@a.py File")
    screen.keys("Enter", "C-j", "and around")
    screen.wait("look at @a.py")
    screen.keys("Enter")
    screen.wait("> look at @a.py")
    begun = screen.wait("To the run at work")
    assert "> and around" in begun
    screen.keys("be brief", "Enter")
    screen.wait("> be brief")
    screen.keys("the next thing", "M-Enter")
    screen.wait("queued: begins when the session is free")
    assert "heard with its next step" in screen.text()
    asked = screen.wait("2: Blue")
    assert "1: Red" in asked, "an empty box is no reason to wait"
    screen.keys("2", "Enter")
    screen.wait("Second answer.")
    screen.keys("i", "Up", "Up")
    screen.wait("› Task")
    screen.wait(lambda shown: "be brief" in shown.splitlines()[-5:][0] + shown[shown.rindex("› Task") :])
    screen.keys("Escape", ":qa!", "Enter")


def test_commands_are_completed(start: Start) -> None:
    screen = start([])
    screen.keys(":CodeAgent tra", "Tab")
    screen.wait(":CodeAgent transcript")
    screen.keys("C-u", "CodeAgent mode by", "Tab")
    screen.wait(":CodeAgent mode bypass")
    screen.keys("Escape", ":qa!", "Enter")
