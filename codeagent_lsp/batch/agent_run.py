"""One run of the agent in a folder, by the same server and client as `codeagent-lsp run`, without a user.

Not here: the folder (`task_place.py`), what its changes are worth (`task_commands.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeagent_lsp.batch.options import BatchOptions
from codeagent_lsp.messages import Usage
from codeagent_lsp.session.spending import usage_in
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal.client import Client
from codeagent_lsp.terminal.connection import ConnectionLost, Refused
from codeagent_lsp.terminal.edits import FileWrite
from codeagent_lsp.terminal.options import RunOptions
from codeagent_lsp.terminal.questions import accepted


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The end of a run: `completed` is its last event ({} if it had none), `error` why it has none, `code` that of its
    last error, `late` that its time was over. `usage` sums all its model calls, those of all attempts.
    """

    completed: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[FileWrite, ...] = ()
    usage: Usage = Usage()
    session: str = ""
    error: str = ""
    code: str = ""
    late: bool = False


async def agent_run(task: str, folder: Path, options: BatchOptions, seconds: float) -> AgentRun:
    """Let the agent do the task in this folder; it is ended after `seconds`."""
    settings = {"edits.apply": "auto", **dict(options.settings)}
    run = RunOptions(task, folder, "direct", options.attempts, options.accept_all, settings=tuple(settings.items()))
    face, late, error = _Unattended(accept_all=options.accept_all), asyncio.Event(), ""
    client = Client(run, face, late, environ={**os.environ, **options.environment})
    timer = asyncio.get_running_loop().call_later(seconds, late.set)
    completed: Mapping[str, Any] | None = None  # the run's own end: its attempts are runs, too
    try:
        completed = await client.run()
    except (ConnectionLost, Refused) as problem:
        error = str(problem) or type(problem).__name__
    finally:
        timer.cancel()
    ended = completed or {}
    is_late = late.is_set() and ended.get("status") in (None, "cancelled")
    if not ended and not error and not is_late:
        error = face.said
    return AgentRun(ended, tuple(client.written), face.usage, face.session, error, face.code, late=is_late)


def session_file(folder: Path, session: str) -> bytes:
    """Return the recorded session of a run in this folder; b'' if there is none."""
    try:
        return (workspace_state([str(folder)]) / "sessions" / f"{session}.jsonl").read_bytes() if session else b""
    except OSError:
        return b""


class _Unattended:
    """The `Face` of a run without a user; with `accept_all` every prompt is accepted, else every one is denied."""

    def __init__(self, *, accept_all: bool) -> None:
        self.usage = Usage()
        self.session = self.code = self.said = ""
        self._accept_all = accept_all

    def event(self, event: Mapping[str, Any]) -> None:
        """See `client.Face`."""
        self.session = self.session or str(event.get("session_id") or "")
        match event["type"]:
            case "usage":
                self.usage += usage_in(event)
            case "error":
                self.code = str(event.get("code") or "")
            case "run_completed":  # those of attempts come before the run's own
                self.session = str(event.get("session_id") or self.session)

    def message(self, words: str) -> None:
        """See `client.Face`."""
        self.said = words

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """See `client.Face`."""
        return accepted(choices) if self._accept_all else None

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """See `client.Face`."""
        return None
