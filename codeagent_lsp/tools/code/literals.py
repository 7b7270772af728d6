"""Lines whose leading blanks are content: those that begin inside a string, a heredoc or a raw text. Code can be moved
to another indentation, these cannot.

By the syntax tree; in languages without a grammar by the signs that most of them share. Not here: how code is moved
(`shift.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.index import grammars
from codeagent_lsp.index.grammars import Grammar
from codeagent_lsp.workspace.text.lines import content_of, split_lines

if TYPE_CHECKING:
    from tree_sitter import Node

_STRINGS = re.compile(r"string|heredoc|nowdoc|uninterpreted")
_LISTS = frozenset(("concatenated_string", "chained_string", "string_array"))
"""Nodes that hold several strings, with code or nothing between them."""
_OPENINGS = re.compile(
    r"(?P<quotes>\"\"\"|'''|`)|<<[-~]?(?P<mark>['\"]?)(?P<word>[A-Za-z_]\w*)(?P=mark)|\[(?P<level>=*)\["
)


class Literal(NamedTuple):
    """The 0-based lines `first` to `last` of a text that begin inside one literal."""

    first: int
    last: int


def literals(text: str, grammar: Grammar | None) -> tuple[Literal, ...]:
    """Return the literals over several lines of a text, in order, none inside another. A docstring that is indented as
    the code is none: it moves with the code.
    """
    if "\n" not in text and "\r" not in text:
        return ()
    if grammar is None:
        return tuple(_by_signs(text))
    root = grammars.parser(grammar).parse(text.encode("utf-8", "replace")).root_node
    return tuple(_in_tree(root))


def literals_of_piece(code: str, grammar: Grammar | None) -> tuple[Literal, ...]:
    """Return the literals of a piece of code without what stands before it in its file, which PHP needs."""
    if grammar is None or grammar.name != "php":
        return literals(code, grammar)
    return tuple(Literal(each.first - 1, each.last - 1) for each in literals(f"<?php\n{code}", grammar))


def literal_lines(text: str, grammar: Grammar | None) -> Counter[str]:
    """Return the lines of a text that begin inside a literal, without their line ends, and how often each occurs."""
    lines = [content_of(line) for line in split_lines(text)]
    return Counter(
        line for each in literals(text, grammar) for line in lines[each.first : each.last + 1] if line.strip()
    )


def language_of(path: str, text: str) -> Grammar | None:
    """Return the grammar of a file, by its name or its first line; None for an unknown language."""
    return grammars.grammar_of(path, text[:200].encode("utf-8", "replace"))


def kept(
    lines: Sequence[str], inside: Iterable[Literal], known: Counter[str], move: Callable[[str], str]
) -> dict[int, str]:
    """Return, by their 0-based numbers, the lines inside literals as they have to be: as they were given, unless a
    model has moved them together with the code. That shows where they are as `known` only after `move`.
    """
    found: dict[int, str] = {}
    for each in inside:
        given = list(lines[each.first : each.last + 1])
        moved = [move(line) for line in given]
        chosen = moved if _same(moved, known) > _same(given, known) else given
        found |= dict(enumerate(chosen, each.first))
    return found


def altered(path: str, before: str, after: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return the lines inside literals of `after` that neither `before` has, nor one of the texts that were `given`
    for the change: something between has altered them.
    """
    grammar = language_of(path, before or after)
    new = literal_lines(after, grammar) - literal_lines(before, grammar)
    if not new:
        return ()
    said = {content_of(line) for text in (before, *given) for line in split_lines(text)}
    return tuple(line for line in new if line not in said)


def _same(lines: Iterable[str], known: Counter[str]) -> int:
    return sum(1 for line in lines if line.strip() and line in known)


def _in_tree(root: Node) -> Iterator[Literal]:
    pending = [root]
    while pending:
        node = pending.pop()
        if node.end_point.row == node.start_point.row and node.type != "heredoc_end":
            continue
        if not _STRINGS.search(node.type) or node.type in _LISTS:
            pending.extend(reversed(node.children))
            continue
        if _moves_with_code(node):
            continue
        first = node.start_point.row + (1 if node.start_point.column else 0)
        last = node.end_point.row - (0 if node.end_point.column else 1)
        if last >= first:
            yield Literal(first, last)


def _moves_with_code(node: Node) -> bool:
    """Return whether a string is a docstring none of whose lines stands left of its first."""
    parent = node.parent
    if node.type != "string" or parent is None or parent.type != "expression_statement":
        return False
    lines = (node.text or b"").split(b"\n")[1:]
    return all(len(line) - len(line.lstrip(b" \t")) >= node.start_point.column for line in lines if line.strip())


def _begins_value(line: str, opening: re.Match[str]) -> bool:
    """Return whether a sign that is also used in words, comments and lists stands where a value begins."""
    if opening["quotes"] == '"""' or opening["level"]:
        return True
    left, right = line[: opening.start()], line[opening.end() :]
    if opening["level"] == "" and right[:1] and right[:1] in "0123456789-[{'\"":
        return False
    is_tagged = opening["quotes"] == "`" and left[-1:].isalnum()
    return is_tagged or left.rstrip().endswith((*"=(,:{+?>|", "return", ".."))


def _by_signs(text: str) -> Iterator[Literal]:
    lines, number = [content_of(line) for line in split_lines(text)], 0
    while number < len(lines):
        opening = _open_at_end(lines[number])
        if opening is None:
            number += 1
            continue
        last = next((other for other in range(number + 1, len(lines)) if opening(lines[other])), None)
        if last is None:
            number += 1
            continue
        yield Literal(number + 1, last)
        number = last if _open_at_end(lines[last]) is not None else last + 1


def _open_at_end(line: str) -> Callable[[str], bool] | None:
    """Return a test for the line that closes what a line leaves open; None if it leaves nothing open."""
    place = 0
    while (found := _OPENINGS.search(line, place)) is not None:
        if found["word"]:
            word = found["word"]
            return lambda other: other.strip().rstrip(";,)") == word
        if not _begins_value(line, found):
            place = found.end()
            continue
        close = found["quotes"] or f"]{found['level']}]"
        end = line.find(close, found.end())
        if end < 0:
            return lambda other: close in other
        place = end + len(close)
    return None
