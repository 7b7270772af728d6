"""Reports to the model and the user of one run which tools became unavailable, came back, or are new.

It compares the registry with its last reported state. Not here: why a tool is suspended (`tools/circuit_breaker.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from codeagent_lsp import events
from codeagent_lsp.tools.registry import RegisteredTool, ToolRegistry
from codeagent_lsp.workspace.text.visible import one_line

REASON = 300


class Availability:
    """Compares the registry with its last reported state; made when a run begins. `emit` receives the events."""

    def __init__(self, registry: ToolRegistry, emit: Callable[[events.Event], None]) -> None:
        self._registry = registry
        self._emit = emit
        self._off = _off(registry)
        self._groups = _groups(registry)

    def opening(self) -> str:
        """Return a note on the tools that the circuit breaker suspends as the run begins; '' for none. Tools that the
        user switched off are not offered anyway.
        """
        resting = {item.name for item in self._registry.circuits.resting()}
        return "\n".join(self._rests(name, reason) for name, reason in self._off.items() if name in resting)

    def news(self) -> str:
        """Return a note for the model on the changes since the last call, '' for none; emit them for the user."""
        off, groups = _off(self._registry), _groups(self._registry)
        names = self._registry.names()
        lines = []
        for name, reason in off.items():
            if name not in self._off:
                self._emit(events.ToolDisabled(tool=name, reason=reason))
                lines.append(self._rests(name, reason))
        for name in self._off:
            if name not in off and (name in names or name in groups):
                self._emit(events.ToolEnabled(tool=name))
                lines.append(f"The tool {name} can be used again.")
        new = sorted(groups - self._groups)
        if new:
            lines.append(f"New groups of tools: {', '.join(new)}.")
        self._off, self._groups = off, groups
        return "\n".join(lines)

    def _rests(self, name: str, reason: str) -> str:
        left = next((item.seconds for item in self._registry.circuits.resting() if item.name == name), None)
        if left is None:
            return f"The tool {name} cannot be used now: {reason or 'switched off'}. Go another way."
        when = f"in {left:.0f} s" if left > 0 else "now"
        return f"The tool {name} rests: it {reason}. It can be tried again {when}. Until then go another way."


def _off(registry: ToolRegistry) -> dict[str, str]:
    """Return the reasons by the names of unavailable tools; a group that is missing as a whole is one name."""
    off = {
        entry.tool.traits.name: _reason(entry) for entry in registry.entries() if entry.state in ("disabled", "error")
    }
    return {**off, **{name: one_line(str(reason), REASON) for name, reason in registry.missing.items()}}


def _reason(entry: RegisteredTool) -> str:
    return one_line(entry.reason, REASON)


def _groups(registry: ToolRegistry) -> set[str]:
    return {entry.tool.traits.group for entry in registry.entries() if entry.state != "registered"}
