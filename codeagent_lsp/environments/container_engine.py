"""A client of a container engine, Docker or Podman, over its Unix socket: the few calls of the Docker API in use.

Plain HTTP through httpx; the engine's own library would add another HTTP client, and threads. Only the streams of
`hijacked` connections are handled here. Not here: what is asked for (`container_box.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import httpx

from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.environments.failures import grade, grade_status
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.system import user_id
from codeagent_lsp.workspace.text.visible import one_line

VERSION = "v1.40"  # Docker 19.03, Podman 3
SECONDS = 60.0
CONNECT_SECONDS = 5.0
MAX_REPLY = 8 << 20
REASON = 300

_NAMED = ("DOCKER_HOST", "CONTAINER_HOST")


@dataclass(frozen=True, slots=True)
class Piped:
    """A hijacked connection as a pair of byte streams, without framing. The caller closes the writer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Engine:
    """A client of the container engine at a Unix socket. Each call makes a connection of its own and takes at most
    about 60 s. All methods raise EnvironmentProblem, with a sandbox error code.
    """

    def __init__(self, socket: str) -> None:
        self.socket = socket

    async def get(self, path: str, **query: str) -> Any:
        """Send a GET request to `path`, such as `/containers/json`, with these query parameters, and return the body
        decoded from JSON; None if it is empty.
        """
        return await self._request("GET", path, query)

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **query: str) -> Any:
        """Send a POST request to `path`, such as `/containers/create`, with `body` as JSON, and return the body of the
        answer decoded from JSON; None if it is empty.
        """
        return await self._request("POST", path, query, body)

    async def delete(self, path: str, **query: str) -> None:
        """Send a DELETE request to `path` with these query parameters; a missing object is not an error."""
        try:
            await self._request("DELETE", path, query)
        except EnvironmentProblem as problem:
            if problem.code != ErrorCode.SANDBOX_NOT_FOUND:
                raise

    async def hijacked(self, path: str, body: Mapping[str, Any] | None = None) -> Piped:
        """Send a POST request that turns the connection into a pair of byte streams (the Docker API's hijacking, HTTP
        101), and return these. The caller closes the writer.
        """
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"POST /{VERSION}{path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        try:
            async with asyncio.timeout(SECONDS):
                reader, writer = await _connect_socket(self.socket)
                try:
                    writer.write(head.encode() + data)
                    await writer.drain()
                    await _read_upgrade(reader)
                except BaseException:
                    writer.close()
                    raise
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            self._unreachable(error)
        return Piped(reader, writer)

    async def _request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            async with (
                httpx.AsyncClient(
                    transport=httpx.AsyncHTTPTransport(uds=self.socket),
                    base_url=f"http://engine/{VERSION}",
                    timeout=httpx.Timeout(SECONDS, connect=CONNECT_SECONDS),
                    # A proxy of the environment has no part in a socket of this machine.
                    trust_env=False,
                ) as client,
                client.stream(method, path, params=dict(query), json=body) as response,
            ):
                data = await _read_bounded(response)
        except UnicodeEncodeError as error:
            message = "A name is not UTF-8, which container engines cannot be told."
            raise EnvironmentProblem(message, ErrorCode.PARAMETER_ERROR) from error
        except (httpx.HTTPError, OSError) as error:
            self._unreachable(error)
        return _understood(response.status_code, data)

    def _unreachable(self, error: Exception) -> NoReturn:
        code = grade(error)
        if code == ErrorCode.TIMEOUT_ERROR:
            message = f"The container engine at {self.socket} did not answer within {SECONDS:g} s."
            raise EnvironmentProblem(message, code) from error
        reason = one_line(str(error) or type(error).__name__, REASON)
        message = f"No container engine answers at {self.socket}: {reason}. Start Docker or Podman's service."
        raise EnvironmentProblem(message, code) from error


def find_socket(environ: Mapping[str, str]) -> str:
    """Return the path of the engine's socket, from `DOCKER_HOST` or `CONTAINER_HOST`, else a usual one that can be
    written to; '' if there is none, or if the variable does not name a Unix socket.
    """
    for name in _NAMED:
        if environ.get(name):
            return environ[name].removeprefix("unix://") if environ[name].startswith(("unix://", "/")) else ""
    own = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user_id()}"
    usual = ("/var/run/docker.sock", f"{own}/docker.sock", f"{own}/podman/podman.sock", "/run/podman/podman.sock")
    return next((path for path in usual if Path(path).is_socket() and os.access(path, os.W_OK)), "")


async def _connect_socket(socket: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to a Unix socket. OSError if nobody listens, or where there are no such sockets."""
    if sys.platform == "win32":
        raise ConnectionRefusedError(socket)
    else:  # noqa: RET506 - or mypy finds it unreachable there
        return await asyncio.open_unix_connection(socket)


async def _read_upgrade(reader: asyncio.StreamReader) -> None:
    """Read the response head of a request for a hijacked connection. EnvironmentProblem if it is refused."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    found = re.match(r"HTTP/1\.\d (\d{3})\b", head)
    status = int(found[1]) if found else 500
    # Some engines answer 200 and hand the connection over all the same.
    if status not in (101, 200):
        _understood(status, await reader.read(MAX_REPLY))


async def _read_bounded(response: httpx.Response) -> bytes:
    data = bytearray()
    async for piece in response.aiter_raw():
        data += piece
        if len(data) > MAX_REPLY:
            raise EnvironmentProblem("The container engine says too much.", ErrorCode.VALIDATION_ERROR)
    return bytes(data)


def _understood(status: int, data: bytes) -> Any:
    try:
        said = json.loads(data) if data.strip() else None
    except ValueError:
        said = data.decode("utf-8", "replace")
        if status < 400:
            raise EnvironmentProblem("The container engine's answer is no JSON.", ErrorCode.VALIDATION_ERROR) from None
    if status < 400:
        return said
    reason = one_line(str(said.get("message", said)) if isinstance(said, dict) else str(said), REASON)
    raise EnvironmentProblem(f"The container engine refuses: {reason}", grade_status(status, reason))
