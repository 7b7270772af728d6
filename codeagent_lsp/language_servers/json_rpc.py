"""One side of a JSON-RPC connection as LSP has it: requests both ways and notifications, in plain JSON.

Messages stay plain: a server that writes something slightly wrong must not lose its whole answer. Not here: the process
at the other end and the reading of its bytes (`server_connection.py`, `lsp_client/connection.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple, TypeAlias

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800

Identity: TypeAlias = int | str
"""The id of a request."""


class Refused(Exception):
    """Raised if the other side answers a request with an error; the message is that of the error, '' if it has none."""


class Asked(NamedTuple):
    """A request that was sent: its id and the answer to come, which raises Refused for an error."""

    identity: Identity
    answer: asyncio.Future[Any]


class JsonRpcPeer:
    """The messages of one connection. `write` sends the JSON of one; `requested` is called with the id, method and
    parameters of each request of the other side, to be answered by `reply` or `refuse`, `notified` with each
    notification.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        requested: Callable[[Identity, str, Any], None],
        notified: Callable[[str, Any], None],
    ) -> None:
        self._write = write
        self._requested = requested
        self._notified = notified
        self._ids = count(1)
        self._waiting: dict[Identity, asyncio.Future[Any]] = {}

    @contextmanager
    def request(self, method: str, params: Any) -> Iterator[Asked]:
        """Send a request and yield it as `Asked`, whose answer is awaited within the context; one that comes after its
        end is ignored. There is no time limit here.
        """
        asked = Asked(next(self._ids), asyncio.get_running_loop().create_future())
        self._waiting[asked.identity] = asked.answer
        try:
            self._send(id=asked.identity, method=method, params=params)
            yield asked
        finally:
            self._waiting.pop(asked.identity, None)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification, to which there is no answer; `params` None are left out."""
        self._send(method=method, params=params)

    def reply(self, identity: Identity, result: Any) -> None:
        """Answer the other side's request with this id by `result`, plain JSON."""
        self._send(id=identity, result=result)

    def refuse(self, identity: Identity, code: int, message: str) -> None:
        """Answer the other side's request with this id by an error with a code of JSON-RPC 2.0, such as -32601 for an
        unknown method.
        """
        self._send(id=identity, error={"code": code, "message": message})

    def take(self, message: Any) -> None:
        """Handle a parsed message of the other side: settle an answer, or call `requested` or `notified`; nothing for
        what is no message of JSON-RPC 2.0.
        """
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return
        method, identity = message.get("method"), message.get("id")
        if isinstance(identity, bool):  # True would be found as 1
            return
        if isinstance(method, str) and identity is None:
            self._notified(method, message.get("params"))
        elif isinstance(method, str) and isinstance(identity, Identity):
            self._requested(identity, method, message.get("params"))
        elif method is None and isinstance(identity, Identity):
            self._settle(identity, message.get("result"), message.get("error"))

    def fail(self, error: Exception) -> None:
        """Fail all requests that wait for an answer with `error`, as none comes any more."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(error)

    def _settle(self, identity: Identity, result: Any, error: Any) -> None:
        answer = self._waiting.get(identity)
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(Refused(str(error.get("message", "")) if isinstance(error, dict) else ""))

    def _send(self, **message: Any) -> None:
        # JSON-RPC lets `params` be left out, but not be null.
        if message.get("params", 0) is None:
            del message["params"]
        self._write(json.dumps({"jsonrpc": "2.0", **message}).encode())


def framed(body: bytes) -> bytes:
    """Return a message with the header that goes before it (`Content-Length`, as the base protocol of LSP has it)."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
