"""Servers on this machine: several kinds at once, slow and foreign ones, and what is remembered of them."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelBusy, ModelError, ModelNotFound, ModelRejected, ModelTimeout
from codeagent_lsp.llm import factory, survey
from codeagent_lsp.llm.factory import Surroundings, list_models, open_model
from codeagent_lsp.llm.model import ModelRequest
from codeagent_lsp.llm.survey import PORTS, PROBE_SECONDS, find_servers
from codeagent_lsp.messages import Message
from tests.faults import model_server as rig
from tests.faults.model_server import ModelServer, Script, delta
from tests.llm.support import collect

WEATHER = delta(calls=[{"index": 0, "id": "1", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}])
NATIVE = rig.stream(WEATHER, delta(finish="tool_calls"))
PROPS = rig.status(200, json.dumps({"default_generation_settings": {"n_ctx": 4096}, "model_path": "/m/coder.gguf"}))

KINDS: dict[str, Script] = {
    "llamacpp": rig.by_path(props=PROPS, v1_models=rig.models(["coder"], meta={"n_ctx_train": 32768})),
    "ollama": rig.by_path(v1_models=rig.models(["qwen2.5-coder:1.5b", "llama3.2:latest"], owned_by="library")),
    "lmstudio": rig.by_path(v1_models=rig.models(["text-embedding-nomic", "qwen-coder"], object="model")),
    "vllm": rig.by_path(v1_models=rig.models(["Qwen/Qwen2.5-Coder-7B"], max_model_len=16384)),
}


class Machine:
    """Servers of several kinds that run at the same time."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.servers: dict[str, ModelServer] = {}
        self._stack = stack

    async def start(self, kind: str, get: Script, *posts: Script) -> ModelServer:
        server = await self._stack.enter_async_context(rig.model_server(*(posts or (NATIVE,)), get=get))
        self.servers[kind] = server
        return server

    @property
    def around(self) -> Surroundings:
        return Surroundings(ports={kind: server.port for kind, server in self.servers.items()}, embedded=False)


