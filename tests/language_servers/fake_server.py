"""A language server for tests: it knows words and nothing else, and misbehaves as its arguments say.

Every `undefined_N` in a text is an error. `fake_server.py [BEHAVIOUR …]`:

- `utf-8`: positions count bytes
- `hang:METHOD`, `crash:METHOD`: never answers it, or ends when it comes
- `push`, `late`, `unversioned`: publishes diagnostics; after the next change; without the version of the text
- `lie`: ranges far outside of the text, diagnostics of other versions and of files that nobody opened
- `garbage`, `huge`, `flood`: writes something else than the protocol; one message without end; messages without end
- `deaf`: stops reading after the start
- `ask`: asks its client for everything that it may not have; `hover` tells the answers
- `child:FILE`: starts a process that outlives it and writes its number; `stubborn`: does not end when it is told to

Not here: what is done about it (`test_misbehaving_servers.py`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

WORD = re.compile(r"\w+")
WRONG = re.compile(r"undefined_\d+")
FAR = {"start": {"line": 10**6, "character": 0}, "end": {"line": 10**6, "character": 10**9}}
SEVEN = {"uri": "file:///etc/passwd", "diagnostics": [{"range": FAR, "message": "seven"}]}


class FakeServer:
    def __init__(self, behaviours: list[str]) -> None:
        self.behaviours = behaviours
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.late: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}

    def has(self, behaviour: str) -> bool:
        return behaviour in self.behaviours

    def serve(self) -> None:
        if self.has("garbage"):
            sys.stdout.write("Welcome to the server!\n" * 5000)
            sys.stdout.flush()
        for word in self.behaviours:
            if word.startswith("child:"):
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
                with open(word.partition(":")[2], "w") as file:  # noqa: PTH123
                    file.write(str(child.pid))
        if self.has("stubborn"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while message := read():
            self.take(message)

    def take(self, message: dict[str, Any]) -> None:
        method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            self.answers[str(identity)] = message.get("result", message.get("error"))
            return
        if self.has(f"crash:{method}"):
            sys.stderr.write("fatal: out of cheese\n")
            os._exit(3)
        if self.has(f"hang:{method}"):
            return
        handler = getattr(self, "on_" + method.rpartition("/")[2], None)
        found = handler(params) if handler is not None else None
        if identity is not None:
            write({"jsonrpc": "2.0", "id": identity, "result": found})
        if method == "initialized":
            self.begin()

    def begin(self) -> None:
        if self.has("huge"):
            sys.stdout.write("Content-Length: 99999999999999999999\r\n\r\n")
            sys.stdout.flush()
        while self.has("flood"):
            write({"jsonrpc": "2.0", "method": "window/logMessage", "params": {"message": "x" * 100_000}})
        while self.has("deaf"):
            time.sleep(60)
        if self.has("ask"):
            edit = {"changes": {uri: [{"range": FAR, "newText": "!"}] for uri in ("file:///etc/passwd", "file:///a")}}
            asked = {
                "workspace/applyEdit": {"edit": edit},
                "window/showDocument": {"uri": "https://example.org/"},
                "window/showMessageRequest": {"message": "Ok?", "actions": [{"title": "Ok"}]},
                "workspace/configuration": {"items": [{"section": "a.b.c"}, {"section": 7}, 5, {}]},
                "client/registerCapability": {"registrations": 5},
                "codeagent/secrets": {},
            }
            for number, (method, params) in enumerate(asked.items(), 1):
                write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def on_initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        pulls = not ({"push", "late", "unversioned"} & set(self.behaviours))
        providers = ("hover", "definition", "references", "rename", "codeAction")
        made: dict[str, Any] = {f"{name}Provider": True for name in providers}
        if self.has("utf-8"):
            made["positionEncoding"] = "utf-8"
        return {"capabilities": {**made, "textDocumentSync": 1, **({"diagnosticProvider": {}} if pulls else {})}}

    def on_shutdown(self, params: dict[str, Any]) -> None:
        return None

    def on_exit(self, params: dict[str, Any]) -> None:
        if not self.has("stubborn"):
            sys.exit(0)

    def on_didOpen(self, params: dict[str, Any]) -> None:
        document = params["textDocument"]
        self.changed(document["uri"], document["version"], document["text"])

    def on_didChange(self, params: dict[str, Any]) -> None:
        document = params["textDocument"]
        self.changed(document["uri"], document["version"], params["contentChanges"][-1]["text"])

    def on_didClose(self, params: dict[str, Any]) -> None:
        self.texts.pop(params["textDocument"]["uri"], None)

    def changed(self, uri: str, version: int, text: str) -> None:
        self.texts[uri], self.versions[uri] = text, version
        told = {"uri": uri, "version": version, "diagnostics": self.problems(uri)}
        if self.has("lie"):
            write({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": {**told, **SEVEN}})
        if self.has("unversioned"):
            del told["version"]
        if self.has("late"):
            self.late.append(told)
            told = self.late.pop(0) if len(self.late) > 1 else told
        if {"push", "late", "unversioned"} & set(self.behaviours):
            write({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": told})

    def on_diagnostic(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "full", "items": self.problems(params["textDocument"]["uri"])}

    def problems(self, uri: str) -> list[dict[str, Any]]:
        if self.has("lie"):
            return [{"range": FAR, "message": "far away", "severity": 1}, 5, {"message": 7}]  # type: ignore[list-item]
        found = []
        for number, line in enumerate(self.texts.get(uri, "").splitlines()):
            for match in WRONG.finditer(line):
                found.append({"range": self.span(number, line, *match.span()), "message": match[0], "severity": 1})
        return found

    def on_hover(self, params: dict[str, Any]) -> dict[str, Any] | None:
        if self.has("ask"):
            return {"contents": json.dumps(self.answers)}
        word = self.word(params)
        return {"contents": {"kind": "plaintext", "value": f"hover of {word}"}} if word else None

    def on_definition(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        return self.on_references(params)[:1]

    def on_references(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        word = self.word(params)
        found = []
        for uri, text in sorted(self.texts.items()):
            for number, line in enumerate(text.splitlines()):
                for match in WORD.finditer(line):
                    if match[0] == word:
                        found.append({"uri": uri, "range": self.span(number, line, *match.span())})
        return [{**each, "range": FAR} for each in found] if self.has("lie") else found

    def on_rename(self, params: dict[str, Any]) -> dict[str, Any]:
        changes: dict[str, list[dict[str, Any]]] = {}
        for each in self.on_references(params):
            changes.setdefault(each["uri"], []).append({"range": each["range"], "newText": params["newName"]})
        return {"changes": changes}

    def on_codeAction(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        uri, start = params["textDocument"]["uri"], params["range"]["start"]
        edit = {"changes": {uri: [{"range": {"start": start, "end": start}, "newText": "fixed "}]}}
        command = {"title": "Run", "command": "fake.run"}
        fix = {"title": "Fix it", "kind": "quickfix", "edit": edit, "command": command}
        return [fix, {"title": "Only a command", "command": command}, command]

    def word(self, params: dict[str, Any]) -> str:
        line = self.texts.get(params["textDocument"]["uri"], "").split("\n")[params["position"]["line"]]
        at = params["position"]["character"]
        spans = {match[0]: self.span(0, line, *match.span()) for match in WORD.finditer(line)}
        here = (word for word, span in spans.items() if span["start"]["character"] <= at <= span["end"]["character"])
        return next(here, "")

    def span(self, number: int, line: str, start: int, end: int) -> dict[str, Any]:
        first, last = (self.units(line[:at]) for at in (start, end))
        return {"start": {"line": number, "character": first}, "end": {"line": number, "character": last}}

    def units(self, text: str) -> int:
        return len(text.encode()) if self.has("utf-8") else len(text.encode("utf-16-le")) // 2


def read() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def write(message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    FakeServer(sys.argv[1:]).serve()
