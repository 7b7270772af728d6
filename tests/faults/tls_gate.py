"""TLS in front of a plain server, by blocking sockets: unlike asyncio, they say by an alert why a handshake failed."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def tls_gate(context: ssl.SSLContext, port: int) -> Iterator[int]:
    """A port of loopback that speaks TLS and passes everything on to `port`."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=_serve, args=(context, connection, port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _serve(context: ssl.SSLContext, connection: socket.socket, port: int) -> None:
    connection.settimeout(20)
    wrapped = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    with suppress(OSError), wrapped:
        try:
            wrapped.do_handshake()
        except ssl.SSLError:
            _drained(wrapped)  # closed with unread data, the connection would be reset and the alert lost
            return
        with socket.create_connection(("127.0.0.1", port)) as inner:
            inner.settimeout(20)
            back = threading.Thread(target=_copied, args=(inner, wrapped), daemon=True)
            back.start()
            _copied(wrapped, inner)
            with suppress(OSError):
                inner.shutdown(socket.SHUT_WR)
            back.join()


def _drained(wrapped: ssl.SSLSocket) -> None:
    raw = socket.socket(fileno=wrapped.detach())
    with raw, suppress(OSError):
        raw.settimeout(20)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(1 << 16):
            pass


def _copied(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
