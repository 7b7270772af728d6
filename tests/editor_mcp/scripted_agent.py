"""Plays the model of another agent on loopback, and runs that agent against it in a network namespace of its own.

`python -m tests.editor_mcp.scripted_agent SCRIPT COMMAND…` brings loopback up, answers each request to an
OpenAI-compatible endpoint by the next step of the script, and ends with the command. It imports nothing of ours.
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

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The delta of the only chunk of a reply."""
        if not request.get("tools"):
            return {"content": "A title"}
        with self._lock:
            with self._record.open("a") as file:
                file.write(json.dumps(request["messages"][-1]) + "\n")
            step = self._steps.pop(0) if self._steps else {"text": "Done."}
        if "text" in step:
            return {"content": step["text"]}
        function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
        return {
            "tool_calls": [{"index": 0, "id": f"call_{len(self._steps)}", "type": "function", "function": function}]
        }


def serve(model: Model) -> ThreadingHTTPServer:
    """Start the endpoint."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            delta = model.reply(request)
            ending = "tool_calls" if "tool_calls" in delta else "stop"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            head = {"id": "reply", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
            for choice in (
                {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None},
                {"index": 0, "delta": {}, "finish_reason": ending},
            ):
                self.wfile.write(f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

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
