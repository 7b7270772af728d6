"""The page of the serving program: the check of requests, and the two ends of its WebSocket, a shell or an X server.

Every path begins with a token: a cookie would be sent to every other port of this machine. The shell runs through
terminado, and all browsers see the same one; to the X server's socket bytes are relayed unchanged. Tornado is imported
here, at the top, so the program imports this module late. Not here: what a desktop is made of (`serving_screen.py`).
"""

from __future__ import annotations

import asyncio
import hmac
import mimetypes
import os
import socket
import stat
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from terminado.management import PtyWithClients, SingleTermManager
from terminado.websocket import TermSocket
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, HTTPError, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

NAMES = ("127.0.0.1", "localhost")
SOCKET = "socket"
MAX_MESSAGE = 1 << 20
MAX_CLIENTS = 8

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self' ws:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guarded(RequestHandler):
    """A request handler that refuses requests from other machines or pages, or without the token, before anything
    else.
    """

    def prepare(self) -> None:
        """Refuse an unauthorised request with HTTPError 403 or 421; called by tornado before the
        request's own method.
        """
        status = refusal(self.request.path, self.request.headers, self.settings["token"])
        if status is not None:
            raise HTTPError(status)

    def set_default_headers(self) -> None:
        """Set the security headers of every response, and remove the one that names the server."""
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write the status code only, as plain text, without details of the error."""
        self.set_header("Content-Type", "text/plain")
        self.finish(f"{status_code}\n")


class PageFiles(Guarded):
    """Serves the files of the page that the server's setting `files` lists (paths by name), and no others."""

    def get(self, name: str = "") -> None:
        """Send one file of the page; the name '' is its first. HTTPError 404 if it is not listed. Blocks while reading
        it.
        """
        path = self.settings["files"].get(name)
        if path is None:
            raise HTTPError(404)
        self.set_header("Content-Type", mimetypes.guess_type(path)[0] or "application/octet-stream")
        self.finish(Path(path).read_bytes())


def refusal(path: str, headers: Mapping[str, str], token: str) -> int | None:
    """Return the HTTP status with which to refuse a request, 421 or 403; None if it is for this machine, from the page
    itself, and its path begins with the token.
    """
    host = headers.get("Host", "")
    if _name(f"//{host}") not in NAMES:  # a name of the web that leads here
        return 421
    origin = headers.get("Origin")
    if origin is not None and origin != f"http://{host}":  # another page, of another port too
        return 403
    given = path.split("/")[1] if path.startswith("/") else ""
    return None if hmac.compare_digest(given.encode(), token.encode()) else 403


def serve(
    opened: socket.socket, token: str, files: Mapping[str, str], handler: Any, settings: Mapping[str, Any]
) -> HTTPServer:
    """Return a running server (tornado) on a listening socket, which it takes over, in the running event loop. It
    serves the page's `files` (paths by name) below `/TOKEN/` and, with `handler` and its `settings`, the page's
    WebSocket.
    """
    application = Application(
        [(rf"/[^/]+/{SOCKET}", handler, dict(settings)), (r"/[^/]+/(.*)", PageFiles)],
        default_handler_class=Guarded,
        token=token,
        files=files,
        log_function=lambda handler: None,
        websocket_max_message_size=MAX_MESSAGE,
        websocket_ping_interval=20,
    )
    server = HTTPServer(
        application, idle_connection_timeout=60, body_timeout=10, max_body_size=1 << 16, max_header_size=1 << 15
    )
    server.add_socket(opened)
    return server


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


MAX_WAITING = 1 << 20
_PAUSE_SECONDS = 0.05

# The shell takes the terminal in a session of its own, which works only while no session has the terminal.
_LET_GO = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal(Guarded, TermSocket):
    """The WebSocket of one browser to the shared shell, with terminado's messages."""

    def open(self, url_component: Any = None) -> None:
        """Join the shell; if 8 browsers are connected already, close with code 1013 (try again later)."""
        if len(self.term_manager.get_terminal().clients) >= MAX_CLIENTS:
            self.close(1013)
            return
        self.set_nodelay(True)
        super().open(None)

    def waiting(self) -> int:
        """Return the number of bytes waiting to be sent to its browser; 0 if the connection is closed."""
        connection = self.ws_connection
        stream = getattr(connection, "stream", None)
        return len(stream._write_buffer) if stream is not None and not stream.closed() else 0


