"""A picture that a tool reads: seen by models that see, named to others, stored exactly, gone when room is short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from codeagent_lsp.agent.context.compaction import _short
from codeagent_lsp.agent.context.history import PER_IMAGE, size
from codeagent_lsp.agent.loop import UNSEEN
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.messages import MOST_IMAGE, Image, Message, ToolCall
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from tests.session.fakes import World, call, calls, say, world

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


def looking(folder: Path, vision: bool | None, content: bytes = PNG) -> tuple[World, ScriptedModel]:
    made = world(folder / "w")
    (folder / "w" / "shot.png").write_bytes(content)
    facts = combine([("server", Facts(context_window=32_768, vision=vision))])
    info = ModelInfo("m", "scripted", facts=facts, tool_calling="native")
    model = ScriptedModel([calls(call("read_file", path="shot.png")), say("A screenshot.")], info=info)
    made.models["model"] = model
    return made, model


async def test_a_model_that_sees_gets_the_picture_and_a_resumed_session_has_it(tmp_path: Path) -> None:
    made, model = looking(tmp_path, True)
    assert (await made.run("What does shot.png show?")).status == "completed"
    told = model.requests[1].messages[-1]
    assert told.content == "shot.png: image/png, 1,032 bytes" and len(told.images) == 1
    session = made.manager.current()
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    assert again.context.conversation == session.context.conversation
    assert any(message.images == told.images for message in again.context.conversation)


async def test_a_model_of_which_nobody_says_that_it_sees_is_told_so(tmp_path: Path) -> None:
    for number, vision in enumerate((False, None)):
        made, model = looking(tmp_path / str(number), vision)
        assert (await made.run("What does shot.png show?")).status == "completed"
        told = model.requests[1].messages[-1]
        assert told.images == () and UNSEEN in told.content


async def test_a_picture_that_is_too_large_is_refused_with_the_reason(tmp_path: Path) -> None:
    made, model = looking(tmp_path, True, b"x" * (MOST_IMAGE + 1))
    assert (await made.run("What does shot.png show?")).status == "completed"
    told = model.requests[1].messages[-1]
    assert told.images == () and "more than the limit" in told.content


def test_a_picture_takes_room_until_it_is_shortened_away() -> None:
    read = ToolCall("read_file", {"path": "a.png"}, "c1")
    result = Message("tool", "a.png: image/png", (), "c1", "read_file", images=(Image("image/png", "AAAA"),))
    assert size([result]) == size([replace(result, images=())]) + PER_IMAGE
    assert all(message.images == () for message in _short((Message("assistant", "", (read,)), result)))
