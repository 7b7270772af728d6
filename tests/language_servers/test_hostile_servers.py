"""Servers that misbehave in a session: told once, other servers and later questions work, nothing is left."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.language_servers import (
    language_server,
    running_servers,
    server_connection,
    session_servers,
    text_diagnostics,
)
from codeagent_lsp.language_servers.answers import ServerQuestion
from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.language_servers.pool import LanguageServerPool
from codeagent_lsp.language_servers.session_servers import SessionServers
from tests.language_servers.rig import (
    Workspace,
    fake,
    marked,
    messages,
    never_blocked,
    nothing_left,
    plain_copy,
    session,
)
from tests.shadow.processes import until

HOVER = "textDocument/hover"
BOUND = 8.0


@pytest.fixture
def project(workspace: Path) -> Workspace:
    made = Workspace(workspace)
    made.write("a.txt", "first undefined_1\n")
    made.write("b.txt", "second\n")
    return made


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


async def hovered(servers: SessionServers, project: Workspace, name: str = "a.txt", seconds: float = 20) -> list[Any]:
    answers = await servers.ask(project.view, ServerQuestion(HOVER, project.path(name), 0), seconds)
    return [answer.result["contents"] for answer in answers]


async def found(servers: SessionServers, project: Workspace, name: str = "a.txt", seconds: float = 20) -> Any:
    path = project.path(name)
    return messages((await servers.diagnostics(project.view, [path], seconds)).get(path))


@pytest.mark.parametrize("way", ["pull", "push", "quiet", "unversioned"])
async def test_an_honest_one(project: Workspace, state: Path, way: str) -> None:
    async with session(state, fake(way=way)) as servers:
        assert await hovered(servers, project) == ["first undefined_1\n"]
        assert await found(servers, project) == ["undefined_1"]
        project.stage("a.txt", "undefined_2\n")
        assert await found(servers, project) == ["undefined_2"]
        assert await hovered(servers, project) == ["undefined_2\n"]
        assert servers.take_troubles() == []


@pytest.mark.parametrize("points", [["start=crash"], ["initialize=crash"], ["initialize=half"], ["start=long_length"]])
async def test_one_that_never_starts_is_told_once_and_left_alone(
    project: Workspace, state: Path, points: list[str]
) -> None:
    good = fake(name="good", role="lint")
    async with session(state, fake(*points), good) as servers:
        for _ in range(4):
            assert await hovered(servers, project) == ["first undefined_1\n"], "the other one"
        assert len(servers.take_troubles()) == 1
        assert [each.server.name for each in servers.installed(project.view, project.path("a.txt"))] == ["good"]
        assert await found(servers, project) == ["undefined_1"]


async def test_one_that_crashed_once_answers_again(project: Workspace, state: Path) -> None:
    """Its texts need not have changed for it to be started again."""
    async with session(state, fake("request:2=crash")) as servers:
        assert await hovered(servers, project) == []
        assert len(servers.take_troubles()) == 1
        project.stage("a.txt", "other\n")
        assert await hovered(servers, project) == []
        assert servers.take_troubles() == []


async def test_one_that_ended_between_questions_is_started_again(project: Workspace, state: Path) -> None:
    mark = f"mark-{os.urandom(8).hex()}"
    async with session(state, fake("x=silent", "--", mark)) as servers:
        assert await hovered(servers, project) == ["first undefined_1\n"]
        for pid in marked(mark):
            os.kill(pid, 9)
        await asyncio.sleep(0.3)
        assert await hovered(servers, project) == ["first undefined_1\n"]
        for pid in marked(mark):
            os.kill(pid, 9)
        await asyncio.sleep(0.3)
        assert await hovered(servers, project) == []
        assert servers.installed(project.view, project.path("a.txt")) == (), "it ended MAX_FAILURES times"


async def test_one_that_was_stopped_is_started_again_however_often(project: Workspace, state: Path) -> None:
    """As when the session rests: that is no failure of the server."""
    async with session(state, fake()) as servers:
        for _ in range(running_servers.MAX_FAILURES + 2):
            assert await hovered(servers, project) == ["first undefined_1\n"]
            await servers.rest()
        assert servers.take_troubles() == []


async def test_one_that_makes_room_for_others_is_started_again_however_often(
    project: Workspace, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_servers, "MAX_SERVERS", 1)
    project.write("c.md", "other\n")
    async with session(state, fake(), fake(name="good", role="lint", suffix="md")) as servers:
        for _ in range(running_servers.MAX_FAILURES + 2):
            assert await hovered(servers, project) == ["first undefined_1\n"]
            assert await hovered(servers, project, "c.md") == ["other\n"]
        assert servers.take_troubles() == []


@pytest.mark.parametrize("point", [HOVER, "initialize", "textDocument/didOpen"])
async def test_one_that_hangs_costs_its_time_only(
    project: Workspace, state: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_server, "START_SECONDS", 0.5)
    async with session(state, fake(f"{point}=hang"), fake(name="good", role="lint", suffix="md")) as servers:
        started = time.monotonic()
        assert await hovered(servers, project, seconds=1.0) == []
        assert point == HOVER or await found(servers, project, seconds=1.0) is None
        assert time.monotonic() - started < BOUND
        project.write("c.md", "other\n")
        assert await hovered(servers, project, "c.md") == ["other\n"]
        assert len(servers.take_troubles()) == 1


@pytest.mark.parametrize("way", ["push", "quiet", "pull"])
@pytest.mark.parametrize("action", ["lies", "wrong_types", "bad_json", "asks", "large", "never_done"])
async def test_lies_are_passed_over(project: Workspace, state: Path, action: str, way: str) -> None:
    points = [f"{method}={action}" for method in ("textDocument/didChange", HOVER)]
    async with session(state, fake("initialize=asks", *points, way=way)) as servers:
        assert await found(servers, project) == ["undefined_1"]
        project.stage("a.txt", "undefined_2\n")
        assert await hovered(servers, project) == ["undefined_2\n"]
        assert await found(servers, project) == ["undefined_2"]


async def test_diagnostics_without_a_version_are_not_believed_before_the_text_was_read(
    project: Workspace, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_diagnostics, "QUIET_SECONDS", 0.05)
    async with session(state, fake("textDocument/didChange=outdated", way="unversioned")) as servers:
        assert await found(servers, project) == ["undefined_1"]
        for number in range(2, 5):
            project.stage("a.txt", f"undefined_{number}\n")
            assert await found(servers, project) == [f"undefined_{number}"]


@pytest.mark.parametrize(
    ("way", "seconds", "titles"),
    [("unversioned", 20, ["Fix undefined_1"]), ("push", 20, ["Fix undefined_1"]), ("never", 0.1, [])],
)
async def test_fixes_do_not_wait_long_for_diagnostics(
    project: Workspace, state: Path, way: str, seconds: float, titles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of the time is for the answer itself."""
    monkeypatch.setattr(session_servers, "TO_FIX_SECONDS", seconds)
    question = ServerQuestion("textDocument/codeAction", project.path("a.txt"), 0, 5, {"context": {}})
    async with session(state, fake(way=way)) as servers:
        started = time.monotonic()
        answers = await servers.ask(project.view, question, 20)
        assert [[action["title"] for action in answer.result] for answer in answers] == [titles]
        assert time.monotonic() - started < BOUND
        assert servers.take_troubles() == []


