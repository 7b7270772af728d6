"""Ollama's own API: a window that grows with the prompt, cut prompts that are noticed, errors with the next step."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ContextOverflow, ModelBusy, ModelError, ModelNotFound, ModelRejected, ModelStreamBroken
from codeagent_lsp.llm.deltas import Assembler
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.factory import Surroundings, open_model
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.http_model import RetryPolicy
from codeagent_lsp.llm.providers.ollama import KEEP_ALIVE, OllamaModel, as_chat_chunk
from codeagent_lsp.messages import Message, ToolCall
from tests.faults.model_server import Asked
from tests.llm.providers.fake_ollama import FakeOllama
from tests.llm.providers.fake_server import Answer, Said, serving
from tests.llm.support import TOOLS, collect

ASK = ModelRequest((Message("system", "s"), Message("user", "u")), tools=TOOLS)
ONCE = RetryPolicy(attempts=1)


def model_at(
    url: str, *, name: str = "qwen3:8b", window: int = 40_960, reasoning: bool = True, effort: str = "auto"
) -> OllamaModel:
    facts = combine([("server", Facts(window, reasoning=reasoning))])
    return OllamaModel(endpoint(url), ModelInfo(name, "ollama", url, facts), policy=ONCE, effort=effort)


def asking(tokens: int, *, per_token: int = 4, parts: int = 10) -> ModelRequest:
    """A conversation of about so many tokens as the fake counts them."""
    piece = ("word " * tokens)[: tokens * per_token // parts]
    said = [Message("user" if at % 2 else "assistant", f"{at}: {piece}") for at in range(1, parts + 1)]
    return ModelRequest((Message("system", "s"), *said, Message("user", "And now?")))


def windows(fake: FakeOllama) -> list[int]:
    return [body["options"]["num_ctx"] for body in fake.bodies]


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "path"), [("ollama", ""), ("ollama", "/v1"), ("auto", ""), ("auto", "/v1/")])
async def test_it_is_opened_by_name_and_by_what_it_answers(provider: Any, path: str, tmp_path: Path) -> None:
    fake = FakeOllama()
    async with serving(fake) as url:
        settings = ModelSettings(provider=provider, base_url=url + path)
        model = await open_model(settings, tmp_path, around=Surroundings(ports={}, embedded=False))
        info = model.info
        assert (info.provider, info.name, info.tool_calling) == ("ollama", "qwen3:8b", "native")
        assert (info.context_window, info.facts.sources["context_window"]) == (40_960, "server")
        assert (info.facts.reasoning, info.facts.vision, info.facts.native_tools) == (True, False, True)
        assert (await collect(model, ASK))[0] == "Done."
        await model.close()
    assert not fake.refusals
    assert fake.loads == [32_768]  # the probe and the request share it


async def test_discovery_finds_it_and_the_user_s_window_is_the_limit(tmp_path: Path) -> None:
    fake = FakeOllama(cuts=True)
    async with serving(fake) as url:
        around = Surroundings(ports={"ollama": int(url.rpartition(":")[2])}, embedded=False)
        model = await open_model(ModelSettings(context_window=12_000), tmp_path, around=around)
        assert (model.info.provider, model.info.context_window) == ("ollama", 12_000)
        await collect(model, asking(8000))
        await model.close()
    assert windows(fake)[-1] == 12_000


async def test_a_window_beyond_the_model_s_length_is_not_asked_for(tmp_path: Path) -> None:
    fake = FakeOllama(cuts=True, length=10_000)
    async with serving(fake) as url:
        settings = ModelSettings(provider="ollama", base_url=url, context_window=50_000, tool_calling="native")
        model = await open_model(settings, tmp_path)
        with pytest.raises(ContextOverflow):
            await collect(model, asking(15_000))
        await model.close()
    assert windows(fake) == [10_000]


@pytest.mark.parametrize("capabilities", [("completion",), ("completion", "insert")])
async def test_a_model_without_tools_is_asked_in_another_way(capabilities: tuple[str, ...], tmp_path: Path) -> None:
    fake = FakeOllama(Said('{"tool": "get_weather", "args": {"city": "Paris"}}'), capabilities=capabilities)
    async with serving(fake) as url:
        settings = ModelSettings(provider="ollama", base_url=url, effort="high")
        model = await open_model(settings, tmp_path)
        assert (model.info.tool_calling, model.info.facts.native_tools) == ("constrained", False)
        await model.close()
    assert fake.refusals == ["registry.ollama.ai/library/qwen3:8b does not support tools"]
    assert "format" in fake.bodies[-1]


async def test_the_window_grows_in_steps_and_never_shrinks() -> None:
    fake = FakeOllama(length=100_000)
    async with serving(fake) as url:
        model = model_at(url, window=100_000)
        for tokens in (100, 6000, 20_000, 30_000, 3000, 60_000, 100):
            await collect(model, asking(tokens))
        await model.close()
    assert windows(fake) == [32_768, 32_768, 32_768, 65_536, 65_536, 100_000, 100_000]
    assert fake.loads == [32_768, 65_536, 100_000]
    assert {body["keep_alive"] for body in fake.bodies} == {KEEP_ALIVE}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "layers", "loads"),
    [
        (40_960, 36, [32_768]),  # 4.5 GiB for the window
        (20_000, 36, [20_000]),
        (40_960, 36_000, [8192, 16_384, 32_768]),  # no machine of these tests has so much memory
    ],
)
async def test_an_agent_that_reads_files_has_the_model_loaded_once(length: int, layers: int, loads: list[int]) -> None:
    fake = FakeOllama(length=length, layers=layers)
    async with serving(fake) as url:
        model = model_at(url)
        for tokens in (2000, 5000, 9000, 11_000):  # a prompt, and a file read in each turn
            await collect(model, asking(tokens))
        await model.close()
    assert fake.loads == loads


@pytest.mark.parametrize(("loaded", "asked"), [(36_864, 36_864), (4096, 32_768), (65_536, 40_960)])
async def test_a_model_that_runs_already_is_not_loaded_anew(loaded: int, asked: int) -> None:
    fake = FakeOllama()
    fake.running = {"name": "qwen3:8b", "size": 9, "size_vram": 9, "context_length": loaded}
    async with serving(fake) as url:
        model = model_at(url)
        await collect(model, ASK)
        await model.close()
    assert windows(fake) == [asked]


async def test_the_window_is_what_fits_if_the_model_runs_partly_beside_the_gpu(tmp_path: Path) -> None:
    fake = FakeOllama()
    fake.running = {"name": "qwen3:8b", "size": 9, "size_vram": 5, "context_length": 16_384}
    async with serving(fake) as url:
        model = await open_model(ModelSettings(provider="ollama", base_url=url, tool_calling="native"), tmp_path)
        assert model.info.context_window == 16_384
        await model.close()


async def test_a_window_without_memory_is_an_overflow_and_not_asked_for_again() -> None:
    fake = FakeOllama(length=100_000, memory=40_000)
    async with serving(fake) as url:
        model = model_at(url, window=100_000)
        await collect(model, asking(6000))
        with pytest.raises(ContextOverflow, match="more system memory"):
            await collect(model, asking(40_000))
        assert model.info.context_window == 32_768
        await collect(model, asking(8000))
        await model.close()
    assert fake.loads == [32_768]


async def test_a_first_window_without_memory_is_halved_at_once() -> None:
    fake = FakeOllama(length=100_000, memory=20_000)
    async with serving(fake) as url:
        model = model_at(url, window=100_000)
        for tokens in (6000, 8000):
            await collect(model, asking(tokens))
        assert model.info.context_window == 16_384
        await model.close()
    assert (windows(fake), fake.loads) == ([32_768, 16_384, 16_384], [16_384])


async def test_a_model_that_does_not_load_at_all_is_told() -> None:
    fake = FakeOllama(memory=100)
    async with serving(fake) as url:
        model = model_at(url)
        with pytest.raises(ModelBusy, match="more system memory"):
            await collect(model, ASK)
        await model.close()


@pytest.mark.parametrize("parts", [1, 10])
async def test_a_prompt_that_is_cut_silently_is_noticed(parts: int) -> None:
    fake = FakeOllama(Said("Fine."), cuts=True)
    async with serving(fake) as url:
        model = model_at(url, window=16_384)
        with pytest.raises(ContextOverflow, match=r"has read \d+ tokens .* 16384.*model.contextWindow"):
            await collect(model, asking(25_000, parts=parts))
        await model.close()


async def test_a_cut_that_leaves_little_is_noticed_by_the_earlier_counts() -> None:
    fake = FakeOllama(cuts=True)
    async with serving(fake) as url:
        model = model_at(url, window=16_384)
        await collect(model, asking(7000))
        giant = [Message("user", "word " * 20_000), Message("assistant", "Hm.")]
        with pytest.raises(ContextOverflow):
            await collect(model, ModelRequest((*giant, *asking(7000).messages)))
        await model.close()


async def test_a_tokenizer_that_needs_more_than_we_think_is_noticed_and_the_window_grows() -> None:
    fake = FakeOllama(cuts=True)
    fake.chars_per_token = 1.2
    async with serving(fake) as url:
        model = model_at(url)
        with pytest.raises(ContextOverflow):
            await collect(model, asking(10_500))
        await collect(model, asking(2900))
        await collect(model, asking(2900))
        await model.close()
    assert windows(fake) == [32_768, 40_960, 40_960]


@pytest.mark.slow
@pytest.mark.parametrize("counts", ["full", "uncached", "omitted"])
async def test_no_false_alarm_whatever_a_version_counts(counts: str) -> None:
    """A conversation that grows until it fills the window to 96 percent."""
    fake = FakeOllama(cuts=True, counts=counts)
    async with serving(fake) as url:
        model = model_at(url, window=16_384)
        messages = [Message("system", "s")]
        while len(str(messages)) < 16_384 * 4 * 0.96:
            messages += [Message("user", "word " * 300), Message("assistant", "Well. " * 30)]
            await collect(model, ModelRequest((*messages, Message("user", "Go on."))))
        await model.close()
    assert len(fake.bodies) > 20


async def test_a_server_that_refuses_a_long_prompt_is_an_overflow() -> None:
    fake = FakeOllama()
    async with serving(fake) as url:
        model = model_at(url, window=16_384)
        with pytest.raises(ContextOverflow, match="input length exceeds"):
            await collect(model, asking(25_000))
        await model.close()


@pytest.mark.parametrize(
    ("name", "effort", "reasoning", "sent"),
    [
        ("qwen3:8b", "auto", True, None),
        ("qwen3:8b", "none", True, False),
        ("qwen3:8b", "low", True, True),
        ("qwen3:8b", "high", False, None),
        ("gpt-oss:20b", "medium", True, "medium"),
        ("gpt-oss:20b", "none", True, "low"),
    ],
)
async def test_effort(name: str, effort: str, reasoning: bool, sent: bool | str | None) -> None:
    fake = FakeOllama(model=name)
    async with serving(fake) as url:
        model = model_at(url, name=name, effort=effort, reasoning=reasoning)
        await collect(model, ModelRequest(ASK.messages, max_tokens=100))
        await model.close()
    body = fake.bodies[0]
    assert body.get("think") == sent
    assert body["options"]["num_predict"] == (100 if sent in (None, False) else 4196)


async def test_thinking_that_is_refused_is_left_out_from_then_on() -> None:
    fake = FakeOllama(capabilities=("completion", "tools"))
    async with serving(fake) as url:
        model = model_at(url, effort="high")
        for _ in range(2):
            await collect(model, ASK)
        await model.close()
    assert ["think" in body for body in fake.bodies] == [True, False, False]


async def test_calls_get_ids_that_are_the_same_for_the_same_conversation() -> None:
    said = Said("", "", (("read_file", {}), ("read_file", {"path": "b"}), ("todo", {"items": []})))
    fake = FakeOllama(said, said, said)
    async with serving(fake) as url:
        model = model_at(url)
        (_, one), (_, two) = await collect(model, ASK), await collect(model, ASK)
        _, other = await collect(model, ModelRequest((*ASK.messages, Message("user", "v")), tools=TOOLS))
        await model.close()
    assert [call.name for call in one.tool_calls] == ["read_file", "read_file", "todo"]
    assert one.tool_calls == two.tool_calls
    ids = [call.id for reply in (one, other) for call in reply.tool_calls]
    assert len(set(ids)) == 6


async def test_results_have_the_names_of_their_calls_and_a_name_with_a_dot_is_written_as_in_the_tools() -> None:
    fake = FakeOllama()
    call = ToolCall("git.log", {"n": 1}, "x")
    asked = (*ASK.messages, Message("assistant", "", (call,)), Message("tool", "ok", (), "x"), Message("user", "?"))
    async with serving(fake) as url:
        model = model_at(url)
        await collect(model, ModelRequest(asked, tools=TOOLS, stop=("x",)))
        await model.close()
    assert fake.bodies[0]["messages"][3] == {"role": "tool", "content": "ok", "tool_name": "git__log"}
    assert fake.bodies[0]["options"]["stop"] == ["x"]


async def test_a_model_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    async with serving(FakeOllama()) as url:
        settings = ModelSettings(provider="ollama", base_url=url, name="llama9")
        with pytest.raises(ModelNotFound, match=r"`ollama pull llama9`.*qwen3:8b"):
            await open_model(settings, tmp_path)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([{"error": "an error was encountered while running the model: CUDA error"}], ModelStreamBroken),
        ([{"message": {"content": "Half"}}, {"error": "context length exceeded"}], ContextOverflow),
        ([{"error": {"message": "unexpected EOF"}}], ModelStreamBroken),
    ],
)
async def test_errors_in_the_stream(lines: list[dict[str, Any]], kind: type[Exception]) -> None:
    fake = FakeOllama()
    fake.lines = lines
    async with serving(fake) as url:
        model = model_at(url)
        with pytest.raises(kind):
            await collect(model, ASK)
        await model.close()


@pytest.mark.parametrize(
    ("last", "text", "reason"),
    [
        ({"done": True, "done_reason": "length", "message": {"content": "Half"}}, "Half", "length"),
        ({"done": True, "done_reason": "load"}, "Then.", "stop"),  # the model was only loaded: asked again
        ({"done": True, "message": {"content": "Old."}}, "Old.", "stop"),
    ],
)
async def test_endings(last: dict[str, Any], text: str, reason: str) -> None:
    fake = FakeOllama(Said("Then."))
    fake.lines = [last]
    async with serving(fake) as url:
        model = model_at(url)
        _, reply = await collect(model, ASK)
        await model.close()
    assert (reply.text, reply.finish_reason) == (text, reason)


@pytest.mark.parametrize("value", [None, 0, "x", [], {}, [None], [{}], [{"function": None}], [{"function": {}}], True])
def test_a_line_of_any_other_shape_is_no_crash(value: Any) -> None:
    for line in ({"message": value}, {"message": {"tool_calls": value, "content": value, "thinking": value}}):
        for done in ({"done": value}, {"done": True, "done_reason": value, "prompt_eval_count": value}):
            assembler = Assembler(endpoint("http://127.0.0.1"), ModelInfo("m", "ollama"))
            with suppress(ModelError):
                assembler.feed(as_chat_chunk({**line, **done}))
                assembler.flush()
                assembler.finish(done_marker=False)


async def test_a_stream_that_ends_early_is_broken() -> None:
    class Cut(FakeOllama):
        def answer(self, asked: Asked) -> Answer:
            status, kind, body = super().answer(asked)
            return status, kind, body[: body.rindex(b"{")] if "chat" in asked.path else body

    async with serving(Cut(Said("Hello there."))) as url:
        model = model_at(url)
        with pytest.raises(ModelStreamBroken):
            await collect(model, ASK)
        await model.close()


async def test_a_key_is_sent_and_its_refusal_told() -> None:
    class Guarded(FakeOllama):
        def answer(self, asked: Asked) -> Answer:
            if "authorization" not in asked.headers:
                return 401, "application/json", b'{"error": "unauthorized"}'
            return super().answer(asked)

    async with serving(Guarded()) as url:
        model = model_at(url)
        with pytest.raises(ModelRejected, match="CODEAGENT_API_KEY"):
            await collect(model, ASK)
        await model.close()
