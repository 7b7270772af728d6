"""Filter for streamed replies: passes on text that certainly does not belong to a tool call.

Not here: parsing the calls once the reply has ended (`toolcalls.py`).
"""

from __future__ import annotations

import re

from codeagent_lsp.llm.calls import dialects, jsontext
from codeagent_lsp.llm.calls.bare_calls import ACTION_INPUT

CALL_FENCES = ("", "json", "jsonc", "json5", "tool_call", "tool_calls", "tool_code", "tool", "xml")
MARKER = "|".join(re.escape(marker) for marker in sorted(dialects.READERS, key=len, reverse=True))
NEXT = re.compile(
    rf"(?P<fence>^[ \t]*(?P<ticks>`{{3,}}|~{{3,}})(?P<info>[^\n`]*)(?:\n|\Z))"
    r"|(?P<action>^[ \t]*Action(?: \d+)?:[ \t]*(?P<called>[A-Za-z_][\w.\-]*)"
    rf"(?=[\[(]|{ACTION_INPUT.pattern}))"
    rf"|(?P<code>(?<!`)`(?!`)[^`\n]+`)|(?P<marker>{MARKER})|(?P<json>[\[{{])",
    re.MULTILINE,
)

_WORDS = tuple(marker for marker in dialects.READERS if marker[0].isalpha())
_HINT = re.compile(r"[<`~]")
_ACTION = re.compile(r"[ \t]*A(?:c(?:t(?:i(?:on?)?)?)?)?\Z|[ \t]*Action(?: \d*)?(?::[ \t]*[\w.\-]{0,64}[\[(]?)?\Z")
_CALL_START = re.compile(r"\s*(?:[<{\[]|[\w.]+\()")
_SHORT = 20
_LONG = 200


class StreamFilter:
    """Filters one reply: each `feed` of a piece returns the text that has become safe to show."""

    def __init__(self) -> None:
        self._text = ""  # text not shown yet, after one shown character, which may be a line break
        self._start = 0
        self._inside = ""  # the ticks of an open fence with ordinary code, which is shown as it comes
        self._closed = False
        self._patience = 0  # length of the text at which the held back part is examined again

    def feed(self, piece: str) -> str:
        """Return the text that may be shown now; '' once a call has certainly begun."""
        if self._closed:
            return ""
        self._text += piece
        if len(self._text) < self._patience:
            return ""
        end = self._safe_until()
        shown = self._text[self._start : end]
        if shown:
            self._text, self._start = self._text[end - 1 :], 1
        held = len(self._text) - self._start
        self._patience = len(self._text) + held // 4 if held > _LONG else 0
        return shown

    def _safe_until(self) -> int:
        position = self._start
        while True:
            if self._inside:
                close = _closing(self._inside).search(self._text, position)
                if close is None:
                    return max(position, self._text.rfind("\n") + 1)
                self._inside, position = "", close.end()
            match = NEXT.search(self._text, position)
            if match is None:
                return self._before_hint(max(position, self._text.rfind("\n") + 1))
            after = self._after(match)
            if after is None:
                return match.start()
            position = after

    def _before_hint(self, start: int) -> int:
        """Return the offset in the last line at which a marker may begin, else the end of the text."""
        line = self._text.rfind("\n", 0, start) + 1
        if line == start and (line or not self._start):
            word = self._text[start:].lstrip(" \t")
            if _ACTION.match(self._text, start) or (word and any(mark.startswith(word) for mark in _WORDS)):
                return start
        for hint in _HINT.finditer(self._text, start):
            tail = self._text[hint.start() :]
            if len(tail) <= _LONG and (tail[0] in "`~" or any(mark.startswith(tail) for mark in dialects.READERS)):
                return hint.start()
        return len(self._text)

    def _after(self, match: re.Match[str]) -> int | None:
        """Return the offset to go on at if `match` is certainly no call; None while it may be one."""
        if match["code"]:
            return match.end()
        if match["marker"] or match["action"]:
            self._closed = True
            return None
        return self._after_fence(match) if match["fence"] else self._after_json(match.start())

    def _after_fence(self, match: re.Match[str]) -> int | None:
        if not match[0].endswith("\n"):
            return None
        body = self._text[match.end() :]
        if match["info"].strip().lower() not in CALL_FENCES or (
            len(body.strip()) >= _SHORT and not _CALL_START.match(body)
        ):
            self._inside = match["ticks"]
            return match.end()
        close = _closing(match["ticks"]).search(self._text, match.end())
        following = self._text[close.end() :].lstrip() if close else ""
        return close.end() if close and following and following[0] not in "`~" else None

    def _after_json(self, start: int) -> int | None:
        ahead = self._text[start : start + 3 * _SHORT]
        if re.match(r"\[\s*[\w.\-]+\s*\(", ahead):
            return None  # perhaps a list of Python calls
        if len(ahead) >= _SHORT and not re.match(r"[\[{\s]+[\"']?\w+[\"']?\s*[:(]", ahead):
            return start + 1
        end = jsontext.span(self._text, start)
        if end is None:
            return None
        try:
            return None if dialects.from_value(jsontext.loads(self._text[start:end])) else end
        except ValueError:
            return end


def _closing(ticks: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*{re.escape(ticks)}[ \t]*(?:\n|\Z)", re.MULTILINE)
