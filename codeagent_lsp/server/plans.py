"""Shows the plans of runs as virtual documents, made when first requested and kept up to date from then on.

Not here: the content of the page (`session/plan/plan_page.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.plan.plan_page import plan_page
from codeagent_lsp.session.state import RunRecord

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
