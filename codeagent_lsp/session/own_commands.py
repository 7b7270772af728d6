"""Executes the runs that need no model, started by the user's own command: run a file, install a skill, trust what the
workspace brings.

Not here: runs with a model (`run.py`).
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Literal, cast

from codeagent_lsp import events
from codeagent_lsp.errors import PermissionDenied, UsageError
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.session.run_output import OutputStream
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.shadow.shell import Command, CommandResult, Shell, Stream
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.skills.skill_tools import SkillInstaller, SkillInstallerParameters
from codeagent_lsp.tools.skills.trust import ask_all, ask_one, named, said_of
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.files.paths import is_untitled
from codeagent_lsp.workspace.text.visible import escape_notation, one_line, shown_exactly

Ended = tuple[events.RunStatus, str]
"""The final status of a run, and a summary for the user."""
_PROGRAMS: dict[str, tuple[str, ...]] = {
    ".py": ("python3",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    # Without it npx would offer to download the package, and wait for an answer that nobody can give.
    ".ts": ("npx", "--no-install", "tsx"),
    ".sh": ("bash",),
    ".bash": ("bash",),
    ".go": ("go", "run"),
    ".rb": ("ruby",),
    ".php": ("php",),
    ".pl": ("perl",),
    ".lua": ("lua",),
    ".java": ("java",),
    ".r": ("Rscript",),
    ".jl": ("julia",),
}
_ENVIRONMENTS = (".venv/bin/python", "venv/bin/python")


async def run_own_file(parts: RunParts, target: Target, args: tuple[str, ...]) -> Ended:
    """Run a file of the workspace in the shadow, without a model, and wait for its end; return (status, summary) of the
    run: `completed` if it exited, with whatever code, `stopped` if it did not, `failed` without a shell. The user is
    asked only if the shadow does not isolate it. UsageError if it is not known how to run the file. `args` are its
    arguments.
    """
    view, output = parts.proposal.view, parts.output
    words = command_for(target.file, args, view)
    await parts.toolbox.open()
    shell = parts.toolbox.shell
    if shell is None:
        return "failed", parts.toolbox.no_shell
    isolation = shell.isolation
    if not isolation.complete and not await confirm_command(parts, shlex.join(words), isolation.level):
        return "completed", output.text("file_run.declined")
    folder = view.roots.root_of(target.file.path) or view.roots.folders[0]
    name = view.roots.relative(target.file.path)
    finished = (await run_file(shell, words, folder, name, output.emit)).finished
    if finished.ending != "exited":
        return "stopped", output.text("file_run.stopped", name=name, ending=finished.ending)
    return "completed", output.text(
        "file_run.done", name=name, code=finished.exit_code, seconds=f"{finished.seconds:.1f}"
    )


async def install_own_skill(parts: RunParts, request: RunRequest) -> Ended:
    """Install a skill, after the user has seen and confirmed it; return (status, summary) of the run. UsageError if the
    mode is `readOnly`, another AgentError if it fails.
    """
    if parts.services.user.mode() == "readOnly":
        raise UsageError("skills.read_only")
    installed = await install_skill(request, parts.toolbox.context())
    return "completed", parts.output.text("skills.declined") if installed is None else installed


async def trust_contents(parts: RunParts, request: RunRequest) -> Ended:
    """Ask the user about what the workspace brings, or one kind of it, or one thing by its name or path, also about
    what they have declined before; return (status, summary) of the run. The request's `args` are kind and name, each
    possibly missing. UsageError if there is none of that name.
    """
    trust, output = parts.services.knowledge.trust, parts.output
    wanted, name = (*request.args, "", "")[:2]
    brought = await asyncio.to_thread(parts.toolbox.brings)
    of_kind = [item for item in brought if wanted in ("", item.kind)]
    items = named(of_kind, name)
    if name and not items:
        known = ", ".join(item.name for item in of_kind) or output.text("trust.none")
        raise UsageError("trust.unknown", name=one_line(name, 80), names=one_line(known, 400))
    # The user's own command means that an earlier no is open again.
    trust.reconsider(items)
    open_ones = [item for item in items if not trust.covers(item.digest)]
    if len(open_ones) == 1 or (open_ones and await ask_all(trust, open_ones, output, output.text) == "singly"):
        for item in open_ones:
            await ask_one(trust, item, output, output.text, lasting=True)
    return "completed", said_of(trust, items, output.text) or output.text("trust.nothing")


async def stage_texts(parts: RunParts, request: RunRequest) -> Ended:
    """Stage the texts `request.rewritten`, made without a model, and return (status, summary) `completed`, ''; hooks
    and the user decide about them as about all changes.
    """
    parts.proposal.staging.write(
        {file.path: new for file, new in request.rewritten}, [file for file, _ in request.rewritten]
    )
    if await asyncio.to_thread(parts.services.knowledge.hooks.files, parts.proposal.view):
        await parts.toolbox.open()  # from now on the hooks judge what is to be proposed
    return "completed", ""


async def confirm_command(parts: RunParts, command: str, level: str) -> bool:
    """Ask whether a command may run although it is not isolated, and how little is (`level`); and wait; True only for a
    consent, which holds for this time alone.
    """
    output = parts.output
    deny, once = output.text("choice.deny"), output.text("choice.once")
    title = output.text("file_run.ask", command=shown_exactly(command, escape_notation), level=level)
    return await output.ask(Question("approval", title, (deny, once), danger=True)) == (once,)


# Runs one file of the user, as it is in the editor, and emits its output. No model is involved.


def command_for(file: FileText, args: Sequence[str], view: FileView) -> tuple[str, ...]:
    """Return the words of the command that runs `file` with `args`, in the project's virtual environment if there is
    one: by its `#!` line, else by its extension. UsageError if neither is known, or if the file has no path yet.
    """
    if is_untitled(file.path):
        raise UsageError("file_run.untitled")
    name = view.roots.relative(file.path)
    first = file.text.split("\n", 1)[0]
    if first.startswith("#!"):
        program = tuple(shlex.split(first[2:].strip()))
    else:
        program = _PROGRAMS.get(PurePath(file.path).suffix.lower(), ())
    if not program:
        raise UsageError("file_run.unknown", name=name)
    return (*_in_environment(program, file.path, view), file.path, *args)


async def run_file(
    shell: Shell, words: tuple[str, ...], folder: str, file: str, emit: Callable[[events.Event], None]
) -> CommandResult:
    """Run the command for a file in `folder` (absolute) to its end, emit its start, output and exit as events, in which
    `file` is the file's name, and return the result. Cancelling ends the command.
    """
    emit(events.FileRunStarted(command=shlex.join(words), file=file))
    output = OutputStream(lambda stream, text: emit(_output_event(stream, text)))
    try:
        # `apart` keeps stdout and stderr as two streams, which clients show differently.
        result = await shell.run(Command(words, folder, apart=True), output.write)
    finally:
        output.close()
    emit(events.FileRunExit(exit_code=result.finished.exit_code, duration=round(result.finished.seconds, 3)))
    return result


def _output_event(stream: Stream, text: str) -> events.Event:
    return events.Stdout(content=text) if stream == "stdout" else events.Stderr(content=text)


def _in_environment(program: tuple[str, ...], path: str, view: FileView) -> tuple[str, ...]:
    """Return the program; for a plain `python3` that of the folder's virtual environment, if there is one."""
    root = view.roots.root_of(path)
    if PurePath(program[0]).name not in ("python", "python3") or root is None:
        return program
    found = (str(PurePath(root, name)) for name in _ENVIRONMENTS)
    return (next(filter(view.exists, found), program[0]), *program[1:])


# Installs a skill by the user's own command, with the tool but without a model. Not here: the tool.


async def install_skill(request: RunRequest, context: ToolContext) -> str | None:
    """Install a skill, and return a line on what was installed; None if the user declined. AgentError if it fails.
    Waits for the user. The request's task is the source, its `args` are name, location and branch, each possibly ''.
    """
    name, location, branch = (*request.args, "", "", "")[:3]
    wanted = SkillInstallerParameters(
        skill_source=request.task[:500],
        skill_name=name or None,
        install_location=cast("Literal['project', 'global']", location or "project"),
        branch=branch or None,
    )
    try:
        return (await SkillInstaller().run(wanted, context)).text.partition("\n")[0]
    except PermissionDenied:
        return None
