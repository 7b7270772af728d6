"""A language server that knows words and nothing else, for editors to lend: `word_server.py [BEHAVIOUR …]`.

`utf-8`: positions count bytes. `hang:METHOD`, `crash:METHOD`: never answers it, or ends when it comes. Not here:
servers that we start ourselves (`tests/language_servers/`).
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

WORD = re.compile(r"\w+")


class WordServer:
    def __init__(self, behaviours: list[str]) -> None:
        self.behaviours = behaviours
        self.texts: dict[str, str] = {}

    def has(self, behaviour: str) -> bool:
        return behaviour in self.behaviours

    def serve(self) -> None:
        while message := read():
            self.take(message)

    def take(self, message: dict[str, Any]) -> None:
        method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
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

    def on_initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        providers = ("hover", "definition", "references", "rename", "codeAction")
        made: dict[str, Any] = {f"{name}Provider": True for name in providers}
        if self.has("utf-8"):
            made["positionEncoding"] = "utf-8"
        return {"capabilities": {**made, "textDocumentSync": 1}}

    def on_shutdown(self, params: dict[str, Any]) -> None:
        return None

    def on_exit(self, params: dict[str, Any]) -> None:
        sys.exit(0)

    def on_didOpen(self, params: dict[str, Any]) -> None:
        document = params["textDocument"]
        self.texts[document["uri"]] = document["text"]

    def on_didChange(self, params: dict[str, Any]) -> None:
        document = params["textDocument"]
        self.texts[document["uri"]] = params["contentChanges"][-1]["text"]

    def on_didClose(self, params: dict[str, Any]) -> None:
        self.texts.pop(params["textDocument"]["uri"], None)

    def on_hover(self, params: dict[str, Any]) -> dict[str, Any] | None:
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
        return found

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
    WordServer(sys.argv[1:]).serve()
