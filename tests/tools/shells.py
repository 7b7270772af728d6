"""A shell that runs nothing: it answers from a list and remembers what it was asked, at any isolation."""

from __future__ import annotations

from collections.abc import Iterable

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.shell import (
    Approve,
    Command,
    CommandResult,
    Finished,
    Isolation,
    OnOutput,
    Shell,
    no_output,
)
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

OVERLAY = Isolation("overlay", confined=True, offline=True, hidden=True)
OPEN_COPY = Isolation("copy", confined=False, offline=False, hidden=False, reason="no user namespaces")
DIRECT = Isolation("direct", confined=False, offline=False, hidden=False, reason="chosen")


class FakeShell:
    """The `Shell` port. `writes` are texts it stages at every command; the last result is given again and again."""

    def __init__(self, *results: Finished, isolation: Isolation = OVERLAY, staging: Staging | None = None) -> None:
        self.commands: list[Command] = []
        self.writes: dict[str, str | None] = {}
        self.left_out: tuple[tuple[str, str], ...] = ()
        self._results = list(results)
        self._isolation = isolation
        self._staging = staging

    @property
    def isolation(self) -> Isolation:
        return self._isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        self.commands.append(command)
        finished = self._results[0] if self._results else Finished(0, "")
        if len(self._results) > 1:
            self._results.pop(0)
        on_output("stdout", finished.output)
        if self.writes and self._staging is not None:
            self._staging.write(self.writes)
        return CommandResult(finished, self._isolation, tuple(self.writes), self.left_out)


class FakeEnvironments:
    """The environments of a server: one fake shell for every run, or a reason why there is none."""

    def __init__(self, results: Iterable[Finished] = (), isolation: Isolation = OVERLAY, problem: str = "") -> None:
        self.shells: list[FakeShell] = []
        self.closed: list[str | None] = []
        self.approvals: list[Approve] = []
        self.writes: dict[str, str | None] = {}
        self._results = tuple(results)
        self._isolation = isolation
        self._problem = problem

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        if self._problem:
            raise ToolFailed(self._problem)
        shell = FakeShell(*self._results, isolation=self._isolation, staging=staging)
        shell.writes = self.writes
        self.shells.append(shell)
        self.approvals.append(approve)
        return shell

    async def close(self, session_id: str | None = None) -> None:
        self.closed.append(session_id)
