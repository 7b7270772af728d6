"""Linux and macOS: what `codeagent_lsp.system` offers, by descriptors, process groups and advisory locks (flock).

Not here: Windows (`windows.py`, with the same names).
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # slow to load, and most commands run without it
    import asyncio
    import socket

assert sys.platform != "win32"

OWN_GROUP: Mapping[str, Any] = MappingProxyType({"start_new_session": True})
"""Options of a child process that leads its own group: Ctrl-C does not reach it, and `end_tree` ends all of it."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals by which a user or the system asks this process to end."""

# A pipe must not block us, and a terminal must not become ours.
_FOLLOW = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_READ = _FOLLOW | os.O_NOFOLLOW
_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FICLONE = 0x40049409
_AT_FDCWD, _CLONE_NO_OWNER = -2, 2  # of macOS
_LOCAL_PEERCRED = 1  # of macOS
_APPEND = os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


# Files: a descriptor stands for the file that was opened, whatever is put at its path meanwhile.


def open_reading(path: str | Path) -> int:
    """Return a descriptor of a file for reading, which the caller closes; never waits for a pipe. OSError if it cannot
    be opened or is a link.
    """
    return os.open(path, _READ)


def open_following(path: str | Path) -> int:
    """Return a descriptor for reading as `open_reading` does, but follow links; the caller closes it. OSError if it
    cannot be opened.
    """
    return os.open(path, _FOLLOW)


def open_new(path: str | Path) -> int:
    """Create a file that only its owner can access and return a descriptor for writing, which the caller closes.
    OSError if it exists, also as a link.
    """
    return os.open(path, _CREATE, 0o600)


def open_appending(path: str | Path, *, readable: bool = False) -> int:
    """Return a descriptor with which each write goes to the end of the file, which is created for its owner alone if
    missing. OSError if it is a link. The caller closes it.
    """
    return os.open(path, _APPEND | (os.O_RDWR if readable else os.O_WRONLY), 0o600)


