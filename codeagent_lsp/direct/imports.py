"""Puts the imports of a reply into a file that lacks them, without importing any name twice.

A statement that names several things is compared by what it names, where its language refuses or frowns upon the same
name imported twice; elsewhere as it is written. Pure functions. Not here: definitions (`definitions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.source import SourceFile, required
from codeagent_lsp.workspace.edits import merge

if TYPE_CHECKING:
    from tree_sitter import Node

_IMPORTS = frozenset(
    ("import_statement", "import_from_statement", "future_import_statement", "import_declaration", "use_declaration",
     "preproc_include", "using_directive", "namespace_use_declaration")
)  # fmt: skip
_LEADING = frozenset(("comment", "line_comment", "block_comment", "hash_bang_line", "package_clause", "php_tag"))
_SCRIPTS = ("javascript", "typescript", "tsx")
_ONCE = (*_SCRIPTS, "go", "rust")  # where two imports that bind the same name do not compile
_TYPE = "type "  # before what a script imports for types alone, which an import of the value gives too
_COMMENT = re.compile(r"//|/\*|#")
# The last part of a Go module's path from version 2 on, `example.com/x/v2`: the package is named otherwise.
_VERSION = re.compile(r"v\d+")
# `import d, { a, b as c } from "m";`, `import * as m from 'm'`, `import type { T } from "m"`.
_SCRIPT = re.compile(
    r"import(?P<type>\s+type)?\s+(?P<default>[\w$]+)?\s*,?\s*(?P<space>\*\s*as\s+[\w$]+)?\s*"
    r"(?:\{(?P<names>[^{}]*)\})?\s*from\s*(?P<module>\"[^\"]*\"|'[^']*')\s*;?"
)
_MODULES = re.compile(r"import\s+(?P<modules>[\w., ]+)")
_FROM = re.compile(r"from\s+(?P<module>[\w.]+)\s+import\s+(?:\((?P<many>[^()#]*)\)|(?P<names>[^()#]*))")


@dataclass(frozen=True, slots=True)
class _Part:
    """One thing that an import statement names: how it is compared, the name that it binds ('' if unknown), and a
    statement that imports it alone.
    """

    key: str
    name: str
    alone: str


@dataclass(frozen=True, slots=True)
class _Statement:
    """An import statement at the top level of a text, with what it names."""

    start: int
    end: int
    text: str
    parts: tuple[_Part, ...]

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys by which the names it imports are compared with those of other statements."""
        return frozenset(part.key for part in self.parts)


def with_imports(path: str, text: str, reply: SourceFile) -> str:
    """Return `text` with those imports of the reply added that it lacks, name by name; `path` gives the language by its
    suffix. EditRefused, in English for the model, if it already imports one of the names from elsewhere; ToolFailed if
    a text with an import to add cannot be parsed.
    """
    for statement in _statements(reply):
        text = _with_statement(required(path, text), statement)
    return text


def imported_names(source: SourceFile) -> frozenset[str]:
    """Return the names that the imports at the top level of a text bind, as far as their language shows them."""
    names = {part.name for each in _statements(source) for part in each.parts}
    if source.language == "python":
        for each in _statements(source):
            if found := _MODULES.fullmatch(each.text):
                for module in found["modules"].split(","):
                    path, _, name = (part.strip() for part in module.partition(" as "))
                    names.add(name or path.partition(".")[0])
    return frozenset(names - {"", "*", "_", "."})


def _with_statement(source: SourceFile, new: _Statement) -> str:
    """Return the text with one import: in the place of one that names less, else only what is missing, as its own."""
    own = _statements(source)
    known = frozenset[str]().union(*(each.keys for each in own))
    # An import of the value gives its type as well.
    missing = [part for part in new.parts if not known & {part.key, part.key.removeprefix(_TYPE)}]
    if not missing:
        return source.text
    covered = new.keys | {f"{_TYPE}{key}" for key in new.keys}
    same = [each for each in own if each.keys & covered]
    # The new statement names all that the old one does: put in its place, no name is imported twice. A comment would
    # be lost.
    if len(same) == 1 and same[0].keys <= covered and not _COMMENT.search(same[0].text):
        _refuse_other(source, [each for each in own if each is not same[0]], missing)
        return _splice(source, same[0].start, same[0].end, new.text)
    _refuse_other(source, own, missing)
    lines = new.text if len(missing) == len(new.parts) else "\n".join(part.alone for part in missing)
    place = _import_place(source)
    before, after = source.slice(0, place), source.slice(place, len(source.data))
    start = "\n" if before and not before.endswith(("\n", "\r")) else ""
    # Between the first import of a file and its code stands a blank line.
    gap = "" if own or not after.strip() or after.startswith(("\n", "\r")) else "\n"
    return _splice(source, place, place, f"{start}{lines}\n{gap}")


def _refuse_other(source: SourceFile, own: Sequence[_Statement], missing: Sequence[_Part]) -> None:
    """EditRefused if a missing name is bound by another import, where that does not compile."""
    if source.language not in _ONCE:
        return
    bound = {part.name: part for each in own for part in each.parts if part.name}
    for part in missing:
        if part.name in bound:
            old, new = bound[part.name].alone, part.alone
            raise EditRefused(
                "ambiguous",
                f"{source.path} has {old!r} already, and the code has {new!r}: both are named {part.name}. "
                "Use the import that the file has, or another name.",
            )


