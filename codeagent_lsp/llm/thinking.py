"""Separation of a model's thinking from its answer, and removal of the marks of its own format around both.

Servers that do not know a model's template pass on `<think>…</think>`, the channels of harmony, and the tokens that end
a turn. At the beginning and the end of a reply they are marks; so are, within an answer, another message of the same
reply, a closing tag that nothing opened, and thoughts that begin a line. What stands in code is text, whatever it is.
Not here: the marks of tool calls (`calls/dialects.py`).
"""

from __future__ import annotations

import re

_SURE = ("think", "thinking", "antthinking", "seed:think", "mm:think", "longcat_think")
_NAMED = (*_SURE, "thought", "reasoning", "reflection", "scratchpad")
_TOKENS = {
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
_PAIRS = {**{f"<{name}>": f"</{name}>" for name in _NAMED}, **_TOKENS}
"""What opens thinking, in small letters, and what closes it."""
_OPENING_OF = {close: opening for opening, close in _PAIRS.items()}
_HEADS = (
    "<|im_start|>assistant", "<|start_header_id|>assistant<|end_header_id|>", "<start_of_turn>model", "<|assistant|>",
    "<|begin_of_solution|>", "<|start_response|>", "<|message|>", "<bos>", "[/inst]",
)  # fmt: skip
"""What stands before an answer, in small letters."""
_CHANNEL_STARTS = (
    "<|channel|>", "<|start|>assistant<|channel|>", "analysis", "commentary", "final",
    "assistantfinal", "assistantcommentary", "assistantanalysis",
)  # fmt: skip
# The end of thoughts in harmony, also where the token was left out.
_ANALYSIS_ENDS = re.compile(r"<\|end\|>|(?=<\|start\|>assistant|<\|channel\|>(?:analysis|commentary|final))")
# Servers that take the tokens out leave `analysisI look.assistantfinalThe answer`.
_BARE = re.compile(r"analysis(?=[A-Za-z*\"'(\[\d\n])")
_BARE_ENDS = re.compile(r"assistant(?:final|(?=commentary|analysis))")
_ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|end_of_solution|>", "<|end_of_turn|>", "<end_of_turn>", "<eos>",
    "<｜end▁of▁sentence｜>", "</s>",
)  # fmt: skip
"""Tokens that end a turn."""
_END = "|".join(map(re.escape, _ENDS))
_LONGEST_CLOSE = max(map(len, (*_PAIRS.values(), *_CHANNEL_STARTS)))
# Also the beginning of one, as the rest may come with the next piece.
_OWN_ROLE = "|".join(rf"{role}|{role[:end]}\Z" for role in ("assistant", "model") for end in range(len(role)))
# Of another role: what a model invents of the user or of a tool once its own turn has ended.
_OTHER_TURN = re.compile(
    rf"(?:<\|(?:im_start|start|start_header_id)\|>|<start_of_turn>)(?!{_OWN_ROLE})[a-z]|\[INST\]"
    r"|<\|(?:user|system|tool|observation)\|>"
)
_TURNS = (
    "<|start|>assistant", "<|channel|>", *_HEADS,
    "<|im_start|>user", "<|im_start|>tool", "<|im_start|>system", "<|start|>user", "<|start|>functions",
    "<|start_header_id|>user", "<|start_header_id|>ipython", "<start_of_turn>user", "[inst]", "<|user|>", "<|system|>",
    "<|tool|>", "<|observation|>",
)  # fmt: skip
"""What begins a turn behind the end of another, in small letters."""
_LATER = tuple(f"<{name}>" for name in _SURE) + tuple(_TOKENS)
"""What opens thoughts also in a later line: nothing else that an answer may have to show."""
_MARKS = re.compile(
    rf"(?P<ends>(?:(?:{_END})\s{{0,20}}){{1,8}})|(?P<head><\|(?:start|channel)\|>)"
    rf"|(?P<close>(?i:{'|'.join(map(re.escape, _OPENING_OF))}))|(?P<open>(?i:{'|'.join(map(re.escape, _PAIRS))}))"
)
_HELD = tuple(dict.fromkeys(mark.lower() for mark in (*_ENDS, *_PAIRS, *_OPENING_OF, "<|start|>", "<|channel|>")))
_LONGEST_MARK = max(map(len, _HELD))
_FIRST = re.compile(r"[<\[◁]")
_PART = 1000  # characters
_SENTENCE_ENDS = ".!?…。！？:："


