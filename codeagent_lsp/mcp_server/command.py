"""The commands that serve over MCP: `codeagent-lsp sandbox-mcp` opens a sandbox and ends with everything in it,
`codeagent-lsp editor-mcp` lends the user's editor to another agent.

Both end when their client closes standard input (if that is served), and on SIGTERM, SIGINT and SIGHUP. Only MCP
messages go to stdout; addresses and the token go to stderr. Not here: the parts. Heavy modules are imported late.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import sys
from collections.abc import Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import CodeAgentError, UsageError, UserError
from codeagent_lsp.settings_files import read_policy, read_user_settings
from codeagent_lsp.settings_layers import environment_layer, load, refusal
from codeagent_lsp.state import state_root
from codeagent_lsp.system import STOP_SIGNALS, call_on_stop
from codeagent_lsp.texts import text

if TYPE_CHECKING:  # the library is heavy, and may be missing
    from mcp.server.lowlevel import Server

Address = tuple[str, int | None]
"""A host and a port; None is the default port, or the next free one."""

DEFAULT_PORT, TRIED_PORTS = 8765, 100

DONE, FAILED, USAGE = 0, 1, 2  # exit codes
_NEEDED = ("mcp", "websockets", "uvicorn", "starlette")


def sandbox_command(workspace: str, language: str, *, http: Address | None, ws: Address | None, stdio: bool) -> int:
    """Serve until the client leaves or a signal comes, and return the exit code: 0, 1 for a failure, 2 for a wrong
    argument or missing library; errors are printed on stderr. Without an address, or with `stdio`, standard input and
    output are served.
    """
    try:
        folder = _folder(workspace).resolve()
        for address in filter(None, (http, ws)):
            _loopback(address)
        if not all(map(find_spec, _NEEDED)):
            raise UsageError("sandbox.needs_mcp")
    except UsageError as error:
        return _fail("sandbox-mcp", error, language, USAGE)
    serving = _sandbox(str(folder), http, ws, language, stdio=stdio or not (http or ws))
    return _serve("sandbox-mcp", serving, language)


def editor_command(workspace: str, language: str) -> int:
    """Serve standard input and output until the client leaves or a signal comes, and return the exit code as
    `sandbox_command`. It is no error if no editor has the folder open, as one may open it later.
    """
    try:
        folder = _folder(workspace)
        if not find_spec("mcp"):
            raise UsageError("lend.needs_mcp")
    except UsageError as error:
        return _fail("editor-mcp", error, language, USAGE)
    return _serve("editor-mcp", _editor(str(folder)), language)


def _serve(command: str, serving: Coroutine[Any, Any, None], language: str) -> int:
    # On stderr, which clients show or keep, and where they look for addresses.
    logging.basicConfig(level=logging.CRITICAL)
    try:
        asyncio.run(serving)
    except CodeAgentError as error:
        return _fail(command, error, language, FAILED)
    return DONE


def _fail(command: str, error: CodeAgentError, language: str, code: int) -> int:
    words = error.localized(language) if isinstance(error, UserError) else str(error)
    sys.stderr.write(f"codeagent-lsp {command}: {words}\n")
    return code


async def _editor(folder: str) -> None:
    from codeagent_lsp.mcp_server.editor_serving import Attachment, over_stdio  # late: heavy, and may be missing

    attachment = Attachment(state_root(), folder)
    try:
        await _until_one_ends([over_stdio(attachment)])
    finally:
        await attachment.close()


async def _sandbox(folder: str, http: Address | None, ws: Address | None, language: str, *, stdio: bool) -> None:
    from codeagent_lsp.mcp_server.sandbox import Sandbox, sandbox_settings  # late: heavy
    from codeagent_lsp.mcp_server.serving import make_server  # late: heavy
    from codeagent_lsp.mcp_server.transports import over_http, over_stdio, over_websocket  # late: heavy

    policy = read_policy()
    if (refused := refusal(policy)) is not None:
        raise UsageError(refused.key, **refused.values)
    settings, problems = load(environment_layer(), policy=policy, user=read_user_settings())
    for problem in problems:
        sys.stderr.write(f"{problem.localized(language)}\n")
    sandbox = Sandbox(folder, sandbox_settings(settings))
    server: Server[Any] = make_server(sandbox)
    token = secrets.token_urlsafe(32)
    ways: list[Coroutine[Any, Any, None]] = []
    try:
        if http is not None:
            ways.append(over_http(server, _announce(http, "http", "/mcp", token, language), token))
        if ws is not None:
            ways.append(over_websocket(server, _announce(ws, "ws", "", token, language), token))
        if stdio:
            ways.append(over_stdio(server))
        await _until_one_ends(ways)
    finally:
        for way in ways:
            # A coroutine that was never started would be warned about on stderr.
            way.close()
        await sandbox.close()


async def _until_one_ends(ways: list[Coroutine[Any, Any, None]]) -> None:
    """Serve until the first transport ends or a signal arrives; then end all others."""
    stopped = asyncio.Event()
    call_on_stop(asyncio.get_running_loop(), stopped.set, STOP_SIGNALS)
    tasks = [asyncio.create_task(way) for way in (*ways, _wait(stopped))]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


def _announce(address: Address, scheme: str, path: str, token: str, language: str) -> socket.socket:
    """Open a listening socket and print its URL and token on stderr. UsageError if the port cannot be used."""
    from codeagent_lsp.mcp_server.transports import address_of  # late: heavy

    opened = opened_at(address)
    url = f"{scheme}://{address_of(opened)}{path}"
    sys.stderr.write(text("sandbox.listening", language, url=url, token=token) + "\n")
    sys.stderr.flush()
    return opened


def opened_at(address: Address) -> socket.socket:
    """Return a socket that listens at an address, a loopback host and a port; without a port the first free one from
    8765 on, else any free one. UsageError if none is free.
    """
    from codeagent_lsp.mcp_server.transports import listening  # late: heavy

    host, port = address
    for wanted in range(DEFAULT_PORT, DEFAULT_PORT + TRIED_PORTS) if port is None else ():
        with contextlib.suppress(OSError):
            return listening(host, wanted)
    try:
        return listening(host, port or 0)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError("sandbox.no_port", address=f"{host}:{port}", reason=reason) from error


def _folder(workspace: str) -> Path:
    folder = Path(workspace).absolute()
    if not folder.is_dir():
        raise UsageError("terminal.folder", folder=workspace)
    return folder


def _loopback(address: Address) -> None:
    if address[0] not in ("127.0.0.1", "localhost", "::1"):
        raise UsageError("sandbox.not_loopback", host=address[0])
