"""Work-done progress (LSP) for every run: begin, at most ten reports a second, and always an end with a sentence.

With a plan a report has the current step and the percentage; without one there is no percentage. Not here: what happens
in a run; this only listens to its events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import EditorError
from codeagent_lsp.events.call_words import call_words
from codeagent_lsp.messages import Usage
from codeagent_lsp.session.spending import cost_words, spent_words, usage_data, usage_of
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.text.visible import in_box

if TYPE_CHECKING:
    from codeagent_lsp.server.front import Client
    from codeagent_lsp.server.server import CodeAgentServer

CREATE_SECONDS = 5.0
INTERVAL = 0.1


class Progress:
    """Shows the progress of all runs that have not ended; `run_of` finds the run of a cancelled token."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._bars: dict[str, Bar] = {}
        self._titles: dict[str, str] = {}
        self._steps: dict[str, tuple[Mapping[str, Any], ...]] = {}
        self._resumed = 0
        self._tasks = BackgroundTasks()

    def run_of(self, token: int | str) -> str | None:
        """Return the id of the run that reports under this token of LSP; None if none does, or it has ended."""
        return next((run_id for run_id, bar in self._bars.items() if bar.token == token), None)

    def begin(self, run_id: str, title: str) -> None:
        """Start to show a run under its title; does not wait for the client."""
        self._titles[run_id] = title
        self._show(run_id, f"codeagent-{run_id}", title)

    def resume(self, run_id: str) -> None:
        """Show a run that works on its plan again, under a new token, if its progress had ended before."""
        if run_id not in self._bars:
            self._resumed += 1
            title = self._titles.get(run_id) or text("progress.plan", self._client.language)
            self._show(run_id, f"codeagent-{run_id}-{self._resumed}", title)

    def _show(self, run_id: str, token: str, title: str) -> None:
        if not self._client.policy.progress:
            return
        # A new token each time: LSP lets one be used only once.
        bar = self._bars[run_id] = Bar(self._client.server, token, title)
        self._tasks.start(bar.create())

    def observe(self, event: events.Event) -> None:
        """Show an event as a report of its run's progress, or end that, for `run_completed`; events of runs that are
        not shown are ignored. Returns at once.
        """
        if isinstance(event, events.PlanCreated | events.PlanModified) and event.steps:
            self._steps[event.run_id] = event.steps
        bar = self._bars.get(event.run_id)
        if bar is None:
            return
        self._place(bar, event)
        if isinstance(event, events.UsageReported) and event.cost is not None:
            bar.usage += usage_of(event)
            bar.spent = spent_words(usage_data(bar.usage), self._client.language)
        if isinstance(event, events.RunCompleted):
            bar.end(ending(event, self._client.language))
            del self._bars[event.run_id]
        elif message := progress_line(event, self._client.language):
            bar.report(message)

    def _place(self, bar: Bar, event: events.Event) -> None:
        """Set the step and the percentage from an event about the plan."""
        match event:
            case events.ResponseStart(mode="plan") | events.PlanCreated():
                # A number from `begin` on: without one there, VS Code shows only the message of later reports.
                bar.percentage = bar.percentage or 0
            case events.StepStarted():
                bar.percentage = event.progress
                bar.step = step_line(self._steps.get(event.run_id, ()), event)
            case events.StepCompleted():
                bar.percentage = event.progress


