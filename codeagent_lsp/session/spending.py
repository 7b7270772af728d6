"""Sums of tokens and cost: read from events, as plain data for clients, and in words for users.

Not here: what one call costs (`llm/facts.py`), limits (`agent/budget.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.messages import Usage
from codeagent_lsp.texts import text


def usage_of(event: events.UsageReported) -> Usage:
    """Return the usage that an event reports."""
    return Usage(
        event.prompt_tokens,
        event.cached_tokens,
        event.completion_tokens,
        event.written_tokens or 0,
        event.reasoning_tokens or 0,
        event.cost,
    )


def usage_in(record: Mapping[str, Any]) -> Usage:
    """Return the usage that a stored event reports; none for all other events, and for damaged ones."""
    try:
        event = events.from_dict(record)
    except (KeyError, TypeError, ValueError):
        return Usage()
    return usage_of(event) if isinstance(event, events.UsageReported) else Usage()


def usage_data(usage: Usage) -> dict[str, Any] | None:
    """Return a sum as plain data without empty fields; None if nothing was used."""
    return {name: value for name, value in asdict(usage).items() if value} or None


def total(parts: Iterable[Usage]) -> Usage:
    """Return the sum of several usages."""
    return sum(parts, Usage())


def dollars(cost: float) -> str:
    """Return a cost for users: cents and larger with two digits after the point, less with two that count."""
    return f"${cost:.2f}" if cost >= 0.1 else f"${cost:.2g}" if cost >= 0.0001 else "$0"


def cost_words(run: Mapping[str, Any] | None, session: Mapping[str, Any] | None, language: str) -> str:
    """Return what a run and its session have cost, as `usage_data` tells them; '' where no price is known."""
    cost, whole = (run or {}).get("cost"), (session or {}).get("cost")
    if cost is None:
        return ""
    if whole is None or whole <= cost:
        return dollars(cost)
    return text("cost.session", language, run=dollars(cost), session=dollars(whole))