class ThinkFilter:
    """Splits one reply, while it streams, into answer and reasoning; one object for each reply. `thoughts` is how many
    characters of the text, from its beginning, were thoughts: their opening tag was missing, as some templates take it
    out.
    """

    def __init__(self) -> None:
        self.thoughts = 0
        self._held = ""  # not told apart yet: a tag may have begun in it
        self._close: re.Pattern[str] | None = None  # what ends the thoughts that have begun
        self._answering = False  # text goes through from now on, until another message begins
        self._over = False  # nothing that comes is the model's own any more
        self._thought = False  # there were thoughts, so that blank lines before the answer are no part of it
        self._apart = False  # another message of the same reply begins
        self._ended = False  # nothing follows what is held
        self._struck = False  # the answer has `<s>`, which `</s>` closes
        self._opened: set[str] = set()  # tags that the answer shows, so that what closes them is its text
        self._given = 0  # characters of text that were returned
        self._code = _CodeState()

    def feed(self, piece: str) -> tuple[str, str]:
        """Add a piece and return the (text, reasoning) that can be told apart so far, each '' for none."""
        text: list[str] = []
        reasoning: list[str] = []
        # In short parts: what is held is copied at each mark, and a hostile server sends thousands of them at once.
        for at in range(0, len(piece) or 1, _PART):
            self._held += piece[at : at + _PART]
            moved = True
            while moved:
                said, thought, moved = self._step()
                text.append(said)
                reasoning.append(thought)
        return "".join(text), "".join(reasoning)

    def close(self) -> tuple[str, str]:
        """Return the (text, reasoning) that were held back; call it at the end. Both may be ''."""
        self._ended = True
        return self.feed("")

    def _step(self) -> tuple[str, str, bool]:
        """Return the (text, reasoning) of the state that the reply is in, and whether it has changed to another."""
        if self._over:
            self._held = ""
            return "", "", False
        if self._close:
            return self._inside(self._close)
        return self._answer() if self._answering else self._before()

    def _before(self) -> tuple[str, str, bool]:
        # Only at the beginning of a message, or of a line: an answer may be about such tags.
        start = self._held.lstrip()
        small = start.lower()
        if opening := next((each for each in _PAIRS if small.startswith(each)), None):
            return self._think(start[len(opening) :], re.compile(re.escape(_PAIRS[opening]), re.IGNORECASE))
        if head := HEAD.match(start):
            return self._message(head, start[head.end() :])
        # A template that the server has not taken out; thoughts or the answer follow.
        if plain := next((each for each in _HEADS if small.startswith(each)), None):
            self._held, self._thought = start[len(plain) :], True
            return "", "", True
        if _BARE.match(start):
            return self._think(start[len("analysis") :], _BARE_ENDS)
        if bare := _BARE_ENDS.match(start):
            self._held, self._thought = start[bare.end() :], True
            return "", "", True
        if self._apart and _OTHER_TURN.match(start):
            self._over = True
            return "", "", True
        if self._ended and not start and (self._thought or self._apart):
            self._held = ""
            return "", "", False
        # It may still become one with the next piece.
        begun = begins_head(start) or any(each.startswith(small) for each in (*_PAIRS, *_HEADS, *_CHANNEL_STARTS))
        if begun and not self._ended:
            return "", "", False  # also if there was only white space so far
        return self._begin_answer(self._held.lstrip() if self._thought else self._held)

    def _message(self, head: re.Match[str], rest: str) -> tuple[str, str, bool]:
        """Begin the message of harmony that has this head."""
        self._thought = True
        if name := recipient(head):
            return self._begin_answer(call_head(name) + rest, checked=len(call_head(name)))
        if head["channel"] == "analysis":
            return self._think(rest, _ANALYSIS_ENDS)
        self._held = rest
        return "", "", True

    def _think(self, rest: str, close: re.Pattern[str]) -> tuple[str, str, bool]:
        self._held, self._close = rest, close
        return "", "", True

    def _begin_answer(self, text: str, checked: int = 0) -> tuple[str, str, bool]:
        """Go on with `text` as the answer; its first `checked` characters are no marks."""
        self._answering = True
        lead = ("\n\n" if self._apart and self._given else "") + text[:checked]
        self._held, self._apart = text[checked:], False
        return self._say(lead), "", bool(self._held) or self._ended

    def _inside(self, close: re.Pattern[str]) -> tuple[str, str, bool]:
        end = close.search(self._held)
        if end is None:
            # The end tag may be divided between two pieces.
            keep = len(self._held) if self._ended else max(0, len(self._held) - _LONGEST_CLOSE)
            reasoning, self._held = self._held[:keep], self._held[keep:]
            return "", reasoning, False
        reasoning, self._held = self._held[: end.start()], self._held[end.end() :]
        # Some models think several times before they answer.
        self._close, self._thought = None, True
        return "", reasoning, True

    def _answer(self) -> tuple[str, str, bool]:
        """Return the text up to what may be the end of the turn or of a message."""
        text, at = "", 0
        while mark := _MARKS.search(self._held, at):
            text += self._say(self._held[at : mark.start()])
            rest = self._held[mark.end() :]
            verdict = None if self._code.inside else self._judge_rest(mark, text, rest)
            if verdict == "wait":
                self._held = self._held[mark.start() :]
                return text, "", False
            if verdict is not None:
                self._held, self._answering, self._apart = verdict, False, True
                return text, "", True
            at = mark.end()
            text += self._say(mark[0])
        text_end = len(self._held) if self._ended else self._safe_end(at)
        text, self._held = text + self._say(self._held[at:text_end]), self._held[text_end:]
        return text, "", False

    def _judge_rest(self, mark: re.Match[str], text: str, rest: str) -> str | None:
        """Return what follows a mark that ends the message, `wait` if more has to be seen, None if it is text."""
        if mark["ends"]:
            return self._judged_end(mark[0], rest)
        if mark["head"]:
            return self._judged_head(mark[0] + rest)
        if mark["close"]:
            return self._judged_close(mark[0], rest)
        if not rest:  # at the very end: thoughts that never came
            return rest if self._ended else "wait"
        if mark[0].lower() not in _LATER or not self._code.begins_line:
            self._opened.add(mark[0].lower())
            return None
        return mark[0] + rest

    def _judged_end(self, tokens: str, rest: str) -> str | None:
        if self._struck and tokens.strip() == "</s>":
            return None
        if not rest:
            return rest if self._ended else "wait"
        if any(rest.lower().startswith(turn) for turn in _TURNS) or _OTHER_TURN.match(rest):
            return rest
        begun = not self._ended and any(mark.lower().startswith(rest.lower()) for mark in (*_TURNS, *_ENDS))
        return "wait" if begun else None

    def _judged_head(self, text: str) -> str | None:
        if HEAD.match(text) or _OTHER_TURN.match(text):
            return text
        return "wait" if begins_head(text) and not self._ended else None

    def _judged_close(self, tag: str, rest: str) -> str | None:
        if _OPENING_OF[tag.lower()] in self._opened or self._code.last in "\"'“‘«":
            return None
        # In a sentence it may be a word; `</think>` and tokens can hardly be.
        if tag.startswith("</") and tag[2:-1].lower() != "think" and not self._code.begins_line:
            if not rest and not self._ended:
                return "wait"
            if rest[:1] not in ("", "\n") and self._code.last not in _SENTENCE_ENDS:
                return None
        self.thoughts, self._thought = self._given, True
        return rest

    def _safe_end(self, start: int) -> int:
        """Return the offset in what is held from which on a mark may begin."""
        for first in _FIRST.finditer(self._held, max(start, len(self._held) - _LONGEST_MARK)):
            tail = self._held[first.start() :].lower()
            if any(mark.startswith(tail) for mark in _HELD):
                return first.start()
        return len(self._held)

    def _say(self, text: str) -> str:
        self._struck = self._struck or "<s>" in text
        self._given += len(text)
        self._code.feed(text)
        return text


