"""The tools `edit_file`, `write_file`, `insert_text`, `batch_edit`, `preview_edit`: staged changes of single texts.

Nothing here touches the disk: the changes join the run's changeset, which the user decides about.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import EditRefused, FileRefused, ToolRetry
from codeagent_lsp.index.indentation import in_style_of, needs_tabs
from codeagent_lsp.index.literals import refuse_altered
from codeagent_lsp.index.other_texts import refuse_other
from codeagent_lsp.index.placeholders import refuse_left_out
from codeagent_lsp.index.wrappings import refuse_wrapped
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.foreign_editing import (
    BATCH_EDIT,
    EDIT,
    EDIT_FILE,
    EVERY,
    INSERT_TEXT,
    NEAR_EDITS,
    NEAR_WRITES,
    WRITE,
    WRITE_FILE,
)
from codeagent_lsp.tools.tool import FILE_PATH, UNTOLD, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.match import replace
from codeagent_lsp.workspace.files.file_view import FileText
from codeagent_lsp.workspace.text.position import split_lines, without_line_numbers
from codeagent_lsp.workspace.text.visible import cut_at_word

MOST_HUNKS, SHOWN_CHARS = 40, 60
"""The most places of one file that an answer names, and the characters of the first new line of each."""
_BOM = "\ufeff"
_EDIT = {**FILE_PATH, "old_string": "old_str", "new_string": "new_str"}


class EditParameters(Parameters):
    """Parameters of `edit_file`: one replacement in one file. The edit is refused if `old_str` does not occur as often
    as `expected_replacements` says.
    """

    path: str = Field(description="File, relative to the workspace")
    old_str: str = Field(description="Exact text to replace, with enough context to be unique")
    new_str: str = Field(description="Text to put in its place")
    replace_all: bool = Field(False, description="Replace every occurrence")
    expected_replacements: int | None = Field(default=None, json_schema_extra=dict(UNTOLD))


class EditFile(Tool[EditParameters]):
    """The tool `edit_file`: stages the replacement of one piece of text, or of each of its occurrences, in a file."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "edit_file",
        "Replace old_str by new_str in a file. old_str must occur exactly once; copy it without line numbers.",
        "write",
        path_parameters=("path",),
        result="file",
        hook_name="Edit",
    )
    parameters = EditParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "old_str": "return 0", "new_str": "return sum(items)"}
    forms: ClassVar[CallForms] = CallForms(
        names=("edit", "file_edit"), arguments=_EDIT, also=EDIT, shapes=(EVERY,), foreign=EDIT_FILE, near=NEAR_EDITS
    )
    output = dict[str, str]

    async def run(self, arguments: EditParameters, context: ToolContext) -> ToolOutput:
        """Stage the edit; the text shows the changed lines, the data has the `change_id`. EditRefused if the old text
        is not found, or found more than once without `replace_all`; FileRefused if the file cannot be read.
        """
        path = context.view.roots.resolve(arguments.path)
        file = await asyncio.to_thread(context.view.read, path)
        done = await asyncio.to_thread(make_edit, file.text, arguments)
        return await _stage(context, path, file, done)


class WriteFileParameters(Parameters):
    """Parameters of `write_file`: the path of a file, relative to the workspace, and its whole new text."""

    path: str = Field(description="File, relative to the workspace")
    content: str = Field(description="The whole new text")


