"""Access control of the serving program: the token in the path, the Host header, and the Origin header.

Every path begins with the token: a cookie would be sent to every other port of this machine. Runs in the serving
program only. Not here: what is served besides files.
"""

from __future__ import annotations

import hmac
import mimetypes
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.web import Application, HTTPError, RequestHandler

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
    """A request handler that refuses unauthorised requests first."""

    def prepare(self) -> None:
        """Refuse an unauthorised request (HTTPError)."""
        status = refusal(self.request.path, self.request.headers, self.settings["token"])
        if status is not None:
            raise HTTPError(status)

    def set_default_headers(self) -> None:
        """Set the security headers of every response."""
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write the status code only, without details."""
        self.set_header("Content-Type", "text/plain")
        self.finish(f"{status_code}\n")


class PageFiles(Guarded):
    """Serves the listed files of the page and no others."""

    def get(self, name: str = "") -> None:
        """Send one file. HTTPError 404 if it is not listed."""
        path = self.settings["files"].get(name)
        if path is None:
            raise HTTPError(404)
        self.set_header("Content-Type", mimetypes.guess_type(path)[0] or "application/octet-stream")
        self.finish(Path(path).read_bytes())


def refusal(path: str, headers: Mapping[str, str], token: str) -> int | None:
    """Return the HTTP status for a refused request; None if it may proceed."""
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
    """Return a server on a listening socket; `handler`, with its `settings`, is the page's WebSocket."""
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
