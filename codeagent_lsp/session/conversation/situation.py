"""What a capable model is told of the user's situation before a task: where they are in their editor, what is unsaved,
the state of git, and what the project is worked on with.

Short, and made anew for each request, in the latest message, so that what stands before it stays the same. Not here:
the task itself, the map, the files that the task names (`conversation.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from codeagent_lsp.errors import AgentError
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.tools.git.git_state import git_state
from codeagent_lsp.tools.git.repository import repository_of
from codeagent_lsp.tools.project_facts import facts_of
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.position import LineIndex

SECONDS = 2.5
"""How long the parts that have to be looked up may take together; one that is late is left out."""
MOST_NAMES = 8
FEW_CALLS = 30
"""A limit of model calls that is worth telling."""

HEAD = "Situation:"


async def situation(parts: RunParts, request: RunRequest, calls: int) -> str:
    """Return the situation as a few lines; `calls` is the limit of model calls."""
    view = parts.proposal.view
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
        parts.append(f"changed: {_some(state.changed)}" if state.changed else "nothing changed")
        parts += [f"untracked: {_some(state.untracked)}"] if state.untracked else []
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
    opened = await asyncio.to_thread(_opened, view)
    names = [f"{name(path)}{' (unsaved)' if unsaved else ''}" for path, unsaved in opened]
    lines += [f"Open files: {_some(names)}"] if names else []
    return "\n".join(lines)


def _opened(view: FileView) -> list[tuple[str, bool]]:
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


def _some(names: Sequence[str] | Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_NAMES} more" if len(listed) > MOST_NAMES else ""
    return ", ".join(listed[:MOST_NAMES]) + more
