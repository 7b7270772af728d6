"""Renaming of a definition and of its certain uses: in the same text, and in files whose imports show that it is meant.

Not here: uses through objects of unknown type, which are only reported.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.literals import COMMENTS, STRINGS
from codeagent_lsp.index.symbols import Import
from codeagent_lsp.tools.code.imports import ImportTargets, resolved
from codeagent_lsp.tools.code.meaning import (
    WITHOUT_SELF,
    Elsewhere,
    cannot_mean,
    elsewhere,
    hidden,
    is_fully_qualified,
    is_member,
    surely_means,
    with_constructors,
)
from codeagent_lsp.tools.code.owners import STATIC_APART, dotted_path, is_static, may_be_inherited
from codeagent_lsp.tools.code.places import ancestors
from codeagent_lsp.tools.code.source import Definition, SourceFile, ambiguous
from codeagent_lsp.tools.code.splices import Splice
from codeagent_lsp.tools.code.uses import Use, Uses, of_one_kind

if TYPE_CHECKING:
    from tree_sitter import Node


_ALL = re.compile(rb"^__all__\b[^=\n]*=\s*[\[(][^\])]*[\])]", re.MULTILINE)
_NAME = re.compile(r"[^\W\d]\w*")
_NAMES = {
    "javascript": re.compile(r"#?[^\W\d$]?[\w$]*"),
    "ruby": re.compile(r"[^\W\d]\w*[?!=]?"),
    "bash": re.compile(r"[^\W\d][\w:.-]*"),
}
_OTHER_PARTS = frozenset(("module_name", "alias", "path", "scope", "source"))
"""The fields of an import that hold something else than the imported name."""
_LITERALS = frozenset(("string", "string_literal", "raw_string_literal", "regex"))
_WHOLE = frozenset(("c", "cpp"))
"""Languages in which an import brings every name of the file."""
_PACKAGE = re.compile(r"^package\s+([\w.]+)", re.MULTILINE)
_ALIAS = re.compile(r"\bas\s+([A-Za-z_$][\w$]*)")
_GO_ALIAS = re.compile(r"([A-Za-z_]\w*)\s+[\"`]")
_REQUIRED = re.compile(r"([A-Za-z_$][\w$]*)\s*=\s*require\b")


@dataclass(frozen=True, slots=True)
class Renamed:
    """The splices of a rename, and the 1-based lines on which the old name was left. `doubtful` are those of these
    lines on which it may mean the renamed definition, as the syntax alone cannot exclude it.
    """

    splices: tuple[Splice, ...]
    left: tuple[int, ...]
    doubtful: tuple[int, ...] = ()


def rename(source: SourceFile, definitions: Sequence[Definition], name: str) -> Renamed:
    """Return the splices that rename `definitions`, which share one dotted name, to `name`.

    Only uses that certainly mean them are renamed. EditRefused for an invalid or taken name, or a definition whose name
    cannot be isolated.
    """
    first = definitions[0]
    new = _check_name(source, first, name.strip())
    uses = Uses(source)
    # Overloads and the declarations of one thing are renamed together, a function and a class of one name never.
    if not all(of_one_kind(first, each, source.language) for each in definitions):
        raise EditRefused("ambiguous", ambiguous(source.path, first.qualified, definitions))
    _refuse_taken(source, uses, definitions, new)
    old = first.symbol.name
    if again := _declared_again(source, uses, definitions):
        message = (
            f"{old} is declared again on line {source.line(again[0].start_byte)} of {source.path}, so that it is not"
        )
        raise EditRefused("ambiguous", f"{message} sure what each use means. Use edit_file.")
    nodes = [each.name for each in with_constructors(source, definitions) if each.name is not None]
    splices = [Splice(*_bare(source, node.start_byte, node.end_byte, old), new) for node in nodes]
    doubtful = [source.line(place) for place in (*_in_strings(source, old), *blind(source, old))]
    doubtful += [each.line for each in _later_stars(source, max(each.node.start_byte for each in definitions))]
    for use in uses.named(old):
        # Three kinds: surely the same, surely another, and the rest, which is left as it is and told. To rename one too
        # many breaks code that nobody looks at.
        if surely_means(source, uses, definitions, use) and not uses.is_shared(definitions, use):
            splices.append(Splice(use.node.start_byte, use.node.end_byte, replacement_of(use, old, new)))
        elif not cannot_mean(source, uses, definitions, Elsewhere(), use):
            doubtful.append(source.line(use.node.start_byte))
    # one name may be found both as a definition and as a use
    unique = {(each.start, each.end): each for each in splices}
    return Renamed(tuple(unique.values()), lines_left(source, old, unique), tuple(dict.fromkeys(doubtful)))


def lines_left(source: SourceFile, old: str, changed: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the 1-based lines on which the old name still occurs as a word, besides the `changed` places (byte
    offsets).
    """
    starts = {start for start, _ in changed}
    word = re.compile(rb"(?<![\w$])" + re.escape(old.encode("utf-8", "replace")) + rb"(?![\w$])")
    found = (match.start() for match in word.finditer(source.data) if match.start() not in starts)
    return tuple(dict.fromkeys(source.line(place) for place in found))


