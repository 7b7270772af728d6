"""One sandbox: a workspace, the changes over it, and the tools on both. It ends with its process.

It never changes the files on disk: tools stage, and commands run in a shadow that lets nothing out, or not at all.
There is no user to ask, so whatever needs approval is refused. Not here: the names (`table.py`), the protocol
(`serving.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.call_forms import translate_arguments
from codeagent_lsp.config import Settings
from codeagent_lsp.environments.environment import Screens
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.errors import AgentError, ErrorCode, PermissionDenied, SettingError, ToolFailed
from codeagent_lsp.index.host import IndexHost
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.mcp_server.progress import SILENCE, Listener
from codeagent_lsp.mcp_server.table import BY_NAME, tools
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.session.run_index import RunIndex
from codeagent_lsp.session.screens import ScreenPorts, SessionScreens
from codeagent_lsp.shadow.shell import CommandResult, Shell, approve_none
from codeagent_lsp.state import state_root, workspace_state
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.composition import plain
from codeagent_lsp.tools.context import Complete, Reader, tool_context
from codeagent_lsp.tools.executor import ToolExecutor, understood
from codeagent_lsp.tools.outputs import truncate
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.todos.todo_list import TodoList
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, StagedFile, own_file
from codeagent_lsp.workspace.files.paths import Roots

SESSION = "sandbox"
ENDED = "The sandbox has ended."
ASSUMED_WINDOW = 128_000
"""Tokens that the client's model can read: such clients are agents, whose own models are not small."""
MOST_DATA = 200_000
"""Most characters of a result's data."""
MAX_CALLS = 32
"""Most concurrent calls; more are refused, so that none waits without end."""

