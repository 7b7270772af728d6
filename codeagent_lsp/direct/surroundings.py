"""Takes off what a reply about a selection gives of the file around it: a comment with the path, lines of the head of
the file, and the blocks that the selection is in. Models give code so that it can be read by itself.

Pure functions. Not here: the lines right before and behind the selection, and margins (`agent/replacement.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from codeagent_lsp.direct.balance import MARKUP
from codeagent_lsp.direct.fences import is_path_comment
from codeagent_lsp.direct.imports import with_imports
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.comments import comment_of, is_document
from codeagent_lsp.index.literals import Language, fixed_lines, language_of, literals, literals_of_piece
from codeagent_lsp.index.placeholders import filled_lines
from codeagent_lsp.tools.code.extent import OF_THE_FILE
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.tools.diagnostics.syntax import is_data
from codeagent_lsp.workspace.edits.line_matching import is_telling, likeness
from codeagent_lsp.workspace.text.position import dominant_newline, with_newlines

_ON_TOP = re.compile(
    r"#!|<\?php\b|['\"]use strict['\"]|(?:package|namespace|module|declare)\b"
    r"|(?P<import>(?:import|from|using|use|require|require_once|require_relative|extern crate)\b"
    r"|#\s*(?:include|import)\b)"
)
_NO_IMPORT = re.compile(r"import\s*\(|use\s+\w+\s*[;{]|using\s*\(|using\s+var\b|from\b(?!.*\bimport\b)")
"""Statements inside of code that begin like imports: a trait that a class of PHP uses, a resource that is closed."""
_DEFINES = re.compile(
    r"(?!(?:return|await|throw|new|else|yield|if|for|foreach|while|switch|match|catch|with|try|do|elif|unless|when"
    r"|case(?!\s+(?:class|object))|using|lock|synchronized)\b)(?:"
    r"@|#\[|\[\w"  # an attribute
    r"|(?:export|const|let|var)\b.*[{(\[]$"
    r"|(?:[\w@]+\s+)*(?:def|fun|fn|func|function|class|struct|interface|trait|object|enum|impl|protocol|extension"
    r"|record|public|private|protected|internal|static|override|constructor|sub)\b"
    r"|[\w<>\[\],.*&?]+\s+\w+\s*\([^;]*\)[\w\s<>:,.&*-]*\{?$"  # its type, then its name
    r"|\w+\s*\([^;]*\)\s*\{$|\w+\(\)\s*\{)"
)
_OPENERS = ("{", "(", "[")
_CLOSER = re.compile(r"[\])}]+[;,]?|end|</(?P<tag>[\w-]+)>|fi|done|esac")
_TABLE = re.compile(r"\[[^\[\]\n]*\]|\[\[[^\[\]\n]*\]\]")  # of TOML and INI, whose keys stand no deeper
_WITH_TABLES = (".toml", ".ini", ".cfg", ".conf", ".editorconfig", ".gitconfig", ".service")
_RULES = (".css", ".scss", ".less")
_LABEL = re.compile(r"(?:public|private|protected|signals|(?:public|private|protected) slots)\s*:")
_LEAST_LETTERS = 5
_MOST_ABOVE = 4
_DOC = re.compile(r"//|/\*|\*/|\*(?=\s|/|\Z)|#(?=\s|\Z)|--(?=[\s-]|\Z)|<!--|;(?=[\s;])")
"""A line of a comment, and no statement or directive that begins with such a sign."""
_ALIKE = 0.5
_FAR = 20_000  # characters above a selection that are looked at for its comment
_ABOVE = ("@", "#[", "[", "template")  # attributes of a class, the parameters of a template
_MOST_BLOCKS = 12
_TAB = 4

OUTSIDE = "It begins with {line!r}, which belongs to the top of {path}. Give the selected code alone."
AROUND = "It begins with {line!r}, which stands in {path} around the selected code. Give the selected code alone."


class Inner(NamedTuple):
    """The code for the place of the selection, and the imports, a line each, that a reply gives with it and the file
    lacks.
    """

    code: str
    imports: tuple[str, ...] = ()


def without_outer(path: str, text: str, start: int, end: int, code: str) -> Inner:
    """Return the code of a reply in the place of `text[start:end]` without what it gives of the file around that. What
    the selection has itself is code in the reply, too. EditRefused, in English for the model, if it gives a definition
    around the selection in a way that cannot be taken off.
    """
    lines, own = with_newlines(code, "\n").strip("\n").split("\n"), filled_lines(text[start:end])
    begin = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    whole = own and not text[begin:start].strip()
    if not whole:
        _refuse_whole_lines(path, text, text[begin:start].strip(), text[start:end], lines)
        return Inner(code)
    language = language_of(path, text)
    before = _outside_literals(with_newlines(text[:begin], "\n"), language)
    if len(lines) > 1 and lines[0].strip() != own[0] and is_path_comment(lines[0], path):
        lines = lines[1:]
    outside = {line for line in before if line[:1].strip()}
    lines, imports = _without_head(lines, own, outside)
    margin = _width(next(line for line in with_newlines(text[begin:end], "\n").split("\n") if line.strip()))
    blocks = tuple(islice(_blocks(path, before, margin), _MOST_BLOCKS))
    around = _Around(path, language, blocks, frozenset(map(str.strip, before)), margin)
    selected = [line for line in with_newlines(text[begin:end], "\n").split("\n") if line.strip()]
    lines = _without_shown(lines, selected, before, filled_lines(text[end:]), around)
    lines = _without_blocks(lines, own, around)
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if filled and lines[filled[0]].strip() != own[0] and (count := _count_head(lines, filled, around)):
        heads = [lines[number].strip() for number in filled[:count]]
        if any(map(_DEFINES.match, heads)):
            raise EditRefused("not_found", AROUND.format(line=heads[0], path=path))
    return Inner("\n".join(lines), imports)


def begins_definition(line: str) -> bool:
    """Return whether a line without its margin begins a definition, in any language."""
    return _DEFINES.match(line) is not None


def with_head(path: str, text: str, imports: Sequence[str]) -> str:
    """Return the text with imports added at its top, where others of their kind stand. EditRefused, in English for the
    model, if there is no such place.
    """
    if not imports:
        return text
    for line in imports:
        if "__future__" in line and line not in text:  # it has to be the first
            raise EditRefused("not_found", OUTSIDE.format(line=line, path=path))
    source = source_of(path, "\n".join((*(["<?php"] if path.endswith(".php") else []), *imports, "")))
    if source is not None:
        added = with_imports(path, text, source)
        if added != text or all(line in text for line in imports):
            return added
    lines = text.splitlines(keepends=True)
    for line in imports:
        word = line.split()[0]
        last = max(
            (number for number, each in enumerate(lines) if each.split()[:1] == [word] and each[0] == word[0]),
            default=-1,
        )
        if last < 0:
            raise EditRefused("not_found", OUTSIDE.format(line=line, path=path))
        lines.insert(last + 1, line + dominant_newline(text))
    return "".join(lines)


def docs_above(path: str, text: str, start: int, code: str) -> int:
    """Return where the comment begins that stands directly above the line of the offset `start`, if code for this place
    begins with a comment that is a new version of it; `start` if not.
    """
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    first = re.split(r"[\r\n]", text[line_start:], maxsplit=1)[0]
    given = list(takewhile(_DOC.match, (line.strip() for line in code.strip("\n").split("\n"))))
    if not given or is_document(path) or _DOC.match(first.strip()):
        return start

    def belongs(line: str) -> bool:
        return _DOC.match(line.strip()) is not None and 0 <= _width(line) - _width(first) <= 1

    place, above = lines_above(text, line_start, belongs)
    lines = [line.strip() for line in above]
    alike = bool(lines) and not lines[0].startswith("*") and likeness("\n".join(lines), "\n".join(given)) >= _ALIKE
    return place if alike else start


def lines_above(text: str, line_start: int, belongs: Callable[[str], bool]) -> tuple[int, list[str]]:
    """Return the offset and the lines, with their ends, that stand directly above a line and all belong to it; none of
    them is a comment about the file. Only the last 20,000 characters are looked at.
    """
    lines: list[str] = []
    for line in reversed(text[max(0, line_start - _FAR) : line_start].splitlines(keepends=True)):
        if not belongs(line) or OF_THE_FILE.match(line.strip()):
            break
        lines.insert(0, line)
    return line_start - sum(map(len, lines)), lines


def without_docs(code: str) -> str:
    """Return code without the comments on its first lines, where something else stands below them."""
    lines = code.split("\n")
    rest = next((at for at, line in enumerate(lines) if line.strip() and not _DOC.match(line.strip())), 0)
    return "\n".join(lines[rest:])


def _refuse_whole_lines(path: str, text: str, front: str, selected: str, lines: Sequence[str]) -> None:
    """Raise EditRefused if several lines are given for a part of a line: with what stands in front of it, or with the
    definition around it.
    """
    if len(lines) < 2 or "\n" in selected:
        return
    heads = [line.strip() for line in lines[:3] if begins_definition(line.strip())]
    shown = any(len(head) > _LEAST_LETTERS and head in text for head in heads)
    again = sum(map(str.isalnum, front)) > 1 and any(line.strip().startswith(front) for line in lines)
    if shown or again:
        raise EditRefused("not_found", AROUND.format(line=lines[0].strip(), path=path))


def _without_shown(
    lines: list[str], selected: Sequence[str], before: Sequence[str], after: Sequence[str], around: _Around
) -> list[str]:
    """Return lines without what they show of the file around the selection, whose first line they have: the heads of
    blocks that it is in, with some of what these hold, or what stands right before it but for its comment.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    said = [lines[number].strip() for number in filled]
    first, final = selected[0].strip(), selected[-1].strip()
    if first not in said[1:] or said[0] == first:
        return lines
    # Code without any margins is put together again by what is selected alone.
    if len({_width(lines[number]) for number in filled}) == 1 < len(set(map(_width, selected))):
        return lines
    begin = said.index(first)
    above = [line.strip() for line in before if line.strip()]
    while above and (comment_of(above[-1]) is not None or above[-1].startswith(_ABOVE)):
        above.pop()
    nearest = above[-begin:] == said[:begin] and any(map(is_telling, above))
    shown = _is_within(said[:begin], map(str.strip, before)) and any(
        _bare(said[at]) == _bare(block.head)
        and _is_meant(lines[filled[at]], block, around)
        and (_width(lines[filled[at]]) < _width(lines[filled[begin]]) or block.width == around.margin)
        for at in range(begin)
        for block in around.blocks
    )
    if not (nearest or shown):
        return lines
    # Of several that are alike, the one as deep as in the selection.
    depth = _width(selected[-1]) - _width(selected[0]) + _width(lines[filled[begin]])
    ends = [at for at, line in enumerate(said) if at >= begin and line == final]
    last = max((at for at in ends if _width(lines[filled[at]]) == depth), default=max(ends, default=len(said) - 1))
    behind = said[last + 1 :]
    if behind and not (_is_within(behind, after) or all(map(_CLOSER.fullmatch, behind))):
        return lines
    return lines[filled[begin] : filled[last] + 1]


