"""The server of the tests: `CodeAgentServer` with handlers that misbehave in every way a feature could.

`python -m tests.server.demo_server [--tcp]`. Methods are `test/...`; commands are `demo.echo` and `demo.slow`.
"""

from __future__ import annotations

import asyncio
import builtins
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lsprotocol import types

from codeagent_lsp.errors import CodeAgentError, UsageError
from codeagent_lsp.server.clients import policy_of
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.run_services import LentServers
from codeagent_lsp.server.server import CodeAgentServer


def build() -> CodeAgentServer:
    """A server with the test handlers."""
    server = CodeAgentServer()
    _add_plain(server)
    _add_slow(server)
    _add_outgoing(server)
    server.offer_commands(("demo.echo", "demo.slow"), _command)
    return server


def _add_plain(server: CodeAgentServer) -> None:
    @server.feature("test/echo")
    def echo(params: Any) -> Any:
        return params

    @server.feature("test/text")
    def text(params: Any) -> Any:
        document = server.documents.get(params["uri"])
        return None if document is None else {"text": document.text, "version": document.version}

    @server.feature("test/memory")
    def memory(params: Any) -> Any:
        status = Path("/proc/self/status").read_text()
        return {line.split()[0][:-1]: int(line.split()[1]) for line in status.splitlines() if "kB" in line}

    @server.feature("test/raise")
    def fail(params: Any) -> Any:
        raise _error(params)

    @server.feature("test/raiseLater")
    async def fail_later(params: Any) -> Any:
        await asyncio.sleep(0)
        raise _error(params)

    @server.feature("test/raiseInThread")
    @server.thread()
    def fail_in_thread(params: Any) -> Any:
        raise _error(params)

    @server.feature("test/unserializable")
    def unserializable(params: Any) -> Any:
        return {"nan": float("nan"), "object": object, "deep": _deep(5000)}[params["kind"]]

    @server.feature("textDocument/hover")
    def hover(params: types.HoverParams) -> types.Hover:
        return types.Hover(contents=f"{params.position.line}:{params.position.character}")


def _add_slow(server: CodeAgentServer) -> None:
    @server.feature("test/sleep")
    async def sleep(params: Any) -> Any:
        try:
            await asyncio.sleep(params["seconds"])
        except asyncio.CancelledError:
            server.notify("test/cleanedUp", params)
            raise
        return "slept"

    @server.feature("test/block")
    @server.thread()
    def block(params: Any) -> Any:
        time.sleep(params["seconds"])
        return "blocked"

    @server.feature("test/hang")
    def hang(params: Any) -> Any:
        time.sleep(params["seconds"])

    @server.feature("test/cancelSelf")
    async def cancel_self(params: Any) -> Any:
        raise asyncio.CancelledError

    @server.feature("test/tasks")
    async def tasks(params: Any) -> Any:
        await asyncio.sleep(0.05)
        return len(asyncio.all_tasks())

    @server.on_close
    async def flush() -> None:
        if "--mark" in sys.argv:
            await asyncio.sleep(0.2)
            _mark_flushed()
        if "--slow-close" in sys.argv:
            _hang()

    @server.on_started
    async def load() -> None:
        server.notify("test/started")


def _add_outgoing(server: CodeAgentServer) -> None:
    @server.feature("test/flood")
    def flood(params: Any) -> Any:
        pad = "x" * params["size"]
        for number in range(params["count"]):
            value = {"kind": "report", "message": f"{number} {pad}"}
            server.notify("$/progress", {"token": "t", "value": value})
            server.notify("window/logMessage", {"type": 4, "message": f"{number} {pad}"})
        server.notify("$/progress", {"token": "t", "value": {"kind": "end"}})

    @server.feature("test/big")
    def big(params: Any) -> Any:
        return "x" * params["size"]

    @server.feature("test/ask")
    async def ask(params: Any) -> Any:
        try:
            answer = await server.request(params["method"], params.get("params"), params["seconds"])
        except CodeAgentError as error:
            return {"error": str(error), "open": len(server.protocol.requests)}
        return {"answer": answer, "open": len(server.protocol.requests)}

    @server.feature("test/lent")
    async def lent(params: Any) -> Any:
        policy = policy_of(types.InitializeParams(capabilities=server.client_capabilities))
        found = await LentServers(Client(server, policy=policy)).ask(**params)
        return [[answer.server, answer.result, answer.encoding] for answer in found]

    @server.feature("test/print")
    def stray(params: Any) -> Any:
        builtins.print("a stray print", flush=True)
        sys.stdout.write("another\n")
        subprocess.run(["/bin/sh", "-c", "echo from a child; cat"], check=True, timeout=5)


def _mark_flushed() -> None:
    Path(sys.argv[-1]).write_text("flushed")


def _hang() -> None:
    time.sleep(30)


def _error(params: Any) -> BaseException:
    kind = params["kind"]
    if kind == "UsageError":
        return UsageError("setting.unknown", key="codeagent.color")
    error: BaseException = getattr(builtins, kind)("a secret: " + params.get("secret", ""))
    return error


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


async def _command(name: str, arguments: list[Any]) -> Any:
    if name == "demo.slow":
        await asyncio.sleep(30)
    return {"name": name, "arguments": arguments}


if __name__ == "__main__":
    if "--tcp" in sys.argv:
        build().serve_tcp()
    build().serve_stdio()
