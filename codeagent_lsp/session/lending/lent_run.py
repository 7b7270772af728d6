"""The run of another agent to which the editor is lent: its calls are the work, our tools carry them out.

It lasts as long as the agent is connected. What it stages is proposed as that of any run: when it asks for it, when it
has been quiet for a while, and when it has left. Not here: the connection (`server/door.py`), whether it is
allowed (`server/lender.py`), names of tools (`lent_tools.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from codeagent_lsp import events
from codeagent_lsp.agent.loop import call_data, result_event
from codeagent_lsp.agent.subagents import Subset
from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.session.lending.lent_tools import (
    LENT_TOOLS,
    OPEN_FILES,
    PROPOSE,
    LentTool,
    in_lent_names,
    lent_tool,
    open_files,
    with_kept_named,
)
from codeagent_lsp.session.own_runs import OwnWork
from codeagent_lsp.session.proposal import looked_at
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_parts import Ended, RunParts
from codeagent_lsp.tools.asking import Asker, Question
from codeagent_lsp.tools.context import Reader, ToolContext
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.workspace.changes.changeset import Changeset

logger = logging.getLogger(__name__)

QUIET_SECONDS = 30.0
"""After so long without a call, what is staged is proposed."""
PROPOSE_SECONDS = 45.0
"""How long a call of `propose` waits for the user: many agents give a call a minute."""
LOOK_SECONDS = 0.2
MAX_CALLS = 32
"""Most calls at a time; more are refused, so that none waits without end."""
STOP_SECONDS = 5.0
"""How long calls may take to stop once the agent has left."""
ASSUMED_WINDOW = 128_000
"""Tokens that the other agent's model can read."""
MOST_BYTES = 24_000
"""Longest answer. Of one of over 25,000 characters Qwen Code 0.24 shows 2,000 and keeps the rest in a file of its own,
Claude Code 2.1 of one of over 50,000; codex 0.171 leaves out the middle of one of over 10,000 tokens.
"""
_STOPPED = "The call was stopped."
_FAULT = "The editor failed by a fault of its own. Try another way."
_UNSAVED = "They may not be saved yet."
_TOO_MANY = f"More than {MAX_CALLS} calls at a time. Wait for the others."


@dataclass(frozen=True, slots=True)
class LentCall:
    """A call of the other agent, by its number on the connection."""

    number: int
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The other agent cancels the call with this number, whose answer it does not want any more."""

    number: int


class Borrower(Protocol):
    """Port: the other agent, to which the editor is lent. `name` is what it calls itself."""

    name: str

    async def next(self) -> LentCall | CallCancelled | None:
        """Wait for its next call or cancellation and return it; None when it has disconnected. Cancellable."""

    async def answer(self, number: int, text: str, *, ok: bool) -> None:
        """Send the result of the call with this number, an error unless `ok`; nothing happens if it has
        disconnected.
        """

    async def leave(self, reason: str) -> None:
        """Close the other agent's connection: with the reason `cancelled` if the user has ended it, else `ended`."""


def lent(borrower: Borrower, quiet_seconds: float = QUIET_SECONDS) -> OwnWork:
    """Return the work of a run that carries out the calls of this agent until it disconnects, and then ends the
    connection. Its changes are proposed after `quiet_seconds` without a call, too.
    """

    async def work(parts: RunParts, request: RunRequest) -> Ended:
        reason = "ended"
        try:
            return await _LentRun(parts, borrower, quiet_seconds).work()
        except asyncio.CancelledError:
            reason = "cancelled"
            raise
        finally:
            await borrower.leave(reason)

    return work


