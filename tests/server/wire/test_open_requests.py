"""The client's open requests: one answer for each, whatever comes first."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from codeagent_lsp.server.wire.protocol_guard import OpenRequests


def opened() -> tuple[OpenRequests, list[bytes]]:
    sent: list[bytes] = []
    return OpenRequests(sent.append), sent


def test_the_first_answer_counts() -> None:
    requests, sent = opened()
    request = requests.add(1, "a")
    assert 1 in requests
    assert requests.answer(request, b"one")
    assert not requests.answer(request, b"two")
    assert not requests.answer_cancelled(request)
    assert (sent, 1 in requests) == ([b"one"], False)


def test_a_late_answer_is_not_taken_for_a_new_request_with_the_same_id() -> None:
    requests, sent = opened()
    old = requests.add(1, "a")
    requests.cancel(1)
    new = requests.add(1, "b")
    assert not requests.answer(old, b"late")
    assert requests.answer(new, b"new")
    assert [json.loads(sent[0])["error"]["code"], sent[1]] == [-32800, b"new"]


def test_an_id_that_is_none_cancels_nothing() -> None:
    requests, sent = opened()
    requests.add(1, "a")
    odd: tuple[Any, ...] = (None, True, [], {}, 2, "1")
    for identity in odd:
        requests.cancel(identity)
    assert sent == []


async def test_all_but_the_caller_are_cancelled() -> None:
    requests, sent = opened()
    asking, other, waiting_for_nothing = (requests.add(number, "a") for number in (1, 2, 3))
    other.task = asyncio.ensure_future(asyncio.sleep(60))

    async def handler() -> None:
        requests.cancel_others()

    asking.task = asyncio.ensure_future(handler())
    await asyncio.wait([asking.task, other.task])
    assert other.task.cancelled() and not asking.task.cancelled()
    assert [json.loads(body)["id"] for body in sent] == [2]
    assert 1 in requests and waiting_for_nothing.id in requests
