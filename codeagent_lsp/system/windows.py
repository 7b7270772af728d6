"""Windows: what `codeagent_lsp.system` offers, by handles of the Win32 API.

Tried in Wine (`tests/system/test_on_windows.py`), not on a real Windows. Not here: Linux and macOS (`posix.py`, with
the same names), the isolation of commands (`shadow/`).
"""

from __future__ import annotations

import ctypes
import errno
import msvcrt
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from ctypes import wintypes
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # slow to load, and most commands run without it
    import asyncio
    import socket

assert sys.platform == "win32"

# Without a console of its own: an editor has none, and each child would open a window.
OWN_GROUP: Mapping[str, Any] = MappingProxyType(
    {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
)
"""Options of a child process that leads its own group: Ctrl-C does not reach it, and `end_tree` ends all of it."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGBREAK)
"""The signals by which a user or the system asks this process to end."""

_READ, _WRITE, _APPEND_ONLY, _LIST = 0x80000000, 0x40000000, 0x00000004 | 0x00100000, 0x00000001
_SHARE_READ, _SHARE_WRITE, _SHARE_DELETE = 1, 2, 4
_NEW, _EXISTING, _ALWAYS = 1, 3, 4
_OPEN_LINK, _FOLDERS_TOO = 0x00200000, 0x02000000
_IS_FOLDER, _IS_LINK = 0x10, 0x400  # a reparse point: symbolic link, junction, mount point
_ON_DISK = 1  # GetFileType: neither a device nor a pipe
_FAIL_AT_ONCE, _EXCLUSIVE = 1, 2
_LOCKED = 33
_LOCK_AT = 1 << 62  # locks are mandatory here, so the locked byte is one that no file has
_BELOW_NORMAL = 0x00004000


class _Overlapped(ctypes.Structure):
    _fields_ = (
        ("Internal", ctypes.c_void_p),
        ("InternalHigh", ctypes.c_void_p),
        ("Offset", wintypes.DWORD),
        ("OffsetHigh", wintypes.DWORD),
        ("hEvent", wintypes.HANDLE),
    )


class _FileInformation(ctypes.Structure):
    _fields_ = (
        ("attributes", wintypes.DWORD),
        ("times", wintypes.DWORD * 6),
        ("volume", wintypes.DWORD),
        ("size_high", wintypes.DWORD),
        ("size_low", wintypes.DWORD),
        ("links", wintypes.DWORD),
        ("index_high", wintypes.DWORD),
        ("index_low", wintypes.DWORD),
    )


class _MemoryStatus(ctypes.Structure):
    _fields_ = (
        ("length", wintypes.DWORD),
        ("load", wintypes.DWORD),
        ("total", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 6),
    )


def _kernel() -> ctypes.WinDLL:
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateFileW.restype = wintypes.HANDLE
    kernel.CreateFileW.argtypes = (
        wintypes.LPCWSTR,
        *(wintypes.DWORD,) * 2,
        ctypes.c_void_p,
        *(wintypes.DWORD,) * 2,
        wintypes.HANDLE,
    )
    for name in ("CloseHandle", "GetFileType", "GetFileInformationByHandle", "LockFileEx", "SetPriorityClass"):
        getattr(kernel, name).argtypes = None
    return kernel


# Files.


def open_reading(path: str | Path) -> int:
    """Return a descriptor of a file for reading, which the caller closes; never waits for a pipe. OSError if it cannot
    be opened or is a link.
    """
    return _opened(path, _READ, _EXISTING, os.O_RDONLY)


def open_following(path: str | Path) -> int:
    """Return a descriptor for reading as `open_reading` does, but follow links; the caller closes it. OSError if it
    cannot be opened.
    """
    return _opened(os.path.realpath(path), _READ, _EXISTING, os.O_RDONLY)


def open_new(path: str | Path) -> int:
    """Create a file and return a descriptor for writing, which the caller closes. OSError if it exists. Who can access
    it is inherited from its folder, which for our state is in the user's profile.
    """
    return _opened(path, _WRITE, _NEW, os.O_WRONLY)


def open_appending(path: str | Path, *, readable: bool = False) -> int:
    """Return a descriptor with which each write goes to the end of the file, which is created if missing. OSError if it
    is a link. The caller closes it.
    """
    access = _APPEND_ONLY | (_READ | _WRITE if readable else 0)
    return _opened(path, access, _ALWAYS, os.O_APPEND | (os.O_RDWR if readable else os.O_WRONLY))


def copy_new(source: int, target: str | Path) -> int:
    """Create `target` with the content of an open file and return a descriptor for writing it, which the caller closes;
    OSError if it exists.
    """
    made = open_new(target)
    try:
        _copy_bytes(source, made)
    except OSError:
        os.close(made)
        raise
    return made


def _copy_bytes(source: int, target: int) -> None:
    import shutil  # late: slow to load, and only a private copy needs it

    # Duplicates, as the caller closes its own.
    with os.fdopen(os.dup(source), "rb") as origin, os.fdopen(os.dup(target), "wb") as copy:
        shutil.copyfileobj(origin, copy, 1 << 20)


def set_mode(descriptor: int, mode: int) -> None:
    """Do nothing: files have no such permissions here, and a new one has those of its folder."""


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return up to `size` bytes at an offset, b'' at the end of the file; changes the position of the descriptor, so
    the file may be written at its end only.
    """
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def lock(descriptor: int, *, wait: bool = False, shared: bool = False) -> None:
    """Lock an open file against other processes until it is closed, also by the end of this process. BlockingIOError if
    another process holds it and `wait` is False. One byte far behind the end is locked, so files can still be read and
    written.
    """
    place = _Overlapped(Offset=_LOCK_AT & 0xFFFFFFFF, OffsetHigh=_LOCK_AT >> 32)
    flags = (0 if shared else _EXCLUSIVE) | (0 if wait else _FAIL_AT_ONCE)
    handle = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))
    if not _kernel().LockFileEx(handle, wintypes.DWORD(flags), 0, 1, 0, ctypes.byref(place)):
        if ctypes.get_last_error() == _LOCKED:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        raise ctypes.WinError(ctypes.get_last_error())


