"""A circuit breaker (closed, open, half-open) for each tool; the clock is a parameter.

A circuit is closed until `failureThreshold` failures in a row, open for `recoveryTimeoutSeconds`, then half-open: one
trial call is admitted, and its outcome closes or reopens the circuit. Refused edits, denials and cancelled calls
neither count nor reset the counter; calls whose arguments do not fit count. Not here: which result is a failure
(`executor.py`), who is notified (`session/conversation/conversation.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from codeagent_lsp.config import CircuitBreakerSettings
from codeagent_lsp.errors import CircuitOpen

CallOutcome = Literal["success", "failure", "neither"]
CircuitState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Resting:
    """A tool whose circuit is not closed. `seconds` remain until a trial call is admitted, 0 if it is admitted now."""

    name: str
    failures: int
    error: str
    seconds: float

    @property
    def reason(self) -> str:
        """Return the reason for the open circuit, as an English phrase for model and user."""
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
        """Return the state of a tool's circuit: closed, open or half-open."""
        circuit = self._circuits.get(name, _Circuit())
        if circuit.opened is None:
            return "closed"
        return "open" if self._left(circuit) > 0 else "half_open"

    def resting(self) -> tuple[Resting, ...]:
        """Return every tool whose circuit is not closed."""
        return tuple(
            Resting(name, circuit.failures, circuit.error, self._left(circuit))
            for name, circuit in self._circuits.items()
            if circuit.opened is not None
        )

    def admit(self, name: str) -> Attempt:
        """Admit a call and return its attempt, which the caller must `settle`. CircuitOpen if the circuit does not
        admit it.
        """
        circuit = self._circuits.get(name, _Circuit())
        if circuit.opened is not None:
            left = self._left(circuit)
            if left > 0 or circuit.trial:
                raise CircuitOpen(_refusal(name, circuit, left))
            self._circuits[name] = replace(circuit, trial=True)
        return Attempt(name, circuit.epoch)

    def settle(self, attempt: Attempt, outcome: CallOutcome, error: str = "") -> None:
        """Record the outcome of an attempt; `error` is the failure's message. An outcome of an earlier epoch is
        ignored.
        """
        circuit = self._circuits.get(attempt.name, _Circuit())
        if attempt.epoch != circuit.epoch:
            return
        if outcome == "success":
            self._succeeded(attempt.name, circuit)
        elif outcome == "failure":
            self._failed(attempt.name, circuit, error)
        # A trial that was denied or cancelled says nothing of the tool: the next call may be the trial.
        elif circuit.trial:
            self._circuits[attempt.name] = replace(circuit, trial=False)

    def close(self, name: str) -> None:
        """Close the circuit of a tool and forget its failures."""
        if name in self._circuits:
            self._circuits[name] = _Circuit(self._circuits[name].epoch + 1)

    def close_all(self) -> None:
        """Close all circuits: a new session begins."""
        for name in list(self._circuits):
            self.close(name)

    def _succeeded(self, name: str, circuit: _Circuit) -> None:
        if circuit.opened is not None:
            self.close(name)
        elif circuit.failures:
            self._circuits[name] = replace(circuit, failures=0, error="")

    def _failed(self, name: str, circuit: _Circuit, error: str) -> None:
        failed = replace(circuit, failures=circuit.failures + 1, error=error)
        # A failed trial opens it again at once, whatever the limit is.
        if circuit.opened is not None or failed.failures >= self._limits().failure_threshold:
            failed = replace(failed, epoch=circuit.epoch + 1, opened=self._clock(), trial=False)
        self._circuits[name] = failed

    def _left(self, circuit: _Circuit) -> float:
        if circuit.opened is None:
            return 0.0
        return max(0.0, circuit.opened + self._limits().recovery_timeout_seconds - self._clock())


def _refusal(name: str, circuit: _Circuit, left: float) -> str:
    when = f"It can be tried again in {left:.0f} s." if left > 0 else "Another call tries it right now."
    return f"{name} rests: it {_reason(circuit.failures, circuit.error)}. {when} Go another way."


def _reason(failures: int, error: str) -> str:
    times = "once" if failures == 1 else f"{failures} times in a row"
    return f"failed {times}, last: {error.rstrip('.')}"