class WriteFile(Tool[WriteFileParameters]):
    """The tool `write_file`: stages a new file, or a new text for a whole existing one."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "write_file",
        "Create a file, or replace a whole file. For a small change use edit_file.",
        "write",
        path_parameters=("path",),
        result="file",
        hook_name="Write",
    )
    parameters = WriteFileParameters
    example: ClassVar[Example] = {"path": "src/tax.py", "content": "RATE = 19\n"}
    forms: ClassVar[CallForms] = CallForms(
        names=("write", "file_write"), arguments=FILE_PATH, also=WRITE, foreign=WRITE_FILE, near=NEAR_WRITES
    )
    output = dict[str, str]

    async def run(self, arguments: WriteFileParameters, context: ToolContext) -> ToolOutput:
        """Stage the text; an existing file keeps its line ends. EditRefused if it has this text already, ToolRetry if
        the path is no text file or below a file.
        """
        path = context.view.roots.resolve(arguments.path)
        known = await asyncio.to_thread(existing_text, context, path)
        if known is None:
            refuse_below_file(context, path)
            await asyncio.to_thread(_refuse_unfit, arguments.path, None, arguments.content)
            step = context.staging.write({path: arguments.content})
            return ToolOutput(_created_line(context, path, arguments.content), {"change_id": step.change_id})
        text = await asyncio.to_thread(rewritten, known.text, arguments.content)
        await asyncio.to_thread(_refuse_unfit, arguments.path, known.text, text)
        text = await asyncio.to_thread(with_needed_tabs, arguments.path, known.text, text)
        if text == known.text:
            raise EditRefused("already_applied", f"{arguments.path} already has exactly this text.")
        return await _stage(context, path, known, text)


class InsertTextParameters(Parameters):
    """Parameters of `insert_text`: a text, and the line, counted from 1, after which it is inserted: 0 for the top,
    None for the end.
    """

    path: str = Field(description="File, relative to the workspace")
    text: str = Field(description="Whole lines")
    line: int | None = Field(None, ge=0, description="Line after which they go, 0 for the top; the end if left out")


class InsertText(Tool[InsertTextParameters]):
    """The tool `insert_text`: stages whole lines after a line of a file, found by its number."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "insert_text",
        "Insert lines into a file after a line.",
        "write",
        group="files",
        path_parameters=("path",),
        result="file",
        hooked_as=("edit_file", "Edit"),
    )
    parameters = InsertTextParameters
    example: ClassVar[Example] = {"path": "src/tax.py", "line": 1, "text": "REDUCED = 7\n"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH, foreign=INSERT_TEXT)
    output = dict[str, str]

    async def run(self, arguments: InsertTextParameters, context: ToolContext) -> ToolOutput:
        """Stage the text with the line ends of the file; the text shows the changed lines, the data has the
        `change_id`. ToolRetry if the file has no such line, EditRefused for an empty text.
        """
        path = context.view.roots.resolve(arguments.path)
        file = await asyncio.to_thread(context.view.read, path)
        done = await asyncio.to_thread(insert_lines, file.text, arguments.text, arguments.line)
        await asyncio.to_thread(refuse_wrapped, arguments.path, file.text, done)
        return await _stage(context, path, file, done)


class BatchEditParameters(Parameters):
    """Parameters of `batch_edit`: up to 100 replacements, in the order in which they are made, of which all are made or
    none.
    """

    edits: list[EditParameters] = Field(min_length=1, max_length=100)


