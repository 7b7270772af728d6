"""A program that serves one page and its WebSocket on loopback, protected by a token: a shell's terminal or an X
server.

It runs below a watchdog: it reads `{"kind", "token", "ports", "files", "socket", "folder", "argv", "cwd",
"environment"}` as one line of JSON from standard input, starts `argv`, and writes `{"port", "pid"}`, `{"missing"}` or
`{"problem"}` as one line. It ends with the started program, or when its input is closed. It is the only program that
loads tornado (a late import). Not here: who may have what (`serving_page.py`).
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Sequence
from typing import Any

HOST = "127.0.0.1"
_TAKEN = "No port is free: {ports}."


def main() -> None:
    """Serve, by the spec on standard input, until the program ends. Failures to start are written to standard output as
    `missing` or `problem`, not raised.
    """
    spec = json.loads(sys.stdin.readline())
    try:
        asyncio.run(_serve(spec))
    except ImportError as error:
        say({"missing": error.name or "terminado"})
    except OSError as error:
        say({"problem": str(error)})


def say(answer: dict[str, Any]) -> None:
    """Write `answer` as one line of JSON to standard output, which the server reads, and flush it."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def listening(ports: Sequence[int]) -> socket.socket:
    """Return a socket that listens on loopback, at the first free one of `ports`. OSError if none is free."""
    for port in ports:
        opened = socket.socket()
        try:
            # Or a port stays taken for a minute after its last server.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((HOST, port))
            opened.listen()
            opened.setblocking(False)
            return opened
        except OSError:
            opened.close()
    named = str(ports[0]) if len(ports) == 1 else f"{ports[0]} to {ports[-1]}"
    raise OSError(_TAKEN.format(ports=named))


async def _serve(spec: dict[str, Any]) -> None:
    from codeagent_lsp.environments import serving_page  # late: a missing library is an answer, not a crash

    over = asyncio.Event()
    # The port first: without one, nothing need be started.
    opened = listening(spec["ports"])
    page: tuple[Any, dict[str, Any], int]
    if spec["kind"] == "terminal":
        page = serving_page.start_shell(spec["argv"], spec["cwd"], spec["environment"], over.set)
    else:
        page = await serving_page.start_desktop(spec, over.set)
    handler, settings, pid = page
    server = serving_page.serve(opened, spec["token"], spec["files"], handler, settings)
    say({"port": opened.getsockname()[1], "pid": pid})
    await over.wait()
    server.stop()
    await asyncio.sleep(0.2)  # what was said last goes out
