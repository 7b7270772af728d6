"""What is known of a model, shown: as plain data for clients, and in words, each fact with its source.

Not here: the facts themselves (`llm/learned_facts.py`).
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from codeagent_lsp.llm.learned_facts import Facts, KnownFacts, Prices
from codeagent_lsp.texts import clauses, text

NAMES = {
    "context_window": "contextWindow",
    "longest_reply": "longestReply",
    "prices": "prices",
    "reasoning": "reasoning",
    "vision": "vision",
    "native_tools": "nativeTools",
}


def facts_data(facts: KnownFacts) -> dict[str, Any]:
    """Return the known facts by their public names, each as `{value, source}`; prices in USD per million tokens."""
    return {
        NAMES[item.name]: {"value": _plain(value), "source": facts.sources.get(item.name)}
        for item in fields(Facts)
        if (value := getattr(facts, item.name)) is not None
    }


def facts_told(facts: KnownFacts, language: str) -> str:
    """Return all facts in one line, unknown ones included."""
    return clauses((_told(item.name, facts, language) for item in fields(Facts)), language)


def _told(name: str, facts: KnownFacts, language: str) -> str:
    value = getattr(facts, name)
    label = text(f"fact.{name}", language)
    if value is None:
        return f"{label} {text('fact.unknown', language)}"
    source = facts.sources.get(name)
    whence = text("fact.whence", language, source=text(f"fact.from.{source}", language)) if source else ""
    return f"{label} {_words(value, language)}{whence}"


def _words(value: Any, language: str) -> str:
    if isinstance(value, bool):
        return text("fact.yes" if value else "fact.no", language)
    if isinstance(value, Prices):
        cached = value.input if value.cached is None else value.cached
        told = {"input": value.input, "cached": cached, "output": value.output}
        return text("fact.dollars", language, **{name: f"{price:g}" for name, price in told.items()})
    return text("fact.tokens", language, count=f"{value:,}")


def _plain(value: Any) -> Any:
    if not isinstance(value, Prices):
        return value
    return {name: price for name, price in asdict(value).items() if price is not None}
