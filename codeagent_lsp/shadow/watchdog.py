"""A small program between the server and one command: it starts the command, guards its process tree, and ends all of
it.

It is a separate process so that the tree also ends if the server is killed: the socket on its standard input then
closes. It is the child subreaper (prctl) of everything below it, so no child escapes by a new session or a dead parent,
and the server's event loop need not poll. It imports the standard library only and starts in about ten milliseconds.
Without /proc and prctl, only the command's process group is known. Not here: reading the output and the reports
(`process.py`), what the command may see (`environment.py`), the kernel's own limits (`control_group.py`).
"""

# ruff: noqa: PTH123, PTH208 - pathlib would double the time this program takes to start

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import sys
import time

from codeagent_lsp.shadow.guard_messages import HEAD, INTERVAL_SECONDS, KILLED, pack_message, unpack_message

assert sys.platform != "win32"

TYPE_CHECKING = False
if TYPE_CHECKING:  # as in `typing`, which would take a third of the time this program needs to start
    from collections.abc import Callable, Iterable
    from typing import Any

ENDING_SECONDS = 5.0
OPEN_FILES = 8192  # some programs close, or make room for, every descriptor that the limit allows
NICENESS, FIRST = 5, -20  # of the command and of this program

CONTROL = 0

_SPEC_LIMIT = 16 << 20  # bytes: the words and the environment of a command
_SUBREAPER, _DEATH_SIGNAL = 36, 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}  # the number of the system call, for which the C library has no function
_JOIN_SESSION_KEYRING = 1
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Run one command, received by `pack_message` on the socket at descriptor 0, and answer on it in the same format:
    `{"code": exit code or 128 + signal, "ending": ...}`, or `{"error": errno}` if it cannot start.
    """
    spec = _receive(CONTROL)
    if spec is None:  # the server went away, or changed its mind, before anything was started
        return
    if spec.get("control_group"):
        from codeagent_lsp.shadow.control_group import in_group  # late: few machines have such groups to give

        answer = in_group(spec, lambda joining: guard(joining, CONTROL))
    else:
        answer = guard(spec, CONTROL)
    try:
        os.write(CONTROL, pack_message(answer))
    except OSError:  # the server has ended
        pass


def guard(spec: dict[str, Any], control: int) -> dict[str, Any]:
    """Start the command, follow it until it ends, exceeds a limit or `control` closes, and kill everything that is left
    of it. Return `{"code", "ending", "left"}`: exit code, why it ended, how many processes survived; or `{"error"}`, an
    errno, if it could not start.
    """
    _prctl(_SUBREAPER, 1)
    # Before the start, as a command that ends at once must wake us too.
    wake = _wake_on_signals()
    try:
        tree = Tree(start(spec))
    except OSError as error:
        return {"error": error.errno}
    _go_first()
    limits = TreeLimits(spec)
    ending = _follow(tree, limits, control, wake)
    # However the command ended: what it left in the background must not outlive it.
    left = tree.end()
    return {"code": KILLED if tree.code is None else tree.code, "ending": ending, "left": left}


class Tree:
    """The process tree of one command, below this process as its subreaper. `code` is its exit code as in a shell, None
    while it runs.
    """

    def __init__(self, main: int) -> None:
        self.code: int | None = None
        self._main = main

    def reap(self) -> bool:
        """Reap ended children without waiting, set `code`, and return whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code

    def end(self, seconds: float = ENDING_SECONDS) -> int:
        """Kill everything repeatedly until nothing is left, for at most `seconds`; return how many processes
        survived.
        """
        deadline, pause = time.monotonic() + seconds, 0.0005
        # As the subreaper, this process inherits every orphan: if it has no child, nothing of the tree is left.
        while self.reap():
            self._kill()
            if time.monotonic() > deadline:
                return len(descendants(os.getpid()))
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return 0

    def _kill(self) -> None:
        """Kill once. A process group is killed in one step of the kernel, so that forking does not outrun it."""
        pids = descendants(os.getpid())
        # Without /proc no descendant is known, but the command's own group is, since `setsid`.
        groups = {_group(pid) for pid in pids} | ({self._main} if self.code is None else set())
        for group in groups - {None, 0, os.getpgrp()}:
            _signal(os.killpg, group)
        for pid in pids:
            _signal(os.kill, pid)