def blind(source: SourceFile, old: str) -> Iterator[int]:
    """Yield the byte offsets at which a name is in code whose meaning the syntax does not show: arguments of a macro or
    of a shell command, a pattern, a line of the preprocessor, or code that the grammar cannot read. Strings and
    comments are left out.
    """
    captures = source.parsed.captures
    wanted = old.encode("utf-8", "replace")
    known = {node.start_byte for kind in ("use", "bound") for node in captures.get(kind, ()) if node.text == wanted}
    known |= {each.name.start_byte for each in source.definitions if each.name is not None}
    known |= source.parsed.outline.names_at
    texts = (STRINGS.get(source.parsed.grammar.name, frozenset()) | COMMENTS) - {"simple_symbol"}  # `private :name`
    for match in re.finditer(rb"(?<![\w$@-])" + re.escape(wanted) + rb"(?![\w$])", source.data):
        if match.start() in known:
            continue
        node = source.root.descendant_for_byte_range(match.start(), match.end())
        around = node.parent if node is not None else None
        if node is not None and node.type not in texts and (around is None or around.type not in texts):
            yield match.start()


def _in_strings(source: SourceFile, name: str) -> Iterator[int]:
    """Yield the byte offsets of a name in strings that the language reads as code: the list `__all__` and annotations
    of Python, attributes and formats of Rust, named groups of Ruby.
    """
    wanted = re.escape(name.encode("utf-8", "replace"))
    match source.language:
        case "python":
            for listed in _ALL.finditer(source.data):
                for match in re.finditer(rb"""["']""" + wanted + rb"""["']""", listed[0]):
                    yield listed.start() + match.start() + 1
            within, form = ("type",), rb"(?<![\w.])" + wanted + rb"(?!\w)"
        case "rust":
            within, form = ("token_tree",), rb"(?<!\{)\{" + wanted + rb"(?=[}:])|(?<=[\":])" + wanted + rb"(?=\"|::)"
        case "ruby":
            within, form = ("regex",), rb"(?<=\(\?<)" + wanted + rb"(?=>)"
        case _:
            return
    for match in re.finditer(form, source.data):
        node = source.root.descendant_for_byte_range(match.start(), match.end())
        kinds = [] if node is None else [node.type, *(each.type for each, _ in ancestors(node))]
        literal = next((number for number, kind in enumerate(kinds) if kind in _LITERALS), None)
        if literal is not None and not set(within).isdisjoint(kinds[literal:]):
            yield match.start()


def _later_stars(source: SourceFile, place: int) -> Iterator[Import]:
    """Yield the imports of all names of a module in a Python text, after a byte offset: they may bring a name anew."""
    line = source.line(place)
    if source.language == "python":
        yield from (each for each in source.imports if "*" in each.names and each.line > line)


def _declared_again(source: SourceFile, uses: Uses, definitions: Sequence[Definition]) -> list[Node]:
    """Return where the text declares the name in a way that its scopes do not know; [] for members that need an object
    before them.
    """
    bare = not is_member(source, definitions[0]) or source.language in WITHOUT_SELF
    return uses.declared_again(definitions) if bare else []


def _check_name(source: SourceFile, definition: Definition, name: str) -> str:
    plain = name.removeprefix("$") if source.language == "php" else name
    grammar = "javascript" if source.language in ("typescript", "tsx") else source.language
    if definition.name is None or not definition.name.text:
        message = f"{definition.qualified} has no name of its own in {source.path}. Use edit_file."
        raise EditRefused("not_found", message)
    if definition.symbol.name.encode("utf-8", "replace") not in definition.name.text:
        raise EditRefused("not_found", f"The name of {definition.qualified} has several parts. Use edit_file.")
    if not plain or not _NAMES.get(grammar, _NAME).fullmatch(plain):
        raise EditRefused("empty", f"{name!r} is no name in {source.language}. Give the new name as code.")
    if plain == definition.symbol.name:
        raise EditRefused("already_applied", f"{definition.qualified} is called so already.")
    return plain


