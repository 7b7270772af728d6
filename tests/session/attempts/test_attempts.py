"""Several attempts at a task: from the same text, judged by the tests in their shadows, the best one proposed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.model import Model
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session import attempting
from codeagent_lsp.session.attempting import Judged, judge_attempt
from codeagent_lsp.session.conversation.situation import HEAD
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.spending import usage_data
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from codeagent_lsp.tools.context import Tally
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from tests.session.fakes import World, call, calls, say, until, world, write
from tests.session.hooks.real_shadows import RealShadows
from tests.shadow.rig import needs_overlay

APPLY = text("choice.apply")
TEST = """import unittest
from calc import add


class AddTest(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
"""
BASE = "def add(a, b):\n    pass\n\n\n" + "".join(f"N{number} = {number}\n" for number in range(12))
WRONG = BASE.replace("pass", "return a - b")
HALF = BASE.replace("pass", "return a * b").replace("N11 = 11", "N11 = 12")
RIGHT = BASE.replace("pass", "return a + b")

Make = Callable[..., World]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes a world whose every attempt gets a model of its own, with these replies, in the order of their start."""
    shadows = RealShadows(tmp_path / "state")

    def made(*scripts: Sequence[ScriptedReply], says: tuple[str, ...] = (APPLY,), **more: Any) -> World:
        built = world(tmp_path / "w", says=says, **{"environments": shadows, **more})
        models = iter([ScriptedModel(replies) for replies in scripts])

        class Ports:
            async def __call__(self) -> Model:
                return next(models)

        services = built.manager._services
        built.manager._services = replace(services, models=replace(services.models, open=Ports()))
        return built

    yield made
    await shadows.close()


def put(made: World, name: str, content: str) -> None:
    (made.root / name).write_text(content)


async def tried(made: World, count: int, task: str = "make the tests in test_calc.py pass") -> events.RunCompleted:
    return await made.finished(made.manager.start(RunRequest("run", task, "the task", attempts=count)))


def others(made: World, run_id: str) -> list[Any]:
    return [run for run in made.manager.runs.all() if run.record.attempt_of == run_id]


@needs_overlay
async def test_the_best_is_chosen_by_its_tests_and_a_hunk_of_another_is_taken(make: Make) -> None:
    made = make(
        [write("calc.py", WRONG), say("One.")],
        [write("calc.py", RIGHT), say("Two.")],
        [write("calc.py", HALF), say("3")],
    )
    put(made, "calc.py", "saved = 1\n")
    put(made, "test_calc.py", TEST)
    made.open("calc.py", BASE)
    done = await tried(made, 3)
    assert done.status == "completed"
    assert "Attempt 2 of 3 is the best: +1 -1, 2 tests pass, 0 fail." in done.summary
    assert made.text("calc.py") == RIGHT
    assert (made.root / "calc.py").read_text() == "saved = 1\n"
    assert len(made.of(events.ChangesProposed)) == 1, "one proposal, one question"
    first, second, third = others(made, done.run_id)
    assert (bool(first.proposal.changeset), bool(second.proposal.changeset)) == (True, False)
    assert third.proposal.changeset.get(made.path("calc.py")).text == HALF
    await third.proposal.apply(hunks={made.path("calc.py"): frozenset({1})})
    assert made.text("calc.py") == RIGHT.replace("N11 = 11", "N11 = 12"), "it comes to what was applied"


@needs_overlay
async def test_all_begin_with_the_text_as_it_was(make: Make) -> None:
    replies = [calls(call("read_file", path="calc.py")), say("Read.")]
    made = make(replies, replies, replies)
    put(made, "calc.py", "saved = 1\n")
    made.open("calc.py", "unsaved = 1\n")
    run_id = made.manager.start(RunRequest("run", "what is in it?", "it", attempts=3))
    await until(lambda: len(others(made, run_id)) == 3)
    made.open("calc.py", "typed_later = 1\n")
    await made.finished(run_id)
    for run in others(made, run_id):
        told = "\n".join(message.content for message in run.record.messages)
        assert "unsaved = 1" in told and "typed_later" not in told


@needs_overlay
@pytest.mark.volume
async def test_four_runs_with_three_attempts_each_on_one_dirty_buffer(make: Make) -> None:
    """No text of one run or attempt gets into another: every one writes its own mark, by its shadow too."""
    scripts = []
    for number in range(12):
        mark = calls(call("run_cmd", command=f"cat calc.py; echo mark{number} >> calc.py"))
        scripts.append([mark, calls(call("run_cmd", command="cat calc.py")), say("Done.")])
    made = make(*scripts, says=())
    put(made, "calc.py", "saved = 1\n")
    made.open("calc.py", "dirty = 1\n")
    sessions = [made.manager.new().session_id for _ in range(4)]
    wanted = [
        made.manager.start(RunRequest("run", "append a mark", "mark", attempts=3), session) for session in sessions
    ]
    await until(lambda: len(made.of(events.ChangesProposed)) == 4, 60)
    marks = set()
    for run_id in wanted:
        texts = [
            run.record.staged.get(made.path("calc.py"))
            for run in (made.manager.runs.get(run_id), *others(made, run_id))
        ]
        found = [change.text for change in texts if change is not None]
        assert len(found) == 3
        for each in found:
            first, last = each.splitlines()
            assert first == "dirty = 1"
            marks.add(last)
    assert marks == {f"mark{number}" for number in range(12)}
    assert made.text("calc.py") == "dirty = 1\n"


async def test_an_attempt_asks_nothing_and_applies_nothing(make: Make) -> None:
    replies = [write(".vscode/tasks.json", "{}\n"), write("a.py", "x = 1\n"), say("Done.")]
    made = make(replies, replies, mode="acceptEdits", says=())
    done = await tried(made, 2, "write a.py")
    assert made.user.shown == []
    notes = [event.message for event in made.of(events.StatusChanged) if isinstance(event, events.StatusChanged)]
    assert sum(line.startswith("Not done, as an attempt asks nothing: ") for line in notes) == 2
    (first, _) = others(made, done.run_id)
    assert "This call needs the user's approval, which was not given." in str(first.record.messages)
    assert made.text("a.py") == "x = 1\n", "the mode lets the best one be applied, once"
    assert len(made.of(events.ChangesApplied)) == 1
    assert done.files_changed == (made.path("a.py"),)


@needs_overlay
async def test_one_that_is_proven_ends_the_others_where_nobody_compares(make: Make) -> None:
    slow = [ScriptedReply("Slow.", delay=60.0)]
    made = make([write("calc.py", WRONG), say("One.")], slow, [write("calc.py", RIGHT), say("Three.")])
    put(made, "calc.py", BASE)
    put(made, "test_calc.py", TEST)
    made.open("calc.py", BASE)
    task = "make the tests in test_calc.py pass"
    request = RunRequest("run", task, "the task", attempts=3, until_proven=True)
    done = await asyncio.wait_for(made.finished(made.manager.start(request)), 30)
    assert done.status == "completed"
    assert "Attempt 3 of 3 is the best: +1 -1, 2 tests pass, 0 fail." in done.summary
    assert made.text("calc.py") == RIGHT
    assert others(made, done.run_id)[1].record.status == "cancelled"
    assert made.manager.runs.active() == ()


@needs_overlay
async def test_one_that_is_not_proven_lets_the_others_go_on(make: Make) -> None:
    later = [replace(write("calc.py", RIGHT), delay=1.0), say("Two.")]
    made = make([write("calc.py", WRONG), say("One.")], later)
    put(made, "calc.py", BASE)
    put(made, "test_calc.py", TEST)
    made.open("calc.py", BASE)
    task = "make the tests in test_calc.py pass"
    request = RunRequest("run", task, "the task", attempts=2, until_proven=True)
    await made.finished(made.manager.start(request))
    assert made.text("calc.py") == RIGHT


async def test_cancelling_ends_all(make: Make) -> None:
    slow = [ScriptedReply("Slow.", delay=60.0)]
    made = make(slow, slow, slow)
    run_id = made.manager.start(RunRequest("run", "wait", "wait", attempts=3))
    await until(lambda: len(others(made, run_id)) == 3)
    made.manager.runs.cancel(run_id)
    assert (await made.finished(run_id)).status == "cancelled"
    await until(lambda: made.manager.runs.active() == ())


async def test_one_that_fails_does_not_harm_the_others(make: Make) -> None:
    made = make([ScriptedReply(error="broken")] * 3, [write("a.py", "x = 1\n"), say("Done.")])
    done = await tried(made, 2, "write a.py")
    assert (done.status, made.text("a.py")) == ("completed", "x = 1\n")
    assert "Attempt 2 of 2" in done.summary


async def test_the_talk_goes_on_with_the_best(make: Make) -> None:
    made = make([say("It is four.")], [say("It is four.")], [say("Yes.")])
    await tried(made, 2, "what is two and two?")
    assert [(each.role, each.content.splitlines()[-1]) for each in made.manager.current().context.conversation] == [
        ("user", "what is two and two?"),
        ("assistant", "It is four."),
    ]


def change(text_: str) -> Changeset:
    return Changeset((FileChange("/a.py", "a\nb\n", text_),))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (Judged(2, "completed", change("x\nb\n")), Judged(1, "stopped", change("x\nb\n"))),
        (Judged(2, "completed", change("x\nb\n")), Judged(1, "completed", Changeset())),
        (
            Judged(2, "completed", change("x\ny\n"), Tally(2, 0)),
            Judged(1, "completed", change("x\nb\n"), Tally(1, 1)),
        ),
        (Judged(2, "completed", change("x\nb\n"), Tally(3, 1)), Judged(1, "completed", change("x\nb\n"), Tally(2, 1))),
        (Judged(2, "completed", change("x\ny\n"), Tally(99, 1)), Judged(1, "completed", change("x\nb\n"))),
        (
            Judged(2, "completed", change("x\ny\n"), Tally(99, 1)),
            Judged(1, "completed", change("x\nb\n"), Tally(10, 0, whole=False)),
        ),
        (Judged(2, "completed", change("x\nb\n")), Judged(1, "completed", change("x\ny\nz\n"))),
        (Judged(1, "completed", change("x\nb\n")), Judged(2, "completed", change("x\nb\n"))),
    ],
)
def test_which_is_better(better: Judged, worse: Judged) -> None:
    assert better.merit > worse.merit


