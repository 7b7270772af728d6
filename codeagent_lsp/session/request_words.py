"""The words of a request: asked for where it has none, and `/name arguments` as the task that a command's file has.

Not here: the files (`agent/custom_commands.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from codeagent_lsp import events
from codeagent_lsp.agent.custom_commands import MOST_ARGUMENTS, called_name, item_of
from codeagent_lsp.errors import PermissionDenied, UsageError
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.request import REWRITES, WITH_WORDS, RunKind, RunRequest
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.skills.desk import vouched

ASKED_FOR = {"edit": "ask.instruction", "ask": "ask.question", "skills.install": "ask.skill"}
CALLING: tuple[RunKind, ...] = ("run", "ask")


async def in_words(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with its words; the user is asked for those of an edit or a question that has none, and
    whether a command of the workspace is trusted; hooks may add to them. UsageError without an answer, or if a hook
    does not let them pass.
    """
    if parts.record.attempt_of:  # its words are complete
        return request
    if request.kind in ASKED_FOR and (request.wordless or not request.instruction):
        answer = await parts.output.ask(Question("question", parts.output.text(ASKED_FOR[request.kind])))
        if not answer:
            raise UsageError("ask.nothing")
        request = request.with_words("\n\n".join(filter(None, (answer[0], request.task))))
    request = await _with_command(parts, request)
    return await _with_hooks(parts, request) if request.kind in WITH_WORDS else request


async def _with_command(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with the task of the command that its words call; as it is if they call none."""
    if request.kind not in CALLING or not request.task.lstrip().startswith("/"):
        return request
    shelf, output = parts.services.knowledge.commands, parts.output
    called = await asyncio.to_thread(shelf.called, parts.proposal.view, request.task)
    if called is None:
        if name := called_name(request.task):
            output.emit(events.StatusChanged(message=output.text("commands.as_words", name=name)))
        return request
    command = called.command
    if called.cut:
        output.emit(events.StatusChanged(message=output.text("commands.cut", name=command.name, most=MOST_ARGUMENTS)))
    if not command.approved:
        view = parts.proposal.view
        brings = partial(parts.services.knowledge.brought, view)
        if not await vouched(shelf.trust, item_of(command, view), output, output.text, brings):
            raise UsageError("commands.distrusted", name=command.name)
    return replace(request, task=called.task, arguments=called.arguments)


async def _with_hooks(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with what the hooks add to it, those for the beginning of a session to the first one that is
    part of its conversation. UsageError if one does not let it pass.
    """
    shelf, session = parts.services.knowledge.hooks, parts.session
    said = session.context.conversation  # empty also after a first request that failed
    begins = (not said or session.session_id not in shelf.begun) and request.kind not in REWRITES
    if not (begins or request.task) or not await asyncio.to_thread(shelf.files, parts.proposal.view):
        return request
    await parts.toolbox.open()
    context, hooks = parts.toolbox.context(), parts.toolbox.hooks
    added = []
    if begins:
        added.append(await hooks.on_session(context, "resume" if said else "startup"))
        shelf.begun.add(session.session_id)
    try:
        added.append(await hooks.on_prompt(context, request.task) if request.task else "")
    except PermissionDenied as denied:
        raise UsageError("hooks.prompt", reason=str(denied)) from denied
    return replace(request, given=(*request.given, *filter(None, added)))


async def with_mentions(parts: RunParts, request: RunRequest, model: Model) -> RunRequest:
    """Return the request with the texts and pictures that mentions in its words (`@file`, `@diff`) stand for; what is
    not found is told to the user. UsageError for a picture if the model does not see.
    """
    if "@" not in request.task or request.kind not in WITH_WORDS:
        return request
    from codeagent_lsp.session.mentioned import mentioned  # late: tools that most runs have no use for

    return await mentioned(parts, request, model)
