"""Groups of tools in the hands of agents that work for a run: switched on by themselves, or named in their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.subagents import NEVER
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.traits import CORE
from tests.session.fakes import World, call, calls, say, world

GROUPS = sorted({cls.traits.group for cls in BUILTIN} - {CORE, "agents", "plan"})


def members(group: str) -> set[str]:
    return {cls.traits.name for cls in BUILTIN if cls.traits.group == group} - NEVER


def agent(made: World, head: str) -> None:
    """An agent of the user's own, named helper."""
    folder = made.root.parent / "own" / "agents"
    folder.mkdir(parents=True)
    (folder / "helper.md").write_text(f"---\nname: helper\ndescription: helps\n{head}\n---\nHelp.\n")


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
async def test_a_coder_switches_any_group_on_for_itself_alone(tmp_path: Path, group: str) -> None:
    made = world(tmp_path / "w")
    model = made.script(
        calls(call("delegate", agent="coder", task="t")),
        calls(call("enable_tools", group=group)),
        say("Done."),
        say("All done."),
    )
    await made.run()
    offered = [{spec["name"] for spec in request.tools} for request in model.requests]
    assert members(group)
    assert not offered[1] & members(group)
    assert offered[2] - offered[1] == members(group)
    assert not offered[3] & members(group)


@pytest.mark.parametrize("group", ["agents", "plan", "nothing"])
async def test_what_no_agent_may_have_is_no_group_of_its(tmp_path: Path, group: str) -> None:
    made = world(tmp_path / "w")
    model = made.script(
        calls(call("delegate", agent="coder", task="t")), calls(call("enable_tools", group=group)), say(), say()
    )
    await made.run()
    told = model.requests[2].messages[-1].content
    assert f"no group '{group}' for you" in told
    assert "git" in told


async def test_an_agent_that_only_reads_gets_what_reads_of_a_group(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = made.script(
        calls(call("delegate", agent="reviewer", task="t")), calls(call("enable_tools", group="files")), say(), say()
    )
    await made.run()
    offered = [{spec["name"] for spec in request.tools} for request in model.requests]
    assert offered[2] - offered[1] == {"preview_edit", "read_files"}


async def test_a_tool_of_a_group_that_is_off_cannot_be_called(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = made.script(calls(call("delegate", agent="coder", task="t")), calls(call("git_log")), say(), say())
    await made.run()
    assert "do not have the tool 'git_log'" in model.requests[2].messages[-1].content


async def test_a_second_agent_begins_without_the_groups_of_the_first(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = made.script(
        calls(call("delegate", agent="coder", task="t")),
        calls(call("enable_tools", group="git")),
        say(),
        calls(call("delegate", agent="coder", task="t")),
        say(),
        say(),
    )
    await made.run()
    assert "git_log" not in {spec["name"] for spec in model.requests[4].tools}


async def test_a_file_names_whole_groups(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    agent(made, "tools: [git, read_file]")
    model = made.script(calls(call("delegate", agent="helper", task="t")), say(), say())
    await made.run()
    assert {spec["name"] for spec in model.requests[1].tools} == members("git") | {"read_file"}