class BatchEdit(Tool[BatchEditParameters]):
    """The tool `batch_edit`: up to 100 edits, as of `edit_file`, as one staged step."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "batch_edit",
        "Make several edits at once: all are made, or none.",
        "write",
        group="files",
        path_parameters=("edits.path",),
        result="file",
        hook_name="MultiEdit",
        hooked_as=("edit_file", "Edit"),
    )
    parameters = BatchEditParameters
    example: ClassVar[Example] = {"edits": [{"path": "src/tax.py", "old_str": "19", "new_str": "20"}]}
    forms: ClassVar[CallForms] = CallForms(items={"edits": CallForms(arguments=_EDIT, also=EDIT)}, foreign=BATCH_EDIT)
    output = dict[str, str]

    async def run(self, arguments: BatchEditParameters, context: ToolContext) -> ToolOutput:
        """Stage all edits as one step; each sees the result of those before it. EditRefused names the first edit that
        cannot be made, and then nothing is staged.
        """
        before: dict[str, FileText | None] = {}  # None for a file that is made
        after: dict[str, str] = {}
        for number, edit in enumerate(arguments.edits, 1):
            path = context.view.roots.resolve(edit.path)
            # The later edits of a file see what the earlier ones made, but are all staged against the text as it was
            # read once.
            if path not in before:
                # Nothing in place of nothing makes a file, as tools of other agents have it.
                makes = not edit.old_str and await asyncio.to_thread(existing_text, context, path) is None
                before[path] = None if makes else await asyncio.to_thread(context.view.read, path)
                after[path] = _text(before[path])
                if makes:
                    refuse_below_file(context, path)
                    await asyncio.to_thread(_refuse_unfit, edit.path, None, edit.new_str)
                    after[path] = edit.new_str
                    continue
            try:
                after[path] = await asyncio.to_thread(make_edit, after[path], edit)
            except EditRefused as refusal:
                message = f"Edit {number} ({edit.path}) was refused, so none was made. {refusal}"
                raise EditRefused(refusal.reason, message) from refusal
        reports = [
            _created_line(context, path, text)
            if before[path] is None
            else _report(context, path, _text(before[path]), text)
            for path, text in after.items()
        ]
        step = context.staging.write(after, filter(None, before.values()))
        return ToolOutput("\n".join(reports), {"change_id": step.change_id})


class PreviewEditParameters(Parameters):
    """Parameters of `preview_edit`: an edit as of `edit_file`, where `old_str` occurs exactly once."""

    path: str
    old_str: str
    new_str: str


class PreviewEdit(Tool[PreviewEditParameters]):
    """The tool `preview_edit`: the diff of an edit that is not made."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "preview_edit",
        "Show the diff an edit would make, without making it.",
        "read",
        group="files",
        path_parameters=("path",),
        result="file",
    )
    parameters = PreviewEditParameters
    example: ClassVar[Example] = {"path": "src/tax.py", "old_str": "19", "new_str": "20"}
    forms: ClassVar[CallForms] = CallForms(arguments=_EDIT, also=EDIT)

    async def run(self, arguments: PreviewEditParameters, context: ToolContext) -> ToolOutput:
        """Return the unified diff, with nothing staged; errors as from `edit_file`."""
        path = context.view.roots.resolve(arguments.path)
        before = (await asyncio.to_thread(context.view.read, path)).text
        done = await asyncio.to_thread(make_edit, before, EditParameters(**arguments.model_dump()))
        return ToolOutput(_diff(context, path, before, done))


def make_edit(text: str, edit: EditParameters) -> str:
    """Return `text` with one edit made; line numbers copied from a read result are ignored, and small differences in
    white space of the old text are tolerated. EditRefused if the old text is not found or not unique.
    """
    old, new = edit.old_str, edit.new_str
    # Only where the text as given is not there: a file may well begin its lines with numbers.
    if old not in text and (plain := without_line_numbers(old)) != old:
        old, new = plain, without_line_numbers(new)
    wanted = edit.expected_replacements
    if wanted is not None and (found := text.count(old)) != wanted:
        message = f"old_str occurs {found} times, not {wanted}. Say how many are to be replaced, or make it unique."
        raise EditRefused("ambiguous" if found else "not_found", message)
    done = replace(text, old, new, replace_all=edit.replace_all)
    # The place was found by similarity and the new text fitted to it; inside a literal that would change what it says.
    if done.tier != "exact":
        refuse_altered(edit.path, text, done.text, [new])
    _refuse_unfit(edit.path, text, done.text)
    return done.text


def _refuse_unfit(path: str, before: str | None, after: str) -> None:
    """Raise EditRefused if the new text of a file is none of such a file, leaves code out or has something around it.
    `before` is None for a new file.
    """
    refuse_other(path, before or "", after)
    if before is not None:
        refuse_left_out(path, before, after)
    refuse_wrapped(path, before or "", after)


def insert_lines(text: str, new: str, line: int | None) -> str:
    """Return `text` with the lines `new` after its line `line`, 0 for the top, None for the end. ToolRetry if it has no
    such line, EditRefused if `new` is empty.
    """
    lines = split_lines(text)
    at = len(lines) if line is None else line
    if at > len(lines):
        raise ToolRetry(f"The file has only {len(lines)} lines.")
    if not new:
        raise EditRefused("empty", "There is no text to insert.")
    before, after = "".join(lines[:at]), "".join(lines[at:])
    # Behind a last line that has no end.
    if before and not before.endswith(("\n", "\r")):
        before += "\n"
    if not new.endswith(("\n", "\r")):
        new += "\n"
    return merge.with_line_ends_of(text, before + new + after)


