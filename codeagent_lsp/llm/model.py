"""The interface of every model backend: one streaming call, token counts, and a description of itself.

Not here: HTTP, tool-call dialects, retries. A backend yields text while it arrives and ends with exactly one
`Reply`; closing the generator cancels the request.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from codeagent_lsp.llm.learned_facts import CAPABLE_WINDOW, LOCAL_WINDOW, KnownFacts
from codeagent_lsp.messages import Message, ToolCall, ToolSpec, Usage

FinishReason = Literal["stop", "length", "tool_calls"]
ToolCalling = Literal["native", "constrained", "text"]


LIGHT_WEIGHTS = 12
"""The least size, in billions of weights, with which a model on this machine may be taken to be capable."""
# `7b`, `1.5B`, but neither `8x7b`, which has more than its parts, nor the `4b` of `4bit`.
_WEIGHTS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The model's name, provider, URL and capabilities. `facts` are what is known of it and from where; `tool_calling`
    is whether its tool calls are the provider's own, text held to a grammar, or plain text; `slots` is how many
    requests the server handles in parallel without slowing each other down, as far as known; `local` says that it is on
    this machine or in its private network; `api_mode` is whether it gets conversations or texts to complete.
    """

    name: str
    provider: str
    url: str = ""
    facts: KnownFacts = field(default_factory=KnownFacts)
    tool_calling: ToolCalling = "text"
    slots: int = 1
    local: bool = False
    api_mode: Literal["chat", "completion"] = "chat"

    @property
    def context_window(self) -> int | None:
        """The window in tokens, known or assumed; None for neither."""
        return self.facts.context_window

    @property
    def capable(self) -> bool:
        """Whether the model can be given long work with tools without a trial: it calls tools by the API, its window is
        known, or assumed for a server on another machine, to have at least 32,000 tokens, and it does not run here with
        few weights by its name.
        """
        window = self.facts.context_window or 0
        return self.tool_calling == "native" and window >= CAPABLE_WINDOW and not (self.local and _is_light(self.name))

    @property
    def known_small(self) -> bool:
        """Whether the window is known, not only assumed, to be at most 8,192 tokens: prompt and tools are then kept
        short.
        """
        window = self.facts.context_window
        return window is not None and window <= LOCAL_WINDOW and self.facts.sources.get("context_window") != "assumed"


def _is_light(name: str) -> bool:
    """Return whether a model's name tells that it has fewer than 12 billion weights, as `llama3.2:3b` does."""
    sizes = [float(size) for size in _WEIGHTS.findall(name)]
    return bool(sizes) and max(sizes) < LIGHT_WEIGHTS


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. `messages` start with the system message; `max_tokens` None means the backend's choice. `session` is
    the id of the session that it belongs to, whose requests share a prompt cache; '' for none. If the backend can do
    that, `response_schema` holds the reply to one JSON object of that schema, `grammar` to a GBNF grammar.

    `allowed` are the names of the tools that this reply may call, None for all: the prompt describes all of them either
    way, so that its beginning stays cached. `also` are further tools that a call may name, though the prompt does not
    describe them. With `thinks` False a reasoning model is asked to answer without reasoning, if its server supports
    that.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float = 0.0
    max_tokens: int | None = None
    session: str = ""
    stop: tuple[str, ...] = ()
    response_schema: dict[str, Any] | None = None
    grammar: str = ""
    allowed: tuple[str, ...] | None = None
    also: tuple[ToolSpec, ...] = ()
    thinks: bool = True


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the answer's text, in the order in which it is shown; the pieces, joined, are the text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    """A piece of the model's reasoning as text; it is not part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The complete answer, always the last item of a stream. `problem` is a sentence for the model on tool calls that
    could not be understood; `unusable` are those calls, as they were written. `unclear` says that they may be an
    example in an answer: if the model repeats it, the text is the answer. `timings` are the server's own numbers, in
    milliseconds, if it gives them. `carried` belongs into the message that the reply becomes (`llm/wire.py`).
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    reasoning: str = ""
    problem: str = ""
    unusable: tuple[ToolCall, ...] = ()
    unclear: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    carried: str = ""


StreamItem = TextChunk | ReasoningChunk | Reply


class Model(Protocol):
    """Port: a language model of one backend. The caller that opened it calls `close`."""

    @property
    def info(self) -> ModelInfo:
        """The model's name, provider, URL and capabilities."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer as it comes, a `Reply` last. Raises `errors.ModelError`; closing the generator cancels the
        request.
        """

    async def count_tokens(self, text: str) -> int:
        """Return the number of tokens in `text`, exact if the endpoint can count, else an estimate that is rather too
        high.
        """

    async def close(self) -> None:
        """Release connections and child processes."""


class WrappedModel:
    """Base of models around another one: all goes to that one, except what a subclass changes. Subclasses implement
    `stream`.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def info(self) -> ModelInfo:
        """The description of the wrapped model."""
        return self._model.info

    async def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text as the wrapped model counts them."""
        return await self._model.count_tokens(text)

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()
