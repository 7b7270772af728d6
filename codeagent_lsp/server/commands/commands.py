"""The commands of `workspace/executeCommand`: check the arguments, call one function, answer at once.

What takes time goes on as a run or as a task of its own and is told by events, progress and messages: clients
may block until a command has answered. Not here: what the functions do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

from codeagent_lsp.errors import CodeAgentError, UsageError, UserError
from codeagent_lsp.protocol import command as declared
from codeagent_lsp.server.commands.arguments import checked
from codeagent_lsp.server.commands.convert import chosen_files, chosen_hunks, run_request
from codeagent_lsp.server.commands.graph_commands import graph_commands
from codeagent_lsp.server.commands.index_commands import index_commands
from codeagent_lsp.server.commands.knowledge_commands import knowledge_commands
from codeagent_lsp.server.commands.mcp_commands import mcp_commands
from codeagent_lsp.session.interrupted_questions import lapsed, lapsed_line
from codeagent_lsp.session.plan.orders import retry_step, skip_step
from codeagent_lsp.session.request import REWRITES, RunKind
from codeagent_lsp.session.transcript import render

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.tools.registry import Entry, ToolRegistry

Arguments = Mapping[str, Any]


class Commands:
    """The commands over one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._tasks: set[asyncio.Task[None]] = set()
        self._table: dict[str, Callable[[Arguments], Any]] = {
            "codeagent.cancel": self._cancel,
            "codeagent.pending": self._pending,
            "codeagent.respond": self._respond,
            "codeagent.review": self._review,
            "codeagent.apply": self._apply,
            "codeagent.discard": self._discard,
            "codeagent.undo": self._undo,
            **plan_commands(backend, self._later),
            **session_commands(backend, self._later),
            **tool_commands(backend),
            **approval_commands(backend),
            **model_commands(backend),
            **index_commands(backend),
            **graph_commands(backend, self._later),
            **knowledge_commands(backend, self._later),
            **mcp_commands(backend, self._later),
        }

    async def execute(self, name: str, arguments: list[Any]) -> Any:
        """The answer of a command."""
        item = declared(name)
        if item is None:
            raise UsageError("command.unknown", command=name[:100])
        given = checked(item, arguments)
        if item.starts_run:
            self._expect(cast(RunKind, name.removeprefix("codeagent.")))
            await self._backend.ready()  # what is stored of a run must have no secrets in it from the first word
            return self._start(cast(RunKind, name.removeprefix("codeagent.")), given)
        answer = self._table[name](given)
        return await answer if asyncio.iscoroutine(answer) else answer

    def _expect(self, kind: RunKind) -> None:
        """A run that talks with tools will ask the index."""
        if kind not in (*REWRITES, "runFile", "skills.install"):
            self._backend.index.wanted()

    def _start(self, kind: RunKind, given: Arguments) -> dict[str, str]:
        backend = self._backend
        request = run_request(kind, given, backend.documents, backend.views.plain(), backend.front.language())
        run_id = backend.manager.start(request, given.get("sessionId"))
        return {"runId": run_id, "sessionId": backend.manager.run(run_id).session.session_id}

    def _cancel(self, given: Arguments) -> dict[str, Any]:
        return {"cancelled": list(self._backend.manager.cancel(given.get("runId")))}

    def _pending(self, given: Arguments) -> list[dict[str, Any]]:
        questions = [item.to_dict() for item in self._backend.inbox.open()]
        waiting = [
            {"kind": "changes", "runId": run.record.run_id, "title": run.record.title,
             "files": list(run.proposal.changeset.paths)}
            for run in self._backend.manager.runs()
            if run.proposal.changeset and run.record.run_id not in self._backend.manager.active()
        ]  # fmt: skip
        plans = [
            {"kind": "plan", "runId": run.record.run_id, "stepId": step.step_id, "title": step.title,
             "state": step.state}
            for run in self._backend.manager.runs()
            if (step := run.steering.open_step) is not None
        ]  # fmt: skip
        return [*questions, *waiting, *plans]

    def _respond(self, given: Arguments) -> dict[str, bool]:
        answer = given["answer"]
        titles = tuple(map(str, answer)) if isinstance(answer, list) else (str(answer),)
        self._backend.inbox.respond(given["requestId"], titles)
        return {"ok": True}

    def _review(self, given: Arguments) -> dict[str, str]:
        diff = self._backend.review_text(given["runId"])
        self._later(self._backend.show_review(given["runId"]))
        return {"runId": given["runId"], "diff": diff}

    def _apply(self, given: Arguments) -> dict[str, str]:
        run, view = self._backend.manager.run(given["runId"]), self._backend.views.plain()
        self._later(self._backend.apply(run, chosen_files(given, view), chosen_hunks(given, view)))
        return {"runId": given["runId"]}

    def _discard(self, given: Arguments) -> dict[str, Any]:
        run, view = self._backend.manager.run(given["runId"]), self._backend.views.plain()
        dropped = run.proposal.discard(chosen_files(given, view), chosen_hunks(given, view))
        return {"runId": given["runId"], "files": list(dropped.paths)}

    def _undo(self, given: Arguments) -> dict[str, str]:
        manager = self._backend.manager
        run = manager.run(given["runId"]) if "runId" in given else manager.last_applied()
        self._later(self._backend.undo(run, (given["stepId"],) if "stepId" in given else None))
        return {"runId": run.record.run_id}

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._told(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, work: Awaitable[None]) -> None:
        """Run `work`; what goes wrong is shown to the user."""
        try:
            await work
        except CodeAgentError as error:
            words = error.localized(self._backend.front.language()) if isinstance(error, UserError) else str(error)
            self._backend.announcer.tell(words, types.MessageType.Warning)