class _CodeState:
    """Whether the end of a text stands in code of Markdown, kept while the text grows."""

    def __init__(self) -> None:
        self.last = "\n"
        self._line = ""  # the beginning of the last line
        self._ticks = 0
        self._fence = ""

    @property
    def inside(self) -> bool:
        """Whether what comes next stands in a fence or between backticks."""
        return bool(self._fence) or self._ticks % 2 == 1

    @property
    def begins_line(self) -> bool:
        """Whether only blanks stand before it in its line."""
        return not self._line.strip()

    def feed(self, text: str) -> None:
        """Add a piece of the text."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self._end_line()
            self._line = (self._line + line)[:_LINE_START]
            self._ticks += line.count("`")
        self.last = text[-1:] or self.last

    def _end_line(self) -> None:
        fence = self._line.lstrip()[:3]
        if self._fence:
            self._fence = "" if fence == self._fence else self._fence
        elif fence in ("```", "~~~"):
            self._fence = fence
        self._line, self._ticks = "", 0


_LINE_START = 40


# The heads of messages in harmony, the format of gpt-oss, as servers pass them on that do not know it: a head is
# `<|start|>assistant to=NAME<|channel|>commentary to=NAME <|constrain|>json<|message|>`, of which all parts but the
# last may be missing, and the recipient stands in one place or the other.

LONGEST_HEAD = 200
"""Characters; longer texts that begin like a head are none."""
HEAD = re.compile(
    r"(?:<\|start\|>\s*)?(?:assistant\s*)?(?:to=(?P<first>[\w.\-]+)\s*)?"
    r"(?:<\|channel\|>\s*)?(?P<channel>analysis|commentary|final)?\s*(?:to=(?P<second>[\w.\-]+)\s*)?"
    r"(?:<\|constrain\|>\s*\w*|json|code)?\s*<\|message\|>"
)
_BEGUN = re.compile(
    r"(?:(?:assistant|analysis|commentary|final)\s*(?:t|to|to=[\w.\-]*\s*(?:\s[a-z]{0,4}\s*)?)?)?"
    # Behind a token all may come; without one, words that an answer begins with are not held back.
    r"(?:<\|(?:start|channel|constrain)\|>(?:<\|(?:channel|constrain)\|>|[\w.=\-]+|\s+)*)?(?:<[|a-z]*>?)?"
)


def recipient(head: re.Match[str]) -> str:
    """Return the name of the tool that the message with this head (a match of `HEAD`, the format harmony) is for, ''
    for one that is text.
    """
    return head["second"] or head["first"] or ""


def begins_head(text: str) -> bool:
    """Return whether a text of fewer than 200 characters is the beginning of a head of harmony, so that it can become
    one.
    """
    return len(text) < LONGEST_HEAD and _BEGUN.fullmatch(text) is not None


def call_head(name: str) -> str:
    """Return the head of a message for a tool, in the one spelling that the parser of calls is given."""
    return f"<|channel|>commentary to={name}<|message|>"
