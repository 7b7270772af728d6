"""The symbol around a place in a text, by the syntax tree: what an empty selection means.

Parses one text when asked, with the official tree-sitter grammars; knows nothing of other files.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from pathlib import PurePosixPath

from tree_sitter import Language, Node, Parser

MAX_CHARS = 1_000_000

_GRAMMARS: dict[str, tuple[str, str]] = {
    ".py": ("tree_sitter_python", "language"),
    ".pyi": ("tree_sitter_python", "language"),
    ".js": ("tree_sitter_javascript", "language"),
    ".mjs": ("tree_sitter_javascript", "language"),
    ".cjs": ("tree_sitter_javascript", "language"),
    ".jsx": ("tree_sitter_javascript", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".java": ("tree_sitter_java", "language"),
    ".c": ("tree_sitter_c", "language"),
    ".h": ("tree_sitter_cpp", "language"),
    ".cc": ("tree_sitter_cpp", "language"),
    ".cpp": ("tree_sitter_cpp", "language"),
    ".hpp": ("tree_sitter_cpp", "language"),
    ".cs": ("tree_sitter_c_sharp", "language"),
    ".rb": ("tree_sitter_ruby", "language"),
    ".php": ("tree_sitter_php", "language_php"),
    ".sh": ("tree_sitter_bash", "language"),
    ".bash": ("tree_sitter_bash", "language"),
}

_SYMBOLS = (
    "function", "method", "class", "struct", "enum", "interface", "trait", "impl_item", "module_definition",
    "constructor", "type_alias", "namespace", "decorated_definition",
)  # fmt: skip
_ENDINGS = ("_definition", "_declaration", "_item", "_specifier", "_statement", "method", "class", "module")
_NOT_SYMBOLS = ("_call", "_expression", "_type", "parameters", "_body", "_signature")


def enclosing_symbol(name: str, text: str, offset: int) -> tuple[int, int] | None:
    """The offsets of the innermost function, method or class around `offset`, widened to whole lines.

    None where the language is unknown, the text is over a million characters, or nothing encloses the place.
    """
    grammar = _GRAMMARS.get(PurePosixPath(name).suffix.lower())
    if grammar is None or len(text) > MAX_CHARS:
        return None
    source = text.encode("utf-8", "replace")
    place = len(text[:offset].encode("utf-8", "replace"))
    node: Node | None = _parser(*grammar).parse(source).root_node.descendant_for_byte_range(place, place)
    while node is not None and not _is_symbol(node):
        node = node.parent
    if node is None:
        return None
    if node.parent is not None and node.parent.type == "decorated_definition":
        node = node.parent
    start = len(source[: node.start_byte].decode("utf-8", "replace"))
    end = len(source[: node.end_byte].decode("utf-8", "replace"))
    return _whole_lines(text, start, end)


@lru_cache(maxsize=16)
def _parser(module: str, function: str) -> Parser:
    return Parser(Language(getattr(importlib.import_module(module), function)()))


def _is_symbol(node: Node) -> bool:
    kind = node.type
    if not node.is_named or kind.endswith(_NOT_SYMBOLS):
        return False
    return any(word in kind for word in _SYMBOLS) and kind.endswith(_ENDINGS)


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Widened to the line's indentation in front and the line end behind, if nothing else stands there."""
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    if not text[line:start].strip():
        start = line
    stop = end
    while stop < len(text) and text[stop] in " \t":
        stop += 1
    for newline in ("\r\n", "\n", "\r"):
        if text.startswith(newline, stop):
            return start, stop + len(newline)
    return (start, stop) if stop == len(text) else (start, end)
