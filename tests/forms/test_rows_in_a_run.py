"""Rows of the table whose check is a small one, each once more in a real run: chains, codes, words of errors, settings,
a user's own tool, records.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import create_model

from codeagent_lsp import events
from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.environments.container_engine import Engine
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.records.mark import MARK
from codeagent_lsp.settings_layers import environment_layer, load
from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, OnOutput, Shell, no_output
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.registry import CircuitBreaker
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.tools.web.http import Fetcher
from codeagent_lsp.tools.web.scraping import Web
from codeagent_lsp.tools.web.web_tools import WebScrape
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from tests.faults import model_server as rig
from tests.faults.model_server import delta
from tests.forms.test_table import TABLE
from tests.server.replies import call as called
from tests.server.replies import say as said
from tests.server.stock_editor import STOCK, StockEditor
from tests.session.fakes import World, call, calls, say, world, write
from tests.tools.shells import FakeEnvironments, FakeShell
from tests.tools.web.net import PUBLIC, Net, answer, pages, server
from tests.tools.web.test_cache import redis_url  # noqa: F401 - a fixture

NATIVE = ModelInfo("m", "scripted", facts=window_known(100_000), tool_calling="native")


def rows(*kinds: str) -> Iterator[tuple[str, list[Any]]]:
    for row in TABLE:
        for check, *values in json.loads(row["shown by"] or "[]"):
            if check in kinds:
                yield row["form"], values


def settled(made: dict[str, Any]) -> Settings:
    settings, problems = load(made)
    assert problems == []
    return settings


class Source(Tool[Parameters]):
    """Gives a value, or fails with an error."""

    traits: ClassVar[ToolTraits] = ToolTraits("source", "For tests.", "read")
    parameters = Parameters

    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self.value, self.error = value, error

    async def run(self, arguments: Parameters, context: ToolContext) -> ToolOutput:
        if self.error is not None:
            raise self.error
        return ToolOutput("a value", self.value)


class Sink(Tool[Any]):
    """Keeps its arguments."""

    traits: ClassVar[ToolTraits] = ToolTraits("sink", "For tests.", "read")
    parameters: ClassVar[type[Any]]

    def __init__(self, *names: str) -> None:
        fields: Any = dict.fromkeys(names, (Any, ...))
        type(self).parameters = create_model("Given", __base__=Parameters, **fields)
        self.got: dict[str, Any] = {}

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        self.got = arguments.model_dump()
        return ToolOutput("kept")


async def done(folder: Path, *replies: ScriptedReply, tools: tuple[Tool[Any], ...] = (), **more: Any) -> World:
    made = world(folder / "ws", deadline=0.2, **more)
    for tool in tools:
        registry = made.manager._services.registry
        if tool.traits.name in registry.names():
            registry.unregister(tool.traits.name)
        registry.register(tool)
    made.models["model"] = ScriptedModel([*replies, *[say("Done.")] * 4], info=NATIVE)
    await made.run("look at it")
    return made


def results(made: World) -> list[dict[str, Any]]:
    return [events.to_dict(event) for event in made.of(events.ToolFinished)]


@pytest.mark.slow
async def test_steps_of_a_chain_take_what_the_table_says(tmp_path: Path) -> None:
    tried = []
    for number, (form, (value, *take, wanted)) in enumerate(rows("at", "chain", "fitted")):
        way: dict[str, Any] = take[0] if take and isinstance(take[0], dict) else {"extract_path": take[0]}
        names = tuple(wanted) if "field_mapping" in way else ("value",)
        sink = Sink(*names)
        chain = call("compose", steps=[{"tool": "source"}, {"tool": "sink", "take": way}])
        made = await done(tmp_path / str(number), calls(chain), tools=(Source(value), sink))
        assert results(made)[-1]["success"], (form, results(made))
        assert sink.got == (wanted if "field_mapping" in way else {"value": wanted}), form
        tried.append(form)
    assert set(tried) == {"3.01", "3.02", "3.03", "3.04"}


@pytest.mark.slow
async def test_every_code_comes_with_its_type(tmp_path: Path) -> None:
    known = {code: kind for _, (types,) in rows("types") for code, kind in types.items()}
    for number, code in enumerate({name for _, names in rows("codes") for name in names}):
        failing = Source(error=ToolFailed("It says no.", ErrorCode(code)))
        made = await done(tmp_path / str(number), calls(call("source")), tools=(failing,))
        (told,) = results(made)
        assert (told["success"], told["error_code"]) == (False, code)
        assert told["error_type"] == known.get(code, told["error_type"])
        assert told["output"].startswith("[MCP Error] ") is code.startswith("MCP_"), code


@pytest.mark.slow
async def test_a_circuit_opens_after_as_many_failures_as_the_environment_says(tmp_path: Path) -> None:
    for number, (_, (variables, _)) in enumerate(rows("environment")):
        if (most := variables.get("CIRCUIT_FAILURE_THRESHOLD")) is None:
            continue
        settings = settled(environment_layer(variables))
        made = world(tmp_path / str(number) / "ws", deadline=0.2)
        registry = made.manager._services.registry
        registry.circuits = CircuitBreaker(lambda chosen=settings: chosen.circuit_breaker)  # type: ignore[misc]
        registry.register(Source(error=ToolFailed("no")))
        # Other calls between them: the same call with the same result again and again is going in circles.
        replies = [calls(call("source"), call("list_dir", path="." + "/." * at)) for at in range(int(most) + 1)]
        made.models["model"] = ScriptedModel([*replies, say("Done."), say("Done.")], info=NATIVE)
        await made.run("look at it")
        told = [result.get("error_code") for result in results(made) if result["tool"] == "source"]
        assert told == [*["EXECUTION_ERROR"] * int(most), "CIRCUIT_OPEN"], told


class _Asking(FakeShell):
    """Asks a container engine before each command."""

    def __init__(self, socket: str) -> None:
        super().__init__()
        self._socket = socket

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        await Engine(self._socket).get("/info")
        return await super().run(command, on_output)


class _Engines(FakeEnvironments):
    def __init__(self, socket: Path) -> None:
        super().__init__()
        self._socket = socket

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        return _Asking(str(self._socket))


@asynccontextmanager
async def engine(socket: Path, message: str) -> AsyncGenerator[None, None]:
    """A container engine that fails with these words."""
    body = json.dumps({"message": message}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_unix_server(serve, str(socket))
    try:
        yield
    finally:
        listener.close()
        await listener.wait_closed()


@pytest.mark.slow  # some fifteen runs
async def test_words_of_an_engine_become_the_code_of_the_call(tmp_path: Path) -> None:
    for number, (form, (words, code)) in enumerate(rows("words")):
        async with engine(tmp_path / f"e{number}", f"it said: {words}."):
            made = await done(
                tmp_path / str(number),
                calls(call("run_cmd", command="make")),
                environments=_Engines(tmp_path / f"e{number}"),
                settings=lambda base: replace(base, permissions=PermissionsSettings(allow=("run_cmd",))),
            )
        (told,) = results(made)
        assert told["error_code"] == code, (form, words, told)


async def test_keys_of_a_model_reach_its_server(tmp_path: Path) -> None:
    given = next(values[0] for form, values in rows("setting") if form == "10.01")
    reply = rig.stream(delta("Hello."), delta(finish="stop"))
    async with rig.model_server(reply, get=rig.models(["m"])) as server:
        settings = settled({**given, "base_url": f"{server.url}/v1", "model.toolCalling": "native"})
        made = world(tmp_path / "ws", settings=lambda base: settings)
        made.models["model"] = await open_model(settings.model, tmp_path)
        ended = await made.run("say hello")
        await made.models["model"].close()
    asked = json.loads(server.chats[-1].body)
    assert ended.status == "completed" and ended.summary == "Hello."
    assert (asked["model"], asked["temperature"]) == (given["model"], given["temperature"])
    assert given["max_tokens"] in (asked.get("max_tokens"), asked.get("max_completion_tokens"))


@pytest.mark.parametrize(
    ("mode", "path"), [("openai_compat", "/v1/chat/completions"), ("completion", "/apply-template")]
)
async def test_the_mode_of_the_api_decides_what_is_asked(tmp_path: Path, mode: str, path: str) -> None:
    properties = {"default_generation_settings": {"n_ctx": 32_768}, "model_path": "/m.gguf"}
    get = rig.by_path(props=rig.status(200, json.dumps(properties)), v1_models=rig.models(["coder"]))
    async with rig.model_server(rig.stream(delta("Hello."), delta(finish="stop")), get=get) as server:
        settings = settled({"api_mode": mode, "base_url": server.url, "model": {"provider": "llamacpp"}})
        made = world(tmp_path / "ws", settings=lambda base: settings)
        made.models["model"] = await open_model(settings.model, tmp_path)
        assert made.models["model"].info.api_mode == ("chat" if mode == "openai_compat" else mode)
        await made.run("say hello")
        await made.models["model"].close()
    # A text to complete is first made of the messages, by the server's own template.
    assert f" {path} " in server.chats[0].line


@pytest.mark.parametrize("planning", [True, False])
async def test_planning_is_offered_as_the_setting_says(tmp_path: Path, planning: bool) -> None:
    settings = settled({"enable_planning": planning})
    steps = [{"title": "a"}, {"title": "b"}]
    made = await done(tmp_path, calls(call("create_plan", goal="g", steps=steps)), settings=lambda base: settings)
    assert bool(made.of(events.PlanCreated)) is planning


async def test_what_is_confirmed_follows_the_settings(tmp_path: Path) -> None:
    ((_, (given, _)),) = [(form, values) for form, values in rows("setting") if form == "10.04"]
    settings = settled(given)
    replies = (calls(call("run_cmd", command="ls")), write("new.py", "x\n"))
    made = await done(tmp_path, *replies, settings=lambda base: settings)
    asked = [item.question.kind for item in made.user.shown]
    assert asked == ["approval"], "the command, and not the change"
    assert made.text("new.py") == "x\n"


async def test_a_small_model_has_twenty_calls(tmp_path: Path) -> None:
    made = world(tmp_path / "ws", deadline=0.2)
    small = ModelInfo("m", "scripted", facts=window_known(8192), tool_calling="native")
    replies = [calls(call("list_dir", path="." + "/." * at)) for at in range(30)]
    made.models["model"] = ScriptedModel(replies, info=small)
    await made.run("what is in here?")
    assert len(made.of(events.UsageReported)) == 20


@pytest.mark.slow
async def test_an_output_is_cut_where_the_setting_says(tmp_path: Path) -> None:
    given = next(values[0] for form, values in rows("setting") if form == "4.23")
    for settings, most in ((settled(given), 60_000), (settled({"tools": {"maxOutputBytes": 2000}}), 2000)):
        folder = tmp_path / str(most)
        (folder / "ws").mkdir(parents=True)
        (folder / "ws/a.txt").write_text("".join(f"{at:06} words\n" for at in range(1900)) * 4)
        made = await done(
            folder, calls(call("grep", pattern="words", path="a.txt")), settings=lambda base, chosen=settings: chosen
        )
        (told,) = results(made)
        assert len(told["output"].encode()) <= most + 500


OWN = """
from codeagent_lsp.own_tools import Tool


