"""Which tools a model is offered: the core, what it asks for, and the same in every prompt of a conversation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.agent.context.history import tools_size
from codeagent_lsp.call_forms import USE_TOOL
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.messages import Message, ToolCall
from codeagent_lsp.session.conversation.tool_selection import ToolSelection
from codeagent_lsp.tools.catalogue import BUILTIN, SMALL_SET
from codeagent_lsp.tools.permissions.policy import Mode
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.traits import CORE, EXTENDED, ToolTraits
from tests.session.fakes import MIDDLING, call, calls, say, world
from tests.tools.test_providers import Named

CORE_TOOLS = [cls.traits.name for cls in BUILTIN if cls.traits.group == CORE and cls.traits.name != USE_TOOL]


def registry(*more: Any) -> ToolRegistry:
    return ToolRegistry([*(cls() for cls in BUILTIN), *more])


def offered(offering: ToolSelection, only: tuple[str, ...] | None = None) -> list[str]:
    return [spec["name"] for spec in offering.specs(only)]


def listing(offering: ToolSelection) -> str:
    return next(spec["description"] for spec in offering.specs() if spec["name"] == "enable_tools")


def groups(offering: ToolSelection) -> list[str]:
    """The groups besides the core that are described; tools of others are named by theirs."""
    known = {cls.traits.name: cls.traits.group for cls in BUILTIN}
    found = dict.fromkeys(known.get(name) or name.rpartition(".")[0] for name in offered(offering))
    return [group for group in found if group != CORE]


def asked_for(*groups: str) -> Message:
    return Message("assistant", "", tuple(ToolCall("enable_tools", {"group": group}) for group in groups))


def ask() -> Mode:
    return "ask"


def read_only() -> Mode:
    return "readOnly"


def test_every_group_has_a_line_and_every_line_tells_tools_apart() -> None:
    groups = {cls.traits.group for cls in BUILTIN} - {CORE}
    assert groups <= set(EXTENDED)
    assert len(set(EXTENDED.values())) == len(EXTENDED)


def test_the_core_is_offered_and_the_rest_is_listed() -> None:
    offering = ToolSelection(registry(), ask)
    assert offered(offering) == CORE_TOOLS
    for group in {cls.traits.group for cls in BUILTIN} - {CORE}:
        assert f"\n{group}: {EXTENDED[group]}" in listing(offering)


def test_a_group_with_no_tools_is_not_listed() -> None:
    offering = ToolSelection(ToolRegistry(cls() for cls in BUILTIN if cls.traits.group != "git"), ask)
    assert "\ngit:" not in listing(offering)
    with pytest.raises(ToolFailed, match="Groups: files, "):
        offering.enable("git")


def test_a_group_is_added_at_the_end_in_the_order_of_asking() -> None:
    offering = ToolSelection(registry(), ask)
    before = listing(offering)
    assert offering.enable("git") == ("git_diff", "git_log", "generate_commit")
    offering.enable("files")
    offering.enable("git")
    assert offered(offering)[len(CORE_TOOLS) :] == [
        *("git_diff", "git_log", "generate_commit"),
        *("read_files", "insert_text", "batch_edit", "preview_edit", "move_file", "delete_file"),
    ]
    assert listing(offering) == before


@pytest.mark.parametrize("group", ["nothing", CORE, ""])
def test_a_group_that_is_none_is_explained(group: str) -> None:
    with pytest.raises(ToolFailed, match=r"Groups: files, .*git"):
        ToolSelection(registry(), ask).enable(group)


def test_tools_of_others_have_groups_of_their_own() -> None:
    more = [Named(f"mcp.test.t{number}") for number in range(7)]
    offering = ToolSelection(registry(*more), ask)
    assert "\nmcp.test: mcp.test.t0, mcp.test.t1, mcp.test.t2, mcp.test.t3, mcp.test.t4 and 2 more" in listing(offering)


def test_reading_only_offers_and_lists_nothing_else() -> None:
    offering = ToolSelection(registry(), read_only)
    assert not {"edit_file", "run_cmd"} & set(offered(offering))
    assert "files: " in listing(offering)  # preview_edit reads
    assert offering.enable("files") == ("read_files", "preview_edit")


def test_what_a_conversation_used_is_offered_in_all_of_it() -> None:
    used = Message("assistant", "", (ToolCall("move_file", {}), ToolCall("no_such_tool", {}), ToolCall("grep", {})))
    offering = ToolSelection(registry(), ask, [Message("user", "x"), asked_for("git", "nonsense", "core"), used])
    assert groups(offering) == ["git", "files"]
    odd = Message("assistant", "", (ToolCall("enable_tools", {"group": ["git"]}),))
    assert groups(ToolSelection(registry(), ask, [odd])) == []


def test_a_skill_offers_the_groups_of_its_tools() -> None:
    offering = ToolSelection(registry(), ask)
    offering.offer(["git_log", "grep", "nothing"])
    assert groups(offering) == ["git"]


def test_single_tools_whatever_their_group() -> None:
    offering = ToolSelection(registry(), ask, named=["skill_loader", "delegate"])
    assert offered(offering)[len(CORE_TOOLS) :] == ["skill_loader", "delegate"]
    offering.enable("skills")
    names = offered(offering)
    assert sorted(set(names)) == sorted(names)


def test_only_some_of_any_group() -> None:
    assert offered(ToolSelection(registry(), ask), ("git_log", "grep")) == ["grep", "git_log"]


def test_what_a_run_never_has() -> None:
    offering = ToolSelection(registry(), ask, without=("create_plan", "plan_enter", "plan_update", "plan_exit"))
    assert "create_plan" not in offered(offering)
    assert "plan: " not in listing(offering)


def test_small_models_get_few_tools_and_a_way_to_what_the_user_brought() -> None:
    small = ToolSelection(registry(), ask, few=SMALL_SET)
    assert sorted(offered(small)) == sorted(SMALL_SET)
    brought = ToolSelection(registry(Named("mcp.test.one")), ask, few=SMALL_SET)
    assert sorted(offered(brought)) == sorted((*SMALL_SET, "enable_tools"))
    brought.enable("mcp.test")
    assert offered(brought)[-1] == "mcp.test.one"


def test_a_tool_that_rests_stays_in_the_list() -> None:
    tools = registry()
    before = ToolSelection(tools, ask).specs()
    for _ in range(3):
        tools.circuits.settle(tools.circuits.admit("grep"), "failure", "x")
    assert tools.names("error") == ("grep",)
    assert ToolSelection(tools, ask).specs() == before
    tools.disable("grep")
    assert "grep" not in offered(ToolSelection(tools, ask))


def test_the_core_costs_less_than_everything() -> None:
    tools = registry()
    core, small = ToolSelection(tools, ask), ToolSelection(tools, ask, few=SMALL_SET)
    whole = tools.specs(("read", "write", "run", "net", "ask"), (CORE, *EXTENDED))
    print(f"tokens: small {tools_size(small.specs())}, core {tools_size(core.specs())}, all {tools_size(whole)}")
    assert tools_size(small.specs()) < 1500
    assert tools_size(core.specs()) < 3000
    assert tools_size(core.specs()) * 2 < tools_size(whole)


# --- in a run


def prompt_tools(model: ScriptedModel) -> list[list[str]]:
    return [[spec["name"] for spec in request.tools] for request in model.requests]


async def test_a_model_switches_a_group_on_and_keeps_it_in_the_session(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    replies = [calls(call("enable_tools", group="git")), say("Done."), say("Again.")]
    made.models["model"] = model = ScriptedModel(replies, info=MIDDLING)
    await made.run()
    await made.run("more")
    first, second, third = prompt_tools(model)
    assert "git_diff" not in first
    assert second == third == [*first, "git_diff", "git_log", "generate_commit"]
    told = next(message.content for message in model.requests[1].messages if message.role == "tool")
    assert told == "You have these tools now: git_diff, git_log, generate_commit."


async def test_an_unknown_group_is_told(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = made.script(calls(call("enable_tools", group="magic")), say())
    await made.run()
    told = next(message.content for message in model.requests[1].messages if message.role == "tool")
    assert "There is no group 'magic'" in told


async def test_a_small_model_has_no_way_to_more(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    info = ModelInfo("small", "scripted", facts=window_known(8192), tool_calling="native")
    made.models["model"] = model = ScriptedModel([say()], info=info)
    await made.run()
    assert sorted(prompt_tools(model)[0]) == sorted(SMALL_SET)


async def test_what_the_server_has_no_more_is_not_offered(tmp_path: Path) -> None:
    tools = registry(Named("mcp.test.one"))
    offering = ToolSelection(tools, ask)
    offering.enable("mcp.test")
    tools.unregister("mcp.test.one")
    assert "mcp.test.one" not in offered(offering)
    tools.register(Named("mcp.test.two"))
    assert offered(offering)[-1] == "mcp.test.two"
    assert replace(ToolTraits("a", "b", "read")).group == CORE


def foreign(name: str, group: str, words: str = "Looks.") -> Named:
    tool = Named(name)
    tool.traits = ToolTraits(name, words, "net", group=group)  # type: ignore[misc]
    return tool


def test_tools_that_the_user_brought_along_are_offered_as_far_as_there_is_room() -> None:
    tools = registry(foreign("mcp.a.look", "mcp.a"), foreign("mcp.b.look", "mcp.b", "x" * 3000))
    assert offered(ToolSelection(tools, lambda: "ask"))[-1] != "mcp.a.look"
    offering = ToolSelection(tools, lambda: "ask", room=1000)
    assert offered(offering)[-1] == "mcp.a.look" and groups(offering) == ["mcp.a"]
    assert "mcp.b: mcp.b.look" in listing(offering)
    assert offered(ToolSelection(tools, lambda: "ask", room=9000))[-2:] == ["mcp.a.look", "mcp.b.look"]
    assert "mcp.a.look" not in offered(ToolSelection(tools, lambda: "readOnly", room=9000))


def test_tools_that_come_while_a_run_goes_on_come_last() -> None:
    tools = registry(foreign("mcp.a.look", "mcp.a"))
    offering = ToolSelection(tools, lambda: "ask", room=1000)
    before = offered(offering)
    tools.register(foreign("mcp.b.look", "mcp.b"))
    assert offered(offering) == [*before, "mcp.b.look"]
