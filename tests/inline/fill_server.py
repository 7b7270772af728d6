"""A model server on loopback that fills in by a script: llama.cpp, Ollama, Mistral and `/v1/completions`.

`answer` gets the body and returns the pieces of the text, or a status and a message to refuse with.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, dict[str, Any]], Sequence[str] | tuple[int, str]]


@dataclass
class FillServer:
    """What the server saw: the paths and bodies of all questions, how many were broken off, and its address.

    `window` is that of the model that Ollama has loaded, 0 for none.
    """

    url: str = ""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    broken_off: int = 0
    pause: float = 0.0
    window: int = 0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, body in self.asked]


@contextmanager
def fill_server(
    answer: Answer, *, kind: str = "llamacpp", model: str = "qwen2.5-coder-1.5b", pause: float = 0.0
) -> Iterator[FillServer]:
    """The server, while the block runs. `pause` are seconds before each piece."""
    seen = FillServer(pause=pause)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            found = _listing(self.path, kind, model, seen.window)
            self._json(200 if found is not None else 404, found or {"error": {"message": "not found"}})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/api/show":
                self._json(200, {"capabilities": ["completion", "insert"], "model_info": {}})
                return
            seen.asked.append((self.path, body))
            pieces = answer(self.path, body)
            if isinstance(pieces, tuple) and len(pieces) == 2 and isinstance(pieces[0], int):
                self._json(pieces[0], {"error": {"message": str(pieces[1])}})
                return
            lines = self.path.startswith("/api/")
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson" if lines else "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                for chunk in [*(_chunk(self.path, str(piece)) for piece in pieces), _last(self.path)]:
                    time.sleep(seen.pause)
                    self.wfile.write((f"{chunk}\n" if lines else f"data: {chunk}\n\n").encode())
                    self.wfile.flush()
            except OSError:
                seen.broken_off += 1

        def _json(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _listing(path: str, kind: str, model: str, window: int) -> dict[str, Any] | None:
    if path == "/v1/models":
        return {"object": "list", "data": [{"id": model, "object": "model"}]}
    if path == "/props" and kind == "llamacpp":
        return {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1, "model_path": f"/m/{model}.gguf"}
    if kind == "ollama" and path == "/api/version":
        return {"version": "0.9"}
    if kind == "ollama" and path == "/api/ps" and window:
        return {"models": [{"name": model, "model": model, "context_length": window}]}
    return None


def _chunk(path: str, piece: str) -> str:
    if path in ("/infill", "/completion"):
        return json.dumps({"content": piece, "stop": False})
    if path == "/api/generate":
        return json.dumps({"response": piece, "done": False})
    if path.endswith(("/fim/completions", "/edit/completions")):
        return json.dumps({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
    return json.dumps({"choices": [{"index": 0, "text": piece, "finish_reason": None}]})


def _last(path: str) -> str:
    if path in ("/infill", "/completion"):
        return json.dumps({"content": "", "stop": True, "timings": {}})
    if path == "/api/generate":
        return json.dumps({"response": "", "done": True})
    return "[DONE]"
