"""Quick rewrites: one model call that replaces a selection, without tools.

The reply is the new text of the selection in one code block. Not here: staging it or asking the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from codeagent_lsp import events
from codeagent_lsp.agent.context import estimate_tokens
from codeagent_lsp.agent.guards import LoopGuard
from codeagent_lsp.agent.loop import usage_event
from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.llm.base import Model, ModelRequest, Reply, TextChunk
from codeagent_lsp.messages import Message
from codeagent_lsp.workspace.lines import dominant_newline, split_lines

_FENCE = re.compile(r"^(?P<fence>```+|~~~+)[^\n`]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"^[ \t]*</?selection>[ \t]*\n?", re.MULTILINE)

OPEN, CLOSE = "<selection>", "</selection>"
LEAST_CONTEXT = 400


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
    reply = await _stream(
        model, ModelRequest(messages, temperature=limits.temperature, max_tokens=limits.reply_tokens), emit
    )
    selected = request.text[request.start : request.end]
    replacement = fitted(extract(reply.text), selected, dominant_newline(request.text))
    return request.text[: request.start] + replacement + request.text[request.end :]


def prompt(request: RewriteRequest, limits: RewriteLimits) -> str:
    """The user message: instruction, diagnostics, and as much of the file around the selection as fits."""
    selected = request.text[request.start : request.end]
    fixed = estimate_tokens(selected + request.instruction + "".join(request.diagnostics)) + 300
    if fixed + max(estimate_tokens(selected), 64) > limits.window - 200:
        raise ModelReplyInvalid("rewrite.too_large", tokens=limits.window)
    budget = max(LEAST_CONTEXT, 3 * (limits.window - fixed - limits.reply_tokens)) // 2
    before = _tail(request.text[: request.start], budget)
    after = _head(request.text[request.end :], budget)
    parts = [f"Instruction: {request.instruction.strip()}"]
    if request.diagnostics:
        parts.append("Diagnostics:\n" + "\n".join(f"- {line}" for line in request.diagnostics))
    parts.append(f"File {request.name}:\n```\n{before}{OPEN}{selected}{CLOSE}{after}\n```")
    return "\n\n".join(parts)


def extract(reply: str) -> str:
    """The code of a reply: its largest fenced block, or all of it when there is no fence."""
    unified = reply.replace("\r\n", "\n")
    blocks: Sequence[str] = [match["body"] for match in _FENCE.finditer(unified)]
    if not blocks and (opened := re.match(r"\s*(```+|~~~+)[^\n]*\n", unified)):
        raise ModelReplyInvalid("rewrite.cut", opened=opened.group(1))
    code = max(blocks, key=len) if blocks else unified
    code = _TAG.sub("", code).replace(OPEN, "").replace(CLOSE, "")
    if not code.strip():
        raise ModelReplyInvalid("rewrite.empty")
    return code


def fitted(code: str, selected: str, newline: str) -> str:
    """`code` with the indentation, the line ends and the last line end of what it replaces."""
    whole_lines = "\n" in selected or "\r" in selected
    body = code.rstrip("\n")
    if not whole_lines and "\n" not in body.strip("\n"):
        body = body.strip() if selected == selected.strip() else body
    else:
        body = _indented(body.strip("\n"), selected)
    ending = selected[len(selected.rstrip("\r\n")) :]
    return body.replace("\n", newline) + ending


def _indented(code: str, selected: str) -> str:
    """`code` shifted as a whole so that its first line stands as the selection's first line did."""
    want = _indent(selected)
    have = _indent(code)
    if want == have:
        return code
    lines = code.split("\n")
    if have and all(line.startswith(have) or not line.strip() for line in lines):
        return "\n".join(want + line[len(have) :] if line.strip() else line for line in lines)
    if not have:
        first, *rest = lines
        deeper = [line for line in rest if line.strip()]
        if want and selected[: len(want)] == want and deeper and all(line.startswith(want) for line in deeper):
            return "\n".join([want + first, *rest])
        return "\n".join(want + line if line.strip() else line for line in lines)
    return code


def _indent(text: str) -> str:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first[: len(first) - len(first.lstrip(" \t"))]


async def _stream(model: Model, request: ModelRequest, emit: Callable[[events.Event], None]) -> Reply:
    guard = LoopGuard()
    async with aclosing(model.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                emit(usage_event(item))
                if item.finish_reason == "length":
                    raise ModelReplyInvalid("rewrite.cut", opened="```")
                return item
            if isinstance(item, TextChunk):
                emit(events.Token(content=item.text))
            if guard.observe_text(item.text) is not None:
                raise ModelReplyInvalid("rewrite.loop")
    raise ModelReplyInvalid("rewrite.empty")


def _head(text: str, limit: int) -> str:
    return text if len(text) <= limit else "".join(split_lines(text[:limit])[:-1])


def _tail(text: str, limit: int) -> str:
    return text if len(text) <= limit else "".join(split_lines(text[-limit:])[1:])
