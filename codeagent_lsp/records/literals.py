"""Reading of a literal of any language: quotes in any escaping, triple, raw, multi-line, joined from pieces, heredocs.

Says where a literal begins and ends; never whether it is a secret (`values.py`). Every step is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 65_536
MOST_ARGUMENTS = 200

# Prefixes that tools put before the lines of a file: `12|`, `src/a.py:12:`, the `+` of a diff.
MARGIN = r"(?:[0-9]{1,7}\||[^\s:|]{1,160}[:-][0-9]{1,7}[:-]|[+-])"
_NEXT_LINE = rf"[ \t]{{0,40}}\r?\n{MARGIN}?[ \t]{{0,80}}"
_QUOTE = r"\\{0,7}[\"'`]|\\u0022|\\u0027|&quot;|&apos;|&#3[49];|%22|%27"
_RAW = r"R\"(?:\w{0,16})\("  # of C++: `R"delimiter(…)delimiter"`
_INDENTED = r"''(?=[ \t]*\r?\n[ \t]+[^\s']+\s+'')"  # of Nix, when it is one word
# Also with the prefixes of languages, such as `f"`, `r#"`, `$@"`.
_OPENING = re.compile(rf"(?!{_RAW}|{_INDENTED})(?:[A-Za-z@$]{{0,3}}|R)#{{0,3}}(?P<quote>\"\"\"|'''|{_QUOTE})")
# `[[` of Lua, CDATA, `$$` of PostgreSQL, `%q(` of Ruby, `q(` of Perl.
_LONG = re.compile(rf"\[(=*)\[|<!\[CDATA\[|\$\$|{_RAW}|{_INDENTED}|(?:%[qQwW]?|\bqq?)([({{<\[|!])")
_LONG_ENDS = {"(": ")", "{": "}", "<": ">", "[": "]"}
_HEREDOC = re.compile(r"[^\n]{0,60}?<<[-~<]?[ \t]?\\?[\"']?(?P<word>[A-Za-z_]\w{0,40})[\"']?[^\n]{0,40}\r?\n")
# Pieces stand side by side, or are joined by `+`, `.` (PHP), `..` (Lua), `&` (Basic), `<>` (Elixir), `~`; single
# characters also by commas.
_JOINED = re.compile(
    rf"(?:\)?(?:{_NEXT_LINE})?\.(?:concat|append|plus|push_str)\([ \t]{{0,8}}"
    rf"|[ \t]{{0,20}}\\?(?:{_NEXT_LINE})?(?:\+|\.\.?|&(?!&)|<>|~|,(?=\s{{0,20}}'(?:[^'\\]|\\.)'))?"
    rf"[ \t]{{0,20}}\\?(?:{_NEXT_LINE})?)(?=[A-Za-z@$]{{0,3}}(?P<quote>{_QUOTE}))"
)
_JOINS = " \t\r\n\\+.&<~,)"
_SECOND_KEY = re.compile(r"[ \t]{0,20}(?:[:=]|\.\w)")
_KEY = re.compile(r"[ \t]{0,20}(?::|=>)")
# `b"…"`, `key=b"…"`, `Some("…")`, `[]byte("…")`, `Encoding.UTF8.GetBytes("…")`, `Base64.getDecoder().decode("…")`
_WRAPPED = re.compile(
    r"(?:\w{1,30}(?:[ ]?=[ ]?|:[ ]))?(?:&?(?:b|rb|u)?(?=[\"'`]|qq?[({<\[|!])"
    r"|(?:Some|bytes|\[\]byte|(?:\w{1,20}(?:\(\))?(?:\.|::|->)){1,4}"
    r"(?:GetBytes|from|from[hH]ex|FromBase64String|unhexlify|decode(?:Hex|Base64)?)|b64decode|base64_decode|hex2bin|unhexlify)\((?=b?[\"'`])b?)"
)
_NO_LITERAL = re.compile(r"(?:[^,()\[\]{}\n\"'`]|\{[^{}\n]{0,200}\}|\[[^\[\]\n]{0,200}\]|\([^()\n]{0,200}\)){1,80}+")
_CALLED = re.compile(r"\)?(?:\.\w{1,30}\(\))?")
_COMMA = re.compile(r"\s{0,20},\s{0,80}")
_LONE_LINES = re.compile(rf"(?:(?:\\n|\\)?\r?\n{MARGIN}?[ \t]{{0,80}}[^\s\"'`<>]++)+(?:{_NEXT_LINE})?")
_ESCAPED_LINES = re.compile(r"\n(?:[^\n]*\\\r?\n)*")


class Literal(NamedTuple):
    """A literal in a text: `start:end` is the span of its content in characters, `value` the text it means, `after` the
    offset behind its closing quote.
    """

    start: int
    end: int
    value: str
    after: int


def literal(text: str, at: int) -> Literal | None:
    """Return the literal that begins at the offset `at`, together with the pieces joined to it; None if none begins
    there.
    """
    first = piece(text, at)
    if first is None:
        return None
    values, last = [first.value], first
    while (
        text[last.after : last.after + 1] in _JOINS
        and (joined := _JOINED.match(text, last.after))
        and (more := piece(text, joined.end()))
    ):
        # Side by side without anything between, or in other quotes, they are two texts.
        apart = joined.end() == last.after or joined["quote"] not in text[last.end : last.after]
        if apart or not more.value or " " in more.value or _SECOND_KEY.match(text, more.after):
            break
        values.append(more.value)
        last = more
    return Literal(first.start, last.end, "".join(values), last.after)


def piece(text: str, at: int) -> Literal | None:
    """Return the literal that begins at the offset `at`, without the pieces that are joined to it; None if none begins
    there.
    """
    opening = _OPENING.match(text, at)
    if opening is None:
        long = _LONG.match(text, at)
        return _long(text, long) if long else None
    quote, start = opening["quote"], opening.end()
    # A triple quote: `%22` and the like have three characters, too.
    if len(quote) == 3 and quote[0] in "\"'" and quote[0] == quote[2]:
        end = text.find(quote, start, start + LONGEST)
        if end < 0:  # an empty text and something behind it, or a cut one
            end = _line_end(text, start)
        return _trim(text, start, end, end + 3)
    end = closing(text, start, quote)
    return Literal(start, end, text[start:end], min(len(text), end + len(quote)))


def is_key(text: str, found: Literal) -> bool:
    """Return whether a literal of `text` is the key of a mapping: a colon or an arrow (`=>`) follows."""
    return bool(_KEY.match(text, found.after))


def arguments(text: str, at: int) -> Iterator[Literal | None]:
    """Yield the literals that are separated by commas from the offset `at` on, at most 200; None for an argument that
    is not a literal.
    """
    for _ in range(MOST_ARGUMENTS):
        wrapped = _WRAPPED.match(text, at)
        found = literal(text, wrapped.end()) if wrapped else None
        if found:
            called = _CALLED.match(text, found.after)
            after = called.end() if called else found.after
        elif word := _NO_LITERAL.match(text, at):
            after = word.end()
        else:
            return
        yield found
        comma = _COMMA.match(text, after)
        if comma is None:
            return
        at = comma.end()


def heredoc(text: str, at: int) -> Literal | None:
    """Return the heredoc that the line at the offset `at` announces; None if it announces none, or its end is not
    within 65,536 characters.
    """
    head = _HEREDOC.match(text, at)
    if head is None:
        return None
    end = re.compile(rf"^{MARGIN}?[ \t]*{head['word']}\b", re.MULTILINE).search(text, head.end(), head.end() + LONGEST)
    if end is None:
        return None
    return _trim(text, head.end(), end.start(), end.end())


def _long(text: str, opening: re.Match[str]) -> Literal | None:
    head = opening[0]
    if opening[2]:
        close = _LONG_ENDS.get(opening[2], opening[2])
    elif head[0] == "R":
        close = f'){head[2:-1]}"'
    elif head == "''":
        close = head
    else:
        close = {"<": "]]>", "$": "$$"}.get(head[0]) or f"]{opening[1]}]"
    end = text.find(close, opening.end(), opening.end() + LONGEST)
    return _trim(text, opening.end(), end, end + len(close)) if end >= 0 else None


def _trim(text: str, start: int, end: int, after: int) -> Literal:
    """Return the content without the white space and the margins of tools around it."""
    content = text[start:end]
    begin = re.compile(rf"\\?\s*\n{MARGIN}?[ \t]*|\s*").match(content)
    stop = len(re.sub(rf"\s*\n{MARGIN}?[ \t]*\Z", "", content[-300:].rstrip())) - len(content[-300:])
    start, end = start + (begin.end() if begin else 0), end + stop
    return Literal(start, max(start, end), text[start:end], after)


def closing(text: str, start: int, quote: str) -> int:
    """Return the offset at which a quoted value that begins at `start` ends: that of its closing `quote` or, if that is
    missing, of the end of the line; looks no further than 65,536 characters.
    """
    end = _find(text, quote, start, start + LONGEST)
    line = text.find("\n", start, end if end >= 0 else start + LONGEST)
    if line < 0:
        return end if end >= 0 else min(len(text), start + LONGEST)
    if end >= 0 and _goes_on(text, start, line, end, quote):
        return end
    return line - 1 if line > start and text[line - 1] == "\r" else line


def _goes_on(text: str, start: int, line: int, end: int, quote: str) -> bool:
    """Return whether a text goes on after the end of a line: after a backslash, or as lines of one word each."""
    if quote == "`" and " " not in text[start:end]:
        return True
    if text[line - 1] == "\\" and _is_escaped(text, start, line):
        more = _ESCAPED_LINES.match(text, line)
        return more is not None and end <= _line_end(text, more.end())
    lines = _LONE_LINES.match(text, line, start + LONGEST)
    return lines is not None and lines.end() == end


def _find(text: str, quote: str, start: int, limit: int) -> int:
    end = text.find(quote, start, limit)
    while end > start and text[end - 1] == "\\" and _is_escaped(text, start, end):
        end = text.find(quote, end + 1, limit)
    return end


def _is_escaped(text: str, start: int, end: int) -> bool:
    backslashes = 0
    # Bounded, as a long run of backslashes would take quadratic time.
    while end - backslashes > start and text[end - 1 - backslashes] == "\\" and backslashes < 64:
        backslashes += 1
    return backslashes % 2 == 1


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + LONGEST)
    if end < 0:
        return min(len(text), start + LONGEST)
    return end - 1 if end > start and text[end - 1] == "\r" else end
