"""`analyze_coverage`: what the tests do not reach, on the unsaved buffers and the staged changes.

Not here: measuring and the formats (`testing/measuring.py`, `testing/coverage.py`).
"""

# ruff: noqa: PTH118 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.shadow.base import Shell
from codeagent_lsp.tools.base import Parameters, Tool, ToolContext, ToolOutput, ToolTraits
from codeagent_lsp.tools.builtin.testing import existing, projects_at, shell_of, state_of
from codeagent_lsp.tools.testing import measuring
from codeagent_lsp.tools.testing.coverage import CoverageReport, told
from codeagent_lsp.tools.testing.projects import Project, is_test_file
from codeagent_lsp.tools.testing.summary import BUDGET


class AnalyzeCoverageParameters(Parameters):
    """What to look at; nothing means everything."""

    path: str | None = Field(None, description="File or folder to report on, or a test file to run alone")


class AnalyzeCoverage(Tool[AnalyzeCoverageParameters]):
    """Runs the tests and reports lines that none of them reaches, the worst files first."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "analyze_coverage",
        "Run the tests and list the lines they do not reach.",
        "run",
        group="tests",
        timeout=None,  # the shell has its own, longer limit
        path_parameters=("path",),
    )
    parameters = AnalyzeCoverageParameters

    async def run(self, arguments: AnalyzeCoverageParameters, context: ToolContext) -> ToolOutput:
        """A summary for the model; `data["reports"]` has every file."""
        shell = shell_of(context, "Tests")
        path = existing(arguments.path, context)
        found = await projects_at(path, context)
        reports = [await _measured(project, path, context, shell) for project in found]
        state = state_of(context, shell.isolation)
        texts = [
            told(report, _locator(project, context), state, BUDGET // len(found))
            for project, report in zip(found, reports, strict=True)
        ]
        return ToolOutput("\n\n".join(texts), {"reports": [report.as_dict() for report in reports]})


async def _measured(project: Project, path: str | None, context: ToolContext, shell: Shell) -> CoverageReport:
    """All tests run, since any may reach the path; unless it names the tests themselves."""
    alone = path is not None and is_test_file(path)
    chosen = project if alone else replace(project, target="")
    command = measuring.command(chosen, context.view, offline=shell.isolation.offline)
    report = measuring.read(chosen, (await shell.run(command, context.output)).finished)
    if path is None or alone:
        return report
    files = tuple(file for file in report.files if _within(os.path.join(project.folder, file.path), path))
    return replace(report, files=files)


def _within(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")


def _locator(project: Project, context: ToolContext) -> Callable[[str], str]:
    return lambda file: context.view.roots.relative(os.path.join(project.folder, file))
