"""Emits the events of one run, asks its questions, and looks up its sentences in the user's language.

The first event that a client gets says the run's mode. Events before it are held back, and stored and sent right after
it; internal events, which clients never get, are stored at once. The output of a command is sent in whole lines, at
most ten events a second and up to a limit; a line without an end, such as a prompt, is sent after half a second. Not
here: the output that a command's result keeps (`shadow/output.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields, replace
from enum import Enum, auto
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.errors import CodeAgentError, ErrorCode, UserError
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.spending import usage_of
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.shadow.shell import Stream
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.plan.plan import ENDED

PLANNING_CALL = "create_plan"

# They may come before the model has said whether it plans; any other event decides it.
_TELLS_NO_MODE = (
    events.StatusChanged,
    events.UsageReported,
    events.IntentClassified,
    events.ContextCompacted,
    events.SteerDelivered,
    events.Thought,
)
# They may come between two replies of the model and show nothing there.
_BETWEEN_REPLIES = (events.UsageReported, events.StatusChanged, events.IntentClassified, events.Thought)
_IN_STEPS = (events.ToolCalls, events.ToolFinished, events.AnomalyDetected, events.StepOutput)
INTERVAL = 0.1
PATIENCE = 5
"""How many intervals the beginning of a line waits for its end."""
# Small enough that one event does not hold up the others behind it on the wire.
PIECE = 8 * 1024
TOTAL = 256 * 1024


class _TextState(Enum):
    """What clients show last of a run: no text, the text of a reply, or that of a reply that is at its end."""

    NONE = auto()
    OPEN = auto()
    ENDED = auto()


class RunOutput:
    """Emits the events of one run, asks its questions and returns its sentences; also the `Asker` of its tools."""

    def __init__(self, session: Session, record: RunRecord, services: Services) -> None:
        self._session = session
        self._record = record
        self._services = services
        # A run of an earlier process has told its mode then.
        self._begun = record.status != "running"
        self._held: list[events.Event] = []
        self._text = _TextState.NONE
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
        beside = self._record.title if self._record.lent else None
        foreign = self._record.foreign or None
        start = events.ResponseStart(mode=mode, attempt_of=whole, attempt=number, beside=beside, foreign=foreign)
        for event in (start, *held):
            self._session.emit(self._record.run_id, event)

    def emit(self, event: events.Event) -> None:
        """Store an event and send it to the listeners; hold it back while the run's mode is unknown. What commands have
        printed before comes before it. Returns at once, but for writing to the session's file.
        """
        # The output of commands is transient itself and comes through here: flushing for it would never end.
        if not event.transient:
            self.flush()
        if isinstance(event, events.UsageReported):
            self._record.usage += usage_of(event)
        event = self._apart(with_details(event, self._record, self.text))
        if not self._begun and not event.internal:
            if isinstance(event, _TELLS_NO_MODE):
                self._hold(event)
                return
            self.begin(_mode(event))
        self._session.emit(self._record.run_id, event)

    def _apart(self, event: events.Event) -> events.Event:
        """Return the event, the first text of a reply with an empty line before it where the text of the reply before
        would run into it.
        """
        before = self._text
        if isinstance(event, events.Token):
            self._text = _TextState.OPEN
            return replace(event, content="\n\n" + event.content) if before is _TextState.ENDED else event
        if isinstance(event, events.UsageReported) and before is _TextState.OPEN:
            self._text = _TextState.ENDED
        elif not event.internal and not isinstance(event, _BETWEEN_REPLIES):
            self._text = _TextState.NONE
        return event

    def _hold(self, event: events.Event) -> None:
        last = self._held[-1] if self._held else None
        # They come by the word, and may come for minutes.
        if isinstance(event, events.Thought) and isinstance(last, events.Thought):
            self._held[-1] = replace(last, content=last.content + event.content)
        else:
            self._held.append(event)

    def printed(self, stream: Stream, text: str) -> None:
        """Emit what a command prints, in pieces of whole lines, within a tenth of a second; a line that stays
        incomplete is emitted as it is.
        """
        self._printed.write(stream, text)

    def flush(self) -> None:
        """Emit what commands have printed until now, without waiting for whole lines."""
        self._printed.close()

    def _emit_printed(self, stream: Stream, text: str) -> None:
        self.emit(events.StepOutput(step_id=self._record.step_id or None, content=text))

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Ask the user, wait at most 600 s, and return the answer (chosen titles, or one text); None if there is none,
        and for an attempt, which asks nothing.
        """
        if self._record.attempt_of:
            self.emit(events.StatusChanged(message=self.text("attempts.not_asked", title=question.title)))
            return None
        return await self._services.user.inbox.ask(self._record.run_id, question, self.emit)

    @property
    def language(self) -> str:
        """The user's language, `en` or `zh-cn`, by the present settings."""
        return self._services.user.language()

    def text(self, key: str, /, **values: object) -> str:
        """Return a sentence of the catalogue (`texts.py`) in the user's language, with `values` in its placeholders.
        KeyError for an unknown key.
        """
        return text(key, self.language, **values)

    def explain(self, problem: CodeAgentError) -> str:
        """Return the message of an error for the user, in their language if the catalogue has it, else in English."""
        if isinstance(problem, UserError):
            return problem.localized(self.language)
        return str(problem)

    def fail(self, words: str, code: ErrorCode) -> str:
        """Emit the failure that ends the run, with its error code; return the words, which are for the user,
        unchanged.
        """
        self.emit(events.Failure(error=words, code=code.value))
        return words


