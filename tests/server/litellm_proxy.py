"""litellm's proxy, a server nobody here wrote: in front of any chat server it speaks Messages, Responses and chat.

Fetched once into an environment of its own in the user's cache folder (about 700 MB); where that is impossible,
`Unavailable` says so, and the tests that need it are skipped for everybody to see.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.faults.model_server import free_port

CACHE = Path.home() / ".cache" / "codeagent-lsp-tests" / "litellm"
WANTED = "litellm[proxy]>=1.100"
FETCH_SECONDS = 400
START_SECONDS = 150
KEY = "local-" + "0123456789abcdef" * 2


class Unavailable(Exception):
    """There is no such proxy here; the reason is its text."""


@contextmanager
def litellm_proxy(models: Mapping[str, tuple[str, str, str]], folder: Path) -> Iterator[str]:
    """Its address, while it runs. `models` are by their name what litellm calls them, and the URL and key of each."""
    program = _program()
    listed = [
        {"model_name": name, "litellm_params": {"model": model, "api_base": url, "api_key": key}}
        for name, (model, url, key) in models.items()
    ]
    config = folder / "litellm.yaml"  # JSON is YAML
    config.write_text(json.dumps({"model_list": listed, "general_settings": {"master_key": KEY}}))
    port = free_port()
    command = [
        str(program),
        "--config",
        str(config),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--telemetry",
        "False",
    ]
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DATABASE_URL")}
    environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks for prices elsewhere
    log = folder / "litellm.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=folder, env=environ, stdout=output, stderr=output) as process,
    ):
        try:
            _wait(process, f"http://127.0.0.1:{port}/health/liveliness", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _program() -> Path:
    """The command, fetched if need be."""
    program = CACHE / "bin" / "litellm"
    if not program.is_file():
        install = [str(CACHE / "bin" / "python"), "-m", "pip", "install", "-q", "--no-input", WANTED]
        try:
            for command in ([sys.executable, "-m", "venv", str(CACHE)], install):
                done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
                if done.returncode != 0:
                    raise Unavailable(f"litellm cannot be installed: {done.stderr.strip()[-200:]}")
        except subprocess.TimeoutExpired:
            raise Unavailable("litellm cannot be fetched in time") from None
    return program


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Unavailable(f"litellm does not run here: {log.read_text()[-300:]}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise Unavailable("litellm does not answer")
