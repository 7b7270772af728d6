"""The tool `get_diagnostics`: problems of files in their current state, with unsaved and staged text.

The client's own diagnostics are used for open files that the run has not changed; all others are checked by linters in
the shadow, or only for syntax if those cannot run. Not here: tests (`../testing/testing_tools.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool, Shape, place_of, without
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.difference import Diagnostic, Diagnostics, show, sort_diagnostics
from codeagent_lsp.tools.diagnostics.linters import Checked, check, is_for_linters, jobs_for
from codeagent_lsp.tools.diagnostics.syntax import is_for_syntax, syntax_errors
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import is_untitled
from codeagent_lsp.workspace.text.excerpts import join_names

MAX_FILES = 200
MAX_ASKED = 20
_NAMED = 5


def _around(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with several files as the folder around them."""
    place = place_of(given.get("filePaths", given.get("paths")))
    return {**without(given, "filePaths", "paths"), **({"path": place} if place else {})}


_AROUND = Shape("several files are the folder around them", _around)


class GetDiagnosticsParameters(Parameters):
    """Parameters of `get_diagnostics`: the file or folder to check; None for what is open or changed."""

    path: str | None = Field(None, description="File or folder; default: what is open or changed")


class GetDiagnostics(Tool[GetDiagnosticsParameters]):
    """The tool `get_diagnostics`: problems from the client, from linters run in the private view, or from the syntax
    alone.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "get_diagnostics",
        "List errors and warnings of linters and type checkers, unsaved text and your own edits included.",
        "read",
        timeout=None,  # every source has its own limit
        path_parameters=("path",),
    )
    parameters = GetDiagnosticsParameters
    example: ClassVar[Example] = {"path": "src/cart.py"}
    forms: ClassVar[CallForms] = CallForms(
        arguments=FILE_PATH,
        foreign=(
            ForeignTool("get_errors", ("Copilot",), ignored=("ranges",), shapes=(_AROUND,)),
            ForeignTool("read_lints", ("Cursor",), shapes=(_AROUND,)),
            ForeignTool("ReadLints", ("Cursor",), shapes=(_AROUND,)),
            ForeignTool("getDiagnostics", ("Claude Code",), {"uri": "path"}),
            ForeignTool("diagnostics", ("Zed",)),
        ),
    )
    output = list[Diagnostic]

    async def run(self, arguments: GetDiagnosticsParameters, context: ToolContext) -> ToolOutput:
        """Return `path:line:column severity code message (source)` lines, the worst first, and which sources were used;
        200 files are looked at at most. A linter that fails is reported, and is no error. The data has the diagnostics.
        PathRefused for a path outside of the workspace.
        """
        view = context.view
        path = view.roots.resolve(arguments.path) if arguments.path else None
        files, more = await asyncio.to_thread(_targets, view, path)
        shown = await _from_client(context, files)
        rest = [file for file in files if not shown.get(file)]
        checked = await _by_linters(context, rest)
        left = [file for file in rest if file not in checked.files]
        parsed = await asyncio.to_thread(_by_syntax, view, left)
        wanted = frozenset(files)
        found = sort_diagnostics([*_flat(shown.values()), *checked.found, *_flat(parsed.values())])
        here = tuple(item for item in found if item.path in wanted)
        elsewhere = [item for item in found if item.path not in wanted and view.roots.root_of(item.path)]
        lines = [show(here, view.roots.relative) or f"No problems found in {_subject(view, path, files)}."]
        lines += _others(elsewhere, view) + _remarks(context, checked, shown, parsed, left)
        lines += [f"(only the first {MAX_FILES} files were looked at)"] if more else []
        return ToolOutput("\n".join(lines), [asdict(item) for item in here])


def _targets(view: FileView, path: str | None) -> tuple[tuple[str, ...], bool]:
    """Return the files to check, and whether there are more. FileRefused if there is nothing at `path`."""
    if path is not None and not view.exists(path):
        view.read(path)
    starts = [path] if path else [file for file in sorted(view.over_disk()) if _is_file(view, file)]
    inside = (file for start in starts or view.roots.folders for file in view.walk(start))
    checked = (file for file in inside if file == path or is_for_linters(file) or is_for_syntax(file))
    found = list(islice(checked, MAX_FILES + 1))
    return tuple(found[:MAX_FILES]), len(found) > MAX_FILES


def _is_file(view: FileView, file: str) -> bool:
    return not is_untitled(file) and view.roots.root_of(file) is not None and view.exists(file)


async def _from_client(context: ToolContext, files: Iterable[str]) -> dict[str, tuple[Diagnostic, ...]]:
    """Return the client's diagnostics of open files whose buffer is what the run sees."""
    port = context.get(Diagnostics)
    if port is None:
        return {}
    over = context.view.over_disk() - frozenset(context.staging.paths())
    asked = [file for file in files if file in over][:MAX_ASKED]
    answers = await asyncio.gather(*(port.of(file) for file in asked))
    return {file: answer for file, answer in zip(asked, answers, strict=True) if answer is not None}


async def _by_linters(context: ToolContext, files: Sequence[str]) -> Checked:
    """Return the results of linters, if the isolation is complete."""
    if context.shell is None or not context.shell.isolation.complete or not files:
        return Checked()
    jobs = await asyncio.to_thread(jobs_for, context.view, files)
    if jobs:
        context.note(f"Checking with {', '.join(dict.fromkeys(job.linter.name for job in jobs))}")
    try:
        return await check(context.shell, jobs)
    except ToolFailed as error:
        return Checked(failed=(("the shadow workspace", str(error)),))


def _by_syntax(view: FileView, files: Iterable[str]) -> dict[str, tuple[Diagnostic, ...]]:
    found = {}
    for file in files:
        text = view.text(file)
        errors = syntax_errors(file, text) if text is not None else None
        if errors is not None:
            found[file] = errors
    return found


def _flat(groups: Iterable[Iterable[Diagnostic]]) -> list[Diagnostic]:
    return [item for group in groups for item in group]


def _subject(view: FileView, path: str | None, files: Sequence[str]) -> str:
    if path is not None:
        return view.roots.relative(path)
    return f"{len(files)} files" if len(files) != 1 else view.roots.relative(files[0])


def _others(elsewhere: Sequence[Diagnostic], view: FileView) -> list[str]:
    """Return a line about errors in other files, which a change may have broken."""
    errors = [item for item in elsewhere if item.severity == "error"]
    if not errors:
        return []
    names = list(dict.fromkeys(view.roots.relative(item.path) for item in errors))
    return [f"({len(errors)} errors in other files: {join_names(names, _NAMED)})"]


def _remarks(
    context: ToolContext,
    checked: Checked,
    shown: dict[str, tuple[Diagnostic, ...]],
    parsed: dict[str, tuple[Diagnostic, ...]],
    left: Sequence[str],
) -> list[str]:
    """Return lines that name the sources used, those that failed, and the files that nothing could check."""
    used = [*(["the editor"] if shown else []), *checked.used, *(["the syntax only"] if parsed else [])]
    lines = [f"(checked by: {', '.join(used)})"] if used else []
    lines += [f"({name} could not check: {reason})" for name, reason in checked.failed]
    unknown = [context.view.roots.relative(file) for file in left if file not in parsed and file not in shown]
    if unknown:
        lines.append(f"(nothing here can check: {join_names(unknown, _NAMED)})")
    if left and context.shell is not None and not context.shell.isolation.complete:
        lines.append("(linters were not run: commands are not fully isolated here; use run_cmd to run one)")
    return lines
