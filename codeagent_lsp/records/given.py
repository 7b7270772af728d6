"""Secrets that belong to a name with something between both: as an argument (`.password("…")`,
`expect(password).toBe("…")`), as a fallback (`env.SECRET || "…"`, `default="…"`), in the next element of markup
(`<key>Secret</key> <string>…</string>`), or as the only word of a directive (`requirepass …`).

Such places hold other texts as well, so only what looks like a password or a token counts. Not here: values right
behind an operator (`assignments.py`), arguments of functions that are known (`positions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from codeagent_lsp.records.literals import is_key, piece
from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.names import Name, NameKind
from codeagent_lsp.records.values import (
    LEAST_APART,
    is_other_name,
    is_passphrase,
    looks_generated,
    looks_scrambled,
    looks_spoken,
    quoted_reveals,
    repeats,
)

FARTHEST = 240  # characters from a name to its fallback
MOST = 4  # fallbacks of one name
_Span = tuple[int, int]
_LITERAL = r"(?=[A-Za-z@$&]{0,3}#?\\{0,7}[\"'`])"
_CALL = r"[A-Za-z_][\w.:]{0,40}!?\([ \t]?"
_MADE = rf"(?:(?:{_CALL}){{1,3}}(?:[0-9]{{1,6}}\)[ ])?|(?:lambda:|\(\)[ \t]?[=-]>)[ \t])"
_ATTRIBUTE = r"[ \t]+[\w:.-]{1,40}=\"[^\"<>\n]{0,200}\""
_ARGUMENT = re.compile(
    r"(?:/i?)?[\])]{0,2}(?:\\{0,7}[\"'`])?(?:\.(?:into|to_string|to_owned)\(\))?[\])]{0,3}(?:"
    r"[ \t]{1,4}"  # (def api-key "…")
    # .password("…"), apiKey{"…"}, fetch("SECRET") { "…" }, password() { return "…" }
    r"|(?:\(\))?[ \t]?[({]\s{0,80}(?:return[ \t])?"
    r"|[ \t]?,\s{1,40}(?:\w{1,20}(?:=|:[ \t])|\[)?"  # strcpy(password, "…"), fill_in "Password", with: "…"
    r"|\.\w{1,30}(?:\([ \t]?|[ \t]=[ \t])"  # expect(password).toBe("…")
    # password: Some("…"), password: str = Option("…"), [password] => string(16) "…", getToken: () => "…"
    rf"|[ \t]?(?::[ \t]?[\w.\[\] |]{{1,40}}=|=>?|:|:=)\s{{1,40}}{_MADE}"
    rf"|(?:{_ATTRIBUTE}){{0,6}}[ \t]+(?:value|content|defaultValue)="  # type="password" name="p" value="…"
    rf"){_LITERAL}"
)
_SIGNS = ("||", "??", "? ", "?:", "//", " or ", "efault", "lse", "wrap_or", "oalesce(")
_FALLBACK = re.compile(
    r"(?:\|\|=?|\?\?=?|\?(?=[ \t])|\?:|(?<=[\w)}\]][ \t])//|\bor\b|\belse\b"
    r"|default(?:[_-]?(?:value|factory))?(?:_t)?[\"']?[ \t]*[=:(]|else(?:_?get)?\("
    r"|unwrap_or(?:_else)?\(|coalesce\([^()\n\"']{0,60},)"
    rf"\s{{0,40}}(?:\|\w{{0,4}}\|[ \t]?|\(\)[ \t]?->[ \t]?)?(?:{_MADE}|[({{][ \t]?)?{_LITERAL}",
    re.IGNORECASE,
)
_ELEMENT = re.compile(
    rf"(?:\"?(?:{_ATTRIBUTE}){{0,6}}[ \t]*(?:>|&gt;)|</[\w:-]{{1,40}}>)"
    r"(?:\s{0,80}<[\w:-]{1,40}(?:[ \t][^<>\n]{0,80})?>){0,2}\s{0,80}"
    r"(?P<value>[^\s<>&]{6,65536}+)(?=\s{0,80}(?:<|&lt;)/)"
)
_ITEM = re.compile(r"[\"']?,?[ \t]*\r?\n[ \t]{0,80}-[ \t]+(?P<value>[^\s\"'`]{6,65536}+)")
_DIRECTIVE = re.compile(
    r"[ \t]{1,20}(?:[0-9][ \t])?(?P<value>(?![*&\[])[^\s\"'`<>(){}|]{8,4096}+)[ \t]{0,20};?(?=\r?\n|\Z)"
)
_BEFORE_DIRECTIVE = re.compile(
    r"(?:\A|\n)[ \t]{0,40}(?:(?:[\w.-]{1,30}[ \t]){0,4}(?:\w{0,20}set(?:_header)?|enable)[ \t][\w./:-]{0,80})?\Z"
)
_NAME_IN_CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_LONGEST_BEFORE = 160
_AHEAD = 1_000  # characters that are searched at once
_LONGEST_SIGN = 120  # characters from a fallback's sign to its literal


class Given:
    """Finds the values that are given to the names of one text. It remembers the parts without a fallback, so that
    names close to one another do not make it look repeatedly.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._no_fallback = (0, 0)

    def may_be(self, name: Name) -> bool:
        """Return whether something may be given to a name. False is certain, True is not; this is cheap."""
        if name.kind not in (NameKind.SECRET, NameKind.PERHAPS):
            return False
        return self._may_fall_back(name) or bool(_ARGUMENT.match(self._text, name.end))

    def secret(self, name: Name, end: Callable[[], int]) -> _Span | None:
        """Return the span (character offsets) of the secret that is given to a name in its statement, of which `end`
        returns the offset of the end; None if there is none.
        """
        judge = _is_given if name.kind is NameKind.SECRET else looks_generated
        for start, stop in self._spans(name, end):
            value = self._text[start:stop]
            if MARK.search(value) or _NAME_IN_CODE.fullmatch(value) or repeats(name.text, value):
                continue
            if judge(value):
                return start, stop
        return None

    def _spans(self, name: Name, end: Callable[[], int]) -> Iterator[_Span]:
        text = self._text
        argument = _ARGUMENT.match(text, name.end)
        if argument and (found := piece(text, argument.end())) and not is_key(text, found):
            yield found.start, found.end
        if element := _ELEMENT.match(text, name.end):
            yield element.span("value")
        if name.text.startswith("--") and (item := _ITEM.match(text, name.end)):
            yield item.span("value")
        if (directive := _DIRECTIVE.match(text, name.end)) and _begins_line(text, name.start):
            yield directive.span("value")
        if self._may_fall_back(name):
            for fallback in self._fallbacks(name.end, end()):
                if found := piece(text, fallback):
                    yield found.start, found.end

    def _may_fall_back(self, name: Name) -> bool:
        near = self._text[name.end : name.end + FARTHEST]
        return any(sign in near for sign in _SIGNS)

    def _fallbacks(self, start: int, end: int) -> Iterator[int]:
        """Yield where the literals of fallbacks between two offsets begin."""
        first, last = self._no_fallback
        place, end = last if first <= start < last else start, min(end, start + FARTHEST)
        for _ in range(MOST):
            if place >= end:
                return
            # Far beyond the end, so that the next names know as well.
            ahead = place + _AHEAD
            found = _FALLBACK.search(self._text, place, ahead)
            self._no_fallback = (place, found.start() if found else ahead - _LONGEST_SIGN)
            if found is None or found.start() >= end:
                return
            yield found.end()
            place = found.end()


def _begins_line(text: str, start: int) -> bool:
    line = max(text.rfind("\n", 0, start), start - _LONGEST_BEFORE, 0)
    return bool(_BEFORE_DIRECTIVE.match(text, line, start))


def _is_given(value: str) -> bool:
    if is_passphrase(value, LEAST_APART) or looks_scrambled(value):
        return True
    return looks_spoken(value) and quoted_reveals(value, sure=True) and not is_other_name(value)
