"""Replacement of pieces of a text, of a definition's body among them (inside its braces, after its colon, or up to its
`end`), and the check that nothing else changed.

The docstring of a body is kept if the new one has none. Not here: which pieces (`ast_edit.py`, `rename.py`).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code import shift
from codeagent_lsp.tools.code.extent import extent_of, first_alone, indentation, last_alone
from codeagent_lsp.tools.code.source import Definition, SourceFile, source_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_QUOTE = 60
_BRACED = re.compile(r"\s*\{[ \t]*\r?\n(?P<code>.*\S.*)\n[ \t]*\}\s*", re.DOTALL)
_DOCSTRING = ('"', "'", 'r"', "r'", 'R"', "R'")


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
    """Return a clause in English on the first new error in `text`, the edited text of `source`, with its 1-based line:
    of syntax, or a definition that was lost though no splice removes it. None if there is none.
    """
    after = source_of(source.path, text)
    if after is None:
        return "the result cannot be parsed"
    if len(after.faults) > len(source.faults):
        # By what they say, not by their place: the edit has moved the errors that were there before.
        known = Counter(_quote(source, node) for node in source.faults)
        new = [node for node in after.faults if not _is_taken(known, _quote(after, node))]
        return _describe_fault(after, (new or list(after.faults))[0])
    # A text with errors of its own would fail in any case, and say nothing of the edit.
    if source.language == "python" and not source.faults and (wrong := _python(source.text, text)):
        return wrong
    return _lost_definition(source, after, splices)


def is_sound(path: str, text: str) -> bool:
    """Return whether a text, of the language of the file name `path`, can be parsed and has no syntax error at all;
    False for an unknown language.
    """
    source = source_of(path, text)
    if source is None or source.faults:
        return False
    return source.language != "python" or _syntax_error(text) is None


def untouched_definitions(source: SourceFile, splices: Sequence[Splice]) -> list[Definition]:
    """Return the definitions, with their doc comments and decorators, that no splice overlaps, in order."""
    found = []
    for definition in source.definitions:
        extent = extent_of(source, definition)
        if not any(each.start < extent.end and each.end > extent.top for each in splices):
            found.append(definition)
    return found


def has_body(definition: Definition) -> bool:
    """Return whether a definition has a body that can be replaced, also an empty one before `end`."""
    return definition.body is not None or _end_word(definition) is not None


def docstring_of(body: Node) -> Node | None:
    """Return the string that is the docstring of a body in Python; None if it has none."""
    first = body.named_children[0] if body.named_child_count else None
    if first is not None and first.type == "expression_statement" and first.named_child_count == 1:
        inner = first.named_children[0]
        return inner if inner.type == "string" else None
    return None


def replace_body(source: SourceFile, definition: Definition, code: str) -> Splice:
    """Return the splice that replaces the body by `code`, at any indentation; a docstring is kept if the code has none.
    EditRefused if there is no body or the code is the whole definition.
    """
    if not has_body(definition):
        message = (
            f"{definition.qualified} (line {definition.symbol.line_start} of {source.path}) has no body. Use replace."
        )
        raise EditRefused("not_found", message)
    tried = list(_candidates(source, definition, code))
    # If none leaves the text whole, the likeliest is taken, and its problem is what is reported.
    splice = next((each for each in tried if problem(source, applied(source, [each])) is None), tried[0])
    after = source_of(source.path, applied(source, [splice]))
    # Models send the whole definition: it would come to stand in its own body, and the text would still be valid.
    twice = f"{definition.qualified}.{definition.symbol.name}"
    if after is not None and _count(after, twice) > _count(source, twice):
        message = f"The code is a whole definition of {definition.symbol.name}, not its body. Use replace."
        raise EditRefused("not_found", message)
    return splice


def _overlap(source: SourceFile, one: Splice, other: Splice) -> str:
    line, (first, second) = source.line(other.start), sorted((one.edit, other.edit))
    return (
        f"Edits {first} and {second} both change {source.path} at line {line}, so none was made. "
        "Make them one edit, or one after the other."
    )


def _describe_fault(after: SourceFile, node: Node) -> str:
    line = after.line(node.start_byte)
    if node.is_missing:
        return f"line {line}: {node.type!r} is missing"
    return f"line {line}: syntax error at {_quote(after, node)!r}"


def _quote(source: SourceFile, node: Node) -> str:
    if node.is_missing:
        return f"missing {node.type}"
    lines = source.slice(node.start_byte, min(node.end_byte, node.start_byte + 400)).strip().splitlines()
    return lines[0].strip()[:_MAX_QUOTE] if lines else ""


def _is_taken(known: Counter[str], quote: str) -> bool:
    known[quote] -= 1
    return known[quote] >= 0


def _python(before: str, after: str) -> str | None:
    """Return the error of Python's own parser, which is stricter than the grammar, if the text parsed before."""
    error = _syntax_error(after)
    if error is None or _syntax_error(before) is not None:
        return None
    return f"line {error.lineno}: {error.msg}"


