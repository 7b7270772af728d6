"""Every call of the table in one real session: a model makes it in the other form, and it is carried out.

What would need a network, a browser, an index or a subagent's own model is done by a tool that only says its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.executor import understood
from codeagent_lsp.tools.tool import Tool, ToolOutput
from tests.forms.test_skills import FOREIGN
from tests.forms.test_table import TABLE
from tests.session.fakes import World, say, world

FAR = ("web_search", "web_scrape", "skill_installer", "terminal", "desktop", "delegate", "search_semantic")
PLAN = ("plan_enter", "plan_update", "plan_exit")
WORDS = ("Allow once", "Trust it", "A (recommended)", "B", "Approve", "Apply", "text")
"""Answers to whatever is asked, the first that is a choice or may be said."""
BEFORE = {"undo_patch": [("write_file", {"path": "new.py", "content": "x"})]}
"""What has to be called in the same run before."""
TOOLS = {cls.traits.name: cls for cls in BUILTIN}


def rows() -> Iterator[tuple[str, str, dict[str, Any], str, dict[str, Any]]]:
    """The form, the call, and the call of our tool that it is."""
    for row in TABLE:
        for check, *values in json.loads(row["shown by"] or "[]"):
            if check == "call":
                name, given, tool, own = values
                yield row["form"], name, given, tool, own


def echoing(cls: type[Tool[Any]]) -> Tool[Any]:
    async def run(self: Tool[Any], arguments: Any, context: ToolContext) -> ToolOutput:
        return ToolOutput(json.dumps(arguments.model_dump()))

    found: Tool[Any] = type(cls.__name__, (cls,), {"run": run})()
    return found


def session(folder: Path, on_event: Callable[[events.Event], None] = lambda event: None) -> World:
    made = world(folder / "ws", deadline=0.2, on_event=on_event)
    registry = made.manager._services.registry
    for name in FAR:
        registry.unregister(name)
        registry.register(echoing(TOOLS[name]))
    for name in ("a.py", "src/b.py"):
        (made.root / name).parent.mkdir(exist_ok=True)
        (made.root / name).write_text("a\n" if name == "a.py" else "x\n")
    skill = made.root / ".memstack/skills/release/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(FOREIGN)
    return made


async def ran(made: World, calls: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Make the calls in one run and return their results."""
    made.events.clear()
    made.user.says = [*WORDS] * 4
    replies = [
        ScriptedReply(tool_calls=(ToolCall(name, given, f"call{at}"),)) for at, (name, given) in enumerate(calls)
    ]
    made.models["model"] = ScriptedModel([*replies, *[say("Done.")] * 4])
    await made.run("do it")
    return [events.to_dict(event) for event in made.of(events.ToolFinished)]


@pytest.mark.slow  # some thirty runs
async def test_each_is_carried_out(tmp_path: Path) -> None:
    made, wrong = session(tmp_path), []
    for form, name, given, tool, own in rows():
        if name in PLAN:
            continue
        *_, result = await ran(made, [*BEFORE.get(name, ()), (name, given)])
        if (result["tool"], result["success"]) != (tool, True):
            wrong.append((form, name, result["tool"], result["error"]))
        elif tool in FAR:
            arguments = understood(ToolCall(tool, own), TOOLS[tool]()).arguments
            assert json.loads(result["output"]) == arguments.model_dump()
    assert wrong == []


async def test_a_plan_is_entered_written_and_shown(tmp_path: Path) -> None:
    asked = [(name, given) for _, name, given, _, _ in rows() if name in PLAN]

    def named(event: events.Event) -> None:
        for _, given in asked:
            if isinstance(event, events.PlanModified) and event.plan and "plan_id" in given:
                given["plan_id"] = event.plan["id"]

    results = await ran(session(tmp_path, named), asked)
    assert [(result["tool"], result.get("error")) for result in results] == [(name, None) for name in PLAN]
