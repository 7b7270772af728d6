"""Emits the events of one run, what its commands print included, asks its questions, and looks up its sentences in the
user's language.

The first event that a client gets is the run's mode. Events before it are held back, and stored and sent right after
it; internal events, which clients never get, are stored at once.
"""

from __future__ import annotations

from codeagent_lsp import events
from codeagent_lsp.errors import CodeAgentError, ErrorCode, UserError
from codeagent_lsp.session.command_output import OutputStream
from codeagent_lsp.session.event_details import detailed
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.spending import usage_of
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.shadow.shell import Stream
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question

PLANNING_CALL = "create_plan"

_TELLS_NO_MODE = (
    events.StatusChanged,
    events.UsageReported,
    events.IntentClassified,
    events.ContextCompacted,
    events.SteerDelivered,
)


class RunOutput:
    """Events, questions and sentences of one run; also the `Asker` of its tools."""

    def __init__(self, session: Session, record: RunRecord, services: Services) -> None:
        self._session = session
        self._record = record
        self._services = services
        self._begun = record.status != "running"
        self._held: list[events.Event] = []
        self._printed = OutputStream(self._emit_printed, left_out=self.text("output.left_out"))

    def begin(self, mode: events.Mode) -> None:
        """Emit the run's mode, then the events held back; nothing if the mode was emitted before."""
        if not self._begun:
            self.begin_again(mode)

    def begin_again(self, mode: events.Mode) -> None:
        """Emit the run's mode, then the events held back, also when the run is resumed."""
        self._begun = True
        held, self._held = self._held, []
        whole, number = self._record.attempt_of or None, self._record.attempt or None
        for event in (events.ResponseStart(mode=mode, attempt_of=whole, attempt=number), *held):
            self._session.emit(self._record.run_id, event)

    def emit(self, event: events.Event) -> None:
        """Store an event and send it to the listeners; hold it back while the run's mode is unknown. What commands have
        printed before comes before it.
        """
        if not event.transient:
            self.flush()
        if isinstance(event, events.UsageReported):
            self._record.usage += usage_of(event)
        event = detailed(event, self._record, self.text)
        if not self._begun and not event.internal:
            if isinstance(event, _TELLS_NO_MODE):
                self._held.append(event)
                return
            self.begin(_mode(event))
        self._session.emit(self._record.run_id, event)

    def printed(self, stream: Stream, text: str) -> None:
        """Emit what a command prints, in pieces of whole lines; a line that waits for its end is emitted, too."""
        self._printed.write(stream, text)

    def flush(self) -> None:
        """Emit what commands have printed until now."""
        self._printed.close()

    def _emit_printed(self, stream: Stream, text: str) -> None:
        self.emit(events.StepOutput(step_id=self._record.step_id or None, content=text))

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Ask the user and return the answer; None if there is none, and for an attempt, which asks nothing."""
        if self._record.attempt_of:
            self.emit(events.StatusChanged(message=self.text("attempts.not_asked", title=question.title)))
            return None
        return await self._services.user.inbox.ask(self._record.run_id, question, self.emit)

    @property
    def language(self) -> str:
        """Return the user's language."""
        return self._services.user.language()

    def text(self, key: str, /, **values: object) -> str:
        """Return a sentence of the catalogue (`texts.py`) in the user's language."""
        return text(key, self.language, **values)

    def explain(self, problem: CodeAgentError) -> str:
        """Return the message of an error for the user."""
        if isinstance(problem, UserError):
            return problem.localized(self.language)
        return str(problem)

    def fail(self, words: str, code: ErrorCode) -> str:
        """Emit the failure that ends the run, with its error code; return the words."""
        self.emit(events.Failure(error=words, code=code.value))
        return words


def _mode(event: events.Event) -> events.Mode:
    """Return the mode of a run whose first event for clients is this one."""
    if isinstance(event, events.ToolCalls) and any(call.get("name") == PLANNING_CALL for call in event.calls):
        return "plan"
    return "direct"
