"""A program that connects its own terminal with a program in a container, as long as both last.

Its arguments are the engine's socket and the API path of the program, which it starts. Bytes pass both ways unchanged,
and the terminal's size is forwarded. It imports the standard library only, so that it starts fast. Not here: the
container (`container_box.py`), the terminal (`serving_page.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import termios
import threading
import tty
from contextlib import suppress

assert sys.platform != "win32"

SECONDS = 60.0
_CHUNK = 1 << 16
_MAX_HEAD = 1 << 16
_BEGUN = (b"101", b"200")


def main() -> None:
    """Connect the terminal at standard input with the program, both named by the arguments (the engine's socket, the
    program's path), until one of them ends. OSError if the engine does not answer within 60 s.
    """
    engine, path = sys.argv[1:]
    with suppress(OSError):  # another session has it: then only its changes of size are not heard of
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    tty.setraw(0, termios.TCSANOW)  # what is typed already stays
    joined, data = _begin(engine, path)
    signal.signal(signal.SIGWINCH, lambda number, frame: _resize(engine, path))
    # The main thread waits for output; this one ends with it, amid a read.
    threading.Thread(target=_type, args=(joined,), daemon=True).start()
    sized = False
    while data or (data := joined.recv(_CHUNK)):
        if not sized:  # a program that says something has its terminal
            sized = True
            _resize(engine, path)
        _show(data)
        data = b""


def _begin(engine: str, path: str) -> tuple[socket.socket, bytes]:
    """Start the program and return the connection to its terminal with the first bytes of output."""
    joined = _connect(engine)
    joined.sendall(_request(f"{path}/start", {"Detach": False, "Tty": True}, "Connection: Upgrade\r\nUpgrade: tcp\r\n"))
    said = b""
    while b"\r\n\r\n" not in said and len(said) < _MAX_HEAD and (data := joined.recv(_CHUNK)):
        said += data
    head, _, first = said.partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] not in ([status] for status in _BEGUN):
        _show(b"The container did not start a shell: " + first[:500] + b"\r\n")
        sys.exit(1)
    # The limit is for the start: a shell may be silent for hours.
    joined.settimeout(None)
    return joined, first


def _resize(engine: str, path: str) -> None:
    """Give the program the size of our terminal; ignored if it has ended."""
    with suppress(OSError):
        size = os.get_terminal_size(0)
        with _connect(engine) as asked:
            asked.sendall(_request(f"{path}/resize?h={size.lines}&w={size.columns}", {}, "Connection: close\r\n"))
            asked.recv(_CHUNK)


def _type(joined: socket.socket) -> None:
    """Forward the input; the end of the terminal closes the connection."""
    with suppress(OSError):
        while data := os.read(0, _CHUNK):
            joined.sendall(data)
    with suppress(OSError):
        joined.shutdown(socket.SHUT_RDWR)


def _show(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _connect(engine: str) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    opened.settimeout(SECONDS)
    opened.connect(engine)
    return opened


def _request(path: str, body: dict[str, bool], more: str) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


if __name__ == "__main__":
    main()
