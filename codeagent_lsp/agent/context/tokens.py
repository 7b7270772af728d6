"""Estimates how many tokens a conversation takes, and splits it into its parts. Pure functions.

Not here: making it smaller (`compaction.py`), and when that is done (`window.py`).
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from codeagent_lsp.agent.context.history import NOTE, SUMMARY, is_request
from codeagent_lsp.messages import Message, ToolSpec, estimate_tokens, sent

Counter = Callable[[str], int]
Exchange = tuple[Message, ...]

# The role and the marks that a chat template puts around each message.
OVERHEAD_PER_MESSAGE = 6
PER_IMAGE = 1600
"""About what the providers count for a large picture, in tokens."""

# A count beyond these is no tokenizer but a mistake of the server, such as one that leaves out the cached part.
LOWEST_RATIO, HIGHEST_RATIO = 0.25, 4.0


def size(messages: Iterable[Message], count: Counter = estimate_tokens) -> int:
    """Return the tokens of a conversation."""
    return sum(_cost(message, count) for message in messages)


class Sizes:
    """The tokens of one conversation while it grows: only what is new is counted."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._total = 0

    def of(self, messages: tuple[Message, ...]) -> int:
        """Return the tokens of the conversation as it is now."""
        known = len(self._seen)
        # Cheap, though it compares all: tuples compare by identity first, and the messages are the same objects.
        if messages[:known] == self._seen:
            self._total += size(messages[known:])
        else:
            self._total = size(messages)
        self._seen = messages
        return self._total


def tools_size(tools: Iterable[ToolSpec], count: Counter = estimate_tokens) -> int:
    """Return the tokens of tool descriptions."""
    return sum(count(str(sent(tool))) for tool in tools)


def composition(messages: Iterable[Message], tools: Iterable[ToolSpec], counted: int) -> dict[str, int]:
    """Return what a prompt consists of, by kind, in tokens: estimates, scaled to what the server has `counted` (0 where
    it told nothing). Kinds that are not there are left out.
    """
    kinds = Counts[str]({"tools": tools_size(tools)})
    for message in messages:
        pictures = PER_IMAGE * len(message.images)
        kinds["pictures"] += pictures
        kinds[_kind(message)] += _cost(message, estimate_tokens) - pictures
    ratio = counted / kinds.total() if counted and kinds.total() else 1.0
    return {kind: round(tokens * ratio) for kind, tokens in kinds.items() if tokens}


def _kind(message: Message) -> str:
    if message.role == "system":
        return "system"
    if message.role == "tool":
        from codeagent_lsp.tools.catalogue import result_of  # late: it loads all tools, which such a run has done

        return {"file": "files", "printed": "output"}.get(result_of(message.name), "results")
    return {NOTE: "notes", SUMMARY: "summary"}.get(message.name, "talk")


@dataclass(frozen=True, slots=True)
class TokenMeter:
    """Converts estimates into tokens, calibrated by the server's last token count of a prompt that was estimated here.

    The counted prompt is exact; text added since is scaled by the same ratio, but never below the middle between that
    and the estimate, since new text may be denser than the old.
    """

    estimated: int = 0
    counted: int = 0

    @property
    def ratio(self) -> float:
        """Return tokens per estimated token, from 0.25 to 4; 1 before anything was counted."""
        if not self.estimated or not self.counted:
            return 1.0
        return min(HIGHEST_RATIO, max(LOWEST_RATIO, self.counted / self.estimated))

    def told(self, estimated: int, counted: int) -> TokenMeter:
        """Return a meter with the server's count of a prompt that was estimated here; a count of 0 is ignored."""
        return TokenMeter(estimated, counted) if estimated > 0 and counted > 0 else self

    def tokens(self, estimated: int) -> int:
        """Return the tokens of a prompt from its estimate."""
        # A shorter prompt than the counted one was compacted: what is left may be of another kind, so the count says
        # less.
        if self.counted and estimated >= self.estimated:
            return self.counted + ceil((estimated - self.estimated) * self._careful)
        return ceil(estimated * self._careful)

    def estimate(self, tokens: int) -> int:
        """Return the largest estimate of a new prompt that is no more than `tokens`."""
        return int(tokens / self._careful)

    @property
    def _careful(self) -> float:
        return max(self.ratio, (1 + self.ratio) / 2)


@dataclass(frozen=True, slots=True)
class ConversationParts:
    """A conversation split up.

    `requests` are the user's messages that an earlier compaction kept, `summary` its note; `exchanges` is everything
    after it: each one message with the results of its tool calls.
    """

    system: tuple[Message, ...]
    requests: tuple[Message, ...]
    summary: tuple[Message, ...]
    exchanges: tuple[Exchange, ...]

    @property
    def latest_turn(self) -> int:
        """Return the index of the exchange that begins the user's latest request; 0 when it is before them."""
        starts = [index for index, exchange in enumerate(self.exchanges) if is_request(exchange[0])]
        return starts[-1] if starts else 0


def take_apart(messages: Sequence[Message]) -> ConversationParts:
    """Split a conversation into its parts."""
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
    """Return the messages of exchanges as one tuple."""
    return tuple(message for exchange in exchanges for message in exchange)


def _cost(message: Message, count: Counter) -> int:
    calls = "".join(f"{call.name}{dict(call.arguments)}" for call in message.tool_calls)
    return count(message.content + calls) + OVERHEAD_PER_MESSAGE + PER_IMAGE * len(message.images)
