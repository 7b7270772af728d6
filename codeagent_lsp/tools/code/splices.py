"""Replacement of pieces of a text, and the check that nothing else changed.

Not here: which pieces (`ast_edit.py`, `body.py`, `rename.py`).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.extent import extent_of
from codeagent_lsp.tools.code.source import Definition, SourceFile, source_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_QUOTE = 60


@dataclass(frozen=True, slots=True)
class Splice:
    """A replacement of the bytes from `start` to `end` by `text`; `edit` is the 1-based number of its edit."""

    start: int
    end: int
    text: str
    edit: int = 1


def applied(source: SourceFile, splices: Sequence[Splice]) -> str:
    """Return the text with all splices applied. EditRefused if two overlap; deletions may share blank lines."""
    ordered = sorted(splices, key=lambda each: (each.start, each.end))
    parts, place, last = [], 0, Splice(0, 0, "")
    for each in ordered:
        if each.start < last.end:
            if each.text or last.text or source.data[each.start : min(last.end, each.end)].strip():
                raise EditRefused("ambiguous", _overlap(source, last, each))
            each = replace(each, start=last.end, end=max(last.end, each.end))
        last = each
        start, end = source.char(each.start), source.char(each.end)
        parts += [source.text[place:start], each.text]
        place = end
    return "".join([*parts, source.text[place:]])


def problem(source: SourceFile, text: str, splices: Sequence[Splice] = ()) -> str | None:
    """Return the first new error in `text`, with its 1-based line; None if there is none."""
    after = source_of(source.path, text)
    if after is None:
        return "the result cannot be parsed"
    if len(after.faults) > len(source.faults):
        known = Counter(_quoted(source, node) for node in source.faults)
        new = [node for node in after.faults if not _taken(known, _quoted(after, node))]
        return _described(after, (new or list(after.faults))[0])
    # A text with errors of its own would fail in any case, and say nothing of the edit.
    if source.language == "python" and not source.faults and (wrong := _python(source.text, text)):
        return wrong
    return _lost(source, after, splices)


def untouched(source: SourceFile, splices: Sequence[Splice]) -> list[Definition]:
    """Return the definitions that no splice overlaps."""
    found = []
    for definition in source.definitions:
        extent = extent_of(source, definition)
        if not any(each.start < extent.end and each.end > extent.top for each in splices):
            found.append(definition)
    return found


def _overlap(source: SourceFile, one: Splice, other: Splice) -> str:
    line, (first, second) = source.line(other.start), sorted((one.edit, other.edit))
    return (
        f"Edits {first} and {second} both change {source.path} at line {line}, so none was made. "
        "Make them one edit, or one after the other."
    )


def _described(after: SourceFile, node: Node) -> str:
    line = after.line(node.start_byte)
    if node.is_missing:
        return f"line {line}: {node.type!r} is missing"
    return f"line {line}: syntax error at {_quoted(after, node)!r}"


def _quoted(source: SourceFile, node: Node) -> str:
    if node.is_missing:
        return f"missing {node.type}"
    lines = source.slice(node.start_byte, min(node.end_byte, node.start_byte + 400)).strip().splitlines()
    return lines[0].strip()[:_MAX_QUOTE] if lines else ""


def _taken(known: Counter[str], quote: str) -> bool:
    known[quote] -= 1
    return known[quote] >= 0


def _python(before: str, after: str) -> str | None:
    """Return the error of Python's own parser, which is stricter than the grammar, if the text parsed before."""
    if _syntax_error(before) is not None:
        return None
    error = _syntax_error(after)
    return None if error is None else f"line {error.lineno}: {error.msg}"


def _syntax_error(text: str) -> SyntaxError | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error))
    return None


def _lost(source: SourceFile, after: SourceFile, splices: Sequence[Splice]) -> str | None:
    """Return a message about a definition that no edit overlaps but that changed; None if there is none.

    A definition that ends where something was inserted, such as a class, may have become longer.
    """
    if not splices:
        return None
    kept = Counter(_identity(after, each) for each in after.definitions)
    ends = {source.trimmed_blanks(each.start) for each in splices}
    for definition in untouched(source, splices):
        name, text = _identity(source, definition)
        if kept[name, text] > 0:
            kept[name, text] -= 1
        elif source.trimmed_blanks(definition.node.end_byte) not in ends or not any(
            other == name and longer.startswith(text) for other, longer in kept
        ):
            return f"{definition.qualified} (line {definition.symbol.line_start}) would no longer be a definition"
    return None


def _identity(source: SourceFile, definition: Definition) -> tuple[str, str]:
    node = definition.node
    return definition.symbol.name, source.slice(node.start_byte, node.end_byte).rstrip()
