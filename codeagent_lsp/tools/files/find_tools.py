"""The tools `glob_file_search` and `grep`: find files by name and lines by pattern, with unsaved and staged text."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, Shape
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.foreign_reading import FOLDER_PATH, GLOB, GREP, SOUGHT, sought
from codeagent_lsp.tools.outputs import OutputStore, locate_output
from codeagent_lsp.tools.permissions.policy import reading
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files import search

GLOB_LIMIT = 200
MOST_COUNTED = 20_000
_SPANS = re.compile(r"\A\(\?[a-z]*s[a-z]*\)|(?<!\\)(?:\\\\)*\\n")
"""Patterns that may match across lines: those with `\\n`, or with the flag `s` in front."""


class GlobParameters(Parameters):
    """Parameters of `glob_file_search`: a glob pattern, and the folder to search: the whole workspace without one."""

    pattern: str = Field(description="Glob, for instance **/*.py")
    path: str | None = Field(None, description="Folder to search in")


class GlobFileSearch(Tool[GlobParameters]):
    """The tool `glob_file_search`: finds files by a name pattern, new and staged ones included."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "glob_file_search",
        "Find files by name pattern.",
        "read",
        path_parameters=("path",),
        hook_name="Glob",
    )
    parameters = GlobParameters
    example: ClassVar[Example] = {"pattern": "**/*.py"}
    forms: ClassVar[CallForms] = CallForms(
        names=("glob",), also={**FOLDER_PATH, "glob_pattern": "pattern"}, foreign=GLOB
    )
    output = list[str]

    async def run(self, arguments: GlobParameters, context: ToolContext) -> ToolOutput:
        """Return one relative path per line, the newest first, at most 200, which the data has as a list; none is no
        error. ToolRetry for a pattern that cannot be read, ToolFailed after 20 s, PathRefused or FileRefused for a
        folder that cannot be searched.
        """
        view = context.view
        where = view.roots.resolve(arguments.path) if arguments.path else None
        if where is not None:
            await asyncio.to_thread(view.require, where)
        pattern, where = relative(arguments.pattern, where, view.roots.folders)
        found = await search.glob(view, pattern, where, limit=GLOB_LIMIT)
        names = [view.roots.relative(path) for path in found.paths]
        note = "\n(more files match; narrow the pattern)" if found.truncated else ""
        return ToolOutput("\n".join(names) + note or f"No file matches {arguments.pattern}.", names)


def relative(
    pattern: str, where: str | None, folders: Iterable[str], *, windows: bool = os.name == "nt"
) -> tuple[str, str | None]:
    """Return (pattern, folder): a glob that begins with the folder to search in, or one of the workspace, relative to
    it, and that folder; any other as it is, with `where`. On Windows either slash separates folders, and letters are
    the same in any case.
    """
    told = pattern.replace("\\", "/") if windows else pattern
    for folder in (where,) if where else folders:
        head = f"{folder}/".replace("\\", "/") if windows else f"{folder}/"
        begins = told.lower().startswith(head.lower()) if windows else told.startswith(head)
        if begins:
            return told[len(head) :], folder
    return told, where


class GrepParameters(Parameters):
    """Parameters of `grep`: a regular expression, and where to search for it: everywhere without a path. `context` is
    the number of lines shown around a match; `output` asks for the names of files, or their counts, in place of lines.
    """

    pattern: str = Field(description="Regular expression")
    path: str | None = Field(None, description="File or folder to search in")
    glob: str | None = Field(None, description="Only files that match this glob")
    case_insensitive: bool = False
    context: int = Field(0, ge=0, le=10, description="Lines around each match")
    max_results: int = Field(200, ge=1, le=2000)
    output: Literal["files", "count"] | None = None