def _is_within(lines: Sequence[str], others: Iterable[str]) -> bool:
    """Return whether lines stand among others, in their order."""
    rest = iter(others)
    return all(line in rest for line in lines)


def _without_head(lines: list[str], own: Sequence[str], outside: set[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return lines without those of the top of the file that they begin with, and the imports among these that are not
    `outside` of the selection. An import before what defines nothing may be one of the place.
    """
    imports: list[str] = []
    rest = lines
    while rest and not _ON_TOP.match(own[0]):
        line = rest[0].strip()
        found = _ON_TOP.match(line)
        if line and (found is None or line in own):
            break
        if found is not None and line not in outside:
            if not found["import"] or _NO_IMPORT.match(line):
                break
            imports.append(line)
        rest = rest[1:]
    if not rest or (imports and not all(_DEFINES.match(_first_code(each)) for each in (own, rest))):
        return lines, ()
    return rest, tuple(imports)


def _first_code(lines: Sequence[str]) -> str:
    """Return the first line that is neither blank nor a comment, without its margin; '' for none."""
    return next((line.strip() for line in lines if line.strip() and comment_of(line.strip()) is None), "")


def _outside_literals(text: str, language: Language) -> list[str]:
    """Return the lines of a text with those blank whose margin is the content of a literal."""
    fixed = fixed_lines(literals(text, language))
    return ["" if number in fixed else line for number, line in enumerate(text.split("\n"))]


class _Block(NamedTuple):
    """A block around a selection: the line that begins it, and its margin in columns."""

    head: str
    width: int


def _blocks(path: str, before: Sequence[str], limit: int) -> Iterator[_Block]:
    """Yield the blocks around a selection with the margin `limit`, the innermost first; one whose bracket has a line of
    its own is two.
    """
    filled = [line for line in before if line.strip()]
    if path.endswith(_WITH_TABLES):
        table = next((line.strip() for line in filled[::-1] if _TABLE.fullmatch(line.strip())), "")
        yield from (_Block(table, 0),) if table else ()
        return
    for number in range(len(filled) - 1, -1, -1):
        line, width = filled[number], _width(filled[number])
        if width >= limit or _LABEL.fullmatch(line.strip()):
            continue
        above = filled[number - 1] if number else ""
        if line.strip() in _OPENERS and above and _width(above) == width and not _CLOSER.fullmatch(above.strip()):
            yield _Block(above.strip(), width)
        yield _Block(line.strip(), width)
        limit = width
        if not limit:
            return


class _Around(NamedTuple):
    """What stands around a selection: its blocks, the innermost first, and all lines before it; and its own margin."""

    path: str
    language: Language
    blocks: Sequence[_Block]
    before: frozenset[str]
    margin: int


def _without_blocks(lines: list[str], own: Sequence[str], around: _Around) -> list[str]:
    """Return lines without the heads and ends of blocks around the selection that they stand in."""
    for _ in around.blocks:
        filled = [number for number, line in enumerate(lines) if line.strip()]
        found = _count_head(lines, filled, around)
        if not found or len(filled) <= found or lines[filled[0]].strip() == own[0]:
            break
        margin, last = _width(lines[filled[0]]), filled[-1]
        inner, foot = lines[filled[found] : last], lines[last].strip()
        closer = _CLOSER.fullmatch(foot)
        if closer is None or _width(lines[last]) > margin:
            inner = lines[filled[found] :]
        elif closer["tag"] and not lines[filled[0]].strip().startswith(f"<{closer['tag']}"):
            break
        inner = [line for line in inner if not _LABEL.fullmatch(line.strip()) or line.strip() not in around.before]
        code = "\n".join(inner)
        within = {
            line for each in literals_of_piece(code, around.language) for line in range(each.first, each.last + 1)
        }
        deeper = all(_width(line) > margin for at, line in enumerate(inner) if line.strip() and at not in within)
        if not inner or not (deeper or around.path.endswith(_WITH_TABLES)):
            break
        lines = inner
    return lines


def _count_head(lines: Sequence[str], filled: Sequence[int], around: _Around) -> int:
    """Return how many of the first filled lines are the head of a block, with what stands above it in the file, and
    however its bracket is placed.
    """
    for at, number in enumerate(filled[:_MOST_ABOVE]):
        first = lines[number].strip()
        if any(
            _bare(first) == _bare(block.head) and _is_meant(lines[number], block, around) for block in around.blocks
        ):
            below = lines[filled[at + 1]].strip() if at + 1 < len(filled) else ""
            return at + 1 + (first not in _OPENERS and below in _OPENERS)
        if first not in around.before or not first.startswith(_ABOVE):
            break
    return 0


def _is_meant(line: str, block: _Block, around: _Around) -> bool:
    """Return whether a line that begins a block around the selection is that one, and not new code that is like it."""
    width, head = _width(line), block.head
    if not _tells(head, around.path) or (width == around.margin != block.width):
        return False
    if head == "{":  # of an object, not of one that goes into a list
        return around.blocks[0].head.endswith("{")
    # Where its margin does not tell, as it was taken away.
    return width == block.width > 0 or _DEFINES.match(head) is not None or "id=" in head or _is_keyed(around.path)


def _tells(head: str, path: str) -> bool:
    """Return whether a line that is repeated is the head of a block around, and not another one of its kind."""
    if _is_keyed(path):
        return True
    letters = sum(map(str.isalnum, head))
    if path.endswith(MARKUP):  # a plain element may stand in another one
        return head.startswith(("<ul", "<ol", "<table", "<tbody", "<thead", "<select", "<dl")) or "=" in head
    return letters >= _LEAST_LETTERS or _DEFINES.match(head) is not None


def _is_keyed(path: str) -> bool:
    return is_data(path) or path.endswith((*_WITH_TABLES, *_RULES))


def _bare(line: str) -> str:
    return re.sub(r"\s+", " ", line).rstrip(" {") or line


def _width(line: str) -> int:
    return len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip(" "))
