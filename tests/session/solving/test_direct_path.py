"""Runs on the direct path: staged by the rules, told truthfully, merged with what is typed, and the way back to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import Settings
from codeagent_lsp.direct.aptitude import Proof, Score
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import Model, ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.session.request import RunKind, RunRequest, Target
from tests.index.workspaces import write as write_files
from tests.session.fakes import MIDDLING, World, call, calls, know, say, until, world, write
from tests.session.indexed import indexing
from tests.session.plan.plans import create

NOW = "def mean(values):\n    return sum(values) / (len(values) - 1)\n\n\ndef first(values):\n    return values[0]\n"
RIGHT = NOW.replace(" / (len(values) - 1)", " / len(values)")
TASK = "The function mean in stats.py is wrong. Fix it."
Form = Literal["auto", "tools", "whole", "function", "blocks", "diff"]


def settings(form: Form, attempts: int = 3) -> Callable[[Settings], Settings]:
    return lambda value: replace(value, agent=replace(value.agent, answer_form=form, attempts=attempts))


def shop(tmp_path: Path, *replies: ScriptedReply, form: Form = "function", says: tuple[str, ...] = ("Apply",)) -> World:
    made = world(tmp_path / "w", *replies, says=says, settings=settings(form), deadline=0.2, info=MIDDLING)
    put(made, "stats.py", NOW)
    return made


def put(made: World, name: str, text: str) -> None:
    """A file on disk and in a buffer."""
    path = Path(made.path(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    made.open(name, text)


def on_disk(made: World, name: str) -> str:
    return Path(made.path(name)).read_text()


def code(text: str, name: str = "stats.py", words: str = "The divisor is wrong.") -> ScriptedReply:
    return ScriptedReply(f"{words}\n\n{name}\n```python\n{text}```\n")


MEAN = code("def mean(values):\n    return sum(values) / len(values)\n")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["whole", "function", "blocks", "diff"])
async def test_a_task_in_every_form(tmp_path: Path, form: Form) -> None:
    answers = {
        "whole": code(RIGHT),
        "function": MEAN,
        "blocks": ScriptedReply(
            "stats.py\n<<<<<<< SEARCH\n    return sum(values) / (len(values) - 1)\n=======\n"
            "    return sum(values) / len(values)\n>>>>>>> REPLACE\n"
        ),
        "diff": ScriptedReply(
            "```diff\n--- a/stats.py\n+++ b/stats.py\n@@ -1,2 +1,2 @@\n def mean(values):\n"
            "-    return sum(values) / (len(values) - 1)\n+    return sum(values) / len(values)\n```\n"
        ),
    }
    made = shop(tmp_path, answers[form], form=form)
    done = await made.run(TASK)
    assert (done.status, done.outcome) == ("completed", "full")
    assert made.text("stats.py") == RIGHT
    assert on_disk(made, "stats.py") == NOW


async def test_events_and_conversation(tmp_path: Path) -> None:
    made = shop(tmp_path, MEAN)
    await made.run(TASK)
    kinds = [event.type for event in made.events if event.type not in ("message_added", "usage")]
    order = [kinds.index(kind) for kind in ("response_start", "status", "tool_calls", "tool_result")]
    assert order == sorted(order)
    assert kinds[-1] == "run_completed"
    said = made.manager.runs.all()[0].session.context.conversation
    assert [message.role for message in said] == ["user", "assistant"]
    assert "(Changed: stats.py.)" in said[1].content
    tokens = "".join(event.content for event in made.events if isinstance(event, events.Token))
    assert tokens == "The divisor is wrong.\nChanged: stats.py. No test was run on it."


async def test_a_later_task_knows_of_the_earlier_one(tmp_path: Path) -> None:
    made = shop(
        tmp_path, MEAN, code("def first(values):\n    return values[0] if values else None\n"), says=("Apply",) * 2
    )
    model = made.models["model"]
    await made.run(TASK)
    await made.run("Now make the other function return None for an empty list.")
    prompt = model.requests[1].messages[-1].content  # type: ignore[attr-defined]
    assert "What was said before" in prompt
    assert "def first" in prompt


async def test_nothing_changed_is_never_done(tmp_path: Path) -> None:
    made = shop(tmp_path, code(NOW), say("It is fine."), say("✓ Done, I fixed it."))
    done = await made.run(TASK)
    assert done.status == "stopped"
    assert done.summary.startswith("Nothing was changed")
    assert "I fixed it" in done.summary
    assert made.text("stats.py") == NOW


async def test_the_words_for_it_are_the_users(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("没有问题。"), settings=settings("whole", 1), language="zh-cn")
    put(made, "stats.py", NOW)
    done = await made.run("修复 stats.py 中 mean 的错误。")
    assert done.status == "stopped"
    assert done.summary.startswith("没有任何更改")


async def test_a_question_is_answered_with_tools_or_in_words(tmp_path: Path) -> None:
    made = shop(tmp_path, say("It is the mean."))
    done = await made.run("What does mean in stats.py do?")
    assert (done.status, done.summary) == ("completed", "It is the mean.")
    assert made.models["model"].requests[0].tools  # type: ignore[attr-defined]


async def test_what_is_typed_meanwhile_stays(tmp_path: Path) -> None:
    made = shop(tmp_path)
    typed = NOW + "\n\ndef typed():\n    return 'by the user'\n"
    made.script(ScriptedReply(MEAN.text, chunks=20, delay=0.005))
    run_id = made.manager.start(RunRequest("run", TASK, TASK))
    await until(lambda: any(isinstance(event, events.Token) for event in made.events))
    made.buffers.open(made.path("stats.py"), typed, 7)
    done = await made.finished(run_id)
    assert done.outcome == "full"
    assert made.text("stats.py") == typed.replace(" / (len(values) - 1)", " / len(values)")


async def test_a_file_that_was_not_shown_is_never_written(tmp_path: Path) -> None:
    made = shop(tmp_path, code("X = 1\n", "other.py"), code("X = 1\n", "other.py"), code("X = 1\n", "other.py"))
    put(made, "other.py", "X = 0\nKEPT = True\n")
    await made.run(TASK)
    assert "KEPT = True" in (made.text("other.py") or "")


async def test_a_rule_against_edits_holds(tmp_path: Path) -> None:
    def denied(value: Settings) -> Settings:
        chosen = settings("function", 2)(value)
        return replace(chosen, permissions=replace(chosen.permissions, deny=("edit_file(stats.py)",)))

    made = world(tmp_path / "w", MEAN, MEAN, settings=denied)
    put(made, "stats.py", NOW)
    done = await made.run(TASK)
    assert done.status == "stopped"
    assert made.text("stats.py") == NOW


async def test_a_tool_that_is_off_is_off_here_too(tmp_path: Path) -> None:
    made = shop(tmp_path, MEAN, MEAN, MEAN)
    made.manager._services.registry.disable("edit_file", "switched off")
    assert (await made.run(TASK)).status == "stopped"
    assert made.text("stats.py") == NOW


async def test_only_reading_never_comes_here(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("I may not."), settings=settings("whole"), mode="readOnly")
    put(made, "stats.py", NOW)
    assert (await made.run(TASK)).status == "completed"
    assert made.text("stats.py") == NOW


async def test_a_new_file(tmp_path: Path) -> None:
    made = shop(tmp_path, code("def greet():\n    return 'hello'\n", "greeting.py"), form="whole")
    done = await made.run("Create a new file greeting.py with a function greet that returns 'hello'.")
    assert done.status == "completed"
    assert made.text("greeting.py") == "def greet():\n    return 'hello'\n"


async def test_tests_are_written_on_a_selection(tmp_path: Path) -> None:
    made = shop(tmp_path, code("def test_mean():\n    assert mean([2]) == 2\n", "test_stats.py"), form="whole")
    target = Target(made.read(made.path("stats.py")), 0, 60)
    done = await made.finished(made.manager.start(RunRequest("test", "", "tests", target)))
    assert done.status == "completed"
    assert "def test_mean" in (made.text("test_stats.py") or "")


# --- the tool loop, held to its word


async def test_a_tool_loop_that_changes_nothing_is_asked_in_another_form(tmp_path: Path) -> None:
    made = shop(tmp_path, say("✓ Done."), MEAN, form="auto")
    done = await made.run(TASK)
    assert (done.status, done.outcome) == ("completed", "full")
    assert made.text("stats.py") == RIGHT


async def test_when_that_fails_too_it_is_stopped(tmp_path: Path) -> None:
    made = shop(tmp_path, say("✓ Done."), form="auto")
    done = await made.run(TASK)
    assert done.status == "stopped"
    assert made.text("stats.py") == NOW


async def test_with_the_tool_loop_forced_it_is_stopped_at_once(tmp_path: Path) -> None:
    made = shop(tmp_path, say("✓ Done."), form="tools")
    done = await made.run(TASK)
    assert done.status == "stopped"
    assert "✓ Done." in done.summary
    assert len(made.models["model"].requests) == 1  # type: ignore[attr-defined]


async def test_after_going_in_circles_the_task_goes_on_in_another_form(tmp_path: Path) -> None:
    circle = calls(call("list_dir", path="."))
    made = shop(tmp_path, *[circle] * 4, MEAN, form="auto")
    done = await made.run(TASK)
    assert (done.status, made.text("stats.py")) == ("completed", RIGHT)


async def test_a_question_that_went_in_circles_is_answered_without_tools(tmp_path: Path) -> None:
    circle = calls(call("list_dir", path="."))
    made = shop(tmp_path, *[circle] * 4, say("It is the mean."), form="auto")
    done = await made.run("What does mean in stats.py do?")
    assert (done.status, done.summary) == ("completed", "It is the mean.")
    assert made.models["model"].requests[-1].allowed == ()  # type: ignore[attr-defined]


async def test_work_by_tools_is_done_when_something_changed(tmp_path: Path) -> None:
    made = shop(tmp_path, write("stats.py", RIGHT), say("I fixed it."), form="auto")
    done = await made.run(TASK)
    assert (done.status, done.summary) == ("completed", "I fixed it.")
    assert len(made.models["model"].requests) == 2  # type: ignore[attr-defined]


# --- quick actions on a selection


def target(made: World) -> Target:
    start = NOW.index("    return sum")
    return Target(made.read(made.path("stats.py")), start, NOW.index("\n", start) + 1)


def quick(made: World, kind: RunKind = "fix") -> str:
    return made.manager.start(RunRequest(kind, "", "fix", target(made)))


GOOD = ScriptedReply("```python\n    return sum(values) / len(values)\n```")


@pytest.mark.parametrize("kind", ["fix", "refactor", "document", "edit"])
async def test_a_quick_action(tmp_path: Path, kind: RunKind) -> None:
    made = shop(tmp_path, GOOD)
    request = RunRequest(kind, "divide by the count", "t", target(made))
    done = await made.finished(made.manager.start(request))
    assert (done.status, made.text("stats.py")) == ("completed", RIGHT)


REFUSED = {
    "words": "The code looks fine to me.",
    "an excuse": "抱歉，我无法修改这段代码。",
    "an error": "Error: rate limit exceeded",
    "the same code": "```python\n    return sum(values) / (len(values) - 1)\n```",
    "broken code": "```python\n    return sum(values / (len(values)\n```",
    "nothing": "",
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_no_code_is_asked_for_again(tmp_path: Path, name: str) -> None:
    made = shop(tmp_path, ScriptedReply(REFUSED[name]), GOOD)
    done = await made.finished(quick(made))
    assert (done.status, made.text("stats.py")) == ("completed", RIGHT)


@pytest.mark.parametrize("name", REFUSED)
async def test_words_never_take_the_place_of_code(tmp_path: Path, name: str) -> None:
    made = shop(tmp_path, *[ScriptedReply(REFUSED[name])] * 3)
    done = await made.finished(quick(made))
    assert (done.status, made.text("stats.py")) == ("stopped", NOW)
    assert done.summary.startswith("Nothing was changed")


async def test_a_long_selection_gets_a_long_reply(tmp_path: Path) -> None:
    made = shop(tmp_path, ScriptedReply("```\nx = 2\n```"))
    put(made, "long.py", "x = 1\n" * 1500)
    whole = Target(made.read(made.path("long.py")), 0, 6 * 1500)
    await made.finished(made.manager.start(RunRequest("edit", "shorter", "t", whole)))
    assert (made.models["model"].requests[0].max_tokens or 0) > 3000  # type: ignore[attr-defined]


# --- in a plan


async def test_the_steps_of_a_plan_take_the_direct_path(tmp_path: Path) -> None:
    plan = create("Fix the function mean in stats.py", "Change first in stats.py so that it returns None for nothing")
    second = code("def first(values):\n    return values[0] if values else None\n")
    made = shop(tmp_path, plan, MEAN, second, says=("Start", "Apply", "Apply"))
    request = RunRequest("run", TASK, TASK, planning="always")
    done = await made.finished(made.manager.start(request))
    assert done.status == "completed"
    assert made.text("stats.py") == RIGHT.replace("values[0]", "values[0] if values else None")


async def test_a_step_knows_what_became_of_the_one_before(tmp_path: Path) -> None:
    plan = create("Fix the function mean in stats.py", "Change first in stats.py so that it returns None for nothing")
    second = code("def first(values):\n    return values[0] if values else None\n")
    made = shop(tmp_path, plan, MEAN, second, says=("Start", "Discard", "Apply"))
    await made.finished(made.manager.start(RunRequest("run", TASK, TASK, planning="always")))
    prompt = "".join(message.content for message in made.models["model"].requests[-1].messages)  # type: ignore[attr-defined]
    assert "The user discarded the changes of step 1" in prompt
    assert "values[0] if values else None" in str(made.text("stats.py"))


async def test_a_step_that_changes_nothing_has_failed(tmp_path: Path) -> None:
    plan = create("Fix the function mean in stats.py")
    made = shop(tmp_path, plan, *[say("It is fine.")] * 6, says=("Start", "Stop"))
    request = RunRequest("run", TASK, TASK, planning="always")
    done = await made.finished(made.manager.start(request))
    assert done.status == "stopped"
    assert "Nothing was changed" in done.summary


async def test_a_step_without_a_verb_has_failed_too_where_no_answer_could_be_used(tmp_path: Path) -> None:
    plan = create("Mean of nothing in stats.py")
    made = shop(tmp_path, plan, *[code("def mean(values:\n")] * 8, says=("Start", "Stop"))
    request = RunRequest("run", TASK, TASK, planning="always")
    done = await made.finished(made.manager.start(request))
    assert done.status == "stopped"


# --- a small window, a long file


@pytest.mark.slow
async def test_a_long_file_in_a_small_window(tmp_path: Path) -> None:
    """The function that the task names is shown, not the file; nothing comes near the window."""
    filler = "".join(f"def filler_{n}(value):\n    total = value + {n}\n    return total\n\n\n" for n in range(300))
    long = f"{filler}{NOW}"
    assert long.count("\n") > 1500
    info = ModelInfo("s", "scripted", facts=window_known(8192), tool_calling="constrained")
    made = world(tmp_path / "w", says=("Apply",), settings=settings("auto"), deadline=0.2)
    model = made.models["model"] = ScriptedModel([MEAN], info=info)
    put(made, "stats.py", long)
    weak = Proof({"tools": Score(0, 3), "function": Score(3, 3)})
    know(made, Known(weak))
    done = await made.run(TASK)
    assert done.status == "completed"
    assert made.text("stats.py") == long.replace(" / (len(values) - 1)", " / len(values)")
    prompt = "".join(message.content for message in model.requests[0].messages)
    assert "def mean" in prompt
    assert "total = value + 7" not in prompt
    assert estimate_tokens(prompt) < 2000


class Known:
    """Answer forms that are known."""

    def __init__(self, proof: Proof) -> None:
        self.counted: list[tuple[str, bool]] = []
        self._proof = proof

    async def proof(self, model: Model, on_probe: Callable[[], None]) -> Proof:
        return self._proof

    async def count(self, model: Model, form: str, *, worked: bool) -> None:
        self.counted.append((form, worked))


@pytest.mark.parametrize(
    ("reply", "counted"), [(MEAN, [("function", True)]), (say("It is fine."), [("function", False)])]
)
async def test_how_a_form_did_is_counted(tmp_path: Path, reply: ScriptedReply, counted: list[tuple[str, bool]]) -> None:
    made = world(tmp_path / "w", *[reply] * 3, says=("Apply",), settings=settings("auto"))
    put(made, "stats.py", NOW)
    known = Known(Proof({"tools": Score(0, 3), "function": Score(3, 3)}))
    know(made, known)
    await made.run(TASK)
    assert known.counted == counted


async def test_what_the_user_has_set_is_not_counted(tmp_path: Path) -> None:
    made = shop(tmp_path, MEAN, form="function")
    known = Known(Proof())
    know(made, known)
    await made.run(TASK)
    assert known.counted == []


async def test_a_plain_rename_needs_no_model(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=("Apply",), settings=settings("whole"), deadline=0.2)
    put(made, "stats.py", "def mean(values):\n    return sum(values)\n")
    put(made, "report.py", "import stats\n")
    typed = (
        "from stats import mean\n\n\ndef line(values):\n    # the mean as `mean` gives it\n    return mean(values)\n"
    )
    made.open("report.py", typed)
    done = await made.run("Rename the function mean in stats.py to average, everywhere it is used.")
    assert (done.status, done.outcome) == ("completed", "full")
    left = "Left where mean is in a comment or a string, or means something else: report.py:5\n"
    assert done.summary == f"{left}Changed: report.py, stats.py. No test was run on it."
    assert not made.models["model"].requests  # type: ignore[attr-defined]
    assert made.text("stats.py") == "def average(values):\n    return sum(values)\n"
    new = typed.replace("import mean", "import average")
    assert made.text("report.py") == new.replace("return mean", "return average")
    assert on_disk(made, "stats.py").startswith("def mean")


async def test_a_rename_is_not_done_while_the_old_name_is_used(tmp_path: Path) -> None:
    first = code("def average(values):\n    return sum(values) / (len(values) - 1)\n")
    both = ScriptedReply(
        "report.py\n```python\nfrom stats import average\n\n\ndef line(values):\n    return str(average(values))\n```\n"
    )
    made = world(tmp_path / "w", first, both, says=("Apply",), settings=settings("auto"), deadline=0.2)
    put(made, "stats.py", "def mean(values):\n    return sum(values) / (len(values) - 1)\n")
    put(made, "report.py", "from stats import mean\n\n\ndef line(values):\n    return str(mean(values))\n")
    know(made, Known(Proof({"whole": Score(3, 3)})))
    done = await made.run("把 stats.py 中的 mean 改名为 average，所有用到它的文件也要一起改，然后补上注释。")
    prompts = [request.messages[-1].content for request in made.models["model"].requests]  # type: ignore[attr-defined]
    assert "report.py" in prompts[0]
    assert "mean: report.py" in prompts[1]
    assert done.status == "completed"
    assert "mean" not in (made.text("report.py") or "") + (made.text("stats.py") or "")


@pytest.mark.slow
async def test_a_rename_that_leaves_uses_behind_is_stopped(tmp_path: Path) -> None:
    first = code("def average(values):\n    return sum(values)\n")
    made = world(tmp_path / "w", *[first] * 3, settings=settings("whole"), deadline=0.2)
    put(made, "stats.py", "def mean(values):\n    return sum(values)\n")
    put(made, "report.py", "from stats import mean\n")
    done = await made.run("Rename the function mean in stats.py to average everywhere and add a comment.")
    assert done.status == "stopped"
    assert "mean: report.py" in done.summary


@pytest.mark.slow
async def test_where_no_file_is_named_it_starts_from_the_piece_that_the_index_finds(tmp_path: Path) -> None:
    filler = "".join(f"def filler_{n}(value):\n    total = value + {n}\n    return total\n\n\n" for n in range(380))
    right = "def rounded(amount):\n    # cents of an invoice\n    return round(amount, 2)\n"
    long = filler + right.replace("2", "3")
    write_files(tmp_path / "w", {"shop/long.py": long, "shop/mail.py": "def send(): pass\n"})
    async with indexing(tmp_path / "w") as index:
        made = world(tmp_path / "w", says=("Apply",), settings=settings("function"), deadline=0.2, indexing=index)
        model = ScriptedModel([code(right, "shop/long.py")], info=ModelInfo("s", "scripted", facts=window_known(8192)))
        made.models["model"] = model
        made.open("shop/long.py", long)
        await made.run("The cents of an invoice have too many digits. Fix it.")

    prompt = model.requests[0].messages[-1].content
    assert "def rounded(amount):\n    # cents of an invoice\n" in prompt
    assert "def filler_7(value):\n    total" not in prompt
    assert (made.text("shop/long.py") or "").endswith(right)