def _mode(event: events.Event) -> events.Mode:
    """Return the mode of a run whose first event for clients is this one."""
    if isinstance(event, events.ToolCalls) and any(call.get("name") == PLANNING_CALL for call in event.calls):
        return "plan"
    return "direct"


# Completes the events of a run with what its record knows: the plan, the running step, a sentence for the user.


def with_details(event: events.Event, record: RunRecord, text: Callable[[str], str]) -> events.Event:
    """Return the event with its fields `plan`, `message`, `step_id`, `step_number` and `progress_detail` filled in, as
    far as it has them and they are None. `text` returns a sentence of the catalogue.
    """
    # None stands for "not given"; who emits an event may also set such a field, and then it stays.
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


class OutputStream:
    """Passes printed text to `emit` in order, in pieces of at most 8,192 characters, and at most `total` characters
    until `close` (256 Ki unless given). Of the text beyond that, `close` passes on only its length and its end. It can
    be used again after `close`.
    """

    def __init__(self, emit: Callable[[Stream, str], None], total: int = TOTAL, left_out: str = "") -> None:
        self._emit = emit
        self._total = self._left = total
        self._left_out = left_out or text("output.left_out")
        self._beyond = 0  # characters beyond the total
        self._end: tuple[Stream, str] = ("stdout", "")  # the last of them, as errors stand at the end
        self._waiting: list[tuple[Stream, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._waited = 0

    def write(self, stream: Stream, printed: str) -> None:
        """Buffer printed text; whole lines are passed on within a tenth of a second, an incomplete one after half a
        second. Call it in the event loop.
        """
        within = self._within(stream, printed)
        # Joined only with the same stream: across a change of streams the order in which they were printed is kept.
        if self._waiting and self._waiting[-1][0] == stream:
            within = self._waiting.pop()[1] + within
        if within:
            self._waiting.append((stream, within))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tick)

    def close(self) -> None:
        """Pass on the rest, also an incomplete line. The stream can be used again, with a new limit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pass_on(self._waiting)
        self._waiting = []
        if self._beyond:
            stream, end = self._end
            left_out = self._beyond - len(end)
            self._pass_on([(stream, ("\n" + self._left_out.format(count=left_out) + "\n" if left_out else "") + end)])
        # A stream is used for one command after the other; each has the whole limit.
        self._left, self._beyond, self._end = self._total, 0, ("stdout", "")

    def _within(self, stream: Stream, printed: str) -> str:
        """Return what may still be passed on, and keep the end of what may not."""
        within, beyond = printed[: self._left], printed[self._left :]
        self._left -= len(within)
        if beyond:
            self._beyond += len(beyond)
            self._end = (stream, (self._end[1] + beyond)[-PIECE:])
        return within

    def _tick(self) -> None:
        """Pass on whole lines; the beginning of a line waits for its end, but not for long."""
        self._timer = None
        ready = self._waiting
        self._waiting = []
        # A tick with whole lines shows that output flows, so the line begun last may soon end; only silence means a
        # prompt.
        self._waited = 0 if any("\n" in text for _, text in ready) else self._waited + 1
        if ready and not ready[-1][1].endswith("\n") and self._waited < PATIENCE:
            stream, text = ready.pop()
            head, newline, tail = text.rpartition("\n")
            ready = [*ready, (stream, head + newline)] if newline else ready
            self._waiting = [(stream, tail)]
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tick)
        self._pass_on(ready)

    def _pass_on(self, pieces: list[tuple[Stream, str]]) -> None:
        for stream, printed in pieces:
            for at in range(0, len(printed), PIECE):
                self._emit(stream, printed[at : at + PIECE])


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
