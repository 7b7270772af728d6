"""Quick rewrites: one model call that replaces a selection, without tools.

Not here: what of the reply is code and how it fits in (`replacement.py`), staging it, asking the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from codeagent_lsp import events
from codeagent_lsp.agent.context import estimate_tokens, size
from codeagent_lsp.agent.guards import LoopGuard
from codeagent_lsp.agent.loop import usage_event
from codeagent_lsp.agent.replacement import PLACE, replaced
from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.llm.base import Model, ModelRequest, Reply, TextChunk
from codeagent_lsp.messages import Message
from codeagent_lsp.workspace.lines import split_lines

LEAST_CONTEXT = 400
MOST_CONTEXT = 3000


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A file, the part of it to rewrite (`start:end`, offsets into `text`), and what to do."""

    name: str
    text: str
    start: int
    end: int
    instruction: str
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteLimits:
    """In tokens."""

    window: int = 8192
    reply_tokens: int = 2048
    temperature: float = 0.0


async def rewrite(
    model: Model,
    request: RewriteRequest,
    system: str,
    limits: RewriteLimits,
    emit: Callable[[events.Event], None],
) -> str:
    """The file's whole new text. ModelReplyInvalid when the reply is no usable replacement."""
    messages = (Message("system", system), Message("user", prompt(request, limits)))
    room = limits.window - size(messages)
    most = max(limits.reply_tokens, min(2 * estimate_tokens(request.text[request.start : request.end]), room))
    reply = await _stream(model, ModelRequest(messages, temperature=limits.temperature, max_tokens=most), emit)
    return replaced(request.text, request.start, request.end, reply.text)


def prompt(request: RewriteRequest, limits: RewriteLimits) -> str:
    """The user message: instruction, diagnostics, and as much of the file around the selection as fits."""
    selected = request.text[request.start : request.end]
    fixed = estimate_tokens(selected + request.instruction + "".join(request.diagnostics)) + 300
    if fixed + max(estimate_tokens(selected), 64) > limits.window - 200:
        raise ModelReplyInvalid("rewrite.too_large", tokens=limits.window)
    reply = max(limits.reply_tokens, estimate_tokens(selected))
    budget = max(LEAST_CONTEXT, 3 * (limits.window - fixed - reply)) // 2
    before = _tail(request.text[: request.start], min(budget, MOST_CONTEXT))
    after = _head(request.text[request.end :], min(budget, MOST_CONTEXT))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", before + selected + after)), 0)
    parts = []
    if before.strip() or after.strip():
        around = f"{fence}\n{before}{PLACE}\n{after}\n{fence}"
        parts.append(f"For your information, {request.name} around the code:\n{around}")
    if request.diagnostics:
        parts.append("Diagnostics:\n" + "\n".join(f"- {line}" for line in request.diagnostics))
    parts.append(f"Rewrite this code, and only this:\n{fence}\n{selected}\n{fence}")
    parts.append(f"Instruction: {request.instruction.strip()}")
    return "\n\n".join(parts)


async def _stream(model: Model, request: ModelRequest, emit: Callable[[events.Event], None]) -> Reply:
    guard = LoopGuard()
    async with aclosing(model.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                emit(usage_event(item))
                if item.finish_reason == "length":
                    raise ModelReplyInvalid("rewrite.cut")
                return item
            if isinstance(item, TextChunk):
                emit(events.Token(content=item.text))
            if guard.observe_text(item.text) is not None:
                raise ModelReplyInvalid("rewrite.loop")
    raise ModelReplyInvalid("rewrite.empty")


def _head(text: str, limit: int) -> str:
    """The first whole lines of `text`, at most `limit` bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else "".join(split_lines(encoded[:limit].decode("utf-8", "ignore"))[:-1])


def _tail(text: str, limit: int) -> str:
    """The last whole lines of `text`, at most `limit` bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else "".join(split_lines(encoded[-limit:].decode("utf-8", "ignore"))[1:])
