"""The dispatcher: every request of the client is answered exactly once, and nothing it sends ends the server.

A subclass of pygls' protocol that keeps its registry of features and commands and replaces the code between transport
and handlers: answering, notifications, requests to the client. Not here: what the built-in methods do (`../server.py`).
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcMethodNotFound
from pygls.feature_manager import is_thread_function
from pygls.protocol import LanguageServerProtocol

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import CodeAgentError, ErrorCode
from codeagent_lsp.server.wire.framing import (
    INVALID_REQUEST,
    Malformed,
    Message,
    MessageId,
    Notification,
    Request,
    Response,
    is_id,
    structure_params,
    structure_result,
)
from codeagent_lsp.server.wire.lifecycle import Phase, Served
from codeagent_lsp.server.wire.outgoing import ClientRequests, Outgoing

if TYPE_CHECKING:
    from cattrs import Converter

REQUEST_SECONDS = 600.0  # the time limit of requests sent by `send_request`
_PASSING = frozenset({"codeagent/event", types.WINDOW_LOG_MESSAGE, types.TELEMETRY_EVENT, types.LOG_TRACE})

INTERNAL_ERROR = -32603
REQUEST_FAILED = -32803
INVALID_PARAMS = -32602
_FRAMES = 12  # the innermost ones

_log = logging.getLogger(__name__)
CANCELLED = -32800
Handler = Callable[..., Any]
Executors = Callable[[], Executor]


class GuardedProtocol(LanguageServerProtocol):
    """Handles the messages of one client and sends the answers, on the event loop; only `notify` may be called from any
    thread.
    """

    _server: Served

    def __init__(self, server: Served, converter: Converter) -> None:
        self.phase = Phase.FRESH
        self.outgoing: Outgoing | None = None
        self.requests = ClientRequests(lambda method, result: structure_result(converter, method, result))
        self.open_requests = OpenRequests(partial(self._send, answer=True))
        self._background = BackgroundTasks()
        super().__init__(server, converter)

    def receive(self, message: Message) -> None:
        """Handle one message of the client, in the event loop, and return at once: requests are answered later, exactly
        once. Never raises.
        """
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
        """Send a request to the client and return the result as an LSP type. EditorError if it refuses, is gone or does
        not answer within `timeout` seconds. Cancelling forgets the request.
        """
        identity, future = self._ask(method, params, timeout)
        try:
            return await asyncio.wrap_future(future)
        finally:
            self.requests.forget(identity)

    def notify(self, method: str, params: Any | None = None) -> None:
        """Queue a notification for sending and return at once, from any thread. Queued progress reports are merged;
        events, logs and telemetry may be dropped from the queue.
        """
        plain = self._converter.unstructure(params)
        key, is_report = _progress_key(method, plain)
        self._send(
            encode(message(method=method, params=plain)),
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
        """Cancel all handlers and end all requests to the client with an EditorError, because the connection is
        gone.
        """
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
            # A handler that does not wait is answered here, before the next message: a later one may rely on its
            # effect.
            if isinstance(outcome, Outcome):
                self._finish(request, outcome)
            else:
                request.task = self._background.start(self._finish_later(request, outcome))

    def _notification(self, notification: Notification) -> None:
        method = notification.method
        if method == types.CANCEL_REQUEST:
            params = notification.raw.get("params")
            self.open_requests.cancel(params.get("id") if isinstance(params, dict) else None)
        # LSP has every notification but `exit` dropped before `initialize` and after `shutdown`.
        elif method == types.EXIT or self.phase is Phase.READY:
            outcome = self._start(method, notification.raw)
            if isinstance(outcome, Outcome):
                log_failure(outcome.error, method)
            else:
                self._background.start(_log_later(outcome, method))

    def not_understood(self, method: str, raw: dict[str, Any]) -> None:
        """Called for a message whose params do not fit its method; does nothing here, subclasses override it."""

    def _start(self, method: str, raw: dict[str, Any]) -> Outcome | Later:
        """Find the handler of a message, convert its params and run it."""
        # Built-in methods first: they yield the feature's own handler of the same method themselves.
        handler = self.fm.builtin_features.get(method) or self.fm.features.get(method)
        if handler is None:
            return Outcome(error=JsonRpcMethodNotFound.of(method[:100]))
        try:
            params = structure_params(self._converter, method, raw)
        except Exception as error:  # noqa: BLE001 (sent to the client)
            self.not_understood(method, raw)
            return Outcome(error=error)
        return run(handler, params, lambda: self._server.thread_pool)

    async def _finish_later(self, request: OpenRequest, later: Later) -> None:
        try:
            self._finish(request, await later.outcome())
        except asyncio.CancelledError:
            # Does nothing where `$/cancelRequest` has been answered already.
            self.open_requests.answer_cancelled(request)
            raise

    def _finish(self, request: OpenRequest, outcome: Outcome) -> None:
        if outcome.error is not None:
            log_failure(outcome.error, request.method)
            error = describe(outcome.error, request.method, self._server.language)
            self.open_requests.answer(request, encode(message(id=request.id, error=error)))
            return
        try:
            body = encode(result(request.id, self._converter.unstructure(outcome.value)))
        except Exception as error:  # noqa: BLE001 (a result that is no JSON is a failure of the handler)
            # Ends after one round, as an error is always JSON.
            self._finish(request, Outcome(error=error))
        else:
            self.open_requests.answer(request, body)

    def _refuse(self, identity: MessageId | None, code: int, reason: str) -> None:
        self._send(encode(error(identity, code, reason)), answer=True)

    def _ask(self, method: str, params: Any, seconds: float) -> tuple[str, Future[Any]]:
        identity, future = self.requests.add(method)
        plain = self._converter.unstructure(params)
        self._send(encode(message(id=identity, method=method, params=plain)))
        timer = asyncio.get_running_loop().call_later(seconds, self.requests.expire, identity, seconds)
        future.add_done_callback(lambda _: timer.cancel())
        return identity, future

    def _send(self, body: bytes, **options: Any) -> None:
        if self.outgoing is not None:
            self.outgoing.send(body, **options)

    def _send_data(self, data: Any) -> None:
        """Send what pygls itself sends, without logging its content as pygls does."""
        self._send(encode(self._converter.unstructure(data)))


def _progress_key(method: str, params: Any) -> tuple[tuple[str, Any] | None, bool]:
    """Return the key of a work-done progress message and whether it is a report; begin and end never merge."""
    value = params.get("value") if method == types.PROGRESS and isinstance(params, dict) else None
    if not isinstance(value, dict) or "kind" not in value:
        return None, False
    return (method, params.get("token")), value["kind"] == "report"


async def _log_later(later: Later, method: str) -> None:
    log_failure((await later.outcome()).error, method)


# Describes failures of handlers to the client: a code, one sentence, and nothing that could be a secret.


def describe(error: BaseException, method: str, language: str) -> dict[str, Any]:
    """Return the `error` member of a JSON-RPC answer: `code`, `message`, and for errors of our own `data` with their
    code. Errors of our own have their message in `language`, all others only their type.
    """
    if isinstance(error, JsonRpcException):
        return {"code": error.code, "message": error.message}
    if isinstance(error, CodeAgentError):
        code = INVALID_PARAMS if error.code is ErrorCode.INVALID_PARAM else REQUEST_FAILED
        return {"code": code, "message": error.localized(language), "data": {"code": str(error.code)}}
    return {"code": INTERNAL_ERROR, "message": f"Internal error in {method}: {type(error).__name__}"}


def log_failure(error: BaseException | None, method: str) -> None:
    """Log in which line of code a handler failed, with the stack. Messages of exceptions can contain file contents or
    keys and are left out.
    """
    if error is None or isinstance(error, JsonRpcException | CodeAgentError):
        return
    frames = "".join(traceback.format_tb(error.__traceback__, limit=-_FRAMES))
    _log.error("Failed in %s: %s\n%s", method, type(error).__name__, frames)


# The client's requests that are being handled. Each is answered exactly once: by its handler, or as cancelled.


@dataclass(eq=False, slots=True)
class OpenRequest:
    """A request that is being handled; `task` is None until its handler waits for something."""

    id: MessageId
    method: str
    task: asyncio.Task[None] | None = None


class OpenRequests:
    """The requests without an answer, by id; `send` takes the bytes of an answer."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._requests: dict[MessageId, OpenRequest] = {}

    def __contains__(self, identity: MessageId) -> bool:
        return identity in self._requests

    def add(self, identity: MessageId, method: str) -> OpenRequest:
        """Add a request and return it; its id must not be in use, or the earlier one is never answered."""
        request = self._requests[identity] = OpenRequest(identity, method)
        return request

    def answer(self, request: OpenRequest, body: bytes) -> bool:
        """Answer a request with `body`, the bytes of a whole answer, unless it has been answered; return whether this
        call did it.
        """
        # By identity: the client may use the id again once a request is cancelled, and a late result must not answer
        # that.
        if self._requests.get(request.id) is not request:
            return False
        del self._requests[request.id]
        self._send(body)
        return True

    def answer_cancelled(self, request: OpenRequest) -> bool:
        """Answer a request as cancelled unless it has been answered; return whether this call did it."""
        refusal = error(request.id, CANCELLED, "The request was cancelled")
        return self.answer(request, encode(refusal))

    def cancel(self, identity: Any) -> None:
        """Answer a request, by its id (any JSON value), as cancelled at once, and stop its handler; a later result is
        dropped.
        """
        request = self._requests.get(identity) if is_id(identity) else None
        if request is not None and self.answer_cancelled(request) and request.task is not None:
            request.task.cancel()

    def cancel_others(self) -> None:
        """Cancel every request whose handler waits for something, except the one that calls this."""
        here = asyncio.current_task()
        # A copy, as each cancelling removes one.
        for request in tuple(self._requests.values()):
            if request.task is not None and request.task is not here:
                self.cancel(request.id)


