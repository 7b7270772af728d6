"""How the work of a capable model ends: what is judged, what it is told, and what the user is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.finish import asks_back, question_of
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.shadow.shell import Approve, Shell
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from tests.session.fakes import World, call, calls, say, world, write
from tests.tools.shells import OVERLAY
from tests.tools.testing.rig import CopyShell

STRONG = ModelInfo("strong", "openai", facts=window_known(200_000), tool_calling="native")
SHAPES = "def area(a, b):\n    return a + b\n\n\ndef side(a):\n    return a\n"
RIGHT = SHAPES.replace("a + b", "a * b")
BROKEN = RIGHT.replace("return a\n", "return a.b\n")
TESTS = (
    "import unittest\n\nfrom shapes import area, side\n\n\nclass ShapesTest(unittest.TestCase):\n"
    "    def test_area(self):\n        self.assertEqual(area(2, 3), 6)\n\n"
    "    def test_side(self):\n        self.assertEqual(side(2), 2)\n\n"
    "    def test_colour(self):\n        self.fail('colours are not there yet')\n"
)


class Copies:
    """Shadows whose commands run in a copy of the files as the run sees them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran: list[str] = []

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        self.ran.append(session_id)
        return CopyShell(self.root, view, isolation=OVERLAY)

    async def close(self, session_id: str | None = None) -> None:
        pass


def shapes(tmp_path: Path, *replies: ScriptedReply, says: tuple[str, ...] = ("Apply",), **more: str) -> World:
    made = world(tmp_path / "w", *replies, says=says, environments=Copies(tmp_path / "w"), deadline=0.05, info=STRONG)
    for name, text in {"shapes.py": SHAPES, "test_shapes.py": TESTS, **more}.items():
        (made.root / name).write_text(text)
        made.open(name, text)
    return made


def model(made: World) -> ScriptedModel:
    found = made.models["model"]
    assert isinstance(found, ScriptedModel)
    return found


def told(made: World, index: int = -1) -> str:
    return model(made).requests[index].messages[-1].content


def titles(made: World) -> list[str]:
    return [question.question.title for question in made.user.shown]


@pytest.mark.slow
async def test_what_was_red_before_in_the_same_way_is_nobodys_fault(tmp_path: Path) -> None:
    made = shapes(tmp_path, write("shapes.py", RIGHT), say("area multiplies now."))
    done = await made.run("Let area in shapes.py multiply its sides")
    assert (done.status, done.outcome, made.text("shapes.py")) == ("completed", "full", RIGHT)
    assert len(model(made).requests) == 2
    assert done.summary.startswith("area multiplies now.") and "test_colour" in done.summary
    assert "1 fail as they did before" in titles(made)[-1] and "failed" not in titles(made)[-1]
    proof = [event for event in made.events if isinstance(event, events.ChangesProposed)][-1].proof
    assert proof is not None and proof["tests"]["before"] == 1 and not proof["tests"]["failing"]
    assert [name.rpartition(".")[2] for name in proof["tests"]["as_before"]] == ["test_colour"]


@pytest.mark.slow
async def test_a_new_failure_is_told_once_in_the_same_conversation(tmp_path: Path) -> None:
    made = shapes(
        tmp_path, write("shapes.py", BROKEN), say("Done."), write("shapes.py", RIGHT), say("Now it is right.")
    )
    done = await made.run("Let area in shapes.py multiply its sides")
    assert (done.status, made.text("shapes.py")) == ("completed", RIGHT)
    requests = model(made).requests
    assert len(requests) == 4 and len({tuple(tool["name"] for tool in each.tools) for each in requests}) == 1
    assert requests[2].messages[: len(requests[1].messages)] == requests[1].messages
    words = told(made, 2)
    assert words.startswith("You are not done") and "test_side" in words
    assert words.index("test_side") < words.index("test_colour")


