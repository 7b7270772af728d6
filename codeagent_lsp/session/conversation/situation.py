# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

"""What a capable model is told of the user's situation before a task: where they are in their editor, what is unsaved,
the state of git, and what the project is worked on with.

Short, and made anew for each request, in the latest message, so that what stands before it stays the same. Not here:
the task itself, the map, the files that the task names (`conversation.py`).
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from codeagent_lsp.errors import AgentError, ToolFailed
from codeagent_lsp.foreign.git_tree import Entry, has_content
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.system import open_reading
from codeagent_lsp.tools.git.calls import Repository, call, repository_of
from codeagent_lsp.tools.testing.projects import facts_of
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.excerpts import join_names
from codeagent_lsp.workspace.text.position import LineIndex

SECONDS = 2.5
"""How long the parts that have to be looked up may take together; one that is late is left out."""
MOST_NAMES = 8
FEW_CALLS = 30
"""A limit of model calls that is worth telling."""

HEAD = "Situation:"
GIT_SECONDS = 2.0
MOST_BYTES = 16 * 1024 * 1024

MOST_READ = 32 * 1024 * 1024
"""Bytes of files that are read to see whether only their time has changed."""

# An entry of `git ls-files --stage --debug -z`: the hash, the name up to the NUL, then the stat data in the index.
_ENTRY = re.compile(
    rb"\d+ ([0-9a-f]+) \d\t([^\0]+)\0  ctime: \d+:\d+\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: \d+\n"
    rb"  uid: \d+\tgid: \d+\n  size: (\d+)\t[^\n]*\n"
)


async def situation(parts: RunParts, request: RunRequest, calls: int) -> str:
    """Return the situation as a few lines for the model: the date, git, the editor, the projects; parts that take more
    than 2.5 s are left out. `calls` is the limit of model calls.
    """
    view = parts.proposal.view
    # Each has its own time limit: a slow git must not cost what the editor knows.
    looked = await asyncio.gather(
        _in_time(partial(_git, view)),
        _in_time(partial(_editor, view, request)),
        _in_time(partial(asyncio.to_thread, _projects, view)),
    )
    git, editor, projects = looked
    left = f"You have {calls} model calls." if calls <= FEW_CALLS else ""
    lines = filter(None, (f"Today is {datetime.now():%Y-%m-%d}. {left}".strip(), editor, git, projects))
    return "\n".join((HEAD, *lines))


async def _in_time(look: Callable[[], Awaitable[str]]) -> str:
    try:
        async with asyncio.timeout(SECONDS):
            return await look()
    except (TimeoutError, AgentError, OSError):
        return ""


async def _git(view: FileView) -> str:
    """Return the branch and what differs from the last commit, for each repository around a workspace folder."""
    lines = []
    for folder in view.roots.folders:
        state = await git_state(repository_of(folder, view.roots))
        parts = [f"Git: branch {state.branch}" if state.branch else "Git: no commit yet"]
        parts.append(f"changed: {join_names(state.changed, MOST_NAMES)}" if state.changed else "nothing changed")
        parts += [f"untracked: {join_names(state.untracked, MOST_NAMES)}"] if state.untracked else []
        lines.append("; ".join(parts))
    return "\n".join(dict.fromkeys(lines))


async def _editor(view: FileView, request: RunRequest) -> str:
    """Return the current file with the cursor, and the open files, unsaved ones first."""
    lines = []
    target, name = request.target, view.roots.relative
    if target is not None:
        index = LineIndex.of(target.file.text)
        line = index.line_at(target.start) + 1
        what = "selection from line" if target.end > target.start else "cursor in line"
        lines.append(f"Current file: {name(target.file.path)}, {what} {line}")
    opened = await asyncio.to_thread(_open_files, view)
    names = [f"{name(path)}{' (unsaved)' if unsaved else ''}" for path, unsaved in opened]
    lines += [f"Open files: {join_names(names, MOST_NAMES)}"] if names else []
    return "\n".join(lines)


def _open_files(view: FileView) -> list[tuple[str, bool]]:
    """Return the open files of the workspace, and whether each has text that is not on the disk, those first."""
    found = []
    for path in view.open_paths():
        if view.roots.root_of(path) is None:
            continue
        try:
            now, saved = view.base(path), view.saved(path)
        except AgentError:
            continue
        found.append((path, now is not None and (saved is None or saved.text != now.text)))
    return sorted(found, key=lambda item: not item[1])


def _projects(view: FileView) -> str:
    return "\n".join(f"Project: {facts.told()}" for facts in facts_of(view)[:MOST_NAMES])


# What git knows of a repository at a glance: its branch, and which files differ from the last commit, by their names.


@dataclass(frozen=True, slots=True)
class GitState:
    """The state of a repository. `branch` is its name, a short commit if no branch is checked out, or '' before the
    first commit; `changed` and `untracked` are paths relative to the top of the repository.
    """

    branch: str = ""
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


async def git_state(repository: Repository) -> GitState:
    """Return the state of a repository. ToolFailed if its files cannot be listed, or if all of it takes longer than 2
    s; what else git fails to tell is empty.
    """
    try:
        async with asyncio.timeout(GIT_SECONDS):
            branch, entries, staged, untracked = await asyncio.gather(
                _branch(repository),
                # Not `git status`: it runs programs that the repository's configuration names, such as filters and
                # fsmonitor.
                call(repository, "ls-files", "--stage", "--debug", "-z", limit=MOST_BYTES),
                _or_nothing(repository, "diff-index", "--cached", "--name-only", "-z", "HEAD"),
                _or_nothing(repository, "ls-files", "--others", "--exclude-standard", "--directory", "-z"),
            )
            changed = await asyncio.to_thread(_changed_paths, repository.top, entries)
    except TimeoutError:
        raise ToolFailed(f"git took longer than {GIT_SECONDS:g} s.") from None
    # A file that is both staged and changed again is named once.
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


def _changed_paths(top: str, entries: bytes) -> list[str]:
    """Return the paths of the files that are not as in the index, or are gone. Where the time alone differs, as in a
    copy or after a change was taken back, the content decides, for 32 MiB at most.
    """
    found: list[str] = []
    left = MOST_READ
    for match in _ENTRY.finditer(entries):
        path = os.fsdecode(match[2])
        place = os.path.join(top, path)
        try:
            now = os.lstat(place)
            known = Entry(match[1].decode(), int(match[5]), int(match[3]) * 1_000_000_000 + int(match[4]), is_file=True)
            # The index keeps the lower 32 bits of the size only.
            same_size = (now.st_size & 0xFFFFFFFF) == known.size
            if same_size and now.st_mtime_ns != known.mtime and stat.S_ISREG(now.st_mode) and now.st_size <= left:
                left -= now.st_size
                with os.fdopen(open_reading(place), "rb") as file:
                    same = has_content(known, file.read(now.st_size + 1))
            else:
                same = same_size and now.st_mtime_ns == known.mtime
        except OSError:
            same = False
        if not same:
            found.append(path)
    return found


def _names(output: bytes) -> tuple[str, ...]:
    return tuple(os.fsdecode(name) for name in output.split(b"\0") if name)
