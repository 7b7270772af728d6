"""Requests and answers of both sides over one connection, whatever the other side sends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from codeagent_lsp.language_servers.json_rpc import METHOD_NOT_FOUND, Identity, JsonRpcPeer, Refused, framed

ODD: tuple[Any, ...] = (None, True, 7, 1.5, "x", [], [1], {}, {"a": 1})


class Side(JsonRpcPeer):
    """One of two sides that are connected; it answers the method `double`, and only that."""

    other: Side

    def __init__(self) -> None:
        super().__init__(self._deliver, self._answer, lambda method, params: self.heard.append((method, params)))
        self.heard: list[tuple[str, Any]] = []
        self.sent: list[dict[str, Any]] = []

    def _deliver(self, body: bytes) -> None:
        self.sent.append(json.loads(body))
        self.other.take(self.sent[-1])

    def _answer(self, identity: Identity, method: str, params: Any) -> None:
        if method == "double":
            self.reply(identity, 2 * params)
        else:
            self.refuse(identity, METHOD_NOT_FOUND, method)


@pytest.fixture
def sides() -> tuple[Side, Side]:
    one, other = Side(), Side()
    one.other, other.other = other, one
    return one, other


def unanswered() -> JsonRpcPeer:
    """A side whose messages go nowhere."""
    return JsonRpcPeer(lambda body: None, lambda identity, method, params: None, lambda method, params: None)


async def test_both_sides_ask_under_the_same_numbers(sides: tuple[Side, Side]) -> None:
    one, other = sides
    with one.request("double", 2) as mine, other.request("double", 5) as theirs:
        assert mine.identity == theirs.identity
        assert (await mine.answer, await theirs.answer) == (4, 10)


async def test_an_error_is_raised_with_its_message(sides: tuple[Side, Side]) -> None:
    with sides[0].request("halve", 2) as asked, pytest.raises(Refused, match="halve"):
        await asked.answer


async def test_parameters_are_left_out_and_never_null(sides: tuple[Side, Side]) -> None:
    one, other = sides
    one.notify("exit", None)
    assert (one.sent, other.heard) == ([{"jsonrpc": "2.0", "method": "exit"}], [("exit", None)])


async def test_what_is_no_message_changes_nothing(sides: tuple[Side, Side]) -> None:
    one, other = sides
    with one.request("nobody answers", 1) as asked:
        one.sent.clear()
        for odd in ODD:
            one.take(odd)
            one.take({"jsonrpc": odd, "id": asked.identity, "result": 1})
            if isinstance(odd, str | None) or type(odd) is int:
                continue
            one.take({"jsonrpc": "2.0", "id": odd, "result": 1})
            one.take({"jsonrpc": "2.0", "id": odd, "method": "double", "params": 1})
            one.take({"jsonrpc": "2.0", "method": odd, "id": asked.identity, "result": 1})
        with pytest.raises(Refused):  # the answer of the other side, which came first
            await asked.answer
    assert (one.sent, one.heard, other.heard) == ([], [], [])


@pytest.mark.parametrize("error", ODD[1:])
async def test_an_error_of_any_shape_is_one(error: Any) -> None:
    one = unanswered()
    with one.request("double", 2) as asked:
        one.take({"jsonrpc": "2.0", "id": asked.identity, "error": error, "result": 1})
        with pytest.raises(Refused):
            await asked.answer


async def test_what_waits_fails_together_and_what_comes_later_is_ignored() -> None:
    one = unanswered()
    with one.request("a", 1) as first, one.request("b", 2) as second:
        one.fail(ConnectionError("gone"))
        one.take({"jsonrpc": "2.0", "id": first.identity, "result": 1})
        for asked in (first, second):
            with pytest.raises(ConnectionError, match="gone"):
                await asked.answer
    one.take({"jsonrpc": "2.0", "id": second.identity, "result": 1})
    assert second.answer.done()


async def test_a_request_that_is_cancelled_is_forgotten() -> None:
    one = unanswered()
    with pytest.raises(TimeoutError), one.request("a", 1) as asked:
        async with asyncio.timeout(0.01):
            await asked.answer
    one.take({"jsonrpc": "2.0", "id": asked.identity, "result": 1})
    assert asked.answer.cancelled()


def test_a_message_goes_with_its_length_in_bytes() -> None:
    assert framed("é".encode()) == b"Content-Length: 2\r\n\r\n\xc3\xa9"
