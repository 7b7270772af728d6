"""Own tools over a workbench: their folders, a user who answers, and real workers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from codeagent_lsp.messages import ToolResult
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.listing import Pins
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.own.own_servers import OwnTools, OwnToolsPlace
from codeagent_lsp.tools.own.tool_sources import ToolSource
from codeagent_lsp.tools.skills.trust import Trust
from tests.tools.fakes import Bench

GREET = '''
from codeagent_lsp.own_tools import tool

@tool
def greet(name: str, times: int = 1) -> str:
    """Say hello."""
    return "Hello, " + ", ".join([name] * times) + "!"
'''


class OwnRig:
    """`answer` is the answer to each question of trust; `asked` has the questions, `problems` what was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer: bool | None = True
        self.refused: set[str] = set()  # names that are answered with no anyway
        self.asked: list[tuple[str, bool]] = []
        self.problems: list[McpProblem] = []
        self.seconds = 20.0
        self.environ = dict(os.environ)
        self.bench = Bench(folder / "work")
        outputs = OutputStore(folder / "outputs")
        self.bench.context = self.bench.context.having((OutputStore, outputs))
        self.bench.context = replace(self.bench.context, note=lambda words: None)
        self.bench.executor = type(self.bench.executor)(
            self.bench.registry, self.bench.context, lambda: self.bench.mode, self.bench.approvals
        )
        self.own = self.new()

    def new(self) -> OwnTools:
        """Return own tools as another server would make them: with the same files."""
        place = OwnToolsPlace(self.folder / "user", lambda: [str(self.bench.root)], self.environ, lambda: self.seconds)
        trusted = Trust(self.folder / "trusted-tools.json"), Trust(self.folder / "trusted.json")
        return OwnTools(place, self.bench.registry, Pins(self.folder / "own.json"), *trusted, self)

    async def trusts(self, source: ToolSource, *, changed: bool) -> bool | None:
        self.asked.append((Path(source.name).name, changed))
        return False if Path(source.name).name in self.refused else self.answer

    def told(self, problem: McpProblem) -> None:
        self.problems.append(problem)

    def user_file(self, name: str, code: str) -> Path:
        return _written(self.folder / "user/tools" / name, code)

    def project_file(self, name: str, code: str) -> Path:
        return _written(self.bench.root / ".codeagent/tools" / name, code)

    async def look(self) -> None:
        """Look for tools as at the beginning of a run, and wait for what comes of it."""
        await self.own.look()
        for _ in range(3):  # questions are asked in tasks
            await asyncio.sleep(0)
        await self.own.settled()

    async def call(self, name: str, /, **arguments: object) -> ToolResult:
        self.bench.asker.answers.append("Allow once")
        return await self.bench.call(name, **arguments)

    def tools(self) -> list[str]:
        return [name for name in self.bench.registry.names() if name.startswith("own.")]


@asynccontextmanager
async def own_rig(folder: Path) -> AsyncGenerator[OwnRig, None]:
    """A rig whose workers are stopped afterwards; no task of theirs is left."""
    before = asyncio.all_tasks()
    rig = OwnRig(folder)
    try:
        yield rig
    finally:
        await rig.own.close()
    if left := asyncio.all_tasks() - before:  # the last of them end by themselves
        await asyncio.wait(left, timeout=20)
    assert not asyncio.all_tasks() - before


def _written(path: Path, code: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    return path
