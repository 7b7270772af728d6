"""Edits of definitions in one text: all of them or none, each located in the original text.

A pure function: text in, text out. Not here: staging it (`editing_tools.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code import operations
from codeagent_lsp.tools.code.body import has_body, replace_body
from codeagent_lsp.tools.code.rename import rename
from codeagent_lsp.tools.code.source import Definition, SourceFile, required
from codeagent_lsp.tools.code.splices import Splice, applied, problem
from codeagent_lsp.tools.code.targets import ambiguous, find_all, find_one
from codeagent_lsp.tools.code.uses import NAMES_APART

Operation = Literal["replace", "replace_body", "insert_before", "insert_after", "rename", "delete"]

_INSERTIONS = {"insert_before": operations.insert_before, "insert_after": operations.insert_after}


@dataclass(frozen=True, slots=True)
class AstEdit:
    """One edit of the definition that `target` names; for a rename, `code` is the new name."""

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

    ToolFailed for a text that cannot be parsed.
    """
    source = required(path, text)
    splices: list[Splice] = []
    left: list[tuple[str, tuple[int, ...]]] = []
    emptied = _emptied(source, edits)
    for number, edit in enumerate(edits, 1):
        try:
            found, lines = _planned(source, edit, emptied=number in emptied)
        except EditRefused as refusal:
            raise _of_edit(refusal, edit, number if len(edits) > 1 else 0) from refusal
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


def _planned(source: SourceFile, edit: AstEdit, *, emptied: bool) -> tuple[Sequence[Splice], tuple[int, ...]]:
    if edit.operation == "delete":
        return [operations.delete(source, find_one(source, edit.target), emptied=emptied)], ()
    if not edit.code.strip():
        raise EditRefused("empty", f"{edit.operation} needs code, and it is empty.")
    if edit.operation == "rename":
        renamed = rename(source, _of_one_name(source, edit.target), edit.code)
        return renamed.splices, renamed.left
    if edit.operation == "replace_body":
        return [replace_body(source, _with_body(source, edit.target), edit.code)], ()
    target = find_one(source, edit.target)
    return [_INSERTIONS.get(edit.operation, operations.replace)(source, target, edit.code)], ()


def _with_body(source: SourceFile, target: str) -> Definition:
    """Return the definition with a body if `target` names one such and further declarations."""
    found = find_all(source, target)
    whole = [each for each in found if has_body(each)]
    return whole[0] if len(whole) == 1 else find_one(source, target)


def _of_one_name(source: SourceFile, target: str) -> tuple[Definition, ...]:
    """Return the definitions to rename together: overloads, whose uses look alike, but not a
    variable and a function.
    """
    found = find_all(source, target)
    apart = source.language in NAMES_APART
    if len({(each.qualified, apart and _is_called(each)) for each in found}) > 1:
        raise EditRefused("ambiguous", ambiguous(source.path, target, found))
    return tuple(
        each
        for each in source.definitions
        if each.qualified == found[0].qualified and (not apart or _is_called(each) == _is_called(found[0]))
    )


def _is_called(definition: Definition) -> bool:
    return definition.symbol.kind not in ("variable", "constant")


def _emptied(source: SourceFile, edits: Sequence[AstEdit]) -> set[int]:
    """Return the 1-based numbers of the deletions that must leave `pass` behind."""
    if source.language != "python":
        return set()
    numbers, gone = [], []
    for number, edit in enumerate(edits, 1):
        if edit.operation == "delete" and len(found := _found(source, edit.target)) == 1:
            numbers.append(number)
            gone.append(found[0])
    return {numbers[at] for at in operations.emptied_blocks(gone)}


def _found(source: SourceFile, target: str) -> tuple[Definition, ...]:
    try:
        return find_all(source, target)
    except EditRefused:  # said when its turn comes
        return ()


def _of_edit(refusal: EditRefused, edit: AstEdit, number: int) -> EditRefused:
    if not number:
        return refusal
    message = f"Edit {number} ({edit.operation} {edit.target}) was refused, so none was made. {refusal}"
    return EditRefused(refusal.reason, message)
