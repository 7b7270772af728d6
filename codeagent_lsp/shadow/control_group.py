"""A control group (cgroup v2) for each command, where the user has one to give: the kernel's own limit on memory and
tasks, which no process outruns between two looks of the watchdog.

The command enters it before it starts, so all its processes are in it. Standard library only, as the watchdog imports
it. Not here: the limits without such a group (`watchdog.py`), which hold beside these as well.
"""

# ruff: noqa: PTH102, PTH106, PTH110, PTH120, PTH123, PTH208 - pathlib would double the watchdog's start

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # as in `typing`, see `watchdog.py`
    from collections.abc import Callable, Mapping
    from typing import Any

_PREFIX = "codeagent-"
_NEEDED = frozenset(("memory", "pids"))
_TASKS_OF_PROCESS = 8
_REMOVING_SECONDS = 1.0


def parent_group(proc: str = "/proc/self") -> str:
    """Return the absolute path of the nearest control group above this process that the user may divide; '' if there is
    none, as on most machines.

    It must pass on the control of memory and tasks, which a group with processes in it does not, so it is rarely this
    process's own.
    """
    if os.name == "nt":
        return ""
    own = next((line[3:] for line in _read(f"{proc}/cgroup").splitlines() if line.startswith("0::/")), "")
    mount = _mount(_read(f"{proc}/mountinfo"))
    # A process that is outside of the root of its cgroup namespace reads `/../..` here.
    if not own or not mount or ".." in own.split("/"):
        return ""
    folder = os.path.normpath(mount + own)
    while not _can_divide(folder):
        if folder == mount:
            return ""
        folder = os.path.dirname(folder)
    return folder


def in_group(spec: dict[str, Any], guard: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Call `guard` for a command in a new group below `spec["control_group"]`, remove the group, and return the
    watchdog's answer. Blocks until the command has ended.
    """
    sweep(spec["control_group"])
    # `pids.max` counts threads, the setting processes.
    tasks = _TASKS_OF_PROCESS * spec["processes"]
    # `oom.group`: all of the command ends, not one process of it for which the others then wait.
    limits = {"memory.max": spec["memory_bytes"], "memory.swap.max": 0, "memory.oom.group": 1, "pids.max": tasks}
    group = ControlGroup(spec["control_group"], limits)
    try:
        # The kernel may kill before the watchdog looks: then the exit code alone would read as a crash.
        answer = guard({**spec, "procs": group.procs})
        if answer.get("ending") == "exited" and group.ran_out():
            answer["ending"] = "memory"
        return answer
    finally:
        group.remove()


class ControlGroup:
    """A new group below the folder `parent` for one command; the caller removes it. `procs` is the file to which a
    process writes its id to join; the null device if the group could not be made.
    """

    def __init__(self, parent: str, limits: Mapping[str, int]) -> None:
        """Create it with `limits` by file name. A file that the kernel does not have sets no limit."""
        self._folder = f"{parent}/{_PREFIX}{os.getpid()}"
        self.procs = f"{self._folder}/cgroup.procs"
        try:
            os.mkdir(self._folder, 0o700)
        except OSError:  # no rights after all, or too many groups
            # A process that writes its id there joins nothing, so no caller has to ask.
            self.procs = os.devnull
        for name, value in limits.items():
            self._set(name, value)

    def ran_out(self) -> bool:
        """Return whether the kernel killed a member because the group's memory limit was reached; False if unknown."""
        events = dict(line.split(maxsplit=1) for line in _read(f"{self._folder}/memory.events").splitlines())
        return events.get("oom_kill", "0") != "0"

    def remove(self) -> None:
        """Remove the group, whose members have ended. Tries for at most 1 s, as the kernel may be late; never
        raises.
        """
        deadline = time.monotonic() + _REMOVING_SECONDS
        while os.path.exists(self._folder) and time.monotonic() < deadline:
            if _remove(self._folder):
                return
            time.sleep(0.01)

    def _set(self, name: str, value: int) -> None:
        try:
            with open(f"{self._folder}/{name}", "w", encoding="ascii") as file:
                file.write(str(value))
        except OSError:
            pass


def sweep(parent: str) -> None:
    """Remove the groups below `parent` whose watchdogs were killed; those with a process in them stay. Never raises."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        pid = name.removeprefix(_PREFIX)
        if name != pid and pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            _remove(f"{parent}/{name}")


def _mount(table: str) -> str:
    """Return where the whole hierarchy of version 2 is mounted; "" if it is not."""
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        # The fourth field is the mounted part of the hierarchy: other than `/` where only a subtree is bound.
        if after.startswith("cgroup2 ") and fields[3] == "/" and "\\" not in fields[4]:
            return fields[4]
    return ""


def _can_divide(folder: str) -> bool:
    """Return whether we may make groups in a folder, move processes there, and limit them."""
    may = os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)
    return may and set(_read(f"{folder}/cgroup.subtree_control").split()) >= _NEEDED


def _remove(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
