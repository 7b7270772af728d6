"""Both caches: what is kept, for how long, how much; and that a broken one is told and does no harm."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codeagent_lsp.tools.web.cache import MAX_ENTRY, CacheOff, RedisCache, SqliteCache, cache_of, key_of
from tests.children import children


class Clock:
    """A time that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def rows(file: Path) -> int:
    with sqlite3.connect(file) as base:
        return int(base.execute("SELECT count(*) FROM entries").fetchone()[0])


async def test_a_value_until_its_time_is_over(tmp_path: Path) -> None:
    clock = Clock()
    cache = SqliteCache(tmp_path / "in" / "web.sqlite", clock=clock)
    assert await cache.get("a") is None
    await cache.put("a", "words \u4f60", 10)
    assert await cache.get("a") == "words \u4f60" and await cache.get("b") is None
    assert await SqliteCache(tmp_path / "in" / "web.sqlite", clock=clock).get("a") == "words \u4f60"
    clock.now += 10
    assert await cache.get("a") is None
    await cache.put("b", "x", 10)
    assert rows(tmp_path / "in" / "web.sqlite") == 1  # what is over is gone


async def test_it_is_nobody_elses(tmp_path: Path) -> None:
    file = tmp_path / "web.sqlite"
    await SqliteCache(file).put("a", "x", 10)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_it_does_not_grow_beyond_its_limit(tmp_path: Path) -> None:
    clock = Clock()
    cache = SqliteCache(tmp_path / "web.sqlite", total=1000, clock=clock)
    for number in range(20):
        clock.now += 1
        await cache.put(str(number), "x" * 100, 1000)
    assert rows(tmp_path / "web.sqlite") == 10
    assert await cache.get("19") and await cache.get("9") is None


async def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    cache = SqliteCache(tmp_path / "web.sqlite")
    await cache.put("a", "\u4f60" * (MAX_ENTRY // 3 + 1), 10)
    assert await cache.get("a") is None
    await cache.put("a", "x" * MAX_ENTRY, 10)
    assert await cache.get("a") is not None


async def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "web.sqlite"
    file.write_bytes(b"no database " * 1000)
    cache = SqliteCache(file)
    assert await cache.get("a") is None
    await cache.put("a", "x", 10)
    assert await cache.get("a") == "x"


async def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for file in (tmp_path / "file" / "web.sqlite", tmp_path):
        with pytest.raises(CacheOff):
            await SqliteCache(file).get("a")
        with pytest.raises(CacheOff):
            await SqliteCache(file).put("a", "x", 1)


async def test_many_at_once(tmp_path: Path) -> None:
    caches = [SqliteCache(tmp_path / "web.sqlite") for _ in range(8)]
    await asyncio.gather(*(cache.put(str(number), "x", 10) for number, cache in enumerate(caches)))
    assert rows(tmp_path / "web.sqlite") == 8


def test_keys_tell_questions_apart_and_say_nothing_of_them() -> None:
    assert key_of("a", "b") != key_of("ab") != key_of("a", "b", None) and key_of("a", 1) == key_of("a", 1)
    assert "secret" not in key_of("secret")


def test_the_setting_names_the_cache(tmp_path: Path) -> None:
    assert isinstance(cache_of(None, tmp_path / "x"), SqliteCache)
    assert isinstance(cache_of("redis://127.0.0.1", tmp_path / "x"), RedisCache)


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:1/0", "redis://:word@127.0.0.1:1", "nonsense", "http://127.0.0.1:1"]
)
async def test_a_redis_that_is_not_there_is_told_without_its_address(url: str) -> None:
    pytest.importorskip("redis", reason="the extra `web` is not installed")
    with pytest.raises(CacheOff) as raised:
        await RedisCache(url).get("a")
    assert "127.0.0.1" not in str(raised.value) and "word" not in str(raised.value)


@pytest.mark.slow
async def test_a_redis_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("redis", reason="the extra `web` is not installed")
    monkeypatch.setattr("codeagent_lsp.tools.web.cache._REDIS_SECONDS", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(5):
            with pytest.raises(CacheOff):
                await RedisCache(f"redis://127.0.0.1:{port}").put("a", "x", 1)
    finally:
        listening.close()


@pytest.fixture
async def redis_url(tmp_path: Path) -> AsyncGenerator[str]:
    """A real server on a socket of its own, with a password."""
    pytest.importorskip("redis", reason="the extra `web` is not installed")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server here")
    socket = tmp_path / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        *command, "--requirepass", "word", stdout=asyncio.subprocess.DEVNULL, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(20):
            while not socket.exists():  # noqa: ASYNC110 - it tells by its socket
                await asyncio.sleep(0.02)
        yield f"unix://:word@{socket}"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.slow
async def test_a_real_redis(redis_url: str) -> None:
    before = children()
    cache = RedisCache(redis_url)
    assert await cache.get("a") is None
    await cache.put("a", "words \u4f60", 10)
    assert await cache.get("a") == "words \u4f60"
    await cache.put("b", "soon over", 1)
    await cache.put("c", "x" * (MAX_ENTRY + 1), 10)
    assert await cache.get("c") is None
    await asyncio.sleep(1.2)
    assert await cache.get("b") is None and await cache.get("a") is not None
    assert children() <= before
    with pytest.raises(CacheOff) as raised:
        await RedisCache(redis_url.replace(":word@", ":wrong@")).get("a")
    assert "wrong" not in str(raised.value)
