"""Finds runs of the workspace by their ids, also those whose session is not loaded, as lists of runs name them.

Not here: the list (`queue_commands.py`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from codeagent_lsp.errors import SessionError

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.session.run import Run


async def recorded_run(backend: Backend, run_id: str) -> Run:
    """Return a run; its session is loaded for it if need be. SessionError if there is none, or another process works
    with its session.
    """
    try:
        return backend.manager.runs.get(run_id)
    except SessionError:
        await load_session_of(backend, run_id)
        return backend.manager.runs.get(run_id)


async def load_session_of(backend: Backend, run_id: str) -> None:
    """Load the session of a run, or of a task that waits to be one, if it is recorded and not loaded. SessionError if
    another process works with it.
    """
    await backend.ready()  # what is done with it is stored
    session_id = await asyncio.to_thread(backend.kept.history.session_of, run_id)
    if session_id is not None:
        backend.manager.resume(session_id, enter=False)
