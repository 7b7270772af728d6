"""Builds the prompt of a quick action: a selection, the text around it, and what to do with it. Pure functions.

Not here: asking the model (`solving/solver.py`), what of the reply is code and how it fits in (`replacement.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeagent_lsp.agent.replacement import PLACE
from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.workspace.text.lines import split_lines

LEAST_CONTEXT = 400
MOST_CONTEXT = 3000


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A file, the part of it to rewrite (`start:end`, 0-based character offsets into `text`), and what to do."""

    name: str
    text: str
    start: int
    end: int
    instruction: str
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteLimits:
    """Limits of one rewrite: the model's window and the reply's length, both in tokens."""

    window: int = 8192
    reply_tokens: int = 2048
    temperature: float = 0.0


def prompt(request: RewriteRequest, limits: RewriteLimits) -> str:
    """Return the user message: instruction, diagnostics, and as much of the file around the selection as fits.
    ModelReplyInvalid when the selection is too large for the window.
    """
    selected = request.text[request.start : request.end]
    fixed = estimate_tokens(selected + request.instruction + "".join(request.diagnostics)) + 300
    if fixed + max(estimate_tokens(selected), 64) > limits.window - 200:
        raise ModelReplyInvalid("rewrite.too_large", tokens=limits.window)
    reply = max(limits.reply_tokens, estimate_tokens(selected))
    budget = max(LEAST_CONTEXT, 3 * (limits.window - fixed - reply)) // 2
    before = _tail(request.text[: request.start], min(budget, MOST_CONTEXT))
    after = _head(request.text[request.end :], min(budget, MOST_CONTEXT))
    fence = fence_of(request.text)
    parts = []
    if before.strip() or after.strip():
        around = f"{fence}\n{before}{PLACE}\n{after}\n{fence}"
        parts.append(f"For your information, {request.name} around the code:\n{around}")
    if request.diagnostics:
        parts.append("Diagnostics:\n" + "\n".join(f"- {line}" for line in request.diagnostics))
    parts.append(f"Rewrite this code, and only this:\n{fence}\n{selected}\n{fence}")
    parts.append(f"Instruction: {request.instruction.strip()}")
    return "\n\n".join(parts)


def fence_of(text: str) -> str:
    """Return a fence that is longer than any in `text`, of three backticks or more."""
    return "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", text)), 0)


def _head(text: str, limit: int) -> str:
    """Return the first whole lines of `text`, at most `limit` bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else "".join(split_lines(encoded[:limit].decode("utf-8", "ignore"))[:-1])


def _tail(text: str, limit: int) -> str:
    """Return the last whole lines of `text`, at most `limit` bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else "".join(split_lines(encoded[-limit:].decode("utf-8", "ignore"))[1:])
