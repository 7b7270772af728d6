"""Execution of linters in the shadow, one after the other, with their findings or the reasons of their failure.

Linters run code of the workspace (settings that are programs, plugins, build scripts), so they run only where a command
can do no harm. Not here: which linters (`linters.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from codeagent_lsp.shadow.shell import Finished, Shell
from codeagent_lsp.tools.diagnostics.linters import Job
from codeagent_lsp.tools.diagnostics.port import Diagnostic

TOTAL_SECONDS = 180.0
_MAX_REASON = 200


@dataclass(frozen=True, slots=True)
class Checked:
    """The results of linters. `used` are the names of those that worked, `failed` pairs of name and reason for the
    others.

    `files` are those that at least one linter has checked.
    """

    found: tuple[Diagnostic, ...] = ()
    used: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    files: frozenset[str] = frozenset()


async def check(shell: Shell, jobs: Iterable[Job]) -> Checked:
    """Run the jobs until TOTAL_SECONDS have passed; later ones are reported as failed."""
    found: list[Diagnostic] = []
    used: list[str] = []
    failed: list[tuple[str, str]] = []
    files: set[str] = set()
    deadline = time.monotonic() + TOTAL_SECONDS
    for job in jobs:
        if time.monotonic() > deadline:
            failed.append((job.linter.name, "there was no time left"))
            continue
        finished = (await shell.run(job.command)).finished
        said = _said(job, finished)
        # many linters exit with an error when they find something, so the exit code counts only without findings
        if reason := "" if said else _reason(finished):
            failed.append((job.linter.name, reason))
            continue
        found += said
        used.append(job.linter.name)
        files.update(job.files)
    return Checked(tuple(found), tuple(dict.fromkeys(used)), tuple(dict.fromkeys(failed)), frozenset(files))


def _said(job: Job, finished: Finished) -> tuple[Diagnostic, ...]:
    """Return the findings from the first stream that has any: programs differ in which they use."""
    folder = _text(finished, "folder").rstrip("\n")
    streams = (_text(finished, stream) for stream in ("stdout", "stderr"))
    return next((found for text in streams if (found := tuple(job.read(text, folder)))), ())


def _reason(finished: Finished) -> str:
    """Return why a linter without findings has not checked anything; '' if it has."""
    if finished.ending != "exited":
        return f"stopped at a limit ({finished.ending})"
    if finished.exit_code == 0:
        return ""
    said = f"{_text(finished, 'stderr')}\n{_text(finished, 'stdout')}\n{finished.output}"
    line = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return line[:_MAX_REASON] or f"exit code {finished.exit_code}"


def _text(finished: Finished, stream: str) -> str:
    return finished.reports.get(stream, b"").decode("utf-8", "replace")
