"""Edits of definitions in one text: all of them or none, each located in the original text.

A pure function: text in, text out. Not here: staging it (`editing_tools.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.tools.code import shift
from codeagent_lsp.tools.code.extent import Extent, extent_of, first_alone, indentation, last_alone, statement_of
from codeagent_lsp.tools.code.rename import rename
from codeagent_lsp.tools.code.source import Definition, SourceFile, ambiguous, find_all, find_one, required, source_of
from codeagent_lsp.tools.code.splices import Splice, applied, has_body, problem, replace_body
from codeagent_lsp.tools.code.uses import of_one_kind

_TEMPLATE = re.compile(r"\btemplate\s*<.*", re.DOTALL)
_PARAMETER = re.compile(r"(\w+)\s*(?:=[^,>]*)?[,>]")
_WORD = re.compile(r"\w+")
_TYPES = frozenset(("class", "struct"))
_SINGLE = frozenset(("variable", "constant"))
_LISTS = frozenset(("variable_declaration", "var_spec_list"))
_DECLARED = frozenset(("variable_declarator", "property_element"))


def replace_definition(source: SourceFile, definition: Definition, code: str) -> Splice:
    """Return the splice that replaces a definition; doc comment, decorators and `export` are kept if the code has none.

    EditRefused if the code defines nothing, or other code is on its lines.
    """
    _refuse_shared(source, definition)
    extent = extent_of(source, definition)
    indent = indentation(source, extent.top)
    own = source.slice(extent.top, extent.end)
    new = shift.with_line_ends(source, shift.shifted(source, code, indent, own), extent.core).removeprefix(indent)
    if source.data[: extent.top].endswith(b"\f"):
        new = new.removeprefix("\f")
    # The `;` of a type is inside of its template, and behind the type where that is given alone.
    if definition.outer.type == "template_declaration" and own.endswith("};") and new.rstrip().endswith("}"):
        new = f"{new.rstrip()};"
    tail = source.slice(extent.end, extent.tail).strip()
    # The comma behind an entry stays, unless the code brings one.
    end = extent.tail if tail and new.rstrip().endswith(tail) else extent.end
    whole = Splice(extent.top, end, new)
    # Parsed in its place, and not by itself: a method, a field or an entry of a list is only one inside of what is
    # around it.
    brought = _brought(source, whole)
    if brought is None:
        wrong = problem(source, applied(source, [whole])) or "it defines nothing. Give a whole definition"
        message = f"The code for {definition.qualified} cannot take its place: {wrong}. Nothing was changed."
        raise EditRefused("not_found", message)
    new_definition, new_extent = brought
    # Alone, a constructor or a destructor reads as a function that has the name of the class.
    given = new_definition.symbol
    by_name = given.kind in CALLABLE and given.name.lstrip("~") == definition.symbol.name
    if source.language == "cpp" and definition.symbol.kind in _TYPES and by_name:
        name = f"{definition.qualified}.{definition.symbol.name}"
        message = f"The code is a constructor, and {definition.qualified} is the whole type. Name {name} as the target."
        raise EditRefused("ambiguous", message)
    kept = _kept_parts(source, extent, new_extent)
    if given.kind in CALLABLE and (head := _TEMPLATE.search(kept)) and not _names_one_of(new, head[0]):
        kept = kept[: head.start()]
    data, place = new.encode(), _place_of_kept(extent, new_extent)
    return Splice(extent.top, end, data[:place].decode() + kept + data[place:].decode())


def insert_before(source: SourceFile, definition: Definition, code: str) -> Splice:
    """Return the splice that inserts the code on lines of its own, above the definition's doc comment and decorators.
    EditRefused if other code is on the line there.
    """
    extent = extent_of(source, definition)
    if not first_alone(source, extent.top):
        raise _shares_line(source, definition, extent.top)
    new = shift.shifted(source, code, indentation(source, extent.top))
    place = source.line_start(extent.top)
    lines = new + "\n" * (1 + _gap(source, definition, extent, new))
    return Splice(place, place, shift.with_line_ends(source, lines, place))


def insert_after(source: SourceFile, definition: Definition, code: str) -> Splice:
    """Return the splice that inserts the code on lines of its own, below the definition. EditRefused if other code
    follows on its last line.
    """
    extent = extent_of(source, definition)
    if not last_alone(source, extent.tail):
        raise _shares_line(source, definition, extent.tail)
    new = shift.shifted(source, code, indentation(source, extent.top))
    place = source.line_after(extent.tail)
    ends = source.data[:place].endswith(b"\n")
    lines = "\n" * _gap(source, definition, extent, new) + new
    lines = f"{lines}\n" if ends else f"\n{lines}"
    return Splice(place, place, shift.with_line_ends(source, lines, extent.core))


def delete(source: SourceFile, definition: Definition, *, emptied: bool) -> Splice:
    """Return the splice that deletes a definition with its doc comment, decorators and the blank lines on one side.
    `emptied`: nothing else is left in a block that must not be empty, so `pass` takes its place. EditRefused if other
    code is on its lines.
    """
    _refuse_shared(source, definition)
    extent = extent_of(source, definition)
    # Whole lines go, so nothing else may stand on them.
    if not first_alone(source, extent.top) or not last_alone(source, extent.tail):
        raise _shares_line(source, definition, extent.top)
    start, end = source.line_start(extent.top), source.line_after(extent.tail)
    if emptied:
        return Splice(extent.top, extent.tail, "pass")
    before, after = _blank_before(source, start), _blank_after(source, end)
    closes, opens = _is_edge(source, after, extent), _is_edge(source, before, extent, above=True)
    above, below = start - before, after - end
    # Blank lines go on one side, so that what was between the neighbours stays between them: the longer side, but never
    # those at an edge.
    if not closes and below and (opens or above >= below):
        end = after
    elif above and (closes or below):
        start = before
        end = after if after == len(source.data) else end
    # A text that ends without a line end still does so: the one before goes.
    if end == len(source.data) and not source.data[:end].endswith(b"\n"):
        start -= len(source.data[:start]) - len(source.data[:start].removesuffix(b"\n").removesuffix(b"\r"))
    return Splice(start, end, "")


def emptied_blocks(definitions: Sequence[Definition]) -> Collection[int]:
    """Return the 0-based numbers of the definitions to replace with `pass`: one for each Python block left empty when
    all of them are deleted.
    """
    # Reversed, so that of several definitions of one statement the first is the one that turns into `pass`.
    gone = {statement_of(each.outer).id: number for number, each in reversed(list(enumerate(definitions)))}
    found = set()
    for each in definitions:
        block = statement_of(each.outer).parent
        if block is not None and block.type == "block":
            inside = [child.id for child in block.named_children if child.type != "comment"]
            if all(child in gone for child in inside):
                found.add(gone[inside[0]])
    return found


def _brought(source: SourceFile, splice: Splice) -> tuple[Definition, Extent] | None:
    """Return the first definition that a splice adds, parsed in its place, with its extent; None if it adds none."""
    probe = source_of(source.path, applied(source, [splice]))
    if probe is None:
        return None
    end = splice.start + len(splice.text.encode("utf-8", "replace"))
    for definition in probe.definitions:
        extent = extent_of(probe, definition)
        if splice.start <= extent.core < end:
            return definition, extent
    return None


def _kept_parts(source: SourceFile, extent: Extent, brought: Extent) -> str:
    """Return the text of the old definition's parts whose kinds the new one lacks."""
    ends = (*(part.start for part in extent.parts), extent.core)[1:]
    return "".join(
        source.slice(part.start, end)
        for part, end in zip(extent.parts, ends, strict=True)
        if not brought.has(part.kind)
    )


