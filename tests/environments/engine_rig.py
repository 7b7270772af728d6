"""A real container engine for tests: Podman's service on a socket of the test, and an image of this machine's programs.

Nothing is fetched: the image is a folder with copies of what is here. Storage, socket and service are the test's own
and gone with it. Other tests may have an engine of their own at the same time: what runs in containers of this one is
known by a variable that its image sets.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from codeagent_lsp.environments.container_box import USER

IMAGE = "localhost/codeagent-test:1"
PROGRAMS = (
    "sh bash cat chmod cp echo env find grep head id ln ls mkdir mkfifo mount mv ps rm setsid sleep tar touch tr true"
)
PYTHON = "/usr/bin/python3"
MARK = "CODEAGENT_TEST_ENGINE"
SECONDS = 120
_LEFT_OUT = ("test", "tests", "idlelib", "ensurepip", "lib2to3", "tkinter", "turtledemo", "__pycache__", "config-*")
_CONTAINERS = "unqualified-search-registries = []\n"


@dataclass(frozen=True)
class Podman:
    """A service that runs: its socket, and the program with the options of its storage."""

    socket: str
    command: tuple[str, ...]
    process: subprocess.Popen[bytes]
    mark: str

    @property
    def environ(self) -> dict[str, str]:
        """What says where the engine is."""
        return {"DOCKER_HOST": f"unix://{self.socket}"}

    def listed(self) -> list[str]:
        """The ids of all containers, however they are."""
        return self._said("ps", "--all", "--quiet", "--no-trunc").split()

    def inside(self) -> list[str]:
        """The programs that run in containers of this engine, by their words."""
        return list(_marked(self.mark).values())

    def kill_all(self) -> None:
        """End all containers, as somebody else may."""
        self._said("kill", *self.listed())

    def volumes(self) -> list[str]:
        return self._said("volume", "ls", "--quiet").split()

    def _said(self, *words: str) -> str:
        done = subprocess.run((*self.command, *words), capture_output=True, text=True, timeout=SECONDS, check=True)
        return done.stdout


@cache
def engine_problem() -> str | None:
    """Why containers cannot be tested here, or None."""
    missing = [name for name in ("podman", "runc", "bash", "tar", "ps") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if os.geteuid() != 0:
        return "the test's own storage needs root"
    if not Path(PYTHON).exists():
        return f"no {PYTHON} for the image"
    return None


needs_engine = pytest.mark.skipif(engine_problem() is not None, reason=f"no container engine: {engine_problem()}")


@contextmanager
def podman(folder: Path) -> Iterator[Podman]:
    """A service with the image, everything of it in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = f"{MARK}={folder}"
    socket = f"{folder}/engine.sock"
    options = ("--root", f"{folder}/storage", "--runroot", f"{folder}/run", "--storage-driver", "vfs")
    command = ("podman", *options, "--cgroup-manager=cgroupfs", "--runtime", "runc", "--events-backend", "none")
    _make_image(folder / "image", command, mark)
    limits = ("--memory=64m", "--pids-limit=20", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
    plainly = (*command, "run", "--rm", "--network=none", *limits, IMAGE, "true")
    done = subprocess.run(plainly, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        pytest.skip(f"Podman itself cannot run a container here: {done.stderr.strip()[-300:]}")
    process = subprocess.Popen(
        (*command, "system", "service", "--time", "0", f"unix://{socket}"),
        cwd=folder,  # its helpers leave a file where they are when memory runs out
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + SECONDS
        while not Path(socket).exists():
            assert process.poll() is None and time.monotonic() < deadline, "the service did not start"
            time.sleep(0.05)
        yield Podman(socket, command, process, mark)
    finally:
        subprocess.run((*command, "rm", "--all", "--force", "--time", "0"), capture_output=True, timeout=SECONDS)
        process.terminate()
        process.wait(SECONDS)
        for pid in _helpers(str(folder)):  # what remembers exit codes for five minutes more
            os.kill(pid, signal.SIGKILL)
        for path in sorted(folder.glob("storage/overlay*/*/merged")):
            subprocess.run(("umount", str(path)), capture_output=True, timeout=SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _marked(mark: str) -> dict[int, str]:
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid == USER and mark.encode() in (path / "environ").read_bytes().split(b"\0"):
                found[int(path.name)] = (path / "cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ")
        except OSError:  # gone meanwhile
            continue
    return found


def _helpers(folder: str) -> list[int]:
    """The engine's own helpers for this storage."""
    found = []
    for path in (folder / "cmdline" for folder in Path("/proc").glob("[0-9]*")):
        try:
            words = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if Path(words.partition("\0")[0]).name == "conmon" and f"{folder}/" in words:
            found.append(int(path.parent.name))
    return found


def _make_image(folder: Path, command: tuple[str, ...], mark: str) -> None:
    """Import an image of the programs, python with its libraries, and nothing else."""
    python = os.path.realpath(PYTHON)
    library = Path(f"/usr/lib/{Path(python).name}")
    programs = [path for name in PROGRAMS.split() if (path := shutil.which(name, path="/usr/bin:/bin")) is not None]
    for path in (*programs, python, *_libraries([*programs, python, *map(str, library.glob("lib-dynload/*.so"))])):
        _copy(path, folder)
    shutil.copytree(library, folder / str(library)[1:], ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
    for name in ("dev", "etc", "proc", "run", "sys", "tmp"):
        (folder / name).mkdir()
    (folder / "tmp").chmod(0o1777)
    (folder / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\nrunner:x:1001:1001:runner:/tmp:/bin/sh\n")
    (folder / PYTHON[1:]).symlink_to(python)
    if not (folder / "bin").exists():
        (folder / "bin").symlink_to("usr/bin")
    archive = folder.with_suffix(".tar")
    with tarfile.open(archive, "w") as target:
        target.add(folder, ".")
    words = (*command, "import", "--change", f"ENV {mark}", str(archive), IMAGE)
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    archive.unlink()
    shutil.rmtree(folder)


def _libraries(programs: list[str]) -> set[str]:
    said = subprocess.run(("ldd", *programs), capture_output=True, text=True, timeout=SECONDS).stdout
    return set(re.findall(r"(/\S+\.so\S*) \(0x", said))


def _copy(path: str, folder: Path) -> None:
    target = folder / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(os.path.realpath(path), target)
