"""Plays the model of another agent on loopback, and runs that agent against it in a network namespace of its own.

`python -m tests.editor_mcp.scripted_agent SCRIPT COMMAND…` brings loopback up, answers each request to an
endpoint by the next step of the script, and ends with the command. It imports nothing of ours but `model_dialects.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.editor_mcp.model_dialects import dialect_of

PORT = 8099
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1


def bring_loopback_up() -> None:
    """What `ip link set lo up` does, which not every machine has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14s", b"lo", 0, b""))
        (flags,) = struct.unpack_from("H", asked, 16)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))


class Model:
    """Answers requests with tools by the steps of a script, all others (such as for a title) by a word."""

    def __init__(self, steps: list[dict[str, Any]], record: Path) -> None:
        self._steps = steps
        self._record = record
        self._lock = threading.Lock()

    def reply(self, path: str, request: dict[str, Any]) -> str:
        """The stream of events that answers a request."""
        dialect = dialect_of(path, request)
        if not dialect.has_tools:
            return dialect.stream({"text": "A title"}, 0)
        with self._lock:
            with self._record.open("a") as file:
                file.write(json.dumps({"content": dialect.last()}) + "\n")
            step = self._steps.pop(0) if self._steps else {"text": "Done."}
        return dialect.stream(step, len(self._steps))


def serve(model: Model) -> ThreadingHTTPServer:
    """Start the endpoint."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = model.reply(self.path, request).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(script: str, *command: str) -> int:
    """Run the command with the model beside it, and return its exit code."""
    bring_loopback_up()
    path = Path(script)
    serve(Model(json.loads(path.read_text()), path.with_suffix(".seen")))
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, env=os.environ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