def plan_commands(backend: Backend, later: Callable[[Awaitable[None]], None]) -> dict[str, Callable[[Arguments], Any]]:
    """The commands of `codeagent.plan.*`; `later` takes what goes on after the answer."""
    manager = backend.manager

    def show(given: Arguments) -> dict[str, str]:
        markdown = backend.plans.put(given["runId"])
        later(backend.plans.show(given["runId"]))
        return {"runId": given["runId"], "markdown": markdown}

    def retry(given: Arguments) -> dict[str, str]:
        retry_step(manager, given["runId"], given["stepId"])
        return {"runId": given["runId"]}

    def skip(given: Arguments) -> dict[str, str]:
        skip_step(manager, given["runId"], given["stepId"])
        return {"runId": given["runId"]}

    def rollback(given: Arguments) -> dict[str, str]:
        run = manager.run(given["runId"])
        run.steering.check(given["stepId"])
        later(backend.rollback(run, given["stepId"]))
        return {"runId": given["runId"]}

    return {
        "codeagent.plan.show": show,
        "codeagent.plan.retryStep": retry,
        "codeagent.plan.skipStep": skip,
        "codeagent.plan.rollback": rollback,
    }


def session_commands(
    backend: Backend, later: Callable[[Awaitable[None]], None]
) -> dict[str, Callable[[Arguments], Any]]:
    """The commands of `codeagent.session.*`; `later` takes what goes on after the answer."""
    manager = backend.manager

    def new(given: Arguments) -> dict[str, str]:
        backend.remembering.session_ended()
        return {"sessionId": manager.new().session_id}

    def resume(given: Arguments) -> dict[str, Any]:
        session = manager.resume(given["sessionId"])
        if words := lapsed_line(session, backend.front.language()):
            backend.announcer.tell(words, types.MessageType.Warning)
        answer = {"sessionId": session.session_id, "title": session.context.title, "runs": len(session.context.runs)}
        return {**answer, "lapsed": lapsed(session)}

    def delete(given: Arguments) -> dict[str, bool]:
        session_id = given["sessionId"]
        run_ids = {event.run_id for event in backend.stored_events(session_id)}
        later(backend.forget_documents(session_id, run_ids, manager.delete(session_id)))
        return {"ok": True}

    def export(given: Arguments) -> dict[str, str]:
        session_id = given.get("sessionId") or manager.current().session_id
        markdown = render(backend.stored_events(session_id))
        backend.own_documents.put(f"export/{session_id}.md", markdown)
        return {"sessionId": session_id, "markdown": markdown}

    return {
        "codeagent.session.new": new,
        "codeagent.session.list": lambda given: manager.list(),
        "codeagent.session.resume": resume,
        "codeagent.session.delete": delete,
        "codeagent.session.export": export,
    }


def tool_commands(backend: Backend) -> dict[str, Callable[[Arguments], Any]]:
    """The commands of `codeagent.tools.*` and `codeagent.mode.set`."""
    registry = backend.registry

    def listed(given: Arguments) -> list[dict[str, Any]]:
        return [_listed(entry, registry) for entry in registry.entries()]

    def stats(given: Arguments) -> list[dict[str, Any]]:
        return [
            {
                "name": entry.tool.traits.name,
                "calls": entry.stats.calls,
                "errors": entry.stats.errors,
                "totalMs": round(entry.stats.total_ms, 1),
                "meanMs": round(entry.stats.mean_ms, 1),
            }
            for entry in registry.entries()
            if given.get("name") in (None, entry.tool.traits.name)
        ]

    def switch(given: Arguments, change: Callable[[str], None]) -> dict[str, str]:
        change(given["name"])
        return {"name": given["name"]}

    return {
        "codeagent.tools.list": listed,
        "codeagent.tools.stats": stats,
        "codeagent.tools.enable": lambda given: switch(given, registry.enable),
        "codeagent.tools.disable": lambda given: switch(given, lambda name: registry.disable(name, "by the user")),
        "codeagent.mode.set": lambda given: backend.set_mode(given["mode"]),
    }


def _listed(entry: Entry, registry: ToolRegistry) -> dict[str, Any]:
    traits = entry.tool.traits
    return {
        "name": traits.name,
        "description": traits.description,
        "effect": traits.effect,
        "group": traits.group,
        "state": entry.state,
        "circuit": registry.circuits.state(traits.name),
        "reason": entry.reason,
    }


def approval_commands(backend: Backend) -> dict[str, Callable[[Arguments], Any]]:
    """The commands of `codeagent.approvals.*`: calls that are always allowed, and content that is trusted."""
    standing, trust = backend.standing, backend.knowledge.skills.trust

    def listed(given: Arguments) -> list[dict[str, Any]]:
        names = ("kind", "approvalId", "tool", "shown", "since")
        calls = [("call", item.approval_id, item.tool, item.shown, item.since) for item in standing.all()]
        contents = [("content", item.digest, "", item.name, item.since) for item in trust.all()]
        return [dict(zip(names, row, strict=True)) for row in (*calls, *contents)]

    def revoked(given: Arguments) -> dict[str, int]:
        chosen = given.get("approvalId")
        return {"revoked": standing.revoke(chosen) + trust.revoke(chosen)}

    return {"codeagent.approvals.list": listed, "codeagent.approvals.revoke": revoked}


def model_commands(backend: Backend) -> dict[str, Callable[[Arguments], Any]]:
    """The commands of `codeagent.model.*` and `codeagent.doctor`."""
    return {
        "codeagent.model.list": lambda given: (
            backend.models.details() if given.get("details") else backend.models.names()
        ),
        "codeagent.model.select": lambda given: backend.models.select(given["name"]),
        "codeagent.doctor": lambda given: backend.doctor(),
    }
