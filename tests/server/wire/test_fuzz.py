"""Damaged frames by the thousand: the server neither ends nor falls silent, and no id is answered twice."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.clock import processor_seconds
from tests.server.loopback import Loopback
from tests.server.mutations import mutated_frame
from tests.server.rawclient import RawClient, frame

_EVERY = 50
SECONDS = 60.0  # a server that has fallen silent answers never


def _probe(number: int) -> bytes:
    return frame({"jsonrpc": "2.0", "id": f"probe {number}", "method": "test/echo", "params": [number]})


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """No log lines: some name parts of damaged frames, which another process of the test run could not read."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


async def _fuzz_in_process(frames: int, seed: int) -> None:
    rng, loop = random.Random(seed), Loopback()
    loop.initialize()
    for number in range(frames):
        damage = mutated_frame(rng)
        loop.feed(damage)
        if number % _EVERY:
            continue
        await asyncio.sleep(0.02 if number % 5000 == 0 else 0)
        loop.take()
        with processor_seconds(1):
            loop.feed(_probe(number))
        answers = [message for message in loop.take() if message.get("id") == f"probe {number}"]
        assert [answer["result"] for answer in answers] == [[number]], (seed, number, damage)
    assert loop.server.departure.code is None


def _fuzz_a_process(frames: int, seed: int) -> None:
    rng = random.Random(seed)
    with RawClient() as client:
        client.initialize()
        for number in range(frames):
            client.send_bytes(mutated_frame(rng))
            if number % _EVERY == 0:
                client.send_bytes(_probe(number))
                assert client.response(f"probe {number}", SECONDS)["result"] == [number]
                client.messages.clear()
        assert client.shutdown() == 0
        assert client.stray == b""


@pytest.mark.slow
async def test_two_thousand_damaged_frames() -> None:
    await _fuzz_in_process(2_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
async def test_a_hundred_thousand_damaged_frames(seed: int) -> None:
    await _fuzz_in_process(25_000, seed)


@pytest.mark.slow
def test_damaged_frames_over_real_pipes() -> None:
    _fuzz_a_process(3_000, seed=7)


@pytest.mark.slow
async def test_every_id_is_answered_once_amid_damage() -> None:
    rng, loop = random.Random(11), Loopback()
    loop.initialize()
    expected = set()
    for number in range(300):
        method, params = rng.choice([("test/echo", [1]), ("test/sleep", {"seconds": 0.001}), ("no/such", {})])
        loop.feed(mutated_frame(rng))
        identity = f"id {number}"
        loop.feed(frame({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}))
        expected.add(identity)
        if rng.random() < 0.3:
            loop.feed(frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": identity}}))
    await asyncio.sleep(0.1)
    answered = Counter(message.get("id") for message in loop.take())
    assert {identity: answered[identity] for identity in expected} == dict.fromkeys(expected, 1)
