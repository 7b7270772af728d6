"""The client's diagnostics by our own request: only where announced, only for the text that is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.protocol import DIAGNOSTICS_METHOD
from codeagent_lsp.server.clients import ClientPolicy, policy_of
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.run_services import SECONDS, ClientDiagnostics
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.tools.diagnostics.difference import MAX_ITEMS, Diagnostic
from codeagent_lsp.workspace.text.document import Change, Document

URI = "file:///w/a.py"
PATH = "/w/a.py"


class Wire:
    """A server with one open document, and a client that answers as told."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.documents = Documents("utf-16")
        self.documents.open(Document(URI, "x = 1\ns = '😀'; y\n", 0))
        self.requests: list[tuple[str, Any, float]] = []
        self._answer = answer

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        self.requests.append((method, params, seconds))
        await asyncio.sleep(0)
        return self._answer()


def connected(answer: Any, *, announced: bool = True) -> tuple[Wire, ClientDiagnostics]:
    wire = Wire(answer if callable(answer) else lambda: answer)
    policy = ClientPolicy(diagnostics=announced)
    return wire, ClientDiagnostics(Client(cast("CodeAgentServer", wire), policy=policy))


def item(line: Any = 0, character: Any = 0, **more: Any) -> dict[str, Any]:
    start = {"line": line, "character": character}
    return {"range": {"start": start, "end": start}, "message": "m", **more}


async def test_an_answer() -> None:
    wire, port = connected([item(1, 10, severity=1, source="pyright", code="reportX"), item(code=7)])
    assert await port.of(PATH) == (
        Diagnostic(PATH, 2, 10, "error", "m", "pyright", "reportX"),  # 😀 is two units and one character
        Diagnostic(PATH, 1, 1, "warning", "m", "", "7"),
    )
    assert wire.requests == [(DIAGNOSTICS_METHOD, {"uri": URI}, SECONDS)]


@pytest.mark.parametrize(("version", "counts"), [(0, True), (None, True), (1, False), ("0", False)])
async def test_the_version_must_be_the_one_that_is_open(version: Any, *, counts: bool) -> None:
    _, port = connected({"version": version, "diagnostics": [item()]})
    assert (await port.of(PATH) is not None) is counts


async def test_what_is_typed_meanwhile_makes_the_answer_old() -> None:
    wire, port = connected([item()])
    asking = asyncio.ensure_future(port.of(PATH))
    await asyncio.sleep(0)
    assert wire.requests
    wire.documents.change(URI, 1, [Change("new")])
    assert await asking is None


async def test_only_where_announced_and_open() -> None:
    wire, port = connected([item()], announced=False)
    assert await port.of(PATH) is None
    wire_too, port = connected([item()])
    assert await port.of("/w/closed.py") is None
    assert wire.requests == wire_too.requests == []


async def test_a_client_that_fails_or_is_silent() -> None:
    def fail() -> Any:
        raise EditorError("editor.timeout", method=DIAGNOSTICS_METHOD, seconds="3")

    _, port = connected(fail)
    assert await port.of(PATH) is None


@pytest.mark.parametrize("answer", [None, 1, "x", {}, {"diagnostics": None}, {"version": 0}])
async def test_answers_that_are_none(answer: Any) -> None:
    _, port = connected(answer)
    assert await port.of(PATH) is None


@pytest.mark.parametrize(
    "bad",
    [None, 1, {}, {"message": "m"}, {"range": {}, "message": "m"}, item(-1), item("0"), item(True), item(message=1)],
)
async def test_items_that_are_none_are_passed_over(bad: Any) -> None:
    _, port = connected([bad, item(99, 99, severity=9, source=1, code={"value": 1})])
    assert await port.of(PATH) == (Diagnostic(PATH, 3, 1, "warning", "m"),)


async def test_our_own_and_too_many_are_left_out() -> None:
    _, port = connected([item(source="codeagent")] + [item()] * 10_000)
    found = await port.of(PATH)
    assert found is not None and len(found) == MAX_ITEMS - 1


async def test_long_messages_are_cut() -> None:
    _, port = connected([item(message="x" * 10_000, source="s" * 1000)])
    found = await port.of(PATH)
    assert found is not None and (len(found[0].message), len(found[0].source)) == (2000, 100)


@pytest.mark.parametrize(("announced", "expected"), [(True, True), (False, False), (None, False)])
def test_the_client_must_announce_it(announced: Any, *, expected: bool) -> None:
    experimental = {"codeagent": {"diagnostics": announced}}
    capabilities = types.ClientCapabilities(experimental=experimental)
    assert policy_of(types.InitializeParams(capabilities=capabilities)).diagnostics is expected
