"""Parsing of a text into definitions, uses and imports, by the tree-sitter query of its language (`languages/*.scm`).

Captures besides those of definitions (`outline.py`): `use` is any name, `call` one that is called, `bound` one that is
only bound (a parameter); `import` a statement, `module` and `taken` the module and the names it imports. Not here:
finding files, storing results.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.index import grammars
from codeagent_lsp.index.outline import Outline, by_last_line, order_definitions
from codeagent_lsp.index.symbols import FileTags, Import, RawTags, tags_of
from codeagent_lsp.workspace.text.encoding import decode

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_BYTES = 1 << 20
SECONDS = 5.0
MAX_DEPTH = 400  # of the syntax tree: names nested deeper are ignored
MAX_ERROR = 8_000  # child nodes of one syntax error
MAX_LOOKED_AT = 20_000

_WATCHED = 32_768  # bytes; checking the time costs a fifth, and shorter texts are parsed quickly
_LONGEST_NAME = 120


def parse(path: str, data: bytes | str, *, seconds: float = SECONDS) -> FileTags:
    """Return the tags of a text, whose language follows from `path`. Never raises.

    Without tags: an unknown language, no text, over 1 MiB; and, with `broken` set, over the time limit (`seconds`, 5 by
    default) or no code at all.
    """
    return tags_of(find(path, data, seconds=seconds))


def find(path: str, data: bytes | str, *, seconds: float = SECONDS) -> RawTags:
    """Parse a text as `parse` does, and return the result in the form that is fast to pack."""
    known = _grammar_and_bytes(path, data)
    if known is None:
        return RawTags("")
    parsed = _parse(path, *known, seconds)
    if parsed is None:
        return RawTags(known[0].name, broken=True)
    return RawTags(
        parsed.grammar.name,
        tuple(parsed.outline.symbols),
        _uses(parsed.captures, parsed.source, parsed.outline.names_at),
        tuple(imports_of(parsed)),
        parsed.tree.root_node.has_error,
    )


@dataclass(frozen=True)
class Parsed:
    """A parsed text: its UTF-8 bytes and syntax tree. What its language's query finds is computed on first use, as that
    takes longer than parsing. `within` limits it to what overlaps a range of bytes.
    """

    path: str
    grammar: grammars.Grammar
    source: bytes
    tree: Tree
    within: tuple[int, int] | None = None

    @cached_property
    def captures(self) -> Mapping[str, Sequence[Node]]:
        """The nodes that the query captures, by the names that it gives them."""
        return _captures(self.grammar, self.tree, self.within)

    @cached_property
    def outline(self) -> Outline:
        """The definitions of the text; computed on first use."""
        outline = Outline(self.source, by_last_line(self.captures.get("above", ())))
        for definition in order_definitions(self.captures):
            outline.add(self.path, definition)
        return outline


def parsed(path: str, data: bytes | str, *, within: tuple[int, int] | None = None) -> Parsed | None:
    """Return the parsed text with its tree; None if the language is unknown, the data is binary, the text is over 1
    MiB, parsing takes more than 5 s, or the syntax errors are so long that it cannot be code. `within` (byte offsets)
    limits what the query finds.
    """
    known = _grammar_and_bytes(path, data)
    return _parse(path, *known, SECONDS, within) if known is not None else None


def faults_of(root: Node) -> Iterator[Node]:
    """Yield the error and missing nodes of a tree in order, none inside another, as far as they are among the first
    20,000 nodes that are looked at.
    """
    pending = [root]
    for _ in range(MAX_LOOKED_AT):
        if not pending:
            return
        node = pending.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            pending.extend(reversed(node.children))


def imports_of(parsed: Parsed) -> list[Import]:
    """Return the imports, one per module named; imported names belong to the last module of their statement."""
    return _imports(parsed.captures, parsed.source)


def _grammar_and_bytes(path: str, data: bytes | str) -> tuple[grammars.Grammar, bytes] | None:
    """Return the grammar and the UTF-8 bytes of a text.

    None for an unknown language, binary data or too long a text.
    """
    source = _utf8(data)
    grammar = grammars.grammar_of(path, source) if source is not None else None
    return None if source is None or grammar is None or len(source) > MAX_BYTES else (grammar, source)


def _parse(
    path: str, grammar: grammars.Grammar, source: bytes, seconds: float, within: tuple[int, int] | None = None
) -> Parsed | None:
    end = time.monotonic() + seconds
    stop = (lambda *_: time.monotonic() > end) if len(source) > _WATCHED else None
    tree = grammars.tree_of(grammar, source, stop)
    if tree is None or _is_hopeless(tree):
        return None
    return Parsed(path, grammar, source, tree, within)


def _utf8(data: bytes | str) -> bytes | None:
    """Return the text as UTF-8; None for binary data."""
    if isinstance(data, str):
        return data.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        return None
    try:
        return decode(data).text.encode("utf-8", "replace")
    except FileRefused:
        return None


def _captures(grammar: grammars.Grammar, tree: Tree, within: tuple[int, int] | None) -> Mapping[str, Sequence[Node]]:
    # No time limit, as the binding crashes with one. Slow cases are excluded before: depth, and long errors.
    cursor = grammars.cursor(grammars.query(grammar))
    cursor.set_max_start_depth(MAX_DEPTH)
    if within is not None:
        cursor.set_byte_range(*within)
    return cursor.captures(tree.root_node)


def _is_hopeless(tree: Tree) -> bool:
    """Return whether the tree has errors so long that queries would take quadratic time."""
    pending = [tree.root_node] if tree.root_node.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error and node.child_count > MAX_ERROR:
            return True
        pending += [child for child in node.children if child.has_error]
    return False


def _uses(captures: Mapping[str, Sequence[Node]], source: bytes, names_at: set[int]) -> dict[str, list[int]]:
    """Return the 1-based lines of the uses of each name, negative where it is called."""
    calls = {node.start_byte for node in captures.get("call", ())}
    skipped = names_at.union(node.start_byte for node in captures.get("bound", ()))
    found: dict[bytes, list[int]] = {}
    for node in captures.get("use", ()):
        start = node.start_byte
        if start not in skipped:
            line = node.start_point[0] + 1
            name = source[start : node.end_byte]
            if name in found:
                found[name].append(-line if start in calls else line)
            else:
                found[name] = [-line if start in calls else line]
    return {name.decode("utf-8", "replace"): lines for name, lines in found.items() if 0 < len(name) <= _LONGEST_NAME}


def _imports(captures: Mapping[str, Sequence[Node]], source: bytes) -> list[Import]:
    statements = sorted(captures.get("import", ()), key=lambda node: node.start_byte)
    starts = [node.start_byte for node in statements]
    modules: list[list[Node]] = [[] for _ in statements]
    taken: list[list[Node]] = [[] for _ in statements]
    for places, nodes in ((modules, captures.get("module", ())), (taken, captures.get("taken", ()))):
        for node in sorted(nodes, key=lambda node: node.start_byte):
            at = bisect_right(starts, node.start_byte) - 1
            if at >= 0 and node.end_byte <= statements[at].end_byte:
                places[at].append(node)
    found = []
    for named, names in zip(modules, taken, strict=True):
        for node in named:
            last = node is named[-1]
            text = tuple(dict.fromkeys(_plain(each, source) for each in names)) if last else ()
            module = _plain(node, source).split("::{")[0].split(" as ")[0]
            found.append(Import(module, text, node.start_point[0] + 1))
    return found


def _plain(node: Node, source: bytes) -> str:
    """Return the text of a name or a string literal, on one line."""
    text = " ".join(source[node.start_byte : node.end_byte].decode("utf-8", "replace").split())
    return text.strip("\"'`<>") if text[:1] in "\"'`<" else text