class Count(Tool):
    def __init__(self):
        super().__init__("count", "Counts words.", max_output_bytes=20)

    def get_parameters_schema(self):
        return {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}

    def validate_args(self, **arguments):
        return arguments["words"] != "none"

    async def execute(self, words):
        return self.truncate_output(f"{len(words.split())} words: {words}")
"""


@pytest.mark.slow  # a whole server
def test_a_users_class_and_the_records_of_its_call(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    tools = tmp_path / "state/tools"
    tools.mkdir(parents=True)
    (tools / "count.py").write_text(OWN)
    ((value, clean),) = [values for form, values in rows("masked") if form == "6.09"]
    kept = next(values[0] for form, values in rows("masked") if form == "6.10")
    secret = {name: "some value" for _, names in rows("hidden", "marked") for name in names}
    script = (
        said("Hi."),
        called("own.count", words="one two"),
        called("own.count", words="none"),
        called("own.count", words="word " * 30),
        called("own.count", words="x", given={**value, "kept": kept, "secrets": secret}),
        said("Counted."),
    )
    capabilities = {**STOCK, "experimental": {"codeagent": {"event": True}}}
    choose = lambda params: str(params["actions"][1]["title"])  # noqa: E731
    settings = {"trace": {"enabled": True}}
    with StockEditor(
        tmp_path / "ws", tmp_path / "state", script=script, capabilities=capabilities, choose=choose, settings=settings
    ) as editor:
        editor.run("codeagent.run", task="say hi")
        editor.wait_until(lambda: "own.count" in [row["name"] for row in editor.command("codeagent.tools.list")])
        editor.run("codeagent.run", task="count the words")
        told = [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_result"]
    assert "2 words: one two" in told[0]["output"] and not told[1]["success"]
    assert "(Output truncated at 20 bytes)" in told[2]["output"]
    (trace,) = tmp_path.rglob("trace.jsonl")
    lines = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    given = [call for line in lines for call in _given(line)]
    assert given, "the call is in the trace"
    for each in given:
        assert {name: each[name] for name in clean} == clean and each["kept"] == kept
        assert all(MARK.fullmatch(each["secrets"][name]) for name in secret), each


def _given(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the arguments of that name anywhere in a record."""
    if isinstance(data, dict):
        if isinstance(data.get("given"), dict):
            yield data["given"]
        for value in data.values():
            yield from _given(value)
    elif isinstance(data, list):
        for value in data:
            yield from _given(value)