class TreeLimits:
    """Checks the limits of one command's tree, from now on. `spec` has `seconds`, the number of `processes`,
    `memory_bytes` of all together, and the `disk_bytes` by which the free space of `disk_folder` may shrink.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self.deadline = time.monotonic() + spec["seconds"]
        self.look_seconds: float = spec.get("look_seconds", INTERVAL_SECONDS)
        self._spec = spec
        self._free = free_bytes(spec["disk_folder"])
        from codeagent_lsp.shadow.shared_memory import memory_mounts  # late: the command is running already

        self._mounts = frozenset(device for device, _ in memory_mounts("self"))

    def broken(self) -> str | None:
        """Return the exceeded limit: `timeout`, `processes`, `memory` or `disk`; None if there is none. To be called at
        intervals, as it looks only at this moment.
        """
        if time.monotonic() >= self.deadline:
            return "timeout"
        pids = descendants(os.getpid(), self._spec["processes"] + 1)
        if len(pids) > self._spec["processes"]:
            return "processes"
        if _uses_more(pids, self._spec["memory_bytes"], self._mounts):
            return "memory"
        now = free_bytes(self._spec["disk_folder"])
        if self._free is not None and now is not None and self._free - now > self._spec["disk_bytes"]:
            return "disk"
        return None


def start(spec: dict[str, Any]) -> int:
    """Start the command of `spec`, whose `argv`, `cwd` and `environment` it gets, and return its process id. OSError if
    it cannot be started.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _become(spec, parent)
        except OSError as error:
            os.write(writer, str(error.errno or errno.EIO).encode())
        except ValueError:  # a NUL in a word
            os.write(writer, str(errno.EINVAL).encode())
        finally:
            # Without any cleaning up: it is a copy of the watchdog.
            os._exit(127)
    os.close(writer)
    # Both ends close when the command is executed, so an empty answer is success.
    failure = os.read(reader, 16)
    os.close(reader)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    return pid


