"""Which tools exist, which are on, and how they have done so far. One registry per server.

Not here: running a call (`executor.py`) or who may make it (`permissions/policy.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from codeagent_lsp.errors import CodeAgentError, ErrorCode, ToolFailed
from codeagent_lsp.messages import ToolSpec
from codeagent_lsp.tools.circuit_breaker import CircuitBreaker

if TYPE_CHECKING:  # what an idle server has no use for
    from codeagent_lsp.config import Settings
    from codeagent_lsp.tools.tool import Tool
    from codeagent_lsp.tools.traits import Effect

ToolState = Literal["registered", "active", "disabled", "error"]


@dataclass(frozen=True, slots=True)
class ToolStats:
    """Numbers of one tool; times in milliseconds."""

    calls: int = 0
    errors: int = 0
    total_ms: float = 0.0

    @property
    def mean_ms(self) -> float:
        """Mean time of a call."""
        return self.total_ms / self.calls if self.calls else 0.0

    def counted(self, *, ok: bool, milliseconds: float) -> ToolStats:
        """These numbers and one more call."""
        return ToolStats(self.calls + 1, self.errors + (not ok), self.total_ms + milliseconds)


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool with its state."""

    tool: Tool[Any]
    state: ToolState = "active"
    reason: str = ""
    stats: ToolStats = ToolStats()


class ToolRegistry:
    """Tools by name, in registration order. Changes take effect at the next model call.

    A tool is `registered` while it is known and waits to be enabled, `active` when it can be called, `disabled` when
    somebody switched it off, `error` when it cannot work or its circuit is not closed. Of the last kind, one that
    rests is still offered: it may come back, and a list of tools that changes costs a prompt cache. `missing` says by
    name why something is not here at all that should be, such as all tools of a server that does not start. The `tools`
    it begins with are fetched when it is first asked for any.
    """

    def __init__(
        self,
        tools: Iterable[Tool[Any]] = (),
        disabled: Iterable[str] = (),
        circuits: CircuitBreaker | None = None,
    ) -> None:
        self.circuits = circuits or CircuitBreaker()
        self.missing: dict[str, CodeAgentError] = {}
        self._first = tools
        self._disabled = tuple(disabled)

    @cached_property
    def _entries(self) -> dict[str, RegisteredTool]:
        entries: dict[str, RegisteredTool] = {}
        for tool in self._first:
            _add(entries, RegisteredTool(tool))
        for name in self._disabled:
            if name in entries:
                entries[name] = replace(entries[name], state="disabled", reason="switched off in the settings")
        return entries

    def register(self, tool: Tool[Any], state: ToolState = "active") -> None:
        """Add a tool; a name that is taken is refused, so that no tool shadows another."""
        _add(self._entries, RegisteredTool(tool, state))

    def unregister(self, name: str) -> None:
        """Take a tool away; calls that run go on."""
        self._entries.pop(self._known(name).tool.traits.name)
        self.circuits.close(name)

    def enable(self, name: str) -> None:
        """Switch a tool on, also one that rests after failures."""
        self._entries[name] = replace(self._known(name), state="active", reason="")
        self.circuits.close(name)

    def disable(self, name: str, reason: str = "") -> None:
        """Switch a tool off; the model is told why."""
        self._entries[name] = replace(self._known(name), state="disabled", reason=reason)

    def mark_error(self, name: str, reason: str) -> None:
        """Note that a tool cannot work; it is not offered until it is enabled again."""
        self._entries[name] = replace(self._known(name), state="error", reason=reason)

    def miss(self, name: str, reason: CodeAgentError) -> None:
        """Note that something is not here that should be; whoever calls `name.anything` is told why."""
        self.missing[name] = reason

    def found(self, name: str) -> None:
        """It is here, or nobody wants it any more."""
        self.missing.pop(name, None)

    def get(self, name: str) -> Tool[Any]:
        """The tool, or ToolFailed that says what there is."""
        entry = self._entries.get(name)
        if entry is None:
            cause = next((reason for prefix, reason in self.missing.items() if name.startswith(f"{prefix}.")), None)
            if cause is not None:
                raise ToolFailed(str(cause), cause.code)
            active = ", ".join(self.names("active"))
            raise ToolFailed(f"There is no tool {name!r}. Tools: {active}.", ErrorCode.NOT_FOUND)
        if entry.state != "active":
            why = f": {entry.reason}" if entry.reason else ""
            raise ToolFailed(f"The tool {name!r} is {entry.state}{why}.", ErrorCode.TOOL_DISABLED)
        return entry.tool

    def entries(self) -> tuple[RegisteredTool, ...]:
        """All tools with their states."""
        resting = {item.name: item.reason for item in self.circuits.resting()}
        return tuple(
            replace(entry, state="error", reason=resting[name])
            if entry.state == "active" and name in resting
            else entry
            for name, entry in self._entries.items()
        )

    def names(self, state: ToolState | None = None, group: str | None = None) -> tuple[str, ...]:
        """Names by state and by group; None means any."""
        return tuple(
            entry.tool.traits.name
            for entry in self.entries()
            if (state is None or entry.state == state) and (group is None or entry.tool.traits.group == group)
        )

    def specs(self, effects: Iterable[Effect], groups: Iterable[str]) -> tuple[ToolSpec, ...]:
        """What a model is offered: active tools of these effects and groups, in registration order."""
        wanted, members = frozenset(effects), frozenset(groups)
        return tuple(
            entry.tool.spec()
            for entry in self._entries.values()
            if entry.state == "active" and entry.tool.traits.effect in wanted and entry.tool.traits.group in members
        )

    def count(self, name: str, *, ok: bool, milliseconds: float) -> None:
        """Add one call to a tool's numbers."""
        entry = self._known(name)
        self._entries[name] = replace(entry, stats=entry.stats.counted(ok=ok, milliseconds=milliseconds))

    def _known(self, name: str) -> RegisteredTool:
        if name not in self._entries:
            raise ToolFailed(f"There is no tool {name!r}.", ErrorCode.NOT_FOUND)
        return self._entries[name]


def _add(entries: dict[str, RegisteredTool], entry: RegisteredTool) -> None:
    name = entry.tool.traits.name
    if name in entries:
        raise ValueError(f"a tool named {name!r} is registered already")
    entries[name] = entry


def builtin_registry(settings: Callable[[], Settings]) -> ToolRegistry:
    """Return a registry of the built-in tools, which are loaded when it is first asked. It follows the settings."""
    circuits = CircuitBreaker(lambda: settings().circuit_breaker)
    return ToolRegistry(_builtin(), settings().tools.disabled, circuits)


def _builtin() -> Iterator[Tool[Any]]:
    from codeagent_lsp.tools.catalogue import BUILTIN  # late: they are heavy, and an idle server does without them

    for tool in BUILTIN:
        yield tool()
