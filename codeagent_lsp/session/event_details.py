"""Completes the events of a run with what its record knows: the plan, the running step, a sentence for the user.

Not here: emitting them (`run_output.py`), the events themselves (`codeagent_lsp/events`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.session.state import RunRecord

_IN_STEPS = (events.ToolCalls, events.ToolFinished, events.AnomalyDetected, events.StepOutput)


def detailed(event: events.Event, record: RunRecord, text: Callable[[str], str]) -> events.Event:
    """Return the event with its `plan`, `message` and `step_id` where it has such fields without a value. `text`
    returns a sentence of the catalogue.
    """
    empty = {item.name for item in fields(event) if getattr(event, item.name) is None}
    added: dict[str, Any] = {}
    if "plan" in empty:
        added["plan"] = _plan(record)
    if "message" in empty:
        added["message"] = text(f"event.{event.type}")
    if "step_id" in empty:
        added["step_id"] = _step(event, record)
    return replace(event, **added) if added else event


def _plan(record: RunRecord) -> dict[str, Any] | None:
    """Return the plan of a run, or its written plan while there is no other."""
    if record.plan is not None:
        plan = record.plan
        steps = list(plan.steps.to_data())
        return {"id": record.run_id, "goal": plan.goal, "steps": steps, "estimated_complexity": plan.complexity}
    if record.document is not None:
        return {"id": record.run_id, "title": record.document.title, "document": record.document.markdown}
    return None


def _step(event: events.Event, record: RunRecord) -> str | None:
    if isinstance(event, events.ExecutionFailed):
        return record.step_id or None
    running = record.plan.steps.running if record.plan is not None and isinstance(event, _IN_STEPS) else None
    return running.step_id if running is not None else None
