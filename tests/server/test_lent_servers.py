"""Questions to the client's other language servers: only where lent, only for the text that is there, bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.language_servers.answers import ServerAnswer
from codeagent_lsp.protocol import LENT_METHODS, LSP_METHOD
from codeagent_lsp.server import run_services
from codeagent_lsp.server.clients import ClientPolicy, policy_of
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.run_services import LentServers
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.workspace.text.document import Change, Document
from tests.server.rawclient import NO_ANSWER, RawClient, Refusal

URI = "file:///w/a.py"
HOVER = "textDocument/hover"
PARAMS = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
LENDING = {"experimental": {"codeagent": {"lsp": True}}}


class Wire:
    """A server with one open document, and a client that answers as told."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.documents = Documents("utf-16")
        self.documents.open(Document(URI, "x = 1\n", 0))
        self.requests: list[tuple[str, Any, float]] = []
        self._answer = answer

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        self.requests.append((method, params, seconds))
        await asyncio.sleep(0)
        return self._answer()


def connected(answer: Any, *, lends: bool = True) -> tuple[Wire, LentServers]:
    wire = Wire(answer if callable(answer) else lambda: answer)
    return wire, LentServers(Client(cast("CodeAgentServer", wire), policy=ClientPolicy(lsp=lends)))


def entry(result: Any = 1, server: Any = "pyright", **more: Any) -> dict[str, Any]:
    return {"server": server, "result": result, **more}


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


async def test_answers() -> None:
    wire, servers = connected([entry({"contents": "ä"}), entry([], "gopls", positionEncoding="utf-8")])
    assert await servers.ask(URI, HOVER, PARAMS) == (
        ServerAnswer("pyright", {"contents": "ä"}, "utf-16", lent=True),
        ServerAnswer("gopls", [], "utf-8", lent=True),
    )
    assert wire.requests == [(LSP_METHOD, {"uri": URI, "method": HOVER, "params": PARAMS}, 3.0)]


async def test_a_file_that_is_not_open_may_be_asked_about() -> None:
    _, servers = connected([entry()])
    assert len(await servers.ask("file:///w/closed.py", HOVER, PARAMS)) == 1


@pytest.mark.parametrize(
    "method", ["workspace/executeCommand", "workspace/applyEdit", "textDocument/didSave", "shutdown", "", "hover"]
)
async def test_only_questions_are_asked(method: str) -> None:
    wire, servers = connected([entry()])
    assert await servers.ask(URI, method, PARAMS) == ()
    assert not wire.requests
    assert method not in LENT_METHODS


async def test_only_where_lent() -> None:
    wire, servers = connected([entry()], lends=False)
    assert await servers.ask(URI, HOVER, PARAMS) == ()
    assert not wire.requests


@pytest.mark.parametrize("change", ["typed", "closed", "opened again"])
async def test_an_answer_about_another_text_is_none(change: str) -> None:
    wire, servers = connected([entry()])
    asking = asyncio.ensure_future(servers.ask(URI, HOVER, PARAMS))
    await asyncio.sleep(0)
    assert wire.requests
    if change == "typed":
        wire.documents.change(URI, 1, [Change("new")])
    else:
        wire.documents.close(URI)
        if change == "opened again":
            wire.documents.open(Document(URI, "other\n", 0))
    assert await asking == ()


async def test_a_file_that_is_opened_meanwhile() -> None:
    wire, servers = connected([entry()])
    wire.documents.close(URI)
    asking = asyncio.ensure_future(servers.ask(URI, HOVER, PARAMS))
    await asyncio.sleep(0)
    wire.documents.open(Document(URI, "as on disk\n", 0))
    assert len(await asking) == 1


async def test_a_client_that_fails_or_is_silent() -> None:
    def fail() -> Any:
        raise EditorError("editor.timeout", method=LSP_METHOD, seconds="3")

    _, servers = connected(fail)
    assert await servers.ask(URI, HOVER, PARAMS) == ()


@pytest.mark.parametrize("answer", [None, 1, "x", {}, [], entry(), {"server": "x"}, [[entry()]], True])
async def test_answers_of_another_shape_are_none(answer: Any) -> None:
    _, servers = connected(answer)
    assert await servers.ask(URI, HOVER, PARAMS) == ()


@pytest.mark.parametrize(
    "bad",
    [
        None, 1, [], {}, {"server": "x"}, {"result": 1}, entry(None), entry(server=1), entry(server=""),
        entry(server="\x00\n\u202e"), entry(positionEncoding="utf-7"), entry(positionEncoding=8),
        entry(positionEncoding=["utf-8"]), entry(nested(101)), entry(nested(5000)), entry([0] * 100_001),
        entry("x" * (2 * 1024 * 1024 + 1)), entry({"k" * (2 * 1024 * 1024 + 1): 1}), entry(["x" * 1024] * 2049),
    ],
)  # fmt: skip
async def test_entries_that_are_none_are_passed_over(bad: Any) -> None:
    _, servers = connected([bad, entry(0)])
    assert await servers.ask(URI, HOVER, PARAMS) == (ServerAnswer("pyright", 0, "utf-16", lent=True),)


