"""Secrets in the column of a table whose heading names them: CSV, Markdown, what databases print, `INSERT … VALUES`.

The heading is the first line of the table; a value counts if it looks like a password or a token. Not here: tables of
two columns with the name in the first one (`assignments.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codeagent_lsp.records.literals import MARGIN, Literal, arguments
from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.names import Name, NameKind
from codeagent_lsp.records.values import looks_generated, looks_random, looks_scrambled, quoted_reveals

MOST_ROWS = 1_000
LONGEST_HEADING, LONGEST_ROW = 1_000, 20_000
_Span = tuple[int, int]
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


def in_column(text: str, name: Name) -> Iterator[_Span]:
    """Yield the spans (character offsets) of the secrets in the column that a name heads; none if it heads none."""
    if name.kind is NameKind.SESSION or not _HEADS.match(text, name.end):
        return
    judge = _JUDGES.get(name.kind, looks_generated)
    for start, end in (*_of_lines(text, name), *_of_insert(text, name), *_of_page(text, name)):
        if judge(text[start:end]) and not MARK.search(text, start, end):
            yield start, end


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
