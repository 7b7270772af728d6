"""A quick rewrite: one call, a prompt that fits, and a reply that is used only when it is whole."""

from __future__ import annotations

import asyncio

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context import estimate_tokens
from codeagent_lsp.agent.replacement import PLACE
from codeagent_lsp.agent.rewrite import RewriteLimits, RewriteRequest, prompt, rewrite
from codeagent_lsp.errors import ModelReplyInvalid, ModelStreamBroken
from codeagent_lsp.llm.base import Model, Reply
from codeagent_lsp.llm.scripted import ScriptedModel, ScriptedReply
from tests.agent.test_loop import Replies

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return f()\n"
BODY = "    return 1\n"


def request(text: str = TEXT, selected: str = BODY, **more: tuple[str, ...]) -> RewriteRequest:
    start = text.index(selected)
    return RewriteRequest("a.py", text, start, start + len(selected), "make it 2", **more)


async def done(model: Model, asked: RewriteRequest | None = None, told: list[events.Event] | None = None) -> str:
    heard: list[events.Event] = [] if told is None else told
    return await rewrite(model, asked or request(), "the rules", RewriteLimits(), heard.append)


async def test_the_whole_new_text_comes_back() -> None:
    told: list[events.Event] = []
    model = ScriptedModel([ScriptedReply("```python\n    return 2\n```", chunks=3)])
    assert await done(model, told=told) == TEXT.replace("return 1", "return 2")
    assert [event.type for event in told] == ["token"] * 3 + ["usage"]
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]
    assert model.requests[0].tools == ()


def test_the_prompt_has_what_the_model_needs() -> None:
    words = prompt(request(diagnostics=("line 2: wrong",)), RewriteLimits())
    for part in ("make it 2", "a.py", "- line 2: wrong", f"def f():\n{PLACE}", "def g():", f"```\n{BODY}"):
        assert part in words


def test_code_with_fences_stands_in_longer_ones() -> None:
    text = "a\n\n```sh\nls\n```\n\nb\n"
    assert "````\n```sh\nls\n```\n\n````" in prompt(request(text, "```sh\nls\n```\n"), RewriteLimits())


@pytest.mark.parametrize("line", ["x = compute(1, 2, 3)  # a line\n", "值 = 计算(一, 二, 三)  # 很长的一行注释\n"])
@pytest.mark.parametrize("count", [0, 3, 40, 100, 5000])
@pytest.mark.parametrize("window", [2048, 4096, 8192, 32_768])
def test_the_prompt_fits_the_window_or_is_refused(line: str, count: int, window: int) -> None:
    selected = "begin\n" + line * count
    asked = request(line * 9000 + selected + "end\n" + line * 9000, selected)
    limits = RewriteLimits(window, window // 4)
    try:
        words = prompt(asked, limits)
    except ModelReplyInvalid as refused:
        assert refused.key == "rewrite.too_large"
        assert str(window) in refused.localized("zh-cn")
        assert count >= 40
        return
    assert estimate_tokens(words) + estimate_tokens(selected) < window
    assert selected in words


async def test_a_long_selection_gets_a_long_reply() -> None:
    selected = "x = 1\n" * 1500
    model = ScriptedModel([ScriptedReply("```\ny\n```")])
    await rewrite(model, request(selected, selected), "s", RewriteLimits(32_768, 1000), lambda event: None)
    assert (model.requests[0].max_tokens or 0) > estimate_tokens(selected)


async def test_a_reply_at_its_length_limit_is_refused() -> None:
    with pytest.raises(ModelReplyInvalid) as caught:
        await done(Replies([Reply("```\n    return 2\n```", finish_reason="length")]))
    assert caught.value.key == "rewrite.cut"


async def test_a_stream_without_an_end_is_refused() -> None:
    with pytest.raises(ModelReplyInvalid):
        await done(Replies([]))


async def test_a_stream_that_breaks_is_the_models_error() -> None:
    with pytest.raises(ModelStreamBroken):
        await done(ScriptedModel([ScriptedReply("```\nx", error="broken")]))


async def test_a_model_in_a_circle_is_refused() -> None:
    with pytest.raises(ModelReplyInvalid) as caught:
        await done(ScriptedModel([ScriptedReply("Let me think about this problem once again. " * 90, chunks=400)]))
    assert caught.value.key == "rewrite.loop"


async def test_a_cancel_passes() -> None:
    task = asyncio.ensure_future(done(ScriptedModel([ScriptedReply("x", delay=30.0)])))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
