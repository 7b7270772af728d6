"""Executes the runs that need no model, started by the user's own command: run a file, install a skill, trust what the
workspace brings.

Not here: how a file is run (`file_run.py`), how a skill is installed (`skill_run.py`), runs with a model (`run.py`).
"""

from __future__ import annotations

import asyncio
import shlex

from codeagent_lsp import events
from codeagent_lsp.errors import UsageError
from codeagent_lsp.session.file_run import command_for, run_file
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.session.skill_run import install_skill
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.skills.desk import ask_all, ask_one, named, said_of
from codeagent_lsp.workspace.text.unseen import escaped, shown_exactly
from codeagent_lsp.workspace.text.visible import one_line

Ended = tuple[events.RunStatus, str]
"""The final status of a run, and a summary for the user."""


async def run_own_file(parts: RunParts, target: Target, args: tuple[str, ...]) -> Ended:
    """Run a file of the workspace in the shadow; the user is asked only if that does not isolate it. UsageError if it
    is not known how to run the file.
    """
    view, output = parts.proposal.view, parts.output
    words = command_for(target.file, args, view)
    await parts.toolbox.open()
    shell = parts.toolbox.shell
    if shell is None:
        return "failed", parts.toolbox.no_shell
    isolation = shell.isolation
    if not isolation.complete and not await confirmed(parts, shlex.join(words), isolation.level):
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
    """Install a skill, after the user has seen and confirmed it. UsageError if the mode is `readOnly`."""
    if parts.services.user.mode() == "readOnly":
        raise UsageError("skills.read_only")
    installed = await install_skill(request, parts.toolbox.context())
    return "completed", parts.output.text("skills.declined") if installed is None else installed


async def trust_contents(parts: RunParts, request: RunRequest) -> Ended:
    """Have the user decide about what the workspace brings, one kind of it, or one thing by its name or path, also
    about what they have declined. UsageError if there is none of that name.
    """
    trust, output = parts.services.knowledge.trust, parts.output
    wanted, name = (*request.args, "", "")[:2]
    brought = await asyncio.to_thread(parts.toolbox.brings)
    of_kind = [item for item in brought if wanted in ("", item.kind)]
    items = named(of_kind, name)
    if name and not items:
        known = ", ".join(item.name for item in of_kind) or output.text("trust.none")
        raise UsageError("trust.unknown", name=one_line(name, 80), names=one_line(known, 400))
    trust.reconsider(items)
    open_ones = [item for item in items if not trust.covers(item.digest)]
    if len(open_ones) == 1 or (open_ones and await ask_all(trust, open_ones, output, output.text) == "singly"):
        for item in open_ones:
            await ask_one(trust, item, output, output.text, lasting=True)
    return "completed", said_of(trust, items, output.text) or output.text("trust.nothing")


async def stage_texts(parts: RunParts, request: RunRequest) -> Ended:
    """Stage texts that were made without a model; hooks and the user decide about them as about all changes."""
    parts.proposal.staging.write(
        {file.path: new for file, new in request.rewritten}, [file for file, _ in request.rewritten]
    )
    if await asyncio.to_thread(parts.services.knowledge.hooks.files, parts.proposal.view):
        await parts.toolbox.open()
        parts.toolbox.context()  # from now on the hooks judge what is to be proposed
    return "completed", ""


async def confirmed(parts: RunParts, command: str, level: str) -> bool:
    """Ask whether a command may run although it is not isolated, and how little is (`level`)."""
    output = parts.output
    deny, once = output.text("choice.deny"), output.text("choice.once")
    title = output.text("file_run.ask", command=shown_exactly(command, escaped), level=level)
    return await output.ask(Question("approval", title, (deny, once), danger=True)) == (once,)
