"""The embedded model, served for the bench: with any window, as other agents send longer prompts than ours does.

As a program it serves until it is ended, which only `served` below starts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator

from codeagent_lsp.llm.providers import embedded_server
from codeagent_lsp.llm.weights import weights_path
from codeagent_lsp.terminal.model import KEY_VARIABLE
from tests.bench.agents_runs import ROOT, WINDOW, end_tree

START_SECONDS = 180.0


@contextlib.contextmanager
def served(key: str, slots: int = 1, window: int = WINDOW) -> Iterator[str]:
    """The embedded model on a free port of loopback, behind this key, for so many requests at a time; its root.

    `model serve` serves it, as users have it; for another window than its own, this module.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = ["codeagent_lsp.cli", "model", "serve"] if window == WINDOW else [__name__, "--window", str(window)]
    command = [sys.executable, "-m", *own, "--port", str(port), "--slots", str(slots)]
    environ = {**os.environ, KEY_VARIABLE: key, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(process, url, key)
        yield url
    finally:
        end_tree(process)


def _wait_for(process: subprocess.Popen[bytes], url: str, key: str) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError("the embedded model did not start: try `codeagent-lsp model serve`")
        try:
            model_of(url, key)
        except (OSError, ValueError, LookupError):
            time.sleep(0.5)
            continue
        return
    raise TimeoutError(f"no answer from {url} in {START_SECONDS:.0f} s")


def model_of(url: str, key: str = "") -> str:
    """The first model that a server offers."""
    address = f"{url.rstrip('/').removesuffix('/v1')}/v1/models"
    request = urllib.request.Request(address, headers={"authorization": f"Bearer {key}"} if key else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(json.load(answer)["data"][0]["id"])


def main() -> None:
    """Serve with a window of so many tokens."""
    parser = argparse.ArgumentParser()
    for name in ("--window", "--port", "--slots"):
        parser.add_argument(name, type=int, required=True)
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    server = embedded_server.start(
        str(weights_path()), n_ctx=options.window, threads=os.cpu_count() or 2,
        port=options.port, key=os.environ[KEY_VARIABLE], slots=options.slots,
    )  # fmt: skip
    stop.wait()
    del server


if __name__ == "__main__":
    main()
