"""`edit_file`, `write_file`, `batch_edit` and `preview_edit`: staged changes by search and replace.

Nothing here touches the disk: the changes join the run's changeset, which the user decides about.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.errors import EditRefused, FileRefused, ToolRetry
from codeagent_lsp.tools.base import Parameters, Tool, ToolContext, ToolOutput, ToolTraits
from codeagent_lsp.workspace import merge
from codeagent_lsp.workspace.lines import dominant_newline, split_lines, with_newlines
from codeagent_lsp.workspace.match import replace


class EditParameters(Parameters):
    """One replacement in one file."""

    path: str = Field(description="File, relative to the workspace")
    old_str: str = Field(description="Exact text to replace, with enough context to be unique")
    new_str: str = Field(description="Text to put in its place")
    replace_all: bool = Field(False, description="Replace every occurrence")


class EditFile(Tool[EditParameters]):
    """Replace one piece of a file."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "edit_file",
        "Replace old_str by new_str in a file. old_str must occur exactly once; copy it without line numbers.",
        "write",
        path_parameters=("path",),
    )
    parameters = EditParameters

    async def run(self, arguments: EditParameters, context: ToolContext) -> ToolOutput:
        """Stage the edit and show what it changes."""
        path = context.view.roots.resolve(arguments.path)
        before = (await asyncio.to_thread(context.view.read, path)).text
        done = replace(before, arguments.old_str, arguments.new_str, replace_all=arguments.replace_all)
        step = context.staging.write({path: done.text})
        return ToolOutput(_report(context, path, before, done.text), {"change_id": step.change_id})


class WriteFileParameters(Parameters):
    """A whole file."""

    path: str = Field(description="File, relative to the workspace")
    content: str = Field(description="The whole new text")


class WriteFile(Tool[WriteFileParameters]):
    """Create a file or replace its whole text."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "write_file",
        "Create a file, or replace a whole file. For a small change use edit_file.",
        "write",
        path_parameters=("path",),
    )
    parameters = WriteFileParameters

    async def run(self, arguments: WriteFileParameters, context: ToolContext) -> ToolOutput:
        """Stage the text; an existing file keeps its line ends."""
        path = context.view.roots.resolve(arguments.path)
        known = await asyncio.to_thread(_existing, context, path)
        text = arguments.content
        if known is not None:
            text = with_newlines(text, dominant_newline(known))
            if text == known:
                raise EditRefused("already_applied", f"{arguments.path} already has exactly this text.")
        step = context.staging.write({path: text})
        name = context.view.roots.relative(path)
        if known is not None:
            return ToolOutput(_report(context, path, known, text), {"change_id": step.change_id})
        return ToolOutput(f"Created {name} ({len(split_lines(text))} lines).", {"change_id": step.change_id})


class BatchEditParameters(Parameters):
    """Several replacements, all or none."""

    edits: list[EditParameters] = Field(min_length=1, max_length=100)


class BatchEdit(Tool[BatchEditParameters]):
    """Several edits in one step."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "batch_edit",
        "Make several edits at once: all are made, or none.",
        "write",
        group="files",
        path_parameters=("edits.path",),
    )
    parameters = BatchEditParameters

    async def run(self, arguments: BatchEditParameters, context: ToolContext) -> ToolOutput:
        """Stage all edits as one step; the first refusal names its edit and stages nothing."""
        before: dict[str, str] = {}
        after: dict[str, str | None] = {}
        for number, edit in enumerate(arguments.edits, 1):
            path = context.view.roots.resolve(edit.path)
            if path not in before:
                before[path] = (await asyncio.to_thread(context.view.read, path)).text
            current = after.get(path, before[path])
            try:
                done = replace(current or "", edit.old_str, edit.new_str, replace_all=edit.replace_all)
            except EditRefused as refusal:
                message = f"Edit {number} ({edit.path}) was refused, so none was made. {refusal}"
                raise EditRefused(refusal.reason, message) from refusal
            after[path] = done.text
        step = context.staging.write(after)
        reports = [_report(context, path, before[path], text or "") for path, text in after.items()]
        return ToolOutput("\n".join(reports), {"change_id": step.change_id})


class PreviewEditParameters(Parameters):
    """An edit to look at."""

    path: str
    old_str: str
    new_str: str


class PreviewEdit(Tool[PreviewEditParameters]):
    """What an edit would change, without making it."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "preview_edit",
        "Show the diff an edit would make, without making it.",
        "read",
        group="files",
        path_parameters=("path",),
    )
    parameters = PreviewEditParameters

    async def run(self, arguments: PreviewEditParameters, context: ToolContext) -> ToolOutput:
        """The unified diff."""
        path = context.view.roots.resolve(arguments.path)
        before = (await asyncio.to_thread(context.view.read, path)).text
        done = replace(before, arguments.old_str, arguments.new_str)
        return ToolOutput(_diff(context, path, before, done.text))


def _existing(context: ToolContext, path: str) -> str | None:
    if not context.view.exists(path):
        return None
    try:
        return context.view.read(path).text
    except FileRefused as refusal:
        raise ToolRetry(f"{refusal} Choose another path.") from refusal


def _report(context: ToolContext, path: str, before: str, after: str) -> str:
    diff = _diff(context, path, before, after)
    return f"Staged for the user's decision:\n{diff}" if diff else "Nothing changes."


def _diff(context: ToolContext, path: str, before: str, after: str) -> str:
    name = context.view.roots.relative(path)
    return merge.unified_diff(before, after, f"a/{name}", f"b/{name}", context=1)
