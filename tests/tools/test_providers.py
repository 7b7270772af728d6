"""Where tools come from: providers, and how they join and leave a registry while runs go on."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.providers import CachedProvider, CompositeProvider, Plug, StaticProvider
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


class Named(Tool[Parameters]):
    """A tool whose name is given."""

    parameters = Parameters
    traits: ClassVar[ToolTraits] = ToolTraits("named", "For tests of providers.", "read", "mcp.test")

    def __init__(self, name: str, answer: str = "") -> None:
        self.traits = ToolTraits(name, "For tests of providers.", "read", "mcp.test")  # type: ignore[misc]
        self.answer = answer

    async def run(self, arguments: Parameters, context: ToolContext) -> ToolOutput:
        return ToolOutput(self.answer)


class Changing:
    """Gives what it is told to, or fails; counts how often it is asked."""

    name = "changing"

    def __init__(self, *tools: Tool[Any]) -> None:
        self.given: tuple[Tool[Any], ...] = tools
        self.problem: Exception | None = None
        self.asked = 0

    async def tools(self) -> tuple[Tool[Any], ...]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem
        return self.given


def names(tools: tuple[Tool[Any], ...]) -> list[str]:
    return [tool.traits.name for tool in tools]


async def test_a_static_provider_gives_what_it_has() -> None:
    assert names(await StaticProvider("s", (Named("a"), Named("b"))).tools()) == ["a", "b"]


async def test_a_cached_provider_asks_again_only_when_it_is_time() -> None:
    inner, now = Changing(Named("a")), [0.0]
    cached = CachedProvider(inner, 10, lambda: now[0])
    await asyncio.gather(*(cached.tools() for _ in range(5)))
    assert inner.asked == 1
    inner.given = (Named("b"),)
    now[0] = 9.9
    assert names(await cached.tools()) == ["a"]
    now[0] = 10
    assert names(await cached.tools()) == ["b"]


async def test_a_cached_provider_remembers_while_the_other_one_fails() -> None:
    inner, now = Changing(Named("a")), [0.0]
    inner.problem = ToolFailed("down")
    cached = CachedProvider(inner, 10, lambda: now[0])
    with pytest.raises(ToolFailed):
        await cached.tools()
    inner.problem = None
    await cached.tools()
    inner.problem, now[0] = OSError("down"), 20
    assert names(await cached.tools()) == ["a"]


async def test_a_composite_takes_the_first_of_each_name_and_survives_failures() -> None:
    first, broken = Named("a", "first"), Changing()
    broken.problem = OSError("no socket")
    parts = (StaticProvider("one", (first,)), broken, StaticProvider("two", (Named("a", "second"), Named("b"))))
    composite = CompositeProvider("all", parts)
    tools = await composite.tools()
    assert names(tools) == ["a", "b"]
    assert tools[0] is first
    assert composite.problems == {"changing": "no socket"}
    broken.problem = None
    await composite.tools()
    assert composite.problems == {}


async def test_a_plug_keeps_a_registry_in_step() -> None:
    kept, old, new = Named("kept"), Named("changed", "old"), Named("changed", "new")
    provider = Changing(kept, old, Named("gone"))
    registry = ToolRegistry()
    plug = Plug(registry, provider)
    assert (await plug.refresh()).added == ("kept", "changed", "gone")
    registry.count("kept", ok=True, milliseconds=1)
    provider.given = (kept, new, Named("fresh"))
    done = await plug.refresh()
    assert (done.added, done.removed) == (("changed", "fresh"), ("changed", "gone"))
    assert registry.get("changed") is new
    assert registry.names() == ("kept", "changed", "fresh")
    assert registry.entries()[0].stats.calls == 1
    assert await plug.refresh() == type(done)()


async def test_a_plug_never_takes_a_name_that_is_somebody_elses() -> None:
    mine = Named("read_file", "mine")
    registry = ToolRegistry([mine])
    plug = Plug(registry, StaticProvider("theirs", (Named("read_file", "theirs"), Named("other"))))
    done = await plug.refresh()
    assert (done.added, done.refused) == (("other",), ("read_file",))
    assert registry.get("read_file") is mine
    assert plug.unplug() == ("other",)
    assert registry.names() == ("read_file",)
    assert plug.unplug() == ()


async def test_a_plug_changes_nothing_when_its_provider_fails() -> None:
    provider = Changing(Named("a"))
    registry = ToolRegistry()
    plug = Plug(registry, provider)
    await plug.refresh()
    provider.problem = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await plug.refresh()
    assert registry.names("active") == ("a",)


async def test_refreshes_at_the_same_time_do_not_mix() -> None:
    provider = Changing(Named("a"))
    registry = ToolRegistry()
    plug = Plug(registry, provider)
    done = await asyncio.gather(*(plug.refresh() for _ in range(3)))
    assert [item.added for item in done] == [("a",), (), ()]
