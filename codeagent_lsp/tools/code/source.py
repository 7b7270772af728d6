"""A parsed text with its definitions and imports, for the tools of group `code`, and the definition that a name like
`Class.method` or `Class.method#2` means in it.

Positions in the tree are byte offsets of the UTF-8 form; `char` converts them to character offsets. Not here: what
belongs to a definition (`extent.py`), uses of names (`uses.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from codeagent_lsp.errors import EditRefused, ErrorCode, ToolFailed
from codeagent_lsp.index import grammars, parse
from codeagent_lsp.index.parse import body_of
from codeagent_lsp.index.symbols import Import, SymbolInfo

if TYPE_CHECKING:
    from tree_sitter import Node


_SIGNATURES = frozenset(("property_signature", "method_signature"))
_ORDINAL = re.compile(r"^(.*)#(\d+)$", re.DOTALL)
_CALLED = re.compile(r"(?<!operator)\(\)\Z")
_SEPARATORS = re.compile(r"::|->|(?<=\w)#|\\")  # the `#` of a private name in JavaScript is a part of it
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition with its nodes: as captured, with its wrappers, and its name (None if it has none to rename)."""

    symbol: SymbolInfo
    node: Node
    outer: Node
    name: Node | None

    @property
    def qualified(self) -> str:
        """The dotted name `Parent.name`."""
        return self.symbol.qualified

    @property
    def body(self) -> Node | None:
        """The node of its body; None if it has none."""
        return body_of(self.node)


