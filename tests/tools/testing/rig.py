"""A shell that runs commands in a copy of what the run sees, and a bench whose tools use it.

Not the shadow workspace: it keeps nothing out and collects nothing. It is enough to run real test frameworks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.shadow.process import run_process
from codeagent_lsp.shadow.shell import (
    REPORT_VARIABLE,
    Command,
    CommandResult,
    Finished,
    Isolation,
    Launch,
    OnOutput,
    ProcessLimits,
    no_output,
)
from codeagent_lsp.tools.testing.projects import ECOSYSTEMS
from codeagent_lsp.tools.tool import Tool, ToolOutput
from codeagent_lsp.workspace.files.file_view import FileView
from tests.tools.fakes import Bench

FRAMEWORKS = {each.name: each for ecosystem in ECOSYSTEMS for each in ecosystem.frameworks}

SHADOW = Isolation("copy", confined=True, offline=True, hidden=True)


@dataclass
class CopyShell:
    """Copies the workspace aside, writes what is unsaved or staged over it, and runs there for at most `seconds`."""

    root: Path
    view: FileView
    path: str = os.environ["PATH"]
    seconds: float = 120
    isolation: Isolation = SHADOW
    environment: dict[str, str] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        self.commands.append(command)
        with tempfile.TemporaryDirectory() as aside:
            self._prepare(aside)
            finished = await self._finish(command, Path(aside, "copy"), Path(aside, "reports"), on_output)
        return CommandResult(finished, self.isolation)

    def _prepare(self, aside: str) -> None:
        Path(aside, "reports").mkdir()
        copy, modules = Path(aside, "copy"), self.root / "node_modules"
        shutil.copytree(self.root, copy, symlinks=True, ignore=shutil.ignore_patterns(modules.name))
        if modules.exists():  # large, and only read
            (copy / modules.name).symlink_to(modules)
        self._write_over(Path(aside, "copy"))

    def _write_over(self, copy: Path) -> None:
        for path in self.view.over_disk():
            there = copy / Path(path).relative_to(self.root)
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                there.write_text(self.view.read(path).text)
            except FileRefused:
                there.unlink(missing_ok=True)

    async def _finish(self, command: Command, copy: Path, reports: Path, on_output: OnOutput) -> Finished:
        words = ("bash", "-c", command.script) if isinstance(command.script, str) else command.script
        home = os.environ.get("HOME", "/")
        cwd = copy / Path(command.cwd).relative_to(self.root)
        environment = {"PATH": self.path, "HOME": home, "LANG": "C.UTF-8", REPORT_VARIABLE: str(reports)}
        launch = Launch(words, str(cwd), {**environment, **command.environment, **self.environment}, str(reports))
        limits = ProcessLimits(seconds=self.seconds)
        return await run_process(launch, limits, on_output, spool_folder=None, stdin=command.stdin)


@dataclass
class SaidShell:
    """Answers each command with the next of the given endings, without running anything."""

    endings: list[Finished]
    isolation: Isolation = SHADOW
    commands: list[Command] = field(default_factory=list)
    staged: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        self.commands.append(command)
        return CommandResult(self.endings.pop(0), self.isolation, self.staged, self.left_out)


class TestBench:
    """A workspace with one tool in it that can run commands."""

    __test__ = False

    def __init__(self, root: Path, tool: Tool[Any]) -> None:
        self.bench = Bench(root, ())
        self.root = self.bench.root
        self.tool = tool
        self.shell: CopyShell | SaidShell | None = CopyShell(self.root, self.bench.view)
        self.printed: list[str] = []

    def put(self, name: str, text: str) -> None:
        self.bench.write(name, text)

    def environment(self, **variables: str) -> None:
        assert isinstance(self.shell, CopyShell)
        self.shell.environment.update(variables)

    def stage(self, name: str, text: str | None) -> None:
        self.bench.staging.write({self.bench.path(name): text})

    async def call(self, **arguments: Any) -> ToolOutput:
        """What the tool gives; AgentError when it cannot."""
        context = replace(self.bench.context, shell=self.shell, output=lambda _, text: self.printed.append(text))
        return await self.tool.run(self.tool.parameters.model_validate(arguments), context)


def outcomes(output: ToolOutput, index: int = 0) -> dict[str, str]:
    """Which test had which outcome."""
    return {case["id"]: case["outcome"] for case in output.data["reports"][index]["cases"]}


def case(output: ToolOutput, name: str, index: int = 0) -> dict[str, Any]:
    """The one case whose id ends so."""
    (found,) = [case for case in output.data["reports"][index]["cases"] if case["id"].endswith(name)]
    return dict(found)