def descendants(pid: int, at_most: int | None = None) -> list[int]:
    """Return the ids of the processes below `pid`, parents first, at most about `at_most`. Short-lived ones may be
    missed.
    """
    # The scan is of one moment: processes that begin during it are found at the next look.
    of = _children if os.path.exists(f"/proc/{pid}/task/{pid}/children") else _children_by_scan()  # noqa: PTH110
    found: list[int] = []
    waiting = [pid]
    while waiting and (at_most is None or len(found) < at_most):
        below = of(waiting.pop(0))
        found.extend(below)
        waiting.extend(below)
    return found


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes, shared pages included (`/proc/PID/statm`, proc(5)); 0 if it has
    ended.
    """
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Return the proportional memory (PSS) of a process in bytes; the resident one if the kernel does not report it, 0
    if it has ended.
    """
    try:
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
    except OSError:
        return resident_bytes(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def free_bytes(folder: str) -> int | None:
    """Return the bytes that an ordinary user can still write to the file system of `folder`; None if unknown."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def _follow(tree: Tree, limits: TreeLimits, control: int, wake: int) -> str:
    """Wait until the command has ended ("exited"), exceeded a limit (its name), or is to end ("stopped")."""
    look = time.monotonic() + limits.look_seconds
    while True:
        tree.reap()
        if tree.code is not None:
            return "exited"
        if time.monotonic() >= min(look, limits.deadline):
            if broken := limits.broken():
                return broken
            look = time.monotonic() + limits.look_seconds
        wait = max(0.0, min(look, limits.deadline) - time.monotonic())
        ready, _, _ = select.select([control, wake], [], [], wait)
        # The server says nothing more on this socket: it is readable once its side is shut, to end the command, or by
        # the end of the server.
        if control in ready or (wake in ready and set(os.read(wake, 4096)) & set(_STOP_SIGNALS)):
            return "stopped"


def _become(spec: dict[str, Any], parent: int) -> None:
    """Replace the forked process by the command; never returns, but may raise OSError or ValueError."""
    os.setsid()
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    # The parent may have died before the signal of its death was asked for.
    if os.getppid() != parent:
        os._exit(127)
    _leave_session_keyring()
    _limit(spec["processes"])
    os.nice(NICENESS)
    # 0 stands for the process that writes.
    _write(spec.get("procs", os.devnull), "0")
    # When memory is short, the kernel takes the command, not the editor.
    _write("/proc/self/oom_score_adj", "1000")
    stdin = spec.get("stdin")
    os.dup2(os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin, 0)
    if stdin is not None:
        os.close(stdin)
    signal.set_wakeup_fd(-1)
    # What is ignored stays ignored in the new program, and Python ignores SIGPIPE and SIGXFSZ.
    for number in (*_STOP_SIGNALS, signal.SIGQUIT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(spec["cwd"])
    os.execvpe(spec["argv"][0], spec["argv"], spec["environment"])  # noqa: S606 - running it is the purpose


def _go_first() -> None:
    """Run before all that the command starts, where the user may: root may, for whom the kernel limits no processes,
    and hundreds that fork would leave little time to count and end them.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    except OSError:
        return


def _limit(processes: int) -> None:
    """Disable core dumps, limit open files, and limit processes as a ceiling between two checks."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        threads = int(_read("/proc/loadavg").split()[3].partition("/")[2])  # of all users: the limit is per user
    except (OSError, ValueError, IndexError):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    # Far above what a command may have: it only stops what forks faster than it is counted.
    ceiling = threads + 8 * processes
    if hard == resource.RLIM_INFINITY or ceiling < hard:
        resource.setrlimit(resource.RLIMIT_NPROC, (ceiling, ceiling))


def _uses_more(pids: Iterable[int], allowed: int, mounts: frozenset[str] = frozenset()) -> bool:
    """Return whether the processes use more memory; the expensive exact value is read only if the cheap one exceeds.

    Files in memory count too, except in file systems on the devices `mounts`, which are not the processes' alone.
    """
    from codeagent_lsp.shadow.shared_memory import FileMemory  # late: as above

    listed = list(pids)
    files = FileMemory(listed, mounts)
    # Resident memory counts shared pages in each process, so it is never too low.
    if sum(map(resident_bytes, listed)) + files.bytes <= allowed:
        return False
    if not files.bytes:
        return sum(map(proportional_bytes, listed)) > allowed
    unshared = ((files.unshared(pid), pid) for pid in listed)
    return files.bytes + sum(proportional_bytes(pid) if size is None else size for size, pid in unshared) > allowed


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(map(int, _read(f"/proc/{pid}/task/{thread}/children").split()))
    except OSError:  # it ended meanwhile
        pass
    return found


def _children_by_scan() -> Callable[[int], list[int]]:
    """Return a function that lists children, from one scan of /proc, for kernels without `children` files."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112 - see above
        if name.isdigit():
            try:
                # The name in brackets may have blanks and brackets itself.
                parent = int(_read(f"/proc/{name}/stat").rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            below.setdefault(parent, []).append(int(name))
    return lambda pid: below.get(pid, [])


def _wake_on_signals() -> int:
    """Return a descriptor on which the number of each signal arrives as a byte."""
    here, there = os.pipe()
    os.set_blocking(there, False)
    signal.set_wakeup_fd(there, warn_on_full_buffer=False)
    # Any handler will do: without one, a stop signal would end us and SIGCHLD would write no byte.
    for number in (signal.SIGCHLD, *_STOP_SIGNALS):
        signal.signal(number, lambda *_: None)
    return here


def _receive(control: int) -> dict[str, Any] | None:
    data = bytearray()
    while len(data) < HEAD or len(data) < HEAD + int.from_bytes(data[:HEAD], "big"):
        chunk = os.read(control, 1 << 16)
        if not chunk or len(data) > _SPEC_LIMIT:
            return None
        data += chunk
    return unpack_message(data)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _signal(send: Callable[[int, int], None], target: int | None) -> None:
    try:
        if target is not None:
            send(target, signal.SIGKILL)
    except OSError:  # gone, or of another user: a set-user-id program
        pass


def _leave_session_keyring() -> None:
    """Join a new session keyring, so that the keys of the user's login are out of reach."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _call("syscall", number, _JOIN_SESSION_KEYRING, 0)


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, value, 0, 0, 0)


def _call(function: str, *numbers: int) -> None:
    """Call a function of the C library on Linux, whether it succeeds or not."""
    if sys.platform == "linux":
        try:
            import ctypes  # only here: some builds of Python lack it

            getattr(ctypes.CDLL(None, use_errno=True), function)(*map(ctypes.c_long, numbers))
        except (ImportError, OSError, AttributeError):
            pass


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path: str, value: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(value)
    except OSError:  # another system, or a kernel that forbids it
        pass
