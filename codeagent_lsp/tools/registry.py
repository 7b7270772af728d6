"""The registry of tools: which exist, their states and call counts, and a circuit breaker (closed, open, half-open) for
each. One registry per server; the clock is a parameter.

A circuit is closed until `failureThreshold` failures in a row, open for `recoveryTimeoutSeconds`, then half-open: one
trial call is admitted, and its outcome closes or reopens the circuit. Refused edits, denials and cancelled calls
neither count nor reset the counter; calls whose arguments do not fit count. Not here: running a call, and which result
is a failure (`executor.py`), who may make it (`permissions/policy.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from codeagent_lsp.call_forms import meant, resolve_call, unwrap_call
from codeagent_lsp.config import CircuitBreakerSettings
from codeagent_lsp.errors import CircuitOpen, CodeAgentError, ErrorCode, ToolFailed
from codeagent_lsp.messages import ToolSpec

if TYPE_CHECKING:  # what an idle server has no use for
    from codeagent_lsp.config import Settings
    from codeagent_lsp.tools.tool import Tool
    from codeagent_lsp.tools.traits import Effect, ToolTraits

ToolState = Literal["registered", "active", "disabled", "error"]
CallOutcome = Literal["success", "failure", "neither"]
CircuitState = Literal["closed", "open", "half_open"]
_LONGEST_NAME = 100  # characters of a name that a model invented, in what it is told
SWITCHED_OFF = "switched off in the settings"
"""Why a tool is off that the user has switched off, as the model is told."""


@dataclass(frozen=True, slots=True)
class ToolStats:
    """Call counts of one tool since the server started; times in milliseconds."""

    calls: int = 0
    errors: int = 0
    total_ms: float = 0.0

    @property
    def mean_ms(self) -> float:
        """The mean time of a call in milliseconds; 0.0 without calls."""
        return self.total_ms / self.calls if self.calls else 0.0

    def counted(self, *, ok: bool, milliseconds: float) -> ToolStats:
        """Return these counts with one more call added, of so many milliseconds, an error unless `ok`."""
        return ToolStats(self.calls + 1, self.errors + (not ok), self.total_ms + milliseconds)


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool in the registry with its state, the reason for that state, and its call counts."""

    tool: Tool[Any]
    state: ToolState = "active"
    reason: str = ""
    stats: ToolStats = ToolStats()


