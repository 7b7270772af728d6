"""Executes the commands of `workspace/executeCommand`: check the arguments, call one function, answer at once.

Longer work goes on as a run or as a task of its own and is shown by events, progress and messages: clients may block
until a command has answered. Not here: what the commands do (the other modules of this folder), their names and
arguments (`protocol.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import CodeAgentError, UsageError, UserError
from codeagent_lsp.protocol import command as declared
from codeagent_lsp.server.command_menu import CommandMenu
from codeagent_lsp.server.commands.arguments import Arguments, Table, checked
from codeagent_lsp.server.commands.change_commands import ChangeCommands
from codeagent_lsp.server.commands.convert import run_request
from codeagent_lsp.server.commands.custom_commands import custom_commands
from codeagent_lsp.server.commands.graph_commands import graph_commands
from codeagent_lsp.server.commands.index_commands import index_commands
from codeagent_lsp.server.commands.knowledge_commands import knowledge_commands
from codeagent_lsp.server.commands.mcp_commands import mcp_commands
from codeagent_lsp.server.commands.model_commands import model_commands
from codeagent_lsp.server.commands.plan_commands import PlanCommands
from codeagent_lsp.server.commands.prompt_commands import prompt_commands
from codeagent_lsp.server.commands.question_commands import question_commands
from codeagent_lsp.server.commands.queue_commands import QueueCommands, started
from codeagent_lsp.server.commands.rewind_commands import RewindCommands
from codeagent_lsp.server.commands.session_commands import SessionCommands
from codeagent_lsp.server.commands.tool_commands import ToolCommands
from codeagent_lsp.server.prompting.prompting import Prompting
from codeagent_lsp.session.request import REWRITES, TRIALS, RunKind

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.next_edits import NextEdits


class Commands:
    """All commands over one backend; `menu` has those that users wrote, for code actions; `prompting` has the
    documents in which tasks are written.
    """

    def __init__(self, backend: Backend, next_edits: NextEdits) -> None:
        self._backend = backend
        self._next_edits = next_edits
        self._tasks = BackgroundTasks()
        self.menu = CommandMenu(backend.knowledge.commands, backend.views.plain)
        self.prompting = Prompting(backend, self.menu)
        self._table: Table = {
            "codeagent.nextEdit.dismiss": lambda given: next_edits.dismiss(),
            **question_commands(backend),
            **QueueCommands(backend, self._enqueue, self._later).table(),
            **ChangeCommands(backend, self._later).table(),
            **PlanCommands(backend, self._later).table(),
            **SessionCommands(backend, self._later).table(),
            **RewindCommands(backend).table(),
            **custom_commands(backend, self._enqueue),
            **prompt_commands(backend, self.prompting, self._enqueue, self._later),
            **ToolCommands(backend).table(),
            **model_commands(backend),
            **index_commands(backend),
            **graph_commands(backend, self._later),
            **knowledge_commands(backend, self._later),
            **mcp_commands(backend, self._later),
        }

    async def execute(self, name: str, arguments: list[Any]) -> Any:
        """Run a command and return its answer. UsageError for an unknown command or wrong arguments."""
        item = declared(name)
        if item is None:
            raise UsageError("command.unknown", command=name[:100])
        given = checked(item, arguments)
        if item.starts_run:
            return await self._start(cast("RunKind", name.removeprefix("codeagent.")), given)
        answer = self._table[name](given)
        return await answer if asyncio.iscoroutine(answer) else answer

    def close(self) -> None:
        """Stop what is read in the background."""
        self.menu.close()
        self.prompting.close()

    async def _enqueue(self, given: Arguments) -> dict[str, Any]:
        return await self._start("run", given)

    async def _start(self, kind: RunKind, given: Arguments) -> dict[str, Any]:
        backend = self._backend
        if (refused := backend.front.settings_link.refusal) is not None:
            raise refused
        rewritten = await self._next_edits.rewritten() if kind == "nextEdit.apply" else ()
        if kind not in (*REWRITES, *TRIALS, "runFile", "skills.install", "trust", "nextEdit.apply"):
            backend.index.wanted()  # a run with tools will use it
        await backend.ready()  # the redactor must be loaded before anything of a run is stored
        view, language = backend.views.plain(), backend.front.language()
        request = run_request(kind, given, backend.documents, view, language, backend.redactor.hide)
        request = replace(request, rewritten=rewritten)
        if kind in TRIALS:
            tried = backend.manager.runs.get(given["runId"])
            from codeagent_lsp.session.own_runs import trial  # late: with the parts of a run

            run_id = backend.manager.start(request, tried.session.session_id, trial(kind, tried.proposal))
        else:
            run_id = backend.manager.start(request, given.get("sessionId"))
        return started(backend.manager, run_id)

    def _later(self, work: Awaitable[Any]) -> None:
        self._tasks.start(self._finished(work))

    async def _finished(self, work: Awaitable[Any]) -> None:
        """Wait for `work`; show an error to the user."""
        try:
            await work
        except CodeAgentError as error:
            words = error.localized(self._backend.front.language()) if isinstance(error, UserError) else str(error)
            self._backend.announcer.tell(words, types.MessageType.Warning)
