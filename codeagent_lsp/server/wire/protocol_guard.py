"""The dispatcher: every request of the client is answered exactly once, and nothing it sends ends the server.

A subclass of pygls' protocol that keeps its registry of features and commands and replaces the code between transport
and handlers: the state of the connection, cancelling, answering, requests to the client. Not here: what the built-in
methods do (`builtin_methods.py`), how errors are described (`failures.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcMethodNotFound
from pygls.protocol import LanguageServerProtocol

from codeagent_lsp.server.wire import failures
from codeagent_lsp.server.wire.client_requests import ClientRequests
from codeagent_lsp.server.wire.envelope import (
    INVALID_REQUEST,
    Malformed,
    Message,
    MessageId,
    Notification,
    Request,
    Response,
    is_id,
)
from codeagent_lsp.server.wire.handlers import Later, Outcome, run
from codeagent_lsp.server.wire.outgoing import Outgoing
from codeagent_lsp.server.wire.params import structure_params, structure_result
from codeagent_lsp.server.wire.served import Served

if TYPE_CHECKING:
    from cattrs import Converter


NOT_INITIALIZED = -32002
CANCELLED = -32800
REQUEST_SECONDS = 600.0  # the time limit of requests sent by `send_request`
_PASSING = frozenset({"codeagent/event", types.WINDOW_LOG_MESSAGE, types.TELEMETRY_EVENT, types.LOG_TRACE})

_log = logging.getLogger(__name__)


class Phase(Enum):
    """The state of a connection in its life cycle."""

    FRESH = auto()
    STARTING = auto()
    READY = auto()
    SHUT = auto()


@dataclass(eq=False, slots=True)
class _Flight:
    """A request that is being handled; `task` is None until its handler waits for something."""

    id: MessageId
    method: str
    task: asyncio.Task[None] | None = None


class GuardedProtocol(LanguageServerProtocol):
    """Handles messages and their answers, on the event loop; `notify` can be called from any thread."""

    _server: Served

    def __init__(self, server: Served, converter: Converter) -> None:
        self.phase = Phase.FRESH
        self.outgoing: Outgoing | None = None
        self.requests = ClientRequests(lambda method, result: structure_result(converter, method, result))
        self._flights: dict[MessageId, _Flight] = {}
        self._background: set[asyncio.Task[None]] = set()
        super().__init__(server, converter)

    def receive(self, message: Message) -> None:
        """Handle one message; never raises."""
        match message:
            case Request():
                self._request(message)
            case Notification():
                self._notification(message)
            case Response():
                self.requests.answer(message.id, message.raw)
            case Malformed():
                self._refuse(message.id, message.code, message.reason)

    async def request(self, method: str, params: Any, timeout: float) -> Any:  # noqa: ASYNC109
        """Send a request to the client and return the result as an LSP type. EditorError if it refuses or does not
        answer within `timeout` seconds.
        """
        identity, future = self._ask(method, params, timeout)
        try:
            return await asyncio.wrap_future(future)
        finally:
            self.requests.forget(identity)

    def notify(self, method: str, params: Any | None = None) -> None:
        """Send a notification. Queued progress reports are merged; events, logs and telemetry may be dropped from the
        queue.
        """
        plain = self._converter.unstructure(params)
        key, is_report = _progress_key(method, plain)
        self._send(
            _message(method=method, params=plain),
            merge=key if is_report else None,
            seal=None if is_report else key,
            passing=method in _PASSING,
        )

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: str | int | None = None,
    ) -> Future[Any]:
        """Send a request in pygls' own way, with an id of ours and a time limit of 10 minutes. Prefer `request`."""
        _, future = self._ask(method, params, REQUEST_SECONDS)
        if callback is not None:
            future.add_done_callback(lambda done: None if done.exception() else callback(done.result()))
        return future

    def cancel(self, identity: Any) -> None:
        """Answer a running request as cancelled at once, and stop its handler; a later result is dropped."""
        flight = self._flights.get(identity) if is_id(identity) else None
        if flight is not None and self._settle(flight, _cancelled(flight)) and flight.task is not None:
            flight.task.cancel()

    def cancel_all(self) -> None:
        """Cancel every running request except the one whose handler calls this."""
        here = asyncio.current_task()
        for flight in tuple(self._flights.values()):
            if flight.task is not None and flight.task is not here:
                self.cancel(flight.id)

    def close(self) -> None:
        """Stop all handlers and end all requests to the client; the connection is gone."""
        for task in self._background:
            task.cancel()
        self.requests.close()

    def _request(self, request: Request) -> None:
        refusal = self._refusal(request)
        if refusal is not None:
            self._refuse(request.id, *refusal)
            return
        flight = self._flights[request.id] = _Flight(request.id, request.method)
        outcome = self._start(request.method, request.raw)
        if isinstance(outcome, Outcome):
            self._finish(flight, outcome)
        else:
            flight.task = self._spawn(self._finish_later(flight, outcome))

    def _notification(self, notification: Notification) -> None:
        method = notification.method
        if method == types.CANCEL_REQUEST:
            params = notification.raw.get("params")
            self.cancel(params.get("id") if isinstance(params, dict) else None)
        elif method == types.EXIT or self.phase is Phase.READY:
            outcome = self._start(method, notification.raw)
            if isinstance(outcome, Outcome):
                failures.log_failure(outcome.error, method)
            else:
                self._spawn(_log_later(outcome, method))

    def _refusal(self, request: Request) -> tuple[int, str] | None:
        """Return the error code and reason why a request is refused in this phase, or None."""
        if request.id in self._flights:
            return INVALID_REQUEST, "a request with this id is being worked on"
        if self.phase is Phase.SHUT:
            return INVALID_REQUEST, "the server is shutting down"
        if request.method == types.INITIALIZE:
            return None if self.phase is Phase.FRESH else (INVALID_REQUEST, "the server is initialized already")
        return None if self.phase is Phase.READY else (NOT_INITIALIZED, "the server is not initialized yet")

    def _start(self, method: str, raw: dict[str, Any]) -> Outcome | Later:
        """Find the handler of a message, convert its params and run it."""
        handler = self.fm.builtin_features.get(method) or self.fm.features.get(method)
        if handler is None:
            return Outcome(error=JsonRpcMethodNotFound.of(method[:100]))
        try:
            params = structure_params(self._converter, method, raw)
        except Exception as error:  # noqa: BLE001 (sent to the client)
            return Outcome(error=error)
        return run(handler, params, lambda: self._server.thread_pool)

    async def _finish_later(self, flight: _Flight, later: Later) -> None:
        try:
            self._finish(flight, await later.outcome())
        except asyncio.CancelledError:
            self._settle(flight, _cancelled(flight))
            raise

    def _finish(self, flight: _Flight, outcome: Outcome) -> None:
        if outcome.error is not None:
            failures.log_failure(outcome.error, flight.method)
            error = failures.describe(outcome.error, flight.method, self._server.language)
            self._settle(flight, encode(_message(id=flight.id, error=error)))
            return
        try:
            body = encode({"jsonrpc": "2.0", "id": flight.id, "result": self._converter.unstructure(outcome.value)})
        except Exception as error:  # noqa: BLE001 (a result that is no JSON is a failure of the handler)
            self._finish(flight, Outcome(error=error))
        else:
            self._settle(flight, body)

    def _settle(self, flight: _Flight, body: bytes) -> bool:
        """Answer a request unless it has been answered; return whether this call did it."""
        if self._flights.get(flight.id) is not flight:
            return False
        del self._flights[flight.id]
        if self.outgoing is not None:
            self.outgoing.send(body)
        return True

    def _refuse(self, identity: MessageId | None, code: int, reason: str) -> None:
        self._send({"jsonrpc": "2.0", "id": identity, "error": _error(code, reason)})

    def _ask(self, method: str, params: Any, seconds: float) -> tuple[str, Future[Any]]:
        identity, future = self.requests.add(method)
        plain = self._converter.unstructure(params)
        self._send(_message(id=identity, method=method, params=plain))
        timer = asyncio.get_running_loop().call_later(seconds, self.requests.expire, identity, seconds)
        future.add_done_callback(lambda _: timer.cancel())
        return identity, future

    def _send(self, message: dict[str, Any], **options: Any) -> None:
        if self.outgoing is not None:
            self.outgoing.send(encode(message), **options)

    def _send_data(self, data: Any) -> None:
        """Send what pygls itself sends, without logging its content as pygls does."""
        self._send(self._converter.unstructure(data))

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def encode(message: Any) -> bytes:
    """Encode a message as JSON in ASCII, so that lone surrogates do no harm; ValueError for NaN."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def _plain(value: Any) -> Any:
    """Return the JSON form of values that the LSP converter does not know, such as models with aliases."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return dump(mode="json", by_alias=True)


def _message(**members: Any) -> dict[str, Any]:
    """Return a message with those members that are not None."""
    return {"jsonrpc": "2.0", **{name: value for name, value in members.items() if value is not None}}


def _cancelled(flight: _Flight) -> bytes:
    return encode(_message(id=flight.id, error=_error(CANCELLED, "The request was cancelled")))


def _error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _progress_key(method: str, params: Any) -> tuple[tuple[str, Any] | None, bool]:
    """Return the key of a work-done progress message and whether it is a report; begin and end never merge."""
    value = params.get("value") if method == types.PROGRESS and isinstance(params, dict) else None
    if not isinstance(value, dict) or "kind" not in value:
        return None, False
    return (method, params.get("token")), value["kind"] == "report"


async def _log_later(later: Later, method: str) -> None:
    failures.log_failure((await later.outcome()).error, method)
