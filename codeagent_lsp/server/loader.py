"""Loads the heavy part of the server once, after `initialize` has been answered. Not here: building it (`app.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.server.front import Front

if TYPE_CHECKING:
    from lsprotocol import types

    from codeagent_lsp.server.actions import Waiting
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.commands.commands import Commands
    from codeagent_lsp.server.inline import Inline
    from codeagent_lsp.workspace.text.document import Document


@dataclass(frozen=True, slots=True)
class Loaded:
    """The heavy parts of one server, made once and kept until its end: the backend, and over it the commands and the
    inline completions.
    """

    backend: Backend
    commands: Commands
    inline: Inline


Load = Callable[[Front], Awaitable[Loaded]]


class Loader:
    """Calls `load` when the heavy part is first needed, and only once. Most methods answer at once, from memory, with
    nothing before it is loaded.
    """

    def __init__(self, front: Front, load: Load) -> None:
        self._front = front
        self._load = load
        self._loading: asyncio.Task[Loaded] | None = None

    async def loaded(self) -> Loaded:
        """Wait for the heavy part and return it; loading begins with the first call. What `load` raises is raised to
        all callers; a cancelled call does not stop the loading.
        """
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load(self._front))
        # A request that is cancelled must not cancel the loading for all others.
        return await asyncio.shield(self._loading)

    async def backend(self) -> Backend:
        """Wait for the heavy part, whose loading the first call starts, and return the backend."""
        return (await self.loaded()).backend

    def ready(self) -> Backend | None:
        """Return the backend if it is loaded, for handlers that must answer at once; else None."""
        there = self._there()
        return there.backend if there is not None else None

    def commands(self) -> Commands | None:
        """Return the commands if they are loaded, for handlers that must answer at once; else None."""
        there = self._there()
        return there.commands if there is not None else None

    def waiting(self) -> tuple[Waiting, ...]:
        """Return an item for everything that waits for the user, for lenses and actions; () before the backend is
        loaded.
        """
        there = self._there()
        if there is None:
            return ()
        prompts = there.commands.prompting.documents.waiting(self._front.language())
        return (
            *prompts,
            *there.backend.waiting(),
            *there.inline.next_edits.waiting(),
            *there.inline.finish_changes.waiting(),
        )

    def at_problems(self, document: Document, problems: Sequence[types.Diagnostic]) -> tuple[Waiting, ...]:
        """Return the offers at errors that the editor shows in a document; () before the backend is loaded."""
        there = self._there()
        return there.inline.finish_changes.at_problems(document, problems) if there is not None else ()

    def parts(self, uri: str) -> tuple[Waiting, ...]:
        """Return an offer for each hunk and file in a document that can be decided about. () for clients with events,
        which show these in their own way, unless they want the lenses.
        """
        there, policy = self._there(), self._front.client.policy
        return there.backend.reviews.parts(uri) if there is not None and (policy.hunks or not policy.events) else ()

    def is_review(self, uri: str) -> bool:
        """Return whether a document is the diff of a run's changes; False before the backend is loaded."""
        there = self._there()
        return there is not None and there.backend.reviews.run_of(uri) is not None

    def own_commands(self) -> tuple[tuple[str, str], ...]:
        """Return (name, description) of the users' own commands as last read; () before the backend is loaded."""
        there = self._there()
        return there.commands.menu.offered() if there is not None else ()

    async def close(self) -> None:
        """Close the heavy part if it was loaded, and wait for that; nothing otherwise."""
        there = self._there()
        if there is not None:
            there.commands.close()
            await there.inline.close()
            await there.backend.close()

    def _there(self) -> Loaded | None:
        task = self._loading
        done = task is not None and task.done() and not task.cancelled() and task.exception() is None
        return task.result() if task is not None and done else None