class ToolRegistry:
    """Tools by name, in registration order. Changes take effect at the next model call. For one event loop, not
    thread-safe.

    A tool is `registered` while it waits to be enabled, `active` when it can be called, `disabled` when it was switched
    off, `error` when it cannot work or its circuit is not closed. A tool with an open circuit is still offered: it may
    recover, and a changed list of tools invalidates the prompt cache. `missing` maps names, such as that of an MCP
    server that does not start, to the error why they are absent. The initial `tools` are iterated at the first access.
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
        # Names in the settings may be those of other agents' tools, or of tools that come later; the unknown ones are
        # ignored.
        for other in self._disabled:
            name = own_name(other, entries.values())
            if name in entries:
                entries[name] = replace(entries[name], state="disabled", reason=SWITCHED_OFF)
        return entries

    def register(self, tool: Tool[Any], state: ToolState = "active") -> None:
        """Add a tool. ValueError if the name is taken, so that no tool shadows another."""
        _add(self._entries, RegisteredTool(tool, state))

    def unregister(self, name: str) -> None:
        """Remove a tool; its running calls go on. ToolFailed if it is unknown."""
        self._entries.pop(self._known_entry(name).tool.traits.name)
        # Another tool of this name begins anew.
        self.circuits.close(name)

    def enable(self, name: str) -> None:
        """Enable a tool and close its circuit. ToolFailed if it is unknown."""
        entry = self._known_entry(name)
        _put(self._entries, replace(entry, state="active", reason=""))
        self.circuits.close(entry.tool.traits.name)

    def disable(self, name: str, reason: str = "") -> None:
        """Disable a tool; the model gets the reason, an English clause, when it calls it. ToolFailed if it is
        unknown.
        """
        _put(self._entries, replace(self._known_entry(name), state="disabled", reason=reason))

    def miss(self, name: str, reason: CodeAgentError) -> None:
        """Record why something is absent, such as an MCP server; a call of `name.anything` fails with this error. It
        replaces an earlier one of the name.
        """
        self.missing[name] = reason

    def found(self, name: str) -> None:
        """Remove the record of an absence made with `miss`, if there is one."""
        self.missing.pop(name, None)

    def get(self, name: str) -> Tool[Any]:
        """Return an active tool, by its name or another one that it is known by. ToolFailed with the reason if it is
        unknown, absent or not active.
        """
        entry = self._entries.get(self._own(name))
        if entry is None:
            # Why the server is not there says more than that its tool is not.
            cause = next((reason for prefix, reason in self.missing.items() if name.startswith(f"{prefix}.")), None)
            if cause is not None:
                raise ToolFailed(str(cause), cause.code)
            active = ", ".join(self.names("active"))
            shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
            raise ToolFailed(f"There is no tool {shown!r}. Tools: {active}.", ErrorCode.NOT_FOUND)
        if entry.state != "active":
            why = f": {entry.reason}" if entry.reason else ""
            raise ToolFailed(f"The tool {name!r} is {entry.state}{why}.", ErrorCode.TOOL_DISABLED)
        return entry.tool

    def entries(self) -> tuple[RegisteredTool, ...]:
        """Return all tools with their states; an active tool whose circuit is not closed is shown as `error`."""
        resting = {item.name: item.reason for item in self.circuits.resting()}
        return tuple(
            replace(entry, state="error", reason=resting[name])
            if entry.state == "active" and name in resting
            else entry
            for name, entry in self._entries.items()
        )

    def traits(self, name: str) -> ToolTraits | None:
        """Return the traits of a tool, in whatever state it is; None if there is none of this name."""
        entry = self._entries.get(name)
        return None if entry is None else entry.tool.traits

    def names(self, state: ToolState | None = None, group: str | None = None) -> tuple[str, ...]:
        """Return the names of the tools with this state and group, in registration order; None means any. One whose
        circuit is not closed has the state `error`.
        """
        return tuple(
            entry.tool.traits.name
            for entry in self.entries()
            if (state is None or entry.state == state) and (group is None or entry.tool.traits.group == group)
        )

    def specs(self, effects: Iterable[Effect], groups: Iterable[str]) -> tuple[ToolSpec, ...]:
        """Return the specifications of the active tools with these effects and groups, in registration order; tools
        with an open circuit are among them.
        """
        wanted, members = frozenset(effects), frozenset(groups)
        return tuple(
            entry.tool.spec()
            for entry in self._entries.values()
            if entry.state == "active" and entry.tool.traits.effect in wanted and entry.tool.traits.group in members
        )

    def count(self, name: str, *, ok: bool, milliseconds: float) -> None:
        """Add one call, which succeeded (`ok`) or not and took so many milliseconds, to a tool's counts. ToolFailed if
        it is unknown.
        """
        entry = self._known_entry(name)
        _put(self._entries, replace(entry, stats=entry.stats.counted(ok=ok, milliseconds=milliseconds)))

    def _known_entry(self, name: str) -> RegisteredTool:
        own = self._own(name)
        if own not in self._entries:
            raise ToolFailed(f"There is no tool {name!r}.", ErrorCode.NOT_FOUND)
        return self._entries[own]

    def _own(self, name: str) -> str:
        return name if name in self._entries else own_name(name, self._entries.values())


def own_name(name: str, entries: Iterable[RegisteredTool]) -> str:
    """Return the name of our tool that `name` means: itself, or the tool of which it is another name; an unknown one as
    it is.
    """
    forms = {entry.tool.traits.name: entry.tool.forms for entry in entries}
    return name if name in forms else meant(name, forms.items()) or name


def own_call(
    name: str, arguments: Mapping[str, Any] | None, entries: Iterable[RegisteredTool]
) -> tuple[str, Mapping[str, Any], str]:
    """Return (name, arguments, problem): those of the call of one of our tools that is meant, and why the arguments
    cannot be understood, as a sentence for the model, '' if they can; a call of no known tool is returned as it is.
    """
    own = resolve_call(name, arguments, {entry.tool.traits.name: entry.tool.forms for entry in entries})
    if own is not None:
        return own.tool, own.arguments or {}, own.problem
    name, arguments = unwrap_call(name, arguments)
    return name, arguments or {}, ""


def _put(entries: dict[str, RegisteredTool], entry: RegisteredTool) -> None:
    """Replace what is known of a tool."""
    entries[entry.tool.traits.name] = entry


def _add(entries: dict[str, RegisteredTool], entry: RegisteredTool) -> None:
    name = entry.tool.traits.name
    if name in entries:
        raise ValueError(f"a tool named {name!r} is registered already")
    entries[name] = entry


def builtin_registry(settings: Callable[[], Settings]) -> ToolRegistry:
    """Return a registry of the built-in tools, which are imported at the first access. `settings` is read at every
    call, but the tools that are switched off only now.
    """
    circuits = CircuitBreaker(lambda: settings().circuit_breaker)
    return ToolRegistry(_builtin(), settings().tools.disabled, circuits)


def _builtin() -> Iterator[Tool[Any]]:
    from codeagent_lsp.tools.catalogue import BUILTIN  # late: they are heavy, and an idle server does without them

    for tool in BUILTIN:
        yield tool()


@dataclass(frozen=True, slots=True)
class Resting:
    """A tool whose circuit is not closed, after `failures` in a row; `error` is the last of them. `seconds` remain
    until a trial call is admitted, 0 if it is admitted now.
    """

    name: str
    failures: int
    error: str
    seconds: float

    @property
    def reason(self) -> str:
        """The reason for the open circuit, as an English phrase for model and user."""
        return _reason(self.failures, self.error)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An admitted call. Its outcome counts only if the circuit is still in the `epoch` in which the call began, so that
    calls admitted before a state change do not affect the new state.
    """

    name: str
    epoch: int


