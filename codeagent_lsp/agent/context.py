"""Fits a conversation into the model's window without breaking it. Pure.

Old turns go first and whole, at the border of a user message, so that no tool result loses its call; then long
tool results are cut, oldest first; then whole exchanges of the last turn go. The system message and the last
request of the user always stay; their text is cut only when nothing else is left to cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from codeagent_lsp.agent.history import NOTE
from codeagent_lsp.messages import Message, Role
from codeagent_lsp.tools.truncation import truncate

Counter = Callable[[str], int]

OVERHEAD_PER_MESSAGE = 6
SHORT_RESULT = 400


def estimate_tokens(text: str) -> int:
    """Tokens of a text, on the safe side: 3 bytes of UTF-8 each."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def size(messages: Sequence[Message], count: Counter = estimate_tokens) -> int:
    """Tokens of a conversation."""
    return sum(_cost(message, count) for message in messages)


def fit(
    messages: Sequence[Message], budget: int, max_messages: int, count: Counter = estimate_tokens
) -> tuple[Message, ...]:
    """The conversation in at most `budget` tokens and, where turns allow it, `max_messages` messages."""
    head, turns = _turns(messages)
    while len(turns) > 1 and (sum(map(len, turns)) > max_messages or size([*head, *_flat(turns)], count) > budget):
        turns = turns[1:]
    fitted = [*head, *_flat(turns)]
    for shorter in (_shorten_results, _drop_exchanges, _shorten_texts):
        if size(fitted, count) > budget:
            fitted = shorter(fitted, budget, count)
    return tuple(fitted)


def _cost(message: Message, count: Counter) -> int:
    calls = "".join(f"{call.name}{dict(call.arguments)}" for call in message.tool_calls)
    return count(message.content + calls) + OVERHEAD_PER_MESSAGE


def _turns(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """The system messages, and the rest cut in front of every request of the user; notes of ours are none."""
    head = [message for message in messages if message.role == "system"]
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "system":
            continue
        if (message.role == "user" and message.name != NOTE) or not turns:
            turns.append([])
        turns[-1].append(message)
    return head, turns


def _flat(turns: list[list[Message]]) -> list[Message]:
    return [message for turn in turns for message in turn]


def _shorten_results(messages: list[Message], budget: int, count: Counter) -> list[Message]:
    fitted = list(messages)
    for index, message in enumerate(fitted):
        if size(fitted, count) <= budget:
            break
        if message.role == "tool" and len(message.content) > SHORT_RESULT:
            fitted[index] = replace(message, content=truncate(message.content, SHORT_RESULT))
    return fitted


def _drop_exchanges(messages: list[Message], budget: int, count: Counter) -> list[Message]:
    """Without the oldest replies of the last turn, each with its results; the request and the newest stay."""
    begin = max((index for index, item in enumerate(messages) if item.role == "user" and item.name != NOTE), default=-1)
    kept, exchanges = messages[: begin + 1], [[item] for item in messages[begin + 1 : begin + 2]]
    for message in messages[begin + 2 :]:
        if message.role == "tool":
            exchanges[-1].append(message)
        else:
            exchanges.append([message])
    while len(exchanges) > 1 and size([*kept, *_flat(exchanges)], count) > budget:
        exchanges = exchanges[1:]
    return [*kept, *_flat(exchanges)]


def _shorten_texts(messages: list[Message], budget: int, count: Counter) -> list[Message]:
    fitted = list(messages)
    order: tuple[Role, ...] = ("assistant", "user", "system")
    for role in order:
        for index, message in enumerate(fitted):
            over = size(fitted, count) - budget
            if over > 0 and message.role == role and len(message.content) > 4 * SHORT_RESULT:
                keep = max(SHORT_RESULT, len(message.content.encode("utf-8", "replace")) - 3 * over - 100)
                fitted[index] = replace(message, content=truncate(message.content, keep))
    return fitted
