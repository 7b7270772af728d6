"""A run's way to speak: its events, its questions, its sentences in the user's language.

The first event a client gets says how the run works; what is told before that is known waits for it, and is stored
and sent right after it. What clients never get is stored at once.
"""

from __future__ import annotations

from codeagent_lsp import events
from codeagent_lsp.errors import CodeAgentError, ErrorCode, UserError
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question

PLANNING_CALL = "create_plan"

_TELLS_NO_MODE = (events.StatusChanged, events.UsageReported, events.IntentClassified, events.ContextCompacted)


class RunOutput:
    """Speaks for one run; also the `Asker` of its tools."""

    def __init__(self, session: Session, record: RunRecord, services: Services) -> None:
        self._session = session
        self._record = record
        self._services = services
        self._begun = record.status != "running"
        self._held: list[events.Event] = []

    def begin(self, mode: events.Mode) -> None:
        """Say how the run works, unless that was said; then what waited for it."""
        if not self._begun:
            self.begin_again(mode)

    def begin_again(self, mode: events.Mode) -> None:
        """Say how the run works, also when it goes on after its end."""
        self._begun = True
        held, self._held = self._held, []
        for event in (events.ResponseStart(mode=mode), *held):
            self._session.emit(self._record.run_id, event)

    def emit(self, event: events.Event) -> None:
        """Tell everybody, after it is stored."""
        if not self._begun and not event.internal:
            if isinstance(event, _TELLS_NO_MODE):
                self._held.append(event)
                return
            self.begin(_mode(event))
        self._session.emit(self._record.run_id, event)

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """The user's answer, None when there is none."""
        return await self._services.user.inbox.ask(self._record.run_id, question, self.emit)

    @property
    def language(self) -> str:
        """The user's language."""
        return self._services.user.language()

    def text(self, key: str, /, **values: object) -> str:
        """A sentence of the catalogue."""
        return text(key, self.language, **values)

    def explain(self, problem: CodeAgentError) -> str:
        """What an error says to the user."""
        if isinstance(problem, UserError):
            return problem.localized(self.language)
        return str(problem)

    def fail(self, words: str, code: ErrorCode) -> str:
        """Tell what ends the run, with its code for programs; the words again."""
        self.emit(events.Failure(error=words, code=code.value))
        return words


def _mode(event: events.Event) -> events.Mode:
    """How a run works whose first telling event is this."""
    if isinstance(event, events.ToolCalls) and any(call.get("name") == PLANNING_CALL for call in event.calls):
        return "plan"
    return "direct"
