"""The tools `apply_patch`, `undo_patch`, `move_file` and `delete_file`: changes of several files, or of whole ones,
staged all or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, Shape
from codeagent_lsp.errors import ErrorCode, NoSuchFile, PatchRefused, ToolFailed, WrongArguments
from codeagent_lsp.index.literals import refuse_altered
from codeagent_lsp.index.other_texts import refuse_other
from codeagent_lsp.index.placeholders import refuse_left_out
from codeagent_lsp.index.wrappings import refuse_wrapped
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.edit_tools import hunks_told, lines_counted
from codeagent_lsp.tools.files.foreign_editing import APPLY_PATCH, DELETE_FILE, MOVE_FILE, UNDO_PATCH
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.edits.patch import apply_patch, modes_of, moves_of, paths_of, without_signs
from codeagent_lsp.workspace.files.file_view import FileText
from codeagent_lsp.workspace.text.position import split_lines


def _with_patch_head(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `file_path` as the head of the patch. WrongArguments if the patch has another one."""
    path, patch = given.get("file_path"), given.get("patch")
    if not isinstance(path, str) or not isinstance(patch, str):
        return given
    rest = {key: value for key, value in given.items() if key != "file_path"}
    try:
        named = paths_of(patch)
    # No head to read a name from.
    except PatchRefused:
        return {**rest, "patch": f"--- a/{path}\n+++ b/{path}\n{patch}"}
    if [PurePosixPath(name) for name in named] != [PurePosixPath(path)]:
        raise WrongArguments(f"file_path is {path}, but the patch names {', '.join(named)}. Leave file_path out.")
    return rest


class ApplyPatchParameters(Parameters):
    """Parameters of `apply_patch`: a patch of one or more files, as a unified diff or in the `*** Begin Patch`
    format.
    """

    patch: str = Field(description="A unified diff, or the '*** Begin Patch' format")


class ApplyPatch(Tool[ApplyPatchParameters]):
    """The tool `apply_patch`: stages the changes, creations, moves and deletions of one patch as one step."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "apply_patch",
        "Apply a patch to one or more files: all of it or nothing. "
        "Unified diff or '*** Begin Patch' format; line numbers need not be right.",
        "write",
        path_parameters=("patch",),
        result="file",
        hook_name="Edit",
        hooked_as=("edit_file", "Edit"),
    )
    parameters = ApplyPatchParameters
    example: ClassVar[Example] = {"patch": "--- a/src/tax.py\n+++ b/src/tax.py\n@@ -1 +1 @@\n-RATE = 19\n+RATE = 7\n"}
    forms: ClassVar[CallForms] = CallForms(
        names=("patch",),
        arguments={"patch_content": "patch"},
        also={"input": "patch", "patch_text": "patch"},
        shapes=(
            Shape(
                "`file_path` names the file of a patch without a head; with one, both must agree",
                _with_patch_head,
                {"file_path": {"type": "string", "description": "The file of a unified diff without a head"}},
            ),
        ),
        foreign=APPLY_PATCH,
    )
    output = dict[str, str]

    async def run(self, arguments: ApplyPatchParameters, context: ToolContext) -> ToolOutput:
        """Stage the changes of the patch as one step; the text has a line for each file, the data has the `change_id`.
        PatchRefused if it does not apply, or changes nothing.
        """
        resolved = {name: context.view.roots.resolve(name) for name in paths_of(arguments.patch)}
        if not resolved:
            raise PatchRefused("The patch names no file.")
        _refuse_two_names(resolved)
        # Read once and before anything: the patch is applied to these texts, and staged against them.
        read = {name: await asyncio.to_thread(_file, context, path) for name, path in resolved.items()}
        files = {name: None if file is None else file.text for name, file in read.items()}
        try:
            patched = await asyncio.to_thread(apply_patch, files, arguments.patch)
        except NoSuchFile as missing:
            meant = await asyncio.to_thread(context.view.meant, resolved[missing.path])
            raise PatchRefused(f"{missing} {meant}".rstrip()) from missing
        changed = {name: text for name, text in patched.items() if text != files.get(name)}
        modes = modes_of(arguments.patch)
        if not changed and not modes:
            raise PatchRefused("The patch changes nothing.")
        for name, text in changed.items():
            if text is not None:
                await asyncio.to_thread(refuse_other, name, files.get(name) or "", text)
                await asyncio.to_thread(refuse_wrapped, name, files.get(name) or "", text)
            if text is not None and (before := files.get(name)) is not None:
                await asyncio.to_thread(refuse_altered, name, before, text, [without_signs(arguments.patch)])
                await asyncio.to_thread(refuse_left_out, name, before, text)
        # A move keeps what is no text, such as the right to be run; not where something else took the old path.
        origins = {new: old for old, new in moves_of(arguments.patch).items() if changed.get(old, "") is None}
        # The old path of a move is gone with the move; a deletion beside it would be a second change.
        written = {name: text for name, text in changed.items() if name not in origins.values()}
        step = context.staging.stage(
            {resolved[name]: text for name, text in written.items()},
            {resolved[new]: file for new, old in origins.items() if (file := read[old]) is not None},
            filter(None, read.values()),
            {resolved[name]: runs for name, runs in modes.items()},
        )
        lines = [
            _change_line(name, files.get(origins.get(name, name)), text, origins.get(name))
            for name, text in written.items()
        ]
        lines += [f"{name} can {'be executed' if runs else 'not be executed any more'}" for name, runs in modes.items()]
        return ToolOutput("Staged:\n" + "\n".join(lines), {"change_id": step.change_id})


class UndoPatchParameters(Parameters):
    """Parameters of `undo_patch`: the staged step to undo, by its `change_id`; the last one if it is None."""

    change_id: str | None = Field(None, description="Id of a staged change; the last one when left out")


class UndoPatch(Tool[UndoPatchParameters]):
    """The tool `undo_patch`: takes back the last staged step of this run, or an earlier one with all after it."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "undo_patch",
        "Take back the last staged change of this run, or one by id and all after it.",
        "write",
        result="file",
        errors=(ErrorCode.NOT_FOUND,),
    )
    parameters = UndoPatchParameters
    example: ClassVar[Example] = {"change_id": "c1"}
    forms: ClassVar[CallForms] = CallForms(foreign=UNDO_PATCH)

    async def run(self, arguments: UndoPatchParameters, context: ToolContext) -> ToolOutput:
        """Undo the step, and all after it, in the changeset and name its files; the user's files are not touched.
        ToolFailed if there is no such step.
        """
        step = context.staging.undo(arguments.change_id)
        names = ", ".join(context.view.roots.relative(path) for path in step.paths)
        return ToolOutput(f"Taken back {step.change_id}: {names}.")


