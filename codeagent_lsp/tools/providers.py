"""Sources of tools other than the built-in ones, and their registration while runs go on.

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
from codeagent_lsp.tools.registry import SWITCHED_OFF, ToolRegistry

if TYPE_CHECKING:
    from codeagent_lsp.tools.tool import Tool

Tools: TypeAlias = "tuple[Tool[Any], ...]"


class ToolProvider(Protocol):
    """Port: lists tools; returns the same objects as long as nothing changed."""

    @property
    def name(self) -> str: ...

    async def tools(self) -> Tools:
        """Return the current tools. CodeAgentError or OSError if they cannot be listed."""


@dataclass(frozen=True, slots=True)
class StaticProvider:
    """A provider of a fixed tuple of tools, which are never listed anew."""

    name: str
    given: Tools

    async def tools(self) -> Tools:
        """Return the given tools at once."""
        return self.given


class CachedProvider:
    """Caches the list of a slow provider for `seconds`; concurrent callers share one request.

    While the provider fails, its last list is returned; CodeAgentError or OSError if it never returned one.
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
        """Return the provider's list, at most `seconds` old; while it fails, the last one. CodeAgentError or OSError if
        there was never one.
        """
        async with self._turn:
            if self._known is None or self._clock() >= self._until:
                await self._ask()
            return self._known or ()

    async def _ask(self) -> None:
        try:
            self._known = await self._inner.tools()
        except (CodeAgentError, OSError):
            if self._known is None:
                raise
        # After a failure, too: else every call would ask a provider that is away.
        self._until = self._clock() + self._seconds


class CompositeProvider:
    """Several providers as one, asked concurrently. A name belongs to the first provider that has it; one that fails
    does not affect the others and is recorded in `problems` by its name.
    """

    def __init__(self, name: str, parts: Sequence[ToolProvider]) -> None:
        self.name = name
        self.problems: dict[str, str] = {}
        self._parts = tuple(parts)

    async def tools(self) -> Tools:
        """Return the tools of all providers, the first of each name, without those of a provider that fails, which
        `problems` has.
        """
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
    """The names changed by a refresh; `refused` are names that another tool in the registry has already."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Plug:
    """Keeps one registry in step with one provider. Runs see a change at their next model call; running calls go on.
    `disabled` returns the names of tools that the settings switch off.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        provider: ToolProvider,
        disabled: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._registry = registry
        self._provider = provider
        self._disabled = disabled
        self._mine: dict[str, Tool[Any]] = {}
        self._turn = asyncio.Lock()

    async def refresh(self) -> Plugged:
        """Ask the provider, update the registry and return the changes; concurrent calls take turns. CodeAgentError or
        OSError, with no change, if the provider fails.
        """
        async with self._turn:
            wanted = {tool.traits.name: tool for tool in await self._provider.tools()}
            # Before adding: a tool that has changed keeps its name, which is free only then.
            removed = self._remove([name for name, tool in self._mine.items() if wanted.get(name) is not tool])
            added, refused, disabled = [], [], self._disabled()
            for name, tool in wanted.items():
                if name in self._mine:
                    continue
                if name in self._registry.names():
                    refused.append(name)
                    continue
                self._registry.register(tool)
                if name in disabled:
                    self._registry.disable(name, SWITCHED_OFF)
                self._mine[name] = tool
                added.append(name)
            return Plugged(tuple(added), tuple(removed), tuple(refused))

    def unplug(self) -> tuple[str, ...]:
        """Remove all of the provider's tools from the registry and return their names, () for none. Running calls go
        on.
        """
        return tuple(self._remove(list(self._mine)))

    def _remove(self, names: list[str]) -> list[str]:
        gone = [name for name in names if name in self._registry.names()]
        for name in names:
            del self._mine[name]
        for name in gone:
            self._registry.unregister(name)
        return gone
