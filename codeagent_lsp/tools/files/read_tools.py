"""The tools `list_dir`, `read_file` and `read_files`: folder listings and file texts, with unsaved and staged text."""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, Shape, number, without
from codeagent_lsp.errors import FileRefused, ToolRetry
from codeagent_lsp.messages import MOST_IMAGE, Image, ToolCall
from codeagent_lsp.tools.context import Calls, Reader, ToolContext
from codeagent_lsp.tools.files import foreign_reading as others
from codeagent_lsp.tools.files.find_tools import may_show
from codeagent_lsp.tools.outputs import OutputStore, locate_output
from codeagent_lsp.tools.permissions.policy import READ_FILE, READ_NAMES
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files import search
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.text.position import split_lines

LARGE_FILE_LINES = 2000
LARGE_FILE_HEAD = 100
SMALL_WINDOW = 16_000
"""The largest window, in tokens, in which only the head of a large file is shown."""
MOST_LEVELS = 5
MOST_FILES = 50
GLOB_SIGNS = frozenset("*?[{")
PICTURES = (".png", ".jpg", ".jpeg", ".webp")


def _levels(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `recursive` as a depth."""
    recursive = given.pop("recursive", None)
    if recursive is None or "depth" in given:
        return given
    return {**given, "depth": MOST_LEVELS if str(recursive).lower() == "true" else 1}


def _lines(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `offset` and `limit` as the first and last line, line 0 as line 1, and without a last
    line of -1, which is the end.
    """
    offset, limit = number(given.get("offset")), number(given.get("limit"))
    if offset is not None and offset >= 0:
        given = {"start_line": offset + 1, **without(given, "offset")}
    if given.get("start_line") in (0, "0"):
        given = {**given, "start_line": 1}
    if given.get("end_line") in (-1, "-1"):
        given = without(given, "end_line")
    if limit is not None and limit > 0:
        first = number(given.get("start_line")) or 1
        given = {"end_line": first + limit - 1, **without(given, "limit")}
    return given


class ListDirParameters(Parameters):
    """Parameters of `list_dir`: the folder to list and how many levels of it."""

    path: str = Field(".", description="Folder, relative to the workspace")
    depth: int = Field(1, ge=1, le=MOST_LEVELS, description="Levels to show")


class ListDir(Tool[ListDirParameters]):
    """The tool `list_dir`: the files and folders below a folder, new and staged ones included, ignored ones left
    out.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "list_dir",
        "List a folder. Folders end with '/'.",
        "read",
        path_parameters=("path",),
        result="file",
        hook_name="LS",
    )
    parameters = ListDirParameters
    example: ClassVar[Example] = {"path": "src", "depth": 2}
    forms: ClassVar[CallForms] = CallForms(
        names=("list",),
        also=others.FOLDER_PATH,
        shapes=(
            Shape(
                "`recursive` true: all levels, as far as `depth` goes; false: one",
                _levels,
                {"recursive": {"type": "boolean", "description": "All levels"}},
            ),
        ),
        foreign=others.LIST_DIR,
    )
    output = list[str]

    async def run(self, arguments: ListDirParameters, context: ToolContext) -> ToolOutput:
        """Return one relative path per line, folders with a `/` at the end; a note if there are too many to show. The
        data has them as a list. FileRefused if it is no folder, PathRefused for one outside of the workspace.
        """
        path = context.view.roots.resolve(arguments.path or ".")
        listing = await asyncio.to_thread(context.view.list_dir, path, arguments.depth)
        roots = context.view.roots
        names = [f"{roots.relative(path)}{'/' if kind == 'folder' else ''}" for path, kind in listing.entries]
        note = "\n(more entries exist; list a subfolder)" if listing.truncated else ""
        return ToolOutput("\n".join(names) + note or "(empty folder)", names)


class ReadFileParameters(Parameters):
    """Parameters of `read_file`: the file, and optionally the first and last line, both 1-based and included."""

    path: str = Field(description="File, relative to the workspace")
    start_line: int | None = Field(None, ge=1, description="First line, 1-based")
    end_line: int | None = Field(None, ge=1, description="Last line, included")


class ReadFile(Tool[ReadFileParameters]):
    """The tool `read_file`: the text of a file with line numbers, as staged or open in the editor; also pictures and
    stored outputs of commands.
    """

    traits: ClassVar[ToolTraits] = READ_FILE
    parameters = ReadFileParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "start_line": 1, "end_line": 40}
    forms: ClassVar[CallForms] = CallForms(
        names=READ_NAMES,
        arguments=FILE_PATH,
        shapes=(
            Shape(
                "`offset` lines are skipped, then `limit` shown; `start_line` 0 is the first, `end_line` -1 the last",
                _lines,
                {
                    "offset": {"type": "integer", "minimum": 0, "description": "Lines to skip"},
                    "limit": {"type": "integer", "minimum": 1, "description": "Lines to show; default 2000"},
                    "start_line": {"type": "integer", "minimum": 0, "description": "First line, 1-based"},
                },
            ),
            others.IN_RANGE,
        ),
        foreign=others.READ_FILE,
    )
    output = dict[str, str]

    async def run(self, arguments: ReadFileParameters, context: ToolContext) -> ToolOutput:
        """Return the requested lines, for a file of more than 2,000 lines without a range its first lines and a hint,
        for a folder its entries, for a picture the image. FileRefused if it cannot be read; the data has the absolute
        path.
        """
        view, path = locate_output(context.view, context.get(OutputStore), arguments.path)
        if PurePath(path).suffix.lower() in PICTURES:
            image, size = await asyncio.to_thread(picture, view, path)
            told = f"{view.roots.relative(path)}: {image.media_type}, {size:,} bytes"
            return ToolOutput(told, {"path": path}, images=(image,))
        if view.roots.kind(path) == "folder":
            return ToolOutput(await asyncio.to_thread(list_folder, view, path), {"path": path})
        file = await asyncio.to_thread(view.read, path)
        shown = render(file, arguments.start_line, arguments.end_line, _head(context, file))
        return ToolOutput(shown, {"path": path})


class ReadFilesParameters(Parameters):
    """Parameters of `read_files`: up to 50 files, by name or glob, each with the lines to show."""

    files: list[ReadFileParameters] = Field(min_length=1, max_length=MOST_FILES, description="path may be a glob")


class ReadFiles(Tool[ReadFilesParameters]):
    """The tool `read_files`: up to 50 files; each is a call of `read_file`, with its rules, hooks and questions."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "read_files",
        "Read several files at once.",
        "read",
        group="files",
        timeout=None,
        result="file",
    )
    parameters = ReadFilesParameters
    example: ClassVar[Example] = {"files": [{"path": "src/cart.py"}, {"path": "docs/*.md", "end_line": 20}]}
    forms: ClassVar[CallForms] = CallForms(
        items={"files": CallForms(arguments=FILE_PATH)}, plain={"files": "path"}, foreign=others.READ_FILES
    )
    output = list[str]

    async def run(self, arguments: ReadFilesParameters, context: ToolContext) -> ToolOutput:
        """Return the texts below lines `== path ==`, at most 50, whose paths are the data; a file that cannot be read
        has the reason in its place.
        """
        calls = context.need(Calls, "Files are read one by one here: use read_file.")
        wanted = [
            (path, part.model_dump(exclude={"path"}, exclude_none=True))
            for part in arguments.files
            for path in await _named_files(context, part.path)
        ]
        shown = []
        for path, lines in wanted[:MOST_FILES]:
            result = await calls.execute(ToolCall(ReadFile.traits.name, {"path": path, **lines}))
            shown.append(f"== {path} ==\n{result.text}")
        if (left := len(wanted) - MOST_FILES) > 0:
            shown.append(f"({left} more files)")
        return ToolOutput("\n".join(shown), [path for path, _ in wanted[:MOST_FILES]])