def _syntax_error(text: str) -> SyntaxError | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error))
    except SystemError:  # CPython's own, at times, where two threads parse at once: it says nothing of the text
        return None
    return None


def _lost_definition(source: SourceFile, after: SourceFile, splices: Sequence[Splice]) -> str | None:
    """Return a message about a definition that no edit overlaps but that changed; None if there is none.

    A definition that ends where something was inserted, such as a class, may have become longer.
    """
    if not splices:
        return None
    kept = Counter(_identity(after, each) for each in after.definitions)
    ends = {source.trimmed_blanks(each.start) for each in splices}
    for definition in untouched_definitions(source, splices):
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


def _candidates(source: SourceFile, definition: Definition, code: str) -> Iterator[Splice]:
    """Yield the possible splices for the new body, the likeliest first."""
    body = definition.body
    if source.language == "python" and body is not None and body.type == "block":
        yield _behind_colon(source, definition, body, code)
    elif (end := _end_word(definition)) is not None:
        yield _up_to_end(source, definition, end, code)
    elif body is not None and _is_braced(body):
        if code.strip().startswith("{") and code.strip().endswith("}"):
            whole = _lines(source, code, _closing_indent(source, definition, body), body)
            if _is_one_block(source, definition, Splice(body.start_byte, body.end_byte, whole.lstrip())):
                # Models give the braces without a margin, and what is between them with that of the file.
                has_margin = any(first_alone(source, child.start_byte) for child in body.named_children[:1])
                if has_margin and (inner := _BRACED.fullmatch(code)) is not None:
                    yield _in_braces(source, definition, body, inner["code"])
                yield Splice(body.start_byte, body.end_byte, whole.lstrip())
        yield _in_braces(source, definition, body, code)
    elif body is not None:
        yield from _expression(source, definition, body, code)


def _behind_colon(source: SourceFile, definition: Definition, body: Node, code: str) -> Splice:
    colon = [child for child in definition.node.children if child.type == ":" and child.end_byte <= body.start_byte][-1]
    start, end = colon.end_byte, source.trimmed(body.end_byte)
    on_own_lines = first_alone(source, body.start_byte)
    indent = indentation(source, body.start_byte if on_own_lines else definition.node.start_byte)
    # A body behind its colon, as in `if x: y`, goes below it.
    if not on_own_lines:
        indent += shift.unit(source)
    elif last_alone(source, start):
        start = source.line_end(start)
    docstring = docstring_of(body)
    if docstring is not None and not code.strip().startswith(_DOCSTRING):
        start = docstring.end_byte
        if on_own_lines and last_alone(source, start):
            start = source.line_end(start)
        end = max(end, start)
        indent = indent if on_own_lines else indentation(source, definition.node.start_byte) + shift.unit(source)
        if not on_own_lines:
            kept = source.slice(docstring.start_byte, docstring.end_byte)
            return Splice(
                colon.end_byte, end, _lines(source, f"\n{indent}{kept}", "", body) + _below(source, code, indent, body)
            )
    return Splice(start, end, _below(source, code, indent, body))


