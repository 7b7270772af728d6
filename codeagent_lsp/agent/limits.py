"""The limits of a model's work on one task, which follow the window of the model.

A small window is worked in with the small numbers that a small model needs; above it there is room for long work, and
only the window itself and the user's own settings hold a model back. Not here: keeping a conversation within them
(`context/window.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from codeagent_lsp.config import Settings
from codeagent_lsp.llm.model import ModelInfo

DEFAULT_WINDOW = 8192
SMALL_WINDOW = 16_000
"""The largest window, in tokens, with the numbers of a small model."""

SMALL_ITERATIONS, ITERATIONS = 20, 200
SMALL_MESSAGES = 30
SHORTEST_REPLY, SMALL_REPLY, LONG_REPLY = 512, 4096, 32_000
MARGIN = 32
"""The window is this many times as large as the room that is left for errors of the estimate."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Limits of one run. `iterations` counts model calls; `messages` (None: any number) and `window` (tokens) bound
    what is sent; `reply_tokens` is the most that a reply may have at first, and up to `longest_reply` after it was
    cut; `compact_at` is the share of the window at which old turns are summarised; `thought_tokens` (None: any number)
    is the most that a model may think before it is asked once more, without thinking; `closes` says that the model is
    told when its calls come to an end.
    """

    iterations: int = SMALL_ITERATIONS
    messages: int | None = SMALL_MESSAGES
    window: int = DEFAULT_WINDOW
    reply_tokens: int = 2048
    temperature: float = 0.0
    compact_at: float = 0.8
    longest_reply: int = 0
    thought_tokens: int | None = None
    closes: bool = False

    @property
    def reserved(self) -> int:
        """Return the tokens of the window that are kept free for a reply. In a large window a reply may be longer than
        that while there is room, so that long replies do not have the conversation cut early.
        """
        if self.window <= SMALL_WINDOW:
            return self.reply_tokens
        # More would have the conversation compacted before it reaches `compact_at`.
        return min(self.reply_tokens, int(self.window * (1 - self.compact_at)) - self.window // MARGIN)


def limits_for(settings: Settings, info: ModelInfo, iterations: int | None = None) -> LoopLimits:
    """Return the limits of a run with this model by the settings, where `auto` follows the window. `iterations` takes
    the place of the setting.
    """
    window = window_of(info)
    small = window <= SMALL_WINDOW
    reply = reply_tokens(settings, info)
    return LoopLimits(
        iterations or _number(settings.agent.max_iterations) or (SMALL_ITERATIONS if small else ITERATIONS),
        _number(settings.context.max_messages) or (SMALL_MESSAGES if small else None),
        window,
        reply,
        settings.model.temperature,
        settings.context.compact_at,
        longest_reply=reply if small else _longest(settings, info),
        # Servers of a provider end long thoughts themselves; local ones let a model think until the window is full.
        thought_tokens=window // 4 if info.local else None,
        # A loop of a few calls is over before the note could help.
        closes=not small and iterations is None,
    )


def window_of(info: ModelInfo) -> int:
    """Return the window of a model in tokens, or a default if it is unknown."""
    return info.context_window or DEFAULT_WINDOW


def reply_tokens(settings: Settings, info: ModelInfo) -> int:
    """Return the most tokens of a reply: the setting, but at most half of the window. For `auto` in a small window a
    quarter of it, at most 4,096; in others the longest reply that the model is known to give, else a quarter of the
    window, at most 32,000.
    """
    window, known = window_of(info), info.facts.longest_reply
    if (wanted := _number(settings.model.max_tokens)) is not None:
        return min(wanted, window // 2)
    if window <= SMALL_WINDOW:
        return max(SHORTEST_REPLY, min(SMALL_REPLY, window // 4))
    return min(known, window // 2) if known else min(LONG_REPLY, window // 4)


def _longest(settings: Settings, info: ModelInfo) -> int:
    """Return the most tokens that a reply may get after one was cut: the user's own limit or a known one stays."""
    reply, fixed = reply_tokens(settings, info), _number(settings.model.max_tokens)
    return reply if fixed is not None or info.facts.longest_reply else max(reply, window_of(info) // 2)


def _number(setting: int | Literal["auto"]) -> int | None:
    return None if setting == "auto" else setting
