"""The tools that run commands: `run_cmd` in the shadow workspace, whose written files become staged changes, and
`run_beside`, `command_output` and `stop_command` for what runs in the background.

Output that is too long for a result is stored, masked piece by piece, so that the model can read on. Not here: the
commands that run (`background.py`).
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar

from pydantic import AfterValidator, Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import NotAccepted, ToolFailed, ToolRetry
from codeagent_lsp.records.masking import StreamSanitizer
from codeagent_lsp.shadow.shell import Command, CommandResult, OnOutput, Shell, Stream
from codeagent_lsp.system import bash, open_new
from codeagent_lsp.tools.commands.background import MOST_SECONDS, BackgroundCommands, Heard
from codeagent_lsp.tools.commands.foreign_commands import COMMAND_OUTPUT, RUN_CMD, STOP_COMMAND
from codeagent_lsp.tools.context import TaskWords, ToolContext
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.testing.projects import own_environment
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolGroups, ToolTraits
from codeagent_lsp.tools.variables.variable_tools import values_for
from codeagent_lsp.tools.variables.variables import MaskedStream, Variables
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.excerpts import join_names
from codeagent_lsp.workspace.text.visible import code_point_notation, control_characters

READY_SECONDS = 30.0
START_SECONDS = 1.0
GROUP = "background"
BESIDE = (
    "run_beside runs commands where its files and ports are, command_output reads on, stop_command ends it, each with "
    "the id {name}."
)
_NONE = "Commands cannot run in the background here."
MAX_NAMED = 20
_LIMITS: Mapping[str, str] = {
    "timeout": "was stopped at its time limit",
    "output": "was stopped, as it printed too much",
    "memory": "was stopped, as it needed too much memory",
    "processes": "was stopped, as it had too many processes",
    "disk": "was stopped, as it wrote too much to the disk",
}
_STOPPED = {
    "timeout": "stopped at its time limit",
    "output": "stopped: too much output",
    "memory": "stopped: too much memory",
    "processes": "stopped: too many processes",
    "disk": "stopped: it filled the disk",
}

MASKED_PIECE = 256 * 1024


def _without_controls(command: str) -> str:
    """Return the command. NotAccepted for one with a character that no shell can be given, or that does something to
    the terminal in which the command is read.
    """
    if found := control_characters(command):
        named = ", ".join(map(code_point_notation, found[:5]))
        raise NotAccepted(f"a command cannot hold control characters ({named}); write them as escapes: $'\\x1b'")
    return command


CommandLine = Annotated[str, Field(min_length=1, max_length=100_000), AfterValidator(_without_controls)]
"""A command for the shell."""


class RunCmdParameters(Parameters):
    """Parameters of `run_cmd`. `timeout` is in seconds, `working_dir` relative to the workspace, `env_vars` are names
    of the user's variables. With `background` it returns when `ready` is printed, and the command runs on.
    """

    command: CommandLine
    timeout: float | None = Field(default=None, gt=0, le=600, description="Seconds; default 300")
    working_dir: str | None = None
    allow_network: bool = Field(False, description="Needs the user's consent")
    env_vars: list[str] = Field(default_factory=list, max_length=20, description="Names from request_env_var")
    background: bool = Field(False, description="It runs on, like a server")
    ready: str = Field("", max_length=1000, description="With background: what it prints then")


class RunCmd(Tool[RunCmdParameters]):
    """The tool `run_cmd`: runs a shell command in a private copy of the workspace and stages the text files that it
    writes. With `apart` its data has each stream by itself, and the order of both in its text is approximate.
    """

    apart: ClassVar[bool] = False
    traits = ToolTraits(
        "run_cmd",
        f"Run a {'bash' if bash() else 'Windows cmd'} command on the workspace as it would be with the unsaved "
        "and staged changes. "
        "Text files it writes become staged changes; the real files stay as they are.",
        "run",
        timeout=None,
        command_parameter="command",
        result="printed",
        hook_name="Bash",
    )
    parameters = RunCmdParameters
    example: ClassVar[Example] = {"command": "python -m compileall -q src", "timeout": 60}
    forms: ClassVar[CallForms] = RUN_CMD
    output = CommandResult

    async def run(self, arguments: RunCmdParameters, context: ToolContext) -> ToolOutput:
        """Run the command and wait for its end; the text is its output, exit code and written files. A command that
        fails is no error of the tool: `failed` says how. With `background` it is `in_background`. Cancelling ends it.
        ToolFailed if commands cannot run here.
        """
        shell = context.open_shell()
        network = arguments.allow_network or context.settings.shell.allow_network
        folder = folder_of(context.view.roots, arguments.working_dir)
        own = await asyncio.to_thread(own_environment, context.view, folder, shell.isolation)
        command = Command(
            arguments.command,
            folder,
            arguments.timeout,
            network=network,
            environment={**own, **await values_for(arguments.env_vars, context, network=network)},
            apart=self.apart,
            # The model gets an excerpt; all of it is kept for it to read on.
            whole=True,
            keywords=(context.get(TaskWords) or TaskWords()).words,
        )
        if arguments.background:
            return await in_background(command, arguments.ready, context)
        # The real time limits are the shell's: the tool's own one would not end what the command has started.
        result = await _run(shell, command, context)
        text = describe_result(result, context.view.roots) + await _kept_line(result, context)
        done = result.finished.exit_code == 0 and result.finished.ending not in _STOPPED
        return ToolOutput(text, result, failed="" if done else _told_ending(result, context))


class CommandOutputParameters(Parameters):
    """Parameters of `command_output`: the command, by its id, and how long to wait for output, from 0 to 60 seconds."""

    id: str
    wait: float = Field(5.0, ge=0, le=60)


class CommandOutput(Tool[CommandOutputParameters]):
    """The tool `command_output`: each call returns what a background command printed since the last one."""

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
        """Return the new output, and whether the command still runs. ToolRetry if there is none with this id."""
        heard = await context.need(BackgroundCommands, _NONE).output(arguments.id, arguments.wait)
        return _output(heard, context)


class RunBesideParameters(Parameters):
    """Parameters of `run_beside`: a command, and the id of the background command in whose private view it runs;
    `timeout` is in seconds.
    """

    command: CommandLine
    id: str
    timeout: float = Field(60.0, gt=0, le=600)
    allow_network: bool = False


class RunBeside(Tool[RunBesideParameters]):
    """The tool `run_beside`: a command in the private view of a background command, while that runs."""

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
        """Wait for its end and return its output, masked, and exit code; another code than 0 is no error of the tool.
        ToolRetry for an unknown id, or if that place has the network and the call does not ask for it; ToolFailed if it
        takes too long.
        """
        commands = context.need(BackgroundCommands, _NONE)
        if commands.network(arguments.id) and not arguments.allow_network:
            raise ToolRetry(f"{arguments.id} can use the network: say allow_network, so that the user is asked.")
        text, code = await commands.beside(arguments.id, arguments.command, arguments.timeout)
        shown = text.rstrip("\n") or "(no output)"
        return ToolOutput(f"{shown}\n[exit code {code}, beside {arguments.id}]", failed=_exit_words(code, context))


class StopCommandParameters(Parameters):
    """Parameters of `stop_command`: the command, by its id."""

    id: str


class StopCommand(Tool[StopCommandParameters]):
    """The tool `stop_command`: ends a background command and stages the text files that it wrote."""

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
        """Return its last output, and what became of the files that it wrote. ToolRetry if there is none with this
        id.
        """
        return _output(await context.need(BackgroundCommands, _NONE).stop(arguments.id), context)


async def in_background(command: Command, ready: str, context: ToolContext) -> ToolOutput:
    """Start a command in the background and return what it prints first, within 1 s or, with `ready`, 30 s. ToolFailed
    if it cannot start. From now on the model is offered the tools for it.
    """
    commands = context.need(BackgroundCommands, _NONE)
    # A command in the background is read as it goes on; nothing waits for its end to keep the whole.
    started = replace(command, seconds=command.seconds or MOST_SECONDS, whole=False)
    heard = await commands.start(started, ready, READY_SECONDS if ready else START_SECONDS)
    if (groups := context.get(ToolGroups)) is not None:
        groups.enable(GROUP)
    output = _output(heard, context, "" if heard.ready else ready)
    return replace(output, text=f"{output.text}\n{BESIDE.format(name=heard.name)}") if heard.runs else output


def folder_of(roots: Roots, path: str | None) -> str:
    """Return the absolute path of the folder in which a command runs: `path`, or the first workspace folder. ToolRetry
    if it is no folder, ToolFailed if no folder is open, PathRefused for one outside of the workspace.
    """
    if path is None:
        if not roots.folders:
            raise ToolFailed("No folder is open, so there is nowhere to run a command.")
        return roots.folders[0]
    folder = roots.resolve(path)
    if roots.kind(folder) != "folder":
        raise ToolRetry(f"{path} is not a folder.")
    return folder


def describe_result(result: CommandResult, roots: Roots) -> str:
    """Return the text for the model: the output (`(no output)` for none), how the command ended and in how many
    seconds, and the written files, with relative paths.
    """
    finished = result.finished
    parts = [finished.output.rstrip("\n")] if finished.output.strip() else ["(no output)"]
    parts.append(f"[{_ending(result)}, {finished.seconds:.1f} s{_where(result)}]")
    return "\n".join((*parts, *_written_lines(result, roots)))


async def keep_whole(file: str, context: ToolContext) -> str:
    """Store the raw output in `file`, masked, and return its name for the model; '' if it cannot be stored.

    Only one piece at a time is in memory. Cancelling takes effect after the current piece.
    """
    raw = Path(file)
    # Masked before the model can name it: what it reads later is not looked at again.
    clean = raw.with_name(f"{raw.name}.masked")
    try:
        outputs = context.get(OutputStore)
        if outputs is None:
            return ""
        await _mask_file(raw, clean, context)
        return await asyncio.to_thread(outputs.adopt, str(clean))
    except OSError:  # a full disk takes the rest, not the result
        return ""
    finally:
        for path in (raw, clean):
            path.unlink(missing_ok=True)


def _output(heard: Heard, context: ToolContext, missing: str = "") -> ToolOutput:
    """Return what was heard; `missing` is what was waited for and has not been printed."""
    parts = [heard.text or "(no output)", f"[{heard.name} {_state(heard, missing)}]"]
    parts += _written_lines(heard.result, context.view.roots) if heard.result is not None else []
    return ToolOutput("\n".join(parts), failed=_exit_words(heard.code or 0, context))


def _state(heard: Heard, missing: str) -> str:
    if heard.runs:
        return f"runs in the background, and has not printed {missing!r} yet" if missing else "runs in the background"
    if heard.code is not None:
        return f"has ended, exit code {heard.code}"
    ending = "exited" if heard.result is None else heard.result.finished.ending
    return _LIMITS.get(ending, "was stopped")


def _exit_words(code: int, context: ToolContext) -> str:
    """Return the exit code in the user's words; '' for success."""
    return context.words("ran.exit", code=code) if code else ""