@pytest.mark.slow  # two whole servers
@pytest.mark.parametrize("masked", [True, False])
def test_records_are_masked_as_the_environment_says(tmp_path: Path, masked: bool) -> None:
    assert any("TRACE_SANITIZE" in variables for _, (variables, _) in rows("environment"))
    secret = "Kj8" + "mPq2vXw9" * 2
    (tmp_path / "ws").mkdir()
    with StockEditor(
        tmp_path / "ws",
        tmp_path / "state",
        script=(said("Hi."), said("Hi.")),
        env={"TRACE_SANITIZE": str(masked).lower()},
        settings={"trace": {"enabled": True}},
    ) as editor:
        editor.run("codeagent.run", task=f"say hi, the password is {secret}")
    (trace,) = tmp_path.rglob("trace.jsonl")
    assert (secret in trace.read_text("utf-8")) is not masked


@pytest.mark.slow  # a whole server, with real commands
def test_an_output_beyond_its_limit_stops_a_command(tmp_path: Path) -> None:
    given = next(values[1] for form, values in rows("setting") if form == "2.42")
    assert list(given) == ["shell.maxOutputBytes"]
    capabilities = {**STOCK, "experimental": {"codeagent": {"event": True}}}
    for most in (4096, *given.values()):
        folder = tmp_path / str(most)
        (folder / "ws").mkdir(parents=True)
        with StockEditor(
            folder / "ws",
            folder / "state",
            script=(called("run_cmd", command="seq 1 5000; touch made"), said("Done."), said("Done.")),
            capabilities=capabilities,
            settings={"shell": {"maxOutputBytes": most}, "permissions": {"allow": ["run_cmd"]}},
        ) as editor:
            editor.run("codeagent.run", task="count to 5000 by a command")
            told = next(each for each in editor.notifications("codeagent/event") if each["type"] == "tool_result")
        assert told["success"] is (most > 4096), told
        assert (folder / "ws/made").exists() is (most > 4096)


@pytest.mark.slow  # a Redis server
async def test_what_one_run_has_read_of_the_web_is_in_the_cache_of_the_next(
    tmp_path: Path,
    redis_url: str,  # noqa: F811 - the fixture
) -> None:
    given = next(values[0] for form, values in rows("setting") if form == "10.07")
    cached = {"web": {**given["web"], "cacheUrl": redis_url, "allowedHosts": ["docs.example"]}}
    settings, net = settled(cached), Net({"docs.example": [[PUBLIC]]})
    async with server(pages({"/": answer("some words", media="text/plain")}), net, (PUBLIC, 80)) as asked:
        for number in range(2):
            web = WebScrape(Web(Fetcher(net.dialer), ""))
            scrape = calls(call("web_scrape", url="http://docs.example/"))
            made = await done(tmp_path / str(number), scrape, tools=(web,), settings=lambda base: settings)
            (told,) = results(made)
            assert told["success"] and "some words" in told["output"], told
    assert len(asked) == 1
