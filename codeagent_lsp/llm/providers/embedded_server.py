"""The child process of the embedded model: llama.cpp's own HTTP server, until its parent is gone.

Run as `python -m codeagent_lsp.llm.providers.embedded_server --model FILE --ready-fd N --alive-fd M`. It writes one
line of JSON with its port and its key, or with an error, to the ready descriptor, and exits when the other end of the
alive descriptor closes. Not here: starting it (`embedded.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import sys
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

PROMPT_CACHE_MIB = 256
FILL_WINDOW = 2048
"""The window in tokens of the slot that fills in, besides that of the agent."""
READ_SECONDS = 10
"""The most seconds of silence inside a request. By default it is an hour, in which a few half-sent heads, without any
key, would take all threads of the server.
"""


def main() -> int:
    """Serve until the parent closes its end of the alive pipe, and then end the process; return 1 if the server cannot
    start.
    """
    options = _options()
    _leave_terminal()
    key = secrets.token_urlsafe(24)  # other users of this machine can reach loopback
    try:
        server = start(options.model, n_ctx=options.n_ctx, threads=options.threads, key=key, fills=options.fills)
        port = urlsplit(str(server.listening_address)).port
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        _say(options.ready_fd, {"error": str(error)[:500] or type(error).__name__})
        return 1
    _say(options.ready_fd, {"port": port, "key": key})
    with contextlib.suppress(OSError):
        # Nothing is ever written: it returns when the parent's end is closed, also by its death.
        while os.read(options.alive_fd, 1):
            pass
    os._exit(0)  # an orderly shutdown of the server's threads is slower


def start(
    model: str, *, n_ctx: int, threads: int, port: int = 0, key: str = "", fills: bool = False, slots: int = 1
) -> Any:
    """Start and return an `xllamacpp.Server` on loopback; port 0 takes a free one, `threads` of the processor compute,
    a `key` is required of clients. Blocks while the file `model` is loaded; what the engine raises is not converted.

    With `fills` it has two slots over one memory, so that neither loses the prompt that it has read to the other; else
    `slots` requests are answered at a time, each with a window of `n_ctx` tokens.
    """
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {os.path.basename(model).removesuffix(".gguf")}  # noqa: PTH119 - a name, not a path
    # llama.cpp divides its window among slots, unless they share one memory.
    params.n_ctx = n_ctx + FILL_WINDOW if fills else n_ctx * slots
    params.n_parallel = 2 if fills else slots
    params.kv_unified = fills
    params.cache_idle_slots = False  # by default a request to one slot empties the other
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.hostnames = ["127.0.0.1"]
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.ui = False
    params.cors_origins = "http://127.0.0.1"  # by default it lets scripts of any web page read its answers
    if key:
        params.api_keys = [key]
    params.port = port
    params.timeout_read = READ_SECONDS
    # It costs seconds at each start, and the first prompt does the same.
    params.warmup = False
    return xllamacpp.Server(params)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="codeagent_lsp.llm.providers.embedded_server")
    parser.add_argument("--model", required=True)
    parser.add_argument("--n-ctx", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--fills", action="store_true")
    parser.add_argument("--ready-fd", type=int, required=True)
    parser.add_argument("--alive-fd", type=int, required=True)
    return parser.parse_args()


def _leave_terminal() -> None:
    """Redirect the standard streams to the null device: no output of llama.cpp may reach the parent's stdout."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def _say(descriptor: int, message: dict[str, object]) -> None:
    os.write(descriptor, json.dumps(message).encode() + b"\n")
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
