"""The tools `git_diff`, `git_log` and `generate_commit`: changes since the last commit, and the history. Read only.

Not here: git as a command of the user or the model, which runs in the shadow (`run_cmd`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.tools.context import Complete, SmallComplete, ToolContext
from codeagent_lsp.tools.files.find_tools import may_show
from codeagent_lsp.tools.git.commits import Commit, history_of
from codeagent_lsp.tools.git.comparing import Changes, in_index, in_view
from codeagent_lsp.tools.git.git_output import quoted, show
from codeagent_lsp.tools.git.message import MAX_DIFF, relevance, write_message
from codeagent_lsp.tools.git.repository import Repository, repository_of
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

_STYLE = 10
_ROOM_LEFT = 200


class GitDiffParameters(Parameters):
    """The file or folder to compare, and the index instead of the files."""

    path: str | None = Field(None, description="File or folder")
    staged: bool = Field(False, description="Only what is in git's index")


class GitDiff(Tool[GitDiffParameters]):
    """Show the changes since the last commit, of the current files or of the index."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "git_diff",
        "Show what differs from the last commit, unsaved text and your own edits included.",
        "read",
        "git",
        path_parameters=("path",),
    )
    parameters = GitDiffParameters
    example: ClassVar[Example] = {"path": "src"}
    forms: ClassVar[CallForms] = CallForms(
        foreign=(
            ForeignTool("get_changed_files", ("Copilot",), {"repositoryPath": "path"}, ignored=("sourceControlState",)),
        )
    )
    output = list[str]

    async def run(self, arguments: GitDiffParameters, context: ToolContext) -> ToolOutput:
        """Return a list of the files, then their diffs, one repository after the other."""
        parts = []
        for place, repository in await _repositories(arguments.path, context):
            changes = await _changes(context, repository, place, arguments.staged, arguments.path)
            parts.append(changes)
        name, limit = context.view.roots.relative, context.settings.tools.max_output_bytes // 2
        texts = [await asyncio.to_thread(show, changes, name, limit - _ROOM_LEFT) for changes, _ in parts]
        hidden = [hidden for _, hidden in parts if hidden]
        text = "\n\n".join(filter(None, [*texts, *hidden]))
        return ToolOutput(text or "Nothing differs from the last commit.", [c.path for p, _ in parts for c in p.items])


class GitLogParameters(Parameters):
    """The number of commits and the path that they touch."""

    limit: int = Field(20, ge=1, le=200, description="Most commits")
    path: str | None = Field(None, description="Only commits that touch this file or folder")


class GitLog(Tool[GitLogParameters]):
    """List commits, newest first."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "git_log", "List the last commits: hash, date, author, subject.", "read", "git", path_parameters=("path",)
    )
    parameters = GitLogParameters
    example: ClassVar[Example] = {"limit": 5}
    output = list[str]

    async def run(self, arguments: GitLogParameters, context: ToolContext) -> ToolOutput:
        """Return one line per commit."""
        commits: list[Commit] = []
        for place, repository in await _repositories(arguments.path, context):
            commits += await history_of(repository, repository.inner(place), arguments.limit)
        lines = [f"{commit.name} {commit.date} {quoted(commit.author)}: {commit.subject}" for commit in commits]
        return ToolOutput("\n".join(lines) or "No commits yet.", [commit.name for commit in commits])


class GenerateCommitParameters(Parameters):
    """The changes to describe."""

    staged_only: bool = Field(False, description="Only what is in git's index")


class GenerateCommit(Tool[GenerateCommitParameters]):
    """Write a message for the changes; the user commits."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "generate_commit", "Write a commit message for the current changes. Does not commit.", "read", "git", None
    )
    parameters = GenerateCommitParameters
    example: ClassVar[Example] = {"staged_only": True}
    output = dict[str, str]

    async def run(self, arguments: GenerateCommitParameters, context: ToolContext) -> ToolOutput:
        """Return the message. ToolFailed if nothing has changed or the model gives no usable one."""
        small = context.get(SmallComplete)
        complete = small or context.need(Complete, "No model can be asked here, so no message can be written.")
        name = context.view.roots.relative
        for place, repository in await _repositories(None, context):
            changes, _ = await _changes(context, repository, place, arguments.staged_only, None)
            diff = await asyncio.to_thread(show, changes, name, MAX_DIFF, relevance)
            if changes.items:
                subjects = [commit.subject for commit in await history_of(repository, "", _STYLE)]
                message = await write_message(complete, diff, subjects)
                return ToolOutput(message, {"message": message})
        where = "git's index" if arguments.staged_only else "the files"
        message = f"Nothing in {where} differs from the last commit, so there is nothing to describe."
        raise ToolFailed(message, ErrorCode.NOT_FOUND)


async def _repositories(path: str | None, context: ToolContext) -> Sequence[tuple[str, Repository]]:
    """Return the given path with its repository, or each workspace folder that is in one.
    ToolFailed if there is none.
    """
    roots = context.view.roots
    if path is not None:
        place = roots.resolve(path)
        return [(place, await asyncio.to_thread(repository_of, place, roots))]
    if not roots.folders:
        raise ToolFailed("No workspace folder is open, so there is no repository.", ErrorCode.NOT_FOUND)
    found: list[tuple[str, Repository]] = []
    missing: list[ToolFailed] = []
    for folder in roots.folders:
        try:
            found.append((folder, await asyncio.to_thread(repository_of, folder, roots)))
        except ToolFailed as error:
            missing.append(error)
    if not found:
        raise missing[0]
    return found


async def _changes(
    context: ToolContext, repository: Repository, place: str, staged: bool, path: str | None
) -> tuple[Changes, str]:
    """Return the changes that the model may read, and a note that lists the others."""
    view = context.view
    found = await (in_index(repository, place) if staged else in_view(repository, view, place))
    asked = place if path is not None else None
    shown = tuple(item for item in found.items if may_show(context, item.path, asked))
    hidden = [quoted(view.roots.relative(item.path)) for item in found.items if item not in shown]
    note = f"(left out, as reading them needs the user's approval: {', '.join(hidden[:10])})" if hidden else ""
    return Changes(shown, found.untracked, found.more), note
