"""Separation of a model's thinking from its answer, and removal of the marks of its own format around both.

Servers that do not know a model's template pass on `<think>…</think>`, the channels of harmony, and the tokens that end
a turn. Only at the beginning and the end of a reply are they marks; within an answer they are its text. Not here: the
marks of tool calls (`calls/dialects.py`).
"""

from __future__ import annotations

import re

_NAMED = (
    "think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "antthinking",
    "seed:think", "mm:think", "longcat_think",
)  # fmt: skip
_PAIRS = {
    **{f"<{name}>": f"</{name}>" for name in _NAMED},
    "[think]": "[/think]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi
    "<|thinking|>": "<|/thinking|>",
    "<|think|>": "<|/think|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",  # OpenThinker
    "<|start_thinking|>": "<|end_thinking|>",  # Command A
    "<|reasoning_start|>": "<|reasoning_end|>",
    "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
    "<|channel>thought": "<channel|>",  # Gemma 4
    "<unused94>thought": "<unused95>",  # MedGemma
}
"""What opens thinking, in small letters, and what closes it."""
_HEADS = (
    "<|im_start|>assistant", "<|start_header_id|>assistant<|end_header_id|>", "<start_of_turn>model", "<|assistant|>",
    "<|begin_of_solution|>", "<|start_response|>", "<|start|>assistant<|message|>", "<|message|>", "<bos>",
)  # fmt: skip
"""What stands before an answer, in small letters."""
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?(?:<\|channel\|>)?(analysis|commentary|final)\s*(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>"
)
_CHANNEL_BEGUN = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:[a-z]{0,10}|(?:analysis|commentary|final)\s*(?:<[<|a-z>\s]{0,40})?)"
    r"|(?:analysis|commentary|final)\s*(?:<[|a-z]*)?"
)
_CHANNEL_STARTS = (
    "<|channel|>", "<|start|>assistant<|channel|>", "analysis", "commentary", "final",
    "assistantfinal", "assistantcommentary", "assistantanalysis",
)  # fmt: skip
# Servers that take the tokens out leave `analysisI look.assistantfinalThe answer`.
_BARE = re.compile(r"analysis(?=[A-Z*\"'(\[\d])")
_BARE_ENDS = re.compile(r"assistant(?:final|(?=commentary|analysis))")
_ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|end_of_solution|>", "<|end_of_turn|>", "<end_of_turn>", "<eos>",
    "<｜end▁of▁sentence｜>", "</s>",
)  # fmt: skip
"""Tokens that end a turn."""
_LAST = re.compile(rf"(?:(?:{'|'.join(map(re.escape, _ENDS))})\s*)+\Z")
_LONGEST_END = max(map(len, _ENDS))
_LONGEST_CLOSE = max(map(len, (*_PAIRS.values(), *_CHANNEL_STARTS)))
# The next message of harmony in the same reply: another channel, or a call.
_NEXT_MESSAGE = re.compile(r"<\|end\|>(?=<\|start\|>assistant|<\|channel\|>)")
_NEXT_BEGUN = re.compile(r"<\|end\|>(?:<\|?[a-z]{0,9}\|?>?[a-z]{0,9})?\Z")
_CLOSED = re.compile("|".join(re.escape(close) for close in _PAIRS.values()), re.IGNORECASE)


