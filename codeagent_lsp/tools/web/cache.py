"""The cache of web results, and its use by the web tools: a small SQLite file of this program, or a Redis server.

A broken cache is no failure: it is reported once, and the network used instead. Keys are hashes, so that queries are
not stored. Not here: what is worth keeping (`web_tools.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from codeagent_lsp.state import json_object, make_private, workspace_state
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import ToolOutput

MAX_ENTRY = 1 << 20
MAX_TOTAL = 32 << 20

_REDIS_SECONDS = 2.0
_BUSY_SECONDS = 2.0
_PREFIX = "codeagent:web:"
_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT NOT NULL, until REAL NOT NULL)"

_CACHE = "web.sqlite"


class CacheOff(Exception):
    """Raised for a cache that cannot be used; the message is the reason, without the cache's address."""


class Cache(Protocol):
    """Port: texts by key, each with a time to live in seconds. Both methods raise CacheOff."""

    async def get(self, key: str) -> str | None:
        """Return the text of a key; None if there is none, or its time is over."""

    async def put(self, key: str, value: str, seconds: float) -> None:
        """Store a text under a key for so many seconds, in place of an earlier one. One that is too large for the cache
        is not stored. CacheOff if the cache cannot be used.
        """


def key_of(*parts: object) -> str:
    """Return the cache key of a request: the SHA-256 hash, in hexadecimal, of its parts as JSON."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def cache_of(url: str | None, file: Path) -> Cache:
    """Return the cache of the settings: Redis for a URL, else the SQLite file `file`. Nothing is opened."""
    return RedisCache(url) if url else SqliteCache(file)


class SqliteCache:
    """A cache file, opened for each request only; it may be used by several processes. Beyond `total` bytes the entries
    that expire first are deleted.
    """

    def __init__(self, file: Path, *, total: int = MAX_TOTAL, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._total = total
        self._clock = clock

    async def get(self, key: str) -> str | None:
        """Return the value; None if there is none or it has expired. CacheOff if the file cannot be used."""
        return await asyncio.to_thread(self._safely, lambda base: self._read(base, key))

    async def put(self, key: str, value: str, seconds: float) -> None:
        """Store a value for so many seconds, unless it is larger than 1 MiB, in a thread. CacheOff if the file cannot
        be used.
        """
        if len(value.encode("utf-8", "replace")) <= MAX_ENTRY:
            await asyncio.to_thread(self._safely, lambda base: self._write(base, key, value, seconds))

    def _safely(self, work: Callable[[sqlite3.Connection], str | None]) -> str | None:
        try:
            try:
                return self._done(work)
            except sqlite3.OperationalError:  # locked, full or read-only: another try changes nothing
                raise
            except sqlite3.DatabaseError:  # damaged: it is only a cache
                self._file.unlink(missing_ok=True)
                return self._done(work)
        except (OSError, sqlite3.Error) as error:
            raise CacheOff(str(error)) from error

    def _done(self, work: Callable[[sqlite3.Connection], str | None]) -> str | None:
        make_private(self._file.parent)
        # SQLite would create it readable for others.
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(self._file, timeout=_BUSY_SECONDS)) as base, base:
            base.execute(_SCHEMA)
            return work(base)

    def _read(self, base: sqlite3.Connection, key: str) -> str | None:
        row = base.execute("SELECT value FROM entries WHERE key = ? AND until > ?", (key, self._clock())).fetchone()
        return None if row is None else str(row[0])

    def _write(self, base: sqlite3.Connection, key: str, value: str, seconds: float) -> None:
        now = self._clock()
        base.execute("DELETE FROM entries WHERE until <= ?", (now,))
        base.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (key, value, now + seconds))
        # As BLOB, as the length of a TEXT is in characters.
        sizes = base.execute("SELECT key, length(CAST(value AS BLOB)) FROM entries ORDER BY until").fetchall()
        over = sum(size for _, size in sizes) - self._total
        for old, size in sizes:
            if over <= 0:
                break
            base.execute("DELETE FROM entries WHERE key = ?", (old,))
            over -= size


class RedisCache:
    """A Redis server of the user, connected for each request; it limits its own size."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def get(self, key: str) -> str | None:
        """Return the value; None if there is none. CacheOff if the server does not answer within 2 s."""
        return await self._ask(lambda server: server.get(_PREFIX + key))

    async def put(self, key: str, value: str, seconds: float) -> None:
        """Store a value for so many seconds, at least one, unless it is larger than 1 MiB. CacheOff if the server does
        not answer within 2 s.
        """
        if len(value.encode("utf-8", "replace")) <= MAX_ENTRY:
            await self._ask(lambda server: server.set(_PREFIX + key, value, ex=max(1, int(seconds))))

    async def _ask(self, question: Callable[[Any], Awaitable[Any]]) -> str | None:
        try:
            from redis.asyncio import Redis  # only here: an optional extra
            from redis.exceptions import RedisError  # as above
        except ImportError:
            raise CacheOff("the library is missing: pip install 'codeagent-lsp[web]'") from None
        try:
            async with (
                asyncio.timeout(_REDIS_SECONDS),
                Redis.from_url(self._url, decode_responses=True, socket_timeout=_REDIS_SECONDS) as server,
            ):
                answer = await question(server)
        except (RedisError, OSError, ValueError) as error:  # TimeoutError too; its words may hold the address
            raise CacheOff(type(error).__name__) from error
        return answer if isinstance(answer, str) else None


class CachedOutput:
    """The cache entry of one tool result, by its key; if the cache fails, that is reported once and nothing is
    cached.
    """

    def __init__(self, context: ToolContext, key: str) -> None:
        self._context = context
        self._key = key
        self._on = True
        folder = workspace_state(context.view.roots.folders)
        self._cache = cache_of(context.settings.web.cache_url, folder / _CACHE)

    async def get(self) -> ToolOutput | None:
        """Return the cached result, its text with its age in minutes; None if there is none or the cache fails."""
        try:
            value = await self._cache.get(self._key)
        except CacheOff as error:
            self._tell(error)
            return None
        known = json_object(value or "null") or {}
        if not isinstance(known.get("text"), str) or not isinstance(known.get("at"), int | float):
            return None
        # what another machine kept may be from a clock that is ahead
        minutes = max(0, int((time.time() - known["at"]) // 60))
        return ToolOutput(f"[kept from {minutes} minutes ago]\n{known['text']}", known.get("data"))

    async def put(self, output: ToolOutput, seconds: float) -> None:
        """Store the result for so many seconds, with secrets masked; a failure of the cache is only reported."""
        # a cache outlives the session, and may be on a server that others use
        hide = self._context.redaction.hide
        value = {"text": hide(output.text), "data": _without(output.data, hide), "at": time.time()}
        if self._on:
            try:
                await self._cache.put(self._key, json.dumps(value), seconds)
            except CacheOff as error:
                self._tell(error)

    def _tell(self, error: CacheOff) -> None:
        self._on = False
        self._context.note(self._context.words("web.cache_off", reason=str(error)))


def _without(data: Any, hide: Any) -> Any:
    """Return the data with `hide` applied to every text in it."""
    if isinstance(data, Mapping):
        return {key: _without(value, hide) for key, value in data.items()}
    if isinstance(data, list):
        return [_without(value, hide) for value in data]
    return hide(data) if isinstance(data, str) else data
