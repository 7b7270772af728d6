"""Seeded damage to JSON-RPC frames: bytes, headers, lengths and whole shapes, for the fuzz tests."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.server.rawclient import frame

_PLACE = {"line": 0, "character": 1}
_SEEDS: tuple[dict[str, Any], ...] = (
    {"id": 1, "method": "test/echo", "params": {"a": [1, None, {"jsonrpc": "2.0"}]}},
    {"id": 2, "method": "textDocument/hover", "params": {"textDocument": {"uri": "u"}, "position": _PLACE}},
    {"id": 3, "method": "workspace/executeCommand", "params": {"command": "demo.echo", "arguments": [{}]}},
    {"id": 4, "method": "test/sleep", "params": {"seconds": 0.01}},
    {"id": 5, "method": "test/raise", "params": {"kind": "KeyError"}},
    {"method": "$/cancelRequest", "params": {"id": 4}},
    {"method": "$/setTrace", "params": {"value": "off"}},
    {"method": "workspace/didChangeWorkspaceFolders", "params": {"event": {"added": [], "removed": []}}},
    {
        "method": "textDocument/didOpen",
        "params": {"textDocument": {"uri": "file:///f", "languageId": "x", "version": 1, "text": "ab\ncd"}},
    },
    {
        "method": "textDocument/didChange",
        "params": {
            "textDocument": {"uri": "file:///f", "version": 2},
            "contentChanges": [{"range": {"start": _PLACE, "end": _PLACE}, "text": "é"}],
        },
    },
    {"method": "textDocument/didClose", "params": {"textDocument": {"uri": "file:///f"}}},
    {"method": "window/workDoneProgress/cancel", "params": {"token": "t"}},
    {"id": "server-1", "result": {"applied": True}},
    {"id": 6, "error": {"code": -1, "message": "no"}},
)
_VALUES: tuple[Any, ...] = (None, True, -1, 2**70, 1.5, "", "x", "\ud800", [], {}, [[]], {"jsonrpc": "2.0"}, 1e308)
_BYTES = (
    b"",
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b'"',
    b"\\",
    b"\r\n",
    b"\r\n\r\n",
    b"Content-Length: 3\r\n",
    b"NaN",
    b"9" * 30,
)
_LENGTHS = (b"-1", b"", b"0", b"x", b"1e3", b"99999999999999999999", b"70000000", b"1000", b"3")
_FATAL = frozenset({"shutdown", "exit", "initialize"})  # the fuzz never says these, so it must never leave


def mutated_frame(rng: random.Random) -> bytes:
    """A frame that is good, nearly good, or not a frame at all."""
    message = {"jsonrpc": "2.0", **json.loads(json.dumps(rng.choice(_SEEDS)))}
    kind = rng.randrange(6)
    if kind == 0:
        return frame(_reshaped(rng, message))
    if kind == 1:
        return frame(_bitten(rng, json.dumps(message).encode()))
    if kind == 2:
        body = json.dumps(message).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (max(len(body) + rng.randint(-20, 200), 0), body)
    if kind == 3:
        return _bitten(rng, frame(message))
    if kind == 4:
        return b"Content-Length: %s\r\n\r\n%s" % (rng.choice(_LENGTHS), json.dumps(message).encode())
    return frame(rng.choice(_VALUES)) if rng.random() < 0.3 else frame(message)


def _reshaped(rng: random.Random, message: dict[str, Any]) -> Any:
    """The message with some value, at any depth, removed or replaced."""
    node: Any = message
    while isinstance(node, dict | list) and node:
        key: Any = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if rng.random() < 0.4 or not isinstance(node[key], dict | list):
            if rng.random() < 0.3:
                del node[key]
            else:
                node[key] = rng.choice(_VALUES)
            break
        node = node[key]
    return message


def _bitten(rng: random.Random, data: bytes) -> bytes:
    """Bytes with a few of them cut, doubled or replaced."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 0, 1, 1, 5, 40)))
        data = data[:start] + rng.choice((*_BYTES, data[start:end] * 2)) + data[end:]
    return data if not any(word.encode() in data for word in _FATAL) else b""
