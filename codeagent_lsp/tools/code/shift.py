"""Adaptation of a model's code to its destination: indentation, by tabs or blanks as the file has it, and line ends.

Lines that begin inside a string keep their leading blanks. Not here: where code goes (`ast_edit.py`), which lines are
content (`index/literals.py`).
"""

from __future__ import annotations

import re
from collections import Counter

from codeagent_lsp.index.grammars import Grammar
from codeagent_lsp.index.indentation import in_style, without_literals
from codeagent_lsp.index.literals import (
    fixed_lines,
    kept_literal_lines,
    literal_lines,
    literals,
    literals_of_piece,
)
from codeagent_lsp.tools.code.source import SourceFile
from codeagent_lsp.workspace.text.position import (
    dominant_newline,
    margin_lines,
    shared_ends,
    with_newlines,
    without_line_numbers,
)

_BLANKS = re.compile(r"[ \t]*")
_OFF_SIDE = "python"


def shifted(source: SourceFile, code: str, indent: str, before: str = "") -> str:
    """Return `code` re-indented to `indent`, with LF and without blank lines around it; its lines keep their
    indentation relative to each other. Lines inside strings stay unchanged, or get the text's form if a model has moved
    them with the code. Lines without indentation stay so if `before`, the code to be replaced, has them too.
    """
    lines = _lines(code)
    inside = literals_of_piece("\n".join(lines), source.parsed.grammar)
    if any(line.startswith((" ", "\t")) for line in lines):
        there = literals(source.text, source.parsed.grammar)
        known = literal_lines(source.text, there) if inside else Counter[str]()
        lines = in_style("\n".join(lines), without_literals(source.text, there), inside, known).split("\n")
    fixed = fixed_lines(inside) | _margin(lines, before, source.parsed.grammar)
    loose = [line for number, line in enumerate(lines) if line.strip() and number not in fixed]
    if not loose:
        return "\n".join(lines)
    if _first_is_cut(source, loose, indent):
        lines[0] = indent + lines[0]
        loose[0] = lines[0]
    common = _common([_blanks(line) for line in loose])
    # It stands where it belongs, with tabs in some lines and blanks in others.
    if common < len(indent) and _blanks(loose[0]) == indent:
        return "\n".join(lines)
    had = loose[0][:common]

    def move(line: str) -> str:
        return indent + line.removeprefix(had) if line.strip() else line

    stay = kept_literal_lines(lines, inside, _literal_lines(source) if inside else Counter(), move)
    stay |= {number: lines[number] for number in fixed if number not in stay}
    # Lines of blanks alone are those of the file where it has them so, a form feed among them.
    own = frozenset(line for line in source.text.split("\n") if line and not line.strip())

    def blank(line: str) -> str:
        return next((each for each in (indent + line[common:], line) if each in own), "")

    return "\n".join(
        stay[number] if number in stay else indent + line[common:] if line.strip() else blank(line)
        for number, line in enumerate(lines)
    )


def dedented(code: str, grammar: Grammar, before: str = "") -> str:
    """Return code without the indentation that all its lines share. Lines inside strings stay unchanged, and so do
    lines at the margin that the text `before` also has there.
    """
    lines = code.split("\n")
    fixed = fixed_lines(literals_of_piece(code, grammar)) | _margin(lines, before, grammar)
    loose = [line for number, line in enumerate(lines) if line.strip() and number not in fixed]
    common = _common([_blanks(line) for line in loose]) if loose else 0
    return "\n".join(line if number in fixed or "\f" in line else line[common:] for number, line in enumerate(lines))


def unmoved(code: str, source: SourceFile) -> str:
    """Return the code of a reply with the lines inside its strings indented as the text of `source` has them, where a
    model has moved them together with the code, by as many blanks as most of its lines; else as it is.
    """
    lines = code.split("\n")
    inside = [each for each in literals_of_piece(code, source.parsed.grammar) if not each.moves]
    if not inside:
        return code
    fixed = fixed_lines(inside)
    where = {line.strip(): len(_blanks(line)) for line in source.text.splitlines() if line.strip()}
    deeper = Counter(
        len(_blanks(line)) - where[line.strip()]
        for number, line in enumerate(lines)
        if number not in fixed and line.strip() in where
    )
    by = deeper.most_common(1)[0][0] if deeper else 0
    if not by:
        return code

    def back(line: str) -> str:
        if by < 0:
            return " " * -by + line if line.strip() else line
        return line[by:] if not line[:by].strip() else line

    stay = kept_literal_lines(lines, inside, _literal_lines(source), back)
    return "\n".join(stay.get(number, line) for number, line in enumerate(lines))


def line_end(source: SourceFile, place: int) -> str:
    """Return the line end (LF or CRLF) used on the line of a byte offset; on the last line, the dominant one of the
    text.
    """
    end = source.line_end(place)
    for newline in ("\r\n", "\n"):
        if source.data.startswith(newline.encode(), end):
            return newline
    return dominant_newline(source.text)


def with_line_ends(source: SourceFile, code: str, place: int) -> str:
    """Return `code` with the line ends, LF or CRLF, that the line of a byte offset has (see `line_end`)."""
    return with_newlines(code, line_end(source, place))


def unit(source: SourceFile) -> str:
    """Return the text's unit of indentation: a tab or spaces; that of most of its steps; by default a tab for Go, else
    four spaces.
    """
    steps: Counter[str] = Counter()
    before = ""
    for line in source.text.splitlines():
        if line.strip():
            blanks = _blanks(line)
            if blanks.startswith(before) and blanks != before:
                steps[blanks[len(before) :]] += 1
            before = blanks
    likely = [step for step, _ in steps.most_common() if step == "\t" or step in ("  ", "   ", "    ", " " * 8)]
    default = "\t" if source.language == "go" else "    "
    return likely[0] if likely else default


def _literal_lines(source: SourceFile) -> Counter[str]:
    return literal_lines(source.text, literals(source.text, source.parsed.grammar))


def _margin(lines: list[str], before: str, grammar: Grammar) -> frozenset[int]:
    """Return the numbers of the lines at the margin that code before them had there, too, and not inside a string."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    found = frozenset(number for number in margin_lines(lines, before) if number > first)
    if not found:
        return found
    inside = (literals if "<?" in before else literals_of_piece)(before, grammar)
    there = before.split("\n")
    fixed = {there[number].rstrip("\r") for number in fixed_lines(inside)}
    return frozenset(number for number in found if lines[number] not in fixed)


def _common(blanks: list[str]) -> int:
    """Return the number of leading characters that all strings share."""
    # What the first and the last in order share, all in between share.
    return shared_ends(min(blanks), max(blanks))[0]


def _lines(code: str) -> list[str]:
    lines = with_newlines(without_line_numbers(code), "\n").split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _first_is_cut(source: SourceFile, lines: list[str], indent: str) -> bool:
    """Return whether only the first line lacks the indentation, as in code copied from its first word on."""
    rest = lines[1:]
    if not indent or _blanks(lines[0]) or not rest or not all(line.startswith(indent) for line in rest):
        return False
    if source.language == _OFF_SIDE:
        return min(len(_blanks(line)) for line in rest) > len(indent)
    return _blanks(rest[-1]) == indent


def _blanks(line: str) -> str:
    found = _BLANKS.match(line)
    return found[0] if found else ""
