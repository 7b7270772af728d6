"""Model and user learn which tools rest, why, and when they are back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import CircuitBreakerSettings
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.session.conversation.conversation import Availability
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.registry import CircuitBreaker, ToolRegistry
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from tests.session.fakes import World, call, calls, say, world
from tests.tools.test_circuit_breaker import Clock
from tests.tools.test_providers import Named


class Flaky(Tool[Parameters]):
    """Fails so many times, then works."""

    traits: ClassVar[ToolTraits] = ToolTraits("flaky", "For tests of circuits.", "read")
    parameters = Parameters

    def __init__(self, failures: int = 3) -> None:
        self.failures = failures

    async def run(self, arguments: Parameters, context: ToolContext) -> ToolOutput:
        self.failures -= 1
        if self.failures >= 0:
            raise ToolFailed("no disk")
        return ToolOutput("fine")


def rig() -> tuple[ToolRegistry, Clock, list[events.Event]]:
    clock = Clock()
    circuits = CircuitBreaker(lambda: CircuitBreakerSettings(1, 60), clock)
    return ToolRegistry([Flaky(), Named("other")], circuits=circuits), clock, []


def rest(registry: ToolRegistry, name: str = "flaky") -> None:
    registry.circuits.settle(registry.circuits.admit(name), "failure", "no disk")


def test_nothing_new_is_nothing() -> None:
    registry, _, told = rig()
    availability = Availability(registry, told.append)
    assert (availability.opening(), availability.news(), told) == ("", "", [])


def test_a_rest_is_told_once_and_so_is_its_end() -> None:
    registry, _, told = rig()
    availability = Availability(registry, told.append)
    rest(registry)
    news = availability.news()
    assert news == (
        "The tool flaky rests: it failed once, last: no disk. It can be tried again in 60 s. Until then go another way."
    )
    assert told == [events.ToolDisabled(tool="flaky", reason="failed once, last: no disk")]
    assert availability.news() == ""
    registry.enable("flaky")
    assert availability.news() == "The tool flaky can be used again."
    assert told[1:] == [events.ToolEnabled(tool="flaky")]
    assert availability.news() == ""


def test_a_run_that_begins_hears_what_rests_but_not_what_the_user_switched_off() -> None:
    registry, clock, told = rig()
    rest(registry)
    registry.disable("other", "by the user")
    clock.now += 60
    availability = Availability(registry, told.append)
    assert "flaky rests" in availability.opening()
    assert "tried again now" in availability.opening()
    assert "tool other" not in availability.opening()
    assert (availability.news(), told) == ("", [])


def test_what_is_switched_off_while_a_run_goes_on_is_told() -> None:
    registry, _, told = rig()
    availability = Availability(registry, told.append)
    registry.disable("other", "by the user")
    assert availability.news() == "The tool other cannot be used now: by the user. Go another way."
    registry.unregister("other")
    assert availability.news() == ""
    assert [event.type for event in told] == ["tool_disabled"]


def test_new_groups_are_named() -> None:
    registry, _, told = rig()
    registry.unregister("other")
    availability = Availability(registry, told.append)
    registry.register(Named("mcp.test.one"))
    assert availability.news() == "New groups of tools: mcp.test."


def test_a_reason_is_one_short_line() -> None:
    registry, _, told = rig()
    availability = Availability(registry, told.append)
    registry.disable("other", "first\nsecond\u202e" + "x" * 5000)
    availability.news()
    (event,) = told
    assert isinstance(event, events.ToolDisabled)
    assert len(event.reason) <= 300
    assert "\n" not in event.reason and "\u202e" not in event.reason


# --- in a run


def made(tmp_path: Path, failures: int = 3) -> tuple[World, ToolRegistry]:
    it = world(tmp_path / "w")
    registry = it.manager._services.registry
    registry.register(Flaky(failures))
    return it, registry


async def test_three_failures_and_everybody_knows(tmp_path: Path) -> None:
    it, _ = made(tmp_path)
    use = calls(call("flaky"))
    model = it.script(use, use, use, use, say("I gave up."), say("Hello."))
    await it.run()
    assert [
        (event.tool, event.reason) for event in it.of(events.ToolDisabled) if isinstance(event, events.ToolDisabled)
    ] == [("flaky", "failed 3 times in a row, last: no disk")]
    after_third = [message for message in model.requests[3].messages if "The tool flaky rests" in message.content]
    assert [message.role for message in after_third] == ["user"]
    refused = next(m.content for m in reversed(model.requests[4].messages) if m.role == "tool")
    assert refused.startswith("flaky rests: it failed 3 times in a row, last: no disk")
    tools = [request.tools for request in model.requests]
    assert all(item == tools[0] for item in tools)  # the prompt begins the same
    await it.run("once more")
    assert any("The tool flaky rests" in message.content for message in model.requests[5].messages[-2:])


async def test_the_user_brings_it_back(tmp_path: Path) -> None:
    it, registry = made(tmp_path)
    use = calls(call("flaky"))
    model = it.script(use, use, use, calls(call("list_dir")), say())
    told: list[str] = []

    def enable(event: events.Event) -> None:
        told.append(event.type)
        if isinstance(event, events.ToolDisabled):
            registry.enable(event.tool)

    it.manager._listeners = (*it.manager._listeners, enable)
    await it.run()
    assert [event.type for event in it.events if event.type.startswith("tool_e")] == ["tool_enabled"]
    assert "The tool flaky can be used again." in model.requests[4].messages[-1].content


async def test_limits_come_from_the_settings(tmp_path: Path) -> None:
    it, registry = made(tmp_path)
    registry.circuits._limits = lambda: replace(CircuitBreakerSettings(), failure_threshold=1)
    it.script(calls(call("flaky")), say())
    await it.run()
    assert len(it.of(events.ToolDisabled)) == 1


def test_a_whole_group_that_is_missing_is_told_and_so_is_its_coming_back() -> None:
    registry, _, told = rig()
    availability = Availability(registry, told.append)
    registry.miss("mcp.time", ToolFailed("it ended\nat once"))
    news = availability.news()
    assert news == "The tool mcp.time cannot be used now: it ended at once. Go another way."
    with pytest.raises(ToolFailed, match="it ended"):
        registry.get("mcp.time.now")
    with pytest.raises(ToolFailed, match="There is no tool"):
        registry.get("mcp.timer.now")
    registry.found("mcp.time")
    tool = Named("mcp.time.now")
    tool.traits = replace(tool.traits, group="mcp.time")  # type: ignore[misc]
    registry.register(tool)
    assert "The tool mcp.time can be used again." in availability.news()
    assert [(event.type, getattr(event, "tool", "")) for event in told] == [
        ("tool_disabled", "mcp.time"),
        ("tool_enabled", "mcp.time"),
    ]
