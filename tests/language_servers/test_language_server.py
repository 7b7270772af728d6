"""One server: how often it is waited for in vain before it is ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeagent_lsp.language_servers import language_server
from codeagent_lsp.language_servers.language_server import MAX_LATE, LanguageServer
from codeagent_lsp.language_servers.server_connection import ServerGone, ServerLate
from tests.language_servers.rig import LIMITS, fake, launch, nothing_left

HOVER = "textDocument/hover"
REFERENCES = "textDocument/references"
ASKED = {"textDocument": {"uri": "file:///a"}}
SOON = 0.02


@asynccontextmanager
async def started(folder: Path, *words: str) -> AsyncIterator[LanguageServer]:
    """The fake, which is silent to `HOVER`."""
    async with nothing_left():
        server = LanguageServer(fake(), str(folder), {})
        try:
            await server.start(launch(folder, f"{HOVER}=silent", *words), LIMITS)
            yield server
        finally:
            await server.close()


async def asked_in_vain(server: LanguageServer, times: int) -> None:
    for _ in range(times):
        with pytest.raises(ServerLate):
            await server.request(HOVER, ASKED, SOON)


async def test_one_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_server, "PATIENCE_SECONDS", SOON)
    async with started(tmp_path) as server:
        await asked_in_vain(server, MAX_LATE)
        assert (server.connection.lost.is_set(), server.connection.problem) == (True, "it does not answer")
        with pytest.raises(ServerGone):
            await server.request(REFERENCES, ASKED, 20)


@pytest.mark.slow
async def test_a_good_answer_makes_up_for_those_that_did_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_server, "PATIENCE_SECONDS", SOON)
    async with started(tmp_path) as server:
        for _ in range(3):
            await asked_in_vain(server, MAX_LATE - 1)
            assert await server.request(REFERENCES, ASKED, 20) == []
        assert not server.connection.lost.is_set()


@pytest.mark.slow
async def test_a_question_with_too_little_time_says_nothing_about_the_server(tmp_path: Path) -> None:
    async with started(tmp_path) as server:
        await asked_in_vain(server, MAX_LATE + 1)
        assert await server.request(REFERENCES, ASKED, 20) == []


@pytest.mark.slow
async def test_one_that_says_that_it_is_at_work_has_some_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_server, "PATIENCE_SECONDS", SOON)
    async with started(tmp_path, "initialize=never_done") as server:
        await asked_in_vain(server, MAX_LATE + 1)
        assert not server.connection.lost.is_set()
        monkeypatch.setattr(language_server, "LOADING_SECONDS", 0.0)
        await asked_in_vain(server, MAX_LATE)
        assert server.connection.lost.is_set()
