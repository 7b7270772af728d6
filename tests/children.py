"""The child processes of the test process, and what runs on this machine, read from /proc: no program is needed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def children() -> set[str]:
    """Their ids, ended ones that nobody waited for included. Others may have children too: compare with before."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    found: set[str] = set()
    for path in lists:
        with suppress(OSError):  # a thread that ended meanwhile
            found.update(path.read_text().split())
    return found


def command_lines(*, parent: int | None = None) -> dict[int, str]:
    """Every living process, or every living child of `parent`: its id and its command line, joined by blanks."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            state, of = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if state != "Z" and parent in {None, int(of)}:
                found[int(folder.name)] = command
    return found