class Grep(Tool[GrepParameters]):
    """The tool `grep`: finds lines by a regular expression, with unsaved and staged text, also in stored command
    outputs.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "grep",
        "Search file contents by regular expression.",
        "read",
        path_parameters=("path",),
        hook_name="Grep",
    )
    parameters = GrepParameters
    example: ClassVar[Example] = {"pattern": "def total", "glob": "*.py", "context": 2}
    forms: ClassVar[CallForms] = CallForms(
        arguments={"-i": "case_insensitive", "-C": "context"},
        also=SOUGHT,
        ignored=("-n",),
        shapes=(
            Shape(
                "`-A` and `-B` are `context`; `limit` is `max_results`; `output_mode` is `output`; `type`, as "
                "ripgrep has it, is a `glob`; `case_sensitive`; `literal`",
                sought,
            ),
        ),
        foreign=GREP,
    )
    output = list[dict[str, Any]]  # path, and line and text, or with `output` count

    async def run(self, arguments: GrepParameters, context: ToolContext) -> ToolOutput:
        """Return `path:line:text`, with `-` instead of `:` for context lines, or the files, or `path:count`. Files that
        need the user's approval to be read are named, but not shown.
        """
        view, asked = context.view, None
        by_line = arguments.output is None
        if arguments.path:
            view, asked = locate_output(view, context.get(OutputStore), arguments.path)
            await asyncio.to_thread(view.require, asked)
        result = await search.grep(
            view,
            arguments.pattern,
            path=asked,
            glob=arguments.glob,
            case_insensitive=arguments.case_insensitive,
            multiline=_SPANS.search(arguments.pattern) is not None,
            context=arguments.context if by_line else 0,
            max_results=arguments.max_results if by_line else MOST_COUNTED,
        )
        readable = {match.path: may_show(context, match.path, asked) for match in result.matches}
        shown = [match for match in result.matches if readable[match.path]]
        relative = view.roots.relative
        rows: list[dict[str, Any]]
        if by_line:
            lines = _lines(shown, relative, apart=arguments.context > 0)
            rows = [{"path": relative(match.path), "line": match.line, "text": match.text} for match in shown]
        else:
            counts = Counter(relative(match.path) for match in shown)
            rows = [{"path": name, "count": count} for name, count in counts.items()][: arguments.max_results]
            lines = [name if arguments.output == "files" else f"{name}:{count}" for name, count in counts.items()]
            if more := lines[arguments.max_results :]:
                lines = [*lines[: arguments.max_results], f"(and {len(more)} more files)"]
        lines = lines or [f"No match for {arguments.pattern!r}."]
        if result.truncated:
            lines.append(f"(more matches exist; only {len(shown)} {'shown' if by_line else 'counted'})")
        if hidden := [relative(path) for path, allowed in readable.items() if not allowed]:
            lines.append(f"(left out, as reading them needs the user's approval: {', '.join(hidden[:10])})")
        return ToolOutput("\n".join(lines), rows)


def may_show(context: ToolContext, path: str, asked: str | None) -> bool:
    """Return whether the user's rules let this file be read, or it is in a secret place that was named in the call and
    so approved (`asked`, an absolute path).
    """
    roots = context.view.roots
    verdict = reading(path, context.settings.permissions, roots).verdict
    approved = asked is not None and roots.is_secret(asked) and (path == asked or path.startswith(f"{asked}/"))
    return verdict == "allow" or (verdict == "ask" and approved)


def _lines(matches: Iterable[search.Match], name: Callable[[str], str], *, apart: bool) -> list[str]:
    """Return the lines of matches and those around them, each once, with `--` between places that are `apart`."""
    found: dict[str, dict[int, str]] = {}
    for match in matches:
        places, label = found.setdefault(match.path, {}), name(match.path)
        around = (*enumerate(match.before, match.line - len(match.before)), *enumerate(match.after, match.line + 1))
        for number, text in around:
            places.setdefault(number, f"{label}-{number}-{text}")
        places[match.line] = f"{label}:{match.line}:{match.text}"
    lines: list[str] = []
    for places in found.values():
        last = None
        for number in sorted(places):
            if apart and lines and number != (last or 0) + 1:
                lines.append("--")
            lines.append(places[number])
            last = number
    return lines
