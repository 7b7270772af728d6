"""Separation of a model's reasoning, written as `<think>…</think>` or in the analysis channel of the harmony format at
the start of a reply, from the answer.

Not here: reasoning that the server sends separately (`deltas.py`).
"""

from __future__ import annotations

import re

_OPEN = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_TAGS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "<|channel|>", "<|start|>assistant<|channel|>")
_LONGEST_CLOSE = len("</reasoning>")
_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>(analysis|commentary|final)\s*<\|message\|>")
_CHANNEL_BEGUN = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:[a-z]{0,10}|(?:analysis|commentary|final)\s*(?:<[|a-z]*)?)"
)
_CLOSED = re.compile(r"</(think|thinking|thought|reasoning)>")


class ThinkFilter:
    """Splits one streamed text into answer and reasoning."""

    def __init__(self) -> None:
        self._held = ""
        self._close = ""
        self._answering = False
        self._thought = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Return the (text, reasoning) that can be told apart by now."""
        if self._answering:
            return piece, ""
        self._held += piece
        if self._close:
            return self._inside()
        return self._before()

    def close(self) -> tuple[str, str]:
        """Return the (text, reasoning) of what was held back."""
        held, self._held = self._held, ""
        return ("", held) if self._close else (self._trimmed(held), "")

    def _before(self) -> tuple[str, str]:
        start = self._held.lstrip()
        if match := _OPEN.match(start):
            self._close = f"</{match[1].lower()}>"
            self._held = start[match.end() :]
            return self._inside()
        if channel := _CHANNEL.match(start):
            self._held, self._thought = start[channel.end() :], True
            if channel[1] == "analysis":
                self._close = "<|end|>"
                return self._inside()
        elif _CHANNEL_BEGUN.fullmatch(start):
            return "", ""
        if any(tag.startswith(start.lower()) for tag in _TAGS):
            return "", ""  # also if there was only white space so far
        self._answering = True
        held, self._held = self._held, ""
        return self._trimmed(held), ""

    def _trimmed(self, text: str) -> str:
        """Remove the blank lines between reasoning and answer."""
        return text.lstrip() if self._thought else text

    def _inside(self) -> tuple[str, str]:
        end = self._held.lower().find(self._close)
        if end < 0:
            keep = max(0, len(self._held) - _LONGEST_CLOSE)
            reasoning, self._held = self._held[:keep], self._held[keep:]
            return "", reasoning
        reasoning = self._held[:end]
        self._held = self._held[end + len(self._close) :]
        self._close, self._thought = "", True
        text, more = self._before()
        return text, reasoning + more


def after_thinking(text: str) -> str:
    """Return `text` without reasoning whose opening tag the server's template has removed."""
    closed = _CLOSED.search(text)
    if closed is None or f"<{closed[1]}>" in text[: closed.start()] or text[: closed.start()].endswith("`"):
        return text
    before, tail = text[: closed.start()], text[closed.end() :]
    alone = before[-1:] in ("", "\n") or tail[:1] in ("", "\n")
    return tail.lstrip() if alone or closed[1] == "think" else text
