"""The values a conversation is made of: messages, tool calls, tool results, usage.

All frozen, all plain data. Not here: how they look on the wire to a model (`llm/`) or how they are stored
(`events.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["ok", "failed", "retry", "denied", "cancelled"]


class ToolSpec(TypedDict):
    """What a model is told about a tool; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `id` pairs it with its result inside one conversation."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation.

    An assistant message may carry `tool_calls`; each is answered by exactly one `tool` message with that
    `tool_call_id`, before any other role speaks.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a tool call did not do its work: a code of `errors.ErrorCode`, a sentence, a type, and whether the same
    call may succeed later.
    """

    code: str
    message: str
    type: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call gave: `text` is what the model reads, `data` what programs read.

    `stats` holds `time_ms`; `context` holds `cwd` and `params_input`.
    """

    status: Status
    text: str
    data: Any = None
    error: ToolError | None = None
    stats: Mapping[str, float] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the call did its work."""
        return self.status == "ok"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls; `cached_tokens` is the part of the prompt that was reused."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The sum, field by field."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )
