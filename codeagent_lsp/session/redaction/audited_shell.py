"""Wraps a shell so that every command is written to the audit log, before it runs and after it has ended.

Not here: running commands (`shadow/`), the file of the log (`records/audit.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output

RecordCommand = Callable[[str, str, str, int | None], None]
"""Receives the command, its folder, the isolation level, and the exit code (None before the command has ended)."""


class AuditedShell:
    """The `Shell` port around another shell; `record` receives every command."""

    def __init__(self, shell: Shell, record: RecordCommand) -> None:
        self._shell = shell
        self._record = record

    @property
    def isolation(self) -> Isolation:
        """Return the isolation of the wrapped shell."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run the command in the wrapped shell, and record it before and after."""
        words = command.script if isinstance(command.script, str) else shlex.join(command.script)
        self._record(words, command.cwd, self.isolation.level, None)
        result = await self._shell.run(command, on_output)
        self._record(words, command.cwd, self.isolation.level, result.finished.exit_code)
        return result
