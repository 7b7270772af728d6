"""Attempts: checked, told what failed, the best kept; over a workspace in memory and a scripted model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.aptitude import Proof, Score
from codeagent_lsp.direct.checks import FailedTest, Verdict
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import REPEATED, SAME, FilesQuestion
from codeagent_lsp.direct.solver import Solution, Solver, SolverLimits
from codeagent_lsp.direct.variants import Repairs, Variant
from codeagent_lsp.errors import ContextOverflow, ModelStreamBroken
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files.file_view import FileText

NOW = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a\n"
PROVED = Proof({form: Score(3, 3) for form in ("whole", "function", "blocks")})


class Bench:
    """A `SolverWorkspace` in memory: one file, and a check over its text."""

    def __init__(self, check: Callable[[str], Verdict | None], refusals: Mapping[str, str] | None = None) -> None:
        self.text = NOW
        self.drafts = ""
        self.passing: tuple[Variant, ...] = ()
        self.said: list[str] = []
        self.user: tuple[str, ...] = ()
        self.known: tuple[str, ...] = ()
        self.rooms: list[int] = []
        self.wanted: list[tuple[str, ...]] = []
        self.checks = 0
        self._check = check
        self._refusals = refusals or {}

    async def check(self) -> Verdict | None:
        self.checks += 1
        return self._check(self.text)

    async def draft(self) -> tuple[Mapping[str, str], Material, str]:
        shown = ShownFile("a.py", FileText("/w/a.py", NOW, "disk"))
        return {"a.py": self.drafts} if self.drafts else {}, Material((shown,)), ""

    async def repairs(self, before: Verdict | None) -> Repairs | None:
        shown = ShownFile("a.py", FileText("/w/a.py", NOW, "disk"))
        return Repairs(shown, self.passing, 30) if self.passing else None

    def repair_told(self, found: Repairs, change: Variant) -> str:
        return f"one of {len(found.changes)}: {change.after}"

    async def gather(self, verdict: Verdict | None, wanted: tuple[str, ...], room: int, *, wide: bool) -> Material:
        self.rooms.append(room)
        self.wanted.append(wanted)
        shown = ShownFile("a.py", FileText("/w/a.py", self.text, "disk"), has_definitions=True)
        return Material((shown,), suspects=("return a - b", "return a"))

    async def stage(self, texts: Mapping[str, str], material: Material) -> str:
        refused = next((why for name, why in self._refusals.items() if name in texts), "")
        if not refused:
            self.text = texts["a.py"]
        return refused

    def revealed(self, reply: str) -> str:
        return reply

    def staged(self) -> Changeset:
        return Changeset((FileChange("/w/a.py", NOW, self.text),)) if self.text != NOW else Changeset()

    def restore(self, changeset: Changeset) -> None:
        change = changeset.get("/w/a.py")
        self.text = NOW if change is None else change.text or ""

    def diff(self, since: Changeset, limit: int) -> str:
        return "a diff"

    def heard(self) -> tuple[str, ...]:
        self.known = self.user[: len(self.known) + 1]
        return self.known

    def say(self, key: str, **values: object) -> None:
        self.said.append(f"{key} {values['number']}/{values['of']} {values['failed']}")


def check(text: str) -> Verdict:
    """Two tests: one for each function."""
    failed = [name for name, right in (("add", "a + b"), ("twice", "2 * a")) if right not in text]
    report = "\n".join(f"test_{name} failed" for name in failed)
    return Verdict(2 - len(failed), tuple(FailedTest(f"test_{name}") for name in failed), report)


def code(text: str, words: str = "") -> ScriptedReply:
    return ScriptedReply(f"{words}\n\na.py\n```python\n{text}```\n")


BOTH = code(NOW.replace("a - b", "a + b").replace("return a\n", "return 2 * a\n"), "Two faults.")
FIRST = code(NOW.replace("a - b", "a + b"), "One fault.")
WORSE = code(NOW.replace("a - b", "a * b"))


async def solved(
    bench: Bench,
    *replies: ScriptedReply,
    is_task: bool = True,
    form: TextForm | None = None,
    limits: SolverLimits | None = None,
    told: list[events.Event] | None = None,
) -> tuple[Solution, ScriptedModel]:
    model = ScriptedModel(replies)
    question = FilesQuestion("The tests fail. Repair it.", PROVED, 2048, form)
    heard: list[events.Event] = [] if told is None else told
    solver = Solver(model, bench, question, limits or SolverLimits(), heard.append)
    return await solver.solve(is_task=is_task), model


def say(text: str) -> ScriptedReply:
    return ScriptedReply(text)


def asked(model: ScriptedModel, number: int) -> str:
    return model.requests[number].messages[-1].content


async def test_solved_at_the_first_attempt() -> None:
    bench, told = Bench(check), list[events.Event]()
    solution, model = await solved(bench, BOTH, told=told)
    assert (solution.ending, solution.attempts, solution.text) == ("solved", 1, "Two faults.")
    assert solution.verdict is not None
    assert solution.verdict.good
    assert bench.said == ["solve.failing 1/3 2"]
    assert "test_add failed" in asked(model, 0)
    assert [event.content for event in told if isinstance(event, events.Token)] == ["Two faults.\n"]


@pytest.mark.parametrize(
    ("draft", "ending", "attempts", "first_prompt"),
    [
        (NOW.replace("a - b", "a + b").replace("return a\n", "return 2 * a\n"), "solved", 0, ""),
        (NOW.replace("a - b", "a + b"), "solved", 1, "return a + b"),
        (NOW.replace("a - b", "a * b"), "solved", 1, "return a - b"),
    ],
)
async def test_what_needs_no_model_comes_first_and_is_kept_when_it_helps(
    draft: str, ending: str, attempts: int, first_prompt: str
) -> None:
    bench = Bench(check)
    bench.drafts = draft
    solution, model = await solved(bench, BOTH)
    assert (solution.ending, solution.attempts) == (ending, attempts)
    assert len(model.requests) == attempts
    assert check(bench.text).good
    assert attempts == 0 or first_prompt in asked(model, 0)


async def test_what_still_fails_goes_back_with_the_file_as_it_is_now() -> None:
    bench = Bench(check)
    solution, model = await solved(bench, FIRST, BOTH)
    assert (solution.ending, solution.attempts) == ("solved", 2)
    assert "return a + b" in asked(model, 1)
    assert "test_add failed" not in asked(model, 1)
    assert "test_twice failed" in asked(model, 1)
    assert bench.said[1] == "solve.failing 2/3 1"


async def test_the_temperature_rises() -> None:
    _, model = await solved(Bench(check), WORSE, WORSE, WORSE)
    temperatures = [request.temperature for request in model.requests]
    assert temperatures[0] == 0.0
    assert temperatures == sorted(set(temperatures))


async def test_the_best_state_is_kept() -> None:
    bench = Bench(check)
    solution, model = await solved(bench, FIRST, WORSE, WORSE)
    assert solution.ending == "failing"
    assert "a + b" in bench.text
    assert solution.verdict is not None
    assert [each.test_id for each in solution.verdict.failed] == ["test_twice"]
    assert "a diff" in asked(model, 2)


async def test_what_fails_with_an_attempt_goes_back_with_it() -> None:
    def crashes(text: str) -> Verdict:
        return replace(check(text), report="NameError: c") if "a * b" in text else check(text)

    _, model = await solved(Bench(crashes), WORSE, BOTH)
    assert "a diff\n```\nWith it:\n```\nNameError: c\n```" in asked(model, 1)
    _, model = await solved(Bench(check), WORSE, BOTH)
    assert "a diff" in asked(model, 1) and "With it" not in asked(model, 1), "the same fails as before"


async def test_an_answer_that_comes_again_is_not_tried_again_and_another_form_is_asked_for() -> None:
    bench = Bench(check)
    solution, _ = await solved(bench, WORSE, WORSE, BOTH)
    assert (solution.ending, solution.forms) == ("solved", ("function", "function", "whole"))
    assert bench.checks == 3


async def test_an_answer_that_could_not_be_staged_may_come_again() -> None:
    refusals = {"a.py": "It was not in front of you; it is shown now."}
    bench = Bench(check, refusals)
    stage = bench.stage

    async def once(texts: Mapping[str, str], material: Material) -> str:
        refused = await stage(texts, material)
        refusals.clear()
        return refused

    bench.stage = once  # type: ignore[method-assign]
    solution, _ = await solved(bench, BOTH, BOTH)
    assert (solution.ending, solution.attempts) == ("solved", 2)


async def test_what_did_not_do_is_tried_again_on_a_better_state() -> None:
    bench = Bench(check)
    await solved(bench, WORSE, FIRST, WORSE)
    assert bench.checks == 4


async def test_without_any_gain_nothing_is_changed() -> None:
    bench = Bench(check)
    solution, _ = await solved(bench, WORSE, WORSE, WORSE)
    assert (solution.ending, bench.text) == ("unchanged", NOW)


async def test_a_change_that_makes_nothing_worse_where_nobody_spoke_of_tests(tmp_path: Path) -> None:
    """It is offered, and what fails as before is said: whether it is what was meant, nobody knows."""

    def beside(text: str) -> Verdict:
        return replace(check(text), binding=False)

    bench = Bench(beside)
    solution, model = await solved(bench, WORSE, WORSE, WORSE)
    assert (solution.ending, len(model.requests)) == ("failing", 3)
    assert "a * b" in bench.text


async def test_without_a_check_a_change_is_taken() -> None:
    solution, _ = await solved(Bench(lambda text: None), FIRST)
    assert (solution.ending, solution.verdict) == ("solved", None)


async def test_tests_that_cannot_run_refuse_nothing() -> None:
    solution, _ = await solved(Bench(lambda text: Verdict(problem="no pytest")), FIRST)
    assert solution.ending == "solved"


async def test_the_same_code_and_words_alone_are_no_result_of_a_task() -> None:
    bench = Bench(check)
    solution, model = await solved(bench, code(NOW), ScriptedReply("It looks fine to me."), code(NOW))
    assert (solution.ending, bench.text, bench.checks) == ("unchanged", NOW, 1)
    assert SAME in asked(model, 1)
    assert "had no code" in asked(model, 2)
    assert len(set(solution.forms)) == 3


async def test_words_answer_what_may_be_a_question() -> None:
    solution, model = await solved(Bench(lambda text: None), ScriptedReply("It adds."), is_task=False)
    assert (solution.ending, solution.text, len(model.requests)) == ("answered", "It adds.", 1)


async def test_a_refused_form_is_followed_by_another() -> None:
    _, model = await solved(Bench(check), ScriptedReply("```python\ndef add(a, b:\n```"), BOTH)
    assert "could not be used" in asked(model, 1)
    assert asked(model, 0).rsplit("\n\n", 1)[1] != asked(model, 1).rsplit("\n\n", 1)[1]


async def test_the_users_form_is_kept_to() -> None:
    solution, _ = await solved(Bench(check), code(NOW), code(NOW), code(NOW), form="function")
    assert solution.forms == ("function",) * 3


async def test_a_file_that_may_not_be_changed_is_told() -> None:
    bench = Bench(check, {"a.py": "a.py is protected."})
    solution, model = await solved(bench, BOTH, BOTH)
    assert solution.ending == "unchanged"
    assert "a.py is protected." in asked(model, 1)


async def test_a_file_the_model_asks_for_is_wanted_next_time() -> None:
    bench = Bench(check, {"b.py": "b.py was not in front of you."})
    await solved(bench, ScriptedReply("b.py\n```python\ndef other():\n    pass\n```"), BOTH)
    assert bench.wanted[1] == ("b.py",)


async def test_a_reply_in_circles_is_asked_for_again() -> None:
    circle = ScriptedReply("Let me think about this problem once again. " * 90, chunks=400)
    solution, model = await solved(Bench(check), circle, BOTH)
    assert solution.ending == "solved"
    assert REPEATED in asked(model, 1)


async def test_a_prompt_that_is_too_long_is_made_shorter() -> None:
    bench = Bench(check)
    solution, _ = await solved(bench, ScriptedReply(error="overflow"), BOTH)
    assert solution.ending == "solved"
    assert bench.rooms[1] < bench.rooms[0]


async def test_what_never_fits_is_the_models_error() -> None:
    with pytest.raises(ContextOverflow):
        await solved(Bench(check), *[ScriptedReply(error="overflow")] * 20)


async def test_a_broken_stream_is_the_models_error_and_nothing_is_staged() -> None:
    bench = Bench(check)
    with pytest.raises(ModelStreamBroken):
        await solved(bench, ScriptedReply(f"```python\n{NOW}", error="broken"))
    assert bench.text == NOW


async def test_slots_are_used_from_the_second_round_on() -> None:
    bench = Bench(check)
    model = ScriptedModel([WORSE, WORSE, BOTH])
    question = FilesQuestion("Repair it.", PROVED, 2048)
    solution = await Solver(model, bench, question, SolverLimits(slots=2), lambda event: None).solve(is_task=True)
    assert (solution.ending, solution.attempts, len(model.requests)) == ("solved", 2, 3)
    assert model.requests[1].temperature < model.requests[2].temperature


BY_LINE = Proof({**PROVED.scores, "line": Score(3, 3)})
REPAIR = FilesQuestion("The tests fail. Repair it.", BY_LINE, 2048, repairs=True)
ONE_LINE = ScriptedReply("WRONG: return a - b\nRIGHT: return a + b")


async def repaired(
    bench: Bench, *replies: ScriptedReply, question: FilesQuestion = REPAIR
) -> tuple[Solution, ScriptedModel]:
    model = ScriptedModel(replies)
    solver = Solver(model, bench, question, SolverLimits(), lambda event: None)
    return await solver.solve(is_task=True), model


async def test_lines_are_asked_about_one_by_one() -> None:
    def only_add(text: str) -> Verdict:
        return Verdict(1) if "a + b" in text else Verdict(failed=(FailedTest("test_add"),), report="test_add failed")

    bench = Bench(only_add)
    solution, model = await repaired(bench, say("`return a * b`"), say("return a"), ONE_LINE)
    assert (solution.ending, solution.attempts, solution.forms) == ("solved", 1, ("line",))
    assert asked(model, 0).endswith("\nreturn a - b\nAnswer with that one line as it should be, and nothing else.")
    assert "WRONG: <the line as it is>" in asked(model, 2)
    assert asked(model, 0).startswith(asked(model, 2).partition("Find the one wrong line")[0])
    assert bench.checks == 3, "a line that stays as it is was checked"


def variant(after: str, line: int = 2) -> Variant:
    return Variant(BOTH_RIGHT.replace("return a + b", after), line, "return a - b", after, likely=True)


BOTH_RIGHT = NOW.replace("a - b", "a + b").replace("return a\n", "return 2 * a\n")
SUM, TURNED = variant("return a + b"), variant("return b + a")


@pytest.mark.parametrize(
    ("passing", "reply", "text"),
    [
        ((SUM,), "", SUM.text),
        ((TURNED, SUM), "return a + b", SUM.text),
        ((TURNED, SUM), "```python\n    return a + b\n```", SUM.text),
        ((TURNED, SUM), "RIGHT: return b + a", TURNED.text),
        ((TURNED, SUM), "return b + a\nreturn a + b", NOW),
        ((TURNED, SUM), "I do not know.", NOW),
        ((TURNED, variant("return a + b", line=3)), "No.", NOW),
    ],
)
async def test_of_several_small_changes_of_one_line_the_model_chooses(
    passing: tuple[Variant, ...], reply: str, text: str
) -> None:
    def check_sum(text: str) -> Verdict:
        return Verdict(1) if {"a + b", "b + a"} & set(re.findall(r"\w \+ \w", text)) else check(text)

    bench = Bench(check_sum)
    bench.passing = passing
    solution, model = await repaired(bench, *[say(reply)] * bool(reply), *[say("No.")] * 9)
    assert bench.text == text
    if text == NOW:
        assert solution.ending != "solved"
        return
    assert (solution.ending, solution.attempts, len(model.requests)) == ("solved", 0, len(passing) - 1)
    assert solution.text.startswith(f"one of {len(passing)}: ")
    if model.requests:
        assert "all tests pass:\nreturn b + a\nreturn a + b\n" in asked(model, 0)


async def test_guesses_are_not_built_on_nor_spoken_of_but_the_nearest_is_kept_in_the_end() -> None:
    bench = Bench(check)
    half = say("return a + b")
    solution, model = await repaired(bench, half, say("return a"), ONE_LINE, say("No."), say("No."))
    assert (solution.ending, solution.attempts, solution.forms) == ("failing", 3, ("line", "function", "whole"))
    assert "return a - b" in asked(model, 3) and "was tried" not in asked(model, 3)
    assert [request.temperature for request in model.requests] == [0.0] * 4 + [0.5]
    assert bench.checks == 2, "what was tried once was tried again"
    assert "return a + b" in bench.text
    assert solution.verdict is not None and [each.test_id for each in solution.verdict.failed] == ["test_twice"]


async def test_an_answer_that_does_a_part_is_then_repaired_line_by_line() -> None:
    adding = replace(REPAIR, repairs=False)
    solution, model = await repaired(Bench(check), FIRST, say("return b - a"), say("return 2 * a"), question=adding)
    assert (solution.ending, solution.forms) == ("solved", ("function", "line"))
    assert "return a + b" in asked(model, 1) and "Suppose that this line" in asked(model, 1)


async def test_a_guess_that_mends_a_part_is_no_result_where_nobody_spoke_of_tests() -> None:
    def beside(text: str) -> Verdict:
        return replace(check(text), binding=False)

    solution, model = await repaired(Bench(beside), say("return a + b"), say("return a"), ONE_LINE, BOTH)
    assert (solution.ending, solution.attempts, len(model.requests)) == ("solved", 2, 4)


async def test_a_cancel_passes_and_leaves_no_task() -> None:
    bench = Bench(check)
    work = asyncio.ensure_future(solved(bench, ScriptedReply("x", delay=30.0)))
    for _ in range(10):  # until it waits for the model
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("window", [2048, 4096, 8192, 131_072])
async def test_the_request_fits_the_window(window: int) -> None:
    limits = SolverLimits(window=window, reply_tokens=window // 4)
    _, model = await solved(Bench(check), BOTH, limits=limits)
    assert (model.requests[0].max_tokens or 0) <= window // 2
    assert ModelInfo("m", "scripted").slots == 1


async def test_what_the_user_adds_is_in_the_next_request_and_all_later_ones() -> None:
    bench = Bench(check)
    bench.user = ("", "Keep the names.")  # said between the first request and the second
    _, model = await solved(bench, WORSE, WORSE, BOTH)
    asked = [request.messages[-1].content.count("Keep the names.") for request in model.requests]
    assert asked[0] == 0
    assert set(asked[1:]) == {1}
    assert len(asked) > 2
