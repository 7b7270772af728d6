"""Renaming of a definition and of its certain uses in the same text.

Not here: other files and uses through objects of unknown type, which are only reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.literals import COMMENTS, STRINGS
from codeagent_lsp.tools.code.meaning import Elsewhere, cannot_mean, is_member, surely_means, with_constructors
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.tools.code.splices import Splice
from codeagent_lsp.tools.code.targets import ambiguous
from codeagent_lsp.tools.code.uses import Use, Uses, of_one_kind

_ALL = re.compile(rb"^__all__\b[^=\n]*=\s*[\[(][^\])]*[\])]", re.MULTILINE)
_NAME = re.compile(r"[^\W\d]\w*")
_NAMES = {
    "javascript": re.compile(r"#?[^\W\d$]?[\w$]*"),
    "ruby": re.compile(r"[^\W\d]\w*[?!=]?"),
    "bash": re.compile(r"[^\W\d][\w:.-]*"),
}


@dataclass(frozen=True, slots=True)
class Renamed:
    """The splices of a rename, and the 1-based lines on which the old name was left; `doubtful` are those among them
    with uses in code that may mean the same, for all that the syntax shows.
    """

    splices: tuple[Splice, ...]
    left: tuple[int, ...]
    doubtful: tuple[int, ...] = ()


def rename(source: SourceFile, definitions: Sequence[Definition], name: str) -> Renamed:
    """Return the splices that rename `definitions`, which share one dotted name, to `name`.

    EditRefused for an invalid or taken name, or a definition whose name cannot be isolated.
    """
    first = definitions[0]
    new = _checked(source, first, name.strip())
    uses = Uses(source)
    if not all(of_one_kind(first, each, source.language) for each in definitions):
        raise EditRefused("ambiguous", ambiguous(source.path, first.qualified, definitions))
    _refuse_taken(source, uses, definitions, new)
    old = first.symbol.name
    nodes = [each.name for each in with_constructors(source, definitions) if each.name is not None]
    splices = [Splice(*_bare(source, node.start_byte, node.end_byte, old), new) for node in nodes]
    doubtful = [source.line(place) for place in (*_exported(source, old), *blind(source, old))]
    for use in uses.named(old):
        if surely_means(source, uses, definitions, use) and not uses.is_shared(definitions, use):
            splices.append(Splice(use.node.start_byte, use.node.end_byte, written(use, old, new)))
        elif not cannot_mean(source, uses, definitions, Elsewhere(), use):
            doubtful.append(source.line(use.node.start_byte))
    # one name may be found both as a definition and as a use
    unique = {(each.start, each.end): each for each in splices}
    return Renamed(tuple(unique.values()), left(source, old, unique), tuple(dict.fromkeys(doubtful)))


def left(source: SourceFile, old: str, changed: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the 1-based lines on which the old name still occurs as a word."""
    starts = {start for start, _ in changed}
    word = re.compile(rb"(?<![\w$])" + re.escape(old.encode("utf-8", "replace")) + rb"(?![\w$])")
    found = (match.start() for match in word.finditer(source.data) if match.start() not in starts)
    return tuple(dict.fromkeys(source.line(place) for place in found))


def blind(source: SourceFile, old: str) -> Iterator[int]:
    """Yield the byte offsets of a name in code where the syntax does not show what it is: in the arguments of a macro
    or of a shell command, a pattern, a line of the preprocessor, or what the grammar cannot read.
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


def _exported(source: SourceFile, name: str) -> Iterator[int]:
    """Yield the byte offsets of a name among those that a Python file lists in `__all__`: it stands in a string."""
    if source.language != "python":
        return
    for listed in _ALL.finditer(source.data):
        for match in re.finditer(rb"""["']""" + re.escape(name.encode()) + rb"""["']""", listed[0]):
            yield listed.start() + match.start() + 1


def _checked(source: SourceFile, definition: Definition, name: str) -> str:
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
    if is_member(source, first):
        return
    for use in uses.named(new):
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


def written(use: Use, old: str, new: str) -> str:
    """Return the replacement for a use; a shorthand property (`{a}`) becomes `a: new`, so that its key is kept."""
    if use.node.type == "shorthand_property_identifier":
        return f"{old}: {new}"
    parent = use.node.parent
    if parent is not None and parent.type == "shorthand_field_initializer":
        return f"{old}: {new}"
    return new