# Runs a handler of any kind: plain function, coroutine, thread function, or pygls' generators.


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a handler: `error` is None when `value` is its result."""

    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """The part of a handler that takes time, not started yet."""

    start: Callable[[], Awaitable[Any]]

    async def outcome(self) -> Outcome:
        """Start it, wait for its end and return the result or the error; raises only when it is cancelled."""
        try:
            return Outcome(await self.start())
        # `_finish_later` answers as cancelled; as an outcome it would become an internal error.
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (the loop would end with a SystemExit or KeyboardInterrupt)
            return Outcome(error=error)


def run(handler: Handler, params: Any, executor: Executors) -> Outcome | Later:
    """Call a handler as far as it goes without waiting; return its outcome, or the rest to be awaited. `executor`
    returns the pool for thread functions.
    """
    try:
        result = _call(handler, (params,), {}, executor)
    except BaseException as error:  # noqa: BLE001 (a handler must not end the server, whatever it raises)
        return Outcome(error=error)
    return result if isinstance(result, Later) else Outcome(result)


def _call(handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any], executor: Executors) -> Any:
    # First of all, as the mark on a function says nothing of what kind it is.
    if is_thread_function(handler):  # type: ignore[no-untyped-call]
        return Later(partial(_in_thread, partial(handler, *args, **kwargs), executor))
    if inspect.iscoroutinefunction(handler):
        return Later(partial(handler, *args, **kwargs))
    result = handler(*args, **kwargs)
    if inspect.isgenerator(result):
        return _drive(result, executor)
    return Later(lambda: result) if inspect.isawaitable(result) else result


async def _in_thread(call: Callable[[], Any], executor: Executors) -> Any:
    def work() -> Outcome:
        try:
            return Outcome(call())
        except BaseException as error:  # noqa: BLE001 (a future cannot carry every exception)
            return Outcome(error=error)

    outcome = await asyncio.get_running_loop().run_in_executor(executor(), work)
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _drive(generator: Generator[Any, Any, Any], executor: Executors, error: BaseException | None = None) -> Any:
    """Run a built-in handler that yields the calls it wants made, as far as that goes without waiting."""
    value: Any = None
    while True:
        try:
            step = generator.send(value) if error is None else generator.throw(error)
        except StopIteration as stop:
            return stop.value
        handler, args, kwargs = step
        try:
            value, error = _call(handler, args, kwargs or {}, executor), None
        except BaseException as failure:  # noqa: BLE001 (the generator's to handle or pass on)
            error = failure
            continue
        if isinstance(value, Later):
            return Later(partial(_drive_on, generator, value, executor))


async def _drive_on(generator: Generator[Any, Any, Any], later: Later, executor: Executors) -> Any:
    error: BaseException | None = None
    try:
        await later.start()
    except BaseException as failure:  # noqa: BLE001 (the generator's to handle or pass on, being cancelled included)
        error = failure
    rest = _drive(generator, executor, error)
    return await rest.start() if isinstance(rest, Later) else rest


# The JSON-RPC messages that the server sends, and their bytes. Pure functions.


def message(**members: Any) -> dict[str, Any]:
    """Return a JSON-RPC 2.0 message as a dict: `jsonrpc`, and those of the given members that are not None."""
    return {"jsonrpc": "2.0", **{name: value for name, value in members.items() if value is not None}}


def result(identity: MessageId, value: Any) -> dict[str, Any]:
    """Return the JSON-RPC answer to a request; a result of None is sent as `null`."""
    return {"jsonrpc": "2.0", "id": identity, "result": value}


def error(identity: MessageId | None, code: int, reason: str) -> dict[str, Any]:
    """Return the JSON-RPC refusal of a request, with an error `code` of JSON-RPC or LSP and the reason in English; an
    unknown id is sent as `null`.
    """
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": reason}}


def encode(message: Any) -> bytes:
    """Return a message as JSON in ASCII, so that lone surrogates do no harm. ValueError for NaN, TypeError for a value
    without a JSON form.
    """
    return json.dumps(message, separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def _plain(value: Any) -> Any:
    """Return the JSON form of values that the LSP converter does not know, such as models with aliases."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return dump(mode="json", by_alias=True)
