"""Secrets that stand apart from their name: with something between both, or in the column of a table that it heads.

Between both, as an argument (`.password("…")`, `expect(password).toBe("…")`), as a fallback (`env.SECRET || "…"`,
`default="…"`), in the next element of markup (`<key>Secret</key> <string>…</string>`), or as the only word of a
directive (`requirepass …`). Tables are CSV, Markdown, what databases print, and `INSERT … VALUES`; the heading is the
first line. Such places hold other texts as well, so only what looks like a password or a token counts. Not here: values
right behind an operator, and tables of two columns with the name in the first one (`assignments.py`), arguments of
functions that are known (`positions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from codeagent_lsp.records.literals import MARGIN, Literal, arguments, is_key, piece
from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.names import Name, NameKind
from codeagent_lsp.records.values import (
    LEAST_APART,
    is_other_name,
    is_passphrase,
    looks_generated,
    looks_random,
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
MOST_ROWS = 1_000
LONGEST_HEADING, LONGEST_ROW = 1_000, 20_000
_MARGIN = re.compile(f"(?:{MARGIN})?")
_HEADS = re.compile(r"[\"'`*]{0,3}[ \t]*(?:[|│,;\r\n)]|\t|  |</th|\Z)")  # what is behind a heading
_HEADING = re.compile(r"[ \t]*[\"'`*]{0,3}\w[\w ./#-]{0,60}(?:\([\w ./-]{1,30}\))?[\"'`*]{0,3}[ \t]*")
_RULER = re.compile(r"[ \t]*[|+:=├┌└─-][-|+:=├┼┤┌┬┐└┴┘─ \t]*")
_CELL = re.compile(r"[ \t]*(?P<q>[\"'`]?)(?P<value>[^\s\"'`]{8,65536})(?P=q)[ \t]*")
_HEADING_CELL = re.compile(r"<th[\s>]")
_DATA_CELL = re.compile(r"<td(?:\s[^<>]{0,200})?>\s{0,80}(?:<\w{1,10}>)?(?P<value>[^<>]{0,4400})<")
_CAPITALS = re.compile(r"[A-Z]\w*(?: {2,}[A-Z]\w*)+")
_APART = re.compile(r" {2,}")
_INTO = re.compile(r"(?i:\binto\b)[^()\n]{1,200}\((?P<columns>[^()]{1,1000})\Z")
_VALUES = re.compile(r"[^()]{0,1000}\)\s{0,20}(?i:values)\s{0,20}\(\s{0,20}")
_NEXT_ROW = re.compile(r"[^()\"']{0,400}\)\s{0,20},\s{0,80}\(\s{0,20}")


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


def in_column(text: str, name: Name) -> Iterator[_Span]:
    """Yield the spans (character offsets) of the secrets in the column that a name heads; none if it heads none."""
    if name.kind is NameKind.SESSION or not _HEADS.match(text, name.end):
        return
    judge = _JUDGES.get(name.kind, looks_generated)
    for start, end in (*_of_lines(text, name), *_of_insert(text, name), *_of_page(text, name)):
        if judge(text[start:end]) and not MARK.search(text, start, end):
            yield start, end


def _begins_line(text: str, start: int) -> bool:
    line = max(text.rfind("\n", 0, start), start - _LONGEST_BEFORE, 0)
    return bool(_BEFORE_DIRECTIVE.match(text, line, start))


def _is_given(value: str) -> bool:
    if is_passphrase(value, LEAST_APART) or looks_scrambled(value):
        return True
    return looks_spoken(value) and quoted_reveals(value, sure=True) and not is_other_name(value)


def _of_lines(text: str, name: Name) -> Iterator[_Span]:
    start = text.rfind("\n", max(0, name.start - LONGEST_HEADING), name.start) + 1
    if text.find("\n", name.end, start + LONGEST_HEADING) < 0:
        return
    line, after = _line(text, start)
    wiki = line.lstrip().startswith("||")  # whose headings have two of them, and no ruler
    line = line.replace("||", " |") if wiki else line
    margin = _MARGIN.match(line)
    begin = margin.end() if margin and not line.startswith(("|", "+")) else 0
    separator = next((each for each in ("|", "│", "\t", ";", ",") if each in line[begin:]), "")
    ruled = bool(_RULER.fullmatch(_line(text, after)[0]))
    if not separator and "  " in line.strip() and (ruled or _CAPITALS.fullmatch(line.strip())):
        separator = "  "
    cells = _cells(line, begin, separator) if separator else []
    if len(cells) < 2 or not all(_HEADING.fullmatch(line, *cell) for cell in cells):
        return
    column = next((number for number, (first, last) in enumerate(cells) if first <= name.start - start < last), None)
    if column is None:
        return
    sure = ruled or separator not in "|│  "  # else it may be a text of several columns
    if len(_cells(_above(text, start), begin, separator)) == len(cells):  # a row among others
        return
    for _ in range(MOST_ROWS):
        place = after
        line, after = _line(text, place)
        row = _cells(line, begin, separator)
        if not _RULER.fullmatch(line):
            if len(row) != len(cells):
                return
            value = _CELL.fullmatch(line, *row[column])
            if value and (sure or looks_scrambled(value["value"])):
                yield place + value.start("value"), place + value.end("value")
        if not after:
            return


def _line(text: str, start: int) -> tuple[str, int]:
    """Return the line at an offset without its end, and where the next one begins; 0 if it is the last."""
    end = text.find("\n", start)
    return (text[start:], 0) if end < 0 else (text[start:end].removesuffix("\r"), end + 1)


def _above(text: str, start: int) -> str:
    """Return the line above the one at an offset, or the one above that if it is a ruler."""
    line = ""
    for _ in range(2):
        end = max(0, start - 1)
        start = max(text.rfind("\n", 0, end) + 1, end - LONGEST_HEADING)
        line = text[start:end]
        if not _RULER.fullmatch(line):
            break
    return line


def _cells(line: str, begin: int, separator: str) -> list[_Span]:
    """Return the spans of the cells of a line, without the empty ones before the first and behind the last `|`."""
    if separator == "  ":
        ends = [match.span() for match in _APART.finditer(line.rstrip(), begin)]
    else:
        ends = [(at, at + 1) for at, char in enumerate(line[begin:], begin) if char == separator]
    starts = [begin, *(stop for _, stop in ends)]
    cells = list(zip(starts, [*(first for first, _ in ends), len(line)], strict=True))
    if separator in "|│" and not line[slice(*cells[0])].strip():
        cells = cells[1:]
    if separator in "|│" and cells and not line[slice(*cells[-1])].strip():
        cells = cells[:-1]
    return cells


def _of_insert(text: str, name: Name) -> Iterator[_Span]:
    """Yield the values of the column in each row of `INSERT INTO … (…) VALUES (…), (…)`."""
    row = _VALUES.match(text, name.end)
    into = _INTO.search(text, max(0, name.start - LONGEST_HEADING), name.start) if row else None
    if into is None:
        return
    column = into["columns"].count(",")
    for _ in range(MOST_ROWS):
        if row is None:
            return
        items: list[Literal | None] = list(arguments(text, row.end()))
        if len(items) > column and (value := items[column]):
            yield value.start, value.end
        last = next((item.after for item in reversed(items) if item), row.end())
        row = _NEXT_ROW.match(text, last)


def _of_page(text: str, name: Name) -> Iterator[_Span]:
    """Yield the cells below the heading in a table of HTML."""
    first = text.rfind("<tr", max(0, name.start - LONGEST_HEADING), name.start)
    end = text.find("</tr", name.end, name.end + LONGEST_HEADING)
    # With data beside it, it is the heading of a row.
    if min(first, end) < 0 or not text.startswith("</th", name.end) or "<td" in text[first:end]:
        return
    column = len(_HEADING_CELL.findall(text, first, name.start)) - 1
    table = text.find("</table", name.end)
    row = text.find("<tr", name.end, table if table >= 0 else len(text))
    for _ in range(MOST_ROWS):
        if row < 0:
            return
        after = text.find("<tr", row + 3, table if table >= 0 else len(text))
        cells = list(_DATA_CELL.finditer(text, row, after if after >= 0 else min(len(text), row + LONGEST_ROW)))
        if not cells:  # another heading
            return
        if 0 <= column < len(cells):
            yield cells[column].span("value")
        row = after


def _is_secret(value: str) -> bool:
    return looks_random(value) and quoted_reveals(value, sure=True)


_JUDGES = {NameKind.SECRET: _is_secret, NameKind.LOOKS: looks_scrambled}
