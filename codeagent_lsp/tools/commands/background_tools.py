"""The tools `run_beside`, `command_output` and `stop_command`, and `run_cmd` for what runs in the background.

Not here: the running commands (`background.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import NotAccepted, ToolRetry
from codeagent_lsp.shadow.shell import Command
from codeagent_lsp.tools.commands.background import MOST_SECONDS, BackgroundCommands, Heard
from codeagent_lsp.tools.commands.foreign_commands import COMMAND_OUTPUT, STOP_COMMAND
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolGroups, ToolTraits

READY_SECONDS = 30.0
START_SECONDS = 1.0
GROUP = "background"

MOST_NAMES = 20
_LIMITS: Mapping[str, str] = {
    "timeout": "was stopped at its time limit",
    "output": "was stopped, as it printed too much",
    "memory": "was stopped, as it needed too much memory",
    "processes": "was stopped, as it had too many processes",
    "disk": "was stopped, as it wrote too much to the disk",
}
BESIDE = (
    "run_beside runs commands where its files and ports are, command_output reads on, stop_command ends it, each with "
    "the id {name}."
)
_NONE = "Commands cannot run in the background here."


def _without_nul(command: str) -> str:
    """Return the command. NotAccepted for one that no shell can be given."""
    if "\0" in command:
        raise NotAccepted("a command cannot hold a NUL character")
    return command


CommandLine = Annotated[str, Field(min_length=1, max_length=100_000), AfterValidator(_without_nul)]
"""A command for the shell."""


class CommandOutputParameters(Parameters):
    """The command, by its id, and how long to wait for output, in seconds."""

    id: str
    wait: float = Field(5.0, ge=0, le=60)


class RunBesideParameters(Parameters):
    """A command, and the id of one in the background, in whose place it runs; `timeout` is in seconds."""

    command: CommandLine
    id: str
    timeout: float = Field(60.0, gt=0, le=600)
    allow_network: bool = False


class StopCommandParameters(Parameters):
    """The command, by its id."""

    id: str


class CommandOutput(Tool[CommandOutputParameters]):
    """The tool `command_output`."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "command_output",
        "What a background command printed since you asked last.",
        "read",
        GROUP,
        timeout=None,
        result="printed",
    )
    parameters = CommandOutputParameters
    example: ClassVar[Example] = {"id": "bg1"}
    forms: ClassVar[CallForms] = COMMAND_OUTPUT

    async def run(self, arguments: CommandOutputParameters, context: ToolContext) -> ToolOutput:
        """Return the output, and whether it still runs."""
        heard = await context.need(BackgroundCommands, _NONE).output(arguments.id, arguments.wait)
        return _output(heard, context)


class RunBeside(Tool[RunBesideParameters]):
    """The tool `run_beside`."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "run_beside",
        "Run a bash command in the place of a background command, where its files are and its ports can be reached.",
        "run",
        GROUP,
        timeout=None,
        command_parameter="command",
        result="printed",
        hooked_as=("run_cmd", "Bash"),
    )
    parameters = RunBesideParameters
    example: ClassVar[Example] = {"id": "bg1", "command": "curl -s http://127.0.0.1:8000/"}

    async def run(self, arguments: RunBesideParameters, context: ToolContext) -> ToolOutput:
        """Return its output and exit code. ToolRetry if that place has the network and the call does not ask for it."""
        commands = context.need(BackgroundCommands, _NONE)
        if commands.network(arguments.id) and not arguments.allow_network:
            raise ToolRetry(f"{arguments.id} can use the network: say allow_network, so that the user is asked.")
        text, code = await commands.beside(arguments.id, arguments.command, arguments.timeout)
        shown = text.rstrip("\n") or "(no output)"
        return ToolOutput(f"{shown}\n[exit code {code}, beside {arguments.id}]", failed=_failed(code))


class StopCommand(Tool[StopCommandParameters]):
    """The tool `stop_command`."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "stop_command",
        "End a background command. What it wrote becomes staged changes.",
        "read",
        GROUP,
        timeout=None,
        result="printed",
    )
    parameters = StopCommandParameters
    example: ClassVar[Example] = {"id": "bg1"}
    forms: ClassVar[CallForms] = STOP_COMMAND

    async def run(self, arguments: StopCommandParameters, context: ToolContext) -> ToolOutput:
        """Return its last output, and what became of the files that it wrote."""
        return _output(await context.need(BackgroundCommands, _NONE).stop(arguments.id), context)


async def in_background(command: Command, ready: str, context: ToolContext) -> ToolOutput:
    """Start a command in the background; from now on the model is offered the tools for it."""
    commands = context.need(BackgroundCommands, _NONE)
    started = replace(command, seconds=command.seconds or MOST_SECONDS, whole=False)
    heard = await commands.start(started, ready, READY_SECONDS if ready else START_SECONDS)
    if (groups := context.get(ToolGroups)) is not None:
        groups.enable(GROUP)
    output = _output(heard, context, "" if heard.ready else ready)
    return replace(output, text=f"{output.text}\n{BESIDE.format(name=heard.name)}") if heard.runs else output


def _output(heard: Heard, context: ToolContext, missing: str = "") -> ToolOutput:
    """Return what was heard; `missing` is what was waited for and has not been printed."""
    roots = context.view.roots
    parts = [heard.text or "(no output)", f"[{heard.name} {_state(heard, missing)}]"]
    if heard.result is not None:
        names = ", ".join(map(roots.relative, heard.result.staged[:MOST_NAMES]))
        parts.extend([f"Staged from what it wrote: {names}"] if names else [])
        left_out = heard.result.left_out[:MOST_NAMES]
        parts.extend(f"Not staged: {roots.relative(path)} ({why})" for path, why in left_out)
    return ToolOutput("\n".join(parts), failed=_failed(heard.code or 0))


def _state(heard: Heard, missing: str) -> str:
    if heard.runs:
        return f"runs in the background, and has not printed {missing!r} yet" if missing else "runs in the background"
    if heard.code is not None:
        return f"has ended, exit code {heard.code}"
    ending = "exited" if heard.result is None else heard.result.finished.ending
    return _LIMITS.get(ending, "was stopped")


def _failed(code: int) -> str:
    return f"exit code {code}" if code else ""
