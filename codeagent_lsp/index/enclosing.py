"""The symbol that encloses an offset in a text, found in the syntax tree, as used for an empty selection.

Parses one text on request with the official tree-sitter grammars; other files are not considered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.index import grammars

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_CHARS = 1_000_000

_SYMBOL_NAMES = """
    function_definition function_declaration function_item function_signature_item generator_function_declaration
    method_definition method_declaration method singleton_method constructor_declaration
    compact_constructor_declaration destructor_declaration local_function_statement operator_declaration
    indexer_declaration property_declaration class_definition class_declaration abstract_class_declaration class
    singleton_class record_declaration struct_declaration struct_item union_item enum_declaration enum_item
    interface_declaration annotation_type_declaration trait_declaration trait_item impl_item mod_item module
    internal_module namespace_definition namespace_declaration type_declaration type_alias_declaration
    type_alias_statement decorated_definition template_declaration
"""
_SYMBOLS = frozenset(_SYMBOL_NAMES.split())
# `struct point p;` has such a node, too, and only uses the type.
_WITH_BODY = frozenset(("struct_specifier", "class_specifier", "enum_specifier", "union_specifier"))
# Functions without a name count only where a variable or a field holds them.
_VALUES = frozenset(("arrow_function", "function_expression", "generator_function", "class"))
_HOLDERS = frozenset(("variable_declarator", "field_definition", "public_field_definition"))
_WRAPPERS = frozenset(
    ("decorated_definition", "export_statement", "template_declaration", "type_definition",
     "lexical_declaration", "variable_declaration")
)  # fmt: skip


def enclosing_symbol(name: str, text: str, offset: int) -> tuple[int, int] | None:
    """Return the offsets (code points) of the innermost function, method or class around `offset`, in whole lines; the
    suffix of `name` gives the language. None if the language is unknown, the text has over a million characters, or
    nothing encloses the offset.
    """
    tree = syntax_tree(name, text)
    if tree is None:
        return None
    # A tree counts in bytes of UTF-8.
    source = text.encode("utf-8", "replace")
    place = len(text[: _on_code(text, offset)].encode("utf-8", "replace"))
    node: Node | None = tree.root_node.descendant_for_byte_range(place, place)
    while node is not None and not _is_symbol(node):
        node = node.parent
    if node is None:
        return None
    node = _outermost(node)
    start = len(source[: node.start_byte].decode("utf-8", "replace"))
    end = len(source[: node.end_byte].decode("utf-8", "replace"))
    return _whole_lines(text, start, end)


def syntax_tree(name: str, text: str) -> Tree | None:
    """Return the syntax tree over the UTF-8 bytes of `text`; None for an unknown language or more than a million
    characters.
    """
    grammar = grammars.grammar_of(name)
    if grammar is None or len(text) > MAX_CHARS:
        return None
    return grammars.tree_of(grammar, text.encode("utf-8", "replace"))


def _on_code(text: str, offset: int) -> int:
    """Return the offset, moved from the blanks at either end of a line to the line's code."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    ends = (text.find(newline, offset) for newline in "\r\n")
    line = text[start : min((end for end in ends if end >= 0), default=len(text))]
    if not line.strip():
        return offset
    first = len(line) - len(line.lstrip())
    return start + min(max(offset - start, first), len(line.rstrip()) - 1)


def _is_symbol(node: Node) -> bool:
    if not node.is_named or node.parent is None:
        return False
    if node.type in _WITH_BODY:
        return node.child_by_field_name("body") is not None
    if node.type in _VALUES:
        return node.type == "class" or node.parent.type in _HOLDERS
    return node.type in _SYMBOLS


def _outermost(node: Node) -> Node:
    """Return the node with what belongs to the symbol: decorators, `export`, a template's head, an assignment."""
    while node.parent is not None and (node.parent.type in _WRAPPERS or node.parent.type in _HOLDERS):
        node = node.parent
    return node


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen the span by the line's indentation before and the line end behind, if there is nothing else."""
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    if not text[line:start].strip():
        start = line
    stop = end
    while stop < len(text) and text[stop] in " \t;":
        stop += 1
    for newline in ("\r\n", "\n", "\r"):
        if text.startswith(newline, stop):
            return start, stop + len(newline)
    return (start, stop) if stop == len(text) else (start, end)
