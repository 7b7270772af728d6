"""Where tools come from besides those that are built in, and how they join a registry while runs go on.

A provider lists tools; a `Plug` keeps a registry in step with it. Not here: the tools of MCP servers (a provider of
their own), who may call a tool (`permissions/policy.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.tools.registry import ToolRegistry, ToolState

if TYPE_CHECKING:
    from codeagent_lsp.tools.tool import Tool

Tools: TypeAlias = "tuple[Tool[Any], ...]"


class ToolProvider(Protocol):
    """Lists tools; the same objects as long as nothing changed."""

    @property
    def name(self) -> str: ...

    async def tools(self) -> Tools:
        """What there is now. CodeAgentError or OSError when it cannot be found out."""


@dataclass(frozen=True, slots=True)
class StaticProvider:
    """Tools that never change."""

    name: str
    given: Tools

    async def tools(self) -> Tools:
        """The tools it was made with."""
        return self.given


class CachedProvider:
    """Asks another provider, a slow one, at most once in `seconds`, and once for all who ask at the same time.

    While the other one fails, what it said last counts; CodeAgentError or OSError when it never said anything.
    """

    def __init__(
        self, inner: ToolProvider, seconds: float = 300.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._seconds = seconds
        self._clock = clock
        self._known: Tools | None = None
        self._until = 0.0
        self._turn = asyncio.Lock()

    async def tools(self) -> Tools:
        """What the other provider said, not older than `seconds`."""
        async with self._turn:
            if self._known is None or self._clock() >= self._until:
                await self._ask()
            return self._known or ()

    def invalidate(self) -> None:
        """Ask again next time."""
        self._until = 0.0

    async def _ask(self) -> None:
        try:
            self._known = await self._inner.tools()
        except (CodeAgentError, OSError):
            if self._known is None:
                raise
        self._until = self._clock() + self._seconds


class CompositeProvider:
    """Several providers as one, asked side by side. A name belongs to the first that has it; one that fails takes
    nothing away from the others, and is named in `problems`.
    """

    def __init__(self, name: str, parts: Sequence[ToolProvider]) -> None:
        self.name = name
        self.problems: dict[str, str] = {}
        self._parts = tuple(parts)

    async def tools(self) -> Tools:
        """The tools of all parts."""
        self.problems = {}
        found: dict[str, Tool[Any]] = {}
        for tools in await asyncio.gather(*map(self._of, self._parts)):
            for tool in tools:
                found.setdefault(tool.traits.name, tool)
        return tuple(found.values())

    async def _of(self, part: ToolProvider) -> Tools:
        try:
            return await part.tools()
        except (CodeAgentError, OSError) as error:
            self.problems[part.name] = str(error)
            return ()


@dataclass(frozen=True, slots=True)
class Plugged:
    """What a refresh did, by names; `refused` are names that somebody else has."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Plug:
    """One provider in one registry. Runs see a change at their next model call; a call at work goes on."""

    def __init__(self, registry: ToolRegistry, provider: ToolProvider, state: ToolState = "active") -> None:
        self._registry = registry
        self._provider = provider
        self._state: ToolState = state
        self._mine: dict[str, Tool[Any]] = {}
        self._turn = asyncio.Lock()

    async def refresh(self) -> Plugged:
        """Bring the registry in step. CodeAgentError or OSError, with nothing changed, when the provider fails."""
        async with self._turn:
            wanted = {tool.traits.name: tool for tool in await self._provider.tools()}
            removed = self._remove([name for name, tool in self._mine.items() if wanted.get(name) is not tool])
            added, refused = [], []
            for name, tool in wanted.items():
                if name in self._mine:
                    continue
                if name in self._registry.names():
                    refused.append(name)
                    continue
                self._registry.register(tool, self._state)
                self._mine[name] = tool
                added.append(name)
            return Plugged(tuple(added), tuple(removed), tuple(refused))

    def unplug(self) -> tuple[str, ...]:
        """Take all of its tools away."""
        return tuple(self._remove(list(self._mine)))

    def _remove(self, names: list[str]) -> list[str]:
        gone = [name for name in names if name in self._registry.names()]
        for name in names:
            del self._mine[name]
        for name in gone:
            self._registry.unregister(name)
        return gone