def _splice(source: SourceFile, start: int, end: int, new: str) -> str:
    done = source.slice(0, start) + new + source.slice(end, len(source.data))
    return merge.with_line_ends_of(source.text, done)


def _statements(source: SourceFile) -> list[_Statement]:
    """Return the import statements at the top level of a text. One with an attribute counts as it is written."""
    found = []
    for node in source.root.named_children:
        if node.type not in _IMPORTS:
            continue
        end = source.trimmed(node.end_byte)
        text = source.slice(node.start_byte, end).rstrip()
        before = node.prev_named_sibling
        # Rust's `#[cfg(test)] use …` holds under a condition: its names are not those of the plain statement.
        plain = before is None or before.type != "attribute_item"
        parts = tuple(_parts(source, node, text)) if plain else ()
        found.append(_Statement(node.start_byte, end, text, parts or (_Part(" ".join(text.split()), "", text),)))
    return found


def _parts(source: SourceFile, node: Node, text: str) -> Iterator[_Part]:
    """Yield what a statement names; nothing where that is not known."""
    if source.language in _SCRIPTS:
        yield from _of_script(text)
    elif source.language == "go":
        yield from _of_go(source, node)
    elif source.language == "rust":
        used = node.child_by_field_name("argument")
        public = "pub " if text.startswith("pub") else ""
        for path in _rust_paths(source, used) if used is not None else ():
            name = path.rpartition(" as ")[2].rpartition("::")[2].strip()
            yield _Part(path, "" if name in ("*", "_") else name, f"{public}use {path};")
    elif source.language == "python" and (found := _FROM.fullmatch(text)):
        for name in (found["many"] or found["names"]).split(","):
            if name := " ".join(name.split()):
                alone = f"from {found['module']} import {name}"
                yield _Part(alone, name.rpartition(" ")[2], alone)


def _of_script(text: str) -> Iterator[_Part]:
    found = _SCRIPT.fullmatch(text)
    if found is None or _COMMENT.search(found["names"] or ""):
        return
    names = [" ".join(name.split()) for name in (found["names"] or "").split(",") if name.strip()]
    others = [" ".join(found[kind].split()) for kind in ("default", "space") if found[kind]]
    rest = f"from {found['module']}{';' if text.endswith(';') else ''}"
    for name in [*others, *names]:
        typed = bool(found["type"]) or name.startswith(_TYPE)
        kind, plain = _TYPE if typed else "", name.removeprefix(_TYPE)
        shown = f"{{ {plain} }}" if name in names else plain
        key = f"{kind}{shown} from {found['module'][1:-1]}"
        yield _Part(key, plain.rpartition(" ")[2], f"import {kind}{shown} {rest}")


def _of_go(source: SourceFile, node: Node) -> Iterator[_Part]:
    specs = [each for child in node.named_children for each in (child, *child.named_children)]
    for spec in (each for each in specs if each.type == "import_spec"):
        path, alias = spec.child_by_field_name("path"), spec.child_by_field_name("name")
        if path is None:
            continue
        module = source.slice(path.start_byte + 1, path.end_byte - 1)
        name = source.slice(alias.start_byte, alias.end_byte) if alias is not None else ""
        last = module.rpartition("/")[2]
        bound = name or ("" if _VERSION.fullmatch(last) else last)
        key = f'{name} "{module}"'.strip()
        yield _Part(key, "" if bound in ("_", ".") else bound, f"import {key}")


def _rust_paths(source: SourceFile, node: Node, above: str = "") -> Iterator[str]:
    """Yield the full paths of a tree of `use`, each with its `as`."""
    if node.type == "scoped_use_list":
        path, names = node.child_by_field_name("path"), node.child_by_field_name("list")
        if path is not None:
            above += f"{source.slice(path.start_byte, path.end_byte)}::"
        if names is not None:
            yield from _rust_paths(source, names, above)
    elif node.type == "use_list":
        for child in node.named_children:
            yield from _rust_paths(source, child, above)
    elif not node.type.endswith("comment"):
        name = " ".join(source.slice(node.start_byte, node.end_byte).split())
        whole = above + name
        # `use a::b::{self, C}` imports `a::b` itself.
        yield whole.replace("::self", "", 1) if name == "self" or name.startswith("self as ") else whole


def _import_place(source: SourceFile) -> int:
    """Return the byte offset for the next import: after the last one, else after the leading comments and the
    docstring.
    """
    place = 0
    leading = True
    for child in source.root.children:
        if child.type in _IMPORTS:
            place = source.line_after(source.trimmed(child.end_byte) - 1)
            leading = False
        elif leading and (
            child.type in _LEADING or _is_docstring(child.type, source.slice(child.start_byte, child.end_byte))
        ):
            place = source.line_after(source.trimmed(child.end_byte) - 1)
        elif leading:
            leading = False
    return place


def _is_docstring(kind: str, text: str) -> bool:
    return kind == "expression_statement" and text.lstrip("rRuU").startswith(('"', "'"))