class Bar:
    """One progress token of LSP. Reports wait until the client has accepted the token; one that refuses gets none."""

    def __init__(self, server: CodeAgentServer, token: str, title: str, *, cancellable: bool = True) -> None:
        self.token = token
        self._cancellable = cancellable
        self._server = server
        self._title = title
        self._begun = False
        self._waiting: str | None = None
        self._ended: str | None = None
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.step = ""
        self.usage = Usage()
        self.spent = ""
        self.percentage: int | None = None

    async def create(self) -> None:
        """Request the token from the client, wait at most 5 s for it, then send the last line reported meanwhile. If
        the client refuses, nothing is ever sent; never raises.
        """
        try:
            params = types.WorkDoneProgressCreateParams(self.token)
            await self._server.request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params, CREATE_SECONDS)
        except EditorError:
            return
        self._begun = True
        begin = types.WorkDoneProgressBegin(
            title=self._title, cancellable=self._cancellable, message=self._waiting, percentage=self.percentage
        )
        self._send(begin)
        # It may have ended while the client was thinking about the token.
        if self._ended is not None:
            self._send(types.WorkDoneProgressEnd(message=self._ended))

    def report(self, message: str) -> None:
        """Show a line; delayed, with only the latest line, when another was sent less than 0.1 seconds ago."""
        self._waiting = " · ".join(filter(None, (self.step, message, self.spent)))
        if not self._begun or self._ended is not None or self._timer is not None:
            return
        wait = self._last + INTERVAL - time.monotonic()
        if wait > 0:
            self._timer = asyncio.get_running_loop().call_later(wait, self._flush)
        else:
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        if self._ended is None:
            self._last = time.monotonic()
            self._send(
                types.WorkDoneProgressReport(
                    message=self._waiting, cancellable=self._cancellable, percentage=self.percentage
                )
            )

    def end(self, message: str) -> None:
        """Send the end with its message, as soon as the token is accepted; only the first call counts."""
        if self._ended is None:
            self._ended = message
            if self._timer is not None:
                self._timer.cancel()
            if self._begun:
                self._send(types.WorkDoneProgressEnd(message=message))

    def _send(self, value: Any) -> None:
        self._server.notify(types.PROGRESS, types.ProgressParams(token=self.token, value=_plain(value)))


def _plain(value: Any) -> dict[str, Any]:
    """Return a progress value as JSON: only members with a value."""
    names = ("kind", "title", "message", "cancellable", "percentage")
    found = {name: item for name in names if (item := getattr(value, name, None)) is not None}
    return found | {name: in_box(found[name]) for name in ("title", "message") if name in found}


def progress_line(event: events.Event, language: str) -> str | None:
    """Return the line, in the language `en` or `zh-cn`, that an event adds to the progress; None for none."""
    match event:
        case events.ToolCalls(calls=calls) if calls:
            return " · ".join(dict.fromkeys(map(_call_line, calls)))[:120]
        case events.ToolFinished() | events.Thought():
            return text("progress.thinking", language)
        case events.Token():
            return text("progress.writing", language)
        case events.StepOutput(content=content) | events.Stdout(content=content) | events.Stderr(content=content):
            return _last_line(content)
        case events.ApprovalRequested() | events.QuestionAsked():
            return text("progress.waiting", language)
        case events.StatusChanged(message=message):
            return message
        case events.StepStarted():
            return text("progress.thinking", language)
    return None


def step_line(steps: Sequence[Mapping[str, Any]], event: events.StepStarted) -> str:
    """Return the step as "2/5 title", counted from 1, the title cut at 80 characters; the title alone for a step that
    is not in the plan.
    """
    names = [str(step.get("step_id")) for step in steps]
    title = " ".join(event.description.split())[:80]
    return f"{names.index(event.step_id) + 1}/{len(names)} {title}" if event.step_id in names else title


def ending(event: events.RunCompleted, language: str) -> str:
    """Return the sentence a run ends with, in the language `en` or `zh-cn`, and what it has cost in USD, if that is
    known.
    """
    cost = cost_words(event.usage, event.session_usage, language)
    return " · ".join(filter(None, (_outcome(event, language), cost)))


def _outcome(event: events.RunCompleted, language: str) -> str:
    if event.error:
        return event.error
    if event.outcome == "unknown" and event.unconfirmed:
        return event.summary.partition("\n")[0]
    if event.outcome in ("full", "partial", "unknown"):
        applied = text(f"outcome.{event.outcome}", language, count=len(event.files_changed))
        # Why it was stopped comes first: what is in the files is not all that was asked for.
        why = event.summary.partition("\n")[0] if event.status == "stopped" else ""
        return f"{why} {applied}" if why else applied
    if event.outcome == "none" and event.status == "completed":
        return text("outcome.kept", language)
    if event.outcome == "none" and event.status == "stopped":
        return text("outcome.waits", language)
    return text(f"ended.{event.status}", language)


def _last_line(content: str) -> str | None:
    lines = content.strip().splitlines()
    return lines[-1].strip()[:120] if lines else None


def _call_line(call: Mapping[str, Any]) -> str:
    return call_words(call).replace("\n", " ")[:80]
