"""What is known of a model, and from where: window, longest reply, prices, reasoning, vision, native tool calls.

Values only. Not here: reading them from servers and price lists, and which source comes first (`factory.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal

from codeagent_lsp.messages import Usage

Source = Literal["setting", "server", "overflow", "catalogue", "assumed"]

LOCAL_WINDOW = 8192
"""Tokens assumed for a server on this machine that does not tell its window."""

HOSTED_WINDOW = 128_000
"""Tokens assumed for any other server that does not tell its window."""


CAPABLE_WINDOW = 32_000
"""Tokens from which on a model that calls tools by the API is worked with as a capable one."""


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens: of the prompt, of its part read from a cache or written to one, of the completion.

    None where the source names no such price: reads and writes then cost as the prompt does. Where only the shorter
    writes have a price, those for an hour cost twice what the prompt does, as Anthropic's page on prices says.
    """

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    written_1h: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return what this usage costs, in USD."""
        cached = self.input if self.cached is None else self.cached
        # `prompt_tokens` is all of the prompt, whatever its source; some servers count the parts inconsistently.
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens - usage.written_tokens)
        hour = min(usage.written_1h_tokens, usage.written_tokens)
        written = (usage.written_tokens - hour) * self._written + hour * self._hour
        prompt = fresh * self.input + usage.cached_tokens * cached + written
        return (prompt + usage.completion_tokens * self.output) / 1_000_000

    def at_most(self, prompt: int, lasting: int = 0) -> float:
        """Return what a prompt of so many tokens costs at most, in USD: all of it is written to a cache, the `lasting`
        tokens of it for an hour.
        """
        dear = max(self.input, self._written)
        return ((prompt - lasting) * dear + lasting * max(dear, self._hour)) / 1_000_000

    @property
    def _written(self) -> float:
        return self.input if self.written is None else self.written

    @property
    def _hour(self) -> float:
        if self.written_1h is not None:
            return self.written_1h
        return self.input if self.written is None else 2 * self.input


@dataclass(frozen=True, slots=True)
class Facts:
    """What one source says of a model; None for what it does not say. Window and reply are in tokens."""

    context_window: int | None = None
    longest_reply: int | None = None
    prices: Prices | None = None
    reasoning: bool | None = None
    vision: bool | None = None
    native_tools: bool | None = None


@dataclass(frozen=True, slots=True)
class KnownFacts(Facts):
    """The facts of several sources together; `sources` names for each known fact the one that said it."""

    sources: Mapping[str, Source] = field(default_factory=lambda: MappingProxyType({}))

    def learned(self, told: Facts) -> KnownFacts:
        """Return the facts after an error told the window, which the user and the server's lists know better, or the
        longest reply, which nothing knows better than the refusal of a longer one.
        """
        known = self
        if told.context_window is not None and self.sources.get("context_window") not in ("setting", "server"):
            sources = MappingProxyType({**known.sources, "context_window": "overflow"})
            known = replace(known, context_window=told.context_window, sources=sources)
        if told.longest_reply is not None:
            sources = MappingProxyType({**known.sources, "longest_reply": "overflow"})
            known = replace(known, longest_reply=told.longest_reply, sources=sources)
        return known


def combine(said: Iterable[tuple[Source, Facts]]) -> KnownFacts:
    """Return the facts of all sources: of each fact, what the first says that knows it."""
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for source, facts in said:
        for item in fields(Facts):
            value = getattr(facts, item.name)
            if value is not None and item.name not in values:
                values[item.name], sources[item.name] = value, source
    return KnownFacts(**values, sources=MappingProxyType(sources))


def window_known(tokens: int | None, source: Source = "server") -> KnownFacts:
    """Return the facts of a source that tells only the window, None for one that tells nothing."""
    return combine([(source, Facts(context_window=tokens))])