@pytest.mark.parametrize(
    "large", [nested(99), [0] * 99_999, "x" * (2 * 1024 * 1024), {"a": "ä" * 1024 * 1024}, [[[]] * 49_999]]
)
async def test_large_results_that_are_within_the_limits(large: Any) -> None:
    _, servers = connected([entry(large)])
    assert [answer.result for answer in await servers.ask(URI, HOVER, PARAMS)] == [large]


async def test_a_flood_of_answers_is_cut_and_costs_little() -> None:
    _, servers = connected([{"server": "bad"}] * 10 + [entry(server=f"s{number}") for number in range(100_000)])
    began = time.thread_time()
    found = await servers.ask(URI, HOVER, PARAMS)
    assert [answer.server for answer in found] == [f"s{number}" for number in range(8)]
    assert time.thread_time() - began < 0.5


async def test_names_are_printable_and_short() -> None:
    _, servers = connected([entry(server="a\x1b[31m\nb"), entry(server="n" * 1000), entry(server=" 服务 ")])
    found = await servers.ask(URI, HOVER, PARAMS)
    assert [answer.server for answer in found] == ["a[31mb", "n" * 100, "服务"]


async def test_commands_are_dropped_from_code_actions() -> None:
    edit: dict[str, Any] = {"changes": {URI: []}}
    command = {"title": "Run", "command": "rm"}
    actions = [
        {"title": "both", "edit": edit, "command": command},
        {"title": "only a command", "command": command},
        command,
        {"title": "to be resolved", "data": 7, "command": command},
        {"title": "nothing"},
        {"title": "null", "edit": None},
        None,
        "x",
    ]
    _, servers = connected([entry(actions), entry("x"), entry({"title": "t", "edit": edit})])
    (answer,) = await servers.ask(URI, "textDocument/codeAction", PARAMS)
    assert answer.result == [{"title": "both", "edit": edit}, {"title": "to be resolved", "data": 7}]


@pytest.mark.parametrize(
    ("resolved", "kept"),
    [
        (
            {"title": "t", "edit": {"changes": {}}, "command": {"command": "rm"}},
            {"title": "t", "edit": {"changes": {}}},
        ),
        ({"title": "t", "command": {"command": "rm"}}, None),
        ({"title": "t", "data": 1}, None),
        ([], None),
    ],
)
async def test_a_resolved_action_is_an_edit_or_nothing(resolved: Any, kept: Any) -> None:
    _, servers = connected([entry(resolved)])
    found = await servers.ask(URI, "codeAction/resolve", {"title": "t", "data": 1})
    assert [answer.result for answer in found] == ([] if kept is None else [kept])


def test_limits_are_those_that_are_promised() -> None:
    limits = (
        run_services.MAX_ANSWERS,
        run_services.MAX_NAME,
        run_services.MAX_CHARACTERS,
        run_services.MAX_NODES,
    )
    assert limits == (8, 100, 2 * 1024 * 1024, 100_000)


@pytest.mark.parametrize(
    ("announced", "expected"), [(True, True), (False, False), (None, False), (1, False), ("yes", False), ({}, False)]
)
def test_the_client_must_announce_it(announced: Any, *, expected: bool) -> None:
    capabilities = types.ClientCapabilities(experimental={"codeagent": {"lsp": announced}})
    assert policy_of(types.InitializeParams(capabilities=capabilities)).lsp is expected


# --- through the real server, with the real converter of messages

Reply = Callable[[Any], Any]


def asked(capabilities: dict[str, Any], reply: Reply | None, seconds: float = 3.0) -> tuple[Any, list[Any]]:
    """What the server makes of a client's reply, and the questions that the client got."""
    questions: list[Any] = []

    def answer(params: Any) -> Any:
        questions.append(params)
        return reply(params) if reply else NO_ANSWER

    with RawClient(answers={LSP_METHOD: answer}) as client:
        client.initialize(capabilities=capabilities)
        given = {"uri": URI, "method": HOVER, "params": PARAMS, "seconds": seconds}
        return client.result("test/lent", given), questions


@pytest.mark.slow
def test_a_client_without_the_flag_is_never_asked() -> None:
    for capabilities in ({}, {"experimental": {"codeagent": {"diagnostics": True}}}, {"experimental": {"lsp": True}}):
        assert asked(capabilities, lambda params: [entry()]) == ([], [])


@pytest.mark.slow
def test_a_client_with_the_flag_is_asked() -> None:
    result = {"contents": {"kind": "markdown", "value": "ä"}, "range": None}
    found, questions = asked(LENDING, lambda params: [entry(result, positionEncoding="utf-32")])
    assert found == [["pyright", result, "utf-32"]]
    assert questions == [{"uri": URI, "method": HOVER, "params": PARAMS}]


@pytest.mark.slow
@pytest.mark.parametrize("reply", [None, lambda params: Refusal(-32601), lambda params: [entry(nested(900))]])
def test_a_hostile_client_gets_nothing(reply: Reply | None) -> None:
    began = time.monotonic()
    found, questions = asked(LENDING, reply, 0.3)
    assert (found, len(questions)) == ([], 1)
    assert time.monotonic() - began < 8
