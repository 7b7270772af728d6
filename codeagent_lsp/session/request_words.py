"""The words of a request: asked for where it has none, and `/name arguments` as the task that a command's file has.

Not here: the files (`agent/custom_commands.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from codeagent_lsp.errors import UsageError
from codeagent_lsp.session.request import RunKind, RunRequest
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.skills.desk import vouched

ASKED_FOR = {"edit": "ask.instruction", "ask": "ask.question", "skills.install": "ask.skill"}
CALLING: tuple[RunKind, ...] = ("run", "ask")


async def in_words(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with its words; the user is asked for those of an edit or a question that has none, and
    whether a command of the workspace is trusted. UsageError without an answer.
    """
    if request.instruction or request.kind not in ASKED_FOR:
        return await _with_command(parts, request)
    answer = await parts.output.ask(Question("question", parts.output.text(ASKED_FOR[request.kind])))
    if not answer:
        raise UsageError("ask.nothing")
    return await _with_command(parts, request.with_words(answer[0]))


async def _with_command(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with the task of the command that its words call; as it is if they call none."""
    if request.kind not in CALLING or not request.task.startswith("/"):
        return request
    shelf, output = parts.services.knowledge.commands, parts.output
    called = await asyncio.to_thread(shelf.called, parts.proposal.view, request.task)
    if called is None:
        return request
    command = called.command
    if not command.approved:
        name = parts.proposal.view.roots.relative(command.path)
        title = output.text("commands.trust", name=command.name, path=name)
        if not await vouched(shelf.trust, output, output.text, title, command.digest, command.name, command.body):
            raise UsageError("commands.distrusted", name=command.name)
    return replace(request, task=called.task)
