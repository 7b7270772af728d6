"""Whether a command was begun at all, and what those say that start it where it was not.

They mount what was there a moment ago, folders of the system, and masks over sockets. Where one of these is gone by
then, as sockets come and go, they end before the command: nothing has run, and the same can be tried again. Not here:
what is mounted (`sandbox.py`, `overlay.py`), when it is tried again (`workspace.py`, `probe.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codeagent_lsp.shadow.mounts import NOT_MOUNTED
from codeagent_lsp.shadow.shell import Finished, Launch, OnOutput, Stream

TRIES = 5
"""How often a command is started that is not begun: each time with what is there then."""

_SPEAKERS = ("bwrap: ", "mount: ")
_LONGEST = max(map(len, _SPEAKERS))
_NO_PROGRAM = "bwrap: execvp "
_MOST_HELD = 4096


def with_patience(attempt: Callable[[], str | None]) -> str | None:
    """Return the result of an attempt, None or why it failed, made again where a mount failed. Blocks."""
    problem = attempt()
    for _ in range(TRIES - 1):
        if problem is None or not problem.startswith(_SPEAKERS):
            break
        problem = attempt()
    return problem


def never_began(launch: Launch, finished: Finished) -> bool:
    """Return whether a command in bubblewrap ended before it was begun. Reads a file."""
    if not launch.status or finished.ending != "exited" or finished.exit_code not in (1, NOT_MOUNTED):
        return False
    if not finished.output.startswith(_SPEAKERS) or finished.output.startswith(_NO_PROGRAM):
        return False
    try:
        # Bubblewrap's own word: what a command prints proves nothing.
        return b'"exit-code"' not in Path(launch.status).read_bytes()
    except FileNotFoundError:
        return True
    except OSError:
        return False


class HeldOutput:
    """Passes the output of a command on, but not yet what may be words of those that start it: whether they are
    its own is known at its end.
    """

    def __init__(self, on_output: OnOutput) -> None:
        self._on_output = on_output
        self._held: list[tuple[Stream, str]] = []
        self._begins = ""  # as much of the first words as tells whose they are
        self._size = 0
        self._holds = True

    def __call__(self, stream: Stream, text: str) -> None:
        """Take a piece of output."""
        if not self._holds:
            self._on_output(stream, text)
            return
        self._held.append((stream, text))
        self._size += len(text)
        self._begins += text[: _LONGEST - len(self._begins)]
        may_be = any(each.startswith(self._begins) or self._begins.startswith(each) for each in _SPEAKERS)
        if self._size > _MOST_HELD or not may_be:
            self.release()

    def release(self) -> None:
        """Pass on what is held, and all that follows."""
        self._holds = False
        for stream, text in self._held:
            self._on_output(stream, text)
        self._held.clear()
