"""The control group of a command: where one is found, what it limits, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.shadow.control_group import ControlGroup, in_group, parent_group, sweep
from tests.shadow.processes import Runner, needs_proc, until

pytestmark = needs_proc


def hierarchy(folder: Path, *groups: str, controls: str = "cpu memory pids") -> Path:
    """The files of groups, the last of which is ours; all but that pass their controls on."""
    proc = folder / "proc"
    proc.mkdir()
    mount = folder / "cgroup"
    for depth in range(len(groups) + 1):
        group = mount.joinpath(*groups[:depth])
        group.mkdir()
        (group / "cgroup.procs").touch()
        (group / "cgroup.subtree_control").write_text("" if depth == len(groups) else controls)
    (proc / "cgroup").write_text(f"4:memory:/x\n0::/{'/'.join(groups)}\n")
    (proc / "mountinfo").write_text(f"1 2 0:5 / /proc rw - proc proc rw\n3 2 0:6 / {mount} rw - cgroup2 none rw\n")
    return proc


def test_the_nearest_group_that_passes_its_controls_on(tmp_path: Path) -> None:
    proc = hierarchy(tmp_path, "user.slice", "user@1.service", "app.scope")
    assert parent_group(str(proc)) == str(tmp_path / "cgroup/user.slice/user@1.service")


def test_a_machine_without_such_a_group(tmp_path: Path) -> None:
    proc = hierarchy(tmp_path, "a", "b", controls="cpu memory")
    assert parent_group(str(proc)) == ""
    assert parent_group(str(tmp_path / "none")) == ""
    (proc / "cgroup").write_text("0::/../../x\n")
    assert parent_group(str(proc)) == ""
    (proc / "cgroup").write_text("4:memory:/x\n")
    assert parent_group(str(proc)) == ""


def fake_group(parent: Path, events: str = "") -> tuple[dict[str, Any], dict[str, str]]:
    """Run nothing in a group below a plain folder: the answer, and the files that the command found."""
    seen: dict[str, str] = {}

    def guard(spec: dict[str, Any]) -> dict[str, Any]:
        folder = Path(spec["procs"]).parent
        seen.update({path.name: path.read_text() for path in folder.iterdir()})
        (folder / "memory.events").write_text(events)
        return {"code": 137, "ending": "exited"}

    spec = {"control_group": str(parent), "processes": 10, "memory_bytes": 1 << 20}
    return in_group(spec, guard), seen


@pytest.mark.slow
def test_the_limits_are_those_of_the_command(tmp_path: Path) -> None:
    answer, seen = fake_group(tmp_path, "low 0\noom 0\noom_kill 0\n")
    assert seen == {"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "80"}
    assert answer == {"code": 137, "ending": "exited"}


@pytest.mark.slow
def test_a_command_that_the_kernel_ended_for_its_memory(tmp_path: Path) -> None:
    answer, _ = fake_group(tmp_path, "oom 3\noom_kill 2\n")
    assert answer == {"code": 137, "ending": "memory"}


def test_where_no_group_can_be_made_the_command_runs_without(tmp_path: Path) -> None:
    group = ControlGroup(str(tmp_path / "none"), {"memory.max": 5})
    assert (group.procs, group.ran_out()) == (os.devnull, False)
    group.remove()


def test_groups_of_the_dead_are_swept_and_those_of_the_living_stay(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in (f"codeagent-{dead.pid}", f"codeagent-{os.getpid()}", "codeagent-x", "other"):
        (tmp_path / name).mkdir()
    sweep(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        (f"codeagent-{os.getpid()}", "codeagent-x", "other")
    )


# --- the kernel's own


def writable() -> str:
    """A group of version 2 in which we may make others, whatever it controls; "" if there is none."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4]
        if " - cgroup2 " in line and os.access(point, os.W_OK) and os.access(f"{point}/cgroup.procs", os.W_OK):
            return point
    return ""


@pytest.fixture
def parent() -> Iterator[Path]:
    """A group of the test's own."""
    folder = Path(writable(), f"test-{os.getpid()}")
    folder.mkdir()
    yield folder
    folder.rmdir()


@pytest.mark.skipif(not writable(), reason="no cgroup v2 here that we may write")
async def test_all_processes_are_in_the_group_and_nothing_is_left_of_it(run: Runner, parent: Path) -> None:
    finished = await run("cat /proc/self/cgroup | grep ^0", control_group=str(parent))
    assert "/codeagent-" in finished.output
    assert not groups(parent)


@pytest.mark.skipif(not writable(), reason="no cgroup v2 here that we may write")
async def test_a_watchdog_that_was_killed_leaves_an_empty_group_that_the_next_removes(
    run: Runner, parent: Path
) -> None:
    task = asyncio.create_task(run(run.nap, control_group=str(parent)))
    await run.until_napping()
    (left,) = groups(parent)
    os.kill(int(left.name.partition("-")[2]), signal.SIGKILL)
    await asyncio.wait([task])
    await until(lambda: not run.naps())
    assert groups(parent) == [left] or not groups(parent)
    await run("true", control_group=str(parent))
    assert not groups(parent)


@pytest.mark.skipif(not parent_group(), reason="no cgroup v2 here that limits memory and is ours to divide")
async def test_the_kernel_ends_what_uses_too_much_memory(run: Runner) -> None:
    script = f"{sys.executable} -c 'x = bytearray(300 << 20)'; echo survived"
    finished = await run(script, memory_bytes=100 << 20, look_seconds=60.0)
    assert finished.ending == "memory" and "survived" not in finished.output
    assert not groups(Path(parent_group()))


def groups(parent: Path) -> list[Path]:
    return [path for path in parent.iterdir() if path.name.startswith("codeagent-")]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)
