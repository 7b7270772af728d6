"""The server without a process: bytes go in through framing and dispatch, messages come out in a list."""

from __future__ import annotations

import json
from typing import Any

from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.wire.framing import PARSE_ERROR, Damage, Framer, Malformed, read
from codeagent_lsp.server.wire.outgoing import Outgoing
from tests.server.demo_server import build
from tests.server.rawclient import frame

INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}


class _Collector(Outgoing):
    """Keeps what would be written."""

    def __init__(self) -> None:
        super().__init__(lambda data: None, lambda reason, code: None)
        self.sent: list[dict[str, Any]] = []

    def send(self, body: bytes, **_options: Any) -> None:
        self.sent.append(json.loads(body))


class Loopback:
    """Use inside a running event loop. `sent` is what the server has sent and nobody took yet."""

    def __init__(self, server: CodeAgentServer | None = None) -> None:
        self.server = server or build()
        self._collector = _Collector()
        self._framer = Framer()
        self.server.protocol.outgoing = self._collector

    @property
    def sent(self) -> list[dict[str, Any]]:
        """Messages of the server, oldest first."""
        return self._collector.sent

    def feed(self, data: bytes) -> None:
        """Give the server bytes."""
        self._framer.feed(data)
        while (part := self._framer.next()) is not None:
            if isinstance(part, Damage):
                self.server.protocol.receive(Malformed(None, PARSE_ERROR, part.reason))
            else:
                message, tail = read(part.data)
                self._framer.unread(tail)
                self.server.protocol.receive(message)

    def body(self, body: bytes | str) -> list[dict[str, Any]]:
        """Give the server one body with a right header; what it sends at once."""
        self.feed(frame(body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body))
        return self.take()

    def say(self, **members: Any) -> list[dict[str, Any]]:
        """Give the server a message; what it sends at once."""
        return self.body(json.dumps({"jsonrpc": "2.0", **members}))

    def take(self) -> list[dict[str, Any]]:
        """What the server has sent since the last time."""
        sent = list(self.sent)
        self.sent.clear()
        return sent

    def initialize(self) -> None:
        """Bring the server to work."""
        (answer,) = self.say(id="init", method="initialize", params=INITIALIZE)
        assert "result" in answer, answer
        self.say(method="initialized", params={})
        self.take()
