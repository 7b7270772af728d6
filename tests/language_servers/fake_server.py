"""A language server that misbehaves as its arguments say: `fake_server.py POINT=ACTION… [--way WAY] [--delay SECONDS]`.

Each POINT (a method, `start`, or `request:N` for the Nth request) does its ACTION, a method of `Actions`, instead of
or before its ordinary work. WAY is how it gives diagnostics: every name `undefined_<n>` of a text is one, and so are
those of files that it names with `uses <file>`. Needs nothing but Python: it also runs where the sandbox lets it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

MARKER = re.compile(r"\bundefined_\d+\b")
USES = re.compile(r"\buses (\S+)")
LONG = 3600.0


class Server:
    """The texts that are open, and the ordinary work: answers, diagnostics."""

    def __init__(self, points: dict[str, str], way: str, delay: float) -> None:
        self.points = points
        self.way = way
        self.delay = delay
        self.texts: dict[str, tuple[str, int]] = {}
        self.requests = 0
        self._lock = threading.Lock()
        self._published: dict[str, tuple[int, list[Any]]] = {}
        self._chance = random.Random(7)

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def write(self, body: bytes, header: bytes = b"Content-Length: %d\r\n\r\n") -> None:
        with self._lock:
            self.raw((header % len(body) if b"%d" in header else header) + body)

    def raw(self, data: bytes) -> None:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            os._exit(1)

    def run(self) -> None:
        self.act("start")
        while (message := self.read()) is not None:
            self.handle(message)

    def read(self) -> dict[str, Any] | None:
        size = 0
        while line := sys.stdin.buffer.readline():
            if line.lower().startswith(b"content-length:"):
                size = int(line.partition(b":")[2])
            elif not line.strip():
                found: dict[str, Any] = json.loads(sys.stdin.buffer.read(size))
                return found
        return None

    def handle(self, message: dict[str, Any]) -> None:
        method, identity = message.get("method"), message.get("id")
        params: Any = message.get("params")
        if method is None:
            return  # an answer to us
        if identity is not None:
            self.requests += 1
            self.act(f"request:{self.requests}")
        if self.act(method):
            return
        if method in ("textDocument/didOpen", "textDocument/didChange"):
            document = params["textDocument"]
            text = document["text"] if "text" in document else params["contentChanges"][-1]["text"]
            self.texts[document["uri"]] = (text, document["version"])
            self.later(self.publish, document["uri"], text, document["version"])
        elif method == "textDocument/didClose":
            self.texts.pop(params["textDocument"]["uri"], None)
        elif method == "exit":
            os._exit(0)
        elif identity is not None:
            self.answer(method, params, identity)

    def answer(self, method: str, params: Any, identity: Any) -> None:
        if method == "initialize":
            names = ("hoverProvider", "referencesProvider", "codeActionProvider")
            capabilities: dict[str, Any] = dict.fromkeys(names, True)
            if self.way == "pull":
                capabilities["diagnosticProvider"] = {}
            self.send(id=identity, result={"capabilities": capabilities})
        elif method == "textDocument/diagnostic":
            uri = params["textDocument"]["uri"]
            items = found_in(self.text_of(uri), self.text_of)
            self.later(lambda: self.send(id=identity, result={"kind": "full", "items": items}))
        elif method == "textDocument/hover":
            self.send(id=identity, result={"contents": self.texts.get(params["textDocument"]["uri"], ("", 0))[0]})
        elif method == "textDocument/codeAction":  # one for each diagnostic that it is told
            told = params["context"]["diagnostics"]
            self.send(id=identity, result=[{"title": f"Fix {item['message']}"} for item in told])
        elif method == "shutdown" or method == "textDocument/references":
            self.send(id=identity, result=None if method == "shutdown" else [])
        else:
            self.send(id=identity, error={"code": -32601, "message": "no such method"})

    def later(self, work: Any, *arguments: Any) -> None:
        """Do work after a time that is another one each time, beside everything else."""
        if not self.delay:
            work(*arguments)
            return
        seconds = self._chance.random() * self.delay
        threading.Timer(seconds, work, arguments).start()

    def publish(self, uri: str, text: str, version: int) -> None:
        if self.way not in ("push", "quiet", "unversioned"):
            return
        items = found_in(text, self.text_of)
        if self.way == "quiet":  # says nothing that it has said before, and nothing of what is older
            last = self._published.get(uri, (0, []))
            if version < last[0]:
                return
            self._published[uri] = (version, items)
            if items == last[1] and last[0]:
                return
        more = {} if self.way == "unversioned" else {"version": version}
        self.send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": items, **more})

    def text_of(self, uri: str) -> str:
        if uri in self.texts:
            return self.texts[uri][0]
        try:
            return Path(unquote(uri.removeprefix("file://"))).read_text()
        except (OSError, ValueError):
            return ""

    def act(self, point: str) -> bool:
        """Do what is to be done at a point; True if that is all."""
        names = self.points.get(point, "").split(",")
        return any(getattr(Actions, name)(self) for name in names if name)


class Actions:
    """What can be done at a point; one that returns True ends the work of the point."""

    @staticmethod
    def silent(server: Server) -> bool:
        return True

    @staticmethod
    def hang(server: Server) -> bool:
        time.sleep(LONG)
        return True

    @staticmethod
    def crash(server: Server) -> bool:
        sys.stderr.write("fake: it broke\n")
        sys.stderr.flush()
        os._exit(3)

    @staticmethod
    def half(server: Server) -> bool:
        server.raw(b'Content-Length: 500\r\n\r\n{"jsonrpc": "2.0", ')
        os._exit(3)

    @staticmethod
    def floods(server: Server) -> bool:
        body = b'{"jsonrpc":"2.0","method":"window/logMessage","params":{"type":3,"message":"x"}}'
        while True:
            server.write(body)

    @staticmethod
    def floods_large(server: Server) -> bool:
        while True:
            server.send(method="window/logMessage", params={"type": 3, "message": "x" * (4 << 20)})

    @staticmethod
    def floods_requests(server: Server) -> bool:
        number = 0
        while True:
            number += 1
            server.send(id=number, method="workspace/configuration", params={"items": [{"section": "a"}] * 100})

    @staticmethod
    def floods_errors(server: Server) -> bool:
        while True:
            sys.stderr.write("complaint\n" * 1000)

    @staticmethod
    def floods_lines(server: Server) -> bool:
        while True:
            server.raw(b"\n" * 65536)

    @staticmethod
    def huge(server: Server) -> bool:
        server.send(method="window/logMessage", params={"type": 3, "message": "x" * (100 << 20)})
        return False

    @staticmethod
    def large(server: Server) -> bool:
        """As large as is allowed, and slow to parse."""
        item = b'{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},"message":"m"},'
        start = (
            b'{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":"file:///a","diagnostics":['
        )
        server.write(start + item * 100_000 + b"1]}}")
        return False

    @staticmethod
    def long_header(server: Server) -> bool:
        server.raw(b"X" * (1 << 20) + b"\r\n")
        return False

    @staticmethod
    def long_length(server: Server) -> bool:
        server.raw(b"Content-Length: 99999999999999999999\r\n\r\n{}")
        return False

    @staticmethod
    def odd_lengths(server: Server) -> bool:
        for length in (b"-5", b"x", b"", b"0", b"1e3", b"2"):
            server.raw(b"Content-Length: " + length + b"\r\n\r\n" + (b"{}" if length == b"2" else b""))
        return False

    @staticmethod
    def lower_case(server: Server) -> bool:
        server.write(
            b'{"jsonrpc":"2.0","method":"window/logMessage","params":{}}', b"content-length:  %d \r\nx: y\r\n\r\n"
        )
        return False

    @staticmethod
    def garbage(server: Server) -> bool:
        server.raw(b"Welcome to this server!\nLoading \xff\xfe ...\n")
        return False

    @staticmethod
    def bad_json(server: Server) -> bool:
        for body in (
            b"",
            b"{",
            b"[" * 10_000,
            b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
            b"\xff\xfe",
            b"null",
            b"[]",
            b"1",
        ):
            server.write(body)
        return False

    @staticmethod
    def wrong_types(server: Server) -> bool:
        values: list[Any] = [
            None,
            7,
            "x",
            [],
            {},
            True,
            {"uri": 1},
            {"items": 5},
            {"uri": "file:///a", "diagnostics": 1},
        ]
        methods = ("textDocument/publishDiagnostics", "$/progress", "window/logMessage", "experimental/serverStatus")
        for value in values:
            for method in methods:
                server.send(method=method, params=value)
            server.send(method=value, params=1)
            server.send(id=value, result=1)
            server.send(id=1000, error=value)
            server.write(json.dumps({"jsonrpc": value, "id": 1, "method": "x"}).encode())
        return False

    @staticmethod
    def wrong_capabilities(server: Server) -> bool:
        server.send(id=1, result={"capabilities": {"positionEncoding": ["utf-8"], "hoverProvider": [1]}})
        return True

    @staticmethod
    def nothing_at_start(server: Server) -> bool:
        server.send(id=1, result=7)
        return True

    @staticmethod
    def asks(server: Server) -> bool:
        odd: list[Any] = [{"section": "a.b..c"}, {"section": 5}, 7, None, {"section": "x" * 100_000}, {}]
        asked = [
            ("workspace/configuration", {"items": odd}), ("workspace/configuration", {"items": 9}),
            ("workspace/configuration", None), ("workspace/applyEdit", {"edit": {"changes": {}}}),
            ("window/showDocument", {"uri": "http://127.0.0.1:1/", "external": True}),
            ("window/showMessageRequest", {"type": 1, "message": "Yes?", "actions": [{"title": "Yes"}]}),
            ("client/registerCapability", {"registrations": 5}),
            ("client/registerCapability", {"registrations": [{"id": 1, "method": 7}, None] * 1000}),
            ("window/workDoneProgress/create", {"token": 1}), ("workspace/workspaceFolders", None),
            ("initialize", {}), ("shutdown", None), ("$/anything", 1), ("eval", {"code": "1"}),
        ]  # fmt: skip
        for number, (method, params) in enumerate(asked):
            for identity in (number, 1, f"c{number}"):
                server.send(id=identity, method=method, params=params)
        return False

    @staticmethod
    def never_done(server: Server) -> bool:
        for number in range(1000):
            server.send(method="$/progress", params={"token": number, "value": {"kind": "begin"}})
        return False

    @staticmethod
    def forks(server: Server) -> bool:
        """Leave children that want to outlive it; the first argument after `--` marks them."""
        mark = sys.argv[-1]
        code = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
        for _ in range(3):
            words = (sys.executable, "-c", code, mark)
            subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        return False

    @staticmethod
    def stubborn(server: Server) -> bool:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        return False

    @staticmethod
    def eats(server: Server) -> bool:
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20)) * 16)

    @staticmethod
    def outdated(server: Server) -> bool:
        """Say once more what is of the texts as they were, and be busy then."""
        for uri, (text, version) in list(server.texts.items()):
            server.publish(uri, text, version)
        time.sleep(0.5)
        return False

    @staticmethod
    def lies(server: Server) -> bool:
        """Publish what is of no text that there is."""
        for uri, (_, version) in list(server.texts.items()):
            bad = {"start": {"line": 10**9, "character": -4}, "end": {"line": -1, "character": 10**30}}
            items = [{"range": bad, "message": "lie"}, {"range": None, "message": 5}, None, 7, [[]]]
            for told in (version + 99, version - 1, None, "1", -1, 10**30):
                server.send(
                    method="textDocument/publishDiagnostics",
                    params={"uri": uri, "version": told, "diagnostics": items},
                )
            server.send(method="textDocument/publishDiagnostics", params={"uri": uri + "x", "diagnostics": items})
        return False


def found_in(text: str, text_of: Any, seen: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Return the diagnostics of a text and of those that it uses."""
    found = []
    for number, line in enumerate(text.split("\n")):
        found += [_item(number, match.start(), match.group()) for match in MARKER.finditer(line)]
        found += [_item(number, 0, "broken")] if "}{" in line else []
        for match in USES.finditer(line):
            if match[1] not in seen:
                used = found_in(text_of(match[1]), text_of, seen | {match[1]})
                found += [_item(number, 0, item["message"]) for item in used]
    return found


def _item(line: int, column: int, message: str) -> dict[str, Any]:
    start, end = {"line": line, "character": column}, {"line": line, "character": column + 1}
    return {"range": {"start": start, "end": end}, "message": message, "severity": 1}


def main() -> None:
    """Serve until the input ends."""
    words = sys.argv[1:]
    options = {words[at]: words[at + 1] for at, word in enumerate(words) if word.startswith("--") and word != "--"}
    points = dict(word.split("=", 1) for word in words if "=" in word)
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        Server(points, options.get("--way", "push"), float(options.get("--delay", "0"))).run()


if __name__ == "__main__":
    main()
