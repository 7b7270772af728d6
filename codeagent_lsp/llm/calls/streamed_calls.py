"""The calls of a reply that is streamed: all of them at its end, and until then the text that may be shown, as it
certainly belongs to none.

Not here: what of a whole reply is a call (`toolcalls.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from codeagent_lsp.llm.calls import dialects, jsontext
from codeagent_lsp.llm.calls.toolcalls import CALL_FENCES, CALL_HEAD, LONG, NEXT, SHORT, Extraction, extract
from codeagent_lsp.messages import ToolCall, ToolSpec

_WORDS = tuple(marker for marker in dialects.READERS if marker[0].isalpha())
_HINT = re.compile(r"[<`~]")
_ACTION = re.compile(r"[ \t]*A(?:c(?:t(?:i(?:on?)?)?)?)?\Z|[ \t]*Action(?: \d*)?(?::[ \t]*[\w.\-]{0,64}[\[(]?)?\Z")
# Its input is due in the next line; and the wrapper of a call, alone in its line.
_ACTION_BEGUN = re.compile(
    r"^[ \t]*[*_]*(?:Action|动作|行动|操作)(?: \d+)?[*_]*[:：][*_]*[ \t]*`?[A-Za-z_][\w.\-]*[`*_ \t]*\n"
    r"[^\n{]{0,30}(?:\n?`{0,3}\w*\n?)\Z|^[ \t]*<[\w:.\-]{0,40}>?\s*\Z",
    re.MULTILINE,
)
_WRAPPER = re.compile(r"^[ \t]*<[\w:.\-]{1,40}>\s*\Z", re.MULTILINE)
_CALL_START = re.compile(r"\s*(?:[<{\[]|[\w.]+\()")


class StreamParser:
    """Extracts the calls of a reply while it is streamed.

    Nothing is a call before the reply has ended, as the following text decides whether a block was a call or an
    example, and a reply that breaks off must not run anything: `feed` returns no calls, `close` returns all.
    `visible` returns what may be shown meanwhile.
    """

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._tools = tuple(tools)
        self._stream_filter = StreamFilter()
        self._pieces: list[str] = []
        self._fresh: list[str] = []
        self._shown: list[str] = []
        self._result: Extraction | None = None

    def feed(self, chunk: str) -> list[ToolCall]:
        """Take the next piece of the reply's text; always returns [], as calls are known only at the end (`close`)."""
        self._pieces.append(chunk)
        self._fresh.append(chunk)
        return []

    def visible(self) -> str:
        """Return the text that has become safe to show since the last call: none of it can belong to a tool call; ''
        for none.
        """
        shown = self._stream_filter.feed("".join(self._fresh))
        self._fresh.clear()
        self._shown.append(shown)
        return shown

    def close(self) -> list[ToolCall]:
        """Return all calls of the complete reply, [] for none; after the last `feed`."""
        return list(self.result().calls)

    def result(self) -> Extraction:
        """Return the extraction of the complete reply, computed once; pieces fed after it do not count."""
        if self._result is None:
            self._result = extract("".join(self._pieces), self._tools)
        return self._result

    def rest(self) -> str:
        """Return the part of the answer's text that `visible` held back although it is text, after the last `feed`; ''
        if the text shown is not its beginning.
        """
        shown = "".join(self._shown)
        text = self.result().text
        # What was shown cannot be taken back: where it is not the beginning of the text, nothing is added behind it.
        return text[len(shown) :] if text.startswith(shown) else ""


