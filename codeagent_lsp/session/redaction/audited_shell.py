"""A shell whose every command is written down, before it runs and when it has ended.

Not here: running them (`shadow/`), the file they are written to (`records/audit.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output

RecordCommand = Callable[[str, str, str, int | None], None]
"""Takes the command, its folder, the level of isolation, and the exit code once there is one."""


class AuditedShell:
    """The `Shell` port around another shell."""

    def __init__(self, shell: Shell, record: RecordCommand) -> None:
        self._shell = shell
        self._record = record

    @property
    def isolation(self) -> Isolation:
        """The other shell's."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """As the other shell runs it."""
        words = command.script if isinstance(command.script, str) else shlex.join(command.script)
        self._record(words, command.cwd, self.isolation.level, None)
        result = await self._shell.run(command, on_output)
        self._record(words, command.cwd, self.isolation.level, result.finished.exit_code)
        return result