def _opened(path: str | Path, access: int, how: int, flags: int) -> int:
    handle = _handle(path, access, _SHARE_READ | _SHARE_WRITE | _SHARE_DELETE, how, folder=False)
    return msvcrt.open_osfhandle(handle, flags | os.O_BINARY | os.O_NOINHERIT)


def _handle(path: str | Path, access: int, share: int, how: int, *, folder: bool) -> int:
    """Return a handle of a file or folder. OSError if it is the other one of the two, a link, or no file of a disk."""
    kernel = _kernel()
    handle = kernel.CreateFileW(str(path), access, share, None, how, _OPEN_LINK | _FOLDERS_TOO, None)
    if handle in (None, wintypes.HANDLE(-1).value):
        raise ctypes.WinError(ctypes.get_last_error())
    about = _FileInformation()
    problem = 0
    if kernel.GetFileType(wintypes.HANDLE(handle)) != _ON_DISK:
        problem = errno.EINVAL
    elif not kernel.GetFileInformationByHandle(wintypes.HANDLE(handle), ctypes.byref(about)):
        problem = errno.EIO
    elif about.attributes & _IS_LINK:
        problem = errno.ELOOP
    elif bool(about.attributes & _IS_FOLDER) != folder:
        problem = errno.ENOTDIR if folder else errno.EISDIR
    if problem:
        kernel.CloseHandle(wintypes.HANDLE(handle))
        raise OSError(problem, os.strerror(problem), str(path))
    return int(handle)


class Folder:
    """An open folder, `parts` below `root`, reached part by part without following a link. Use it as a context.

    Each folder on the way is held by a handle that shares no right to delete: until the end of the context none can be
    renamed or replaced, so paths keep their meaning (TOCTOU). All operations take one name and may raise OSError.
    """

    def __init__(self, root: str, parts: Iterable[str] = ()) -> None:
        self._path = Path(root)
        self._handles: list[int] = []
        try:
            self._hold()
            for part in parts:
                self._path /= part
                self._hold()
        except OSError:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        """Return the folder, which the context closes."""
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            _kernel().CloseHandle(wintypes.HANDLE(handle))

    def entries(self) -> list[os.DirEntry[str]]:
        """Return the entries of the folder, unsorted; links are not followed. OSError if it cannot be read."""
        with os.scandir(self._path) as entries:
            return list(entries)

    def status(self, name: str) -> os.stat_result:
        """Return the status of a file, of a link itself. FileNotFoundError if there is none."""
        return os.lstat(self._path / name)

    def open_reading(self, name: str) -> int:
        """Return a descriptor of a file in the folder for reading, which the caller closes. OSError if it cannot be
        opened or is a link.
        """
        return open_reading(self._path / name)

    def open_new(self, name: str) -> int:
        """Create a file in the folder and return a descriptor for writing, which the caller closes. OSError if it
        exists.
        """
        return open_new(self._path / name)

    def make_folder(self, name: str) -> None:
        """Create a folder in it, with the rights of that. OSError if the name is taken."""
        (self._path / name).mkdir()

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder in it. OSError if something is in that, or there is none."""
        (self._path / name).rmdir()

    def remove(self, name: str) -> None:
        """Delete a file or a link in it. OSError if there is none, or it is a folder."""
        (self._path / name).unlink()

    def replace(self, old: str, new: str) -> None:
        """Rename a file in it in one step; a file that has the new name is replaced. OSError if that is impossible."""
        (self._path / old).replace(self._path / new)

    def _hold(self) -> None:
        self._handles.append(_handle(self._path, _LIST, _SHARE_READ | _SHARE_WRITE, _EXISTING, folder=True))


# Rights.


def user_id() -> int:
    """Return 0: users have no numbers here, and temporary folders of their own."""
    return 0


def group_id() -> int:
    """Return 0, as `user_id`."""
    return 0


def peer_user(connection: socket.socket) -> int | None:
    """Return None: sockets here do not tell who is at the other end."""
    return None


def is_superuser() -> bool:
    """Return whether this process has administrator rights."""
    return bool(ctypes.WinDLL("shell32").IsUserAnAdmin())


def belongs_to_us(status: os.stat_result) -> bool:
    """Return True: the status of a file does not tell its owner here, and our folders are in the user's profile."""
    return True