def _refuse_taken(source: SourceFile, uses: Uses, definitions: Sequence[Definition], new: str) -> None:
    first = definitions[0]
    for each in source.definitions:
        if each.symbol.name == new and each.symbol.parent == first.symbol.parent:
            raise EditRefused("ambiguous", f"{each.qualified} is defined already, on line {each.symbol.line_start}.")
    # Members are named behind an object, so that a variable of the same name is no clash.
    if is_member(source, first):
        return
    for use in uses.named(new):
        # A name from an import or a library: it would mean the renamed one from now on.
        if use.access == "plain":
            line = source.line(use.node.start_byte)
            raise EditRefused("ambiguous", f"{new} is used already, on line {line} of {source.path}.")
    if new.encode() in uses.scopes.bound_names:
        raise EditRefused("ambiguous", f"{new} is a local name in {source.path} already. Choose another one.")


def _bare(source: SourceFile, start: int, end: int, old: str) -> tuple[int, int]:
    """Return the byte range of the name without the quotes, `$` or `~` around it."""
    text = source.slice(start, end)
    at = text.find(old)
    first = start + len(text[: max(at, 0)].encode("utf-8", "replace"))
    return first, first + len(old.encode("utf-8", "replace"))


def replacement_of(use: Use, old: str, new: str) -> str:
    """Return what replaces a use: `new`, or `old: new` for a shorthand property (`{a}`), so that its key is kept."""
    if use.node.type == "shorthand_property_identifier":
        return f"{old}: {new}"
    parent = use.node.parent
    if parent is not None and parent.type == "shorthand_field_initializer":
        return f"{old}: {new}"
    return new


@dataclass(frozen=True, slots=True)
class _Brought:
    """What the imports of a file bring from the file of the definition: import statements, all names at once, and what
    the file calls the other file's module; and whether a further import may hide what they bring.
    """

    statements: tuple[Node, ...]
    everything: bool
    modules: frozenset[str]
    hidden: bool = False


def rename_elsewhere(
    source: SourceFile, home: SourceFile, definitions: Sequence[Definition], new: str, files: ImportTargets
) -> Renamed:
    """Return the splices that rename, in `source`, the certain uses of `definitions` of `home`, which share one dotted
    name, and the lines on which the old name is left. EditRefused if the file has the new name already.
    """
    first, uses = definitions[0], Uses(source)
    certain = _CertainUses(uses, home, definitions, _brought(source, home, files))
    old, others = first.symbol.name, elsewhere([(home, each) for each in definitions])
    splices, doubtful = [], []
    shared = Uses(home).rivals(definitions)
    again = _declared_again(source, uses, definitions)
    for use in uses.named(old):
        if uses.in_other_namespace(first, use):
            continue
        if not again and certain.has(use) and not any(not uses.in_other_namespace(each, use) for each in shared):
            splices.append(Splice(use.node.start_byte, use.node.end_byte, replacement_of(use, old, new)))
        elif not cannot_mean(source, uses, (), others, use):
            doubtful.append(source.line(use.node.start_byte))
    # Only where the new name gets written: other files may use it as they like.
    if splices and not certain.of_class and certain.plain:
        _refuse_known(source, uses, new)
    taken = {(each.start, each.end) for each in splices}
    if splices:
        doubtful += [source.line(place) for place in (*_in_strings(source, old), *blind(source, old))]
    return Renamed(tuple(splices), lines_left(source, old, taken), tuple(dict.fromkeys(doubtful)))


class _CertainUses:
    """The uses in one text that certainly mean a definition of another file, `home`, by what the text imports of it."""

    def __init__(self, uses: Uses, home: SourceFile, definitions: Sequence[Definition], brought: _Brought) -> None:
        definition = definitions[0]
        self._definitions, self._home = definitions, home
        self.of_class = is_member(home, definition)
        self._uses, self._source, self._brought = uses, uses.source, brought
        symbol = definition.symbol
        self._outer = symbol.parent.rpartition(".")[2] if self.of_class else symbol.name
        # A definition of this name in the file hides what is imported.
        known = brought.everything or _imports(uses, brought, self._outer)
        self.plain = bool(self._outer) and known and not brought.hidden and not _defines(self._source, self._outer)

    def has(self, use: Use) -> bool:
        """Return whether a use of the name is one of them."""
        if self._uses.is_apart(use) or not self._uses.is_shown(use):
            return False
        if use.imported:
            return not self.of_class and _is_imported(use, self._brought)
        if self.of_class:
            owned = use.access == "member" and self.plain and dotted_path(use.receiver) == self._outer
            apart = self._source.language in STATIC_APART and not any(
                is_static(each.node) for each in self._definitions
            )
            return owned and self._uses.is_free(use) and not apart
        if use.access == "member" and self._source.language == "php":
            return is_fully_qualified(self._home, use)
        if use.access == "member":
            module = dotted_path(use.receiver)
            again = self._source.language == "python" and _defines(self._source, module)  # `import a`, later `a = …`
            return module in self._brought.modules and self._uses.is_free(use) and not again
        bare = use.access == "plain" and self.plain and self._uses.binder(use) is None
        return bare and not may_be_inherited(self._source, self._definitions, use) and not self._is_member_here(use)

    def _is_member_here(self, use: Use) -> bool:
        """Return whether a class around a use has a member of the name, which hides what is outside of it."""
        return hidden(self._source, self._uses, self._definitions, use)