@pytest.mark.slow
async def test_what_stays_red_is_said_and_is_no_success(tmp_path: Path) -> None:
    made = shapes(tmp_path, write("shapes.py", BROKEN), say("Done."), say("It has to be so."))
    done = await made.run("Let area in shapes.py multiply its sides")
    assert done.status == "stopped" and "test_side" in done.summary and "It has to be so." in done.summary
    assert "test_colour" not in done.summary and len(model(made).requests) == 3
    assert "1 new failure" in titles(made)[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [
        "In shapes.py let area multiply, so that test_shapes.ShapesTest.test_area passes",
        "Sorge dafür, dass area in shapes.py multipliziert und test_area grün wird",
        "shapes.py の area を直して test_area を通してください",
        "Corrige l'aire dans shapes.py, test_area est rouge",
    ],
)
async def test_a_named_test_has_to_pass_in_any_language(tmp_path: Path, task: str) -> None:
    half = SHAPES.replace("a + b", "a - b")
    made = shapes(tmp_path, write("shapes.py", half), say("Fertig."), say("Fertig."))
    done = await made.run(task)
    assert done.status == "stopped" and "test_area" in done.summary and "test_colour" not in done.summary
    made = shapes(tmp_path / "again", write("shapes.py", RIGHT), say("Fertig."))
    assert (await made.run(task)).status == "completed"


@pytest.mark.slow
async def test_a_named_file_has_to_pass_whole(tmp_path: Path) -> None:
    made = shapes(tmp_path, write("shapes.py", RIGHT), say("Done."), say("Done."))
    done = await made.run("Make test_shapes.py pass")
    assert done.status == "stopped" and "test_colour" in done.summary


@pytest.mark.slow
async def test_a_file_of_tests_that_the_run_changes_may_keep_what_was_red(tmp_path: Path) -> None:
    more = TESTS + "\n    def test_more(self):\n        self.assertEqual(area(1, 1), 1)\n"
    made = shapes(
        tmp_path, calls(call("write_file", path="test_shapes.py", content=more)), write("shapes.py", RIGHT), say()
    )
    done = await made.run("Add a test for ones to test_shapes.py and let area multiply")
    assert done.status == "completed" and "test_colour" in done.summary


@pytest.mark.slow
async def test_its_own_tests_have_to_pass(tmp_path: Path) -> None:
    wrong = TESTS.replace("test_colour", "test_new").replace(
        "self.fail('colours are not there yet')", "self.assertEqual(side(1), 2)"
    )
    made = shapes(
        tmp_path, calls(call("write_file", path="test_more.py", content=wrong)), write("shapes.py", RIGHT), say(), say()
    )
    done = await made.run("Let area in shapes.py multiply its sides, and test it")
    assert done.status == "stopped" and "test_new" in done.summary


@pytest.mark.slow
async def test_a_question_back_is_put_to_the_user_and_the_answer_goes_on(tmp_path: Path) -> None:
    asks = say("side() is right, area() is to blame. Shall I change area()?")
    made = shapes(tmp_path, asks, write("shapes.py", RIGHT), say("Changed."), says=("Yes, do", "Apply"))
    done = await made.run("Fix side in shapes.py")
    assert (done.status, made.text("shapes.py")) == ("completed", RIGHT)
    assert titles(made)[0] == "The agent asks: Shall I change area()?"
    last = model(made).requests[1].messages[-1]
    assert (last.role, last.content, last.name) == ("user", "Yes, do", "")
    assert all(request.tools for request in model(made).requests)


async def test_without_an_answer_the_run_waits_and_nothing_else_is_tried(tmp_path: Path) -> None:
    made = shapes(tmp_path, say("Shall I change area()?"), says=())
    done = await made.run("Fix side in shapes.py")
    assert (done.status, done.summary) == ("waiting", "Shall I change area()?")
    assert len(model(made).requests) == 1 and not done.error


@pytest.mark.slow
async def test_what_is_staged_is_offered_although_the_question_is_open(tmp_path: Path) -> None:
    made = shapes(
        tmp_path,
        write("shapes.py", RIGHT),
        say("area is done. Which of the two sides do you mean?"),
        says=("", "Apply"),
    )
    done = await made.run("Mend shapes.py")
    assert done.status == "waiting" and made.text("shapes.py") == RIGHT


