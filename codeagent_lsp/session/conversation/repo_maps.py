"""Adds the repo map to the prompts of one run: an overview in the system prompt, and before each task a map for it;
before a question also the code that may answer it.

The overview stays as it was in the session's first run, byte for byte, so that prompt caches hold; files added or
removed since are listed in the latest message. Not here: making maps (`index/`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from codeagent_lsp.agent.prompt import map_changes, overview_part, pieces_part, task_map_part
from codeagent_lsp.errors import AgentError
from codeagent_lsp.session.request import RunRequest

if TYPE_CHECKING:
    from codeagent_lsp.index.repomap import RepoMap
    from codeagent_lsp.session.run_index import RunIndex

# The overview would take what the task's own files need.
SMALL_WINDOW = 8192
MOST_TOKENS = 4096
ONE_MAP = 1300
"""Tokens of the one map of a capable model."""
WINDOW_SHARE = 12  # the window is this many times as large as its maps
OVERVIEW_SHARE = 4
MOST_PIECES = 10  # before a question, in as many tokens as the maps have
LEAST_SCORE = 0.4  # of the best piece, for another one to be shown
LEAST_TOKENS = 100  # a smaller map is not worth its room
MOST_CHANGES = 20

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Overviews:
    """The overviews sent in one session, by their budget in tokens. `known` are the files named there or in notes,
    relative paths.
    """

    texts: dict[int, str] = field(default_factory=dict)
    known: dict[int, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets in tokens for the overview in the system prompt, for the map of each task, and for the code before a
    question; 0 means none. With `lines` the map of a task has line numbers.
    """

    overview: int
    task: int
    pieces: int = 0
    lines: bool = False


def budgets(setting: int | Literal["auto"], window: int, *, capable: bool = False) -> Budgets:
    """Return the budgets of the maps for a window in tokens. A small window gets no overview; `setting` is the budget
    of both together, or `auto`. A capable model gets one map, that of the task, and looks into files itself. Budgets
    below 100 tokens become 0.
    """
    if capable:
        return Budgets(0, ONE_MAP if setting == "auto" else min(setting, window // 4), lines=True)
    whole = min(MOST_TOKENS, window // WINDOW_SHARE) if setting == "auto" else min(setting, window // 4)
    overview = 0 if window <= SMALL_WINDOW else whole // OVERVIEW_SHARE
    shares = (tokens if tokens >= LEAST_TOKENS else 0 for tokens in (overview, whole - overview, whole))
    return Budgets(next(shares), next(shares), next(shares))


class RepoMaps:
    """The repo maps in the prompts of one run. There are none if there is no index or if it fails."""

    def __init__(self, index: RunIndex | None, told: Overviews, tokens: Budgets) -> None:
        self._index = index
        self._told = told
        self._tokens = tokens

    async def overview(self) -> str:
        """Return the system prompt's overview, the same for a whole session; with its heading; '' for none, also if the
        index fails. Waits a few seconds at most.
        """
        budget = self._tokens.overview
        if budget not in self._told.texts:
            made = await self._overview()
            self._told.texts.setdefault(budget, overview_part(made.text) if made is not None and made.text else "")
            self._told.known.setdefault(budget, frozenset(made.shown if made is not None else ()))
        return self._told.texts[budget]

    async def before(self, request: RunRequest, focused: Iterable[str], edited: Iterable[str] = ()) -> str:
        """Return the text before a task: the changes to the overview, and the task's own map; '' for none.

        `focused` are the files in focus; `edited` the files changed by the session's runs, once for each run; all
        relative to the workspace. Waits a few seconds at most for the index.
        """
        task = "\n".join((request.instruction, *request.diagnostics))
        parts = [await self._changes(), await self.for_task(task, tuple(focused), Counter(edited))]
        if request.kind == "ask" and self._tokens.pieces:
            parts.append(await self._pieces(request.instruction))
        return "\n\n".join(filter(None, parts))

    async def for_task(
        self, text: str, focused: tuple[str, ...] = (), recent: Mapping[str, float] | None = None
    ) -> str:
        """Return the map for a task in these words, with its heading; '' for none, also if the index fails. `focused`
        are files by path relative to the workspace, `recent` counts for such a path the runs that changed it.
        """
        if self._index is None or not self._tokens.task:
            return ""
        from codeagent_lsp.index.rank import Task  # late: the parts of an index are heavy

        task = Task(text, focused, recent=recent or {})
        asking = task.question()
        if not asking.words and not asking.names and not focused:
            return ""
        made = await unless_failed(self._index.task_map(task, self._tokens.task, lines=self._tokens.lines))
        return task_map_part(made.text) if made is not None and made.text else ""

    async def _pieces(self, question: str) -> str:
        """Return the code that may answer a question; '' for none. Files that the question names are shown anyway."""
        if self._index is None or not self._tokens.pieces:
            return ""
        found = await unless_failed(self._index.found(question, MOST_PIECES)) or ()
        return pieces_part(
            (
                (each.path, each.line_start, each.line_end, each.text)
                for each in found
                if each.score >= LEAST_SCORE * found[0].score and each.path.rpartition("/")[2] not in question
            ),
            self._tokens.pieces,
        )

    async def _overview(self) -> RepoMap | None:
        index, budget = self._index, self._tokens.overview
        return await unless_failed(index.overview(budget)) if index is not None and budget else None

    async def _changes(self) -> str:
        budget = self._tokens.overview
        if self._index is None or not self._told.texts.get(budget):
            return ""
        now, view = await self._overview(), await unless_failed(self._index.view())
        if now is None or view is None:
            return ""
        known, shown, files = self._told.known[budget], frozenset(now.shown), await asyncio.to_thread(view.files)
        gone, new = sorted(path for path in known if path not in files), sorted(shown - known)
        self._told.known[budget] = known.union(shown).difference(gone)
        return map_changes(new[:MOST_CHANGES], gone[:MOST_CHANGES])


async def unless_failed(work: Awaitable[T]) -> T | None:
    """Return the awaited result; None for an AgentError, as if there is no index (yet). Any other error is logged and
    gives None, too, since a run works without a map.
    """
    try:
        return await work
    except AgentError:
        return None
    except Exception:
        logger.exception("the repo map failed")
        return None
