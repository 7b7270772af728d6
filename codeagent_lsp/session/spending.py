"""Sums of tokens and cost: read from events, as plain data for clients, and in words for users.

Not here: what one call costs (`llm/learned_facts.py`), limits (`session/run_models.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from codeagent_lsp.messages import Usage
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp import events


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
    """Return the usage that a stored event reports; an empty one for all other events, and for damaged ones."""
    from codeagent_lsp import events  # late: a terminal that only words a sum does without all events

    try:
        event = events.from_dict(record)
    except (KeyError, TypeError, ValueError):
        return Usage()
    return usage_of(event) if isinstance(event, events.UsageReported) else Usage()


def used_in(records: Iterable[Mapping[str, Any]]) -> Usage:
    """Return what all runs used, by their stored events: the sum that each run's end has, and its calls since then."""
    runs: dict[str, Usage] = {}
    for record in records:
        run_id = str(record.get("run_id", ""))
        ended = usage_from(record.get("usage")) if record.get("type") == "run_completed" else None
        # The end replaces the sum of the calls: it has the attempts as well. A run that is resumed adds to it.
        runs[run_id] = ended or runs.get(run_id, Usage()) + usage_in(record)
    return total(runs.values())


def usage_from(data: object) -> Usage | None:
    """Return the sum from the result of `usage_data`; None if there is none or it is malformed."""
    if not isinstance(data, Mapping):
        return None
    numbers = {item.name: data[item.name] for item in fields(Usage) if isinstance(data.get(item.name), int | float)}
    return Usage(**numbers) if numbers else None


def usage_data(usage: Usage) -> dict[str, Any] | None:
    """Return a sum as plain data (the fields of `Usage`; tokens, `cost` in USD) without empty ones; None if nothing was
    used.
    """
    return {name: value for name, value in asdict(usage).items() if value} or None


def total(parts: Iterable[Usage]) -> Usage:
    """Return the sum of several usages; its cost is None if no part has one."""
    return sum(parts, Usage())


def dollars(cost: float) -> str:
    """Return a cost in USD for users: from $0.10 with two decimals, less with two significant digits, `$0` below
    $0.0001.
    """
    return f"${cost:.2f}" if cost >= 0.1 else f"${cost:.2g}" if cost >= 0.0001 else "$0"


def cached_percent(usage: Mapping[str, Any] | None) -> int:
    """Return how many percent, by the data of a usage, of the prompts' tokens came from a cache, rounded down; 0 if
    that is not known.
    """
    prompt, cached = ((usage or {}).get(name) for name in ("prompt_tokens", "cached_tokens"))
    # Damaged files and other servers' usage: a bool is an int for isinstance.
    if type(prompt) is not int or type(cached) is not int or prompt <= 0 or cached <= 0:
        return 0
    return 100 * min(cached, prompt) // prompt


def spent_words(usage: Mapping[str, Any] | None, language: str) -> str:
    """Return the cost, from the data of a usage, as text for users, with the share of the prompts that came from a
    cache; '' if no price is known.
    """
    cost = (usage or {}).get("cost")
    if cost is None:
        return ""
    share = cached_percent(usage)
    return text("cost.cached", language, cost=dollars(cost), share=share) if share else dollars(cost)


def cost_words(run: Mapping[str, Any] | None, session: Mapping[str, Any] | None, language: str) -> str:
    """Return a phrase for the user on what a run and its session have cost, from results of `usage_data`; '' if no
    price is known.
    """
    cost, whole = (run or {}).get("cost"), (session or {}).get("cost")
    spent = spent_words(run, language)
    if cost is None or whole is None or whole <= cost:
        return spent
    return text("cost.session", language, run=spent, session=spent_words(session, language))
