"""A tool that fails again and again rests: the state machine, against a model of it, and in the executor."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from codeagent_lsp.config import CircuitBreakerSettings, Settings
from codeagent_lsp.errors import (
    AgentError,
    CircuitOpen,
    EditRefused,
    ErrorCode,
    FileRefused,
    PathRefused,
    PermissionDenied,
    ReplyUnreadable,
    ToolFailed,
    ToolRetry,
)
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.mcp.errors import McpRefused
from codeagent_lsp.tools.registry import Attempt, CallOutcome, CircuitBreaker, ToolRegistry
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from tests.tools.fakes import Bench

LIMITS = CircuitBreakerSettings(3, 300)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def breaker(threshold: int = 3, recovery: int = 300) -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    return CircuitBreaker(lambda: CircuitBreakerSettings(threshold, recovery), clock), clock


def fail(circuits: CircuitBreaker, name: str = "t", times: int = 1, error: str = "broke") -> None:
    for _ in range(times):
        circuits.settle(circuits.admit(name), "failure", error)


# --- the states


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    circuits, _ = breaker()
    fail(circuits, times=2)
    assert (circuits.state("t"), circuits.resting()) == ("closed", ())
    fail(circuits, error="no disk")
    assert circuits.state("t") == "open"
    with pytest.raises(CircuitOpen, match=r"failed 3 times in a row, last: no disk\. It can be tried again in 300 s"):
        circuits.admit("t")
    assert circuits.admit("other") == Attempt("other", 0)


def test_a_success_between_failures_forgives() -> None:
    circuits, _ = breaker()
    fail(circuits, times=2)
    circuits.settle(circuits.admit("t"), "success")
    fail(circuits, times=2)
    assert circuits.state("t") == "closed"


def test_what_is_no_failure_neither_counts_nor_forgives() -> None:
    circuits, _ = breaker()
    fail(circuits, times=2)
    circuits.settle(circuits.admit("t"), "neither")
    assert circuits.state("t") == "closed"
    fail(circuits)
    assert circuits.state("t") == "open"


def test_after_the_rest_one_trial_decides() -> None:
    circuits, clock = breaker()
    fail(circuits, times=3)
    clock.now += 299.9
    assert circuits.state("t") == "open"
    clock.now += 0.1
    assert circuits.state("t") == "half_open"
    trial = circuits.admit("t")
    with pytest.raises(CircuitOpen, match="Another call tries it right now"):
        circuits.admit("t")
    circuits.settle(trial, "success")
    assert (circuits.state("t"), circuits.resting()) == ("closed", ())
    fail(circuits, times=2)
    assert circuits.state("t") == "closed"


def test_a_trial_that_fails_opens_it_again_at_once() -> None:
    circuits, clock = breaker()
    fail(circuits, times=3)
    clock.now += 300
    fail(circuits, error="still broken")
    (resting,) = circuits.resting()
    assert (circuits.state("t"), resting.failures, resting.seconds) == ("open", 4, 300)
    assert resting.reason == "failed 4 times in a row, last: still broken"


def test_a_trial_that_says_nothing_lets_another_one_try() -> None:
    circuits, clock = breaker()
    fail(circuits, times=3)
    clock.now += 300
    circuits.settle(circuits.admit("t"), "neither")
    assert circuits.state("t") == "half_open"
    circuits.settle(circuits.admit("t"), "success")
    assert circuits.state("t") == "closed"


@pytest.mark.parametrize("late", ["success", "failure", "neither"])
def test_a_call_from_before_says_nothing_about_now(late: CallOutcome) -> None:
    circuits, clock = breaker()
    old = circuits.admit("t")
    fail(circuits, times=3)
    circuits.settle(old, late)
    assert circuits.state("t") == "open"
    clock.now += 300
    trial = circuits.admit("t")
    circuits.settle(old, late)
    with pytest.raises(CircuitOpen):
        circuits.admit("t")
    circuits.settle(trial, "success")
    circuits.settle(old, late)
    assert circuits.state("t") == "closed"


def test_closing_forgets_everything() -> None:
    circuits, _ = breaker()
    fail(circuits, times=3)
    circuits.close("t")
    circuits.close("never seen")
    fail(circuits, times=2)
    assert circuits.state("t") == "closed"


def test_new_limits_hold_at_once() -> None:
    limits = [LIMITS]
    circuits = CircuitBreaker(lambda: limits[0], Clock())
    fail(circuits, times=2)
    limits[0] = CircuitBreakerSettings(1, 1)
    fail(circuits)
    assert circuits.resting()[0].seconds == 1


# --- the same as a model of it


@dataclass
class Model:
    """The rules again, as a list of what happened instead of states."""

    threshold: int
    recovery: int
    failures: int = 0
    opened: float | None = None
    trying: int | None = None
    era: int = 0
    eras: dict[int, int] = field(default_factory=dict)

    def begin(self, number: int, now: float) -> bool:
        if self.opened is not None:
            if now < self.opened + self.recovery or self.trying is not None:
                return False
            self.trying = number
        self.eras[number] = self.era
        return True

    def end(self, number: int, outcome: CallOutcome, now: float) -> None:
        if self.eras.pop(number) != self.era:
            return
        if outcome == "success":
            if self.opened is not None:
                self.era += 1
            self.failures, self.opened, self.trying = 0, None, None
        elif outcome == "failure":
            self.failures += 1
            if self.opened is not None or self.failures >= self.threshold:
                self.opened, self.trying = now, None
                self.era += 1
        elif self.trying == number:
            self.trying = None

    def enable(self) -> None:
        self.failures, self.opened, self.trying = 0, None, None
        self.era += 1

    def state(self, now: float) -> str:
        if self.opened is None:
            return "closed"
        return "open" if now < self.opened + self.recovery else "half_open"


def history(seed: int) -> None:
    dice = random.Random(seed)
    threshold, recovery = dice.randint(1, 4), dice.randint(1, 20)
    circuits, clock = breaker(threshold, recovery)
    model = Model(threshold, recovery)
    at_work: dict[int, Attempt] = {}
    for number in range(40):
        match dice.choice(("begin", "begin", "end", "end", "wait", "enable" if dice.random() < 0.2 else "wait")):
            case "begin":
                try:
                    at_work[number] = circuits.admit("t")
                    admitted = True
                except CircuitOpen:
                    admitted = False
                assert admitted == model.begin(number, clock.now), (seed, number)
            case "end" if at_work:
                chosen = dice.choice(list(at_work))
                outcome: CallOutcome = dice.choice(("success", "failure", "failure", "failure", "neither"))
                circuits.settle(at_work.pop(chosen), outcome, "e")
                model.end(chosen, outcome, clock.now)
            case "wait":
                clock.now += dice.randint(0, 10)
            case "enable" if model.failures or model.opened is not None or model.era:
                circuits.close("t")
                model.enable()
        assert circuits.state("t") == model.state(clock.now), (seed, number)


def test_it_equals_its_model() -> None:
    for seed in range(500):
        history(seed)


@pytest.mark.slow
def test_it_equals_its_model_over_many_histories() -> None:
    for seed in range(500, 5500):
        history(seed)


# --- in the executor


class Nothing(Parameters):
    count: int = 1


class Flaky(Tool[Nothing]):
    """Raises what it is given, one after the other; then it works."""

    traits: ClassVar[ToolTraits] = ToolTraits("flaky", "For tests of circuits.", "read", timeout=0.05)
    parameters = Nothing

    def __init__(self, *problems: BaseException | float) -> None:
        self.problems = list(problems)
        self.calls = 0

    async def run(self, arguments: Nothing, context: ToolContext) -> ToolOutput:
        self.calls += 1
        problem = self.problems.pop(0) if self.problems else None
        if isinstance(problem, float):
            await asyncio.sleep(problem)
        if isinstance(problem, BaseException):
            raise problem
        return ToolOutput("fine")


class Asking(Flaky):
    traits: ClassVar[ToolTraits] = ToolTraits("flaky", "For tests of circuits.", "net", timeout=None)


def bench(folder: Path, tool: Tool[Any], clock: Clock | None = None) -> Bench:
    made = Bench(folder / "work", [])
    made.registry = ToolRegistry([tool], circuits=CircuitBreaker(lambda: LIMITS, clock or Clock()))
    made.configure(Settings())
    return made


async def test_failures_and_time_outs_open_it_and_the_tool_is_left_alone(tmp_path: Path) -> None:
    tool = Flaky(ToolFailed("no disk"), OSError(5, "bad"), 1.0)
    made = bench(tmp_path, tool)
    codes = [result.error.code for result in [await made.call("flaky") for _ in range(4)] if result.error]
    assert codes == ["EXECUTION_ERROR", "EXECUTION_ERROR", "TIMEOUT", "CIRCUIT_OPEN"]
    assert tool.calls == 3
    result = await made.call("flaky")
    assert result.status == "failed"
    assert result.error and result.error.retry
    assert "took longer than 0.05 s" in result.text


@pytest.mark.parametrize(
    "problem",
    [
        ToolRetry("wrong"),
        PermissionDenied("no"),
        PathRefused("outside"),
        FileRefused("not there"),
        EditRefused("ambiguous", "twice"),
        ToolFailed("none", ErrorCode.NOT_FOUND),
        ToolFailed("stopped", ErrorCode.CANCELLED),
    ],
    ids=lambda problem: type(problem).__name__,
)
async def test_what_is_not_the_tools_fault_never_opens_it(tmp_path: Path, problem: AgentError) -> None:
    made = bench(tmp_path, Flaky(*[problem] * 6))
    for _ in range(6):
        assert (await made.call("flaky")).error
    assert made.registry.circuits.state("flaky") == "closed"


async def test_denials_never_open_it(tmp_path: Path) -> None:
    made = bench(tmp_path, Asking())
    for _ in range(4):
        assert (await made.call("flaky")).status == "denied"
    assert made.registry.circuits.state("flaky") == "closed"


async def test_wrong_arguments_open_it(tmp_path: Path) -> None:
    made = bench(tmp_path, Asking())
    for _ in range(3):
        assert (await made.call("flaky", count="many")).status == "retry"
    assert made.registry.circuits.state("flaky") == "open"


async def test_values_that_are_refused_open_nothing(tmp_path: Path) -> None:
    made = Bench(tmp_path / "w")
    for _ in range(4):
        assert (await made.call("web_scrape", url="http://127.0.0.1/")).status == "retry"
        assert (await made.call("run_cmd", command="echo a\0b")).status == "retry"
    assert made.registry.circuits.resting() == ()


@pytest.mark.parametrize(
    "problem",
    [
        McpRefused("it says that it failed"),
        McpRefused("the reply is no JSON", ErrorCode.MCP_PARSE_ERROR),
        ToolFailed("a reply that cannot be read", ErrorCode.MCP_PARSE_ERROR),
        ReplyUnreadable("the service gave no list"),
    ],
    ids=str,
)
async def test_errors_and_replies_that_cannot_be_read_open_it(tmp_path: Path, problem: AgentError) -> None:
    made = bench(tmp_path, Flaky(*[problem] * 3))
    for _ in range(3):
        assert not (await made.call("flaky")).ok
    assert made.registry.circuits.state("flaky") == "open"
    made.registry.circuits.close_all()
    assert made.registry.circuits.state("flaky") == "closed"


async def test_a_cancelled_call_counts_for_nothing_and_frees_the_trial(tmp_path: Path) -> None:
    clock = Clock()
    tool = Asking(*[ToolFailed("x")] * 3, 30.0)
    made = bench(tmp_path, tool, clock)
    made.mode = "bypass"
    for _ in range(3):
        await made.call("flaky")
    clock.now += 300
    trial = asyncio.ensure_future(made.call("flaky"))
    await asyncio.sleep(0.01)
    assert (await made.call("flaky")).error is not None
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    assert made.registry.circuits.state("flaky") == "half_open"
    assert (await made.call("flaky")).ok
    assert made.registry.circuits.state("flaky") == "closed"


async def test_an_unknown_tool_leaves_no_trace(tmp_path: Path) -> None:
    made = bench(tmp_path, Flaky())
    for _ in range(5):
        assert (await made.call("nonsense")).error
    assert made.registry.circuits.resting() == ()


async def test_the_registry_shows_it_and_still_offers_it(tmp_path: Path) -> None:
    made = bench(tmp_path, Flaky(*[ToolFailed("no disk")] * 3))
    for _ in range(3):
        await made.call("flaky")
    (entry,) = made.registry.entries()
    assert (entry.state, entry.reason) == ("error", "failed 3 times in a row, last: no disk")
    assert (made.registry.names("error"), made.registry.names("active")) == (("flaky",), ())
    assert [spec["name"] for spec in made.registry.specs(["read"], ["core"])] == ["flaky"]
    made.registry.enable("flaky")
    assert made.registry.names("active") == ("flaky",)
    assert (await made.call("flaky")).ok


async def test_a_tool_that_comes_back_by_the_same_name_begins_anew(tmp_path: Path) -> None:
    made = bench(tmp_path, Flaky(*[ToolFailed("x")] * 3))
    for _ in range(3):
        await made.call("flaky")
    made.registry.unregister("flaky")
    made.registry.register(Flaky())
    assert (await made.call("flaky")).ok


async def test_an_error_with_many_lines_is_told_by_its_first(tmp_path: Path) -> None:
    made = bench(tmp_path, Flaky(*[ToolFailed("first\n" + "x" * 5000)] * 3))
    for _ in range(3):
        await made.call("flaky")
    assert made.registry.entries()[0].reason.endswith("last: first")


async def test_an_error_whose_first_line_only_announces_it_is_told_with_the_next(tmp_path: Path) -> None:
    made = bench(tmp_path, Flaky(*[ToolFailed("It says that it failed:\n\nno disk\nmore")] * 3))
    for _ in range(3):
        await made.call("flaky")
    assert made.registry.entries()[0].reason.endswith("last: It says that it failed: no disk")


async def test_states_of_registration() -> None:
    registry = ToolRegistry()
    registry.register(Flaky(), "registered")
    assert registry.names("registered") == ("flaky",)
    assert registry.specs(["read"], ["core"]) == ()
    with pytest.raises(ToolFailed, match="is registered"):
        registry.get("flaky")
    registry.enable("flaky")
    assert registry.get("flaky")
    assert replace(registry.entries()[0]).state == "active"