class MoveFileParameters(Parameters):
    """Parameters of `move_file`: the old and the new path of a file, relative to the workspace; nothing may be at the
    new one.
    """

    path: str = Field(description="File to move")
    new_path: str = Field(description="Where it goes; must not exist")


class MoveFile(Tool[MoveFileParameters]):
    """The tool `move_file`: stages the move of one text file, which the disk shows once the user accepts."""

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
        """Stage the move; the data has the `change_id`. ToolFailed if the new path exists, FileRefused if the file is
        no text.
        """
        roots = context.view.roots
        source, target = roots.resolve(arguments.path), roots.resolve(arguments.new_path)
        file = await asyncio.to_thread(context.view.read, source)
        if context.view.exists(target):
            raise ToolFailed(f"{arguments.new_path} exists already.", ErrorCode.INVALID_PARAM)
        step = context.staging.move(target, file)
        moved = f"Staged: moved {roots.relative(source)} to {roots.relative(target)}."
        return ToolOutput(moved, {"change_id": step.change_id})


class DeleteFileParameters(Parameters):
    """Parameters of `delete_file`: the path of the file to delete, relative to the workspace."""

    path: str = Field(description="File to delete")


class DeleteFile(Tool[DeleteFileParameters]):
    """The tool `delete_file`: stages the deletion of one text file, which leaves the disk once the user accepts."""

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
        """Stage the deletion; the data has the `change_id`. FileRefused if the file is missing or no text."""
        path = context.view.roots.resolve(arguments.path)
        file = await asyncio.to_thread(context.view.read, path)  # a missing or binary file is refused with advice
        step = context.staging.write({path: None}, [file])
        name = context.view.roots.relative(path)
        return ToolOutput(f"Staged: deleted {name}.", {"change_id": step.change_id})


def _refuse_two_names(resolved: Mapping[str, str]) -> None:
    """Refuse a patch with two names for one file: it would be patched twice from its old text (PatchRefused)."""
    names: dict[str, str] = {}
    for name, path in resolved.items():
        if path in names:
            raise PatchRefused(f"{names[path]} and {name} are the same file. Use one name for it.")
        names[path] = name


def _file(context: ToolContext, path: str) -> FileText | None:
    return context.view.read(path) if context.view.exists(path) else None


def _change_line(name: str, before: str | None, after: str | None, origin: str | None) -> str:
    if origin is not None:
        return f"moved {origin} to {name if before == after else hunks_told(name, before or '', after or '')}"
    if before is None:
        return f"created {name} ({lines_counted(len(split_lines(after or '')))})"
    return f"deleted {name}" if after is None else hunks_told(name, before, after)
