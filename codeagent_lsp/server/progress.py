"""Work-done progress for every run: begin, at most ten reports a second, and always an end with a sentence.

Not here: what happens in a run; this only listens to its events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp import events
from codeagent_lsp.errors import EditorError
from codeagent_lsp.session.transcript import call_words
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.clients import ClientPolicy
    from codeagent_lsp.server.server import CodeAgentServer

CREATE_SECONDS = 5.0
INTERVAL = 0.1


class Progress:
    """The progress tokens of the runs at work; `run_of` finds the run that a cancelled token belongs to."""

    def __init__(
        self, server: CodeAgentServer, policy: Callable[[], ClientPolicy], language: Callable[[], str]
    ) -> None:
        self._server = server
        self._policy = policy
        self._language = language
        self._bars: dict[str, _Bar] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def run_of(self, token: int | str) -> str | None:
        """The run that reports under `token`."""
        return next((run_id for run_id, bar in self._bars.items() if bar.token == token), None)

    def begin(self, run_id: str, title: str) -> None:
        """Start to show a run."""
        if not self._policy().progress:
            return
        bar = self._bars[run_id] = _Bar(self._server, f"codeagent-{run_id}", title)
        task = asyncio.ensure_future(bar.create())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def observe(self, event: events.Event) -> None:
        """Turn an event into a report or the end."""
        bar = self._bars.get(event.run_id)
        if bar is None:
            return
        if isinstance(event, events.RunCompleted):
            bar.end(ending(event, self._language()))
            del self._bars[event.run_id]
        elif message := reported(event, self._language()):
            bar.report(message)


class _Bar:
    """One token. What comes before the client has accepted it waits; a client that refuses gets nothing."""

    def __init__(self, server: CodeAgentServer, token: str, title: str) -> None:
        self.token = token
        self._server = server
        self._title = title
        self._begun = False
        self._waiting: str | None = None
        self._ended: str | None = None
        self._last = 0.0

    async def create(self) -> None:
        """Ask for the token, then say what has gathered meanwhile."""
        try:
            params = types.WorkDoneProgressCreateParams(self.token)
            await self._server.request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params, CREATE_SECONDS)
        except EditorError:
            return
        self._begun = True
        self._send(types.WorkDoneProgressBegin(title=self._title, cancellable=True, message=self._waiting))
        if self._ended is not None:
            self._send(types.WorkDoneProgressEnd(message=self._ended))

    def report(self, message: str) -> None:
        """Show a line, unless one was shown just now."""
        self._waiting = message
        now = time.monotonic()
        if self._begun and self._ended is None and now - self._last >= INTERVAL:
            self._last = now
            self._send(types.WorkDoneProgressReport(message=message, cancellable=True))

    def end(self, message: str) -> None:
        """The last word; exactly one."""
        if self._ended is None:
            self._ended = message
            if self._begun:
                self._send(types.WorkDoneProgressEnd(message=message))

    def _send(self, value: Any) -> None:
        self._server.notify(types.PROGRESS, types.ProgressParams(token=self.token, value=_plain(value)))


def _plain(value: Any) -> dict[str, Any]:
    """A progress value as the wire wants it: camelCase keys come out the same, None is left out."""
    names = ("kind", "title", "message", "cancellable", "percentage")
    return {name: item for name in names if (item := getattr(value, name, None)) is not None}


def reported(event: events.Event, language: str) -> str | None:
    """The line for an event; None when it has nothing to show."""
    match event:
        case events.ToolCalls(calls=calls) if calls:
            return " · ".join(dict.fromkeys(map(_call_line, calls)))[:120]
        case events.ToolFinished():
            return text("progress.thinking", language)
        case events.Token():
            return text("progress.writing", language)
        case events.StepOutput(content=content) | events.Stdout(content=content) | events.Stderr(content=content):
            return _last_line(content)
        case events.ApprovalRequested() | events.QuestionAsked():
            return text("progress.waiting", language)
        case events.StatusChanged(message=message):
            return message
    return None


def ending(event: events.RunCompleted, language: str) -> str:
    """The sentence a run ends with."""
    if event.error:
        return event.error
    if event.outcome in ("full", "partial", "unknown"):
        return text(f"outcome.{event.outcome}", language, count=len(event.files_changed))
    if event.outcome == "none" and event.status == "completed":
        return text("outcome.kept", language)
    return text(f"ended.{event.status}", language)


def _last_line(content: str) -> str | None:
    lines = content.strip().splitlines()
    return lines[-1].strip()[:120] if lines else None


def _call_line(call: Mapping[str, Any]) -> str:
    return call_words(call).replace("\n", " ")[:80]
