"""The tool `edit_by_ast`: staged changes of whole definitions, found by name instead of by text.

Not here: how a definition is changed (`code/ast_edit.py`).
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.index.placeholders import refuse_left_out
from codeagent_lsp.index.wrappings import refuse_wrapped
from codeagent_lsp.tools.code.ast_edit import AstEdit, Operation, edited
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.edit_tools import hunks_told
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.text.excerpts import join_names

_MOST_FILES = 10


class OneEdit(Parameters):
    """One change of one definition: an item of `edits` of the tool `edit_by_ast`; `code` is the new code, for a rename
    the new name, for a deletion ''.
    """

    target: str = Field(description="name or Class.method; name#2 is the second of that name")
    operation: Operation
    code: str = Field("", description="New code at any indentation; for rename the new name")


class EditByAstParameters(Parameters):
    """Parameters of `edit_by_ast`: changes of one file, of which all are made or none."""

    path: str = Field(description="File, relative to the workspace")
    edits: list[OneEdit] = Field(min_length=1, max_length=50)


class EditByAst(Tool[EditByAstParameters]):
    """The tool `edit_by_ast`: stages changes of whole definitions of one file, which are found by name."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "edit_by_ast",
        "Change definitions by name: replace, replace_body, insert_before, insert_after, rename, delete. "
        "All edits are made, or none. replace and replace_body keep decorators, doc comment and docstring unless "
        "code has its own; rename changes this file only.",
        "write",
        group="code",
        path_parameters=("path",),
        hooked_as=("edit_file", "Edit"),
    )
    parameters = EditByAstParameters
    example: ClassVar[Example] = {
        "path": "src/cart.py",
        "edits": [{"target": "Cart.total", "operation": "replace_body", "code": "return sum(self.items)"}],
    }
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH)
    output = dict[str, str]

    async def run(self, arguments: EditByAstParameters, context: ToolContext) -> ToolOutput:
        """Stage the edits; the text says which lines change and where old names are left, the data has the `change_id`.
        EditRefused, with nothing staged, if one cannot be made; ToolFailed if the file cannot be parsed, FileRefused if
        it cannot be read.
        """
        path = context.view.roots.resolve(arguments.path)
        name = context.view.roots.relative(path)
        file = await asyncio.to_thread(context.view.read, path)
        edits = [AstEdit(edit.target, edit.operation, edit.code) for edit in arguments.edits]
        done = await asyncio.to_thread(edited, name, file.text, edits)
        await asyncio.to_thread(refuse_left_out, name, file.text, done.text)
        await asyncio.to_thread(refuse_wrapped, name, file.text, done.text)
        told = await asyncio.to_thread(hunks_told, name, file.text, done.text)
        notes = [
            f"Not renamed, look at them: {target} on line {', '.join(map(str, lines[:20]))} (of the text before)"
            for target, lines in done.left
        ]
        for edit in edits:
            if edit.operation == "rename":
                notes += await _elsewhere(context, path, edit)
        step = context.staging.write({path: done.text}, [file])
        report = "\n".join([f"Staged for the user's decision: {told}", *notes])
        return ToolOutput(report, {"change_id": step.change_id})


async def _elsewhere(context: ToolContext, path: str, edit: AstEdit) -> list[str]:
    """Return a note that lists the other files with the old name; empty if there are none."""
    codebase = Codebase(context)
    old = edit.target.rpartition("#")[0] or edit.target
    others = [each for each in await codebase.using(old.replace("::", ".").rpartition(".")[2]) if each != path]
    if not others:
        return []
    names = join_names(map(codebase.relative, others), _MOST_FILES)
    return [f"Other files use the name {old} and were not changed: {names}. See find_references."]
