"""Shows the plans of runs as virtual documents, made when first requested and kept up to date from then on.

Not here: the content of the page (`server/plans.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.safe_markdown import inert
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from codeagent_lsp.tools.plan.plan import Plan
from codeagent_lsp.tools.plan.plan_steps import MARKS, PlanStep

if TYPE_CHECKING:
    from codeagent_lsp.server.virtual_documents import VirtualDocuments

_CHANGES = (
    events.PlanCreated,
    events.PlanModified,
    events.PlanApproved,
    events.PlanCompleted,
    events.StepStarted,
    events.StepCompleted,
    events.StepError,
)


class PlanDocuments:
    """A listener of all sessions; `record` finds a run, SessionError when there is none."""

    def __init__(
        self, documents: VirtualDocuments, record: Callable[[str], RunRecord], language: Callable[[], str]
    ) -> None:
        self._documents = documents
        self._record = record
        self._language = language
        self._shown: set[str] = set()

    def observe(self, event: events.Event) -> None:
        """Update a plan that was shown."""
        if event.run_id in self._shown and isinstance(event, _CHANGES):
            self.put(event.run_id)

    def put(self, run_id: str) -> str:
        """Write the document and return its text. SessionError for a run without a plan."""
        page = plan_page(self._record(run_id), self._language())
        if not page:
            raise SessionError("plan.none", run=run_id)
        self._shown.add(run_id)
        self._documents.put(plan_name(run_id), page)
        return page

    async def show(self, run_id: str) -> None:
        """Open the document without taking the focus."""
        self.put(run_id)
        await self._documents.show(plan_name(run_id))


def plan_name(run_id: str) -> str:
    """Return the name of a run's plan among the virtual documents."""
    return f"plan/{run_id}.md"


# Renders a run's plan as Markdown: the steps with their states, and the document that the user approves. Pure.


def plan_page(record: RunRecord, language: str) -> str:
    """Return the page; '' if the run has neither a plan nor a document."""
    parts = []
    if record.plan is not None:
        parts.append(_steps(record.plan, language))
    if record.document is not None:
        state = text("plan_page.approved" if record.document.approved else "plan_page.unapproved", language)
        parts.append(f"{record.document.markdown}\n*{state}*\n")
    # its words are the model's
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
