"""Renders a run's plan as Markdown: the steps with their states, and the document that the user approves. Pure.

Text written by a model is made inert (`safe_markdown.py`).
"""

from __future__ import annotations

from codeagent_lsp.session.safe_markdown import inert
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from codeagent_lsp.tools.plan.plan import Plan
from codeagent_lsp.tools.plan.plan_steps import MARKS, PlanStep


def plan_page(record: RunRecord, language: str) -> str:
    """Return the page; '' if the run has neither a plan nor a document."""
    parts = []
    if record.plan is not None:
        parts.append(_steps(record.plan, language))
    if record.document is not None:
        state = text("plan_page.approved" if record.document.approved else "plan_page.unapproved", language)
        parts.append(f"{record.document.markdown}\n*{state}*\n")
    return inert("\n".join(parts))


def _steps(plan: Plan, language: str) -> str:
    done = sum(step.state == "completed" for step in plan.steps)
    progress = text("plan_page.progress", language, done=done, count=len(plan.steps), percent=plan.steps.progress)
    steps = "".join(_step(number, step, language) for number, step in enumerate(plan.steps, 1))
    return f"# {_line(plan.goal)}\n\n{progress}\n\n{steps}"


def _step(number: int, step: PlanStep, language: str) -> str:
    plain = step.state in ("pending", "completed")
    mark = MARKS[step.state] if plain else "[ ]"
    state = "" if plain else " *" + text(f"plan_page.{step.state}", language) + "*"
    id_note = "" if step.step_id == str(number) else text("plan_page.id", language, step=step.step_id)
    lines = [f"- {mark} {number}. **{_line(step.title)}**{id_note}{state}"]
    lines += [f"  {_line(words)}" for words in (step.description, step.error) if words.strip()]
    return "\n".join(lines) + "\n"


def _line(words: str) -> str:
    return " ".join(words.split())
