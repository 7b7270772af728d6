"""The dispatcher: every request of the client is answered exactly once, and nothing it sends ends the server.

A subclass of pygls' protocol that keeps its registry of features and commands and replaces the code between transport
and handlers: answering, notifications, requests to the client. Not here: what the built-in methods do
(`builtin_methods.py`), cancelling (`open_requests.py`), how errors are described (`failures.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcMethodNotFound
from pygls.protocol import LanguageServerProtocol

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.server.wire import failures, jsonrpc
from codeagent_lsp.server.wire.client_requests import ClientRequests
from codeagent_lsp.server.wire.envelope import (
    INVALID_REQUEST,
    Malformed,
    Message,
    MessageId,
    Notification,
    Request,
    Response,
)
from codeagent_lsp.server.wire.handlers import Later, Outcome, run
from codeagent_lsp.server.wire.open_requests import OpenRequest, OpenRequests
from codeagent_lsp.server.wire.outgoing import Outgoing
from codeagent_lsp.server.wire.params import structure_params, structure_result
from codeagent_lsp.server.wire.phase import Phase
from codeagent_lsp.server.wire.served import Served

if TYPE_CHECKING:
    from cattrs import Converter


REQUEST_SECONDS = 600.0  # the time limit of requests sent by `send_request`
_PASSING = frozenset({"codeagent/event", types.WINDOW_LOG_MESSAGE, types.TELEMETRY_EVENT, types.LOG_TRACE})

_log = logging.getLogger(__name__)


class GuardedProtocol(LanguageServerProtocol):
    """Handles messages and their answers, on the event loop; `notify` can be called from any thread."""

    _server: Served

    def __init__(self, server: Served, converter: Converter) -> None:
        self.phase = Phase.FRESH
        self.outgoing: Outgoing | None = None
        self.requests = ClientRequests(lambda method, result: structure_result(converter, method, result))
        self.open_requests = OpenRequests(self._send)
        self._background = BackgroundTasks()
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
            jsonrpc.encode(jsonrpc.message(method=method, params=plain)),
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

    def close(self) -> None:
        """Stop all handlers and end all requests to the client; the connection is gone."""
        self._background.cancel()
        self.requests.close()

    def _request(self, message: Request) -> None:
        if message.id in self.open_requests:
            self._refuse(message.id, INVALID_REQUEST, "a request with this id is being worked on")
        elif (refusal := self.phase.refusal(message.method)) is not None:
            self._refuse(message.id, *refusal)
        else:
            request = self.open_requests.add(message.id, message.method)
            outcome = self._start(message.method, message.raw)
            if isinstance(outcome, Outcome):
                self._finish(request, outcome)
            else:
                request.task = self._background.start(self._finish_later(request, outcome))

    def _notification(self, notification: Notification) -> None:
        method = notification.method
        if method == types.CANCEL_REQUEST:
            params = notification.raw.get("params")
            self.open_requests.cancel(params.get("id") if isinstance(params, dict) else None)
        elif method == types.EXIT or self.phase is Phase.READY:
            outcome = self._start(method, notification.raw)
            if isinstance(outcome, Outcome):
                failures.log_failure(outcome.error, method)
            else:
                self._background.start(_log_later(outcome, method))

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

    async def _finish_later(self, request: OpenRequest, later: Later) -> None:
        try:
            self._finish(request, await later.outcome())
        except asyncio.CancelledError:
            self.open_requests.answer_cancelled(request)
            raise

    def _finish(self, request: OpenRequest, outcome: Outcome) -> None:
        if outcome.error is not None:
            failures.log_failure(outcome.error, request.method)
            error = failures.describe(outcome.error, request.method, self._server.language)
            self.open_requests.answer(request, jsonrpc.encode(jsonrpc.message(id=request.id, error=error)))
            return
        try:
            body = jsonrpc.encode(jsonrpc.result(request.id, self._converter.unstructure(outcome.value)))
        except Exception as error:  # noqa: BLE001 (a result that is no JSON is a failure of the handler)
            self._finish(request, Outcome(error=error))
        else:
            self.open_requests.answer(request, body)

    def _refuse(self, identity: MessageId | None, code: int, reason: str) -> None:
        self._send(jsonrpc.encode(jsonrpc.error(identity, code, reason)))

    def _ask(self, method: str, params: Any, seconds: float) -> tuple[str, Future[Any]]:
        identity, future = self.requests.add(method)
        plain = self._converter.unstructure(params)
        self._send(jsonrpc.encode(jsonrpc.message(id=identity, method=method, params=plain)))
        timer = asyncio.get_running_loop().call_later(seconds, self.requests.expire, identity, seconds)
        future.add_done_callback(lambda _: timer.cancel())
        return identity, future

    def _send(self, body: bytes, **options: Any) -> None:
        if self.outgoing is not None:
            self.outgoing.send(body, **options)

    def _send_data(self, data: Any) -> None:
        """Send what pygls itself sends, without logging its content as pygls does."""
        self._send(jsonrpc.encode(self._converter.unstructure(data)))


def _progress_key(method: str, params: Any) -> tuple[tuple[str, Any] | None, bool]:
    """Return the key of a work-done progress message and whether it is a report; begin and end never merge."""
    value = params.get("value") if method == types.PROGRESS and isinstance(params, dict) else None
    if not isinstance(value, dict) or "kind" not in value:
        return None, False
    return (method, params.get("token")), value["kind"] == "report"


async def _log_later(later: Later, method: str) -> None:
    failures.log_failure((await later.outcome()).error, method)
