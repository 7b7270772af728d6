"""Imports of a definition that has moved to another file, in Python, TypeScript and JavaScript. Pure.

Not here: other uses of its name (`sites.py`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.inline.next_edit.parsed_text import ParsedText, nodes_of

if TYPE_CHECKING:
    from tree_sitter import Node

_SCRIPT_ENDING = re.compile(r"(?:\.d)?\.[mc]?[jt]sx?$")


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the characters from `start` to `end` (0-based, half-open) of a text by `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class NamedImport:
    """An import of one name as syntax nodes: the statement, the module as written, the entry in the list, the name in
    it, and all entries.
    """

    statement: Node
    module: Node
    entry: Node
    name: Node
    entries: tuple[Node, ...]


def named_imports(text: ParsedText, name: str) -> Iterator[NamedImport]:
    """Yield the places at which a name is imported by `from … import` (Python) or `import { … } from` (JavaScript,
    TypeScript), in their order.
    """
    for node in nodes_of(text.root):
        if node.type == "import_from_statement":
            module, entries = node.child_by_field_name("module_name"), node.children_by_field_name("name")
        elif node.type == "import_statement" and node.child_by_field_name("source") is not None:
            module = node.child_by_field_name("source")
            entries = [each for each in nodes_of(node) if each.type == "import_specifier"]
        else:
            continue
        for entry in entries if module is not None else ():
            said = entry.child_by_field_name("name") or entry
            if text.of(said) == name and module is not None:
                yield NamedImport(node, module, entry, said, tuple(entries))


def import_edits(text: ParsedText, found: NamedImport, was_in: str, now_in: str) -> tuple[Edit, ...] | None:
    """Return the edits that import the name from the file `now_in` instead of `was_in` (paths as that of the text);
    None if they are not clear or another module is imported.
    """
    python = found.statement.type == "import_from_statement"
    written = text.of(found.module)
    if text.path == now_in:
        return _without(text, found, "")
    make = python_module if python else script_module
    module = make(text.path, written, was_in, now_in)
    if module is None:
        return None
    if len(found.entries) == 1 and _is_alone(found.statement):
        return (edit_at(text, found.module.start_byte, found.module.end_byte, module),)
    entry = text.of(found.entry)
    line = f"from {module} import {entry}" if python else _script_line(text, found, module, entry)
    return _without(text, found, line)


def _is_alone(statement: Node) -> bool:
    """Return whether a statement imports nothing beside its list."""
    clause = next((child for child in statement.named_children if child.type == "import_clause"), None)
    return clause is None or clause.named_child_count == 1


def _script_line(text: ParsedText, found: NamedImport, module: str, entry: str) -> str:
    whole = text.of(found.statement)
    kind = "import type" if re.match(r"import\s+type\b", whole) else "import"
    return f"{kind} {{ {entry} }} from {module}{';' if whole.rstrip().endswith(';') else ''}"


def _without(text: ParsedText, found: NamedImport, line: str) -> tuple[Edit, ...]:
    """Return the edits that take a name out of its statement, and put a line behind that."""
    statement = found.statement
    begin = text.data.rfind(b"\n", 0, statement.start_byte) + 1
    indentation = text.between(begin, statement.start_byte)
    if len(found.entries) == 1:
        if line:
            return (edit_at(text, statement.start_byte, statement.end_byte, line),)
        end = statement.end_byte + (text.data[statement.end_byte : statement.end_byte + 1] == b"\n")
        return (edit_at(text, begin, end, ""),)
    at = [each.start_byte for each in found.entries].index(found.entry.start_byte)
    if at + 1 < len(found.entries):
        gone = edit_at(text, found.entry.start_byte, found.entries[at + 1].start_byte, "")
    else:
        gone = edit_at(text, found.entries[at - 1].end_byte, found.entry.end_byte, "")
    if not line:
        return (gone,)
    return (gone, edit_at(text, statement.end_byte, statement.end_byte, f"\n{indentation}{line}"))


def python_module(path: str, written: str, was_in: str, now_in: str) -> str | None:
    """Return the module name of the file `now_in` for an import in the file `path`, which imports from `was_in` as
    `written`; None if `written` is another module, or there is no such name.
    """
    before, after = _stem(was_in), _stem(now_in)
    dots = len(written) - len(written.lstrip("."))
    inner = written.lstrip(".").replace(".", "/")
    if dots:
        base = posixpath.dirname(path)
        for _ in range(dots - 1):
            base = posixpath.dirname(base)
        if posixpath.normpath(posixpath.join(base, inner)) != before:
            return None
        return _relative_module(posixpath.dirname(path), after)
    if before != inner and not before.endswith(f"/{inner}"):
        return None
    root = before[: len(before) - len(inner)]
    return after.removeprefix(root).replace("/", ".") if after.startswith(root) and after != root else None


def _relative_module(folder: str, target: str) -> str:
    steps = posixpath.relpath(target, folder or ".").split("/")
    up = sum(step == ".." for step in steps)
    return "." * (up + 1) + ".".join(step for step in steps if step not in ("..", "."))


def _stem(path: str) -> str:
    return re.sub(r"\.pyi?$", "", path).removesuffix("/__init__")


def script_module(path: str, written: str, was_in: str, now_in: str) -> str | None:
    """Return the module of the file `now_in` with its quotes, for an import in the file `path`; None if `written` is
    not relative or is another module.
    """
    quote, inner = written[:1], written[1:-1]
    if not inner.startswith("."):
        return None
    folder = posixpath.dirname(path)
    target = posixpath.normpath(posixpath.join(folder, inner))
    bare = _SCRIPT_ENDING.sub("", target)
    before = _SCRIPT_ENDING.sub("", was_in)
    if bare not in (before, before.removesuffix("/index")):
        return None
    relative = posixpath.relpath(_SCRIPT_ENDING.sub("", now_in), folder or ".")
    relative = relative if relative.startswith(".") else f"./{relative}"
    ending = target[len(bare) :]
    return f"{quote}{relative}{ending}{quote}"


def edit_at(text: ParsedText, start: int, end: int, new: str) -> Edit:
    """Return the edit that replaces the bytes from `start` to `end` of a text's UTF-8 form by `new`, with its offsets
    in characters.
    """
    return Edit(text.char(start), text.char(end), new)
