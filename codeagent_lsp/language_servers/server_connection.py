"""The connection to one language server as a guarded process, by pygls' client, bounded in every direction.

Messages stay plain JSON: a server that writes something slightly wrong must not lose its whole answer. Not here: what
the messages mean (`language_server.py`), how the process is kept from the disk (`Launch`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count
from typing import Any, cast

from lsprotocol.types import ResponseError
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.protocol import JsonRPCProtocol
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.process import Guarded, run_to_end
from codeagent_lsp.shadow.shell import Launch, ProcessLimits

MAX_MESSAGE = 32 << 20
MAX_UNSENT = 32 << 20
FLOOD_BYTES = 128 << 20
FLOOD_SECONDS = 10.0
GRACE_SECONDS = 1.0

_MAX_LINES = 1000  # before a message: some servers greet
_LEAST = 4096  # what a message counts at least: a flood may be one of small ones
_LARGE = 1 << 16  # what is read beside the event loop
_LAST_WORDS = 2000

logger = logging.getLogger(__name__)

Handler = Callable[[Any], Any]


class ServerFailed(ToolFailed):
    """Raised if a language server has ended, does not answer in time, or answers with an error."""


class ServerLate(ServerFailed):
    """Raised if a language server does not answer in time; it may still answer the next request."""


class ServerGone(ServerFailed):
    """Raised if a language server has ended or was ended because it misbehaved; it will not answer again."""


class ServerConnection:
    """The connection to one server process, from `start` to `close`. `lost` is set when it has ended, and `problem`
    then says why, in English.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost = asyncio.Event()
        self.problem = ""
        self._guarded = Guarded()
        self._client = JsonRPCClient(_PlainProtocol)
        self._protocol = cast("_PlainProtocol", self._client.protocol)
        self._ids = count(1)
        self._tasks: list[asyncio.Task[None]] = []
        self._last_words = b""

    def handle(self, handlers: Mapping[str, Handler]) -> None:
        """Set the functions that answer the server's requests and take its notifications, by method, with plain JSON;
        to be called before `start`.
        """
        for method, handler in handlers.items():
            self._client.feature(method)(_with_params(handler))

    async def start(self, launch: Launch, limits: ProcessLimits) -> None:
        """Start the process. ToolFailed if that is impossible; `close` must be called, however this ends."""
        # Cancelled halfway, a process would run that nobody knows of.
        await run_to_end(self._guarded.start(launch, limits, apart=True, talk=True))
        streams, flood = dict(self._guarded.streams), _Flood()
        assert self._guarded.stdin is not None
        self._protocol.set_writer(_Writer(self._guarded.stdin, self.end))
        self._tasks = [
            asyncio.create_task(self._read(_Reader(streams["stdout"], flood))),
            asyncio.create_task(self._keep_last_words(streams["stderr"], flood)),
        ]

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        """Send a request and return the result as plain JSON. ServerLate if there is no answer within `seconds`,
        ServerGone if the server has ended, ServerFailed if it refuses.
        """
        self._check()
        identity = f"c{next(self._ids)}"  # the server's own requests have numbers, and pygls keeps both in one table
        try:
            future = self._protocol.send_request(method, params, msg_id=identity)
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            self._forget(identity)
            raise ServerLate(f"{self.name} did not answer {method} within {seconds:g} s.") from None
        except asyncio.CancelledError:
            self._forget(identity)
            raise
        except JsonRpcException as error:
            raise ServerFailed(f"{self.name}: {str(error)[:300]}") from error

    def notify(self, method: str, params: Any) -> None:
        """Queue a notification and return at once. ServerGone if the server has ended."""
        self._check()
        self._protocol.notify(method, params)
        self._check()

    async def close(self) -> None:
        """Ask the process to end, kill it after 1 s, and wait for its end, also when cancelled."""
        try:
            await run_to_end(self._leave())
        finally:
            self._lose("it was stopped")
            await run_to_end(self._guarded.close())
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def end(self, reason: str) -> None:
        """Kill a server that misbehaves; `problem` is `reason`. Returns at once."""
        self._lose(reason)
        self._guarded.stop()

    async def _leave(self) -> None:
        if self.lost.is_set() or not self._tasks:
            return
        try:
            await self.request("shutdown", None, GRACE_SECONDS)
            self.notify("exit", None)
            async with asyncio.timeout(GRACE_SECONDS):
                await self.lost.wait()
        except (ServerFailed, TimeoutError):
            pass  # it is killed

    async def _read(self, reader: _Reader) -> None:
        """Take its messages until its output ends or is more than a server ever writes."""
        try:
            while (body := await reader.message()) is not None:
                try:
                    message = _parse(body) if len(body) < _LARGE else await asyncio.to_thread(_parse, body)
                    self._protocol.take(message)
                except Exception as error:  # noqa: BLE001 (what a handler cannot take must not end the reading)
                    logger.info("%s: %s", self.name, type(error).__name__)
            await asyncio.sleep(0.05)  # for what it says about its end
            said = self._last_words.decode("utf-8", "replace").strip().rpartition("\n")[2]
            self._lose(said[:300] or "it has ended")
        except _TooMuchError as error:
            self.end(str(error))
        except (OSError, ValueError, asyncio.IncompleteReadError):
            self.end("it broke off in the middle of a message")

    async def _keep_last_words(self, reader: asyncio.StreamReader, flood: _Flood) -> None:
        try:
            while data := await reader.read(1 << 16):
                flood.add(len(data))
                self._last_words = (self._last_words + data)[-_LAST_WORDS:]
        except _TooMuchError as error:
            self.end(str(error))

    def _check(self) -> None:
        if self.lost.is_set():
            raise ServerGone(f"{self.name} is not running: {self.problem}.")

    def _lose(self, problem: str) -> None:
        if self.lost.is_set():
            return
        self.problem = problem
        self.lost.set()
        for future in self._protocol.waiting():
            # Or those that wait would wait for their whole time.
            future.set_exception(JsonRpcException(f"it is not running: {problem}", code=-32803))

    def _forget(self, identity: str) -> None:
        """Tell the server that an answer is not wanted any more."""
        self._protocol.forget(identity)
        if not self.lost.is_set():
            try:
                self.notify("$/cancelRequest", {"id": identity})
            except ServerFailed:
                pass


