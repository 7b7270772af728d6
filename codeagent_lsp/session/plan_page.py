"""A run's plan as Markdown: the steps with their states, and the document that the user approves. Pure.

What a model wrote is made inert: no image or link in it leads anywhere by itself.
"""

from __future__ import annotations

from codeagent_lsp.agent.plan import MARKS, Plan, PlanStep
from codeagent_lsp.session.inert import inert
from codeagent_lsp.session.session import RunRecord


def plan_page(record: RunRecord) -> str:
    """The page; empty when the run has neither plan nor document."""
    parts = []
    if record.plan is not None:
        parts.append(_steps(record.plan))
    if record.document is not None:
        state = "approved" if record.document.approved else "not approved yet"
        parts.append(f"{record.document.markdown}\n*{state}*\n")
    return inert("\n".join(parts))


def _steps(plan: Plan) -> str:
    done = sum(step.state == "completed" for step in plan.steps)
    head = f"# {_line(plan.goal)}\n\n{done} of {len(plan.steps)} steps completed ({plan.progress} %)\n"
    return f"{head}\n" + "".join(_step(number, step) for number, step in enumerate(plan.steps, 1))


def _step(number: int, step: PlanStep) -> str:
    mark = MARKS[step.state] if step.state in ("pending", "completed") else "[ ]"
    state = "" if step.state in ("pending", "completed") else f" *{step.state}*"
    id_note = "" if step.step_id == str(number) else f" (id {step.step_id})"
    lines = [f"- {mark} {number}. **{_line(step.title)}**{id_note}{state}"]
    lines += [f"  {_line(words)}" for words in (step.description, step.error) if words.strip()]
    return "\n".join(lines) + "\n"


def _line(words: str) -> str:
    return " ".join(words.split())
