"""A shell behind the page's WebSocket, through terminado. All browsers see the same shell.

Runs in the serving program only. Not here: who is let in (`serving_guard.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from terminado.management import PtyWithClients, SingleTermManager
from terminado.websocket import TermSocket
from tornado.ioloop import IOLoop

from codeagent_lsp.environments.serving_guard import MAX_CLIENTS, Guarded

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
    """The connection of one browser to the shell."""

    def open(self, url_component: Any = None) -> None:
        """Join, unless MAX_CLIENTS are connected."""
        if len(self.term_manager.get_terminal().clients) >= MAX_CLIENTS:
            self.close(1013)
            return
        self.set_nodelay(True)
        super().open(None)

    def waiting(self) -> int:
        """Return the number of bytes waiting to be sent to its browser."""
        connection = self.ws_connection
        stream = getattr(connection, "stream", None)
        return len(stream._write_buffer) if stream is not None and not stream.closed() else 0


class OneShell(SingleTermManager):
    """The shell; `over` is called at its end. It pauses for slow browsers, so that no output accumulates."""

    def __init__(self, argv: Sequence[str], cwd: str, environment: Mapping[str, str], over: Callable[[], None]) -> None:
        words = [sys.executable, "-I", "-S", "-c", _LET_GO, *argv]
        super().__init__(shell_command=words)
        self._cwd, self._environment, self._over = cwd, dict(environment), over

    def new_terminal(self, **kwargs: Any) -> PtyWithClients:
        """Start the shell with exactly the given environment."""
        return PtyWithClients(self.shell_command, self._environment, self._cwd)

    def pty_read(self, fd: int, events: Any = None) -> None:
        """Forward the output."""
        clients = self.ptys_by_fd[fd].clients
        if any(client.waiting() > MAX_WAITING for client in clients):
            loop = IOLoop.current()
            # Nobody reads then, so the pipe fills up and the shell waits.
            loop.update_handler(fd, 0)
            loop.call_later(_PAUSE_SECONDS, self._go_on, fd)
            return
        super().pty_read(fd, events)

    def on_eof(self, ptywclients: PtyWithClients) -> None:
        """Handle the end of the shell."""
        super().on_eof(ptywclients)
        self._over()

    def _go_on(self, fd: int) -> None:
        if fd in self.ptys_by_fd:
            IOLoop.current().update_handler(fd, IOLoop.READ)


def made(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str], over: Callable[[], None]
) -> tuple[type[Terminal], dict[str, Any], int]:
    """Start the shell and return the WebSocket handler, its settings and the process id."""
    shell = OneShell(argv, cwd, environment, over)
    return Terminal, {"term_manager": shell}, shell.get_terminal().ptyproc.pid
