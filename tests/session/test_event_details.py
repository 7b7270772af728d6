"""What an event of a run says besides what its emitter knows: the plan, the step, a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from codeagent_lsp import events
from codeagent_lsp.session.run_output import with_details
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from codeagent_lsp.tools.plan.plan import Plan, PlanDocument, PlanSteps, StepDraft
from tests.session.fakes import call, calls, say, world


def record(*, running: bool = False) -> RunRecord:
    plan = Plan.create("goal", [StepDraft("one"), StepDraft("two")], "low")
    return RunRecord("r1", plan=plan.started("1") if running else plan, step_id="1")


def done(event: events.Event, known: RunRecord) -> dict[str, object]:
    return events.to_dict(with_details(event, known, lambda key: text(key, "en")))


def test_plans_carry_themselves_and_a_sentence() -> None:
    for event in (events.PlanCreated(), events.ExecutionStarted(), events.ExecutionCompleted(summary="s")):
        data = done(event, record())
        plan = data["plan"]
        assert isinstance(plan, dict) and (plan["id"], plan["goal"], len(plan["steps"])) == ("r1", "goal", 2)
        assert str(data["message"]).endswith(".")
    assert done(events.ExecutionFailed(error="e"), record())["step_id"] == "1"


def test_every_sentence_exists() -> None:
    for cls in (events.PlanApproved, events.PlanRejected, events.ReplanWarning, events.ExecutionCancelled):
        assert done(cls(), record())["message"]


def test_a_written_plan_is_the_plan_until_there_is_another() -> None:
    known = RunRecord("r1", document=PlanDocument("Taxes", "body"))
    data = done(events.AwaitingApproval(message="Approve?"), known)
    plan = {"id": "r1", "title": "Taxes", "status": "awaiting_approval", "document": "# Taxes\n\nbody\n"}
    assert data["plan"] == plan
    assert data["message"] == "Approve?"


def test_a_plan_says_how_far_it_is_and_its_steps_where_they_stand() -> None:
    known = record(running=True)
    plan = done(events.PlanCreated(), known)["plan"]
    assert isinstance(plan, dict) and plan["status"] == "running"
    assert [step["index"] for step in plan["steps"]] == [1, 2]
    assert known.plan is not None and PlanSteps.from_data(plan["steps"]) == known.plan.steps
    ended = known.plan.completed("1")
    assert [ended.status, ended.started("2").failed("2", "e").status, ended.skipped("2", "s").status] == [
        "pending", "failed", "completed"
    ]  # fmt: skip
    assert ended.started("2").cancelled().status == "cancelled"
    approved = RunRecord("r1", document=replace(PlanDocument("Taxes", "body"), approved=True))
    written = done(events.ExecutionStarted(), approved)["plan"]
    assert isinstance(written, dict) and written["status"] == "approved"


def test_steps_have_numbers_beside_their_ids() -> None:
    known = record(running=True)
    assert known.plan is not None
    known.plan = known.plan.completed("1").started("2")
    begun = done(events.StepStarted(step_id="2", progress=50), known)
    assert (begun["step_id"], begun["step_number"], begun["progress"]) == ("2", 2, 50)
    assert begun["progress_detail"] == {"step": 2, "steps": 2, "ended": 1, "percent": 50}
    assert done(events.StepError(step_id="1", error="e"), known)["step_number"] == 1
    assert done(events.ToolFinished(), known)["step_number"] == 2
    gone = done(events.StepCompleted(step_id="9"), known)
    assert "step_number" not in gone and "progress_detail" not in gone


def test_calls_and_results_name_their_step() -> None:
    for event in (events.ToolCalls(), events.ToolFinished(), events.AnomalyDetected(), events.StepOutput()):
        assert done(event, record(running=True))["step_id"] == "1"
        assert "step_id" not in done(event, record())
        assert "step_id" not in done(event, RunRecord("r2"))
    assert "step_id" not in done(events.ChangesApplied(), record(running=True))


async def test_a_file_that_is_called_by_its_whole_path_is_told_by_its_name(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(call("read_file", path=str(tmp_path / "w" / "a.py"))), say())
    made.open("a.py", "x = 1\n")
    await made.run()
    (told,) = made.of(events.ToolCalls)
    assert isinstance(told, events.ToolCalls) and told.calls[0]["subject"] == "a.py"