async def _named_files(context: ToolContext, name: str) -> tuple[str, ...]:
    """Return the files that a name or a glob means; of a glob, those that may be read without asking."""
    view = context.view
    # `[id].tsx` is a name in some web frameworks
    if not GLOB_SIGNS & set(name) or view.exists(view.roots.resolve(name)):
        return (name,)
    found = [path for path in (await search.glob(view, name)).paths if may_show(context, path, None)]
    return tuple(map(view.roots.relative, sorted(found))) or (name,)


def list_folder(view: FileView, path: str) -> str:
    """Return the names in a folder (absolute path), two levels deep, as text for a call that takes it for a file; a `/`
    ends those of folders, which are relative paths. It says so if there are more than the view lists. Blocks.
    """
    listing = view.list_dir(path, 2)
    names = [f"{view.roots.relative(entry)}{'/' if kind == 'folder' else ''}" for entry, kind in listing.entries]
    more = "\n(more entries exist; list a subfolder)" if listing.truncated else ""
    return "\n".join([f"{view.roots.relative(path)} is a folder:", *names]) + more


def picture(view: FileView, path: str) -> tuple[Image, int]:
    """Return (picture, size in bytes) of the file at an absolute path. Blocks. FileRefused if it is none, too large or
    cannot be read: servers answer with an error that would end the run.
    """
    data = view.roots.read_bytes(path, MOST_IMAGE)
    if (found := Image.of(data)) is None:
        raise FileRefused(f"{view.roots.relative(path)} is not a PNG, JPEG or WebP picture, whatever its name says.")
    return found, len(data)


def _head(context: ToolContext, file: FileText) -> int:
    """Return how many lines of a large file are shown: as many as one result holds, but few in a small window."""
    reader = context.get(Reader)
    if reader is None or reader.window <= SMALL_WINDOW:
        return LARGE_FILE_HEAD
    room = context.settings.tools.max_output_bytes * 9 // 10
    for count, line in enumerate(split_lines(file.text)[:LARGE_FILE_LINES]):
        room -= len(line.encode("utf-8", "replace")) + len(f"{count}|")
        if room < 0:
            return max(count, LARGE_FILE_HEAD)
    return LARGE_FILE_LINES


def render(file: FileText, start: int | None = None, end: int | None = None, head: int = LARGE_FILE_HEAD) -> str:
    """Return the lines `start` to `end` (1-based, included) as `number|text`, and a note if some are left out or the
    file has fewer; without both, the first `head` lines of a file of more than 2,000. ToolRetry if `end` is before
    `start`.
    """
    lines = split_lines(file.text)
    total = len(lines)
    if start is not None and end is not None and end < start:
        raise ToolRetry(f"end_line {end} stands before start_line {start}.")
    if start is None and end is None and total > LARGE_FILE_LINES:
        shown = _number_lines(lines[:head], 1)
        return f"{shown}\n({total} lines; the first {head} shown. Read ranges with start_line and end_line.)"
    first = start or 1
    last = min(end or total, total)
    if total and first > total:
        return f"(the file has only {total} lines)"
    parts = [_number_lines(lines[first - 1 : last], first) if total else "(empty file)"]
    if total and (first > 1 or last < total):
        parts.append(f"(lines {first}-{last} of {total})")
    if file.note:
        parts.append(f"({file.note})")
    return "\n".join(parts)


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number}|{line.rstrip(chr(10) + chr(13))}" for number, line in enumerate(lines, first))