async def test_one_that_never_answers_is_ended_and_at_last_left_alone(
    project: Workspace, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_server, "PATIENCE_SECONDS", 0.1)
    async with session(state, fake(f"{HOVER}=silent"), fake(name="good", role="lint")) as servers:
        asked, names = 0, {"fake", "good"}
        async with asyncio.timeout(60):
            while "fake" in names:
                assert await hovered(servers, project, seconds=0.5) in ([], ["first undefined_1\n"])
                installed = servers.installed(project.view, project.path("a.txt"))
                asked, names = asked + 1, {each.server.name for each in installed}
        assert asked > running_servers.MAX_FAILURES * language_server.MAX_LATE
        assert any("did not answer" in trouble for trouble in servers.take_troubles())
        started = time.monotonic()
        assert await hovered(servers, project) == ["first undefined_1\n"], "the other one"
        assert time.monotonic() - started < BOUND


@pytest.mark.parametrize("action", ["wrong_capabilities", "nothing_at_start"])
async def test_odd_answers_to_initialize(project: Workspace, state: Path, action: str) -> None:
    async with session(state, fake(f"initialize={action}")) as servers:
        assert await found(servers, project) == ["undefined_1"]


async def test_a_crash_while_diagnostics_are_awaited_is_not_waited_out(project: Workspace, state: Path) -> None:
    async with session(state, fake("textDocument/didOpen=crash")) as servers:
        started = time.monotonic()
        assert await found(servers, project, seconds=20) is None
        assert time.monotonic() - started < BOUND