def copy_new(source: int, target: str | Path) -> int:
    """Create `target` with the content of an open file and return a descriptor for writing it, which the caller closes;
    OSError if it exists.

    The two share their blocks until one changes, if the file system can do that (Btrfs and XFS, by FICLONE; APFS).
    """
    if sys.platform == "darwin" and _clone(source, target):
        return os.open(target, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    made = open_new(target)
    try:
        if not (sys.platform == "linux" and _shares_blocks(source, made)):
            _copy_bytes(source, made)
    except OSError:
        os.close(made)
        raise
    return made


def _shares_blocks(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _clone(source: int, target: str | Path) -> bool:
    """Create `target` as a clone on APFS; it has the permissions of its source, so no others than those may read it."""
    import ctypes  # late: only macOS needs it here

    clone = getattr(ctypes.CDLL(None, use_errno=True), "fclonefileat", None)
    return clone is not None and clone(source, _AT_FDCWD, os.fsencode(target), _CLONE_NO_OWNER) == 0


def _copy_bytes(source: int, target: int) -> None:
    import shutil  # late: slow to load, and only a private copy needs it

    # Duplicates, as the caller closes its own.
    with os.fdopen(os.dup(source), "rb") as origin, os.fdopen(os.dup(target), "wb") as copy:
        shutil.copyfileobj(origin, copy, 1 << 20)


def set_mode(descriptor: int, mode: int) -> None:
    """Set the permissions of an open file, such as 0o644. OSError if it belongs to another user."""
    os.fchmod(descriptor, mode)


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return up to `size` bytes at an offset, b'' at the end of the file; does not depend on or change the position of
    the descriptor.
    """
    return os.pread(descriptor, size, offset)


def lock(descriptor: int, *, wait: bool = False, shared: bool = False) -> None:
    """Lock an open file against other processes until it is closed, also by the end of this process. BlockingIOError if
    another process holds it and `wait` is False. The lock is advisory: files can still be read and written.
    """
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


class Folder:
    """An open folder, `parts` below `root`, reached part by part without following a link. Use it as a context.

    Its operations take one name in it and reach this very folder, even if another was put at its path since (TOCTOU).
    All may raise OSError.
    """

    def __init__(self, root: str, parts: Iterable[str] = ()) -> None:
        descriptor = os.open(root, _ENTER)
        try:
            for part in parts:
                inner = os.open(part, _ENTER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        """Return the folder, which the context closes."""
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def entries(self) -> list[os.DirEntry[str]]:
        """Return the entries of the folder, unsorted, without `.` and `..`; links are not followed. OSError if it
        cannot be read.
        """
        with os.scandir(self._descriptor) as entries:
            return list(entries)

    def status(self, name: str) -> os.stat_result:
        """Return the status of a file, of a link itself. FileNotFoundError if there is none."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def open_reading(self, name: str) -> int:
        """Return a descriptor of a file in the folder for reading, which the caller closes; never waits for a pipe.
        OSError if it cannot be opened or is a link.
        """
        return os.open(name, _READ, dir_fd=self._descriptor)

    def open_new(self, name: str) -> int:
        """Create a file in the folder for its owner alone and return a descriptor for writing, which the caller closes.
        OSError if it exists.
        """
        return os.open(name, _CREATE, 0o600, dir_fd=self._descriptor)

    def make_folder(self, name: str) -> None:
        """Create a folder in it, with the usual permissions (umask). OSError if the name is taken."""
        os.mkdir(name, dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder in it. OSError if something is in that, or there is none."""
        os.rmdir(name, dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Delete a file or a link in it. OSError if there is none, or it is a folder."""
        os.unlink(name, dir_fd=self._descriptor)

    def replace(self, old: str, new: str) -> None:
        """Rename a file in it in one step; a file that has the new name is replaced. OSError if that is impossible."""
        os.replace(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)


# Rights.


def user_id() -> int:
    """Return the effective user id of this process."""
    return os.geteuid()


def group_id() -> int:
    """Return the effective group id of this process."""
    return os.getegid()


def is_superuser() -> bool:
    """Return whether this process runs as root, by its effective user id."""
    return os.geteuid() == 0


def belongs_to_us(status: os.stat_result) -> bool:
    """Return whether a file, by its status, belongs to the effective user of this process."""
    return status.st_uid == os.geteuid()


def peer_user(connection: socket.socket) -> int | None:
    """Return the id of the user who connected the other end of a Unix socket (SO_PEERCRED, on macOS LOCAL_PEERCRED);
    None if the system does not tell.
    """
    import socket  # late: most commands run without it
    import struct  # late, as above

    try:
        if sys.platform == "darwin":
            option, layout = (0, _LOCAL_PEERCRED), "2Ih16I"  # the version, the user, groups
        else:
            option, layout = (socket.SOL_SOCKET, socket.SO_PEERCRED), "3i"  # the process, the user, the group
        told = connection.getsockopt(*option, struct.calcsize(layout))
        return int(struct.unpack(layout, told)[1])
    except (OSError, AttributeError, struct.error):
        return None


# Processes.


def end_tree(pid: int) -> None:
    """Kill a process that was started with `OWN_GROUP` and its whole group, including members that outlived it; nothing
    if none is left.
    """
    with suppress(ProcessLookupError, PermissionError):  # no process is left
        os.killpg(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Return whether a process exists, of whatever user, and is not a zombie."""
    try:
        os.kill(pid, 0)
    # A client may send any number; one beyond the system's pids is no process.
    except (ProcessLookupError, OverflowError):
        return False
    # It exists, and belongs to another user.
    except PermissionError:
        return True
    try:
        # `41 (name) S …`: split behind the last parenthesis, as the name itself may have blanks and parentheses. A
        # zombie still takes signals, until its parent has waited for it.
        state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[:1]
    except OSError:
        return True  # no /proc here
    return state != ["Z"]


def call_on_stop(loop: asyncio.AbstractEventLoop, stopped: Callable[[], None], numbers: Iterable[int]) -> None:
    """Call `stopped` in the loop whenever one of these signals (numbers) arrives, in place of what the signal did
    before. To be called in the main thread.
    """
    for number in numbers:
        loop.add_signal_handler(number, stopped)


def bash() -> str | None:
    """Return the program that runs scripts, `bash`; None, on Windows only, if scripts are for another shell."""
    return "bash"


def is_terminal(descriptor: int) -> bool:
    """Return whether a descriptor is a terminal, so that somebody can answer; False for a closed one."""
    return os.isatty(descriptor)


def lower_priority(by: int) -> None:
    """Lower the priority of this process for good, as `nice` does; `by` is from 1 to 19."""
    os.nice(by)


def limit_memory(size: int) -> None:
    """Limit the address space of this process to `size` bytes (RLIMIT_AS), so that more raises MemoryError; does
    nothing on macOS.
    """
    if sys.platform == "linux":
        import resource  # late: only the children that compute need it

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def end_after(seconds: int) -> None:
    """End this process by SIGALRM after so many whole seconds, even during a call that does not return; 0 cancels that,
    another number replaces it.
    """
    signal.alarm(seconds)


def memory_bytes() -> int:
    """Return the memory of the machine in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def unread_bytes(write_descriptor: int) -> int | None:
    """Return how many bytes that were written to a pipe have not been read yet; None where that is not known, as of
    what is no pipe and on systems other than Linux.
    """
    if sys.platform == "linux":  # elsewhere the end that is written to does not know
        with suppress(OSError):
            return int.from_bytes(fcntl.ioctl(write_descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
    return None


# Terminals.


def drop_typed(descriptor: int) -> None:
    """Drop what was typed on a terminal and is not read yet. termios.error if the descriptor is no terminal."""
    termios.tcflush(descriptor, termios.TCIFLUSH)


@contextmanager
def hidden_input(descriptor: int) -> Iterator[None]:
    """While this context is entered, a terminal does not show what is typed; its modes are restored at the end.
    termios.error if the descriptor is no terminal.
    """
    shown = termios.tcgetattr(descriptor)
    hidden = [*shown[:3], shown[3] & ~termios.ECHO, *shown[4:]]
    termios.tcsetattr(descriptor, termios.TCSADRAIN, hidden)
    try:
        yield
    finally:
        # also after Ctrl-C: the user's shell would be left without echo
        termios.tcsetattr(descriptor, termios.TCSADRAIN, shown)
