"""A chat endpoint on loopback whose replies a person writes, or a Python function: the strong model behind an agent.

    python -m tests.bench.by_hand serve FOLDER [--port P] [--window TOKENS]
    python -m tests.bench.by_hand next FOLDER [--wait SECONDS]
    python -m tests.bench.by_hand say FOLDER [NUMBER] < reply
    python -m tests.bench.by_hand full FOLDER NUMBER
    python -m tests.bench.by_hand stats FOLDER

`serve` speaks the OpenAI-compatible `/v1/models` and `/v1/chat/completions`, streamed or not, and keeps each request
in FOLDER until its reply is there. `next` prints the oldest request without a reply, without the messages of the
request that it continues. `say` reads the reply: JSON, YAML, or nothing but text. All its fields may be left out:

    text: I look at both files.
    calls:
      - read_file: {path: area.py}
      - grep: {pattern: area}
    reasoning: The test names the file.
    finish: length
    usage: {prompt_tokens: 900, completion_tokens: 20}

Tests and benches let a function play: `with playing(policy) as url`. How a person plays: `docs/testing.md`.
Not here: what is printed of a request (`chat_requests.py`), a proxy in front of a real model (`agents_proxy.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from codeagent_lsp.direct.form_probe import EDITS, FILE
from tests.bench.chat_requests import Asked, in_json, text_of, told_full, told_next, told_stats

MODEL = "strong"
WINDOW = 200_000
WAIT_SECONDS = 60.0
POLL_SECONDS = 0.05
COMMENT_SECONDS = 5.0
"""After so long without a word a streaming client gets a comment, so that it does not give up."""
TOKEN_CHARS = 4  # about, for the usage of replies that give none

Calls = Sequence[tuple[str, Mapping[str, Any]]]
"""Calls of tools, each a name and its arguments."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply: text, calls, reasoning. `finish` and the numbers of `usage` replace what follows from these."""

    text: str = ""
    calls: Calls = ()
    reasoning: str = ""
    finish: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> str:
        """The reason of the reply's end, as sent."""
        return self.finish or ("tool_calls" if self.calls else "stop")


Policy = Callable[[Asked], Answer]


class Exchanges:
    """The requests in a folder and their replies, each a file. Several processes may use one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, body: dict[str, Any]) -> Asked:
        """Keep a new request under the next number."""
        with self._lock:
            asked = Asked(max(self.numbers(), default=0) + 1, body)
            self._write(asked.number, "request", body)
        return asked

    def numbers(self) -> list[int]:
        """Return the numbers of all requests, oldest first."""
        return sorted(int(path.name.partition(".")[0]) for path in self._folder.glob("*.request.json"))

    def open_numbers(self) -> list[int]:
        """Return the numbers of the requests that have no reply and whose client still waits."""
        return [number for number in self.numbers() if not self._has(number, "reply") and not self._has(number, "left")]

    def request(self, number: int) -> Asked:
        """Return a request. SystemExit if there is none of this number."""
        if not self._has(number, "request"):
            sys.exit(f"There is no request {number} in {self._folder}.")
        return Asked(number, json.loads(self._path(number, "request").read_text("utf-8")))

    def requests(self) -> list[Asked]:
        """Return all requests, oldest first."""
        return [self.request(number) for number in self.numbers()]

    def reply(self, number: int) -> Answer | None:
        """Return the reply to a request, None before there is one."""
        if not self._has(number, "reply"):
            return None
        return answer_of(json.loads(self._path(number, "reply").read_text("utf-8")))

    def answer(self, number: int, answer: Answer) -> None:
        """Give the reply to a request."""
        self._write(number, "reply", asdict(answer))

    def leave(self, number: int) -> None:
        """Note that the client of a request is gone."""
        self._write(number, "left", {})

    def _has(self, number: int, kind: str) -> bool:
        return self._path(number, kind).exists()

    def _path(self, number: int, kind: str) -> Path:
        return self._folder / f"{number:04}.{kind}.json"

    def _write(self, number: int, kind: str, value: object) -> None:
        """Write a file that appears whole."""
        unfinished = self._folder / f"{number:04}.{kind}.unfinished"
        unfinished.write_text(in_json(value), "utf-8")
        unfinished.rename(self._path(number, kind))


def answer_of(value: object) -> Answer:
    """Return the reply that a value from JSON or YAML stands for. ValueError if it has other fields or forms."""
    if value is None or isinstance(value, str | int | float):
        return Answer(text="" if value is None else str(value))
    known = [each.name for each in fields(Answer)]
    if not isinstance(value, Mapping) or (strange := sorted(set(map(str, value)) - set(known))):
        what = ", ".join(strange) if isinstance(value, Mapping) else type(value).__name__
        raise ValueError(f"A reply has the fields {', '.join(known)}; this is something else: {what}.")
    return Answer(**{**value, "calls": tuple(map(_call_of, value.get("calls") or ()))})


def _call_of(value: object) -> tuple[str, Mapping[str, Any]]:
    """Return a call that is written as `[name, {...}]` or `{name: {...}}`."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = list(*value.items())
    match value:
        case [str(name), dict() | None as arguments]:
            return name, arguments or {}
    raise ValueError(f"A call is written as NAME: {{...}} or [NAME, {{...}}], not as {value!r}.")


