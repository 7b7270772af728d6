"""Repairs without the model, with the real shadow and real tests: found, told as such, and only where tests decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from tests.session.fakes import World, say, world
from tests.session.solving.test_direct_path import settings
from tests.shadow.rig import needs_overlay

pytestmark = [pytest.mark.slow, needs_overlay]

RIGHT = "def last(values):\n    end = len(values) - 1\n    return values[end]\n"
WRONG = RIGHT.replace("- 1", "- 2")
CASES = "([3], 3), ([5, 1, 2], 2), ([1, 2, 3, 4], 4), ([2, 8], 8)"
TASK = "test_stats.py fails. Repair stats.py."


def project(tmp_path: Path, *replies: ScriptedReply, text: str = WRONG, cases: str = CASES) -> World:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "stats.py").write_text(text)
    (folder / "test_stats.py").write_text(
        "import unittest\n\nfrom stats import last\n\n\nclass LastTest(unittest.TestCase):\n"
        f"    def test_last(self):\n        for values, wanted in ({cases},):\n"
        "            self.assertEqual(last(values), wanted)\n"
    )
    environments = Environments(ShellSettings, tmp_path / "state", tmp_path / "spool")
    chosen = settings("function")
    made = world(folder, *replies, says=("Apply",), settings=chosen, environments=environments, deadline=5)
    made.open("stats.py", text)
    return made


def asked(made: World) -> int:
    return len(made.models["model"].requests)  # type: ignore[attr-defined]


async def test_the_only_change_with_which_the_tests_pass(tmp_path: Path) -> None:
    made = project(tmp_path)
    done = await made.run(TASK)
    assert (done.status, done.outcome) == ("completed", "full")
    assert made.text("stats.py") == RIGHT
    assert asked(made) == 0
    assert "The model was not asked." in done.summary
    assert "`end = len(values) - 2` → `end = len(values) - 1`" in done.summary
    assert "1 passed" in done.summary
    told = "".join(event.content for event in made.events if isinstance(event, events.Token))
    assert "stats.py, line 2" in told
    assert (made.root / "stats.py").read_text() == WRONG, "written before it was accepted"
    runs = [event for event in made.events if isinstance(event, events.ToolCalls)]
    assert len(runs) <= 3, "what was tried is in the conversation"


async def test_where_several_changes_pass_the_model_is_asked(tmp_path: Path) -> None:
    made = project(tmp_path, *[say("I do not know.")] * 9, cases="([3, 3], 3), ([5], 5)")
    done = await made.run(TASK)
    assert done.status == "stopped"
    assert asked(made) > 0
    assert made.text("stats.py") == WRONG


async def test_where_several_changes_of_one_line_pass_the_model_chooses(tmp_path: Path) -> None:
    made = project(tmp_path, say("end = len(values) - 1"), cases="([3, 1], 1), ([4, 6], 6)")
    done = await made.run(TASK)
    assert (done.status, done.outcome, asked(made)) == ("completed", "full", 1)
    assert made.text("stats.py") == RIGHT
    assert "The model chose this one" in done.summary and "The others: `" in done.summary


async def test_what_no_small_change_repairs_is_for_the_model(tmp_path: Path) -> None:
    text = RIGHT.replace("values[end]", "None")
    made = project(tmp_path, ScriptedReply(f"stats.py\n```python\n{RIGHT}```\n"), text=text)
    done = await made.run(TASK)
    assert (done.status, done.outcome) == ("completed", "full")
    assert (asked(made), made.text("stats.py")) == (1, RIGHT)


async def test_a_change_that_never_ends_is_passed_over(tmp_path: Path) -> None:
    right = "def last(values):\n    n = 0\n    while n < len(values):\n        n += 1\n    return n\n"
    made = project(tmp_path, text=right.replace("n = 0", "n = 1"), cases="([3], 1), ([], 0), ([1, 2], 2)")
    done = await made.run(TASK)
    assert done.status == "completed"
    assert made.text("stats.py") == right


async def test_what_is_asked_for_anew_is_no_repair(tmp_path: Path) -> None:
    made = project(tmp_path, *[say("I do not know.")] * 9)
    done = await made.run("Add a parameter `default` to last in stats.py, so that test_stats.py passes.")
    assert done.status == "stopped"
    assert asked(made) > 0