def _written_lines(result: CommandResult, roots: Roots) -> list[str]:
    """Return lines that name the staged files of what a command wrote, and those that were left out."""
    names = [f"Staged from what it wrote: {join_names(map(roots.relative, result.staged), MAX_NAMED)}"]
    lines = names if result.staged else []
    lines += [f"Not staged: {roots.relative(path)} ({why})" for path, why in result.left_out[:MAX_NAMED]]
    more = len(result.left_out) - MAX_NAMED
    return [*lines, f"(and {more} more)"] if more > 0 else lines


def _ending(result: CommandResult) -> str:
    finished = result.finished
    return _STOPPED.get(finished.ending, f"exit code {finished.exit_code}")


def _told_ending(result: CommandResult, context: ToolContext) -> str:
    """Return how a command ended in the user's words."""
    stopped = result.finished.ending in _STOPPED
    return _ending(result) if stopped else _exit_words(result.finished.exit_code or 0, context)


async def _run(shell: Shell, command: Command, context: ToolContext) -> CommandResult:
    """Run a command and return its result; its output is masked if there are values to mask."""
    variables = context.get(Variables)
    # Nearly always: without values to mask, nothing has to be held back.
    if variables is None or not variables.longest:
        return await shell.run(command, context.output)
    streams: dict[Stream, MaskedStream] = {"stdout": MaskedStream(variables), "stderr": MaskedStream(variables)}

    def masked(stream: Stream, text: str) -> None:
        _pass_on(context.output, stream, streams[stream].feed(text))

    try:
        result = await shell.run(command, masked)
    finally:
        for stream, held in streams.items():
            _pass_on(context.output, stream, held.close())
    finished = result.finished
    # Masked as a whole: the pieces that were shown before are not what is stored.
    texts = {stream: variables.masked(text) for stream, text in finished.streams.items()}
    return replace(result, finished=replace(finished, output=variables.masked(finished.output), streams=texts))