@pytest.fixture
async def stack() -> Any:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All servers here answer, on a busy machine not all within the usual time."""
    monkeypatch.setattr(survey, "PROBE_SECONDS", 20.0)


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
async def test_all_kinds_are_found_at_once_in_order(stack: AsyncExitStack) -> None:
    machine = Machine(stack)
    for kind, get in KINDS.items():
        await machine.start(kind, get)
    found = await find_servers(machine.around.ports)
    assert [server.kind for server in found] == list(KINDS) == list(PORTS)
    assert [server.is_llamacpp for server in found] == [True, False, False, False]
    assert found[1].models == ("qwen2.5-coder:1.5b", "llama3.2:latest")
    names = await list_models(ModelSettings(), around=machine.around)
    assert names == [name for server in found for name in server.models]


@pytest.mark.parametrize(
    ("kind", "name", "window", "provider"),
    [
        ("llamacpp", "coder", 4096, "llamacpp"),
        ("ollama", "qwen2.5-coder:1.5b", 8192, "openai"),
        ("lmstudio", "qwen-coder", 8192, "openai"),
        ("vllm", "Qwen/Qwen2.5-Coder-7B", 16384, "openai"),
    ],
)
async def test_each_kind_alone(
    stack: AsyncExitStack, tmp_path: Path, kind: str, name: str, window: int | None, provider: str
) -> None:
    machine = Machine(stack)
    await machine.start(kind, KINDS[kind])
    model = await open_model(ModelSettings(), tmp_path, around=machine.around)
    stack.push_async_callback(model.close)
    assert (model.info.name, model.info.context_window, model.info.provider) == (name, window, provider)
    assert model.info.tool_calling == "native"


@pytest.mark.slow
@pytest.mark.parametrize("broken", [rig.then_hang(), rig.then_hang(rig.head()), rig.endless(b" ", first=rig.head())])
async def test_a_server_that_hangs_holds_nobody_up(stack: AsyncExitStack, broken: Script) -> None:
    machine = Machine(stack)
    await machine.start("llamacpp", broken)
    await machine.start("ollama", KINDS["ollama"])
    begun = time.monotonic()
    found = await find_servers(machine.around.ports)
    assert [server.kind for server in found] == ["ollama"]
    assert time.monotonic() - begun < PROBE_SECONDS + 1


@pytest.mark.parametrize(
    "foreign",
    [
        rig.status(200, "<html>hello</html>", "text/html"),
        rig.status(200, "{}"),
        rig.status(200, "[]"),
        rig.status(200, '{"data": []}'),
        rig.status(200, '{"data": [{"id": 3}, {"name": "x"}, "y"]}'),
        rig.status(200, '{"data": {"id": "x"}}'),
        rig.status(200, "[" * 60_000),
        rig.status(401, "{}"),
        rig.status(500, "oops", "text/plain"),
        rig.raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
        rig.raw(b""),
        rig.then_reset(b""),
        rig.status(302, "", location="http://127.0.0.1:9/"),
    ],
)
async def test_other_programs_on_these_ports_are_no_models(stack: AsyncExitStack, foreign: Script) -> None:
    machine = Machine(stack)
    await machine.start("llamacpp", foreign)
    assert await find_servers(machine.around.ports) == []


@pytest.mark.usefixtures("patient")
async def test_asking_around_never_sends_the_key(stack: AsyncExitStack, tmp_path: Path) -> None:
    machine = Machine(stack)
    server = await machine.start("ollama", KINDS["ollama"])
    await list_models(ModelSettings(api_key="test-" + "z" * 20), around=machine.around)
    assert server.asked
    assert not any("authorization" in asked.headers for asked in server.asked)


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
async def test_the_name_in_the_settings_chooses_the_server(stack: AsyncExitStack, tmp_path: Path) -> None:
    machine = Machine(stack)
    for kind, get in KINDS.items():
        await machine.start(kind, get)
    settings = ModelSettings(name="qwen-coder")
    model = await open_model(settings, tmp_path, around=machine.around)
    stack.push_async_callback(model.close)
    assert model.info.url == machine.servers["lmstudio"].url
    only = ModelSettings(provider="llamacpp")
    model = await open_model(only, tmp_path, around=machine.around)
    stack.push_async_callback(model.close)
    assert model.info.url == machine.servers["llamacpp"].url


async def test_llamacpp_is_wanted_and_only_others_run(stack: AsyncExitStack, tmp_path: Path) -> None:
    machine = Machine(stack)
    await machine.start("ollama", KINDS["ollama"])
    with pytest.raises(ModelNotFound):
        await open_model(ModelSettings(provider="llamacpp"), tmp_path, around=machine.around)


@pytest.mark.slow
async def test_cancelling_the_search_leaves_nothing(stack: AsyncExitStack) -> None:
    machine = Machine(stack)
    await machine.start("llamacpp", rig.then_hang())
    before = asyncio.all_tasks()
    task = asyncio.create_task(find_servers(machine.around.ports))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.05)
    left = {item for item in asyncio.all_tasks() - before if "serve" not in repr(item)}
    assert not left


# --- what a model can do, asked once

SAYS = {
    "native": NATIVE,
    "object": rig.stream(delta('{"tool": "get_weather", "args": {"city": "Paris"}}'), delta(finish="stop")),
    "prose": rig.stream(delta("It rains."), delta(finish="stop")),
    "400": rig.error(400, "tools are not supported"),
    "422": rig.error(422, "extra fields: tools"),
    "500 of its parser": rig.error(500, "Failed to parse input at pos 1"),
    "window": rig.error(400, "exceeds the available context size"),
    "another tool": rig.stream(
        delta(calls=[{"index": 0, "id": "1", "function": {"name": "other", "arguments": "{}"}}]),
        delta(finish="tool_calls"),
    ),
    "no city": rig.stream(
        delta(calls=[{"index": 0, "id": "1", "function": {"name": "get_weather", "arguments": "{}"}}]),
        delta(finish="tool_calls"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("first", [name for name in SAYS if name not in ("native", "object")])
@pytest.mark.parametrize(("second", "mode"), [("object", "constrained"), ("prose", "text"), ("400", "text")])
async def test_the_first_mode_that_works_is_taken(tmp_path: Path, first: str, second: str, mode: str) -> None:
    async with rig.model_server(SAYS[first], SAYS[second], get=rig.models(["m"])) as server:
        model = await open_model(ModelSettings(base_url=server.url), tmp_path)
        await model.close()
    assert model.info.tool_calling == mode
    assert json.loads((tmp_path / factory.FILE).read_text()) == {f"{server.url} m": mode}


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (rig.error(401, "no"), ModelRejected),
        (rig.error(402, "pay"), ModelRejected),
        (rig.error(429, "busy", Retry_After="9999"), ModelBusy),
    ],
)
async def test_what_says_nothing_about_tools_is_not_remembered(
    tmp_path: Path, script: Script, kind: type[ModelError]
) -> None:
    async with rig.model_server(script, get=rig.models(["m"])) as server:
        with pytest.raises(kind):
            await open_model(ModelSettings(base_url=server.url), tmp_path)
    assert not (tmp_path / factory.FILE).exists()


@pytest.mark.slow
@pytest.mark.parametrize("said", [{"error": {"message": "Provider returned error"}}, {"choices": []}])
async def test_a_hiccup_at_the_first_question_does_not_take_the_tools_away_for_good(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    async with rig.model_server(rig.stream(said), get=rig.models(["m"])) as server:
        model = await open_model(ModelSettings(base_url=server.url), tmp_path)
        await model.close()
        assert model.info.tool_calling == "text"
    assert not (tmp_path / factory.FILE).exists()
    async with rig.model_server(NATIVE, get=rig.models(["m"])) as server:
        model = await open_model(ModelSettings(base_url=server.url), tmp_path)
        await model.close()
        assert model.info.tool_calling == "native"


@pytest.mark.slow
@pytest.mark.parametrize("code", [400, 403, 405, 501])
async def test_a_server_that_does_not_list_its_models_serves_the_one_that_is_named(tmp_path: Path, code: int) -> None:
    async with rig.model_server(NATIVE, get=rig.error(code, "not here")) as server:
        model = await open_model(ModelSettings(base_url=server.url, name="m"), tmp_path)
        await model.close()
        assert (model.info.name, model.info.tool_calling) == ("m", "native")
        with pytest.raises(ModelError):
            await open_model(ModelSettings(base_url=server.url), tmp_path)


async def test_a_wrong_key_is_told_although_the_model_is_named(tmp_path: Path) -> None:
    async with rig.model_server(NATIVE, get=rig.error(401, "no")) as server:
        with pytest.raises(ModelRejected, match="CODEAGENT_API_KEY"):
            await open_model(ModelSettings(base_url=server.url, name="m"), tmp_path)
        assert not server.chats


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["", "{", "[]", "3", '{"other": 1}', '{"URL m": "sorcery"}', "[" * 50_000, "\x00"])
async def test_a_damaged_memory_costs_one_question(tmp_path: Path, memory: str) -> None:
    async with rig.model_server(NATIVE, get=rig.models(["m"])) as server:
        (tmp_path / factory.FILE).write_text(memory.replace("URL", server.url))
        for _ in range(2):
            model = await open_model(ModelSettings(base_url=server.url), tmp_path)
            await model.close()
            assert model.info.tool_calling == "native"
        assert len(server.chats) == 1


async def test_each_model_is_remembered_by_itself(tmp_path: Path) -> None:
    async with rig.model_server(NATIVE, SAYS["400"], SAYS["object"], get=rig.models(["a", "b"])) as server:
        modes = []
        for name in ("a", "b", "a", "b"):
            model = await open_model(ModelSettings(base_url=server.url, name=name), tmp_path)
            await model.close()
            modes.append(model.info.tool_calling)
        assert modes == ["native", "constrained"] * 2
        assert len(server.chats) == 3
    assert os.listdir(tmp_path) == [factory.FILE], "no half-written file stays"  # noqa: PTH208 - quick


async def test_the_settings_need_no_question(tmp_path: Path) -> None:
    async with rig.model_server(rig.stream(), get=rig.models(["m"])) as server:
        for mode in ("native", "constrained", "text"):
            settings = ModelSettings(base_url=server.url, tool_calling=mode)
            model = await open_model(settings, tmp_path)
            await model.close()
            assert model.info.tool_calling == mode
        assert server.chats == []


@pytest.mark.parametrize("names", [["a", "b"], []])
async def test_a_hosted_list_is_the_users_choice(
    tmp_path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    async with rig.model_server(NATIVE, get=rig.models(names)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with pytest.raises(ModelNotFound) as caught:
            await open_model(ModelSettings(base_url="http://model.invalid", provider="openai"), tmp_path)
    assert all(name in str(caught.value) for name in names)


@pytest.mark.slow
async def test_a_configured_server_that_hangs_is_told_in_time(tmp_path: Path) -> None:
    async with rig.model_server(rig.then_hang(), get=rig.then_hang()) as server:
        task = asyncio.create_task(open_model(ModelSettings(base_url=server.url), tmp_path))
        await asyncio.sleep(0.2)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < PROBE_SECONDS


@pytest.mark.slow
async def test_a_configured_server_that_hangs_becomes_an_error(tmp_path: Path) -> None:
    async with rig.model_server(rig.then_hang(), get=rig.then_hang()) as server:
        begun = time.monotonic()
        with pytest.raises(ModelTimeout):
            await open_model(ModelSettings(base_url=server.url), tmp_path)
        assert time.monotonic() - begun < 7, "all questions are asked at once"


@pytest.mark.parametrize(
    "given",
    [
        "http://user:SECRET@127.0.0.1:1/v1",
        "http://SECRET@h",
        "http://h/v1?key=SECRET",
        "http://u:SECRET/x@h",
        "http://u:x@SECRET@h",
        "http://u:SECRET?a@h",
    ],
)
async def test_secrets_in_an_address_are_refused_and_not_shown(tmp_path: Path, given: str) -> None:
    secret = "test-" + "q" * 20
    for call in (
        open_model(ModelSettings(base_url=given.replace("SECRET", secret)), tmp_path),
        list_models(ModelSettings(base_url=given.replace("SECRET", secret))),
    ):
        with pytest.raises(ModelRejected) as caught:
            await call
        for text in (str(caught.value), caught.value.localized("zh-cn"), repr(caught.value)):
            assert secret not in text


async def test_the_url_of_a_model_holds_no_key(tmp_path: Path) -> None:
    key = "test-" + "w" * 20
    async with rig.model_server(NATIVE, rig.stream(), get=rig.models(["m"])) as server:
        model = await open_model(ModelSettings(base_url=server.url, api_key=key), tmp_path)
        assert key not in repr(model.info)
        await collect(model, ModelRequest((Message("user", "hi"),)))
        await model.close()
        assert all(asked.headers["authorization"] == f"Bearer {key}" for asked in server.asked)
    assert key not in (tmp_path / factory.FILE).read_text()