_CODES: Mapping[str, ErrorCode] = {
    **dict.fromkeys(("INVALID_PARAM", "NOT_FOUND", "EDIT_REFUSED", "PARSE_ERROR"), ErrorCode.PARAMETER_ERROR),
    **dict.fromkeys(("PERMISSION_DENIED", "TOOL_DISABLED"), ErrorCode.PERMISSION_ERROR),
    **{code.value: code for code in (ErrorCode.CONNECTION_ERROR, ErrorCode.TIMEOUT_ERROR, ErrorCode.PARAMETER_ERROR)},
    **{code.value: code for code in (ErrorCode.SANDBOX_NOT_FOUND, ErrorCode.SANDBOX_TERMINATED)},
    "TIMEOUT": ErrorCode.TIMEOUT_ERROR,
    "NETWORK_ERROR": ErrorCode.CONNECTION_ERROR,
}
_OPEN = (
    "Commands run only where nothing they do can get out, and this machine cannot promise that "
    "(isolation level {level}). {reason} The other tools work."
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call: the text, data for programs (None: none), and the error code of a failure (None for a
    success).
    """

    text: str
    data: Any = None
    code: ErrorCode | None = None

    def error(self) -> dict[str, Any] | None:
        """Return the failure as an object for JSON with `code`, `type`, `retry` and `message`; None for a success."""
        if self.code is None:
            return None
        advice = self.code.advice
        return {"code": self.code.value, "type": advice.type.value, "retry": advice.retry, "message": self.text}


class Sandbox:
    """The sandbox over `folder` (absolute, real), shared by all clients of a process, until `close`. Files on disk
    never change; changes are kept in memory.
    """

    def __init__(self, folder: str, settings: Settings) -> None:
        self._folder = Path(folder)
        self._settings = settings
        state = workspace_state([folder])
        late = _Late()
        self._view = FileView(Roots([folder]), NoBuffers(), late)
        self._staging = late.staging = Staging(lambda path: own_file(self._view, path))
        self._registry = ToolRegistry(tools())
        self._environments = Environments(lambda: settings.shell, state_root(), state / "outputs")
        self._screens = SessionScreens(self._environments)
        self._index = IndexHost(lambda: [folder], lambda: settings.index, lambda status: None, _nobody_watches)
        self._approvals, self._todos = Approvals(), TodoList()
        self._artifacts = ArtifactStore(state / "artifacts" / SESSION)
        self._turn = asyncio.Lock()
        self._running = 0
        self._closed = False

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        complete: Complete | None = None,
        listener: Listener = SILENCE,
    ) -> Answer:
        """Run a tool of the sandbox by its name, which must be known; at most 32 calls run at once. Failures are
        answers with a code: only cancellation is raised. `complete` asks the client's model, `listener` receives output
        and status lines.
        """
        # Before it counts as running, so that refusals take no place.
        problem = self._unfit(name, arguments)
        if problem is not None:
            return problem
        self._running += 1
        try:
            return await self._call(ToolCall(name, {**arguments, **BY_NAME[name].fixed}), complete, listener)
        finally:
            self._running -= 1

    def changes(self) -> str:
        """Return all changes over the disk as a unified diff, with paths relative to the folder; '' if
        there are none.
        """
        return self._staging.changeset.diff(self._view.roots.relative)

    async def close(self) -> None:
        """Refuse further calls, stop all commands and screens and wait for their end; changes are lost."""
        self._closed = True
        await asyncio.gather(self._screens.close(), self._environments.close(), self._index.close())

    def _unfit(self, name: str, arguments: Mapping[str, Any]) -> Answer | None:
        """Return why a call cannot run at all; None if it can."""
        entry = BY_NAME[name]
        if self._closed:
            return Answer(ENDED, code=ErrorCode.SANDBOX_TERMINATED)
        if not self._folder.is_dir():
            return Answer(f"The folder {self._folder} is gone.", code=ErrorCode.SANDBOX_NOT_FOUND)
        if self._running >= MAX_CALLS:
            return Answer(f"{MAX_CALLS} calls are running. Try again later.", code=ErrorCode.TIMEOUT_ERROR)
        try:
            hidden = [key for key in translate_arguments(arguments, entry.tool.forms) if entry.hides(key)]
            if hidden:
                return Answer(f"{name} has no parameter {hidden[0]} here.", code=ErrorCode.VALIDATION_ERROR)
            understood(ToolCall(name, {**arguments, **entry.fixed}), self._registry.get(name))
        except AgentError as error:
            return Answer(str(error), code=ErrorCode.VALIDATION_ERROR)
        return None

    async def _call(self, call: ToolCall, complete: Complete | None, listener: Listener) -> Answer:
        if BY_NAME[call.name].tool.traits.effect == "read":
            return answer_of(await (await self._executor(complete, listener)).execute(call))
        async with self._turn:  # two edits at once could lose one
            # It may have ended while this call waited for its turn.
            if self._closed:
                return Answer(ENDED, code=ErrorCode.SANDBOX_TERMINATED)
            return answer_of(await (await self._executor(complete, listener)).execute(call))

    async def _executor(self, complete: Complete | None, listener: Listener) -> ToolExecutor:
        shell, no_shell = await self._shell()
        context = tool_context(
            self._view,
            self._staging,
            self._settings,
            (TodoList, self._todos),
            (Complete, complete),
            (Reader, Reader(ASSUMED_WINDOW)),
            (ArtifactStore, self._artifacts),
            (Screens, self._screens.of(SESSION, ScreenPorts(self._view, self._staging, approve_none))),
            (CodeIndex, RunIndex(self._index, self._view, lambda: self._settings.permissions)),
            asker=_NobodyToAsk(),
            note=listener.note,
            output=listener.output,
            shell=shell,
            no_shell=no_shell,
        )
        # Never a mode that allows without asking: there is no user who chose it for the client.
        mode = self._settings.permissions.mode
        return ToolExecutor(
            self._registry, context, lambda: "readOnly" if mode == "readOnly" else "ask", self._approvals
        )

    async def _shell(self) -> tuple[Shell | None, str]:
        """Return the shell, or None with the reason if its isolation is not complete."""
        try:
            shell = await self._environments.shell(SESSION, self._view, self._staging, approve_none)
        except (ToolFailed, SettingError) as problem:
            return None, str(problem)
        isolation = shell.isolation
        if isolation.complete:
            return shell, ""
        return None, _OPEN.format(level=isolation.level, reason=isolation.reason)


def sandbox_settings(settings: Settings) -> Settings:
    """Return the user's settings restricted for a sandbox: no network, no allow rules, and approval for commands
    without full isolation, which nobody gives.
    """
    permissions = replace(settings.permissions, allow=())
    shell = replace(settings.shell, allow_network=False, confirm="unisolated")
    return replace(settings, permissions=permissions, shell=shell)


def answer_of(result: ToolResult) -> Answer:
    """Return the answer for a tool's result, with a code if the call failed, or its command was stopped at its time
    limit. The data of a command has how it ended in flat fields; data that is too long is left out otherwise.
    """
    if result.error is not None:
        return Answer(result.text, code=_CODES.get(result.error.code, ErrorCode.EXECUTION_ERROR))
    if not isinstance(result.data, CommandResult):
        return Answer(result.text, _small(plain(result.data)))
    late = result.data.finished.ending == "timeout"
    return Answer(result.text, _result_data(result.data), ErrorCode.TIMEOUT_ERROR if late else None)


def _small(value: Any) -> Any:
    """Return the JSON value; None if it is too long."""
    return None if value is None or len(json.dumps(value)) > MOST_DATA else value


def _result_data(result: CommandResult) -> dict[str, Any]:
    """Return the data of a command: its end in flat fields, beside all else unless that is too long."""
    finished = result.finished
    stdout = finished.streams.get("stdout", finished.output)
    end = {
        "exit_code": finished.exit_code,
        "stdout": truncate(stdout, MOST_DATA // 4),
        "stderr": truncate(finished.streams.get("stderr", ""), MOST_DATA // 4),
        "execution_time_ms": round(finished.seconds * 1000),
    }
    return _small(plain(replace(result, finished=replace(finished, streams={}))) | end) or end


async def _nobody_watches() -> bool:
    return False


class _NobodyToAsk:
    async def ask(self, question: Question) -> tuple[str, ...] | None:
        reason = question.detail.rpartition("\n\n")[2] or question.title
        raise PermissionDenied(f"The sandbox does not allow this, and has nobody to ask: {reason}")


class _Late:
    """Forwards to a staging that is set later, since the view and the staging need each other."""

    staging: Staging

    def lookup(self, path: str) -> StagedFile | None:
        return self.staging.lookup(path)

    def paths(self) -> Iterable[str]:
        return self.staging.paths()