def _up_to_end(source: SourceFile, definition: Definition, end: Node, code: str) -> Splice:
    body = definition.node.child_by_field_name("body")
    stop = body.start_byte if body is not None else end.start_byte
    header = [
        child
        for child in definition.node.children
        if child.end_byte <= stop and child.type not in ("comment", ";", "end")
    ][-1]
    start = header.end_byte
    if last_alone(source, start):
        start = source.line_end(start)
    outer = indentation(source, definition.node.start_byte)
    inner = _inner(source, outer, body)
    new = _below(source, code, inner, end) + _lines(source, f"\n{outer}", "", end)
    return Splice(start, end.start_byte, new)


def _inner(source: SourceFile, outer: str, first: Node | None) -> str:
    """Return the indentation of a block: that of its first node, if this begins a line, else one step more."""
    if first is not None and first_alone(source, first.start_byte):
        return indentation(source, first.start_byte)
    return outer + shift.unit(source)


def _in_braces(source: SourceFile, definition: Definition, body: Node, code: str) -> Splice:
    outer = _closing_indent(source, definition, body)
    # `public:` in C++ stands further out than what follows it, so it tells nothing of the indentation.
    first = next((child for child in body.named_children if child.type != "access_specifier"), None)
    inner = _inner(source, outer, first)
    new = _below(source, code, inner, body) + _lines(source, f"\n{outer}", "", body)
    return Splice(body.children[0].end_byte, body.children[-1].start_byte, new)


def _expression(source: SourceFile, definition: Definition, body: Node, code: str) -> Iterator[Splice]:
    start = body.start_byte
    if body.type == "arrow_expression_clause" and not code.strip().startswith("=>"):
        start = body.named_children[0].start_byte
    indent = indentation(source, definition.node.start_byte)
    plain = _lines(source, code, indent, body).removeprefix(indent)
    # As it is, without the semicolon of a statement, or as a block in braces.
    yield Splice(start, body.end_byte, plain)
    yield Splice(start, body.end_byte, plain.rstrip(";"))
    inside = _below(source, code, indent + shift.unit(source), body) + _lines(source, f"\n{indent}", "", body)
    after = body.next_sibling if body.type == "arrow_expression_clause" else None
    end = after.end_byte if after is not None and after.type == ";" else body.end_byte
    yield Splice(body.start_byte, end, "{" + inside + "}")


def _below(source: SourceFile, code: str, indent: str, near: Node) -> str:
    return _lines(source, "\n" + shift.shifted(source, code, indent, _own(source, near)), "", near)


def _lines(source: SourceFile, code: str, indent: str, near: Node) -> str:
    """Return the code with the line ends used near a node; shifted to `indent` unless that is empty."""
    moves = indent or not code.startswith("\n")
    text = shift.shifted(source, code, indent, _own(source, near)) if moves else code
    return shift.with_line_ends(source, text, near.start_byte)


def _own(source: SourceFile, near: Node) -> str:
    """Return the definition around a body, without its last line, where its closing bracket stands."""
    around = near.parent if near.parent is not None else near
    return source.slice(around.start_byte, around.end_byte).rpartition("\n")[0]


def _closing_indent(source: SourceFile, definition: Definition, body: Node) -> str:
    closing = body.children[-1].start_byte
    return indentation(source, closing if first_alone(source, closing) else definition.node.start_byte)


def _is_one_block(source: SourceFile, definition: Definition, splice: Splice) -> bool:
    """Return whether the code, in place of the body, is exactly that body, from its first brace to its last."""
    after = source_of(source.path, applied(source, [splice]))
    length = len(splice.text.encode("utf-8", "replace"))
    bodies = [each.body for each in after.definitions if each.qualified == definition.qualified] if after else []
    spans = {(each.start_byte, each.end_byte) for each in bodies if each is not None}
    return (splice.start, splice.start + length) in spans


def _is_braced(body: Node) -> bool:
    return body.child_count > 1 and (body.children[0].type, body.children[-1].type) in (("{", "}"), ("(", ")"))


def _end_word(definition: Definition) -> Node | None:
    last = definition.node.children[-1] if definition.node.child_count else None
    return last if last is not None and last.type == "end" else None


def _count(source: SourceFile, qualified: str) -> int:
    return sum(each.qualified == qualified for each in source.definitions)
