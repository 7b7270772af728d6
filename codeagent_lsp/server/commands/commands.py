"""Executes the commands of `workspace/executeCommand`: check the arguments, call one function, answer at once.

Longer work goes on as a run or as a task of its own and is shown by events, progress and messages: clients may block
until a command has answered. Not here: what the commands do (the other modules of this folder), their names and
arguments (`protocol.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

from codeagent_lsp.agent.custom_commands import CommandMenu, find_command
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import CodeAgentError, ToolFailed, UsageError
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.protocol import command as declared
from codeagent_lsp.server.commands.convert import (
    Arguments,
    Later,
    Table,
    check_arguments,
    chosen_files,
    chosen_hunks,
    recorded_run,
    run_request,
    step_edits,
)
from codeagent_lsp.server.commands.run_commands import QueueCommands, prompt_commands, question_commands, started_answer
from codeagent_lsp.server.commands.session_commands import RewindCommands, SessionCommands
from codeagent_lsp.server.commands.tool_commands import ToolCommands, knowledge_commands
from codeagent_lsp.server.prompt_documents import Prompting
from codeagent_lsp.session.request import REWRITES, TRIALS, RunKind
from codeagent_lsp.texts import text
from codeagent_lsp.tools.context import tool_context
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.agent.custom_commands import CustomCommand
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.inline import Inline
    from codeagent_lsp.tools.context import ToolContext
    from codeagent_lsp.tools.tool import ToolOutput

CALLS = "graph/calls.md"
DEPENDENCIES = "graph/dependencies.md"


class Commands:
    """All commands over one backend; `menu` has those that users wrote, for code actions; `prompting` has the documents
    in which tasks are written. Call `close` in the end.
    """

    def __init__(self, backend: Backend, inline: Inline) -> None:
        self._backend = backend
        self._inline = inline
        self._tasks = BackgroundTasks()
        self.menu = CommandMenu(backend.knowledge.commands, backend.views.plain)
        self.prompting = Prompting(backend, self.menu)
        self._table: Table = {
            "codeagent.nextEdit.dismiss": lambda given: inline.next_edits.dismiss(),
            "codeagent.finishChange.dismiss": lambda given: inline.finish_changes.dismiss(),
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
            **lend_commands(backend),
        }

    async def execute(self, name: str, arguments: list[Any]) -> Any:
        """Execute a command and return its answer, JSON data. UsageError for an unknown command or wrong arguments;
        SessionError and other errors as the command raises them. A command that starts a run answers with its ids,
        before the run has ended.
        """
        item = declared(name)
        if item is None:
            raise UsageError("command.unknown", command=name[:100])
        given = check_arguments(item, arguments)
        if item.starts_run:
            return await self._start(cast("RunKind", name.removeprefix("codeagent.")), given)
        answer = self._table[name](given)
        # Handlers that wait for nothing are plain functions.
        return await answer if asyncio.iscoroutine(answer) else answer

    def close(self) -> None:
        """Cancel reading of names and commands in the background; returns at once."""
        self.menu.close()
        self.prompting.close()

    async def _enqueue(self, given: Arguments) -> dict[str, Any]:
        return await self._start("run", given)

    async def _start(self, kind: RunKind, given: Arguments) -> dict[str, Any]:
        backend = self._backend
        # A policy file that cannot be read: nothing runs under half a policy.
        if (refused := backend.front.settings_link.refusal) is not None:
            raise refused
        # Looked for now, as the texts may have changed since the lens was shown.
        rewritten = await self._inline.next_edits.rewritten() if kind == "nextEdit.apply" else ()
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
        elif kind == "finishChange":
            run_id = backend.manager.start(request, given.get("sessionId"), self._inline.finish_changes.finish)
        else:
            run_id = backend.manager.start(request, given.get("sessionId"))
        return started_answer(backend.manager, run_id)

    def _later(self, work: Awaitable[Any]) -> None:
        self._tasks.start(self._finish(work))

    async def _finish(self, work: Awaitable[Any]) -> None:
        """Wait for `work`; show an error to the user."""
        try:
            await work
        except CodeAgentError as error:
            words = error.localized(self._backend.front.language())
            self._backend.announcer.tell(words, types.MessageType.Warning)


# The commands about staged changes: `codeagent.review`, `apply`, `discard`, `undo`. See `reviews.py`.


class ChangeCommands:
    """The handlers of `codeagent.review`, `apply`, `discard` and `undo`; `later` runs work after the answer."""

    def __init__(self, backend: Backend, later: Later) -> None:
        self._backend = backend
        self._later = later

    def table(self) -> Table:
        """Return the handlers by the names of their commands; each takes checked arguments and returns JSON data or a
        coroutine.
        """
        return {
            "codeagent.review": self._review,
            "codeagent.apply": self._apply,
            "codeagent.discard": self._discard,
            "codeagent.undo": self._undo,
        }

    async def _review(self, given: Arguments) -> dict[str, Any]:
        await recorded_run(self._backend, given["runId"])
        reviews = self._backend.reviews
        # Before the page is shown, so that numbers of hunks count in what the answer says.
        found = reviews.data(given["runId"])
        self._later(reviews.show(given["runId"]))
        return found

    async def _apply(self, given: Arguments) -> dict[str, str]:
        run, view = await recorded_run(self._backend, given["runId"]), self._backend.views.plain()
        reviews = self._backend.reviews
        files, hunks = chosen_files(given, view), chosen_hunks(given, view)
        seen = reviews.seen(run, given.get("digest"), hunks)
        self._later(reviews.apply(run, files, hunks, seen))
        return {"runId": given["runId"]}

    async def _discard(self, given: Arguments) -> dict[str, Any]:
        run, view = await recorded_run(self._backend, given["runId"]), self._backend.views.plain()
        reviews = self._backend.reviews
        files, hunks = chosen_files(given, view), chosen_hunks(given, view)
        if run.record.foreign:  # it is in the files already
            seen = reviews.seen(run, given.get("digest"), hunks)
            taken = run.proposal.chosen(files, hunks, seen)
            self._later(reviews.revert(run, files, hunks, seen))
            return {"runId": given["runId"], "files": list(taken.paths)}
        dropped = run.proposal.discard(files, hunks, reviews.seen(run, given.get("digest"), hunks))
        reviews.renew(run.record.run_id)
        return {"runId": given["runId"], "files": list(dropped.paths)}

    async def _undo(self, given: Arguments) -> dict[str, str]:
        last = self._backend.manager.runs.last_applied
        run = await recorded_run(self._backend, given["runId"]) if "runId" in given else last()
        files = chosen_files(given, self._backend.views.plain())
        self._later(self._backend.reviews.undo(run, (given["stepId"],) if "stepId" in given else None, files))
        return {"runId": run.record.run_id}


# The commands `codeagent.command` and `codeagent.commands.list`, and their names for the list of code actions.


def custom_commands(backend: Backend, start: Callable[[Arguments], Awaitable[dict[str, Any]]]) -> Table:
    """Return the handlers of `codeagent.command` and `codeagent.commands.list` by name; `start` starts a run from a
    command's arguments.
    """

    async def commands() -> tuple[CustomCommand, ...]:
        return await asyncio.to_thread(backend.knowledge.commands.commands, backend.views.plain())

    async def call(given: Arguments) -> dict[str, Any]:
        name, known = given["name"].removeprefix("/"), await commands()
        if find_command(known, name) is None:
            await asyncio.to_thread(backend.knowledge.commands.called, backend.views.plain(), f"/{name}")
            names = ", ".join(item.name for item in known[:30])
            raise UsageError("commands.unknown", name=name[:100], known=names or "-")
        words = f"/{name} {given.get('arguments', '')}".strip()
        place = {key: given[key] for key in ("uri", "range", "sessionId") if key in given}
        return await start({"task": words, **place})

    async def listed(given: Arguments) -> list[dict[str, Any]]:
        return [
            {"name": item.name, "description": item.description, "hint": item.hint, "path": item.path,
             "approved": item.approved}
            for item in await commands()
        ]  # fmt: skip

    return {"codeagent.command": call, "codeagent.commands.list": listed}


# The command `codeagent.index.graph`: the call graph of a function or the import graph of files, as a document.


def graph_commands(backend: Backend, later: Later) -> Table:
    """Return the handler of `codeagent.index.graph` by name; `later` runs the work, which takes long in a large
    workspace.
    """

    def graph(given: Arguments) -> dict[str, str]:
        name = CALLS if "function" in given else DEPENDENCIES
        later(_show(backend, name, given.get("function", ""), _path(backend, given)))
        return {"document": name}

    return {"codeagent.index.graph": graph}


async def _show(backend: Backend, name: str, function: str, path: str | None) -> None:
    from codeagent_lsp.tools.code import graph_tools as graphs  # late, as above

    context, language = _context(backend), backend.front.language()
    if function:
        found = await graphs.CallGraph().run(
            graphs.CallGraphParameters(function_name=function, path=path, depth=2), context
        )
        title = text("graph.calls", language, name=function)
    else:
        found = await graphs.DependencyGraph().run(graphs.DependencyGraphParameters(path=path), context)
        title = text("graph.imports", language, name=path or text("graph.workspace", language))
    backend.own_documents.put(name, page(title, found))
    await backend.own_documents.show(name)


def page(title: str, found: ToolOutput) -> str:
    """Return a graph as a Markdown page: a Mermaid chart (`found.data["mermaid"]`), then the same as a list
    (`found.text`).
    """
    return f"# {title}\n\n```mermaid\n{found.data['mermaid'].strip()}\n```\n\n```text\n{found.text.strip()}\n```\n"


def _path(backend: Backend, given: Arguments) -> str | None:
    """Return the path of the file in the arguments, relative to the workspace; None for none."""
    if "uri" not in given:
        return None
    path = uris.to_path(given["uri"])
    if path is None:
        raise UsageError("command.kind", command="codeagent.index.graph", name="uri", kind="file:")
    return backend.views.plain().roots.relative(path)


def _context(backend: Backend) -> ToolContext:
    """Return the context for the tools: the files as the user has them, without any approvals."""
    from codeagent_lsp.session.run_index import RunIndex  # late, as above

    view, settings = backend.views.plain(), backend.front.settings()
    index = RunIndex(backend.index, view, lambda: settings.permissions)
    return tool_context(view, Staging(lambda path: None), settings, (CodeIndex, index))


# The commands of `codeagent.index.*`. Not here: the index (`index/host.py`).


def index_commands(backend: Backend) -> Table:
    """Return the handlers of `codeagent.index.status` and `codeagent.index.rebuild` by name."""
    index = backend.index

    async def status(given: Arguments) -> dict[str, Any]:
        try:
            return await index.status()
        except ToolFailed as problem:
            return {"state": "off", "problem": str(problem)}

    async def rebuild(given: Arguments) -> dict[str, Any]:
        try:
            return asdict(await index.rebuild())
        except ToolFailed as problem:
            raise UsageError("index.none", reason=str(problem)) from None

    return {"codeagent.index.status": status, "codeagent.index.rebuild": rebuild}


# The commands of `codeagent.mcp.*`. Not here: the servers (`tools/mcp`), making them (`mcp_servers.py`).


def mcp_commands(backend: Backend, later: Later) -> Table:
    """Return the handlers of `codeagent.mcp.status` and `codeagent.mcp.reload` by name; `later` runs work after the
    answer.
    """

    def shown(row: dict[str, Any]) -> dict[str, Any]:
        problem = row.get("error")
        if not isinstance(problem, McpProblem):
            return row
        return {**row, "error": backend.redactor.hide(problem.localized(backend.front.language()))}

    async def status(given: Arguments) -> list[dict[str, Any]]:
        return [shown(row) for row in await backend.mcp.status()]

    def reload(given: Arguments) -> dict[str, bool]:
        later(backend.mcp.reload())
        return {"ok": True}

    return {"codeagent.mcp.status": status, "codeagent.mcp.reload": reload}


# The commands of `codeagent.lend.*`. Not here: lending (`server/lender.py`).


def lend_commands(backend: Backend) -> Table:
    """Return the handlers of `codeagent.lend.list` and `codeagent.lend.revoke` by name."""
    return {
        "codeagent.lend.list": lambda given: backend.lender.clients(),
        "codeagent.lend.revoke": lambda given: {"revoked": backend.lender.revoke(given.get("client"))},
    }


# The commands of `codeagent.model.*` and `codeagent.doctor`. Not here: models (`models.py`), checks (`doctor.py`).


def model_commands(backend: Backend) -> Table:
    """Return the handlers of `codeagent.model.list`, `codeagent.model.select` and `codeagent.doctor` by name; each
    takes checked arguments and returns a coroutine.
    """
    models, front = backend.models, backend.front

    async def doctor(given: Arguments) -> list[dict[str, Any]]:
        from codeagent_lsp.doctor import diagnose  # late: it loads what opens models, which is heavy

        checks = await diagnose(front.settings(), backend.state, front.language(), front.folders())
        return [*(check.to_dict() for check in checks), front.describe_client()]

    return {
        "codeagent.model.list": lambda given: (
            models.details() if given.get("details") else models.names(check=given.get("check", False))
        ),
        "codeagent.model.select": lambda given: models.select(given["name"]),
        "codeagent.doctor": doctor,
    }


# The commands of `codeagent.plan.*`. Not here: how a plan is carried out (`session/plan_execution.py`).


class PlanCommands:
    """The handlers of `codeagent.plan.*`; `later` runs work after the answer."""

    def __init__(self, backend: Backend, later: Later) -> None:
        self._backend = backend
        self._later = later

    def table(self) -> Table:
        """Return the handlers by the names of their commands; each takes checked arguments and returns JSON data or a
        coroutine.
        """
        return {
            "codeagent.plan.show": self._show,
            "codeagent.plan.edit": self._edit,
            "codeagent.plan.retryStep": self._retry,
            "codeagent.plan.skipStep": self._skip,
            "codeagent.plan.rollback": self._roll_back,
        }

    def _show(self, given: Arguments) -> dict[str, str]:
        markdown = self._backend.plans.put(given["runId"])
        self._later(self._backend.plans.show(given["runId"]))
        return {"runId": given["runId"], "markdown": markdown}

    def _edit(self, given: Arguments) -> dict[str, Any]:
        plan = self._backend.manager.runs.arrange_steps(given["runId"], step_edits(given["steps"]))
        return {"runId": given["runId"], "steps": plan.steps.to_data()}

    def _retry(self, given: Arguments) -> dict[str, str]:
        self._backend.manager.runs.retry_step(given["runId"], given["stepId"])
        return {"runId": given["runId"]}

    def _skip(self, given: Arguments) -> dict[str, str]:
        self._backend.manager.runs.skip_step(given["runId"], given["stepId"])
        return {"runId": given["runId"]}

    def _roll_back(self, given: Arguments) -> dict[str, str]:
        run = self._backend.manager.runs.get(given["runId"])
        run.steering.check(given["stepId"])
        self._later(self._backend.reviews.roll_back(run, given["stepId"]))
        return {"runId": given["runId"]}
