"""Keeps a conversation inside the model's context window: shortens tool results, and compacts when it is full.

Between two compactions the history only grows, so that every prompt begins with the bytes of the one before (prompt
cache). Not here: how a compaction is made (`compaction.py`), asking the model (`loop.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts, Summarise, compact, within
from codeagent_lsp.agent.context.history import (
    History,
    Sizes,
    TokenMeter,
    flat,
    is_request,
    reference,
    size,
    take_apart,
)
from codeagent_lsp.agent.limits import MARGIN, LoopLimits
from codeagent_lsp.errors import ContextOverflow
from codeagent_lsp.messages import Message, ToolCall, ToolSpec, estimate_tokens
from codeagent_lsp.workspace.text.excerpts import keywords_of, share_out

# One for each pressure of `compaction.py`; a fourth would do the same as the third.
MOST_IN_A_ROW = 3
LEAST_BUDGET = 512  # tokens; a window so small that less is left holds no conversation
LEAST_RESULT = 200  # tokens; below that, an excerpt of a result says nothing
RESULT_SHARE = 4  # the results of one reply may take a quarter of the room
FULL = 0.9  # of the aim: a conversation that a compaction left as full as that is not compacted again until it must be
SHORTENED = "\n(Shortened to fit. Read a range of lines or search for what you need.)"


async def nothing_kept() -> KeptFacts:
    """Return no facts: the default of `ConversationWindow.kept`."""
    return KeptFacts()


class ConversationWindow:
    """The history of one run inside one model's window.

    Compactions are reported by `emit`. `kept` returns the current facts that every compaction repeats; `summarise` asks
    the model for a summary, None for none.
    """

    def __init__(
        self,
        history: History,
        limits: LoopLimits,
        emit: Callable[[events.Event], None],
        kept: Callable[[], Awaitable[KeptFacts]] = nothing_kept,
        summarise: Summarise | None = None,
    ) -> None:
        self._history = history
        self._limits = limits
        self._emit = emit
        self._kept = kept
        self._summarise = summarise
        self._meter = TokenMeter()
        self._sizes = Sizes()
        self._in_a_row = 0
        self._floor = 0  # tokens after the last compaction

    async def fit(self, tools: Sequence[ToolSpec]) -> None:
        """Compact the history until the next prompt, with these tools, fits the window beside the reply; nothing if it
        fits. May ask the model for a summary. ContextOverflow when it does not after three compactions.
        """
        while self._due(tools) and self._in_a_row < MOST_IN_A_ROW:
            await self._compact(tools, self._aim)
            # What a compaction could not get below: a conversation that is full right after it must not be compacted
            # at every call.
            self._floor = self._tokens(tools)
        if self._tokens(tools) > self._most:
            needed = f"{self._tokens(tools)} + {self._limits.reserved} > {self._limits.window}"
            raise ContextOverflow("model.overflow", reason=needed)

    async def shrink(self, tools: Sequence[ToolSpec], told: int | None = None) -> bool:
        """Compact because the server found the prompt too long; return whether it got smaller, so that a new request is
        worthwhile. `told` is the window that the server named, in tokens: from now on it is the limit, if it is smaller
        than the known one.
        """
        if told is not None and told < self._limits.window:
            # The reply was planned for the larger window, and prompt and reply share the stated one.
            self._limits = replace(self._limits, window=told, reply_tokens=min(self._limits.reply_tokens, told // 4))
        # Before the history changes: the count belongs to the prompt that was refused.
        estimated = self._estimate_tokens(tools)
        # The server has said that it is at least a window long, whatever was estimated.
        self._meter = self._meter.told(estimated, max(self._tokens(tools), self._limits.window))
        while self._in_a_row < MOST_IN_A_ROW:
            # Half: how far it is off nobody has said, and each try costs a request.
            if await self._compact(tools, self._limits.window // 2):
                return True
        return False

    def told(self, tools: Sequence[ToolSpec], prompt_tokens: int) -> None:
        """Record the server's token count of the current history after a reply; 0 when it gave none."""
        self._meter = self._meter.told(self._estimate_tokens(tools), prompt_tokens)
        # A reply came, so the prompt fitted; the next compaction begins gently again.
        self._in_a_row = 0

    def reply_room(self, tools: Sequence[ToolSpec], wanted: int) -> int:
        """Return how many tokens a reply to the present prompt may have, at most `wanted`: prompt and reply share the
        window, and servers refuse a request for more.
        """
        window = self._limits.window
        return min(wanted, max(self._limits.reserved, window - self._tokens(tools) - window // MARGIN))

    def admit(self, calls: Sequence[ToolCall], results: Sequence[str], tools: Sequence[ToolSpec]) -> tuple[str, ...]:
        """Return the results as they go into the history: unchanged files as a reference, long texts as excerpts.

        Together they take about a quarter of the room that the conversation has, at most, but 200 tokens or so in any
        case. ValueError if there are not as many results as calls.
        """
        messages = self._history.messages
        texts = [reference(messages, call, text) or text for call, text in zip(calls, results, strict=True)]
        sizes = [estimate_tokens(text) for text in texts]
        shares = share_out(sizes, self._room(tools) // RESULT_SHARE)
        words = self._keywords()
        # With many results in one reply, the least of each is less, or together they would fill the window.
        return tuple(
            text if needed <= max(share, LEAST_RESULT // len(texts)) else _shorten(text, share, words)
            for text, needed, share in zip(texts, sizes, shares, strict=True)
        )

    @property
    def _most(self) -> int:
        """Return the tokens of the longest prompt that leaves room for a reply and for errors of the estimate."""
        window = self._limits.window
        return max(LEAST_BUDGET, window - self._limits.reserved - window // MARGIN)

    @property
    def _aim(self) -> int:
        return min(self._most, int(self._limits.window * self._limits.compact_at))

    def _due(self, tools: Sequence[ToolSpec]) -> bool:
        full = self._aim if self._floor < FULL * self._aim else self._most  # else every call would compact again
        if self._tokens(tools) > full:
            return True
        if self._limits.messages is None:
            return False
        parts = take_apart(self._history.messages)
        # The number of messages is a matter of earlier turns: the work on one request is not cut by it.
        return parts.latest_turn > 0 and len(flat(parts.exchanges)) > self._limits.messages and not self._in_a_row

    async def _compact(self, tools: Sequence[ToolSpec], aim: int) -> bool:
        """Compact once, harder than the time before; return whether the conversation got smaller."""
        messages = self._history.messages
        pressure, self._in_a_row = self._in_a_row, self._in_a_row + 1
        budget = self._meter.estimate(aim) - self._sizes.of_tools(tools)
        made = await compact(
            messages, budget, await self._kept(), self._asker(tools), pressure=pressure, keywords=self._keywords()
        )
        before, after = size(messages), size(made)
        if after >= before:
            return False
        self._history.replace(made)
        self._emit(events.ContextCompacted(before=before, after=after))
        return True

    def _asker(self, tools: Sequence[ToolSpec]) -> Summarise | None:
        """Return the summariser, which asks only where its prompt fits into the window; None after the first of several
        compactions in a row.
        """
        ask = self._summarise
        # The first summary was asked for already, and the prompt for another one may not fit.
        if ask is None or self._in_a_row > 1:
            return None

        async def asked(messages: tuple[Message, ...], tokens: int) -> str:
            prompt = self._meter.tokens(size(messages) + self._sizes.of_tools(tools))
            return await ask(messages, tokens) if prompt + tokens <= self._limits.window else ""

        return asked

    def _estimate_tokens(self, tools: Sequence[ToolSpec]) -> int:
        return self._sizes.of(self._history.messages) + self._sizes.of_tools(tools)

    def _tokens(self, tools: Sequence[ToolSpec]) -> int:
        return self._meter.tokens(self._estimate_tokens(tools))

    def _room(self, tools: Sequence[ToolSpec]) -> int:
        """Return the estimated tokens for everything but tools, system messages and the user's messages."""
        fixed = [message for message in self._history.messages if message.role == "system" or is_request(message)]
        return max(3 * LEAST_RESULT, self._meter.estimate(self._aim) - self._sizes.of_tools(tools) - size(fixed))

    def _keywords(self) -> tuple[str, ...]:
        task = next((message.content for message in reversed(self._history.messages) if is_request(message)), "")
        return keywords_of(task[-4000:])


def _shorten(text: str, tokens: int, keywords: Sequence[str]) -> str:
    # The sentence behind it takes about 30 tokens.
    return within(text, max(40, tokens - 30), keywords) + SHORTENED