def _refuse_known(source: SourceFile, uses: Uses, new: str) -> None:
    """Refuse a name that means something else in the file already (EditRefused)."""
    used = next((use for use in uses.named(new) if use.access == "plain"), None)
    if used is None and not _defines(source, new) and new.encode() not in uses.scopes.bound_names:
        return
    line = f", on line {source.line(used.node.start_byte)}" if used is not None else ""
    raise EditRefused("ambiguous", f"{new} is a name in {source.path} already{line}. Choose another one.")


def _brought(source: SourceFile, home: SourceFile, files: ImportTargets) -> _Brought:
    found = [each for each in source.imports if home.path in resolved(source.language, source.path, each, files)]
    nodes = source.parsed.captures.get("import", ())
    pairs = [(each, node) for each in found for node in nodes if _is_at(node, each)]
    modules = {name for each, node in pairs for name in _modules(source, home, each, node)}
    everything = _in_package(source, home) or any(source.language in _WHOLE or "*" in each.names for each in found)
    # All names of another module, further down, may have this one among them.
    stars = _later_stars(source, min((node.start_byte for _, node in pairs), default=0))
    is_hidden = any(star not in found for star in stars)
    return _Brought(tuple(node for _, node in pairs), everything, frozenset(modules), is_hidden)


def _is_at(node: Node, imported: Import) -> bool:
    # Lines of nodes count from 0, those of imports from 1.
    return node.start_point[0] < imported.line <= node.end_point[0] + 1


def _modules(source: SourceFile, home: SourceFile, imported: Import, node: Node) -> Iterator[str]:
    """Yield what a file calls the module that an import names."""
    # From the start of the line, as `const a = require(…)` has the name in front of the import.
    text = source.slice(source.line_start(node.start_byte), node.end_byte)
    stem = posixpath.basename(posixpath.splitext(home.path)[0])
    module = dotted_path(imported.module)
    if source.language == "python":
        if not imported.names:
            yield from [each[1] for each in _ALIAS.finditer(text)] or [module]
        elif stem in imported.names:
            yield next((each[1] for each in re.finditer(rf"\b{re.escape(stem)}\s+as\s+(\w+)", text)), stem)
    elif source.language == "go":
        alias = _GO_ALIAS.search(text.removeprefix("import"))
        yield alias[1] if alias is not None else imported.module.rpartition("/")[2]
    elif source.language == "rust":
        yield from (module, stem) if module.rpartition(".")[2] == stem else ()
    elif "*" in text:
        yield from (each[1] for each in _ALIAS.finditer(text))
    else:
        yield from (each[1] for each in _REQUIRED.finditer(text))


def _in_package(source: SourceFile, home: SourceFile) -> bool:
    """Return whether two files see each other's names without an import, as those of a package in Go and Java."""
    if source.language not in ("go", "java") or posixpath.dirname(source.path) != posixpath.dirname(home.path):
        return False
    ours, theirs = _PACKAGE.search(source.text), _PACKAGE.search(home.text)
    return (ours and ours[1]) == (theirs and theirs[1])


def _imports(uses: Uses, brought: _Brought, name: str) -> bool:
    """Return whether an import brings a name under that name."""
    return any(_is_imported(use, brought) and not _renamed_there(use) for use in uses.named(name) if use.imported)


def _is_imported(use: Use, brought: _Brought) -> bool:
    """Return whether a use in an import is the name that is taken from the other file."""
    inside = [each for each in brought.statements if each.start_byte <= use.node.start_byte < each.end_byte]
    if not inside:
        return False
    node, statement = use.node, inside[0]
    if statement.type == "import_statement" and statement.child_by_field_name("name") is not None:
        return False  # a module, as in `import a.name`
    while node != statement and node.parent is not None:
        parent = node.parent
        at = next((number for number, child in enumerate(parent.children) if child == node), -1)
        if parent.field_name_for_child(at) in _OTHER_PARTS or parent.type in ("import_clause", "namespace_import"):
            return parent.type == "import_clause" and node.type == "named_imports"
        node = parent
    return True


def _renamed_there(use: Use) -> bool:
    parent = use.node.parent
    # The alias is a sibling of the name, or of a node around it, never further up.
    for _ in range(3):
        if parent is None:
            return False
        if parent.child_by_field_name("alias") is not None:
            return True
        parent = parent.parent
    return False


def _defines(source: SourceFile, name: str) -> bool:
    return any(each.symbol.name == name and not each.symbol.parent for each in source.definitions)
