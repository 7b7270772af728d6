"""The values that a conversation consists of: messages, tool calls, tool results, token usage.

All are frozen plain data. Not here: their form in requests to a model (`llm/`) and how they are stored (`events/`).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from codeagent_lsp.call_forms import CallForms

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["ok", "failed", "retry", "denied", "cancelled"]


class ToolSpec(TypedDict):
    """The description of a tool for a model; `parameters` is a JSON Schema object.

    `forms` are the other spellings of its calls that are understood; they are not sent.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    forms: NotRequired[CallForms]


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too high than too low: one for every 3 bytes of UTF-8, plus one."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def without_forms(spec: ToolSpec) -> dict[str, Any]:
    """Return the part of a tool's description that is sent to a model: `name`, `description` and `parameters`."""
    return {"name": spec["name"], "description": spec["description"], "parameters": spec["parameters"]}


UNREADABLE = "unreadable"
"""The tool's name in a call that names none."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by a model: the tool's name, its arguments by name, and an `id` that pairs it with its
    result inside one conversation ('' for none).
    """

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


MOST_IMAGES = 8
"""How many pictures one request takes."""
MOST_IMAGE = 4 * 1024 * 1024
"""The largest picture, in bytes."""
_MAGIC = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for a model that sees: its media type, such as `image/png`, and its bytes in base64."""

    media_type: str
    data: str

    @staticmethod
    def of(content: bytes) -> Image | None:
        """Return a picture, given by its bytes, as base64 with the media type by its content, whatever its name; None
        if it is no PNG, JPEG or WebP.
        """
        kind = next((media_type for magic, media_type in _MAGIC if magic.match(content)), None)
        return None if kind is None else Image(kind, b64encode(content).decode())

    def to_dict(self) -> dict[str, str]:
        """Return plain data for JSON with `media_type` and `data` (base64), from which `from_dict` makes the same
        picture.
        """
        return {"media_type": self.media_type, "data": self.data}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Image:
        """Return the picture from the data that `to_dict` returned. KeyError if a member is missing."""
        return Image(data["media_type"], data["data"])

    @property
    def url(self) -> str:
        """The picture as a `data:` URL (RFC 2397) in base64."""
        return f"data:{self.media_type};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation, whose `role` is `system`, `user`, `assistant` or `tool`.

    An assistant message may have `tool_calls`; each is answered by exactly one `tool` message with that `tool_call_id`,
    before a message of any other role. `carried` is what its provider wants back with it (`llm/wire.py`); `images`
    belong to a tool's result or to the user's words.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    carried: str = ""
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolError:
    """The reason why a tool call failed: a code of `errors.ErrorCode`, an English sentence, a type of
    `errors.ErrorType`, and whether the same call may succeed later.
    """

    code: str
    message: str
    type: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call: `status` is `ok`, `failed`, `retry`, `denied` or `cancelled`, `text` is for the model,
    `data` for programs.

    `stats` holds `time_ms`; `context` holds `cwd` and `params_input`. `failed` says how a program that the tool has run
    has failed, for example `exit code 1`; the call of the tool itself is `ok`. `artifacts` are the files that it
    exported, `images` what it shows to a model that sees; `summary` says what came out in a few words, for a user;
    `todos` is the whole todo list, where the call has changed it.
    """

    status: Status
    text: str
    data: Any = None
    error: ToolError | None = None
    stats: Mapping[str, float] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    failed: str = ""
    artifacts: tuple[Mapping[str, Any], ...] = ()
    images: tuple[Image, ...] = ()
    summary: str = ""
    todos: tuple[Mapping[str, Any], ...] | None = None

    @property
    def ok(self) -> bool:
        """Whether the call succeeded; the program that it ran may have failed all the same, see `failed`."""
        return self.status == "ok"

    @property
    def told(self) -> str:
        """The text for the model; if the call failed, with the code and type of the error at its end."""
        return self.text if self.error is None else f"{self.text}\n({self.error.code}, {self.error.type})"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one or more model calls, and their cost in USD, None if no price is known. `cached_tokens` is the
    part of the prompt that was reused, `written_tokens` the part that was stored for reuse at a price of its own,
    `written_1h_tokens` what of that is kept for an hour instead of minutes (known of single calls only);
    `reasoning_tokens` is the part of the completion that was reasoning.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    written_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    written_1h_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, field by field; the known costs are summed."""
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.written_tokens + other.written_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(known) if known else None,
            self.written_1h_tokens + other.written_1h_tokens,
        )