async def test_what_is_typed_meanwhile_is_kept(make: Make) -> None:
    """The best is merged into the buffer as it is at the end; of what was rewritten there, the user's own stays."""
    made = make(
        [write("calc.py", RIGHT), say("One.")],
        [
            write("calc.py", RIGHT),
            say(
                "Two.",
            ),
        ],
    )
    made.open("calc.py", BASE)
    typed = BASE.replace("N11 = 11", "N11 = 11\nMINE = 1")
    run_id = made.manager.start(RunRequest("run", "make add add", "add", attempts=2))
    await until(lambda: len(others(made, run_id)) == 2)
    made.open("calc.py", typed)
    assert (await made.finished(run_id)).status == "completed"
    assert made.text("calc.py") == typed.replace("pass", "return a + b")


async def test_words_to_it_reach_every_attempt(make: Make) -> None:
    look = replace(calls(call("list_dir", path=".")), delay=0.3)
    made = make(*[[look, say("Done.")]] * 3, [say("The next one.")])
    run_id = made.manager.start(RunRequest("run", "look around", "look", attempts=3))
    item = made.manager.queue.say(made.manager.runs.get(run_id), "first of all")
    await until(lambda: len(others(made, run_id)) == 3)
    made.manager.queue.say(made.manager.runs.get(run_id), "and be brief")
    taken_back = made.manager.queue.say(made.manager.runs.get(run_id), "never mind")
    made.manager.queue.withdraw(taken_back, made.manager.sessions())
    assert item != taken_back
    await made.finished(run_id)
    for run in (*others(made, run_id), made.manager.runs.get(run_id)):
        said = [message.content for message in run.record.messages if message.role == "user"]
        told = [words for words in said if not words.startswith(HEAD)]
        assert told == ["look around", "first of all", "and be brief"]
    assert made.manager.runs.active() == (), "they are no tasks of their own, neither here nor there"
    assert not any(session.context.waiting.tasks for session in made.manager.sessions())


async def test_words_that_no_attempt_heard_are_the_next_task(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make([say("Done.")], [say("Done.")], [say("Yes.")])

    said_late: list[int] = []

    async def late(parts: RunParts, record: RunRecord, number: int) -> Judged:
        if not said_late:
            await until(lambda: len(made.manager.runs.active()) == 1)  # no attempt is at work any more
            said_late.append(number)
            made.manager.queue.say(made.manager.runs.get(parts.record.run_id), "too late")
        return await judge_attempt(parts, record, number)

    monkeypatch.setattr(attempting, "judge_attempt", late)
    await tried(made, 2, "what?")
    await until(lambda: not made.manager.runs.active())
    said = [(each.role, each.content) for each in made.manager.current().context.conversation]
    assert said[-2:] == [("user", "too late"), ("assistant", "Yes.")]
    assert len(made.manager.sessions()) == 3


async def test_words_that_only_another_attempt_heard_are_the_next_task(make: Make) -> None:
    slow = replace(calls(call("list_dir", path=".")), delay=1.0)
    made = make([write("a.py", "x = 1\n"), say("One.")], [slow, say("Two.")], [say("Yes.")])
    run_id = made.manager.start(RunRequest("run", "write a.py", "a", attempts=2))
    await until(lambda: len(others(made, run_id)) == 2 and others(made, run_id)[0].record.status == "completed")
    made.manager.queue.say(made.manager.runs.get(run_id), "and keep the name")
    await made.finished(run_id)
    await until(lambda: not made.manager.runs.active())
    said = [(each.role, each.content) for each in made.manager.current().context.conversation]
    assert said[-2:] == [("user", "and keep the name"), ("assistant", "Yes.")]


@needs_overlay
async def test_the_proof_is_of_the_text_that_was_tested(make: Make) -> None:
    made = make(
        [write("calc.py", RIGHT), say("One.")], [replace(write("calc.py", WRONG), delay=1.0), say("Two.")], says=()
    )
    put(made, "calc.py", BASE)
    put(made, "test_calc.py", TEST)
    made.open("calc.py", BASE)
    run_id = made.manager.start(RunRequest("run", "make the tests in test_calc.py pass", "add", attempts=2))
    await until(lambda: len(others(made, run_id)) == 2 and others(made, run_id)[0].record.status == "completed")
    made.open("calc.py", BASE.replace("N11 = 11", "N11 = 11\nMINE = 1"))
    await until(lambda: bool(made.of(events.ChangesProposed)), 30)
    (proposed,) = made.of(events.ChangesProposed)
    assert isinstance(proposed, events.ChangesProposed)
    proof: Any = proposed.proof
    assert proof["tests"]["passed"] == 2
    assert proof["tests"]["outdated"], "they ran before the user typed"


async def test_the_session_of_an_attempt_is_deleted_meanwhile(make: Make) -> None:
    made = make([write("a.py", "x = 1\n"), say("One.")], [ScriptedReply("Slow.", delay=60.0)])
    run_id = made.manager.start(RunRequest("run", "write a.py", "a", attempts=2))
    await until(lambda: len(others(made, run_id)) == 2 and others(made, run_id)[0].record.status == "completed")
    await made.manager.delete(others(made, run_id)[1].session.session_id)
    done = await made.finished(run_id)
    assert (done.status, made.text("a.py")) == ("completed", "x = 1\n")
    assert made.manager.runs.active() == ()


async def test_a_budget_that_all_have_spent_is_told_as_such(make: Make) -> None:
    reading = calls(call("list_dir", path="."), text="word " * 2000)

    def tight(settings: Any) -> Any:
        return replace(settings, budget=replace(settings.budget, tokens=6000))

    made = make([reading] * 9, [reading] * 9, settings=tight)
    done = await tried(made, 2, "write a.py")
    assert (done.status, done.stopped_by) == ("stopped", "budget")


async def test_the_error_of_all_is_that_of_the_run(make: Make) -> None:
    made = make([ScriptedReply(error="broken")] * 3, [ScriptedReply(error="broken")] * 3)
    done = await tried(made, 2, "write a.py")
    assert done.status == "failed"
    assert "cut off" in str(done.error)


async def test_words_to_the_newest_run_are_for_the_whole(make: Make) -> None:
    made = make(*[[ScriptedReply("Done.", delay=0.3)]] * 2)
    run_id = made.manager.start(RunRequest("run", "look", "look", attempts=2))
    await until(lambda: len(others(made, run_id)) == 2)
    assert made.manager.runs.newest_at_work().record.run_id == run_id
    await made.finished(run_id)


async def test_a_cancel_between_two_attempts_leaves_what_was_done_and_proposes_nothing(make: Make) -> None:
    made = make([write("a.py", "x = 1\n"), say("Done.")], [ScriptedReply("Slow.", delay=60.0)])
    run_id = made.manager.start(RunRequest("run", "write a.py", "a", attempts=2))
    await until(lambda: len(others(made, run_id)) == 2 and others(made, run_id)[0].record.status == "completed")
    made.manager.runs.cancel(run_id)
    assert (await made.finished(run_id)).status == "cancelled"
    await until(lambda: made.manager.runs.active() == ())
    assert not made.of(events.ChangesProposed)
    assert made.text("a.py") is None
    first, second = others(made, run_id)
    assert (bool(first.record.staged), second.record.status) == (True, "cancelled")
    await first.proposal.apply()
    assert made.text("a.py") == "x = 1\n", "it can still be taken"


async def test_a_budget_is_that_of_each(make: Make) -> None:
    """One that spends too much is stopped; the other one is proposed."""
    reading = calls(call("list_dir", path="."), text="word " * 2000)

    def tight(settings: Any) -> Any:
        return replace(settings, budget=replace(settings.budget, tokens=6000))

    made = make([reading] * 9, [write("a.py", "x = 1\n"), say("Done.")], settings=tight)
    done = await tried(made, 2, "write a.py")
    assert "Attempt 2 of 2 is the best" in done.summary
    assert made.text("a.py") == "x = 1\n"
    assert {run.record.status for run in others(made, done.run_id)} != {"completed"}


@needs_overlay
async def test_commands_hooks_and_mentions_are_for_every_attempt(make: Make) -> None:
    """The words are completed once, before; the user is asked once; the formatter works in each and in the proposal."""
    made = make(*[[write("a.py", "x=1\n"), say("Done.")]] * 2, says=(text("choice.trust_all"), APPLY))
    (made.root / ".claude/commands").mkdir(parents=True)
    (made.root / ".claude/commands/set.md").write_text("Set x as in @b.py:1 says $ARGUMENTS.")
    hooks = {
        "UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": "echo asked >> /dev/stderr; echo Use blanks."}]}
        ],
        "PostToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "sed -i 's/ *= */ = /' a.py"}]}],
    }
    (made.root / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    put(made, "b.py", "y = 2\n")
    made.open("a.py", "")
    done = await tried(made, 2, "/set Ann")
    assert done.status == "completed"
    for run in others(made, done.run_id):
        told = "\n".join(message.content for message in run.record.messages)
        assert "Set x as in @b.py:1 says Ann." in told
        assert told.count("Use blanks.") == 1
        assert "b.py, lines 1-1, as they are now" in told
    assert made.text("a.py") == "x = 1\n"
    assert len(made.user.shown) == 2


async def test_what_the_attempts_used_is_known_after_a_restart(make: Make) -> None:
    made = make([say("One.")], [say("Two.")])
    made.open("calc.py", BASE)
    done = await tried(made, 2)
    starts = [event for event in made.events if isinstance(event, events.ResponseStart) and event.attempt_of]
    assert {(event.attempt_of, event.attempt) for event in starts} == {(done.run_id, 1), (done.run_id, 2)}
    again = Session("again", made.store)
    replay(again, made.store.load(made.manager.current().session_id))
    assert done.usage is not None
    assert usage_data(again.context.usage) == dict(done.usage)