@pytest.mark.parametrize("task", ["hello", "What can you do?", "Where is area computed?"])
async def test_a_chat_is_not_asked_back(tmp_path: Path, task: str) -> None:
    made = shapes(tmp_path, say("In shapes.py. What shall I do with it?"))
    done = await made.run(task)
    assert done.status == "completed" and not titles(made)


async def test_a_question_of_the_user_is_answered_whatever_its_end(tmp_path: Path) -> None:
    made = shapes(tmp_path, say("It adds. Is that wanted?"))
    request = RunRequest("ask", "what does area do", "what does area do")
    done = await made.finished(made.manager.start(request))
    assert done.status == "completed" and not titles(made)


async def test_nothing_changed_is_asked_about_once_and_said(tmp_path: Path) -> None:
    made = shapes(tmp_path, say("I would multiply."), say("Nothing has to change."))
    done = await made.run("Fix the bug in shapes.py")
    assert (
        done.status == "stopped" and "Nothing was changed." in done.summary and "Nothing has to change." in done.summary
    )
    assert len(model(made).requests) == 2 and told(made).startswith("Nothing is changed.")


@pytest.mark.parametrize(
    "task", ["In shapes.py let area be a product", "Bitte erkläre die Formen", "Show me the area. Change nothing."]
)
async def test_where_the_words_do_not_surely_ask_for_a_change_the_answer_stands(tmp_path: Path, task: str) -> None:
    made = shapes(tmp_path, say("It is a product already."))
    done = await made.run(task)
    assert done.status == "completed" and len(model(made).requests) == 1


@pytest.mark.slow
async def test_work_that_is_green_at_the_limit_is_done(tmp_path: Path) -> None:
    looks = [calls(call("list_dir", path=".", depth=1 + number % 2)) for number in range(2)]
    replies = [looks[0], write("shapes.py", RIGHT), calls(call("run_tests", path="test_shapes.py"))]
    made = shapes(tmp_path, *replies)
    services = made.manager._services
    assert services.user.settings().agent.max_iterations == "auto"
    done = await limited(tmp_path, 3, *replies).run("Let area in shapes.py multiply its sides")
    assert done.status == "completed" and "3 model calls" in done.summary and "test_colour" in done.summary


@pytest.mark.slow
async def test_tests_that_the_model_ran_on_this_text_are_not_run_again(tmp_path: Path) -> None:
    tests = TESTS.replace("self.fail('colours are not there yet')", "pass")
    replies = [write("shapes.py", RIGHT), calls(call("run_tests")), say("area multiplies now; the tests pass.")]
    made = shapes(tmp_path, *replies)
    made.open("test_shapes.py", tests)
    done = await made.run("Let area in shapes.py multiply its sides, and see that all tests pass")
    assert done.status == "completed" and "3 passed" in titles(made)[-1]
    ran = [event for event in made.events if isinstance(event, events.ToolFinished) and event.tool == "run_tests"]
    assert len(ran) == 1


@pytest.mark.slow
async def test_work_that_is_red_at_the_limit_is_not(tmp_path: Path) -> None:
    made = limited(tmp_path, 2, write("shapes.py", BROKEN), calls(call("list_dir", path=".")))
    done = await made.run("Let area in shapes.py multiply its sides")
    assert done.status == "stopped" and "2 model calls" in done.summary and "test_side" in done.summary


def limited(tmp_path: Path, count: int, *replies: ScriptedReply) -> World:
    from dataclasses import replace

    folder = tmp_path / f"limited{count}"
    made = world(
        folder,
        *replies,
        says=("Apply",),
        environments=Copies(folder),
        deadline=0.05,
        info=STRONG,
        settings=lambda value: replace(value, agent=replace(value.agent, max_iterations=count)),
    )
    for name, text in {"shapes.py": SHAPES, "test_shapes.py": TESTS}.items():
        (made.root / name).write_text(text)
        made.open(name, text)
    return made