def _place_of_kept(extent: Extent, brought: Extent) -> int:
    """Return the byte offset in the new code at which kept parts go: below a comment that it brings, where its
    attributes stood below one or by themselves.
    """
    kinds = [part.kind for part in extent.parts]
    if not brought.has("comment") or kinds[-1:] == ["comment"] or "attribute" not in kinds:
        return 0
    return next((part.start for part in brought.parts if part.kind != "comment"), brought.core) - extent.top


def _names_one_of(code: str, head: str) -> bool:
    """Return whether code uses a parameter of the head of a template: else it is a function without one now."""
    return not set(_PARAMETER.findall(head)).isdisjoint(_WORD.findall(code))


def _gap(source: SourceFile, definition: Definition, extent: Extent, code: str) -> int:
    """Return the number of blank lines between the definition and new code beside it."""
    start, end = source.line_start(extent.top), source.line_after(extent.tail)
    before, after = _blank_before(source, start), _blank_after(source, end)
    default = 2 if source.language == "python" and not indentation(source, extent.top) else 1
    if not _is_edge(source, after, extent):
        gap = source.data.count(b"\n", end, after)
    elif not _is_edge(source, before, extent, above=True):
        gap = source.data.count(b"\n", before, start)
    else:
        listed = source.data[extent.end : extent.tail].strip() == b","
        gap = 0 if definition.symbol.kind in _SINGLE or listed else default
    single = definition.symbol.kind in _SINGLE and "\n" not in code
    # As many as around the definition, but no more than usual; where there are none, lines of code stay together.
    return min(gap, default) if single or gap else 0 if "\n" not in code and _one_line(source, extent) else 1


