"""Sockets and named pipes that appear outside of the sandbox while a command runs lead to no service."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codeagent_lsp.shadow.hiding import Hidden
from codeagent_lsp.shadow.overlay import overlaid_folders
from codeagent_lsp.shadow.shell import Command
from tests.shadow.rig import Rig, needs_overlay, ordinary_user, python_of_everybody, rig

READY = 20.0

REACH = """
import os, socket, sys, time
folder, ready = sys.argv[1:]
open(ready, "w").close()
while "go" not in os.listdir(folder):  # an overlay remembers that a name was not there
    time.sleep(0.01)
for name, family in (("stream", socket.SOCK_STREAM), ("datagram", socket.SOCK_DGRAM)):
    try:
        with socket.socket(socket.AF_UNIX, family) as s:
            s.connect(f"{folder}/{name}")
            print(name, "reached")
    except OSError:
        print(name, "refused")
try:
    fd = os.open(f"{folder}/pipe", os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b"order")
except OSError:
    pass
print("there:", sorted(os.listdir(folder)))
"""


@pytest.fixture
def over(tmp_path: Path) -> Iterator[Rig]:
    """A layer over a workspace in a home with a toolchain, which commands see."""
    for folder in ("work", "home/.cargo/bin"):
        (tmp_path / folder).mkdir(parents=True)
    made = rig([tmp_path / "work"], tmp_path / "state", home=tmp_path / "home")
    yield made
    made.layer.close()


@contextmanager
def services(folder: Path) -> Iterator[int]:
    """Listen on two sockets and a pipe in `folder`; yields what reads the pipe."""
    os.mkfifo(folder / "pipe")
    (folder / "pipe").chmod(0o666)
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX) as stream, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
        for server, name in ((stream, "stream"), (datagram, "datagram")):
            server.bind(str(folder / name))
            (folder / name).chmod(0o777)
        stream.listen()
        try:
            yield reader
        finally:
            os.close(reader)


def reached(over: Rig, folder: Path) -> str:
    """Start a command, then the services in `folder`, and return what the command says of them."""
    ready = Path(over.cwd, "ready")
    over.layer.prepare({})
    launch = over.layer.launch(Command(("/usr/bin/python3", "-c", REACH, str(folder), str(ready)), over.cwd))
    process = subprocess.Popen(
        launch.argv, cwd="/", env=dict(launch.environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    upper = next(Path(launch.reports).parents[0].glob("*/up"))
    deadline = time.monotonic() + READY
    while not (upper / "ready").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    with services(folder) as reader:
        (folder / "go").touch()
        said, _ = process.communicate(timeout=READY)
        try:
            assert os.read(reader, 10) == b"", "the pipe was reached"
        except BlockingIOError:
            pytest.fail("the command holds the pipe")
    return said


def writable_places() -> list[str]:
    """Folders outside of homes, /tmp and /run that this user may write, where a service could put its socket."""
    found = (path for path in overlaid_folders(Hidden(("/home", "/root"))) if os.access(path, os.W_OK))
    return [path for path in found if path != "/old_root"]


@pytest.mark.slow
@needs_overlay
def test_a_service_that_starts_later_in_a_folder_of_the_system(over: Rig) -> None:
    places = writable_places()
    if not places:
        pytest.skip("no folder of the system can be written by this user")
    for place in places[:3]:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            Path(folder).chmod(0o755)
            said = reached(over, Path(folder))
        assert "stream refused\ndatagram refused" in said
        assert "['datagram', 'go', 'pipe', 'stream']" in said, "it is there, and leads nowhere"


@needs_overlay
def test_a_service_that_starts_later_in_a_toolchain(over: Rig, tmp_path: Path) -> None:
    said = reached(over, tmp_path / "home" / ".cargo")
    assert "stream refused\ndatagram refused" in said
    assert "'stream'" in said


@needs_overlay
def test_files_outside_are_read_as_before(over: Rig, tmp_path: Path) -> None:
    (tmp_path / "home" / ".cargo" / "bin" / "tool").write_text("#!/bin/sh\necho works\n")
    (tmp_path / "home" / ".cargo" / "bin" / "tool").chmod(0o755)
    over.layer.prepare({})
    ran = over.run(f"{tmp_path}/home/.cargo/bin/tool; ls -d /var/lib; touch /var/lib/x {tmp_path}/home/.cargo/x")
    assert ran.out.startswith("works\n/var/lib\n")
    assert ran.out.count("Read-only file system") == 2 or ran.out.count("Permission denied") == 2
    assert not (tmp_path / "home" / ".cargo" / "x").exists()


def test_a_folder_with_a_mount_is_taken_apart(tmp_path: Path) -> None:
    for name in (".cargo", ".rustup", "mail"):
        (tmp_path / name).mkdir()
    hidden = Hidden((str(tmp_path),), (f"{tmp_path}/.cargo", f"{tmp_path}/.rustup"))
    table = f"1 1 0:1 / {tmp_path}/.rustup/inner rw - ext4 x rw\n".encode()
    assert [path for path in overlaid_folders(hidden, b"") if path.startswith(str(tmp_path))] == [str(tmp_path)]
    taken = [path for path in overlaid_folders(hidden, table) if path.startswith(str(tmp_path))]
    assert taken == [f"{tmp_path}/.cargo"]


@pytest.mark.parametrize("kind", ["nfs4", "nfs", "cifs", "fuse.sshfs", "autofs", "9p"])
def test_a_server_that_may_not_answer_is_not_asked(kind: str) -> None:
    known = overlaid_folders(Hidden(), b"")
    assert "/var" in known
    assert set(known) - set(overlaid_folders(Hidden(), f"1 1 0:1 / /var rw - {kind} x:/y rw\n".encode())) == {"/var"}
    assert "/var" in overlaid_folders(Hidden(), b"1 1 0:1 / /var rw - ext4 /dev/x rw\n")


@pytest.mark.slow
@needs_overlay
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_all_of_this_as_an_ordinary_user() -> None:
    found = python_of_everybody()
    if found is None:
        pytest.skip("no Python here that an ordinary user can start")
    python, environment = found
    uid, gid = ordinary_user()
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, uid, gid)
        words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", f"--basetemp={folder}/t", __file__)
        done = subprocess.run(
            (python, *words),
            user=uid,
            group=gid,
            extra_groups=[],
            cwd=Path(__file__).parents[2],
            env={**environment, "HOME": folder},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
