"""Every kind of fault at every moment of a stream: typed, helpful, without a call, a leak or the key."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelRejected,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
    ModelUnauthorized,
    ModelUnreachable,
)
from codeagent_lsp.llm.endpoint import TimeLimits
from tests.faults import model_server as rig
from tests.faults.model_server import Connection, Script, delta, events, head
from tests.llm.asking import KEY, Outcome, ask, ask_at

pytestmark = pytest.mark.slow  # waits for time limits

CALL = delta(calls=[{"index": 0, "id": "1", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}])
TIMINGS = {
    "before the first token": b"",
    "in the middle": events(delta("Hel"), delta("lo"), done=False),
    "at the end": events(delta("Hello"), CALL, done=False),
}
PATIENT = TimeLimits(0.5, 10.0, 10.0)
Play = Callable[[Connection, bytes], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """What follows the good part of a stream, and the error it must become; `first` before any token."""

    play: Play
    kind: type[ModelError]
    first: type[ModelError] | None = None
    limits: TimeLimits = TimeLimits(0.5, 0.4, 0.3)
    says: str = ""

    def at(self, timing: str) -> Script:
        async def play(connection: Connection) -> None:
            await self.play(connection, TIMINGS[timing])

        return play


def after(data: bytes = b"", opening: bytes = b"") -> Play:
    """The good part, these bytes, the end of the connection."""

    async def play(connection: Connection, good: bytes) -> None:
        await connection.send((opening or head()) + good + data)

    return play


def chunk(value: Any) -> Play:
    return after(events(value, done=False))


def error(message: str, **more: Any) -> Play:
    return chunk({"error": {"message": f"{message}; Authorization: Bearer {KEY}", **more}})


def finish(reason: str) -> Play:
    return chunk(delta(finish=reason))


async def reset(connection: Connection, good: bytes) -> None:
    await rig.then_reset(head() + good)(connection)


async def hang(connection: Connection, good: bytes) -> None:
    await rig.then_hang(head() + good)(connection)


def endless(piece: bytes, first: bytes = b"") -> Play:
    async def play(connection: Connection, good: bytes) -> None:
        await rig.endless(piece, first=head() + good + first)(connection)

    return play


async def half_of_its_length(connection: Connection, good: bytes) -> None:
    await connection.send(head(Content_Length=str(len(good) + 5000)) + good)


async def more_than_its_length(connection: Connection, good: bytes) -> None:
    await connection.send(head(Content_Length=str(len(good))) + good + events(delta(finish="stop")))


def transfer(chunks: bytes) -> Play:
    async def play(connection: Connection, good: bytes) -> None:
        whole = b"%x\r\n%s\r\n" % (len(good), good) if good else b""
        await connection.send(head(Transfer_Encoding="chunked") + whole + chunks)

    return play


async def broken_compression(connection: Connection, good: bytes) -> None:
    packed = gzip.compress(good + events(delta("x" * 3000), delta(finish="stop")))
    await connection.send(head(Content_Encoding="gzip") + packed[: len(packed) // 2] + b"\xff" * 40)


FAULTS = {
    "closed": Fault(after(), ModelStreamBroken, says="cut"),
    "reset": Fault(reset, ModelStreamBroken, says="cut"),
    "hangs": Fault(hang, ModelTimeout),
    "half an event": Fault(after(b'data: {"choices": [{"del'), ModelStreamBroken),
    "half a field name": Fault(after(b"dat"), ModelStreamBroken, says="cut"),
    "half a character": Fault(after('data: {"choices": [{"delta": {"content": "é'.encode()[:-1]), ModelStreamBroken),
    "an event that is no JSON": Fault(chunk("{nope}"), ModelStreamBroken, says="not JSON"),
    "an event nested too deeply": Fault(chunk('{"a":' * 50_000), ModelStreamBroken, limits=PATIENT),
    "other JSON": Fault(after(events("[]", "1", "null", '"x"', done=False)), ModelStreamBroken, says="cut"),
    "wrong types": Fault(
        after(events({"choices": 3}, {"choices": [3]}, delta(calls="x"), delta(calls=[3]), done=False)),
        ModelStreamBroken,
        says="cut",
    ),
    "an error": Fault(error("lost the GPU"), ModelStreamBroken, says="lost the GPU"),
    "an error as text": Fault(chunk({"error": f"lost it {KEY}"}), ModelStreamBroken, says="lost it"),
    "an error in a choice": Fault(
        chunk({"choices": [{"delta": {}, "error": {"message": "upstream"}, "finish_reason": "error"}]}),
        ModelStreamBroken,
        says="upstream",
    ),
    "an empty error object": Fault(chunk({"error": {"x": None}}), ModelStreamBroken, says="no reason"),
    "an error 429": Fault(error("slow down", code=429), ModelBusy, says="slow down"),
    "an error 503": Fault(error("overloaded", code="503"), ModelBusy, says="overloaded"),
    "an error 401": Fault(error("bad key", code=401), ModelUnauthorized, says="CODEAGENT_API_KEY"),
    "an error for quota": Fault(error("insufficient_quota", code=429), ModelRejected, says="credit"),
    "an error for the window": Fault(error("exceeds the available context size"), ContextOverflow, says="window"),
    "an error of its parser": Fault(error("Failed to parse input at pos 3"), ModelReplyInvalid, says="toolCalling"),
    "the content filter": Fault(finish("content_filter"), ModelRejected, says="content filter"),
    "finish reason error": Fault(finish("error"), ModelStreamBroken, says="cut"),
    "no resources": Fault(finish("insufficient_system_resource"), ModelStreamBroken, says="cut"),
    "shorter than its length": Fault(half_of_its_length, ModelStreamBroken),
    "longer than its length": Fault(more_than_its_length, ModelStreamBroken),
    "a cut chunk": Fault(transfer(b"5000\r\ndata: "), ModelStreamBroken),
    "a chunk size that is none": Fault(transfer(b"zzz\r\n"), ModelStreamBroken),
    "a chunk size below zero": Fault(transfer(b"-5\r\nabc\r\n"), ModelStreamBroken),
    "broken compression": Fault(broken_compression, ModelStreamBroken),
    "bytes that are no text": Fault(after(b"\xff\xfe\x00\x80\n\n"), ModelStreamBroken, says="cut"),
    "NUL bytes": Fault(after(b"\x00" * 4096), ModelStreamBroken, says="cut"),
    "another protocol": Fault(after(b"HTTP/1.1 500 X\r\n\r\n<html>"), ModelStreamBroken, says="cut"),
    "a line without end": Fault(endless(b"x" * 65536, b"data: "), ModelReplyInvalid, limits=PATIENT, says="maxTokens"),
    "text without end": Fault(endless(events(delta("y" * 99_000), done=False)), ModelReplyInvalid, limits=PATIENT),
    "thinking without end": Fault(
        endless(events(delta(reasoning_content="y" * 99_000), done=False)), ModelReplyInvalid, limits=PATIENT
    ),
    "arguments without end": Fault(
        endless(events(delta(calls=[{"index": 0, "function": {"arguments": "z" * 99_000}}]), done=False)),
        ModelReplyInvalid,
        limits=PATIENT,
    ),
}


def open_files() -> int:
    """Open descriptors of this process (Linux; 0 elsewhere)."""
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.is_dir() else 0  # noqa: PTH208 - only counted


async def settled(count: Callable[[], int], wanted: int) -> bool:
    for _ in range(100):
        if count() <= wanted:
            return True
        await asyncio.sleep(0.01)
    return False


def hide(outcome: Outcome) -> None:
    """The key is in nothing that can be shown, in any language, nor in what led to it."""
    link: BaseException | None = outcome.error
    assert outcome.error is not None
    for language in ("en", "zh-cn", "zh", "de", ""):
        assert KEY not in outcome.error.localized(language)
    while link is not None:
        assert KEY not in str(link) and KEY not in repr(link)
        link = link.__cause__


def test_there_are_enough_kinds() -> None:
    assert len(FAULTS) >= 25


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_in_the_stream(name: str, timing: str) -> None:
    fault = FAULTS[name]
    files, tasks = open_files(), len(asyncio.all_tasks())
    outcome = await ask(fault.at(timing), limits=fault.limits)
    assert type(outcome.error) is fault.kind, outcome.error
    assert fault.says in str(outcome.error)
    assert outcome.reply is None, "no call of a stream that was cut may run"
    assert outcome.requests == 1 or not outcome.text + outcome.reasoning
    assert outcome.seconds < 8
    assert outcome.error is not None
    assert outcome.error.localized("zh-cn") != str(outcome.error)
    hide(outcome)
    assert await settled(open_files, files), "a connection was left open"
    assert await settled(lambda: len(asyncio.all_tasks()), tasks), "a task was left"


@pytest.mark.parametrize("name", FAULTS)
async def test_what_was_shown_stays_and_is_not_asked_for_again(name: str) -> None:
    fault = FAULTS[name]
    outcome = await ask(fault.at("in the middle"), rig.stream(), limits=fault.limits)
    assert outcome.requests == 1
    assert outcome.error is not None
    assert outcome.text == "" if name == "broken compression" else outcome.text.startswith("Hel")


PASSING = [name for name, fault in FAULTS.items() if fault.kind in (ModelStreamBroken, ModelTimeout, ModelBusy)]


@pytest.mark.parametrize("name", PASSING)
async def test_a_passing_fault_before_the_first_token_is_survived(name: str) -> None:
    fault = FAULTS[name]
    outcome = await ask(fault.at("before the first token"), rig.stream(), limits=fault.limits)
    if name in ("broken compression", "a chunk size that is none", "a chunk size below zero"):
        assert outcome.error is not None or outcome.text == "Hello"
    else:
        assert outcome.text == "Hello", outcome.error
        assert outcome.requests == 2


STATUS_BODIES = [
    json.dumps({"error": {"message": f"no: {KEY}"}}),
    json.dumps({"error": f"Authorization: Bearer {KEY}"}),
    json.dumps({"detail": [{"msg": f"header {KEY}"}]}),
    f"plain {KEY} text",
    f"<html><title>{KEY}</title></html>",
    json.dumps({"headers": {"Authorization": f"Bearer {KEY}"}}),
    json.dumps({"message": f"sent basic {KEY}, x-api-key={KEY}"}),
]
STATUSES = (400, 401, 402, 403, 404, 405, 408, 409, 413, 422, 429, 500, 501, 502, 503, 504, 529)


@pytest.mark.parametrize("code", STATUSES)
async def test_no_status_and_no_body_shows_the_key(code: int) -> None:
    for body in STATUS_BODIES:
        outcome = await ask(rig.status(code, body))
        assert outcome.error is not None and outcome.reply is None
        hide(outcome)
    again = code in (408, 409, 429, 500, 502, 503, 504, 529)
    assert outcome.requests == (3 if again else 1)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_never_carries_the_key_elsewhere(code: int) -> None:
    async with rig.model_server(rig.stream()) as other:
        outcome = await ask(rig.status(code, "", location=f"{other.url}/v1/chat/completions"))
        assert isinstance(outcome.error, ModelRejected)
        assert other.asked == []


@pytest.mark.parametrize("code", [301, 308])
async def test_a_redirect_to_an_address_with_a_secret_does_not_show_it(code: int) -> None:
    outcome = await ask(rig.status(code, "", location=f"https://user:{KEY}@example.com/x?key={KEY}"))
    hide(outcome)


async def test_a_name_that_is_not_known_is_told_once() -> None:
    outcome = await ask_at("http://no-such-host.invalid", TimeLimits(connect=5, first=5))
    assert isinstance(outcome.error, ModelUnreachable | ModelTimeout | ModelStreamBroken | ModelRejected)
    hide(outcome)


async def test_a_server_without_tls_is_told() -> None:
    async with rig.model_server(rig.stream()) as server:
        outcome = await ask_at(server.url.replace("http:", "https:"))
    assert isinstance(outcome.error, ModelUnreachable | ModelStreamBroken | ModelTimeout)
    hide(outcome)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"])
async def test_loopback_never_goes_over_a_proxy(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig.model_server(rig.status(502, "proxy")) as proxy:
        monkeypatch.setenv(variable, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert (await ask(rig.stream())).text == "Hello"
        assert proxy.asked == []


async def test_another_host_does_go_over_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig.model_server(rig.stream()) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        outcome = await ask_at("http://model.invalid")
        assert outcome.text == "Hello"
        assert proxy.chats[0].line.startswith("POST http://model.invalid/v1/")


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
async def test_a_proxy_that_cannot_be_used_is_told(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "nonsense://h")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ModelUnreachable):
        await ask_at("http://model.invalid")