def _one_line(source: SourceFile, extent: Extent) -> bool:
    return source.line(extent.top) == source.line(extent.end)


def _is_edge(source: SourceFile, place: int, extent: Extent, *, above: bool = False) -> bool:
    """Return whether the block or text ends (with `above`: begins) at an offset next to the definition."""
    if (place == 0) if above else (place >= len(source.data)):
        return True
    line = source.line_start(place - 1) if above else place
    return len(indentation(source, line)) < len(indentation(source, extent.top))


def _blank_before(source: SourceFile, start: int) -> int:
    """Return the offset where the blank lines before a line begin."""
    while start and not source.data[(before := source.line_start(start - 1)) : start].strip():
        start = before
    return start


def _blank_after(source: SourceFile, end: int) -> int:
    """Return the offset where the blank lines from a line on end."""
    while end < len(source.data) and not source.data[end : source.line_end(end)].strip():
        end = source.line_after(end)
    return end


def _refuse_shared(source: SourceFile, definition: Definition) -> None:
    """Refuse to edit one name of a declaration of several (EditRefused)."""
    node = definition.node
    holders = [node, *(child for child in node.children if child.type in _LISTS)]
    fields = [holder.field_name_for_child(number) for holder in holders for number in range(holder.child_count)]
    several = any(fields.count(name) > 1 for name in ("declarator", "name"))
    several = several or any(sum(child.type in _DECLARED for child in holder.children) > 1 for holder in holders)
    value = node.child_by_field_name("right")
    if several or (node.type == "assignment" and value is not None and value.type == "assignment"):
        message = (
            f"{definition.qualified} is declared together with other names on line {source.line(node.start_byte)}."
        )
        raise EditRefused("ambiguous", f"{message} Use edit_file.")


def _shares_line(source: SourceFile, definition: Definition, place: int) -> EditRefused:
    line = source.line(place)
    message = f"{definition.qualified} shares line {line} of {source.path} with other code. Use edit_file."
    return EditRefused("not_found", message)


Operation = Literal["replace", "replace_body", "insert_before", "insert_after", "rename", "delete"]

_INSERTIONS = {"insert_before": insert_before, "insert_after": insert_after}


