"""A proxy on loopback in front of a model server that counts what passes: requests, tokens, time. Streams pass at once.

It changes two things: a stream is asked to end with the usage of tokens, and the server's key is put in, which the
agents do not know. And it ends who has used up its tokens: `spent` is set, and what is asked then is refused. Not here:
who asks, or why.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

GENERATING = ("/chat/completions", "/completions", "/completion")
NOT_PASSED = {"connection", "transfer-encoding", "content-length", "host", "keep-alive", "accept-encoding"}
UPSTREAM_SECONDS = 600.0
CUT_SECONDS = 10.0  # how long calls may take to end once they were cut off
PIECE = 65536
STREAM_STARTS = (b"data:", b":", b"event:")
TOKEN_CHARS = 4  # of code and English, about; only for prompts of calls that were cut off


@dataclass(frozen=True, slots=True)
class Count:
    """What the model did: calls, tokens of prompts, those of them taken from its cache, tokens written, seconds."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def worked(self) -> int:
        """The tokens that the server worked on: written, or read and not taken from its cache."""
        return self.prompt_tokens - self.cached_tokens + self.completion_tokens

    def __add__(self, other: Count) -> Count:
        return Count(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
        )


class CountingProxy:
    """A proxy for one model server; `url` is its own root. Use it as a context, one user of the model at a time.

    `spent` is set when the server has worked on so many `tokens` since the last `take`; no limit for 0.
    """

    def __init__(self, upstream: str, key: str = "", tokens: int = 0) -> None:
        self.key = key
        self.tokens = tokens
        self.spent = threading.Event()
        self._upstream = urlsplit(upstream.rstrip("/").removesuffix("/v1"))
        self._lock = threading.Condition()
        self._count = Count()
        self._open: set[HTTPConnection] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The root that clients are given, without /v1."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> CountingProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.take()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def take(self) -> Count:
        """What was counted since the last time; calls that still run are cut off, for their client is gone."""
        with self._lock:
            left = list(self._open)
        for connection in left:
            if connection.sock is not None:
                _hang_up(connection.sock)
        with self._lock:
            self._lock.wait_for(lambda: not self._open, CUT_SECONDS)
            counted, self._count = self._count, Count()
            self.spent.clear()
        return counted

    def add(self, count: Count) -> None:
        """Count one more call."""
        with self._lock:
            self._count += count
            if self.tokens and self._count.worked >= self.tokens:
                self.spent.set()

    def connect(self) -> HTTPConnection:
        """A new connection to the server behind, known until `release`."""
        kind = HTTPSConnection if self._upstream.scheme == "https" else HTTPConnection
        connection = kind(self._upstream.netloc, timeout=UPSTREAM_SECONDS)
        with self._lock:
            self._open.add(connection)
        return connection

    def release(self, connection: HTTPConnection) -> None:
        """Close a connection to the server behind."""
        with self._lock:
            self._open.discard(connection)
            self._lock.notify_all()
        connection.close()

    def path(self, asked: str) -> str:
        """The path of a request on the server behind."""
        return self._upstream.path.rstrip("/") + asked


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: CountingProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._pass(b"")

    def do_POST(self) -> None:
        self._pass(self.rfile.read(int(self.headers.get("content-length") or 0)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Nothing is printed."""

    def _pass(self, body: bytes) -> None:
        proxy = self.server.proxy
        counted = self.command == "POST" and urlsplit(self.path).path.endswith(GENERATING)
        if counted and proxy.spent.is_set():
            self.send_error(HTTPStatus.FORBIDDEN, "the tokens of this run are used up")
            return
        begun = time.monotonic()
        connection = proxy.connect()
        seen = bytearray()
        try:
            body = with_usage(body) if counted else body
            headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in NOT_PASSED}
            headers |= {"authorization": f"Bearer {proxy.key}"} if proxy.key else {}
            connection.request(self.command, proxy.path(self.path), body or None, headers)
            self._answer(connection.getresponse(), seen)
        except (OSError, HTTPException, ValueError):
            self.close_connection = True  # one side is gone; the other sees its connection end
        finally:
            if counted:
                proxy.add(counted_in(bytes(seen), time.monotonic() - begun, body))
            proxy.release(connection)

    def _answer(self, response: HTTPResponse, seen: bytearray) -> None:
        """HTTP/1.0 towards the client: the end of the connection is the end of the body."""
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in NOT_PASSED:
                self.send_header(name, value)
        self.end_headers()
        while piece := response.read1(PIECE):
            seen += piece
            self.wfile.write(piece)
            self.wfile.flush()


def _hang_up(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # closed already


def with_usage(body: bytes) -> bytes:
    """A request whose stream, if it asks for one, ends with the usage of tokens."""
    try:
        asked = json.loads(body)
    except ValueError:
        return body
    if not isinstance(asked, dict) or not asked.get("stream"):
        return body
    options = asked.get("stream_options") or {}
    return json.dumps({**asked, "stream_options": {**options, "include_usage": True}}).encode()


def counted_in(answer: bytes, seconds: float, asked: bytes = b"") -> Count:
    """The tokens that an answer or a stream tells; what was cut off counts by its pieces, its prompt by its length."""
    found: Count | None = None
    pieces = 0
    for message in _messages(answer):
        pieces += 1
        found = _told(message) or found
    streamed = answer.startswith(STREAM_STARTS)
    cut = Count(
        prompt_tokens=_prompt_length(asked) // TOKEN_CHARS if streamed or not answer else 0,
        completion_tokens=pieces if streamed else 0,
    )
    told = found or cut
    return told + Count(requests=1, seconds=seconds)


def _prompt_length(asked: bytes) -> int:
    try:
        body = json.loads(asked)
        return sum(len(str(message.get("content") or "")) for message in body["messages"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0


def _messages(answer: bytes) -> Iterator[Mapping[str, Any]]:
    streamed = answer.startswith(STREAM_STARTS)
    parts = [line[5:] for line in answer.splitlines() if line.startswith(b"data:")] if streamed else [answer]
    for part in parts:
        try:
            message = json.loads(part)
        except ValueError:
            continue
        if isinstance(message, dict):
            yield message


def _told(message: Mapping[str, Any]) -> Count | None:
    usage, timings = message.get("usage"), message.get("timings")
    if isinstance(usage, dict) and usage.get("prompt_tokens") is not None:
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        if cached is None and isinstance(timings, dict):
            cached = timings.get("cache_n")
        return Count(0, int(usage["prompt_tokens"]), int(cached or 0), int(usage.get("completion_tokens") or 0))
    if isinstance(timings, dict) and "prompt_n" in timings:
        cached = int(timings.get("cache_n") or message.get("tokens_cached") or 0)
        prompt = int(message.get("tokens_evaluated") or timings["prompt_n"] + cached)
        return Count(0, prompt, prompt - int(timings["prompt_n"]), int(timings.get("predicted_n") or 0))
    return None