class ThinkFilter:
    """Splits one reply, while it streams, into answer and reasoning; one object for each reply."""

    def __init__(self) -> None:
        self._held = ""  # not told apart yet: a tag may have begun in it
        self._close: re.Pattern[str] | None = None  # what ends the thoughts that have begun
        self._answering = False  # text goes through from now on, until another message begins
        self._thought = False  # there were thoughts, so that blank lines before the answer are no part of it
        self._apart = False  # another message of the same reply begins
        self._struck = False  # the answer has `<s>`, which `</s>` closes

    def feed(self, piece: str) -> tuple[str, str]:
        """Add a piece and return the (text, reasoning) that can be told apart so far."""
        self._held += piece
        if self._answering:
            return self._answer()
        return self._inside() if self._close else self._before()

    def close(self) -> tuple[str, str]:
        """Return the (text, reasoning) that were held back; call it at the end."""
        held, self._held = self._held, ""
        if self._close:
            return "", held
        text = held if self._answering else self._trimmed(held)
        return text if self._strikes(text) else _LAST.sub("", text), ""

    def _before(self) -> tuple[str, str]:
        # Only at the beginning of a message: an answer may be about such tags.
        start = self._held.lstrip()
        small = start.lower()
        if opening := next((each for each in _PAIRS if small.startswith(each)), None):
            self._close = re.compile(re.escape(_PAIRS[opening]), re.IGNORECASE)
            self._held = start[len(opening) :]
            return self._inside()
        # A template that the server has not taken out; thoughts or the answer follow.
        if head := next((each for each in _HEADS if small.startswith(each)), None):
            self._held, self._thought = start[len(head) :], True
            return self._before()
        if channel := _CHANNEL.match(start):
            self._held, self._thought = start[channel.end() :], True
            if channel[1] == "analysis":
                self._close = re.compile(r"<\|end\|>")
                return self._inside()
        elif _BARE.match(start):
            self._held, self._close = start[len("analysis") :], _BARE_ENDS
            return self._inside()
        elif bare := _BARE_ENDS.match(start):
            self._held, self._thought = start[bare.end() :], True
            return self._before()
        # It may still become one with the next piece.
        elif _CHANNEL_BEGUN.fullmatch(start):
            return "", ""
        elif any(each.startswith(small) for each in (*_PAIRS, *_HEADS, *_CHANNEL_STARTS)):
            return "", ""  # also if there was only white space so far
        self._answering = True
        self._held, self._apart = "\n\n" * self._apart + self._trimmed(self._held), False
        return self._answer()

    def _answer(self) -> tuple[str, str]:
        """Return the text up to what may be the end of the turn or of a message."""
        if message := _NEXT_MESSAGE.search(self._held):
            text = self._held[: message.start()]
            self._held, self._answering, self._apart = self._held[message.end() :], False, True
            more, reasoning = self._before()
            return text + more, reasoning
        begun = self._held.rfind("<", max(0, len(self._held) - _LONGEST_END))
        keep = begun if begun >= 0 and _may_end(self._held[begun:]) else len(self._held)
        if ending := _LAST.search(self._held[:keep]):
            keep = ending.start()
        if message := _NEXT_BEGUN.search(self._held):
            keep = min(keep, message.start())
        text, self._held = self._held[:keep], self._held[keep:]
        self._struck = self._strikes(text)
        return text, ""

    def _strikes(self, text: str) -> bool:
        return self._struck or "<s>" in text

    def _trimmed(self, text: str) -> str:
        """Remove the blank lines between reasoning and answer."""
        return text.lstrip() if self._thought else text

    def _inside(self) -> tuple[str, str]:
        end = self._close.search(self._held) if self._close else None
        if end is None:
            # The end tag may be divided between two pieces.
            keep = max(0, len(self._held) - _LONGEST_CLOSE)
            reasoning, self._held = self._held[:keep], self._held[keep:]
            return "", reasoning
        reasoning, self._held = self._held[: end.start()], self._held[end.end() :]
        self._close, self._thought = None, True
        # Some models think several times before they answer.
        text, more = self._before()
        return text, reasoning + more


def _may_end(tail: str) -> bool:
    return any(token.startswith(tail) for token in _ENDS)


def after_thinking(text: str) -> str:
    """Return `text` without reasoning whose opening tag the server's template has removed."""
    closed = _CLOSED.search(text)
    if closed is None:
        return text
    before, tail = text[: closed.start()], text[closed.end() :]
    opening = next(each for each, close in _PAIRS.items() if close == closed[0].lower())
    # An answer may show such a tag.
    if opening in before.lower() or before.endswith("`") or before.count("```") % 2:
        return text
    # On a line of its own it is a tag; within a sentence the answer may be about such tags. `</think>` and tokens can
    # hardly be anything else.
    alone = before[-1:] in ("", "\n") or tail[:1] in ("", "\n")
    plain = closed[0].startswith("</") and closed[0].lower() != "</think>"
    return text if plain and not alone else tail.lstrip()
