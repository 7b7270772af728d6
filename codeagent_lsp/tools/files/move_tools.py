"""The tools `move_file` and `delete_file`, staged like every other change."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.foreign_editing import DELETE_FILE, MOVE_FILE
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


class MoveFileParameters(Parameters):
    """The old and the new path of a file."""

    path: str = Field(description="File to move")
    new_path: str = Field(description="Where it goes; must not exist")


class MoveFile(Tool[MoveFileParameters]):
    """Move or rename a file."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "move_file",
        "Move or rename a file.",
        "write",
        group="files",
        path_parameters=("path", "new_path"),
        hooked_as=("edit_file", "Edit"),
        removes=True,
    )
    parameters = MoveFileParameters
    example: ClassVar[Example] = {"path": "src/tax.py", "new_path": "src/taxes.py"}
    forms: ClassVar[CallForms] = CallForms(foreign=MOVE_FILE)
    output = dict[str, str]

    async def run(self, arguments: MoveFileParameters, context: ToolContext) -> ToolOutput:
        """Stage the move. ToolFailed if the new path exists."""
        roots = context.view.roots
        source, target = roots.resolve(arguments.path), roots.resolve(arguments.new_path)
        file = await asyncio.to_thread(context.view.read, source)
        if context.view.exists(target):
            raise ToolFailed(f"{arguments.new_path} exists already.", ErrorCode.INVALID_PARAM)
        step = context.staging.move(target, file)
        moved = f"Staged: moved {roots.relative(source)} to {roots.relative(target)}."
        return ToolOutput(moved, {"change_id": step.change_id})


class DeleteFileParameters(Parameters):
    """The file to delete."""

    path: str = Field(description="File to delete")


class DeleteFile(Tool[DeleteFileParameters]):
    """Delete a file."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "delete_file",
        "Delete a file.",
        "write",
        group="files",
        path_parameters=("path",),
        hooked_as=("edit_file", "Edit"),
        removes=True,
    )
    parameters = DeleteFileParameters
    example: ClassVar[Example] = {"path": "src/old.py"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH, also={"target_file": "path"}, foreign=DELETE_FILE)
    output = dict[str, str]

    async def run(self, arguments: DeleteFileParameters, context: ToolContext) -> ToolOutput:
        """Stage the deletion."""
        path = context.view.roots.resolve(arguments.path)
        file = await asyncio.to_thread(context.view.read, path)  # a missing or binary file is refused with advice
        step = context.staging.write({path: None}, [file])
        name = context.view.roots.relative(path)
        return ToolOutput(f"Staged: deleted {name}.", {"change_id": step.change_id})
