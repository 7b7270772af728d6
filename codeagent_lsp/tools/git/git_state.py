"""What git knows of a repository at a glance: its branch, and which files differ from the last commit, by their names.

No content of the work tree is read, by git or by us, as that would run the filters that a repository can configure: a
file counts as changed when its size or time is not that in git's index. Not here: differences (`comparing.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.git.calls import call
from codeagent_lsp.tools.git.repository import Repository

SECONDS = 2.0
MOST_BYTES = 16 * 1024 * 1024

_ENTRY = re.compile(
    rb"([^\0]+)\0  ctime: \d+:\d+\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: \d+\n"
    rb"  uid: \d+\tgid: \d+\n  size: (\d+)\t[^\n]*\n"
)


@dataclass(frozen=True, slots=True)
class GitState:
    """A repository at a glance. `branch` is a short commit where none is checked out, '' before the first commit;
    `changed` and `untracked` are paths relative to the top of the repository.
    """

    branch: str = ""
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


async def git_state(repository: Repository) -> GitState:
    """Return the state of a repository. ToolFailed if git fails, or takes longer than 2 s."""
    try:
        async with asyncio.timeout(SECONDS):
            branch, entries, staged, untracked = await asyncio.gather(
                _branch(repository),
                call(repository, "ls-files", "--debug", "-z", limit=MOST_BYTES),
                _or_nothing(repository, "diff-index", "--cached", "--name-only", "-z", "HEAD"),
                _or_nothing(repository, "ls-files", "--others", "--exclude-standard", "--directory", "-z"),
            )
            changed = await asyncio.to_thread(_changed, repository.top, entries)
    except TimeoutError:
        raise ToolFailed(f"git took longer than {SECONDS:g} s.") from None
    names = dict.fromkeys((*_names(staged), *changed))
    return GitState(branch, tuple(names), _names(untracked))


async def _branch(repository: Repository) -> str:
    named = (await _or_nothing(repository, "symbolic-ref", "--short", "-q", "HEAD")).decode("utf-8", "replace").strip()
    return named or (await _or_nothing(repository, "rev-parse", "--short", "HEAD")).decode("utf-8", "replace").strip()


async def _or_nothing(repository: Repository, *arguments: str) -> bytes:
    try:
        return await call(repository, *arguments, limit=MOST_BYTES)
    except ToolFailed:
        return b""


def _changed(top: str, entries: bytes) -> list[str]:
    """Return the paths of the files whose size or time is not that of their entry in the index, or that are gone."""
    found: list[str] = []
    for match in _ENTRY.finditer(entries):
        path = os.fsdecode(match[1])
        try:
            now = os.lstat(os.path.join(top, path))
        except OSError:
            found.append(path)
            continue
        known = int(match[2]) * 1_000_000_000 + int(match[3])
        if (now.st_size & 0xFFFFFFFF) != int(match[4]) or now.st_mtime_ns != known:
            found.append(path)
    return found


def _names(output: bytes) -> tuple[str, ...]:
    return tuple(os.fsdecode(name) for name in output.split(b"\0") if name)