def rewritten(known: str, content: str) -> str:
    """Return `content` as the new text of a file with the text `known`: with its line ends and byte-order mark, without
    line numbers copied from a read result.

    If the file itself begins its lines with such numbers, they are kept.
    """
    # A model never sees the mark, so it cannot give it again.
    if known.startswith(_BOM) and not content.startswith(_BOM):
        return _BOM + rewritten(known.removeprefix(_BOM), content)
    plain = without_line_numbers(content) if without_line_numbers(known) == known else content
    return merge.with_line_ends_of(known, plain)


def with_needed_tabs(path: str, known: str, text: str) -> str:
    """Return the new text of a file with tabs where the program that reads the file wants them. EditRefused if the
    columns of a table have lost theirs.
    """
    return merge.with_line_ends_of(known, in_style_of(path, known, text)) if needs_tabs(path) else text


def refuse_below_file(context: ToolContext, path: str) -> None:
    """Raise ToolRetry for an absolute path below an existing file: it is refused now rather than when the user applies
    the change. Blocks.
    """
    for parent in Path(path).parents:
        if context.view.roots.kind(str(parent)) == "folder":
            return
        # Staged files exist in the view alone; only one on disk can be in the way of a folder.
        if context.view.exists(str(parent)) and context.view.roots.kind(str(parent)) is not None:
            raise ToolRetry(f"{context.view.roots.relative(str(parent))} is a file, not a folder. Choose another path.")


def existing_text(context: ToolContext, path: str, parameter: str = "path") -> FileText | None:
    """Return the file at an absolute path; None if there is none. ToolRetry, naming `parameter`, if it is not a text.
    Blocks.
    """
    if not context.view.exists(path):
        return None
    try:
        return context.view.read(path)
    except FileRefused as refusal:
        raise ToolRetry(f"{refusal} Choose another {parameter}.") from refusal


async def _stage(context: ToolContext, path: str, read: FileText, text: str) -> ToolOutput:
    """Stage a new text of a file that was `read`, and show what it changes."""
    report = await asyncio.to_thread(_report, context, path, read.text, text)
    step = context.staging.write({path: text}, [read])
    return ToolOutput(report, {"change_id": step.change_id})


def _text(file: FileText | None) -> str:
    return "" if file is None else file.text


def _created_line(context: ToolContext, path: str, text: str) -> str:
    count = len(split_lines(text))
    return f"Created {context.view.roots.relative(path)} ({count} line{'s' * (count != 1)})."


def _report(context: ToolContext, path: str, before: str, after: str) -> str:
    name = context.view.roots.relative(path)
    return (
        f"Staged for the user's decision: {hunks_told(name, before, after)}" if before != after else "Nothing changes."
    )


def hunks_told(name: str, before: str, after: str) -> str:
    """Return the name of a file, and below it a line for each hunk of its change, with its lines (from 1) in the new
    text; at most 40 hunks.
    """
    lines, runs = split_lines(after), merge.runs(before, after)
    told = []
    for run in runs[:MOST_HUNKS]:
        removed, added = run.old_end - run.old_start, run.new_end - run.new_start
        if not added:
            told.append(f"  after line {run.new_start}: {lines_counted(removed)} removed")
            continue
        first = next((line.strip() for line in lines[run.new_start : run.new_end] if line.strip()), "")
        place = f"lines {run.new_start + 1}-{run.new_end}" if added > 1 else f"line {run.new_end}"
        what = f"in place of {lines_counted(removed)}" if removed else "added"
        # A change of blank lines has no first line to show.
        told.append(f"  {place} {what}: {cut_at_word(first, SHOWN_CHARS)}".rstrip(": "))
    more = len(runs) - MOST_HUNKS
    return "\n".join((name, *told, *([f"  (and {more} more places)"] if more > 0 else [])))


def lines_counted(lines: int) -> str:
    """Return a number of lines in English: "1 line", "2 lines"."""
    return f"{lines} line{'' if lines == 1 else 's'}"


def _diff(context: ToolContext, path: str, before: str, after: str) -> str:
    name = context.view.roots.relative(path)
    return merge.unified_diff(before, after, f"a/{name}", f"b/{name}")
