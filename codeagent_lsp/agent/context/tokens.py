"""How many tokens a conversation takes, and of which parts it is made. Pure.

Not here: making it smaller (`compaction.py`), and when that is done (`window.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from codeagent_lsp.agent.context.history import SUMMARY, is_request
from codeagent_lsp.messages import Message, ToolSpec

Counter = Callable[[str], int]
Exchange = tuple[Message, ...]

OVERHEAD_PER_MESSAGE = 6
LOWEST_RATIO, HIGHEST_RATIO = 0.25, 4.0


def estimate_tokens(text: str) -> int:
    """Tokens of a text, on the safe side: 3 bytes of UTF-8 each."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def size(messages: Iterable[Message], count: Counter = estimate_tokens) -> int:
    """Tokens of a conversation."""
    return sum(_cost(message, count) for message in messages)


def tools_size(tools: Iterable[ToolSpec], count: Counter = estimate_tokens) -> int:
    """Tokens of the descriptions of tools."""
    return sum(count(str(tool)) for tool in tools)


@dataclass(frozen=True, slots=True)
class TokenMeter:
    """Turns estimates into tokens by what the server counted last for an estimate of ours.

    What was counted is exact; what came since is scaled by the same ratio, but never below the middle between
    that and the estimate, for new text may be denser than the old.
    """

    estimated: int = 0
    counted: int = 0

    @property
    def ratio(self) -> float:
        """Tokens per estimated token; 1 before anything was counted."""
        if not self.estimated or not self.counted:
            return 1.0
        return min(HIGHEST_RATIO, max(LOWEST_RATIO, self.counted / self.estimated))

    def told(self, estimated: int, counted: int) -> TokenMeter:
        """With the server's count of a prompt that we had estimated; 0 is no count."""
        return TokenMeter(estimated, counted) if estimated > 0 and counted > 0 else self

    def tokens(self, estimated: int) -> int:
        """Tokens of a prompt, by its estimate."""
        if self.counted and estimated >= self.estimated:
            return self.counted + ceil((estimated - self.estimated) * self._careful)
        return ceil(estimated * self._careful)

    def estimate(self, tokens: int) -> int:
        """The largest estimate of a new prompt that surely is no more than `tokens`."""
        return int(tokens / self._careful)

    @property
    def _careful(self) -> float:
        return max(self.ratio, (1 + self.ratio) / 2)


@dataclass(frozen=True, slots=True)
class ConversationParts:
    """A conversation taken apart.

    `requests` are the user's words that an earlier compaction kept, `summary` its note; `exchanges` is everything
    after it: each one message with the results of its calls.
    """

    system: tuple[Message, ...]
    requests: tuple[Message, ...]
    summary: tuple[Message, ...]
    exchanges: tuple[Exchange, ...]

    @property
    def latest_turn(self) -> int:
        """Index of the exchange with which the user's latest request begins; 0 when it is further up."""
        starts = [index for index, exchange in enumerate(self.exchanges) if is_request(exchange[0])]
        return starts[-1] if starts else 0


def take_apart(messages: Sequence[Message]) -> ConversationParts:
    """The parts of a conversation, in their order."""
    system = tuple(message for message in messages if message.role == "system")
    rest = [message for message in messages if message.role != "system"]
    last = max((index for index, message in enumerate(rest) if message.name == SUMMARY), default=-1)
    requests = tuple(message for message in rest[: max(last, 0)] if is_request(message))
    exchanges: list[list[Message]] = []
    for message in rest[last + 1 :]:
        if message.role == "tool" and exchanges:
            exchanges[-1].append(message)
        else:
            exchanges.append([message])
    summary = tuple(rest[last : last + 1]) if last >= 0 else ()
    return ConversationParts(system, requests, summary, tuple(map(tuple, exchanges)))


def flat(exchanges: Iterable[Exchange]) -> tuple[Message, ...]:
    """The messages of exchanges."""
    return tuple(message for exchange in exchanges for message in exchange)


def _cost(message: Message, count: Counter) -> int:
    calls = "".join(f"{call.name}{dict(call.arguments)}" for call in message.tool_calls)
    return count(message.content + calls) + OVERHEAD_PER_MESSAGE
