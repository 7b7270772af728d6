"""Commands run to their end, and nothing of them is left, however they end."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.process import MAX_REPORTS, read_reports, run_process
from codeagent_lsp.shadow.shared_memory import FileMemory, memory_mounts
from codeagent_lsp.shadow.shell import Launch, ProcessLimits, Stream, half_of_memory
from codeagent_lsp.shadow.watchdog import descendants
from tests.shadow.processes import ENVIRONMENT, Runner, descriptors, needs_bwrap, needs_proc, text_of, until

BWRAP = (
    *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
    *("--unshare-pid", "--die-with-parent", "--"),
)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def file_in_memory() -> Iterator[None]:
    """A large file in memory that has nothing to do with the command."""
    path = Path("/dev/shm", f"test-{os.getpid()}")
    path.write_bytes(bytes(150 << 20))
    yield
    path.unlink()


# --- by itself


@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ("true", 0, ""),
        ("echo hello", 0, "hello\n"),
        ("exit 7", 7, ""),
        ("kill -TERM $$", 143, ""),
        ("kill -KILL $$", 137, ""),
        ("no-such-program 2>/dev/null", 127, ""),
        ("pwd | sed 's:.*/::' >/dev/null; cat; echo done", 0, "done\n"),
        ("echo $$ $(ps -o sid= -p $$ 2>/dev/null || echo $$) >/dev/null; ulimit -c", 0, "0\n"),
        ("(trap - PIPE; yes | head -1)", 0, "y\n"),
        ("printf 'a\\0b\\033[1mc\\n'", 0, "abc\n"),
    ],
)
async def test_the_end_and_the_output(run: Runner, script: str, code: int, output: str) -> None:
    finished = await run(script)
    assert (finished.exit_code, finished.output, finished.ending, finished.whole) == (code, output, "exited", None)


async def test_where_and_with_what(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_SERVER", "1")
    finished = await run("pwd; env | cut -d= -f1 | sort | tr '\\n' ' '")
    assert finished.output.startswith(f"{run.folder}\n")
    names = set(finished.output.splitlines()[1].split())
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {*ENVIRONMENT, "CODEAGENT_COMMAND"}


async def test_both_streams_in_the_order_of_writing(run: Runner) -> None:
    finished = await run("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done")
    assert finished.output == "".join(f"o{i}\ne{i}\n" for i in range(1, 10))
    assert finished.size == len(finished.output)


async def test_streams_apart(run: Runner) -> None:
    told: list[tuple[Stream, str]] = []
    await run("echo out; sleep 0.1; echo err >&2", told=lambda *what: told.append(what), apart=True)
    assert told == [("stdout", "out\n"), ("stderr", "err\n")]


async def test_output_is_told_while_it_runs(run: Runner) -> None:
    told: list[str] = []
    task = asyncio.ensure_future(
        run("echo first; until test -e go; do sleep 0.01; done", told=lambda _, text: told.append(text))
    )
    await until(lambda: told == ["first\n"])
    (run.folder / "go").touch()
    assert (await task).exit_code == 0


async def test_it_cannot_be_asked_anything(run: Runner) -> None:
    assert (await run('read answer; echo "<$answer>"; test -t 0 || echo no terminal')).output == "<>\nno terminal\n"


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param(Launch(("no-such-program",), "/", ENVIRONMENT, ""), id="program"),
        pytest.param(Launch(("true",), "/no/such/folder", ENVIRONMENT, ""), id="folder"),
        pytest.param(Launch(("/etc/passwd",), "/", ENVIRONMENT, ""), id="not a program"),
        pytest.param(Launch(("echo", "a\0b"), "/", ENVIRONMENT, ""), id="a word that cannot be passed"),
    ],
)
async def test_what_cannot_be_started(tmp_path: Path, launch: Launch) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        await run_process(launch, ProcessLimits(), spool_folder=tmp_path)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("cat", "x" * 300_000),
        ("wc -c", "300000\n"),
        ("head -c 1; exec 0<&-; sleep 0.2", "x"),
        ("echo it reads nothing", "it reads nothing\n"),
        ("read -t 0.3 line; cat > /dev/null; echo read", "read\n"),
    ],
)
async def test_what_it_is_given_to_read(run: Runner, script: str, output: str) -> None:
    finished = await run(script, stdin=b"x" * 300_000)
    assert (finished.ending, finished.output[:10], finished.size) == ("exited", output[:10], len(output))


# --- limits


async def test_the_time_limit(run: Runner) -> None:
    finished = await run(f"echo before; {run.nap}; echo after", seconds=0.3)
    assert (finished.ending, finished.exit_code, finished.output) == ("timeout", 137, "before\n")
    assert 0.3 <= finished.seconds < 3
    assert not run.naps()


async def test_a_program_that_ignores_signals(run: Runner) -> None:
    finished = await run(f"trap '' TERM INT HUP; {run.nap} & {run.nap}", seconds=0.3)
    assert finished.ending == "timeout"
    assert not run.naps()


async def test_the_output_limit(run: Runner) -> None:
    finished = await run("yes", output_bytes=300_000)
    assert (finished.ending, finished.size) == ("output", 300_000)
    assert text_of(finished.whole) == "y\n" * 150_000


async def test_exactly_the_output_limit_is_none(run: Runner) -> None:
    finished = await run("printf 1234567890", output_bytes=10)
    assert (finished.ending, finished.output) == ("exited", "1234567890")


async def test_the_output_limit_is_of_both_streams(run: Runner) -> None:
    finished = await run(f"printf 12345; printf 67890 >&2; sleep 0.2; printf x; {run.nap}", output_bytes=10, apart=True)
    assert (finished.ending, sorted(finished.output)) == ("output", sorted("1234567890"))


@needs_proc
async def test_the_memory_limit(run: Runner) -> None:
    script = f"{sys.executable} -c 'x = bytearray(200 << 20); import time; time.sleep(60)'"
    finished = await run(script, memory_bytes=100 << 20)
    assert (finished.ending, finished.exit_code) == ("memory", 137)


@needs_proc
@pytest.mark.parametrize("mapped", ["", "m = mmap.mmap(f, 150 << 20); m[:] = bytes(150 << 20); os.close(f); "])
async def test_the_memory_limit_counts_files_in_memory(run: Runner, mapped: str) -> None:
    code = f"import os, mmap, time; f = os.memfd_create('x'); os.truncate(f, 150 << 20); {mapped}"
    code += "" if mapped else "[os.write(f, bytes(1 << 20)) for _ in range(150)]; "
    finished = await run(f'{sys.executable} -c "{code}time.sleep(20)"', memory_bytes=100 << 20)
    assert finished.ending == "memory"
    finished = await run(f'{sys.executable} -c "{code}time.sleep(0.5)"', memory_bytes=250 << 20)  # each page once
    assert (finished.ending, finished.exit_code) == ("exited", 0)


@needs_proc
@needs_bwrap
@pytest.mark.parametrize("left", ["sleep 20", "exec 3< /dev/shm/x; rm /dev/shm/x; sleep 20"])
async def test_the_memory_limit_counts_the_file_systems_of_a_sandbox(run: Runner, left: str) -> None:
    filled = "head -c 150000000 /dev/zero > /dev/shm/x"
    finished = await run(f"{filled}; {left}", *BWRAP, memory_bytes=100 << 20)
    assert finished.ending == "memory"
    finished = await run(f"{filled}; sleep 0.5", *BWRAP, memory_bytes=250 << 20)
    assert (finished.ending, finished.exit_code) == ("exited", 0)


@needs_proc
@needs_bwrap
@pytest.mark.slow
def test_a_sandbox_that_is_being_set_up_holds_no_disk_in_memory() -> None:
    """Its mounts change between two looks at one path, and what is below them is the disk of this machine."""
    known = frozenset(device for device, _ in memory_mounts("self"))
    most = 0
    for _ in range(200):
        sandbox = subprocess.Popen((*BWRAP[:-1], "--tmpfs", "/run", "--tmpfs", "/home", "--", "true"))
        while sandbox.poll() is None:
            most = max(most, FileMemory(descendants(os.getpid()), known).bytes)
    assert most < 64 << 20


@needs_proc
@pytest.mark.usefixtures("file_in_memory")
async def test_the_memory_of_others_does_not_count(run: Runner) -> None:
    assert (await run("sleep 0.5", memory_bytes=100 << 20)).ending == "exited"


@needs_proc
async def test_the_limit_of_processes(run: Runner) -> None:
    finished = await run(f"for i in 1 2 3 4 5 6 7 8 9; do {run.nap} & done; wait", processes=6)
    assert finished.ending == "processes"
    assert not run.naps()


async def test_the_disk_limit(run: Runner, tmp_path: Path) -> None:
    script = f"head -c 60000000 /dev/zero > big; {run.nap}"
    finished = await run(script, disk_bytes=20_000_000, disk_folder=str(tmp_path))
    assert finished.ending == "disk"


def test_the_memory_of_this_machine() -> None:
    assert half_of_memory() > 1 << 28


@needs_proc
async def test_a_session_keyring_of_its_own(run: Runner) -> None:
    number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
    code = f"import ctypes; print(ctypes.CDLL(None).syscall({number}, 0, -3, 1))"
    ours = f"{ctypes.CDLL(None).syscall(number, 0, -3, 1)}\n"
    if ours == "-1\n":
        pytest.skip("the kernel has no keys here")
    found = [(await run(f"{sys.executable} -c '{code}'")).output for _ in range(2)]
    assert len({ours, *found, "-1\n"}) == 4


# --- nothing is left

ESCAPES = [
    pytest.param("{nap} & {nap} & wait", id="children"),
    pytest.param("setsid {nap} & wait", id="another session"),
    pytest.param("(setsid bash -c '{nap} & {nap}' & ) ; {nap}", id="orphans in another session"),
    pytest.param("nohup {nap} >/dev/null 2>&1 & disown; {nap}", id="nohup"),
    pytest.param("env -i setsid /bin/{nap} & {nap}", id="without our mark"),
]


@needs_proc
@pytest.mark.parametrize("script", ESCAPES)
async def test_cancelling_kills_the_whole_tree(run: Runner, script: str) -> None:
    task = asyncio.ensure_future(run(script.format(nap=run.nap)))
    await run.until_napping()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not run.naps()


@needs_proc
@pytest.mark.parametrize("held", ["", ">/dev/null 2>&1"])
async def test_background_children_end_with_the_command(run: Runner, held: str) -> None:
    script = f"{run.nap} {held} & (setsid {run.nap} {held} &) ; sleep 0.1; echo done"
    finished = await run(script)
    assert (finished.output, finished.exit_code) == ("done\n", 0)
    assert finished.seconds < 3
    assert not run.naps()


@needs_proc
async def test_cancelling_again_and_again_does_not_hurry_it(run: Runner) -> None:
    task = asyncio.ensure_future(run(f"{run.nap} & setsid {run.nap}"))
    await run.until_napping(2)
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert not run.naps()


@needs_proc
@pytest.mark.parametrize("turns", range(0, 24, 3))
async def test_cancelling_while_it_starts(run: Runner, turns: int) -> None:
    before = descriptors()
    task = asyncio.ensure_future(run(run.nap))
    for _ in range(turns):
        await asyncio.sleep(0.002)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not run.naps()
    assert descriptors() == before


@needs_proc
async def test_the_command_kills_its_watchdog(run: Runner) -> None:
    finished = await run(f"setsid {run.nap} & sleep 0.1; kill -KILL $PPID; {run.nap}")
    assert finished.exit_code == 137
    assert not run.naps()


@needs_proc
async def test_the_command_asks_its_watchdog_to_end(run: Runner) -> None:
    finished = await run(f"setsid {run.nap} & sleep 0.1; kill -TERM $PPID; {run.nap}")
    assert finished.exit_code == 137
    assert not run.naps()


SERVER = """
import asyncio, sys
from pathlib import Path
from codeagent_lsp.shadow.shell import Launch
from codeagent_lsp.shadow.shell import ProcessLimits
from codeagent_lsp.shadow.process import run_process
launch = Launch(("bash", "-c", sys.argv[1]), "/", {"PATH": sys.argv[2]}, "")
asyncio.run(run_process(launch, ProcessLimits(), spool_folder=Path("/nowhere")))
"""


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_the_tree_ends_with_the_server(run: Runner, number: signal.Signals) -> None:
    script = f"(setsid env -i /bin/{run.nap} &) ; trap '' TERM HUP; {run.nap} & {run.nap}"
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, script, os.environ["PATH"])
    try:
        await run.until_napping(3)
    finally:
        server.send_signal(number)
        await server.wait()
    await until(lambda: not run.naps(), 10)


async def test_a_listener_that_fails_ends_the_command(run: Runner) -> None:
    def fail(stream: Stream, text: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await run(f"echo x; {run.nap}", told=fail)
    assert caught.group_contains(ZeroDivisionError)
    assert not run.naps()


async def test_what_is_cancelled_leaves_no_file(run: Runner) -> None:
    task = asyncio.ensure_future(run(f"head -c 3000000 /dev/zero | tr '\\0' y; {run.nap}"))
    spool = run.folder / "spool"
    await until(lambda: spool.exists() and any(spool.iterdir()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not list(spool.iterdir())


@needs_proc
async def test_no_descriptor_no_thread_no_warning_is_left(run: Runner) -> None:
    await run("true")
    gc.collect()  # what other tests have left to be collected
    before = descriptors()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for script in ("echo a", "exit 3", f"{run.nap} & echo b", "kill -KILL $PPID; sleep 1"):
            await run(script, apart=True)
        await run(run.nap, seconds=0.1)
        gc.collect()
    assert descriptors() == before
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


# --- reports


def test_reports_are_files_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{}")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert read_reports(str(tmp_path)) == {"a.json": b"{}", "empty": b""}


def test_reports_are_bounded(tmp_path: Path) -> None:
    with (tmp_path / "0-huge").open("wb") as file:
        file.truncate(17 << 20)
    for number in range(MAX_REPORTS + 10):
        (tmp_path / f"{number:03}").write_bytes(b"x")
    found = read_reports(str(tmp_path))
    assert len(found) == MAX_REPORTS
    assert set(found.values()) == {b"x"}


def test_no_folder_no_reports(tmp_path: Path) -> None:
    assert read_reports(str(tmp_path / "missing")) == {}


@pytest.mark.parametrize("ending", ["", "sleep 60"])
async def test_reports_come_back(run: Runner, ending: str) -> None:
    reports = run.folder / "reports"
    reports.mkdir()
    finished = await run(f"echo '<xml/>' > reports/r.xml; {ending}", reports=str(reports), seconds=0.5)
    assert finished.reports == {"r.xml": b"<xml/>\n"}


# --- in a sandbox


@needs_bwrap
async def test_in_a_sandbox(run: Runner) -> None:
    finished = await run(f"(setsid {run.nap} &) ; echo $$; exit 5", *BWRAP)
    assert (finished.exit_code, len(finished.output)) == (5, 2)
    assert not run.naps()


@needs_bwrap
async def test_cancelling_in_a_sandbox(run: Runner) -> None:
    task = asyncio.ensure_future(run(f"setsid {run.nap} & {run.nap}", *BWRAP))
    await run.until_napping(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not run.naps()


@needs_bwrap
@pytest.mark.slow
async def test_a_fork_bomb_is_over_soon(run: Runner) -> None:
    started = time.monotonic()
    bomb = f"bomb() {{ bomb | bomb & }}; bomb; {run.nap}"
    finished = await run(bomb, *BWRAP, processes=100, seconds=20)
    assert finished.ending == "processes"
    assert time.monotonic() - started < 10
    assert not run.naps()


# --- speed


@pytest.mark.slow
async def test_the_loop_keeps_turning_while_much_is_printed(run: Runner) -> None:
    lags: list[float] = []

    async def watch() -> None:
        while True:
            due = time.perf_counter() + 0.005
            await asyncio.sleep(0.005)
            lags.append(time.perf_counter() - due)

    watcher = asyncio.ensure_future(watch())
    script = "for i in $(seq 30); do head -c 1000000 /dev/zero | tr '\\0' y | fold -w 99; sleep 0.1; done"
    finished = await run(script, output_bytes=100 << 20)
    watcher.cancel()
    assert finished.size > 30_000_000
    assert statistics.quantiles(lags, n=100)[98] < 0.05
