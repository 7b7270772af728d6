"""The scripted model: files, errors, expectations, and what it remembers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelNotFound,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
)
from codeagent_lsp.llm.model import ModelRequest, ReasoningChunk, Reply, TextChunk
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply, load_script
from codeagent_lsp.messages import Message, ToolCall
from tests.llm.support import collect

ASK = ModelRequest((Message("system", "s"), Message("user", "please read a.py")))


def script(folder: Path, text: str) -> ScriptedModel:
    path = folder / "script.jsonl"
    path.write_text(text, encoding="utf-8")
    return load_script(path)


@pytest.mark.parametrize("as_lines", [False, True])
async def test_a_script_is_played_in_order_and_then_done(tmp_path: Path, as_lines: bool) -> None:
    entries = [
        {"text": "Reading", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}], "chunks": 3},
        {"text": "It is fine.", "reasoning": "hm", "expect": "a.py"},
    ]
    source = "\n".join(map(json.dumps, entries)) if as_lines else json.dumps(entries)
    model = script(tmp_path, source)
    shown, reply = await collect(model, ASK)
    assert shown == reply.text == "Reading"
    assert reply.tool_calls == (ToolCall("read_file", {"path": "a.py"}, "call_1_1"),)
    assert reply.finish_reason == "tool_calls"
    items = [item async for item in model.stream(ASK)]
    assert items[0] == ReasoningChunk("hm")
    assert items[1] == TextChunk("It is fine.")
    assert [(await collect(model, ASK))[1].text for _ in range(2)] == ["Done.", "Done."]
    assert len(model.requests) == 4
    assert model.info.tool_calling == "native"


async def test_chunks_and_loop(tmp_path: Path) -> None:
    model = script(tmp_path, '{"text": "abcdef", "chunks": 3}\n{"loop": true}')
    for _ in range(3):
        items = [item async for item in model.stream(ASK)]
        assert [item.text for item in items if isinstance(item, TextChunk)] == ["ab", "cd", "ef"]
        assert isinstance(items[-1], Reply)


@pytest.mark.parametrize(
    ("error", "kind"),
    [("busy", ModelBusy), ("broken", ModelStreamBroken), ("timeout", ModelTimeout), ("overflow", ContextOverflow)],
)
async def test_errors_on_demand(error: str, kind: type[ModelError]) -> None:
    model = ScriptedModel([ScriptedReply("half", error=error)])
    shown = []
    with pytest.raises(kind):
        async for item in model.stream(ASK):
            shown.append(item)
    assert shown == ([TextChunk("half")] if error == "broken" else [])


async def test_an_expectation_that_is_not_met_says_what_came() -> None:
    model = ScriptedModel([ScriptedReply("x", expect="b.py")])
    with pytest.raises(ModelReplyInvalid, match=r"b\.py.*a\.py"):
        await collect(model, ASK)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{nope", "line 1"),
        ('{"text": "a"}\n{"text": ', "line 2"),
        ('[{"txt": "a"}]', "unknown key 'txt'"),
        ('[{"text": 3}]', "'text' has the wrong type"),
        ('[{"error": "fire"}]', "busy, broken"),
        ('[{"tool_calls": [{"arguments": {}}]}]', "needs a 'name'"),
        ('[{"tool_calls": [{"name": "x", "arguments": "{}"}]}]', "must be an object"),
        ("[3]", "entry 1"),
    ],
)
def test_a_bad_script_is_explained(tmp_path: Path, source: str, says: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        script(tmp_path, source)
    assert says in str(caught.value)


def test_a_missing_script_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="cannot be read"):
        load_script(tmp_path / "none.json")
