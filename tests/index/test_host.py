"""The index of a server from the inside: who waits how long, what begins when, and that it ends with everything."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.errors import EditorError, ErrorType, ToolFailed
from codeagent_lsp.index import host
from codeagent_lsp.index import host as hosts
from codeagent_lsp.index.host import Feed, IndexHost
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.service import IndexService, Status
from codeagent_lsp.index.store import Store
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.front import Client, FileWatching
from codeagent_lsp.server.index_host import IndexProgress
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.state import STATE_VARIABLE
from tests.index.workspaces import many, settle, write


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    place = tmp_path / "ws"
    place.mkdir()
    return place


class Rig:
    """A host with what it is told and asked."""

    def __init__(self, *folders: Path, watched: bool = False) -> None:
        self.folders = [str(folder) for folder in folders]
        self.settings = IndexSettings(enabled=True)
        self.told: list[Status] = []
        self.watching = 0
        self._watched = watched
        self.host = IndexHost(lambda: self.folders, lambda: self.settings, self.told.append, self._watch)

    async def _watch(self) -> bool:
        self.watching += 1
        return self._watched


@asynccontextmanager
async def rig(*folders: Path, watched: bool = False) -> AsyncIterator[Rig]:
    made = Rig(*folders, watched=watched)
    try:
        yield made
    finally:
        await made.host.close()


def stores(root: Path) -> list[Path]:
    return list((root.parent / "state").rglob("index.sqlite"))


async def files(made: Rig) -> set[str]:
    """The paths the index has, once it is ready."""
    await made.host.ready(20.0)
    place = (await made.host.status())["path"]
    with sqlite3.connect(place) as index:
        return {path for (path,) in index.execute("SELECT path FROM files")}


def slow_looks(monkeypatch: pytest.MonkeyPatch, until: asyncio.Event) -> None:
    """Looks at everything that end only when the event says so."""
    refresh = IndexService.refresh

    async def waiting(self: IndexService, *, age: float = 0.0) -> Status:
        await until.wait()
        return await refresh(self, age=age)

    monkeypatch.setattr(IndexService, "refresh", waiting)


class TestReady:
    async def test_before_anybody_asks_there_is_nothing(self, root: Path) -> None:
        write(root, {"a.py": "x = 1\n"})
        async with rig(root) as made:
            made.host.touched([str(root / "a.py")])
            made.host.folders_changed()
            await asyncio.sleep(0.05)
            assert (stores(root), made.told, made.watching, made.host.whole) == ([], [], 0, False)

    async def test_asked_it_has_everything(self, root: Path) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        async with rig(root) as made:
            assert await files(made) == {"a.py"}
            assert made.host.whole
            assert made.told[-1].state == "ready"

    async def test_what_will_be_asked_begins_before(self, root: Path) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        async with rig(root) as made:
            made.host.wanted()
            made.host.wanted()
            assert await files(made) == {"a.py"}
            made.host.wanted()
            assert [status.state for status in made.told].count("scanning") == 1

    async def test_wanted_where_there_can_be_none_nobody_hears_of_it(self) -> None:
        async with rig() as made:
            made.host.wanted()
            await asyncio.sleep(0.05)
            assert made.told == []

    async def test_many_who_ask_at_once_make_one(self, root: Path) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        async with rig(root) as made:
            answers = await asyncio.gather(*(made.host.ready(20.0) for _ in range(5)))
            assert len(set(map(id, answers))) == 1
            assert [status.state for status in made.told].count("scanning") == 1

    async def test_the_first_build_is_waited_for_so_long_and_no_longer(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        done = asyncio.Event()
        slow_looks(monkeypatch, done)
        async with rig(root) as made:
            before = time.monotonic()
            with pytest.raises(ToolFailed, match=r"being built.*grep") as refusal:
                await made.host.ready(0.05)
            assert refusal.value.code.advice.type is ErrorType.PARAM  # else the tools would rest before it is there
            assert time.monotonic() - before < 1.0
            done.set()
            assert await files(made) == {"a.py"}

    async def test_what_an_earlier_server_knew_is_good_enough(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        async with rig(root) as made:
            await made.host.ready(20.0)
        slow_looks(monkeypatch, asyncio.Event())
        async with rig(root) as made:
            await made.host.ready(0.05)
            assert not made.host.whole

    async def test_cancelled_while_waiting_the_look_goes_on(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        done = asyncio.Event()
        slow_looks(monkeypatch, done)
        async with rig(root) as made:
            asking = asyncio.create_task(made.host.ready(20.0))
            await asyncio.sleep(0.1)
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            done.set()
            assert await files(made) == {"a.py"}

    @pytest.mark.parametrize("watched", [True, False])
    async def test_what_is_fresh_is_not_looked_at_again(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, *, watched: bool
    ) -> None:
        monkeypatch.setattr(host, "FRESH", 0.05)
        async with rig(root, watched=watched) as made:
            await made.host.ready(20.0)
            await asyncio.sleep(0.2)
            seen = len(made.told)
            await made.host.ready(20.0)
            assert (len(made.told) == seen) == watched
            assert made.watching == 1

    async def test_processes_that_cannot_be_started_are_a_sentence(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def refused(*words: object, **more: object) -> None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")

        many(root, 100)
        monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
        async with rig(root) as made:
            with pytest.raises(ToolFailed, match=r"cannot be kept.*Cannot allocate memory"):
                await made.host.ready(20.0)

    async def test_a_store_that_cannot_be_is_a_sentence(self, root: Path) -> None:
        (root.parent / "state").write_text("a file")
        async with rig(root) as made:
            with pytest.raises(ToolFailed, match="cannot be kept"):
                await made.host.ready(20.0)
            assert (await made.host.status())["state"] == "failed"


class TestFitness:
    async def test_switched_off_at_any_time(self, root: Path) -> None:
        async with rig(root) as made:
            await made.host.ready(20.0)
            made.settings = IndexSettings(enabled=False)
            with pytest.raises(ToolFailed, match=r"index\.enabled"):
                await made.host.ready(20.0)
            assert not made.host.whole
            made.settings = IndexSettings(enabled=True)
            await made.host.ready(20.0)

    async def test_no_folder_no_index(self) -> None:
        async with rig() as made:
            with pytest.raises(ToolFailed, match="No folder"):
                await made.host.ready(1.0)

    @pytest.mark.parametrize("folder", ["", "..", "/"])
    async def test_a_home_and_what_holds_it_are_too_wide(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, folder: str
    ) -> None:
        monkeypatch.setenv("HOME", str(root))
        async with rig(Path(os.path.normpath(root / folder))) as made:  # noqa: ASYNC240
            with pytest.raises(ToolFailed, match="too much"):
                await made.host.ready(1.0)

    async def test_other_folders_are_another_index(self, root: Path, tmp_path: Path) -> None:
        write(root, {"a.py": "x = 1\n"})
        write(tmp_path / "more", {"b.py": "y = 1\n"})
        async with rig(root) as made:
            await made.host.ready(20.0)
            made.folders.append(str(tmp_path / "more"))
            made.host.folders_changed()
            assert await files(made) == {"ws/a.py", "more/b.py"}
            assert len(stores(root)) == 2


class TestChanges:
    async def test_touched_files_are_there_for_the_next_question(self, root: Path) -> None:
        write(root, {"a.py": "x = 1\n"})
        async with rig(root, watched=True) as made:
            await made.host.ready(20.0)
            write(root, {"b.py": "y = 1\n"})
            made.host.touched([str(root / "b.py")])
            assert await files(made) == {"a.py", "b.py"}

    async def test_very_many_are_a_look_at_everything(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hosts, "MANY", 5)
        many(root, 9)
        async with rig(root, watched=True) as made:
            await made.host.ready(20.0)
            write(root, {"untold.py": "y = 1\n"})
            settle()
            made.host.touched([str(root / f"part0/m{number}.py") for number in range(9)])
            assert "untold.py" in await files(made)

    async def test_the_first_document_begins_the_first_build(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hosts, "FIRST_BUILD_AFTER", 0.05)
        write(root, {"a.py": "x = 1\n"})
        async with rig(root) as made:
            for _ in range(3):
                made.host.document_opened()
            for _ in range(200):
                if made.host.whole:
                    break
                await asyncio.sleep(0.02)
            assert [status.state for status in made.told].count("scanning") == 1
        async with rig(root) as again:
            again.host.document_opened()
            await asyncio.sleep(0.3)
            assert again.told == []


class TestBeside:
    async def test_it_comes_up_to_every_look_is_searched_and_closed(self, root: Path) -> None:
        write(root, {"a.py": "x = 1\n"})
        made, beside = Rig(root), FakeBeside()
        host = IndexHost(lambda: made.folders, lambda: made.settings, made.told.append, made._watch, beside.made)
        assert list(host.finders()) == []
        await host.ready(20.0)
        await asyncio.sleep(0.05)
        (finder,) = host.finders()
        assert [chunk.path for chunk in await finder("x", 3)] == ["near.py"]
        before = beside.refreshed
        assert before >= 1
        await host.refresh()
        await asyncio.sleep(0.05)
        assert beside.refreshed > before
        await host.close()
        assert beside.closed

    async def test_one_that_takes_for_ever_keeps_nobody(self, root: Path) -> None:
        made, beside = Rig(root), FakeBeside(seconds=60)
        host = IndexHost(lambda: made.folders, lambda: made.settings, made.told.append, made._watch, beside.made)
        await host.ready(20.0)
        await host.refresh()
        before = time.monotonic()
        await host.close()
        assert time.monotonic() - before < 1.0
        assert (beside.refreshed, beside.closed) == (1, True)


class TestEnd:
    async def test_closed_it_leaves_no_task(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        slow_looks(monkeypatch, asyncio.Event())
        before = asyncio.all_tasks()
        async with rig(root) as made:
            made.host.document_opened()
            with suppress(ToolFailed):
                await made.host.ready(0.05)
            made.host.touched([str(root / "a.py")])
            made.host.folders_changed()
        assert asyncio.all_tasks() == before

    async def test_closed_it_can_be_closed_again(self, root: Path) -> None:
        async with rig(root) as made:
            await made.host.ready(20.0)
            await made.host.close()

    async def test_a_rebuild_takes_the_place_of_a_look(self, root: Path) -> None:
        many(root, 12)
        async with rig(root) as made:
            await made.host.ready(20.0)
            looking = asyncio.create_task(made.host.refresh())
            await asyncio.sleep(0)
            assert (await made.host.rebuild()).state in ("scanning", "ready", "new", "building")
            assert (await looking).state in ("ready", "scanning", "building", "new")
            assert len(await files(made)) == 12


class TestFeed:
    async def test_what_comes_together_is_handed_on_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hosts, "DELAY", 0.05)
        looks: list[tuple[str, ...] | None] = []

        async def look(paths: tuple[str, ...] | None) -> None:
            looks.append(paths)

        feed = Feed(look)
        feed.add(["a", "b"])
        feed.add(["b", "c"])
        await asyncio.sleep(0.2)
        feed.add(["d"])
        await feed.settle(5.0)
        assert looks == [("a", "b", "c"), ("d",)]
        await feed.close()

    async def test_what_comes_during_a_look_is_looked_at_too(self) -> None:
        looks: list[tuple[str, ...] | None] = []

        async def look(paths: tuple[str, ...] | None) -> None:
            if not looks:
                feed.add(["late"])
            looks.append(paths)

        feed = Feed(look)
        feed.add(["early"])
        await feed.settle(5.0)
        assert looks == [("early",), ("late",)]

    async def test_settling_waits_so_long_and_no_longer(self) -> None:
        async def look(paths: tuple[str, ...] | None) -> None:
            await asyncio.sleep(60)

        feed = Feed(look)
        feed.add(["a"])
        before = time.monotonic()
        await feed.settle(0.05)
        assert time.monotonic() - before < 1.0
        await feed.close()

    async def test_many_paths_take_no_memory(self) -> None:
        looks: list[tuple[str, ...] | None] = []

        async def look(paths: tuple[str, ...] | None) -> None:
            looks.append(paths)

        feed = Feed(look)
        feed.add(f"file{number}" for number in range(100_000))
        assert len(feed._waiting) <= hosts.MANY + 1
        await feed.settle(5.0)
        assert looks == [None]


class TestWatch:
    async def test_a_client_that_refuses_does_not_watch(self) -> None:
        server, policy = FakeServer(lambda method: None), ClientPolicy(watches_files=True)
        watching = FileWatching(Client(server.as_real, policy=policy))
        assert await watching.begin()
        assert await watching.begin()  # it is asked once, whoever follows the files
        assert server.asked == ["client/registerCapability"]
        assert not await FileWatching(Client(FakeServer(_refuse).as_real, policy=policy)).begin()
        assert not await FileWatching(Client(server.as_real)).begin()


class TestProgress:
    async def test_one_bar_from_the_first_to_the_last_status(self) -> None:
        server = FakeServer(lambda method: None)
        bar = IndexProgress(Client(server.as_real, policy=ClientPolicy(progress=True)))
        for done in range(0, 1001, 10):
            bar.observe(Status("building", done, 1000, 1000))
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.25)
        bar.observe(Status("ready", 1000, 1000, 1000))
        kinds = [value["kind"] for value in server.shown]
        assert (kinds[0], kinds[-1]) == ("begin", "end")
        assert 1 <= kinds.count("report") <= 20
        assert server.shown[-1]["message"] == "1000 files are indexed."

    async def test_a_build_that_is_stopped_says_so(self) -> None:
        server = FakeServer(lambda method: None)
        bar = IndexProgress(Client(server.as_real, policy=ClientPolicy(progress=True)))
        bar.observe(Status("building", 0, 500, 500))
        await asyncio.sleep(0.01)
        bar.observe(Status("new", files=500))
        bar.observe(Status("new", files=500))
        assert [value["kind"] for value in server.shown] == ["begin", "end"]
        assert "will continue later" in server.shown[-1]["message"]

    async def test_a_client_without_bars_gets_none(self) -> None:
        server = FakeServer(lambda method: None)
        bar = IndexProgress(Client(server.as_real))
        bar.observe(Status("building", 0, 500, 500))
        bar.observe(Status("ready", 500, 500, 500))
        await asyncio.sleep(0.01)
        assert (server.asked, server.shown) == ([], [])


def _refuse(method: str) -> None:
    raise EditorError("editor.gone")


class FakeBeside:
    """Searches beside words."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.refreshed = 0
        self.closed = False
        self._seconds = seconds

    def made(self, store: Store, folders: Folders) -> FakeBeside:
        return self

    async def refresh(self) -> None:
        self.refreshed += 1
        await asyncio.sleep(self._seconds)

    async def search(self, query: str, limit: int) -> list[Chunk]:
        return [Chunk("near.py", 1, 2, query)]

    async def close(self) -> None:
        self.closed = True


class FakeServer:
    """What the index needs of a server: requests that are answered, and what is shown."""

    def __init__(self, answer: Callable[[str], None]) -> None:
        self.asked: list[str] = []
        self.shown: list[dict[str, Any]] = []
        self._answer = answer

    @property
    def as_real(self) -> CodeAgentServer:
        return cast("CodeAgentServer", self)

    async def request(self, method: str, params: Any, timeout: float) -> Any:  # noqa: ASYNC109
        self.asked.append(method)
        return self._answer(method)

    def notify(self, method: str, params: Any) -> None:
        self.shown.append(params.value)
