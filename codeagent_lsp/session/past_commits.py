"""Reads the past commits of the repositories around the workspace, for the ranking of files; nothing of them is shown.

Not here: what they count (`index/commits.py`).
"""

from __future__ import annotations

import asyncio

from codeagent_lsp.errors import AgentError
from codeagent_lsp.index.commits import LOG, PastCommit, PastCommits, commits_of
from codeagent_lsp.tools.git.calls import call, repository_of
from codeagent_lsp.workspace.files.paths import Roots

SECONDS = 1.5
_MOST_BYTES = 4 * 1024 * 1024


async def past_commits(roots: Roots) -> PastCommits:
    """Return the last 2,000 commits of each workspace folder; none of one that has no repository, or whose git takes
    longer than 1.5 s.
    """
    found = await asyncio.gather(*(_of_folder(folder, roots) for folder in roots.folders))
    return await asyncio.to_thread(PastCommits, [commit for commits in found for commit in commits])


async def _of_folder(folder: str, roots: Roots) -> list[PastCommit]:
    label = f"{roots.relative(folder)}/" if len(roots.folders) > 1 else ""
    try:
        repository = repository_of(folder, roots)
        inner = repository.inner(folder)
        # A folder of a large repository: the commits that change something in it, with paths as seen from it.
        below = (f"--relative={inner}", "--", inner) if inner else ()
        async with asyncio.timeout(SECONDS):
            log = await call(repository, *LOG, *below, limit=_MOST_BYTES)
    except (AgentError, OSError, TimeoutError):
        return []
    return commits_of(log.decode("utf-8", "replace"), label)
