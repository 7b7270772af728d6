"""Wraps a shell so that every command is written to the audit log, before it runs and after it has ended.

Not here: running commands (`shadow/`), the file of the log (`records/audit.py`).
"""

from __future__ import annotations

from codeagent_lsp.shadow.shell import (
    Command,
    CommandResult,
    Isolation,
    OnOutput,
    RecordCommand,
    Shell,
    no_output,
)


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
        self._record(command.words, command.cwd, self.isolation.level, None)
        result = await self._shell.run(command, on_output)
        self._record(command.words, command.cwd, self.isolation.level, result.finished.exit_code)
        return result
