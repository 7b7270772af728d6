"""Written plans: what may be done while one is open, what the user says to it, and what comes back after a kill."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.server.plans import plan_page
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.plan.plan import Plan, PlanDocument, PlanStep, PlanSteps, StepState
from tests.session.fakes import World, call, calls, say, world, write
from tests.session.plan.plans import APPLY, APPROVE, REJECT, create, record, reloaded, run, step, told

ENTER = calls(call("plan_enter", title="Move the cache"))
WRITE = calls(call("plan_update", action="section", section="Approach", content="Step by step."))
EXIT = calls(call("plan_exit"))


def document(made: World) -> str:
    found = record(made).document
    assert found is not None
    return found.markdown


async def test_a_plan_that_is_approved_is_done(tmp_path: Path) -> None:
    read = calls(call("read_file", path="a.py"))
    made = world(tmp_path / "w", ENTER, read, WRITE, EXIT, create("a"), *step(1), says=[APPROVE, APPLY])
    made.open("a.py", "x = 1\n")
    assert (await run(made)).status == "completed"
    assert made.text("f1.py") == "x = 1\n"
    assert document(made) == "# Move the cache\n\n## Approach\n\nStep by step.\n\n## Explored files\n\n- `a.py`\n"
    assert told(made, "awaiting_approval", "approval_requested", "plan_approved", "plan_created")[:4] == [
        "awaiting_approval",
        "approval_requested",
        "plan_approved",
        "plan_created",
    ]
    asked = made.user.shown[0].question
    assert (asked.title, asked.choices) == ("Approve the plan: Move the cache?", (REJECT, APPROVE))
    assert "Step by step." in asked.detail
    again = reloaded(made)
    assert again.document is not None and again.document.approved


async def test_the_document_is_shown_before_the_question(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ENTER, EXIT, say(), says=[APPROVE])
    await run(made)
    shown = [event for event in made.events if isinstance(event, events.StatusChanged)]
    assert [event.message.split()[0] for event in shown] == ["plan"]


@pytest.mark.parametrize("mode", ["ask", "bypass"])
async def test_until_it_is_approved_nothing_is_changed(tmp_path: Path, mode: str) -> None:
    command = calls(call("run_cmd", command="touch x"))
    made = world(tmp_path / "w", ENTER, write("a.py", "x\n"), command, say("Well."), mode=mode)  # type: ignore[arg-type]
    assert (await run(made)).status == "completed"
    refused = [event for event in made.events if isinstance(event, events.ToolFinished) and not event.success]
    assert [event.tool for event in refused] == ["write_file", "run_cmd"]
    assert made.text("a.py") is None
    assert not made.manager.runs.all()[-1].proposal.changeset


@pytest.mark.parametrize("answer", [REJECT, None])
async def test_no_is_no_and_so_is_silence(tmp_path: Path, answer: str | None) -> None:
    says = [answer] if answer else []
    made = world(tmp_path / "w", ENTER, EXIT, write("a.py", "x\n"), say("Pity."), says=says, deadline=0.05)
    await run(made)
    assert made.text("a.py") is None
    assert told(made, "plan_rejected", "plan_approved") == ["plan_rejected"]
    again = reloaded(made)
    assert again.document is not None and not again.document.approved


async def test_a_rejected_plan_can_be_changed_and_asked_about_again(tmp_path: Path) -> None:
    replies = [ENTER, EXIT, WRITE, EXIT, write("a.py", "x\n"), say()]
    made = world(tmp_path / "w", *replies, says=[REJECT, APPROVE, APPLY])
    await run(made)
    assert made.text("a.py") == "x\n"


@pytest.mark.parametrize(
    ("replies", "hint"),
    [
        ((WRITE,), "plan_enter first"),
        ((EXIT,), "plan_enter first"),
        ((ENTER, create("a")), "not approved yet"),
        ((ENTER, calls(call("plan_update", action="section", content="x"))), "needs the parameter section"),
    ],
)
async def test_tools_called_out_of_turn_say_what_to_do(
    tmp_path: Path, replies: tuple[ScriptedReply, ...], hint: str
) -> None:
    made = world(tmp_path / "w", *replies, say())
    await run(made)
    refused = [event for event in made.events if isinstance(event, events.ToolFinished) and not event.success]
    assert [hint in (event.error or "") for event in refused] == [True]
    assert record(made).plan is None


async def test_replace_and_append(tmp_path: Path) -> None:
    replies = [calls(call("plan_update", action=action, content=action)) for action in ("replace", "append")]
    made = world(tmp_path / "w", ENTER, *replies, say())
    await run(made)
    assert document(made) == "# Move the cache\n\nreplace\n\nappend\n"
    reloaded(made)


async def test_a_plan_that_would_lose_its_end_is_left_as_it_is(tmp_path: Path) -> None:
    long = [calls(call("plan_update", action="append", content=f"{number}" * 40_000)) for number in range(3)]
    short = calls(call("plan_update", action="append", content="The end."))
    made = world(tmp_path / "w", ENTER, *long, short, say())
    await run(made)
    (refused,) = (each for each in made.events if isinstance(each, events.ToolFinished) and not each.success)
    assert "not written" in (refused.error or "")
    assert document(made) == f"# Move the cache\n\n{'0' * 40_000}\n\n{'1' * 40_000}\n\nThe end.\n"


async def test_the_tools_stay_the_same_while_a_plan_is_written(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ENTER, EXIT, say(), says=[APPROVE])
    await run(made)
    model = made.models["model"]
    assert isinstance(model, ScriptedModel)
    assert len({str(request.tools) for request in model.requests}) == 1


async def test_the_page_of_a_plan(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ENTER, EXIT, create("a", "b"), *step(1), ScriptedReply(error="busy"),
                 says=[APPROVE, APPLY], deadline=0.05)  # fmt: skip
    await run(made)
    page = plan_page(record(made), "en")
    assert "# the goal\n\n1 of 2 steps completed (50 %)\n" in page
    assert "- [x] 1. **a**\n  do a\n" in page
    assert "- [ ] 2. **b** *failed*\n  do b\n" in page
    assert "# Move the cache" in page
    assert "*approved*" in page
    assert plan_page(type(record(made))("r"), "en") == ""


def full_record(language: str) -> RunRecord:
    """A run whose plan has a step in every state, one of them with an id that is not its number."""
    states: tuple[StepState, ...] = ("completed", "running", "failed", "skipped", "cancelled")
    steps = [PlanStep(str(number), "t", state=state) for number, state in enumerate(states, 1)]
    plan = Plan("G", PlanSteps((*steps, PlanStep("9", "t"))))
    return RunRecord("r", plan=plan, document=PlanDocument("D").with_explored(["a.py"], language))


def test_the_page_in_english() -> None:
    assert plan_page(full_record("en"), "en") == (
        "# G\n\n1 of 6 steps completed (33 %)\n\n"
        "- [x] 1. **t**\n- [ ] 2. **t** *running*\n- [ ] 3. **t** *failed*\n- [ ] 4. **t** *skipped*\n"
        "- [ ] 5. **t** *cancelled*\n- [ ] 6. **t** (id 9)\n\n"
        "# D\n\n## Explored files\n\n- `a.py`\n\n*not approved yet*\n"
    )


def test_the_page_in_chinese() -> None:
    assert plan_page(full_record("zh-cn"), "zh-cn") == (
        "# G\n\n已完成 6 个步骤中的 1 个（33%）\n\n"
        "- [x] 1. **t**\n- [ ] 2. **t** *进行中*\n- [ ] 3. **t** *失败*\n- [ ] 4. **t** *已跳过*\n"
        "- [ ] 5. **t** *已取消*\n- [ ] 6. **t**（编号 9）\n\n"
        "# D\n\n## 已查看的文件\n\n- `a.py`\n\n*尚未批准*\n"
    )
    approved = replace(full_record("zh-cn"), document=PlanDocument("D", approved=True))
    assert plan_page(approved, "zh-cn").endswith("# D\n\n*已批准*\n")


async def test_the_headings_are_asked_for_and_written_in_the_users_language(tmp_path: Path) -> None:
    read = calls(call("read_file", path="a.py"))
    made = world(tmp_path / "w", ENTER, read, EXIT, say(), language="zh-cn", deadline=0.05)
    made.open("a.py", "x = 1\n")
    await run(made)
    assert document(made) == "# Move the cache\n\n## 已查看的文件\n\n- `a.py`\n"
    results = [event for event in made.events if isinstance(event, events.ToolFinished)]
    entered = next(event for event in results if event.tool == "plan_enter")
    assert "已查看的文件, 关键文件, 方案" in entered.output


async def test_what_a_model_writes_into_a_plan_is_inert(tmp_path: Path) -> None:
    evil = "![x](https://evil.example/?q=1) <img src=x>"
    made = world(tmp_path / "w", ENTER, calls(call("plan_update", action="replace", content=evil)), create(evil), say())
    await run(made)
    assert "![x](" not in plan_page(record(made), "en")
    assert "<img" not in plan_page(record(made), "en")