@pytest.mark.slow
async def test_a_run_that_fails_offers_what_it_has_staged(tmp_path: Path) -> None:
    made = shapes(tmp_path, write("shapes.py", RIGHT), ScriptedReply("half", error="broken"))
    done = await made.run("Let area in shapes.py multiply its sides")
    assert (done.status, done.outcome, made.text("shapes.py")) == ("failed", "full", RIGHT) and done.error


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Shall I change area()?", "Shall I change area()?"),
        ("I looked. Shall I change **area()?**", "Shall I change **area()?**"),
        ("要修改 area() 吗？", "要修改 area() 吗？"),
        ("Soll ich? \n\n", "Soll ich?"),
        ("Which one?\n\n1. the first\n2. the second", "Which one?"),
        ("哪一个？\n- 第一个\n- 第二个", "哪一个？"),
        ("هل أغير؟", "هل أغير؟"),
        ('He asked "why?"', 'He asked "why?"'),
        ("Why? Because it is so.", ""),
        ("Done.", ""),
        ("", ""),
        ("- a list?\n- of things.", ""),
    ],
)
def test_where_a_text_ends_with_a_question(text: str, question: str) -> None:
    assert question_of(text) == question and asks_back(text) is bool(question)


PLAN = call("create_plan", goal="Areas", steps=[{"title": "Area"}, {"title": "Side"}], estimated_complexity="low")


async def planned(made: World, task: str) -> events.RunCompleted:
    return await made.finished(made.manager.start(RunRequest("run", task, task, planning="always")))


@pytest.mark.slow
async def test_what_a_plan_has_changed_is_judged_as_a_whole(tmp_path: Path) -> None:
    edit = call("edit_file", path="shapes.py", old_str="a + b", new_str="a * b")
    wrong = call("edit_file", path="shapes.py", old_str="return a\n", new_str="return a.b\n")
    mended = call("edit_file", path="shapes.py", old_str="return a.b\n", new_str="return a\n")
    made = shapes(
        *(tmp_path, calls(PLAN), calls(edit), say("One."), calls(wrong), say("Two.")),
        *(calls(mended), say("Mended.")),
        says=("Start", "Apply", "Apply", "Apply"),
    )
    done = await planned(made, "Let area multiply, and look at side")
    assert done.status == "completed"
    told = model(made).requests[-2].messages[-1].content
    assert told.startswith("You are not done") and "test_side" in told
    assert made.text("shapes.py") == RIGHT


@pytest.mark.slow
async def test_each_step_of_a_plan_is_decided_about_with_its_own_tests(tmp_path: Path) -> None:
    edit = call("edit_file", path="shapes.py", old_str="a + b", new_str="a * b")
    again = call("edit_file", path="shapes.py", old_str="a * b", new_str="b * a")
    made = shapes(
        tmp_path, calls(PLAN), calls(edit), say("One."), calls(again), say("Two."), says=("Start", "Apply", "Apply")
    )
    assert (await planned(made, "Let area multiply, and look at side")).status == "completed"
    asked = [title for title in titles(made) if "Apply" in title]
    assert len(asked) == 2 and all("2 passed" in title and "Outdated" not in title for title in asked)
    ran = [event for event in made.events if isinstance(event, events.ToolFinished) and event.tool == "run_tests"]
    assert len(ran) == 3  # once for each step, and once at the end, as a test that fails is compared


@pytest.mark.slow
async def test_a_plan_that_leaves_tests_red_is_not_done(tmp_path: Path) -> None:
    wrong = call("edit_file", path="shapes.py", old_str="return a\n", new_str="return a.b\n")
    made = shapes(
        *(tmp_path, calls(PLAN), say("Nothing."), calls(wrong), say("Two."), say("It is right so.")),
        says=("Start", "Apply", "Apply"),
    )
    done = await planned(made, "Look at area and side")
    assert done.status == "stopped" and "test_side" in done.summary
