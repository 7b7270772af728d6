"""A server that says as much as a test wants: `storm` sends events at a pace, `mountain` a long transcript.

It speaks just enough of the protocol to be the agent's server in an editor. Not here: any agent.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from typing import Any

PER_SECOND = 500
STORM_SECONDS = 20
MOUNTAIN_BYTES = 5_000_000
PIECE = (
    "## Part {number}\n\nSome *words* and `code.py:{number}` to read.\n\n```python\nx = {number}\n```\n\n"
    + "word " * 180
)

_numbers = itertools.count(1)
_writing = threading.Lock()


def main() -> None:
    """Answer until the editor says `exit`."""
    while (message := _read()) is not None and message.get("method") != "exit":
        method, params = message.get("method"), message.get("params") or {}
        if "id" in message and method:
            _write({"id": message["id"], "result": _answer(method, params)})
        if method == "workspace/executeCommand" and params["command"] == "codeagent.run":
            threading.Thread(target=_play, args=(params["arguments"][0]["task"],), daemon=True).start()


def _answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        return {"capabilities": {"textDocumentSync": 2}}
    if method == "workspace/executeCommand":
        return {"runId": "r", "sessionId": "s"} if params["command"] == "codeagent.run" else []
    return None


def _play(task: str) -> None:
    _event("response_start", mode="direct")
    if task == "storm":
        _storm()
    else:
        for number in range(MOUNTAIN_BYTES // len(PIECE) + 1):
            _event("token", content=PIECE.format(number=number) + "\n\n")
    _event("token", content="THE END")
    _event("run_completed", status="completed", summary="", files_changed=[])


def _storm() -> None:
    """Text, tools and their output, and what it is about, in turn; behind the time it catches up."""
    begin = time.monotonic()
    for number in range(PER_SECOND * STORM_SECONDS):
        if number % 50 == 0:
            _event("tool_calls", calls=[{"id": f"c{number}", "name": "grep", "arguments": {"pattern": "x"}}])
        elif number % 50 == 49:
            _event("tool_result", tool="grep", success=True, output="x", call_id=f"c{number - 49}")
        elif number % 5 == 0:
            _event("status", message=f"event {number}")
        else:
            _event("step_output", content=f"line {number}") if number % 2 else _event("token", content=f"word{number} ")
        time.sleep(max(0.0, begin + number / PER_SECOND - time.monotonic()))


def _event(kind: str, **data: Any) -> None:
    number = next(_numbers)
    event = {"type": kind, "session_id": "s", "run_id": "r", "seq": number, "ts": float(number), **data}
    _write({"method": "codeagent/event", "params": event})


def _read() -> dict[str, Any] | None:
    size = 0
    while line := sys.stdin.buffer.readline():
        if not line.strip():
            return dict(json.loads(sys.stdin.buffer.read(size)))
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    return None


def _write(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with _writing:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
