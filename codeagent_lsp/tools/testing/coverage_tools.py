"""The tool `analyze_coverage`: lines that no test reaches, with unsaved buffers and staged changes included.

Not here: measuring (`framework.py`) and the formats (`coverage.py`).
"""

# ruff: noqa: PTH118 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.shell import Shell
from codeagent_lsp.tools.commands.command_tools import shell_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.testing.coverage import CoverageReport, told
from codeagent_lsp.tools.testing.framework import Project, is_test_file, measured, measuring_command
from codeagent_lsp.tools.testing.summary import BUDGET
from codeagent_lsp.tools.testing.testing_tools import Noted, existing, not_installed, projects_at, state_of, wrote
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


class AnalyzeCoverageParameters(Parameters):
    """The file or folder to report on; by default everything."""

    path: str | None = Field(None, description="File or folder to report on, or a test file to run alone")


class AnalyzeCoverage(Tool[AnalyzeCoverageParameters]):
    """Run the tests and report the lines that none of them reaches, the worst files first."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "analyze_coverage",
        "Run the tests and list the lines they do not reach.",
        "run",
        group="tests",
        timeout=None,  # the shell has its own, longer limit
        path_parameters=("path",),
        errors=(ErrorCode.NOT_FOUND,),
        result="printed",
    )
    parameters = AnalyzeCoverageParameters
    example: ClassVar[Example] = {"path": "src/cart.py"}
    output = dict[str, Any]  # reports: framework, percent, total, files

    async def run(self, arguments: AnalyzeCoverageParameters, context: ToolContext) -> ToolOutput:
        """Return a summary for the model; `data["reports"]` has every file."""
        shell = Noted(shell_of(context))
        path = existing(arguments.path, context)
        found = await projects_at(path, context)
        alone = len(found) == 1
        state = state_of(context, shell.isolation)  # before the run may stage something itself
        reports = [await _attempted(project, path, context, shell, alone=alone) for project in found]
        texts = [
            told(report, _locator(project, context), state, BUDGET // len(found))
            for project, report in zip(found, reports, strict=True)
        ]
        return ToolOutput(
            "\n\n".join(texts) + wrote(shell.results, context), {"reports": [report.as_dict() for report in reports]}
        )


async def _attempted(
    project: Project, path: str | None, context: ToolContext, shell: Shell, *, alone: bool
) -> CoverageReport:
    """Measure one project; if there are several, a failure becomes the problem of its report."""
    try:
        if not project.program:
            raise ToolFailed(not_installed(project))
        return await _measured(project, path, context, shell)
    except ToolFailed as error:
        if alone:
            raise
        return CoverageReport(project.framework.name, (), str(error))


async def _measured(project: Project, path: str | None, context: ToolContext, shell: Shell) -> CoverageReport:
    """Run all tests, since any may reach the path, unless the path is a test file; return the coverage of the path."""
    alone = path is not None and is_test_file(path)
    chosen = project if alone else replace(project, target="")
    command = measuring_command(chosen, context.view, offline=shell.isolation.offline)
    report = measured(chosen, (await shell.run(command, context.output)).finished)
    if path is None or alone:
        return report
    files = tuple(file for file in report.files if _within(os.path.join(project.folder, file.path), path))
    return replace(report, files=files)


def _within(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")


def _locator(project: Project, context: ToolContext) -> Callable[[str], str]:
    return lambda file: context.view.roots.relative(os.path.join(project.folder, file))