@dataclass(frozen=True)
class SourceFile:
    """A parsed text, of which nothing changes. `path` is the name as shown to the model and determines the language."""

    path: str
    text: str
    parsed: parse.Parsed

    @property
    def language(self) -> str:
        """The name of the grammar, such as `python` or `tsx`."""
        return self.parsed.grammar.name

    @property
    def data(self) -> bytes:
        """The text as the UTF-8 bytes that the tree's offsets refer to."""
        return self.parsed.source

    @property
    def root(self) -> Node:
        """The root node of the syntax tree."""
        return self.parsed.tree.root_node

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions, outer ones first, without the members of anonymous types."""
        found: list[Definition] = []
        end = 0
        for place in self.parsed.outline.places:
            if place.node.type in _SIGNATURES and place.node.start_byte < end and not place.symbol.parent:
                continue
            if place.symbol.kind == "type":
                end = max(end, place.node.end_byte)
            found.append(Definition(*place))
        return tuple(found)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """The imports, as written in the text, in its order; () for none."""
        return tuple(parse.imports_of(self.parsed))

    @cached_property
    def faults(self) -> tuple[Node, ...]:
        """The error and missing nodes of the tree in order, none inside another."""
        return tuple(parse.faults_of(self.root))

    def char(self, place: int) -> int:
        """Return the character offset in `text` for a byte offset in `data`."""
        # All is ASCII, so both count alike; the usual case, and the other one decodes all that is before.
        if len(self.data) == len(self.text):
            return place
        return len(self.data[:place].decode("utf-8", "replace"))

    def trimmed(self, end: int) -> int:
        """Return the end of a node (byte offset) without the line end, which some grammars include in comments."""
        return end - (len(last := self.data[max(0, end - 2) : end]) - len(last.rstrip(b"\r\n")))

    def trimmed_blanks(self, end: int) -> int:
        """Return the offset where the text before `end` stops, without trailing blanks and line ends."""
        start = max(0, end - 4096)
        return start + len(self.data[start:end].rstrip())

    def slice(self, start: int, end: int) -> str:
        """Return the text between two byte offsets; cut characters become U+FFFD."""
        return self.data[start:end].decode("utf-8", "replace")

    def line(self, place: int) -> int:
        """Return the 1-based line of a byte offset."""
        return self.data.count(b"\n", 0, place) + 1

    def line_start(self, place: int) -> int:
        """Return the byte offset at which the line of `place` begins."""
        return self.data.rfind(b"\n", 0, place) + 1

    def line_end(self, place: int) -> int:
        """Return the byte offset of the end of the line of `place`, before its LF or CRLF; the end of the text for the
        last line.
        """
        end = self.data.find(b"\n", place)
        end = len(self.data) if end < 0 else end
        return end - 1 if self.data[end - 1 : end] == b"\r" and end > place else end

    def line_after(self, place: int) -> int:
        """Return the byte offset of the start of the next line; the end of the text for the last one."""
        end = self.data.find(b"\n", place)
        return len(self.data) if end < 0 else end + 1


def walked(root: Node, into: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """Yield a node and all below it in the order of the text, of any depth, without recursion; what is below a node
    that `into` refuses is left out, the node itself is not.
    """
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        if into(node):
            pending.extend(reversed(node.children))


def source_of(path: str, text: str, within: tuple[int, int] | None = None) -> SourceFile | None:
    """Return the text parsed, in the language of the file name `path`; None for an unknown language, or a text that is
    too long or cannot be parsed. With `within`, a range of bytes, its definitions and imports are only those that
    overlap it.
    """
    parsed = parse.parsed(path, text, within=within)
    return SourceFile(path, text, parsed) if parsed is not None else None


def required(path: str, text: str) -> SourceFile:
    """Return the text parsed, as `source_of`. ToolFailed, with advice for the model, if its language is not known or it
    cannot be parsed.
    """
    source = source_of(path, text)
    if source is not None:
        return source
    if grammars.grammar_of(path, text[:200].encode("utf-8", "replace")) is None:
        message = f"The language of {path} is not known here. Use read_file, grep and edit_file."
        raise ToolFailed(message, ErrorCode.INVALID_PARAM)
    message = f"{path} cannot be parsed: too long, or not code. Use read_file, grep and edit_file."
    raise ToolFailed(message, ErrorCode.INVALID_PARAM)


def matching(definitions: Sequence[Definition], name: str) -> tuple[Definition, ...]:
    """Return the definitions that a dotted name refers to: exact matches, else those whose dotted name ends with it.

    A definition inside another match, such as a constructor with its class's name, must be named with its parent.
    """
    plain = normal(name)
    exact = tuple(each for each in definitions if each.qualified == plain)
    ending = exact or tuple(each for each in definitions if each.qualified.endswith(f".{plain}"))
    names = {each.qualified for each in ending}
    return tuple(each for each in ending if each.symbol.parent not in names)


def normal(name: str) -> str:
    """Return a name with dots as separators, whatever separators its language uses, without a `()` at its end
    and `$`.
    """
    return _SEPARATORS.sub(".", _CALLED.sub("", name.strip())).strip(".").replace("$", "")


def find_all(source: SourceFile, target: str) -> tuple[Definition, ...]:
    """Return all definitions that `target` refers to (`name`, `Class.method`, `name#2` for the second), at least one.
    EditRefused, with similar names, if there is none.
    """
    found = _ORDINAL.match(target.strip())
    name, number = (found[1], int(found[2])) if found else (target, 0)
    candidates = matching(source.definitions, name)
    if not candidates or number > len(candidates):
        raise EditRefused("not_found", _not_found(source, target, candidates))
    return (candidates[number - 1],) if number else candidates


def find_one(source: SourceFile, target: str) -> Definition:
    """Return the one definition that `target` refers to. EditRefused, with all candidates, if there is none or
    several.
    """
    candidates = find_all(source, target)
    if len(candidates) == 1:
        return candidates[0]
    raise EditRefused("ambiguous", ambiguous(source.path, target, candidates))


def ambiguous(path: str, target: str, candidates: Sequence[Definition]) -> str:
    """Return a message for the model that lists the candidates for `target`, at most 20, and how to name each."""
    shown = "\n".join(
        f"  {normal(target)}#{number}: line {each.symbol.line_start}: {each.symbol.signature}"
        for number, each in enumerate(candidates[:_MOST_SHOWN], 1)
    )
    return f"{target} means {len(candidates)} definitions in {path}. Name one of them:\n{shown}"


def _not_found(source: SourceFile, target: str, candidates: Sequence[Definition]) -> str:
    if candidates:
        return ambiguous(source.path, normal(target.rpartition("#")[0]), candidates)
    known = {each.qualified: each.symbol.line_start for each in source.definitions}
    last = normal(target).rpartition(".")[2]
    lasts = {name: name.rpartition(".")[2] for name in known}
    alike = {last, *get_close_matches(last, lasts.values(), 5)}
    near = [name for name in known if lasts[name] in alike] or get_close_matches(normal(target), known, 5)
    if near:
        listed = ", ".join(f"{name} (line {known[name]})" for name in near[:5])
        return f"{source.path} defines no {target}. Similar: {listed}."
    listed = ", ".join(list(known)[:_MOST_SHOWN])
    return f"{source.path} defines no {target}. It defines: {listed}." if listed else f"{source.path} defines nothing."
