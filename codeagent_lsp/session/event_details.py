"""Completes the events of a run with what its record knows: the plan, the running step, a sentence for the user.

Not here: emitting them (`run_output.py`), the events themselves (`codeagent_lsp/events`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.plan.plan_steps import ENDED

_IN_STEPS = (events.ToolCalls, events.ToolFinished, events.AnomalyDetected, events.StepOutput)


def detailed(event: events.Event, record: RunRecord, text: Callable[[str], str]) -> events.Event:
    """Return the event with its `plan`, `message`, `step_id`, `step_number` and `progress_detail` where it has such
    fields without a value. `text` returns a sentence of the catalogue.
    """
    empty = {item.name for item in fields(event) if getattr(event, item.name) is None}
    added: dict[str, Any] = {}
    if "plan" in empty:
        added["plan"] = _plan(record)
    if "message" in empty:
        added["message"] = text(f"event.{event.type}")
    if "step_id" in empty:
        added["step_id"] = _step(event, record)
    if "step_number" in empty:
        added["step_number"] = _number(added.get("step_id") or getattr(event, "step_id", None), record)
    if "progress_detail" in empty:
        added["progress_detail"] = _progress(added.get("step_number"), record)
    return replace(event, **added) if added else event


def _plan(record: RunRecord) -> dict[str, Any] | None:
    """Return the plan of a run, or its written plan while there is no other."""
    if record.plan is not None:
        plan = record.plan
        steps = list(plan.steps.to_data())
        head = {"id": record.run_id, "goal": plan.goal, "status": plan.status}
        return {**head, "steps": steps, "estimated_complexity": plan.complexity}
    if record.document is not None:
        status = "approved" if record.document.approved else "awaiting_approval"
        title, written = record.document.title, record.document.markdown
        return {"id": record.run_id, "title": title, "status": status, "document": written}
    return None


def _number(step_id: str | None, record: RunRecord) -> int | None:
    """Return the 1-based place of a step; None if the plan has no such step any more."""
    steps = record.plan.steps if record.plan is not None else ()
    return next((number for number, step in enumerate(steps, 1) if step.step_id == step_id), None)


def _progress(number: int | None, record: RunRecord) -> dict[str, int] | None:
    if number is None or record.plan is None:
        return None
    steps = record.plan.steps
    ended = sum(step.state in ENDED for step in steps)
    return {"step": number, "steps": len(steps), "ended": ended, "percent": steps.progress}


def _step(event: events.Event, record: RunRecord) -> str | None:
    if isinstance(event, events.ExecutionFailed):
        return record.step_id or None
    running = record.plan.steps.running if record.plan is not None and isinstance(event, _IN_STEPS) else None
    return running.step_id if running is not None else None
