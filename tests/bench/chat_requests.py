"""One chat request to a model: its parts, what it repeats of earlier requests, and how it is printed for a person.

Not here: the endpoint that takes requests (`by_hand.py`), which part of a product a piece of a prompt is from
(`prompts.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request: its number in the folder, and its body as it was sent."""

    number: int
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as they were sent."""
        return list(self.body.get("messages") or ())

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The offered tools as they were sent, by name."""
        return {tool["function"]["name"]: tool for tool in self.body.get("tools") or ()}

    @cached_property
    def pieces(self) -> list[str]:
        """The prompt in JSON: the tools, then message by message, as servers put them before a model."""
        return [in_json(self.body.get("tools") or []), *map(in_json, self.messages)]

    @property
    def characters(self) -> int:
        """The length of the prompt in JSON."""
        return sum(map(len, self.pieces))


@dataclass(frozen=True, slots=True)
class Shared:
    """What the beginning of a request has in common with an earlier one, `before`: whole messages, and characters of
    the prompt. `before` is None for a first request.
    """

    before: Asked | None = None
    messages: int = 0
    characters: int = 0

    @property
    def percent(self) -> float:
        """The share of the earlier prompt that the later one repeats: what a prompt cache can use."""
        return 100 * self.characters / self.before.characters if self.before is not None else 0.0

    @property
    def continues(self) -> bool:
        """Whether all messages of the earlier request are repeated: it is the same conversation."""
        return self.before is not None and self.messages == len(self.before.messages)


def shared(asked: Asked, earlier: Sequence[Asked]) -> Shared:
    """Return what a request has in common with the one of the earlier requests that it repeats most of; the latest of
    several. So conversations at the same time are told apart.
    """
    found = [
        Shared(before, _same(asked.messages, before.messages), _same_characters(asked.pieces, before.pieces))
        for before in reversed(earlier)
        if before.number < asked.number
    ]
    return max(found, key=lambda each: (each.messages, each.characters), default=Shared())


def _same(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many items two sequences begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _same_characters(one: Sequence[str], other: Sequence[str]) -> int:
    whole = _same(one, other)
    cut = _same(one[whole], other[whole]) if whole < min(len(one), len(other)) else 0
    return sum(map(len, one[:whole])) + cut


def told_next(asked: Asked, earlier: Sequence[Asked]) -> str:
    """Return what is new in a request, for the person who answers it."""
    common = shared(asked, earlier)
    head = f"=== request {asked.number}: {len(asked.messages)} messages, {asked.characters} characters"
    tools = f"=== tools: {', '.join(asked.tools) or 'none'}"
    if common.before is not None and common.messages:
        what = "continues" if common.continues else "leaves"
        head += f"; {what} request {common.before.number} after {common.messages} messages, not shown again"
        tools = _told_tools(asked.tools, common.before.tools)
    return "\n".join([head, tools, *map(told_message, asked.messages[common.messages :])])


def _told_tools(now: Mapping[str, object], before: Mapping[str, object]) -> str:
    """Return a line on the tools that are not as they were before."""
    kinds = {
        "new": [name for name in now if name not in before],
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "gone": [name for name in before if name not in now],
    }
    told = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names)
    return f"=== tools: {told or 'the same'}"


def told_message(message: Mapping[str, Any]) -> str:
    """Return a message as text, with a line for its role and for each call."""
    answers = f" to {message['tool_call_id']}" if message.get("tool_call_id") else ""
    lines = [f"--- {message['role']}{answers}", str(message.get("reasoning_content") or ""), text_of(message)]
    for call in message.get("tool_calls") or ():
        lines.append(f"call {call['id']}: {call['function']['name']} {call['function']['arguments']}")
    return "\n".join(filter(None, lines))


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message; a picture is named by its type."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or f"<{part.get('type')}>") for part in content)


def told_full(asked: Asked) -> str:
    """Return a whole request: its messages, tools and options."""
    options = {name: value for name, value in asked.body.items() if name not in ("messages", "tools")}
    tools = json.dumps(list(asked.tools.values()), indent=1, ensure_ascii=False)
    return "\n".join([*map(told_message, asked.messages), "=== tools", tools, f"=== options: {in_json(options)}"])


def told_stats(requests: Sequence[Asked]) -> str:
    """Return a line for each request: characters, how many of them are new, messages, tools, and what it repeats."""
    lines = [f"{'request':>7} {'prompt':>8} {'new':>8} {'messages':>8} {'tools':>5}  shared"]
    for at, asked in enumerate(requests):
        common = shared(asked, requests[:at])
        repeats = f"{common.percent:5.1f} % of {common.before.number}" if common.before is not None else ""
        new = asked.characters - common.characters
        row = f"{asked.number:7} {asked.characters:8} {new:8} {len(asked.messages):8} {len(asked.tools):5}  {repeats}"
        lines.append(row.rstrip())
    return "\n".join(lines)


def in_json(value: object) -> str:
    """Return a value as JSON in which each character stands for itself."""
    return json.dumps(value, ensure_ascii=False)
