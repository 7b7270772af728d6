"""A box for agents that have none: only given folders can be written, and of the network only one address is reached.

bubblewrap gives the command a network with loopback alone. There this module, as a program, listens at the port that
the model's proxy has outside, and passes each connection on through a socket file at which `doors` listens outside:

    python -I boxed.py SOCKET PORT COMMAND…

So an agent is told the same URL as without a box. Not here: what is run in it (`agents_peers.py`, `agents_node.py`).
It imports nothing of ours, as it runs by itself.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PIECE = 65536


@dataclass(frozen=True, slots=True)
class Box:
    """The way out of boxes: `door` is the socket file, behind which is the server at `port` of loopback."""

    door: Path
    port: int

    def command(self, command: Sequence[str], writable: Sequence[Path]) -> list[str]:
        """Return a command in a box in which these folders can be written."""
        binds = [word for place in writable for word in ("--bind", str(place), str(place))]
        return [
            "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *binds,
            "--unshare-net", "--die-with-parent",
            sys.executable, "-I", str(Path(__file__).resolve()), str(self.door), str(self.port), *command,
        ]  # fmt: skip


@contextlib.contextmanager
def doors(url: str, folder: Path) -> Iterator[Box]:
    """Yield a box whose commands reach the server at this URL of loopback; the socket file is put into the folder."""
    port = urlsplit(url).port or 80
    door = folder / "door"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(door))
    try:
        with _passing(listener, lambda: socket.create_connection(("127.0.0.1", port))):
            yield Box(door, port)
    finally:
        door.unlink(missing_ok=True)


@contextlib.contextmanager
def _passing(listener: socket.socket, connect: Callable[[], socket.socket]) -> Iterator[None]:
    """Pass what comes to a listener on to what `connect` reaches, until the end of the context."""
    listener.listen()

    def accept() -> None:
        while True:
            try:
                came, _ = listener.accept()
            except OSError:
                return  # it was closed
            threading.Thread(target=_pass_on, args=(came, connect), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # closing alone does not wake who accepts
        listener.close()
        thread.join()


def _pass_on(came: socket.socket, connect: Callable[[], socket.socket]) -> None:
    """Pass bytes both ways until both sides are done; who goes away ends the other side."""
    try:
        far = connect()
    except OSError:
        came.close()
        return
    with came, far:
        back = threading.Thread(target=_copy, args=(far, came), daemon=True)
        back.start()
        _copy(came, far)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def main(door: str, port: str, *command: str) -> int:
    """Run a command beside a listener that passes connections on; its exit code."""

    def connect() -> socket.socket:
        far = socket.socket(socket.AF_UNIX)
        far.connect(door)
        return far

    listener = socket.create_server(("127.0.0.1", int(port)))
    with _passing(listener, connect):
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
