"""The tool `run_cmd`: shell commands in the shadow workspace, whose written files become staged changes.

Output that is too long for a result is stored, masked piece by piece, so that the model can read on.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.records.stream import StreamSanitizer
from codeagent_lsp.shadow.shell import Command, CommandResult, OnOutput, Shell, Stream
from codeagent_lsp.system import bash
from codeagent_lsp.tools.commands.background_tools import CommandLine, in_background
from codeagent_lsp.tools.commands.foreign_commands import RUN_CMD
from codeagent_lsp.tools.context import TaskWords, ToolContext
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.testing.projects import own_environment
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.tools.variables.variable_tools import values_for
from codeagent_lsp.tools.variables.variables import MaskedStream, Variables
from codeagent_lsp.workspace.files.paths import Roots

MAX_NAMED = 20

_STOPPED = {
    "timeout": "stopped at its time limit",
    "output": "stopped: too much output",
    "memory": "stopped: too much memory",
    "processes": "stopped: too many processes",
    "disk": "stopped: it filled the disk",
}

MASKED_PIECE = 256 * 1024


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
    """The tool `run_cmd`. With `apart` its data has each stream by itself, and the order of both in its text is
    approximate.
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
        """Return the output, how the command ended, and what became of the files that it wrote."""
        shell = shell_of(context)
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
            whole=True,
            keywords=(context.get(TaskWords) or TaskWords()).words,
        )
        if arguments.background:
            return await in_background(command, arguments.ready, context)
        result = await _run(shell, command, context)
        text = told(result, context.view.roots) + await _kept(result, context)
        done = result.finished.exit_code == 0 and result.finished.ending not in _STOPPED
        return ToolOutput(text, result, failed="" if done else _ending(result))


def shell_of(context: ToolContext) -> Shell:
    """Return the shell of this run. ToolFailed if there is none."""
    if context.shell is None:
        raise ToolFailed(context.no_shell, ErrorCode.EXECUTION_ERROR)
    return context.shell


def folder_of(roots: Roots, path: str | None) -> str:
    """Return the folder in which a command runs: `path`, or the first workspace folder. ToolRetry
    if it is no folder.
    """
    if path is None:
        if not roots.folders:
            raise ToolFailed("No folder is open, so there is nowhere to run a command.")
        return roots.folders[0]
    folder = roots.resolve(path)
    if roots.kind(folder) != "folder":
        raise ToolRetry(f"{path} is not a folder.")
    return folder


def told(result: CommandResult, roots: Roots) -> str:
    """Return the text for the model: the output, the exit code, the written files."""
    finished = result.finished
    parts = [finished.output.rstrip("\n")] if finished.output.strip() else ["(no output)"]
    parts.append(f"[{_ending(result)}, {finished.seconds:.1f} s{_where(result)}]")
    if result.staged:
        parts.append(f"Staged from what it wrote: {_names(map(roots.relative, result.staged))}")
    if result.left_out:
        parts.extend(f"Not staged: {roots.relative(path)} ({why})" for path, why in result.left_out[:MAX_NAMED])
        more = len(result.left_out) - MAX_NAMED
        parts.extend([f"(and {more} more)"] if more > 0 else [])
    return "\n".join(parts)


def _ending(result: CommandResult) -> str:
    finished = result.finished
    return _STOPPED.get(finished.ending, f"exit code {finished.exit_code}")


async def _run(shell: Shell, command: Command, context: ToolContext) -> CommandResult:
    """Run a command and return its result; its output is masked if there are values to mask."""
    variables = context.get(Variables)
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


async def _kept(result: CommandResult, context: ToolContext) -> str:
    """Return a line for the model that names the stored complete output; '' if it was short."""
    if result.finished.whole is None:
        return ""
    name = await keep_whole(result.finished.whole, context)
    return f"\nAll {result.finished.size:,} bytes of output: read_file {name}" if name else ""


def _where(result: CommandResult) -> str:
    return "" if result.isolation.level == "overlay" else f", isolation: {result.isolation.level}"


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(listed[:MAX_NAMED])
    return f"{shown} and {len(listed) - MAX_NAMED} more" if len(listed) > MAX_NAMED else shown


async def keep_whole(file: str, context: ToolContext) -> str:
    """Store the raw output in `file`, masked, and return its name for the model; '' if it cannot be stored.

    Only one piece at a time is in memory. Cancelling takes effect after the current piece.
    """
    raw = Path(file)
    clean = raw.with_name(f"{raw.name}.masked")
    try:
        outputs = context.get(OutputStore)
        if outputs is None:
            return ""
        await _masked(raw, clean, context)
        return await asyncio.to_thread(outputs.adopt, str(clean))
    except OSError:  # a full disk takes the rest, not the result
        return ""
    finally:
        _remove(raw, clean)


async def _masked(raw: Path, clean: Path, context: ToolContext) -> None:
    """Write the contents of `raw`, with secrets masked, to the new file `clean`."""
    masks = _OutputMasks(context)
    with raw.open("rb") as source, os.fdopen(os.open(clean, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as into:
        while await asyncio.to_thread(_mask_piece, source, into, masks):
            pass


def _remove(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


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
