"""Schedules the reading of sessions for memory: after a session or in a long pause after a run, never during one.

There is at most one background task. A new run cancels it, and it is tried again later; a server that stops waits
briefly for it and stores which sessions are left. Not here: the question to the model (`agent/memory.py`), the file
(`memory_store.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from codeagent_lsp import events
from codeagent_lsp.agent import memory
from codeagent_lsp.agent.completion import complete
from codeagent_lsp.agent.limits import window_of
from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.memory.memory_store import MemoryStore
from codeagent_lsp.session.store import SessionStore

if TYPE_CHECKING:
    from codeagent_lsp.records.sanitizer import Sanitizer

logger = logging.getLogger(__name__)

AFTER_RUN_SECONDS = 60.0
AFTER_SESSION_SECONDS = 1.0
WORK_SECONDS = 120.0
LEAVE_SECONDS = 0.5
REPLY_TOKENS = 600


class Remembering:
    """Extracts memory from the sessions of one workspace in the background, `after_run` or `after_session` seconds
    after a run or a session ended.
    """

    def __init__(
        self,
        store: MemoryStore,
        sessions: SessionStore,
        open_model: Callable[[], Awaitable[Model]],
        sanitizer: Callable[[], Sanitizer] | None = None,
        after_run: float = AFTER_RUN_SECONDS,
        after_session: float = AFTER_SESSION_SECONDS,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._open_model = open_model
        self._sanitizer = sanitizer
        self._after_run = after_run
        self._after_session = after_session
        self._wanted: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._working = False

    def observe(self, event: events.Event) -> None:
        """Cancel the reading when a run begins, which needs the model and its cache; schedule it when a run ends."""
        if isinstance(event, events.RunStarted | events.ResponseStart):
            self._stop()
        elif isinstance(event, events.RunCompleted):
            self._wanted[event.session_id] = None
            self._rest(self._after_run)

    def session_ended(self) -> None:
        """Schedule the reading, because another session has become the current one."""
        self._rest(self._after_session)

    async def close(self) -> None:
        """Stop within about half a second; sessions not read by then are stored for the next server."""
        # One that only waits for its time is not waited for.
        if self._task is not None and self._working:
            await asyncio.wait((self._task,), timeout=LEAVE_SECONDS)
        self._stop()
        if self._wanted and self._store.enabled():
            await asyncio.to_thread(self._store.wait, tuple(self._wanted))

    def _rest(self, seconds: float) -> None:
        self._stop()
        if self._store.enabled():
            self._task = asyncio.get_running_loop().create_task(self._after(seconds), name="memory")

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task, self._working = None, False

    async def _after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._working = True
        waiting = await asyncio.to_thread(self._store.waiting)
        try:
            async with asyncio.timeout(WORK_SECONDS):
                await self._read_all(dict.fromkeys((*self._wanted, *waiting)))
        except TimeoutError:
            return
        except CodeAgentError as error:  # such as no model: tried again after the next pause
            logger.info("nothing was remembered: %s", error)
        except Exception:  # nothing awaits a background task
            logger.exception("remembering failed")

    async def _read_all(self, session_ids: Iterable[str]) -> None:
        for session_id in session_ids:
            await self._read(session_id)
            # After the reading: one that was cancelled in between is read again, from the same place.
            self._wanted.pop(session_id, None)

    async def _read(self, session_id: str) -> None:
        """Read the new events of one session, and store what is worth remembering."""
        seen = await asyncio.to_thread(self._store.read_up_to, session_id)
        try:
            records = await asyncio.to_thread(self._sessions.load, session_id)
        except CodeAgentError:  # deleted meanwhile
            # Else it would wait for ever.
            await asyncio.to_thread(self._store.done, session_id, seen)
            return
        last = max((seq for record in records if isinstance(seq := record.get("seq"), int)), default=0)
        said = memory.spoken(record for record in records if _seq(record) > seen)
        if any(who == "assistant" for who, _ in said):
            entries = await self._distilled(session_id, said)
            await asyncio.to_thread(self._store.add, entries)
        await asyncio.to_thread(self._store.done, session_id, last)

    async def _distilled(self, session_id: str, said: list[tuple[str, str]]) -> list[memory.MemoryEntry]:
        model = await self._open_model()
        window = window_of(model.info)
        # Once more, though the file holds masked text: a memory goes into the prompts of all later sessions.
        cleaner = self._sanitizer() if self._sanitizer else _own_sanitizer()
        known = await asyncio.to_thread(self._store.entries)
        text = memory.conversation([(who, cleaner.text(words)) for who, words in said], known, window)
        reply = await complete(model, memory.INSTRUCTIONS, text, lambda event: None, min(REPLY_TOKENS, window // 4))
        today = datetime.now(UTC).date().isoformat()
        # An entry in which a secret is found is dropped, not masked: a mark is worth nothing to a later session.
        return memory.parse(reply, session_id, today, lambda words: cleaner.text(words) == words)


def _seq(record: object) -> int:
    found = record.get("seq") if isinstance(record, dict) else 0
    return found if isinstance(found, int) else 0


def _own_sanitizer() -> Sanitizer:
    from codeagent_lsp.records.sanitizer import Sanitizer  # late: it is heavy, and an idle server does without it

    return Sanitizer(identities=False, homes=())