class StreamFilter:
    """Holds back what may belong to a tool call in one reply while it streams; one object for each reply. What it still
    holds at the end is not returned: see `StreamParser.rest`.
    """

    def __init__(self) -> None:
        self._text = ""  # text not shown yet, after one shown character, which may be a line break
        self._start = 0
        self._inside = ""  # the ticks of an open fence with ordinary code, which is shown as it comes
        self._closed = False
        self._patience = 0  # length of the text at which the held back part is examined again

    def feed(self, piece: str) -> str:
        """Add a piece and return the text that may be shown now; '' once a call has certainly begun."""
        # Behind a call nothing is shown any more; what of it is text comes with the end of the reply.
        if self._closed:
            return ""
        self._text += piece
        if len(self._text) < self._patience:
            return ""
        end = self._safe_until()
        shown = self._text[self._start : end]
        if shown:
            # One character stays, so that `^` matches only where a line really begins.
            self._text, self._start = self._text[end - 1 :], 1
        held = len(self._text) - self._start
        # A long part that is held back is looked at each time it has grown by a quarter: at every token it would be
        # quadratic.
        self._patience = len(self._text) + held // 4 if held > LONG else 0
        return shown

    def _safe_until(self) -> int:
        position = self._start
        while True:
            if self._inside:
                close = _closing(self._inside).search(self._text, position)
                if close is None:
                    # Whole lines of code are shown; the last one may become the closing fence.
                    return max(position, self._text.rfind("\n") + 1)
                self._inside, position = "", close.end()
            # The same search as over the whole reply, or it would show what is taken for a call in the end.
            match = NEXT.search(self._text, position)
            if match is None:
                if begun := _ACTION_BEGUN.search(self._text, max(position, len(self._text) - LONG)):
                    return begun.start()
                return self._before_hint(max(position, self._text.rfind("\n") + 1))
            after = self._after(match)
            if after is None:
                before = max(self._start, match.start() - LONG)
                wrapper = _WRAPPER.search(self._text, before, match.start())
                return wrapper.start() if wrapper else match.start()
            position = after

    def _before_hint(self, start: int) -> int:
        """Return the offset in the last line at which a marker may begin, else the end of the text."""
        line = self._text.rfind("\n", 0, start) + 1
        # Only at the beginning of a line, which is not known where a part of it was shown.
        if line == start and (line or not self._start):
            word = self._text[start:].lstrip(" \t")
            if _ACTION.match(self._text, start) or (word and any(mark.startswith(word) for mark in _WORDS)):
                return start
        for hint in _HINT.finditer(self._text, start):
            tail = self._text[hint.start() :]
            # Markers are short: a long tail cannot become one any more.
            if len(tail) <= LONG and (tail[0] in "`~" or any(mark.startswith(tail) for mark in dialects.READERS)):
                return hint.start()
        return len(self._text)

    def _after(self, match: re.Match[str]) -> int | None:
        """Return the offset to go on at if `match` is certainly no call; None while it may be one."""
        if match["code"]:
            return match.end()
        if match["marker"] or match["action"]:
            # What follows a call is shown, if at all, when the reply has ended.
            self._closed = True
            return None
        return self._after_fence(match) if match["fence"] else self._after_json(match.start())

    def _after_fence(self, match: re.Match[str]) -> int | None:
        if not match[0].endswith("\n"):
            return None
        body = self._text[match.end() :]
        if match["info"].strip().lower() not in CALL_FENCES or (
            len(body.strip()) >= SHORT and not _CALL_START.match(body)
        ):
            self._inside = match["ticks"]
            return match.end()
        close = _closing(match["ticks"]).search(self._text, match.end())
        following = self._text[close.end() :].lstrip() if close else ""
        return close.end() if close and following and following[0] not in "`~" else None

    def _after_json(self, start: int) -> int | None:
        ahead = self._text[start : start + 3 * SHORT]
        if re.match(r"\[\s*[\w.\-]+\s*\(", ahead):
            return None  # perhaps a list of Python calls
        # No key and no call at its beginning: a list of numbers, a link of Markdown.
        if len(ahead) >= SHORT and not re.match(r"[\[{\s]+[\"']?\w+[\"']?\s*[:(]", ahead):
            return start + 1
        end = jsontext.span(self._text, start)
        if end is None:
            return None
        try:
            value = jsontext.loads(self._text[start:end])
            # `{"tool": "todoread"}` is a call without arguments.
            # So is `{"read_file": {…}}`.
            key, inner = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
            named = key in dialects.NAME_KEYS or isinstance(inner, dict)
            return None if named or dialects.from_value(value) else end
        except ValueError:
            # Broken, but it begins as a call: if it is told as one, it was not for the user.
            return None if CALL_HEAD.match(self._text, start) else end


def _closing(ticks: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*{re.escape(ticks)}[ \t]*(?:\n|\Z)", re.MULTILINE)