def _pass_on(output: OnOutput, stream: Stream, text: str) -> None:
    if text:
        output(stream, text)


async def _kept_line(result: CommandResult, context: ToolContext) -> str:
    """Return a line for the model that names the stored complete output; '' if it was short."""
    if result.finished.whole is None:
        return ""
    name = await keep_whole(result.finished.whole, context)
    return f"\nAll {result.finished.size:,} bytes of output: read_file {name}" if name else ""


def _where(result: CommandResult) -> str:
    return "" if result.isolation.level == "overlay" else f", isolation: {result.isolation.level}"


async def _mask_file(raw: Path, clean: Path, context: ToolContext) -> None:
    """Write the contents of `raw`, with secrets masked, to the new file `clean`."""
    masks = _OutputMasks(context)
    with raw.open("rb") as source, os.fdopen(open_new(clean), "wb") as into:
        while await asyncio.to_thread(_mask_piece, source, into, masks):
            pass


def _mask_piece(source: BinaryIO, into: BinaryIO, masks: _OutputMasks) -> bool:
    """Mask one piece and return whether more may follow."""
    data = source.read(MASKED_PIECE)
    into.write(masks.feed(data).encode("utf-8", "replace"))
    return bool(data)


class _OutputMasks:
    """Both masks of a run, for variables and for secrets, applied to bytes in pieces."""

    def __init__(self, context: ToolContext) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._values = MaskedStream(context.get(Variables) or Variables())
        self._secrets = StreamSanitizer(context.redaction.hide)

    def feed(self, data: bytes) -> str:
        """Take a piece, an empty one at the end, and return the masked text that is safe to write."""
        if data:
            # a character, a value or a secret may lie across two pieces: each step holds back what may still grow
            return self._secrets.feed(self._values.feed(self._decoder.decode(data)))
        rest = self._values.feed(self._decoder.decode(b"", final=True)) + self._values.close()
        return self._secrets.feed(rest) + self._secrets.close()