@dataclass(frozen=True, slots=True)
class AstEdit:
    """One edit of the definition that `target` names (`name`, `Class.method`, or `name#2` for the second of a name);
    for a rename, `code` is the new name.
    """

    target: str
    operation: Operation
    code: str = ""


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text; `left` holds, for each rename, the target and the 1-based lines of the old text that keep the old
    name.
    """

    text: str
    left: tuple[tuple[str, tuple[int, ...]], ...] = ()


def edited(path: str, text: str, edits: Sequence[AstEdit]) -> Edited:
    """Return the text with all edits applied. EditRefused, with no edit applied, if any of them cannot be.

    All edits are located in the original text; the language follows from `path`. ToolFailed for a text that cannot be
    parsed.
    """
    source = required(path, text)
    splices: list[Splice] = []
    left: list[tuple[str, tuple[int, ...]]] = []
    emptied = _emptied_deletions(source, edits)
    for number, edit in enumerate(edits, 1):
        try:
            found, lines = _plan_edits(source, edit, emptied=number in emptied)
        except EditRefused as refusal:
            raise _of_edit(refusal, edit, number if len(edits) > 1 else 0) from refusal
        # All are planned on the text as it was; `applied` refuses those that overlap, and names them by these numbers.
        splices += [replace(each, edit=number) for each in found]
        if lines:
            left.append((edit.target, lines))
    done = applied(source, splices)
    if done == text:
        raise EditRefused("already_applied", f"{path} has exactly this code already. Nothing was changed.")
    wrong = problem(source, done, splices)
    if wrong is not None:
        raise EditRefused("not_found", f"{path} would be broken: {wrong}. Nothing was changed.")
    return Edited(done, tuple(left))


def _plan_edits(source: SourceFile, edit: AstEdit, *, emptied: bool) -> tuple[Sequence[Splice], tuple[int, ...]]:
    if edit.operation == "delete":
        return [delete(source, find_one(source, edit.target), emptied=emptied)], ()
    if not edit.code.strip():
        raise EditRefused("empty", f"{edit.operation} needs code, and it is empty.")
    if edit.operation == "rename":
        renamed = rename(source, _of_one_name(source, edit.target), edit.code)
        return renamed.splices, renamed.left
    if edit.operation == "replace_body":
        return [replace_body(source, _with_body(source, edit.target), edit.code)], ()
    target = find_one(source, edit.target)
    return [_INSERTIONS.get(edit.operation, replace_definition)(source, target, edit.code)], ()


def _with_body(source: SourceFile, target: str) -> Definition:
    """Return the definition with a body if `target` names one such and further declarations."""
    found = find_all(source, target)
    whole = [each for each in found if has_body(each)]
    return whole[0] if len(whole) == 1 else find_one(source, target)


def _of_one_name(source: SourceFile, target: str) -> tuple[Definition, ...]:
    """Return the definitions to rename together: overloads, whose uses look alike, but not a variable and a function,
    nor a type and a function.
    """
    found, language = find_all(source, target), source.language
    if any(each.qualified != found[0].qualified or not of_one_kind(each, found[0], language) for each in found):
        raise EditRefused("ambiguous", ambiguous(source.path, target, found))
    same = [each for each in source.definitions if each.qualified == found[0].qualified]
    return tuple(each for each in same if of_one_kind(each, found[0], language))


def _emptied_deletions(source: SourceFile, edits: Sequence[AstEdit]) -> set[int]:
    """Return the 1-based numbers of the deletions that must leave `pass` behind."""
    if source.language != "python":
        return set()
    numbers, gone = [], []
    for number, edit in enumerate(edits, 1):
        if edit.operation == "delete" and len(found := _find(source, edit.target)) == 1:
            numbers.append(number)
            gone.append(found[0])
    return {numbers[at] for at in emptied_blocks(gone)}


def _find(source: SourceFile, target: str) -> tuple[Definition, ...]:
    try:
        return find_all(source, target)
    except EditRefused:  # said when its turn comes
        return ()


def _of_edit(refusal: EditRefused, edit: AstEdit, number: int) -> EditRefused:
    if not number:
        return refusal
    message = f"Edit {number} ({edit.operation} {edit.target}) was refused, so none was made. {refusal}"
    return EditRefused(refusal.reason, message)
