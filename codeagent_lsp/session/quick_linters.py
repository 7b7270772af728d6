"""Linters that check a file quickly, run in the session's shadow on any view: a source for files without a language
server.

Not here: language servers (`language_servers/`), linters that the model asks for (`tools/diagnostics/linters.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from codeagent_lsp.errors import AgentError
from codeagent_lsp.shadow.shell import Shell
from codeagent_lsp.tools.diagnostics.checking import check
from codeagent_lsp.tools.diagnostics.edit_diagnostics import Found
from codeagent_lsp.tools.diagnostics.linters import Job, jobs_for
from codeagent_lsp.workspace.files.file_view import FileView

_QUICK = frozenset({"ruff", "eslint"})

ShellOver = Callable[[FileView], Awaitable[Shell]]
"""Returns a shell whose commands see a view, and whose writing is dropped."""


class QuickLinters:
    """The `Lint` of one run. A linter that was once too slow is not run again."""

    def __init__(self, shell_over: ShellOver) -> None:
        self._shell_over = shell_over
        self._slow: set[str] = set()

    async def __call__(self, view: FileView, paths: Sequence[str], seconds: float) -> Found:
        """Return the diagnostics of the files that a quick linter checks; None for those that took too long."""
        jobs = await asyncio.to_thread(self._jobs, view, paths)
        files = {file for job in jobs for file in job.files}
        if not jobs:
            return {}
        try:
            async with asyncio.timeout(seconds):
                shell = await self._shell_over(view)
                if not shell.isolation.complete:
                    return {}
                checked = await check(shell, jobs)
        except TimeoutError:
            self._slow |= {job.linter.name for job in jobs}
            return dict.fromkeys(files)
        except AgentError:
            return {}
        return {file: tuple(item for item in checked.found if item.path == file) for file in checked.files}

    def _jobs(self, view: FileView, paths: Sequence[str]) -> list[Job]:
        return [job for job in jobs_for(view, paths) if job.linter.name in _QUICK - self._slow]