# Processes.


def end_tree(pid: int) -> None:
    """Kill a process and those that it started, as far as they are still its descendants; nothing if it has ended."""
    import psutil  # late: only needed at the end of a child

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (*process.children(recursive=True), process):
            with suppress(psutil.Error):
                each.kill()


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    import psutil  # late: only needed with a client that names its process

    return 0 < pid < 1 << 32 and psutil.pid_exists(pid)  # `os.kill` with 0 would send it Ctrl-C here


def call_on_stop(loop: asyncio.AbstractEventLoop, stopped: Callable[[], None], numbers: Iterable[int]) -> None:
    """Call `stopped` in the loop whenever one of these signals (numbers) arrives, in place of what the signal did
    before. To be called in the main thread.
    """
    for number in numbers:  # the loops of Windows know no signals
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopped) and None)


def bash() -> str | None:
    """Return the path of the program that runs scripts, such as that of Git for Windows; None if there is none, so that
    scripts are for `cmd`. That of WSL does not count, as files have other names there.
    """
    import shutil  # late: slow to load, and only commands need it

    found = shutil.which("bash")
    of_system = os.environ.get("SYSTEMROOT", "\0").lower()
    return None if found is None or found.lower().startswith(of_system) else found


def is_terminal(descriptor: int) -> bool:
    """Return whether a descriptor is a console, so that somebody can answer; unlike `os.isatty`, False for NUL."""
    mode = wintypes.DWORD()
    try:
        handle = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))
    except OSError:
        return False
    return bool(_kernel().GetConsoleMode(handle, ctypes.byref(mode)))


def lower_priority(by: int) -> None:
    """Lower the priority of this process for good; by one step here, whatever `by` is."""
    kernel = _kernel()
    kernel.SetPriorityClass(wintypes.HANDLE(-1), _BELOW_NORMAL)  # -1 stands for this process


def limit_memory(size: int) -> None:
    """Do nothing: only a job object could, and that is for commands."""


_ALARM: list[threading.Timer] = []


def end_after(seconds: int) -> None:
    """End this process with exit code 1 after so many seconds; 0 cancels that, another number replaces it. It cannot
    end during a call that holds the GIL.
    """
    while _ALARM:
        _ALARM.pop().cancel()
    if seconds:
        timer = threading.Timer(seconds, os._exit, (1,))
        timer.daemon = True
        timer.start()
        _ALARM.append(timer)


def memory_bytes() -> int:
    """Return the memory of the machine in bytes."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    _kernel().GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total)


def unread_bytes(write_descriptor: int) -> int | None:
    """Return None: how many bytes that were written to a pipe have not been read yet is not known here."""
    return None


# Terminals.


def drop_typed(descriptor: int) -> None:
    """Drop what was typed on a console and is not read yet."""
    _kernel().FlushConsoleInputBuffer(wintypes.HANDLE(msvcrt.get_osfhandle(descriptor)))


@contextmanager
def hidden_input(descriptor: int) -> Iterator[None]:
    """While this context is entered, a console does not show what is typed; its mode is restored at the end."""
    kernel, mode = _kernel(), wintypes.DWORD()
    handle = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))
    kernel.GetConsoleMode(handle, ctypes.byref(mode))
    kernel.SetConsoleMode(handle, wintypes.DWORD(mode.value & ~0x4))  # ENABLE_ECHO_INPUT
    try:
        yield
    finally:
        kernel.SetConsoleMode(handle, mode)
