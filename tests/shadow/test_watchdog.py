"""What the watchdog sees of a tree of processes, and what it does to the command before it runs."""

from __future__ import annotations

import asyncio
import mmap
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.shadow import watchdog
from codeagent_lsp.shadow.guard_messages import pack_message
from codeagent_lsp.shadow.watchdog import (
    NICENESS,
    OPEN_FILES,
    descendants,
    free_bytes,
    proportional_bytes,
    resident_bytes,
)
from tests.shadow.processes import Runner, needs_proc, words

pytestmark = needs_proc


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def tree(run: Runner) -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a sleeping child, and another shell with two."""
    script = f"{run.nap} & bash -c '{run.nap} & {run.nap} & wait' & wait"
    process = subprocess.Popen(["bash", "-c", script], start_new_session=True)
    yield process
    os.killpg(process.pid, 9)
    process.wait()


async def test_all_descendants_parents_first(run: Runner, tree: subprocess.Popen[bytes]) -> None:
    await run.until_napping(3)
    found = descendants(tree.pid)
    assert len(found) == 4
    assert set(run.naps()) - {tree.pid} <= {*found}
    shell = next(pid for pid in found if words(pid)[0] == "bash")
    assert all(found.index(shell) < found.index(pid) for pid in descendants(shell))


async def test_counting_ends_when_it_is_too_much(run: Runner, tree: subprocess.Popen[bytes]) -> None:
    await run.until_napping(3)
    assert 1 <= len(descendants(tree.pid, 1)) < 4


async def test_a_kernel_that_does_not_list_children(
    run: Runner, tree: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    await run.until_napping(3)
    expected = sorted(descendants(tree.pid))
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    assert sorted(descendants(tree.pid)) == expected


def test_nobody_is_below_what_is_gone() -> None:
    assert descendants(2**22 + 1) == []
    assert resident_bytes(2**22 + 1) == proportional_bytes(2**22 + 1) == 0


def test_the_memory_of_a_process() -> None:
    size = 32 << 20
    before = resident_bytes(os.getpid())
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:  # memory that was never used before
        for start in range(0, size, 1 << 20):
            held[start : start + (1 << 20)] = os.urandom(1 << 20)
        assert resident_bytes(os.getpid()) - before > 24 << 20
        assert 0 < proportional_bytes(os.getpid()) <= resident_bytes(os.getpid()) + size


def test_shared_memory_is_counted_once() -> None:
    """A parent with a hundred megabytes and three children that only look at them is not four hundred."""
    code = "import os, time; x = bytearray(os.urandom(1 << 20) * 100)"
    code += "; children = [pid for _ in range(3) if (pid := os.fork()) or time.sleep(60)]"
    code += "; print('ready', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        everybody = [process.pid, *descendants(process.pid)]
        assert sum(map(resident_bytes, everybody)) > 300 << 20
        assert not watchdog._uses_more(everybody, 200 << 20)
        assert watchdog._uses_more(everybody, 50 << 20)
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


def test_free_space(tmp_path: Path) -> None:
    assert (free_bytes(str(tmp_path)) or 0) > 0
    assert free_bytes(str(tmp_path / "missing")) is None


async def test_what_a_command_starts_with(run: Runner) -> None:
    finished = await run(
        "ulimit -c; ulimit -Sn; nice; cat /proc/self/oom_score_adj; ls /proc/self/fd | wc -l; ulimit -u"
    )
    core, files, nice, score, open_files, processes = finished.output.split()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    expected = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    assert (int(core), int(files), int(score)) == (0, expected, 1000)
    assert int(nice) == min(19, os.nice(0) + NICENESS)
    assert int(open_files) == 4  # the three streams and the folder that is listed
    assert processes != "unlimited"


async def test_signals_are_as_usual(run: Runner) -> None:
    finished = await run("grep -E 'SigIgn|SigBlk' /proc/self/status")
    assert [int(line.split()[1], 16) & ~(1 << 31) for line in finished.output.splitlines()] == [0, 0]


@pytest.mark.parametrize("said", [b"", b'{"argv": ["true"'])
def test_a_server_that_goes_away_before_it_said_what(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen([sys.executable, "-c", watchdog_code()], stdin=theirs.fileno())
        ours.sendall(said)
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(20) == 0


async def test_the_server_goes_away_right_after(run: Runner) -> None:
    ours, theirs = socket.socketpair()
    spec = {
        "argv": ["bash", "-c", f"{run.nap} & {run.nap}"],
        "cwd": "/",
        "environment": {"PATH": os.environ["PATH"]},
        "seconds": 60,
        "memory_bytes": 1 << 40,
        "processes": 100,
        "disk_bytes": 1 << 40,
        "disk_folder": "",
    }
    with theirs:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", watchdog_code(), stdin=theirs.fileno())
    with ours:
        ours.sendall(pack_message(spec))
        await run.until_napping(2)
    async with asyncio.timeout(20):
        assert await process.wait() == 0
    assert not run.naps()


def test_it_starts_with_the_standard_library_alone() -> None:
    code = f"import sys; sys.path.append({str(Path(watchdog.__file__).parents[2])!r})\n"
    code += "import codeagent_lsp.shadow.watchdog\n"
    code += "print(*sorted(name for name in sys.modules if name.startswith('codeagent') or 'asyncio' in name))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60)
    ours = ("shadow", "shadow.guard_messages", "shadow.watchdog")
    assert done.stdout.split() == ["codeagent_lsp", *(f"codeagent_lsp.{name}" for name in ours)]


def watchdog_code() -> str:
    return "from codeagent_lsp.shadow.watchdog import main; main()"
