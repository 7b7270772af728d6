"""Imports every module of the package as Windows would, and prints those that fail; the rest is `test_any_system.py`.

What stays is a Python of Linux, so the libraries are imported before: only the modules of this package see what is
missing. A program of its own, as it leaves nothing as it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.abc
import multiprocessing.connection
import os
import pkgutil
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Sequence

import codeagent_lsp

MISSING = {"fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "spwd", "syslog"}
OF_OS = """
    killpg fork forkpty setsid getsid getpgid getpgrp nice geteuid getuid getegid getgid fchmod chown fchown pread
    pwrite mkfifo mknod getxattr setxattr removexattr listxattr statvfs fstatvfs sysconf uname sync openpty login_tty
    major minor O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY O_NOCTTY O_PATH O_SYNC WNOHANG posix_spawn wait4
    set_blocking
    """.split()  # noqa: SIM905
OF_SIGNAL = """
    SIGKILL SIGHUP SIGCHLD SIGPIPE SIGQUIT SIGALRM SIGUSR1 SIGUSR2 SIGWINCH SIGXFSZ alarm pthread_kill
    """.split()  # noqa: SIM905
ONLY_POSIX = {
    "codeagent_lsp.system.posix",
    "codeagent_lsp.shadow.watchdog",  # a program that is started on other systems only, as the next one
    "codeagent_lsp.environments.container_terminal",
}
ONLY_WINDOWS = {"codeagent_lsp.shadow.job"}


class Blocked(importlib.abc.MetaPathFinder):
    """Finds no module that Windows lacks, and says so."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> None:
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}")


class Library:
    """A library of Windows, of which only names are looked up."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: 0


def names() -> Iterator[str]:
    """The modules of the package, but for programs that run when they are imported."""
    for found in pkgutil.walk_packages(codeagent_lsp.__path__, "codeagent_lsp."):
        if not found.name.endswith("__main__"):
            yield found.name


def become_windows() -> None:
    """Take away what Windows lacks, and add what it has."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "codeagent_lsp" or name in MISSING]:
        del sys.modules[name]
    sys.meta_path.insert(0, Blocked())
    for name in OF_OS:
        with contextlib.suppress(AttributeError):
            delattr(os, name)
    for name in OF_SIGNAL:
        with contextlib.suppress(AttributeError):
            delattr(signal, name)
    sys.modules["msvcrt"] = types.ModuleType("msvcrt")
    for place, added in (
        (subprocess, "CREATE_NEW_PROCESS_GROUP"),
        (subprocess, "CREATE_NO_WINDOW"),
        (signal, "SIGBREAK"),
    ):
        setattr(place, added, 1)
    for of_os in ("O_BINARY", "O_NOINHERIT"):
        setattr(os, of_os, 0)
    setattr(multiprocessing.connection, "PipeConnection", object)  # noqa: B010
    setattr(ctypes, "WinDLL", Library)  # noqa: B010
    sys.platform = "win32"


def main() -> None:
    listed = list(names())
    absent = set()
    for name in [name for name in listed if name not in ONLY_WINDOWS]:
        try:
            importlib.import_module(name)
        except ImportError:  # an extra that is not installed here
            absent.add(name)
    become_windows()
    importlib.import_module("codeagent_lsp")
    tried = [name for name in listed if name not in absent | ONLY_POSIX]
    for name in tried:
        try:
            importlib.import_module(name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
    print(f"tried {len(tried)}")


if __name__ == "__main__":
    main()
