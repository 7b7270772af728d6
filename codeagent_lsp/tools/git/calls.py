"""Execution of git to read a repository such that nothing in the repository can run a program.

Only commands that read names and raw objects are used: none reads the contents of the work tree, as that would run the
filters that a repository can configure. Other settings that could start programs are switched off one by one, and
nothing is fetched. Not here: git as the user's command, which runs in the shadow like any other.
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.workspace.files.git_folders import belongs, common_of, data_of, top_of
from codeagent_lsp.workspace.files.paths import Roots, relative_name, within
from codeagent_lsp.workspace.process_group import end_group, read_head, reap, start_group

SECONDS = 20.0
MAX_BYTES = 64 * 1024 * 1024
_MAX_COMPLAINT = 4096
_CHUNK = 1 << 16

_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.alternateRefsCommand=false",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "i18n.logOutputEncoding=UTF-8",
)
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "LC_ALL": "C",
}
# HOME, as git heeds `safe.directory` only in the user's own settings.
_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")

_PARTS = ("HEAD", "config", "index", "objects", "packed-refs", "refs")


async def call(repository: Repository, *arguments: str, stdin: bytes = b"", limit: int = MAX_BYTES) -> bytes:
    """Return the standard output of `git ARGUMENTS`, run at the top of `repository` with the input `stdin`. Cancelling
    ends it.

    ToolFailed if there is no git, it takes longer than 20 s, prints more than `limit` bytes, or fails.
    """
    command = (_program(), "-C", repository.top, f"--work-tree={repository.top}", "--no-pager", *_options(), *arguments)
    try:
        async with asyncio.timeout(SECONDS):
            code, output, complaint = await _run(command, environment(repository, os.environ), stdin, limit)
    except TimeoutError:
        raise ToolFailed(f"git did not answer within {SECONDS:g} s.", ErrorCode.TIMEOUT) from None
    if code != 0:
        raise ToolFailed(_reason(complaint.decode("utf-8", "replace"), repository))
    return output


def environment(repository: Repository, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the complete environment of a call: a few of the `inherited` variables, none of which controls git, and
    ours, which keep git from asking and from looking above the repository.
    """
    kept = {name: inherited[name] for name in _KEPT if name in inherited}
    return {**kept, **_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(Path(repository.top).parent)}


def _options() -> list[str]:
    return [word for setting in _SETTINGS for word in ("-c", setting)]


def git_program() -> str | None:
    """Return the path of git by PATH, ignoring relative entries, which could be the workspace's; None if missing."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(folder).is_absolute()]
    return shutil.which("git", path=os.pathsep.join(folders))


def _program() -> str:
    if (program := git_program()) is None:
        raise ToolFailed("git is not installed here, or PATH does not lead to it.", ErrorCode.NOT_FOUND)
    return program


async def _run(
    command: tuple[str, ...], variables: Mapping[str, str], stdin: bytes, limit: int
) -> tuple[int, bytes, bytes]:
    pipe = asyncio.subprocess.PIPE
    process = await start_group(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    # Beside the reading: git answers while it is asked, and both pipes could be full.
    feeding = asyncio.ensure_future(_feed(process.stdin, stdin))
    complaining = asyncio.ensure_future(read_head(process.stderr, _MAX_COMPLAINT))
    try:
        output = await _collect(process.stdout, limit)
        return await process.wait(), output, await complaining
    finally:
        if process.returncode is None:
            end_group(process)
        for task in (feeding, complaining):
            task.cancel()
        await asyncio.gather(feeding, complaining, return_exceptions=True)
        await asyncio.shield(reap(process))


async def _feed(sink: asyncio.StreamWriter, data: bytes) -> None:
    try:
        sink.write(data)
        await sink.drain()
        sink.close()
    except ConnectionError:  # it has ended, and says why
        pass


async def _collect(source: asyncio.StreamReader, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := await source.read(_CHUNK):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise ToolFailed(
                f"git prints more than {limit:,} bytes here. Name a smaller path.", ErrorCode.INVALID_PARAM
            )
    return b"".join(pieces)


def _reason(complaint: str, repository: Repository) -> str:
    """Return an explanation of git's error message, or git's own words."""
    top = repository.top
    if "dubious ownership" in complaint:
        return (
            f"The repository at {top} belongs to another user, so git does not read it. The user can allow it with:"
            f" git config --global --add safe.directory '{top}'"
        )
    if "not a git repository" in complaint:
        return f"{top} has a .git, but git does not take it for a repository."
    if "lazy fetch" in complaint or "promisor remote" in complaint or "bad object" in complaint:
        return f"Objects of the repository at {top} are missing (a partial clone?). Nothing is fetched from here."
    lines = [line for line in complaint.splitlines() if line.startswith(("fatal:", "error:"))] or complaint.splitlines()
    return f"git failed: {lines[0][:300] if lines else 'no reason given'}"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository by the folder that holds its `.git`, an absolute real path."""

    top: str

    def inner(self, path: str) -> str:
        """Return `path` relative to the top, as git names it; '' for the top itself."""
        name = relative_name(path, self.top)
        return "" if name == "." else name


def repository_of(path: str, roots: Roots) -> Repository:
    """Return the innermost repository around `path` (absolute, real). ToolFailed if there is none, or it keeps its data
    outside of the workspace. Blocks.
    """
    top = top_of(path)
    if top is None:
        raise ToolFailed(f"{roots.relative(path)} is not in a git repository.", ErrorCode.NOT_FOUND)
    if not _is_at_home(top, roots.root_of(path) or top):
        raise ToolFailed(
            f"The repository at {top} keeps its data outside the workspace, in a place that does not belong to it."
            f" It is not read. The user can note that it does: git -C '{top}' config core.worktree '{top}'"
        )
    return Repository(top)


def _is_at_home(top: str, root: str) -> bool:
    """Return whether the data is below the top or the workspace folder, or provably belongs to this top.

    A `.git` file can point to any repository of the user; a real worktree or submodule is known to the repository that
    it belongs to.
    """
    data = data_of(top)
    if data is None:
        return False
    homes = (os.path.realpath(top), os.path.realpath(root))
    if not within(data, homes):
        return belongs(data, top)
    shared = common_of(data)
    if not within(shared, homes):
        return False
    parts = (os.path.realpath(os.path.join(folder, name)) for folder in (data, shared) for name in _PARTS)
    return all(within(part, homes) for part in parts)