async def test_what_cannot_be_started_is_a_trouble(project: Workspace, state: Path) -> None:
    program = project.folder / "no-program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    known = fake()
    broken = KnownServer("broken", (str(program),), known.languages)
    async with session(state, broken, fake(name="good", role="lint")) as servers:
        assert await hovered(servers, project) == ["first undefined_1\n"]
        assert len(servers.take_troubles()) == 1


async def test_a_copy_that_cannot_be_made_is_told_once(project: Workspace) -> None:
    def open_copy(folders: object) -> Any:
        raise ToolFailed("Nothing can run apart from the user's files here.")

    async with nothing_left():
        servers = SessionServers(open_copy, lambda: (fake(),), 1 << 30)
        assert await hovered(servers, project) == []
        assert await found(servers, project) is None
        assert servers.take_troubles() == ["Nothing can run apart from the user's files here."]
        assert servers.installed(project.view, project.path("a.txt")) == ()
        await servers.close()


async def test_what_reads_nothing_is_ended_and_told(
    project: Workspace, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_connection, "MAX_UNSENT", 1 << 20)
    async with session(state, fake("textDocument/didOpen=hang")) as servers:
        for number in range(12):
            project.stage("a.txt", f"{number}" + "x" * (1 << 19))
            assert await hovered(servers, project, seconds=0.3) == []
        assert len(servers.take_troubles()) == 1


async def test_only_so_many_servers_run(project: Workspace, state: Path) -> None:
    names = [f"s{number}" for number in range(running_servers.MAX_SERVERS + 2)]
    async with session(state, *(fake(name=name, suffix=name) for name in names)) as servers:
        for name in names:
            project.write(f"f.{name}", name)
            assert await hovered(servers, project, f"f.{name}") == [name]
        assert list(servers.names) == names[2:]
        assert await hovered(servers, project, f"f.{names[2]}") == [names[2]]
        assert await hovered(servers, project, f"f.{names[0]}") == [names[0]]
        assert list(servers.names) == [*names[4:], names[2], names[0]], "the one used longest ago went"


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3])
async def test_closed_while_starting(project: Workspace, state: Path, delay: float) -> None:
    async with session(state, fake("initialize=hang")) as servers:
        asking = asyncio.create_task(hovered(servers, project, seconds=30))
        await asyncio.sleep(delay)
        started = time.monotonic()
        await servers.close()
        async with asyncio.timeout(BOUND):
            assert await asking == []
        assert time.monotonic() - started < BOUND


async def test_a_closed_session_answers_nothing(project: Workspace, state: Path) -> None:
    async with session(state, fake()) as servers:
        assert await hovered(servers, project) == ["first undefined_1\n"]
        await servers.close()
        assert await hovered(servers, project) == []
        assert await found(servers, project) is None
        assert servers.names == ()


@pytest.mark.parametrize("seed", range(6))
async def test_cancelled_at_any_moment(project: Workspace, state: Path, seed: int) -> None:
    """Afterwards the servers know the newest texts and files."""
    chance = random.Random(seed)
    async with session(state, fake("--delay", "0.01", way=chance.choice(["pull", "push", "quiet"]))) as servers:
        for number in range(12):
            project.stage("a.txt", f"undefined_{number}\n")
            work = found(servers, project) if chance.random() < 0.5 else hovered(servers, project)
            task = asyncio.create_task(work)
            await asyncio.sleep(chance.random() * (0.3 if number < 2 else 0.03))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await found(servers, project) == ["undefined_11"]
        assert await hovered(servers, project) == ["undefined_11\n"]
        assert servers.take_troubles() == []


# --- the pool


async def test_the_pool_stops_what_is_idle(project: Workspace, state: Path) -> None:
    async with nothing_left():
        pool = LanguageServerPool(plain_copy(state), lambda: (fake(),), idle_seconds=0.4)
        async with never_blocked():
            assert await hovered(pool.of("one"), project) == ["first undefined_1\n"]
            assert pool.names == ("fake",)
            await until(lambda: not pool.names)
            assert await hovered(pool.of("one"), project) == ["first undefined_1\n"]
        await pool.close()


async def test_the_pool_has_few_sessions(project: Workspace, tmp_path: Path) -> None:
    states = iter(range(100))

    def open_copy(folders: Any) -> Any:
        return plain_copy(tmp_path / f"state{next(states)}")(folders)

    async with nothing_left():
        pool = LanguageServerPool(open_copy, lambda: (fake(),), idle_seconds=0.4)
        kept = [pool.of(str(number)) for number in range(4)]
        for servers in kept:
            assert await hovered(servers, project) == ["first undefined_1\n"]
        await asyncio.sleep(0.15)
        assert len(pool.names) <= 2
        await pool.close()