class OneShell(SingleTermManager):
    """The one shell that all browsers share; `over` is called at its end. Its output pauses while a browser has more
    than 1 MiB unsent, so that none accumulates.
    """

    def __init__(self, argv: Sequence[str], cwd: str, environment: Mapping[str, str], over: Callable[[], None]) -> None:
        words = [sys.executable, "-I", "-S", "-c", _LET_GO, *argv]
        super().__init__(shell_command=words)
        self._cwd, self._environment, self._over = cwd, dict(environment), over

    def new_terminal(self, **kwargs: Any) -> PtyWithClients:
        """Start the shell in a new terminal, with exactly the given environment, and return it; other arguments are
        ignored. OSError if it cannot be started.
        """
        return PtyWithClients(self.shell_command, self._environment, self._cwd)

    def pty_read(self, fd: int, events: Any = None) -> None:
        """Forward the shell's output, readable at `fd`, to all browsers, or wait 50 ms if one is too slow. Called by
        tornado's loop.
        """
        clients = self.ptys_by_fd[fd].clients
        if any(client.waiting() > MAX_WAITING for client in clients):
            loop = IOLoop.current()
            # Nobody reads then, so the pipe fills up and the shell waits.
            loop.update_handler(fd, 0)
            loop.call_later(_PAUSE_SECONDS, self._go_on, fd)
            return
        super().pty_read(fd, events)

    def on_eof(self, ptywclients: PtyWithClients) -> None:
        """Close the connections at the end of the shell and call `over`; called by terminado."""
        super().on_eof(ptywclients)
        self._over()

    def _go_on(self, fd: int) -> None:
        if fd in self.ptys_by_fd:
            IOLoop.current().update_handler(fd, IOLoop.READ)


def start_shell(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str], over: Callable[[], None]
) -> tuple[type[Terminal], dict[str, Any], int]:
    """Start the shell in the absolute folder `cwd` with exactly this environment, and return the WebSocket handler, its
    settings and the process id. `over` is called when the shell has ended. OSError if it cannot be started.
    """
    shell = OneShell(argv, cwd, environment, over)
    return Terminal, {"term_manager": shell}, shell.get_terminal().ptyproc.pid


STARTING_SECONDS = 60.0
_CHUNK = 1 << 16
_LAST_WORDS = 2000


class Relay(Guarded, WebSocketHandler):
    """The WebSocket of one browser to the X server. `path` is that server's Unix socket; `clients` are all connected
    browsers.
    """

    def initialize(self, path: str, clients: set[Relay]) -> None:
        """Take the settings of the handler, the socket's path and the set of all browsers; called by tornado before the
        connection opens.
        """
        self._path, self._clients = path, clients
        self._writer: StreamWriter | None = None
        self._pumping: asyncio.Task[None] | None = None

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """Return `binary`, which older versions of noVNC ask for, if it is offered; else None."""
        return "binary" if "binary" in subprotocols else None

    async def open(self, *args: str, **kwargs: str) -> None:
        """Connect to the X server and forward its data. Closes with code 1013 if 8 browsers are connected already, with
        1011 if the X server does not answer.
        """
        if len(self._clients) >= MAX_CLIENTS:
            # 1013: try again later.
            self.close(1013)
            return
        self._clients.add(self)
        self.set_nodelay(True)
        try:
            reader, self._writer = await connect_to_socket(self._path)
        except OSError:
            self.close(1011)
            return
        self._pumping = asyncio.ensure_future(self._pump(reader))

    async def on_message(self, message: str | bytes) -> None:
        """Forward bytes from the browser, waiting while the X server is busy; close if it is gone."""
        if self._writer is not None and isinstance(message, bytes):
            try:
                self._writer.write(message)
                await self._writer.drain()
            except OSError:
                self.close()

    def on_close(self) -> None:
        """Disconnect from the X server after the browser has disconnected."""
        self._clients.discard(self)
        if self._pumping is not None:
            self._pumping.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _pump(self, reader: StreamReader) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await self.write_message(data, binary=True)
        except (OSError, WebSocketClosedError):
            pass
        self.close()


async def connect_to_socket(path: str) -> tuple[StreamReader, StreamWriter]:
    """Return a connection to the Unix socket at `path`, which must not be a link. OSError if there is none, and always
    on systems other than Linux.
    """
    if sys.platform != "linux":
        raise ConnectionRefusedError("no desktop on this system")
    else:  # noqa: RET506 - or mypy finds it unreachable there
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                raise ConnectionRefusedError("no socket")
            # By the descriptor: at the path a link may stand since the look.
            return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)


async def start_desktop(spec: dict[str, Any], over: Callable[[], None]) -> tuple[type[Relay], dict[str, Any], int]:
    """Start the desktop of `spec`, the one that the serving program reads, and return the WebSocket handler, its
    settings and the process id. `over` is called when it has ended. OSError if it ends at once or does not answer
    within 60 s.
    """
    path = f"{spec['folder']}/{spec['socket']}"
    process = await asyncio.create_subprocess_exec(
        *spec["argv"], cwd=spec["cwd"], env=spec["environment"], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    words = asyncio.ensure_future(_last_output(process, over))
    try:
        async with asyncio.timeout(STARTING_SECONDS):
            while not await _answers(path):
                if words.done():
                    raise OSError(f"The desktop ended at its start: {words.result()}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise OSError(f"The desktop did not start within {STARTING_SECONDS:g} s.") from None
    return Relay, {"path": path, "clients": set()}, process.pid


async def _answers(path: str) -> bool:
    try:
        _, writer = await connect_to_socket(path)
    except OSError:
        return False
    writer.close()
    return True


async def _last_output(process: Process, over: Callable[[], None]) -> str:
    """Return the end of the desktop's output once it has ended."""
    assert process.stdout is not None
    said = b""
    while data := await process.stdout.read(_CHUNK):
        said = (said + data)[-_LAST_WORDS:]
    await process.wait()
    over()
    return " ".join(said.decode(errors="replace").split())