class _LentRun:
    """The work of one such run."""

    def __init__(self, parts: RunParts, borrower: Borrower, quiet_seconds: float) -> None:
        self._parts = parts
        self._borrower = borrower
        self._quiet_seconds = quiet_seconds
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._count = 0
        # Calls that change or run something come one after the other, as those of a model do.
        self._alone = asyncio.Lock()
        self._deciding: asyncio.Task[events.RunStatus] | None = None
        self._status: events.RunStatus = "completed"
        self._quiet: asyncio.TimerHandle | None = None

    async def work(self) -> Ended:
        """Do what is called for until the agent has left, and return how that went."""
        parts = self._parts
        await parts.toolbox.open()
        try:
            while (wanted := await self._borrower.next()) is not None:
                self._take(wanted)
            await self._stop_calls()
            # A question that is open already is not asked a second time.
            if self._deciding is not None:
                await self._wait_for_decision(self._deciding)
        finally:
            self._settle()
            await self._stop_calls()
            await self._stop_deciding()
            parts.toolbox.close()
        # What was decided last counts only where it is all that came of the run.
        status = "completed" if self._status == "rejected" and parts.record.applied else self._status
        return status, parts.output.text("lend.left", client=self._borrower.name, count=self._count)

    def _take(self, wanted: LentCall | CallCancelled) -> None:
        """Begin a call, or stop one."""
        running = self._calls.get(wanted.number)
        if isinstance(wanted, CallCancelled):
            if running is not None:
                running.cancel()
            return
        self._settle()
        # A number that is in use would leave two answers of which nobody knows which is which.
        if running is None:
            full = len(self._calls) >= MAX_CALLS
            self._calls[wanted.number] = asyncio.ensure_future(self._answer(wanted, full=full))

    async def _answer(self, wanted: LentCall, *, full: bool) -> None:
        """Carry out a call and answer it."""
        try:
            text, ok = (_TOO_MANY, False) if full else await self._outcome(wanted)
            await self._borrower.answer(wanted.number, text, ok=ok)
        except CodeAgentError as problem:  # about the run, such as its budget; the other calls go on
            await self._borrower.answer(wanted.number, str(problem), ok=False)
        except Exception:  # a fault of ours must not leave the other agent waiting
            logger.exception("a call of %s failed", self._borrower.name)
            await self._borrower.answer(wanted.number, _FAULT, ok=False)
        finally:
            self._calls.pop(wanted.number, None)
            if not self._calls:
                self._await_quiet()

    async def _outcome(self, wanted: LentCall) -> tuple[str, bool]:
        """Return what a call answers, and whether it went well."""
        tool = lent_tool(wanted.tool)
        if tool is None:
            names = ", ".join(each.name for each in LENT_TOOLS)
            return f"There is no tool {wanted.tool!r}. Tools: {names}.", False
        if refused := tool.refused(wanted.arguments):
            return f"{tool.name} has no argument {refused!r}.", False
        if tool.name == PROPOSE:
            return await self._propose()
        if tool.reads:
            result = await self._call_shown(tool, wanted)
        else:
            async with self._alone:
                result = await self._call_shown(tool, wanted)
        text = with_kept_named(result.told) if result.ok else in_lent_names(result.told)
        return text, result.ok and not result.failed

    async def _call_shown(self, tool: LentTool, wanted: LentCall) -> ToolResult:
        """Carry out a call that the user sees, as those of a model."""
        output = self._parts.output
        self._count += 1
        call = ToolCall(tool.own_name, wanted.arguments, f"lent_{self._count}")
        output.emit(events.ToolCalls(calls=(call_data(call),)))
        result = ToolResult("cancelled", _STOPPED)
        try:
            result = await self._done(call)
        finally:  # a card that is begun has an end
            output.emit(result_event(call, result))
        return result

    async def _done(self, call: ToolCall) -> ToolResult:
        parts = self._parts
        context = _answering_briefly(parts.toolbox.context().having((Reader, Reader(ASSUMED_WINDOW))))
        if call.name == OPEN_FILES:
            listed = await asyncio.to_thread(open_files, parts.proposal.view)
            return ToolResult("ok", context.redaction.hide(listed))
        context = replace(context, asker=_NamedAsker(parts.output, self._borrower.name))
        services = parts.services
        registry = Subset(services.registry, lambda: [tool.own_name for tool in LENT_TOOLS])
        approvals = parts.session.context.approvals
        executor = ToolExecutor(registry, context, services.user.mode, approvals, services.user.language())
        return await executor.execute(call)

    # The decision about what is staged.

    async def _propose(self) -> tuple[str, bool]:
        """Ask the user for their decision and return what became of the changes."""
        proposal = self._parts.proposal
        if not proposal.changeset:
            return "Nothing is staged.", True
        async with self._alone:  # what is being made now belongs to it
            before, wanted = len(proposal.record.applied), _hunks(proposal.changeset)
            deciding = self._decide()
        with suppress(TimeoutError):
            async with asyncio.timeout(PROPOSE_SECONDS):
                await self._wait_for_decision(deciding)
                # One who closes the question looks at the changes in the code, and decides there.
                while proposal.changeset and not proposal.refused:  # noqa: ASYNC110 (decided in many places)
                    await asyncio.sleep(LOOK_SECONDS)
        if proposal.refused and deciding.done():
            return f"Not proposed. A hook of the project says: {proposal.refused}", False
        if proposal.unconfirmed:
            names = ", ".join(map(proposal.view.roots.relative, proposal.unconfirmed))
            return f"The user has accepted them, but the editor did not confirm: {names}. Read these files.", False
        taken = sum(_hunks(part.changeset) for part in proposal.record.applied[before:])
        if proposal.changeset:
            names = ", ".join(map(proposal.view.roots.relative, proposal.changeset.paths))
            part = "Of your changes only a part is in the user's files. " if taken else ""
            return f"{part}The user has not decided yet about: {names}. Go on, or call this again later.", True
        if not taken:
            return "The user has discarded your changes.", True
        if taken < wanted:
            return (
                f"The user has accepted a part of your changes and discarded the rest: read the files. {_UNSAVED}",
                True,
            )
        return f"Accepted: your changes are in the user's editor. {_UNSAVED}", True

    def _decide(self) -> asyncio.Task[events.RunStatus]:
        """Begin to ask the user, unless they are being asked, and return the task."""
        if self._deciding is None or self._deciding.done():
            self._deciding = asyncio.ensure_future(self._parts.proposal.decide("completed"))
        return self._deciding

    async def _wait_for_decision(self, deciding: asyncio.Task[events.RunStatus]) -> None:
        """Wait for a decision and keep how it went for the end of the run."""
        try:
            self._status = await asyncio.shield(deciding)
        except CodeAgentError as problem:  # as the end of a run does; what is staged stays
            output = self._parts.output
            output.emit(events.StatusChanged(message=output.explain(problem)))

    def _await_quiet(self) -> None:
        self._settle()
        if self._parts.proposal.changeset:
            self._quiet = asyncio.get_running_loop().call_later(self._quiet_seconds, self._ask_now)

    def _ask_now(self) -> None:
        self._quiet = None
        if not self._calls and self._parts.proposal.changeset:
            self._decide().add_done_callback(looked_at)

    def _settle(self) -> None:
        """Wait for no quiet any more."""
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None

    # The end.

    async def _stop_calls(self) -> None:
        if calls := tuple(self._calls.values()):
            for call in calls:
                call.cancel()
            await asyncio.wait(calls, timeout=STOP_SECONDS)

    async def _stop_deciding(self) -> None:
        if self._deciding is not None and not self._deciding.done():
            self._deciding.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._deciding], timeout=STOP_SECONDS)


class _NamedAsker:
    """The asker of the other agent's calls: each question says who asks, so that none looks like one of ours."""

    def __init__(self, asker: Asker, name: str) -> None:
        self._asker = asker
        self._name = name

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Ask the user; see `Asker`."""
        return await self._asker.ask(replace(question, title=f"{self._name}: {question.title}"))


def _answering_briefly(context: ToolContext) -> ToolContext:
    """Return the context with results that other agents pass on whole."""
    tools = context.settings.tools
    tools = replace(tools, max_output_bytes=min(tools.max_output_bytes, MOST_BYTES))
    return replace(context, settings=replace(context.settings, tools=tools))


def _hunks(changeset: Changeset) -> int:
    """Return how many parts of changes can be decided about."""
    return sum(max(1, len(change.hunks())) for change in changeset)