@dataclass(frozen=True, slots=True)
class _Circuit:
    epoch: int = 0
    failures: int = 0
    error: str = ""
    opened: float | None = None
    trial: bool = False


class CircuitBreaker:
    """The circuits of all tools of one registry. `limits` is read at every call; `clock` returns monotonic seconds."""

    def __init__(
        self,
        limits: Callable[[], CircuitBreakerSettings] = CircuitBreakerSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._circuits: dict[str, _Circuit] = {}

    def state(self, name: str) -> CircuitState:
        """Return the state of a tool's circuit: `closed` (also for an unknown name), `open`, or `half_open` once the
        recovery time is over.
        """
        circuit = self._circuits.get(name, _Circuit())
        if circuit.opened is None:
            return "closed"
        return "open" if self._seconds_left(circuit) > 0 else "half_open"

    def resting(self) -> tuple[Resting, ...]:
        """Return every tool whose circuit is open or half-open, with its failures and the seconds until it is tried
        again; () for none.
        """
        return tuple(
            Resting(name, circuit.failures, circuit.error, self._seconds_left(circuit))
            for name, circuit in self._circuits.items()
            if circuit.opened is not None
        )

    def admit(self, name: str) -> Attempt:
        """Admit a call and return its attempt, which the caller must `settle`. CircuitOpen, with a sentence for the
        model, while the circuit is open, or half-open with a trial call running.
        """
        circuit = self._circuits.get(name, _Circuit())
        if circuit.opened is not None:
            left = self._seconds_left(circuit)
            # One trial at a time: many at once would load a server that is just coming up.
            if left > 0 or circuit.trial:
                raise CircuitOpen(_refusal(name, circuit, left))
            self._circuits[name] = replace(circuit, trial=True)
        return Attempt(name, circuit.epoch)

    def settle(self, attempt: Attempt, outcome: CallOutcome, error: str = "") -> None:
        """Record the outcome of an attempt: `success`, `failure`, or `neither` for one that says nothing of the tool,
        such as a denied call; `error` is the failure's message. An outcome of an earlier epoch is ignored.
        """
        circuit = self._circuits.get(attempt.name, _Circuit())
        if attempt.epoch != circuit.epoch:
            return
        if outcome == "success":
            self._on_success(attempt.name, circuit)
        elif outcome == "failure":
            self._on_failure(attempt.name, circuit, error)
        # A trial that was denied or cancelled says nothing of the tool: the next call may be the trial.
        elif circuit.trial:
            self._circuits[attempt.name] = replace(circuit, trial=False)

    def close(self, name: str) -> None:
        """Close the circuit of a tool and forget its failures; attempts that are running no longer count."""
        if name in self._circuits:
            self._circuits[name] = _Circuit(self._circuits[name].epoch + 1)

    def close_all(self) -> None:
        """Close all circuits and forget their failures, as when a new session begins."""
        for name in list(self._circuits):
            self.close(name)

    def _on_success(self, name: str, circuit: _Circuit) -> None:
        if circuit.opened is not None:
            self.close(name)
        elif circuit.failures:
            self._circuits[name] = replace(circuit, failures=0, error="")

    def _on_failure(self, name: str, circuit: _Circuit, error: str) -> None:
        failed = replace(circuit, failures=circuit.failures + 1, error=error)
        # A failed trial opens it again at once, whatever the limit is.
        if circuit.opened is not None or failed.failures >= self._limits().failure_threshold:
            failed = replace(failed, epoch=circuit.epoch + 1, opened=self._clock(), trial=False)
        self._circuits[name] = failed

    def _seconds_left(self, circuit: _Circuit) -> float:
        if circuit.opened is None:
            return 0.0
        return max(0.0, circuit.opened + self._limits().recovery_timeout_seconds - self._clock())


def _refusal(name: str, circuit: _Circuit, left: float) -> str:
    when = f"It can be tried again in {left:.0f} s." if left > 0 else "Another call tries it right now."
    return f"{name} rests: it {_reason(circuit.failures, circuit.error)}. {when} Go another way."


def _reason(failures: int, error: str) -> str:
    times = "once" if failures == 1 else f"{failures} times in a row"
    return f"failed {times}, last: {error.rstrip('.')}"
