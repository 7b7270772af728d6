"""A run's way to speak: its events, its questions, its sentences in the user's language."""

from __future__ import annotations

from codeagent_lsp import events
from codeagent_lsp.errors import CodeAgentError, UserError
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import RunRecord, Session
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question


class Voice:
    """Speaks for one run; also the `Asker` of its tools."""

    def __init__(self, session: Session, record: RunRecord, services: Services) -> None:
        self._session = session
        self._record = record
        self._services = services

    def emit(self, event: events.Event) -> None:
        """Tell everybody, after it is stored."""
        self._session.emit(self._record.run_id, event)

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """The user's answer, None when there is none."""
        return await self._services.inbox.ask(self._record.run_id, question, self.emit)

    def text(self, key: str, **values: object) -> str:
        """A sentence of the catalogue."""
        return text(key, self._services.language(), **values)

    def explain(self, problem: CodeAgentError) -> str:
        """What an error says to the user."""
        if isinstance(problem, UserError):
            return problem.localized(self._services.language())
        return str(problem)