def passing_trials(policy: Policy) -> Policy:
    """Return a policy that passes what the product tries a new model with, and else plays `policy`."""

    def play(asked: Asked) -> Answer:
        if "get_weather" in asked.tools:
            return Answer(calls=[("get_weather", {"city": "Paris"})])
        edit = next((edit for edit in EDITS if any(text_of(each) == edit.words for each in asked.messages)), None)
        if edit is None:
            return policy(asked)
        if asked.messages[-1]["role"] == "tool":
            return Answer("Done.")
        return Answer(calls=[("edit_file", {"path": FILE, "old_str": edit.before, "new_str": edit.after})])

    return play


@contextlib.contextmanager
def playing(policy: Policy | None, folder: Path | None = None, *, port: int = 0, window: int = WINDOW) -> Iterator[str]:
    """Yield the URL, with /v1, of an endpoint that `policy` answers, several requests at a time; without one each
    request waits until its reply is in `folder`, where all is kept.

    What the policy raises is answered with status 500, and raised at the end.
    """
    with contextlib.ExitStack() as stack:
        kept = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="by-hand-")))
        server = _Server(Exchanges(kept), policy, port, window)
        thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.closing.set()
            server.shutdown()
            server.server_close()
            thread.join()
        if server.failures:
            raise server.failures[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, exchanges: Exchanges, policy: Policy | None, port: int, window: int) -> None:
        self.exchanges = exchanges
        self.policy = policy
        self.window = window
        self.failures: list[Exception] = []
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; the end of the connection is the end of the body."""

    server: _Server

    def do_GET(self) -> None:
        window = self.server.window
        entry = {"id": MODEL, "object": "model", "context_length": window, "max_model_len": window}
        if urlsplit(self.path).path.endswith("/models"):
            self._send({"object": "list", "data": [entry]})
        else:
            self._refuse(404, "There is nothing at this address.")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if not urlsplit(self.path).path.endswith("/chat/completions"):
            self._refuse(404, "Only chat completions are answered here.")
            return
        asked = self.server.exchanges.add(body)
        try:
            self._play(asked)
        except OSError:
            self.server.exchanges.leave(asked.number)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Print nothing."""

    def _play(self, asked: Asked) -> None:
        if self.server.policy is not None:
            try:
                self.server.exchanges.answer(asked.number, self.server.policy(asked))
            except Exception as error:
                self.server.failures.append(error)
                self._refuse(500, f"The policy failed: {error!r}")
                return
        streamed = bool(asked.body.get("stream"))
        if streamed:
            self._head("text/event-stream")
        answer = self._wait(asked.number, streamed=streamed)
        if not streamed:
            self._send(completion(asked, answer))
            return
        for chunk in chunks(asked, answer):
            self._write(f"data: {in_json(chunk)}\n\n")
        self._write("data: [DONE]\n\n")

    def _wait(self, number: int, *, streamed: bool) -> Answer:
        """Return the reply as soon as it is there. OSError when the client leaves or the endpoint ends."""
        said = time.monotonic()
        while (answer := self.server.exchanges.reply(number)) is None:
            if self.server.closing.wait(POLL_SECONDS) or self._left():
                raise ConnectionAbortedError
            if streamed and time.monotonic() - said > COMMENT_SECONDS:
                self._write(": waiting\n\n")
                said = time.monotonic()
        return answer

    def _left(self) -> bool:
        """Return whether the client has closed its connection."""
        readable = select.select([self.connection], [], [], 0)[0]
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _send(self, value: object) -> None:
        self._head("application/json")
        self._write(in_json(value))

    def _refuse(self, status: int, why: str) -> None:
        self._head("application/json", status)
        self._write(in_json({"error": {"message": why}}))

    def _head(self, content_type: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.end_headers()

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()


def completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    """Return a reply that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = _sent_calls(asked, answer)
    choice = {"index": 0, "message": message, "finish_reason": answer.end}
    return {**_named(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, answer)}


def chunks(asked: Asked, answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed reply: reasoning, text, call by call, the reason of its end, the usage."""
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    if answer.reasoning:
        deltas.append({"reasoning_content": answer.reasoning})
    if answer.text:
        deltas.append({"content": answer.text})
    deltas += [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(_sent_calls(asked, answer))]
    named = _named(asked, "chat.completion.chunk")
    for delta in deltas:
        yield {**named, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**named, "choices": [{"index": 0, "delta": {}, "finish_reason": answer.end}]}
    yield {**named, "choices": [], "usage": _usage(asked, answer)}


def _named(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": f"reply-{asked.number}", "object": kind, "created": int(time.time()), "model": MODEL}


def _sent_calls(asked: Asked, answer: Answer) -> list[dict[str, Any]]:
    functions = [{"name": name, "arguments": in_json(arguments)} for name, arguments in answer.calls]
    named = ((f"call_{asked.number}_{at}", function) for at, function in enumerate(functions))
    return [{"id": call_id, "type": "function", "function": function} for call_id, function in named]


def _usage(asked: Asked, answer: Answer) -> dict[str, Any]:
    written = len(answer.text) + len(answer.reasoning) + len(in_json(answer.calls) if answer.calls else "")
    given = {"prompt_tokens": asked.characters // TOKEN_CHARS, "completion_tokens": written // TOKEN_CHARS}
    given |= answer.usage
    return {**given, "total_tokens": given["prompt_tokens"] + given["completion_tokens"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Perform one command and return its exit code: 1 when there is nothing to answer."""
    options = _options(arguments)
    exchanges = Exchanges(options.folder)
    match options.command:
        case "serve":
            _serve(options.folder, options.port, options.window)
        case "next":
            return _next(exchanges, options.wait)
        case "say":
            return _say(exchanges, options.number)
        case "full":
            print(told_full(exchanges.request(options.number)))
        case "stats":
            print(told_stats(exchanges.requests()))
    return 0


def _serve(folder: Path, port: int, window: int) -> None:
    with playing(None, folder, port=port, window=window) as url, contextlib.suppress(KeyboardInterrupt):
        print(url, flush=True)
        threading.Event().wait()


def _next(exchanges: Exchanges, wait: float) -> int:
    until = time.monotonic() + wait
    while not (waiting := exchanges.open_numbers()):
        if time.monotonic() > until:
            print("No request waits for a reply.")
            return 1
        time.sleep(POLL_SECONDS)
    print(told_next(exchanges.request(waiting[0]), exchanges.requests()))
    if waiting[1:]:
        print(f"=== wait too: {', '.join(map(str, waiting[1:]))}")
    return 0


def _say(exchanges: Exchanges, number: int | None) -> int:
    waiting = exchanges.open_numbers()
    if not waiting or number not in (None, *waiting):
        print(f"Request {number} does not wait for a reply." if number else "No request waits for a reply.")
        return 1
    try:
        answer = answer_of(value_of(sys.stdin.read()))
    except (ValueError, yaml.YAMLError) as error:
        sys.exit(str(error))
    exchanges.answer(number or waiting[0], answer)
    print(f"Answered request {number or waiting[0]}.")
    return 0


def value_of(text: str) -> object:
    """Return the value of JSON or, as not all JSON is YAML to its parser, of YAML."""
    try:
        return json.loads(text)
    except ValueError:
        return yaml.safe_load(text)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.by_hand", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="serve|next|say|full|stats")
    for name in ("serve", "next", "say", "full", "stats"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path, help="where requests and replies are kept")
        if name == "serve":
            command.add_argument("--port", type=int, default=0, help="of loopback; else a free one")
            command.add_argument("--window", type=int, default=WINDOW, metavar="TOKENS", help=f"({WINDOW})")
        if name == "next":
            command.add_argument("--wait", type=float, default=WAIT_SECONDS, metavar="SECONDS", help="(60)")
        if name in ("say", "full"):
            command.add_argument("number", type=int, nargs="?" if name == "say" else None, help="of the request")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
