"""Adaptation of a model's code to its destination: indentation, by tabs or blanks as the file has it, and line ends.

Lines that begin inside a string keep their leading blanks. Not here: where code goes (`ast_edit.py`), which lines are
content (`index/literals.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.grammars import Grammar
from codeagent_lsp.index.literals import (
    Literal,
    fixed_lines,
    kept_literal_lines,
    language_of,
    literal_lines,
    literals,
    literals_of_piece,
)
from codeagent_lsp.tools.code.source import SourceFile
from codeagent_lsp.workspace.text.position import (
    dominant_newline,
    margin_lines,
    shared_ends,
    split_lines,
    with_newlines,
    without_line_numbers,
)

_BLANKS = re.compile(r"[ \t]*")
_STYLES = (r"^\t", "^  ")
_OFF_SIDE = "python"
_COLUMNS = "The tabs within the lines of {path} have become blanks. Give its lines with their tabs."


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
    """Return code in which the lines inside strings are indented as in the text, if a model has moved them together
    with the code, by as many blanks as most other lines of the code.
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


def in_style(code: str, text: str, inside: Collection[Literal] = (), known: Counter[str] | None = None) -> str:
    """Return `code` indented with tabs or with spaces, whichever `text` uses exclusively; unchanged if it uses both or
    none.

    Lines `inside` literals stay, except comments, which follow the code around them. Blanks beyond the indentation stay
    too, unless the text has the line (in `known`) with other ones.
    """
    tabs, blanks = re.search(r"^\t+\S", text, re.MULTILINE), re.search(r"^ {2,}\S", text, re.MULTILINE)
    # Both or none: the file has no style to follow.
    if bool(tabs) == bool(blanks):
        return code
    lines, fixed = code.split("\n"), fixed_lines(inside)
    loose = [line for number, line in enumerate(lines) if number not in fixed]
    like = loose if tabs else text.split("\n")
    # The smallest indentation is one level.
    unit = min((len(found[1]) for line in like if (found := re.match(r"( {2,8})\S", line))), default=4)

    def to_tabs(line: str) -> str:
        return re.sub(rf"^(?: {{{unit}}})+", lambda match: "\t" * (len(match[0]) // unit), line)

    def to_blanks(line: str) -> str:
        return re.sub(r"^\t+", lambda match: " " * unit * len(match[0]), line)

    change = to_tabs if tabs else to_blanks
    depths = {
        number: _depth(lines[max(each.first - 1, 0)])
        for each in inside
        if each.moves
        for number in range(max(each.first, 0), each.last + 1)
    }

    def changed(number: int, line: str) -> str:
        depth = depths.get(number)
        if number in fixed or depth is None or (known and change(line) in known) or not line.startswith(depth):
            return line if number in fixed else change(line)
        return change(depth) + line.removeprefix(depth)

    return "\n".join(changed(number, line) for number, line in enumerate(lines))


def in_style_of(path: str, before: str, after: str) -> str:
    """Return the whole new text of a file indented as its old text is, with tabs or with blanks; unchanged where only
    the indentation differs, as then that is the change. EditRefused where the columns of a table, or other tabs that
    are no indentation, have become blanks.
    """
    language = language_of(path, before)
    after = with_newlines(after, "\n")
    if not has_one_style(after, before):
        made = literals(after, language)
        there = literals(before, language)
        styled = in_style(after, without_literals(before, there), made, literal_lines(before, there))
        after = after if _is_same(styled, before) and not needs_tabs(path) else styled
    if "\t" not in after and not _is_same(after, before) and _lost_columns(before, after):
        raise EditRefused("not_found", _COLUMNS.format(path=path))
    return after


def needs_tabs(path: str) -> bool:
    """Return whether a file is read by a program to which blanks are no tabs."""
    name = path.rpartition("/")[2].lower()
    return name in ("makefile", "gnumakefile") or name.endswith((".mk", ".mak", ".go", ".tsv", ".tab"))


def _is_same(one: str, other: str) -> bool:
    return one.rstrip() == with_newlines(other, "\n").rstrip()


def _lost_columns(before: str, after: str) -> bool:
    """Return whether most lines with tabs that are no indentation have blanks in their place."""
    columns = [line.split() for line in before.splitlines() if "\t" in line.strip()]
    there = [line.split() for line in after.splitlines() if " " in line.strip()]
    return bool(columns) and 2 * sum(line in there for line in columns) >= len(columns)


def has_one_style(code: str, text: str) -> bool:
    """Return whether one of tabs and blanks is used for indentation in neither text, literals included, so that
    `in_style` would change nothing.
    """
    return any(
        not re.search(style, text, re.MULTILINE) and not re.search(style, code, re.MULTILINE) for style in _STYLES
    )


def without_literals(text: str, inside: Iterable[Literal]) -> str:
    """Return the lines of a text that do not begin inside its literals, joined, with their line ends."""
    within = frozenset(line for each in inside for line in range(each.first, each.last + 1))
    return "".join(line for number, line in enumerate(split_lines(text)) if number not in within)


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


def _depth(line: str) -> str:
    found = _BLANKS.match(line)
    return found[0] if found and line.strip() else ""
