"""Calls of other agents' tools that are answers become the text of the reply; one call that holds several is these."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.model import ModelRequest
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Message, ToolCall, ToolSpec
from codeagent_lsp.tools.catalogue import BUILTIN
from tests.llm.support import TOOLS, Typewriter, collect

SPECS = tuple(cls().spec() for cls in BUILTIN)
ASK = ModelRequest((Message("system", "You help."), Message("user", "Fix it.")), tools=SPECS[:8], also=SPECS[8:])
ENTERED = Message("assistant", "", (ToolCall("plan_enter", {"title": "t"}, "1"),))
EXITED = Message("assistant", "", (ToolCall("plan_exit", {}, "2"),))


def native(*calls: ToolCall, text: str = "") -> ToolCallingModel:
    return ToolCallingModel(ScriptedModel([ScriptedReply(text, tool_calls=calls)]), "native")


@pytest.mark.parametrize(("name", "arguments"), [
    ("attempt_completion", {"result": "It is fixed.", "command": "open index.html"}),
    ("finish", {"message": "It is fixed."}),
    ("finish", {"summary": "It is fixed."}),
    ("plan_mode_respond", {"response": "It is fixed.", "task_progress": "- [x] all"}),
    ("ExitPlanMode", {"plan": "It is fixed."}),
    ("submit_and_exit", {"verified": True, "summary": "It is fixed."}),
    ("task_complete", {"summary": "It is fixed."}),
])  # fmt: skip
async def test_an_answer_by_a_call_is_the_text(name: str, arguments: dict[str, Any]) -> None:
    shown, reply = await collect(native(ToolCall(name, arguments, "1")), ASK)
    assert (shown, reply.text, reply.tool_calls, reply.problem) == ("It is fixed.", "It is fixed.", (), "")
    assert reply.finish_reason == "stop"


async def test_it_follows_what_was_said_and_other_calls_run() -> None:
    calls = ToolCall("read_file", {"path": "a.py"}, "1"), ToolCall("finish", {"message": "Done."}, "2")
    shown, reply = await collect(native(*calls, text="I look."), ASK)
    assert shown == reply.text == "I look.\n\nDone."
    assert [(call.name, call.id) for call in reply.tool_calls] == [("read_file", "1")]
    assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize("mode", ["text", "constrained"])
async def test_it_may_be_written_into_the_text(mode: Any) -> None:
    said = json.dumps({"name": "attempt_completion", "arguments": {"result": "It is fixed."}})
    shown, reply = await collect(ToolCallingModel(Typewriter(said), mode), replace(ASK, tools=TOOLS, also=()))
    assert (shown, reply.text, reply.tool_calls, reply.problem) == ("It is fixed.", "It is fixed.", (), "")


@pytest.mark.parametrize(("before", "called"), [
    ((), ()),
    ((ENTERED,), ("plan_exit",)),
    ((ENTERED, EXITED), ()),
    ((ENTERED, EXITED, ENTERED), ("plan_exit",)),
])  # fmt: skip
async def test_a_plan_is_shown_where_one_is_open_and_is_the_answer_elsewhere(
    before: tuple[Message, ...], called: tuple[str, ...]
) -> None:
    request = replace(ASK, messages=(*ASK.messages, *before))
    _, reply = await collect(native(ToolCall("ExitPlanMode", {"plan": "1. Look"}, "9")), request)
    assert tuple(call.name for call in reply.tool_calls) == called
    assert reply.text == ("" if called else "1. Look")


async def test_a_tool_of_that_name_is_called() -> None:
    tool: ToolSpec = {**TOOLS[0], "name": "finish"}
    _, reply = await collect(native(ToolCall("finish", {"path": "a"}, "1")), replace(ASK, tools=(tool,), also=()))
    assert [call.name for call in reply.tool_calls] == ["finish"]


async def test_a_tool_that_does_not_exist_is_not_answered_with_them() -> None:
    _, reply = await collect(native(ToolCall("no_such_tool", {}, "1")), ASK)
    assert "read_file" in reply.problem and "attempt_completion" not in reply.problem


@pytest.mark.parametrize(("name", "arguments"), [
    ("multi_tool_use.parallel", {"tool_uses": [
        {"recipient_name": "functions.read_file", "parameters": {"path": "a.py"}},
        {"recipient_name": "functions.Grep", "parameters": {"pattern": "x"}},
    ]}),
    ("batch", {"tool_calls": [
        {"tool": "read_file", "parameters": {"path": "a.py"}}, {"tool": "Grep", "parameters": {"pattern": "x"}},
    ]}),
])  # fmt: skip
async def test_one_call_of_several(name: str, arguments: dict[str, Any]) -> None:
    _, reply = await collect(native(ToolCall(name, arguments, "c")), ASK)
    assert reply.problem == ""
    assert reply.tool_calls == (
        ToolCall("read_file", {"path": "a.py"}, "c"), ToolCall("grep", {"pattern": "x", "output": "files"}, "c_1")
    )  # fmt: skip