class _PlainProtocol(JsonRPCProtocol):
    """pygls' protocol on plain JSON, without conversion into types."""

    def take(self, data: Any) -> None:
        """Handle a message; nothing for what is none."""
        if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
            return
        method, identity, params = data.get("method"), data.get("id"), data.get("params")
        if isinstance(method, str) and identity is None:
            self.handle_message(JsonRPCNotification(method=method, jsonrpc="2.0", params=params))
        elif isinstance(identity, str | int) and isinstance(method, str):
            self.handle_message(JsonRPCRequestMessage(id=identity, method=method, jsonrpc="2.0", params=params))
        elif isinstance(identity, str | int) and method is None:
            self._take_answer(identity, data.get("result"), data.get("error"))

    def _take_answer(self, identity: str | int, result: Any, error: Any) -> None:
        if identity in self._request_futures:  # pygls logs what nobody waits for any more
            self._handle_response(identity, result, None if error is None else _error(error))

    def waiting(self) -> list[Future[Any]]:
        """Return the requests that are not answered, and forget them."""
        found = [future for future in self._request_futures.values() if not future.done()]
        self._request_futures.clear()
        return found

    def forget(self, identity: str) -> None:
        """Drop a request whose answer is not wanted any more."""
        self._request_futures.pop(identity, None)

    def _send_data(self, data: Any) -> None:
        """Send a message; pygls' own way logs it, and that is what the files say."""
        body = json.dumps(data, default=self._serialize_message).encode()
        assert self.writer is not None
        self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _send_response(self, msg_id: Any, result: Any = None, error: ResponseError | None = None) -> None:
        if error is None:
            self._send_data({"jsonrpc": "2.0", "id": msg_id, "result": result})
        else:
            told = {"code": error.code, "message": error.message}
            self._send_data({"jsonrpc": "2.0", "id": msg_id, "error": told})

    def _handle_request(self, msg_id: Any, method_name: str, params: Any) -> None:
        """Answer a request; pygls' own way would drop a request of ours that has the same id."""
        handler = self.fm.features.get(method_name)
        if handler is None:
            self._send_response(msg_id, None, ResponseError(-32601, "not supported"))
        else:
            self._send_response(msg_id, handler(params))

    def _handle_notification(self, method_name: str, params: Any) -> None:
        if method_name in self.fm.features:
            super()._handle_notification(method_name, params)


class _TooMuchError(Exception):
    """Raised for more data than a server may send."""


class _Flood:
    """How much a server has sent lately."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._came = 0

    def add(self, size: int) -> None:
        """Count what came. _TooMuchError if that is a flood."""
        now = time.monotonic()
        if now - self._since > FLOOD_SECONDS:
            self._since, self._came = now, 0
        self._came += size
        if self._came > FLOOD_BYTES:
            raise _TooMuchError(f"it sent more than {FLOOD_BYTES >> 20} MiB within {FLOOD_SECONDS:g} s")


class _Reader:
    """The messages in the output of a server, with limits on one and on a flood of them."""

    def __init__(self, stream: asyncio.StreamReader, flood: _Flood) -> None:
        self._stream = stream
        self._flood = flood

    async def message(self) -> bytes | None:
        """Return the next message, None at the end. ValueError, IncompleteReadError and _TooMuchError."""
        size = 0
        for _ in range(_MAX_LINES):
            line = await self._stream.readline()  # ValueError beyond the stream's own limit
            name, _, value = line.partition(b":")
            if not line:
                return None
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                size = int(value)
            elif size and not line.strip():
                return await self._body(size)
        raise _TooMuchError("it writes something else than the protocol")

    async def _body(self, size: int) -> bytes:
        if size > MAX_MESSAGE:
            raise _TooMuchError(f"it sent a message of {size >> 20} MiB")
        self._flood.add(max(size, _LEAST))
        await asyncio.sleep(0)  # a server that is always writing must not keep others waiting
        return await self._stream.readexactly(size)


class _Writer:
    """The input of a server in pygls' form; `over` ends one that does not read it."""

    def __init__(self, stream: asyncio.StreamWriter, over: Callable[[str], None]) -> None:
        self._stream = stream
        self._over = over

    def write(self, data: bytes) -> None:
        """Send data, without waiting."""
        if self._stream.transport.get_write_buffer_size() > MAX_UNSENT:
            self._over("it does not read what it is sent")
        elif not self._stream.is_closing():
            self._stream.write(data)

    def close(self) -> None:
        """Close the input."""
        self._stream.close()


def _parse(body: bytes) -> Any:
    """Return a message as JSON. The hook lets other threads run meanwhile."""
    return json.loads(body, object_hook=_same)


def _same(found: dict[str, Any]) -> dict[str, Any]:
    return found


def _error(found: Any) -> ResponseError:
    error = found if isinstance(found, dict) else {}
    code = error.get("code")
    return ResponseError(code if isinstance(code, int) else -32603, str(error.get("message", ""))[:1000])


def _with_params(handler: Handler) -> Handler:
    """Return the handler under a plain signature, from which pygls reads that it wants parameters only."""

    def handle(params: Any) -> Any:
        return handler(params)

    return handle
