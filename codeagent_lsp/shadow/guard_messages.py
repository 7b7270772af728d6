"""The messages between the server and the small program that guards a command, in bytes.

Standard library only and few lines, as that program imports it and starts with every command. Not here: the program
(`watchdog.py`), the server's side (`guarded.py`).
"""

from __future__ import annotations

import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:  # as in `typing`, which would take a third of the time that program needs to start
    from typing import Any

INTERVAL_SECONDS = 0.1
KILLED = 128 + 9
"""The exit code of a command that was killed, as shells write it; the number is the same on every system."""
HEAD = 8


def pack_message(value: dict[str, Any]) -> bytes:
    """Return a message as bytes: an 8-byte length, big-endian, then `marshal` data, which needs no import, unlike JSON.
    ValueError for values that `marshal` does not take.
    """
    data = marshal.dumps(value)
    return len(data).to_bytes(HEAD, "big") + data


def unpack_message(data: bytes | bytearray) -> dict[str, Any]:
    """Return the value from the result of `pack_message`. ValueError, EOFError or TypeError if it is incomplete or
    damaged.
    """
    value: dict[str, Any] = marshal.loads(data[HEAD:])  # noqa: S302 - from our own process, by a private socket
    return value
