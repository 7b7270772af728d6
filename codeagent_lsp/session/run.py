"""One run from the user's request to the decision about its changes.

However it ends, `run_completed` is the last event, what was staged stays for a decision, and the conversation
is well-formed. Not here: the model and tool loop (`agent/loop.py`), how changes reach the buffers (the editor).
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Callable
from dataclasses import replace

from codeagent_lsp import events
from codeagent_lsp.agent.gather import starting_context
from codeagent_lsp.agent.history import History, note
from codeagent_lsp.agent.loop import DEFAULT_WINDOW, AgentLoop, LoopLimits
from codeagent_lsp.agent.prompt import Selection, system_prompt, task_message
from codeagent_lsp.agent.rewrite import RewriteLimits, RewriteRequest, rewrite
from codeagent_lsp.errors import CodeAgentError, UsageError
from codeagent_lsp.llm.base import Model
from codeagent_lsp.messages import Message, ToolSpec
from codeagent_lsp.session.file_run import command_for, run_file
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.replay import message_to_dict
from codeagent_lsp.session.request import ANSWERS, REWRITES, RunRequest, Target
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import RunRecord, Session
from codeagent_lsp.session.voice import Voice
from codeagent_lsp.session.workbench import Workbench, commands_line
from codeagent_lsp.tools import SMALL_SET
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.decision import Mode
from codeagent_lsp.tools.executor import ToolExecutor, escape_invisible
from codeagent_lsp.tools.permissions import effects_of
from codeagent_lsp.workspace.position import LineIndex

logger = logging.getLogger(__name__)

SMALL_WINDOW = 8192
GROUPS = ("core", "files", "git", "tests")
ASKED_FOR = {"edit": "ask.instruction", "ask": "ask.question"}


class Run:
    """A run at work. `record` is its state as the session keeps it."""

    def __init__(self, session: Session, record: RunRecord, services: Services) -> None:
        self.session = session
        self.record = record
        self._services = services
        self._voice = Voice(session, record, services)
        self.proposal = Proposal(record, services, self._voice)
        self._view = self.proposal.view
        self._bench = Workbench(session, services, self.proposal, self._voice)

    def begin(self, request: RunRequest) -> None:
        """Store the request, before anybody is told that it was accepted."""
        self._voice.emit(events.RunStarted(task=request.task, title=request.title, kind=request.kind))

    def abandon(self) -> None:
        """End a run that was cancelled before its task began."""
        if self.record.status == "running":
            self._voice.emit(events.ResponseStart(mode="direct"))
            self._finish("cancelled", self._voice.text("run.cancelled"), None)

    async def execute(self, request: RunRequest) -> None:
        """Do the work and see to the decision; every ending is told by `run_completed`."""
        self._voice.emit(events.ResponseStart(mode="direct"))
        status: events.RunStatus = "failed"
        summary, error = "", None
        try:
            status, summary = await self._work(await self._in_words(request))
            self._voice.emit(events.ResponseEnd())
            status = await self.proposal.decide(status)
            self._tell_decision(status)
        except asyncio.CancelledError:
            status, summary = "cancelled", self._voice.text("run.cancelled")
            raise
        except CodeAgentError as problem:
            status, error = "failed", self._voice.explain(problem)
        except Exception:
            logger.exception("run failed")
            status, error = "failed", self._voice.text("run.internal")
        finally:
            self._finish(status, summary, error)

    async def _in_words(self, request: RunRequest) -> RunRequest:
        """The request with what the user wants: an edit or a question without words is asked for them."""
        if request.instruction or request.kind not in ASKED_FOR:
            return request
        answer = await self._voice.ask(Question("question", self._voice.text(ASKED_FOR[request.kind])))
        if not answer:
            raise UsageError("ask.nothing")
        return request.with_words(answer[0])

    async def _work(self, request: RunRequest) -> tuple[events.RunStatus, str]:
        if request.kind == "runFile" and request.target is not None:
            return await self._run_file(request.target, request.args)
        model = await self._services.open_model()
        if request.kind in REWRITES and request.target is not None:
            await self._rewrite(model, request, request.target)
            return "completed", ""
        return await self._loop(model, request)

    async def _run_file(self, target: Target, args: tuple[str, ...]) -> tuple[events.RunStatus, str]:
        """The user's own command: asked about only where it is not isolated."""
        words = command_for(target.file, args, self._view)
        await self._bench.open()
        shell = self._bench.shell
        if shell is None:
            return "failed", self._bench.no_shell
        isolation = shell.isolation
        if not isolation.complete and not await self._confirmed(shlex.join(words), isolation.level):
            return "completed", self._voice.text("file_run.declined")
        folder = self._view.roots.root_of(target.file.path) or self._view.roots.folders[0]
        finished = (await run_file(shell, words, folder, self._voice.emit)).finished
        name = self._view.roots.relative(target.file.path)
        if finished.ending != "exited":
            return "stopped", self._voice.text("file_run.stopped", name=name, ending=finished.ending)
        seconds = f"{finished.seconds:.1f}"
        return "completed", self._voice.text("file_run.done", name=name, code=finished.exit_code, seconds=seconds)

    async def _confirmed(self, command: str, level: str) -> bool:
        deny, once = self._voice.text("choice.deny"), self._voice.text("choice.once")
        title = self._voice.text("file_run.ask", command=escape_invisible(command), level=level)
        return await self._voice.ask(Question("approval", title, (deny, once), danger=True)) == (once,)

    async def _rewrite(self, model: Model, request: RunRequest, target: Target) -> None:
        file = target.file
        settings = self._services.settings().model
        name = self._view.roots.relative(file.path)
        wanted = RewriteRequest(name, file.text, target.start, target.end, request.instruction, request.diagnostics)
        window = _window(model)
        limits = RewriteLimits(window, _reply_tokens(settings.max_tokens, window), settings.temperature)
        system = system_prompt("rewrite", self._services.environment())
        new_text = await rewrite(model, wanted, system, limits, self._voice.emit)
        if new_text != file.text:
            self.proposal.staging.write({file.path: new_text}, read=[file])

    async def _loop(self, model: Model, request: RunRequest) -> tuple[events.RunStatus, str]:
        kind = "ask" if request.kind in ANSWERS else "system"
        await self._bench.open()
        commands = commands_line(self._bench.isolation, self._bench.no_shell)
        environment = replace(self._services.environment(), commands=commands)
        prompt = system_prompt(kind, environment, self._view, _window(model))
        system = Message("system", prompt)
        history = History([system, *self.session.messages], self._remember)
        history.append(Message("user", await asyncio.to_thread(self._task, request, model)))
        loop = AgentLoop(
            model,
            self._executor(self._mode(request), model),
            history,
            lambda: self._tools(request, model),
            self._voice.emit,
            self._limits(model),
            self.proposal.apply_live,
        )
        try:
            result = await loop.run()
        finally:
            self._bench.close()
        if result.ending == "answered":
            return "completed", result.text
        key = "run.limit" if result.ending == "limit" else "run.anomaly"
        return "stopped", self._voice.text(key, count=self._services.settings().agent.max_iterations)

    def _task(self, request: RunRequest, model: Model) -> str:
        """The first message: the request, what is selected, and what the task needs to begin."""
        target, selection, skip = request.target, None, []
        if target is not None:
            selection, skip = self._selection(target), [target.file.path]
        task = task_message(request.instruction, selection, request.diagnostics)
        context = starting_context(self._view, request.task, _window(model), skip)
        return f"{context}\n\n{task}" if context else task

    def _selection(self, target: Target) -> Selection:
        whole = target.file.text
        lines = LineIndex.of(whole)
        first, last = lines.line_at(target.start) + 1, lines.line_at(max(target.start, target.end - 1)) + 1
        name = self._view.roots.relative(target.file.path)
        return Selection(name, first, last, whole[target.start : target.end])

    def _tools(self, request: RunRequest, model: Model) -> tuple[ToolSpec, ...]:
        """What the model is offered; a small model explains what it has in front of it, without tools."""
        small = _window(model) <= SMALL_WINDOW
        if small and request.kind == "explain":
            return ()
        effects = effects_of(self._mode(request)())
        specs = self._services.registry.specs(effects, GROUPS)
        if small:
            return tuple(spec for spec in specs if spec["name"] in SMALL_SET)
        return specs

    def _mode(self, request: RunRequest) -> Callable[[], Mode]:
        """The mode at any moment; a run that answers only reads, whatever its model tries."""
        return (lambda: "readOnly") if request.kind in ANSWERS else self._services.mode

    def _executor(self, mode: Callable[[], Mode], model: Model) -> ToolExecutor:
        return ToolExecutor(
            self._services.registry,
            self._bench.context(model, _reply_tokens(self._services.settings().model.max_tokens, _window(model))),
            mode,
            self.session.approvals,
            self._services.language(),
        )

    def _limits(self, model: Model) -> LoopLimits:
        settings = self._services.settings()
        window = _window(model)
        return LoopLimits(
            settings.agent.max_iterations,
            settings.context.max_messages,
            window,
            _reply_tokens(settings.model.max_tokens, window),
            settings.model.temperature,
        )

    def _tell_decision(self, status: events.RunStatus) -> None:
        """What the user decided is part of the conversation, unless all went as the model meant it."""
        rejected = "The user discarded your changes; the files are as they were before."
        told = rejected if status == "rejected" else self.proposal.note()
        if told and self.record.messages:
            self._remember(note(told))

    def _finish(self, status: events.RunStatus, summary: str, error: str | None) -> None:
        self.record.status = status
        self.session.join(self.record)
        files = tuple(path for changeset in self.record.applied for path in changeset.paths)
        self._voice.emit(
            events.RunCompleted(
                status=status,
                summary=summary,
                error=error,
                outcome=self.proposal.outcome,
                files_changed=tuple(dict.fromkeys(files)),
            )
        )

    def _remember(self, message: Message) -> None:
        self.record.messages.append(message)
        self._voice.emit(events.MessageAdded(message=message_to_dict(message)))


def _window(model: Model) -> int:
    return model.info.context_window or DEFAULT_WINDOW


def _reply_tokens(setting: int | str, window: int) -> int:
    """The most tokens of a reply; never more than half the window, or nothing could be asked."""
    return min(setting, window // 2) if isinstance(setting, int) else max(512, min(4096, window // 4))
