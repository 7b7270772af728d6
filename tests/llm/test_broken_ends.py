"""Replies that are whole although their stream does not end, and errors in place of a reply inside a success."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from codeagent_lsp.errors import ContextOverflow, ModelError, ModelRejected, ModelStreamBroken
from tests.faults import model_server as rig
from tests.faults.model_server import HELLO, Script, events, head
from tests.llm.asking import ask

pytestmark = pytest.mark.slow  # waits for time limits

WHOLE = events(*HELLO, done=False)


@pytest.mark.parametrize(
    "script",
    [
        rig.raw(head(Transfer_Encoding="chunked") + f"{len(WHOLE):x}\r\n".encode() + WHOLE + b"\r\n"),
        rig.raw(head(Content_Length="99999") + WHOLE),
        rig.then_reset(head() + WHOLE),
        rig.then_hang(head() + WHOLE),
        rig.endless(b": ping\n\n", first=head() + WHOLE),
    ],
    ids=["no last chunk", "too short", "reset", "hangs", "pings"],
)
async def test_a_reply_that_has_its_reason_to_stop_is_kept_although_its_stream_does_not_end(script: Script) -> None:
    outcome = await ask(script)
    assert outcome.error is None
    assert outcome.reply is not None and outcome.reply.text == outcome.text == "Hello"
    assert outcome.requests == 1


@pytest.mark.parametrize(
    ("said", "kind", "says"),
    [
        ({"code": 40102, "message": "insufficient balance"}, ModelRejected, "insufficient balance"),
        ({"detail": "the worker is gone"}, ModelStreamBroken, "the worker is gone"),
        ({"errors": [{"message": "no such region"}]}, ModelStreamBroken, "no such region"),
        ({"status": "error", "msg": "busy with updates"}, ModelStreamBroken, "busy with updates"),
        ({"message": "maximum context length is 4096 tokens"}, ContextOverflow, "4096"),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
async def test_an_error_in_place_of_a_reply_is_told_although_the_status_is_a_success(
    said: dict[str, Any], kind: type[ModelError], says: str, streamed: bool
) -> None:
    body = json.dumps(said)
    script = rig.raw(head() + b"event: error\n" + events(said)) if streamed else rig.status(200, body)
    outcome = await ask(script)
    assert type(outcome.error) is kind
    assert says in str(outcome.error)
    assert outcome.requests == (3 if kind is ModelStreamBroken else 1)


@pytest.mark.parametrize("code", [200, 404, 500])
async def test_a_body_that_is_compressed_twice_is_not_read(code: int) -> None:
    bomb = gzip.compress(gzip.compress(bytes(50_000_000), 9), 9)
    outcome = await ask(rig.status(code, bomb, Content_Encoding="gzip, gzip"))
    assert "nested compression" in str(outcome.error)
    assert outcome.requests == 1
