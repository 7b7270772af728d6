"""The commits that lead to HEAD, newest first, as values. Not here: what they changed."""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.tools.git.calls import call
from codeagent_lsp.tools.git.repository import Repository
from codeagent_lsp.tools.git.snapshot import has_commits

_MAX_SUBJECT = 200
_FORMAT = "%h%x1f%as%x1f%an%x1f%s"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: abbreviated hash, author date (YYYY-MM-DD), author, first line of the message."""

    name: str
    date: str
    author: str
    subject: str


async def history_of(repository: Repository, inner: str, limit: int) -> tuple[Commit, ...]:
    """Return the last `limit` commits that touch `inner` ('' for all); none before the first commit."""
    if not await has_commits(repository):
        return ()
    only = ("--", inner) if inner else ()
    output = await call(
        repository,
        "rev-list",
        f"--max-count={limit}",
        "--no-commit-header",
        f"--format=tformat:{_FORMAT}",
        "HEAD",
        *only,
    )
    rows = (line.split("\x1f", 3) for line in output.decode("utf-8", "replace").split("\n"))
    return tuple(Commit(row[0], row[1], _plain(row[2]), _plain(row[3])) for row in rows if len(row) == 4)


def _plain(text: str) -> str:
    """Return the text cut and with unprintable characters, which could control a terminal, replaced by blanks."""
    return "".join(char if char.isprintable() else " " for char in text)[:_MAX_SUBJECT]
