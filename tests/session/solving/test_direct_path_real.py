"""The direct path with the real shadow and real tests, and with the real embedded model: it says truly what it did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import ModelSettings, ShellSettings
from codeagent_lsp.direct.aptitude import KnownForms, ProofStore
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.request import RunRequest, Target
from tests.session.fakes import World, call, calls, know, say, until, world
from tests.session.solving.test_direct_path import Form, code, settings
from tests.session.test_embedded_task import real
from tests.shadow.rig import needs_overlay

pytestmark = [pytest.mark.slow, needs_overlay]

NOW = "def mean(values):\n    return sum(values) / (len(values) - 1)\n\n\ndef first(values):\n    return values[1]\n"
TESTS = (
    "import unittest\n\nfrom stats import first, mean\n\n\nclass StatsTest(unittest.TestCase):\n"
    "    def test_mean(self):\n        self.assertEqual(mean([2, 4]), 3)\n\n"
    "    def test_first(self):\n        self.assertEqual(first([7, 8]), 7)\n"
)
TASK = "test_stats.py fails. Repair stats.py."
MEAN = code("def mean(values):\n    return sum(values) / len(values)\n")
FIRST = code("def first(values):\n    return values[0]\n")
WRONG = code("def mean(values):\n    return sum(values)\n")


def project(tmp_path: Path, *replies: ScriptedReply, form: Form = "function") -> World:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "stats.py").write_text(NOW)
    (folder / "test_stats.py").write_text(TESTS)
    environments = Environments(ShellSettings, tmp_path / "state", tmp_path / "spool")
    made = world(folder, *replies, says=("Apply",), settings=settings(form), environments=environments, deadline=5)
    made.open("stats.py", NOW)
    return made


def passes(made: World) -> bool:
    """Whether the tests pass on what the buffers hold."""
    folder = made.root.parent / "seen"
    folder.mkdir()
    (folder / "stats.py").write_text(made.text("stats.py") or NOW)
    (folder / "test_stats.py").write_text(TESTS)
    return (
        subprocess.run([sys.executable, "-m", "unittest"], cwd=folder, capture_output=True, check=False).returncode == 0
    )


def on_disk(made: World) -> dict[str, str]:
    return {path.name: path.read_text() for path in made.root.iterdir() if path.is_file()}


async def test_tests_run_first_and_what_fails_goes_back(tmp_path: Path) -> None:
    made = project(tmp_path, MEAN, FIRST)
    done = await made.run(TASK)
    assert (done.status, done.outcome) == ("completed", "full")
    assert passes(made)
    asked = [request.messages[-1].content for request in made.models["model"].requests]  # type: ignore[attr-defined]
    assert "test_mean" in asked[0]
    assert "test_first" in asked[0]
    assert "test_mean" not in asked[1].partition("What fails now")[2]
    assert "2 passed" in done.summary
    assert on_disk(made) == {"stats.py": NOW, "test_stats.py": TESTS}


async def test_the_best_is_kept_and_what_fails_is_said(tmp_path: Path) -> None:
    made = project(tmp_path, MEAN, WRONG, WRONG)
    done = await made.run(TASK)
    assert done.status == "stopped"
    assert "test_first" in done.summary
    assert "len(values)\n" in (made.text("stats.py") or "")


async def test_the_tool_loop_is_held_to_the_tests(tmp_path: Path) -> None:
    """The model says that it is done; the tests say that it is not, and it is told."""
    mean = calls(call("edit_file", path="stats.py", old_str="(len(values) - 1)", new_str="len(values)"))
    made = project(tmp_path, say("✓ Done."), mean, say("Now it is."), form="auto")
    made.open("stats.py", NOW.replace("values[1]", "values[0]"))
    done = await made.run(TASK)
    assert done.status == "completed"
    assert passes(made)


async def test_unsaved_text_is_what_is_tested(tmp_path: Path) -> None:
    made = project(tmp_path, say("No."), MEAN)  # several small changes pass: it is asked which
    made.open("stats.py", NOW.replace("values[1]", "values[0]"))
    done = await made.run(TASK)
    assert done.status == "completed"
    assert passes(made)


async def test_a_quick_action_may_not_break_the_tests_beside_the_file(tmp_path: Path) -> None:
    wrong, right = (ScriptedReply(f"```python\n    return values[{n}]\n```") for n in (2, 0))
    made = project(tmp_path, wrong, right)
    good = NOW.replace("(len(values) - 1)", "len(values)").replace("values[1]", "(values[0])")
    made.open("stats.py", good)
    start = good.index("    return (values[0])")
    target = Target(made.read(made.path("stats.py")), start, len(good))
    done = await made.finished(made.manager.start(RunRequest("refactor", "", "t", target)))
    assert done.status == "completed"
    assert passes(made)


@pytest.mark.journey
@real
@pytest.mark.model
@pytest.mark.timeout(1800)  # it is waited for on a busy machine, too
async def test_the_embedded_model_says_truly_whether_it_is_done(tmp_path: Path) -> None:
    made = project(tmp_path, form="auto")
    model = made.models["model"] = await open_model(ModelSettings(provider="embedded"), tmp_path / "state")
    know(made, KnownForms(ProofStore(tmp_path)))
    run_id = made.manager.start(RunRequest("run", TASK, TASK))
    try:
        await until(lambda: run_id not in made.manager.runs.active(), 1700.0)
    finally:
        await model.close()
    done = made.completed(run_id)
    assert (done.status == "completed") is passes(made)
    assert not any(isinstance(event, events.AnomalyDetected) for event in made.events)
    assert on_disk(made) == {"stats.py": NOW, "test_stats.py": TESTS}
