"""The service: the index follows the disk, saved files, unsaved texts and branches, and never gets in the way."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index import service as services
from codeagent_lsp.index.scan import Scan, scan
from codeagent_lsp.index.service import IndexService, LastScan, Status
from codeagent_lsp.index.store import Store, open_index
from tests.index.workspaces import children, many, service, settle, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "index.sqlite"


class TestRefresh:
    async def test_files_come_change_and_go(self, root: Path, path: Path) -> None:
        write(root, {"a.py": "def one(): pass\n", "sub/b.py": "def two(): one()\n"})
        async with service(root, store=path) as index:
            assert (await index.refresh()).state == "ready"
            assert set(index.view().files()) == {"a.py", "sub/b.py"}
            assert index.view().using("one") == ("sub/b.py",)
            write(root, {"a.py": "def uno(): pass\n", "c.rb": "def three; end\n"})
            (root / "sub" / "b.py").unlink()
            await index.refresh()
            assert set(index.view().files()) == {"a.py", "c.rb"}
            assert (index.view().defining("one"), index.view().defining("uno")) == ((), ("a.py",))

    async def test_ignored_files_links_and_built_in_names_are_left_out(self, root: Path, path: Path) -> None:
        write(root, {".gitignore": "out/\n*.log\n", "a.py": "", "out/x.py": "", "b.log": "", "node_modules/m.js": ""})
        write(root, {".codeagentignore": "secret.py\n", "secret.py": ""})
        (root / "link.py").symlink_to(root / "a.py")
        (root / "around").symlink_to(root)
        async with service(root, store=path) as index:
            await index.refresh()
            assert set(index.view().files()) == {".gitignore", ".codeagentignore", "a.py"}

    @pytest.mark.slow
    async def test_nothing_changed_is_the_same_generation(self, root: Path, path: Path) -> None:
        many(root, 30)
        settle()
        async with service(root, store=path) as index:
            await index.refresh()
            before = index.view().generation()
            status = await index.refresh()
            assert (status.total, status.files) == (0, 30)
            assert index.view().generation() == before

    async def test_names_of_strange_characters(self, root: Path, path: Path) -> None:
        write(root, {"größe 大.py": "def f(): pass\n", "a\nb.py": "def f(): pass\n"})
        write(root, {os.fsdecode(b"\xff.py"): "def f(): pass\n"})
        async with service(root, store=path) as index:
            await index.refresh()
            assert set(index.view().files()) == {"größe 大.py", "a\nb.py"}

    async def test_several_folders_are_told_apart(self, tmp_path: Path, path: Path) -> None:
        write(tmp_path, {"one/a.py": "def f(): pass\n", "two/a.py": "def g(): pass\n"})
        async with service(tmp_path / "one", tmp_path / "two", store=path) as index:
            await index.refresh()
            assert set(index.view().files()) == {"one/a.py", "two/a.py"}
            assert index.view().defining("g") == ("two/a.py",)
            assert index.folders.path_of(str(tmp_path / "two" / "a.py")) == "two/a.py"
            assert index.folders.absolute("two/a.py") == str(tmp_path / "two" / "a.py")
            assert index.folders.path_of(str(tmp_path / "three.py")) is None

    async def test_the_status_is_told(self, root: Path, path: Path) -> None:
        many(root, 3)
        told: list[Status] = []
        async with service(root, store=path, told=told) as index:
            await index.refresh()
        assert [(status.state, status.done, status.total) for status in told] == [
            ("scanning", 0, 0),
            ("building", 0, 3),
            ("building", 3, 3),
            ("ready", 3, 3),
        ]

    async def test_switched_off_it_does_nothing(self, root: Path, path: Path) -> None:
        many(root, 3)
        async with service(root, store=path, enabled=False) as index:
            index.start()
            assert (await index.refresh()).state == "off"
        assert not os.path.exists(path)  # noqa: PTH110, ASYNC240 - a look at a test's own folder

    async def test_a_place_that_cannot_be_written_is_a_status(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        async with service(root, store=tmp_path / "file" / "index") as index:
            status = await index.refresh()
            assert status.state == "failed"
            assert status.problem

    @pytest.mark.slow
    async def test_a_damaged_index_is_filled_again(self, root: Path, path: Path) -> None:
        many(root, 20)
        async with service(root, store=path) as index:
            await index.refresh()
        write(path.parent, {path.name: b"junk" * 5000})
        async with service(root, store=path) as index:
            await index.refresh()
            assert len(index.view().files()) == 20

    @pytest.mark.slow
    async def test_rebuilt_it_is_the_same(self, root: Path, path: Path) -> None:
        many(root, 20)
        async with service(root, store=path) as index:
            await index.refresh()
            before = dict(index.view().all_tags())
            status = await index.rebuild()
            assert status.total == 20
            assert dict(index.view().all_tags()) == before


class TestSingleFiles:
    async def test_saved_created_and_deleted_files(self, root: Path, path: Path) -> None:
        write(root, {"a.py": "def one(): pass\n", "b.py": "def two(): pass\n"})
        async with service(root, store=path) as index:
            await index.refresh()
            write(root, {"a.py": "def uno(): pass\n", "c.py": "def three(): pass\n", "d.py": "def unseen(): pass\n"})
            (root / "b.py").unlink()
            await index.changed([str(root / name) for name in ("a.py", "b.py", "c.py", "gone.py")])
            assert set(index.view().files()) == {"a.py", "c.py"}
            assert index.view().defining("uno") == ("a.py",)

    async def test_ignored_files_and_others_are_not_taken_in(self, root: Path, path: Path, tmp_path: Path) -> None:
        write(root, {".gitignore": "*.log\n", "a.log": "x"})
        write(tmp_path, {"outside.py": "x = 1\n"})
        async with service(root, store=path) as index:
            await index.refresh()
            await index.changed([str(root / "a.log"), str(tmp_path / "outside.py")])
            assert set(index.view().files()) == {".gitignore"}

    @pytest.mark.parametrize("what", [".gitignore", "sub"])
    async def test_rules_and_folders_mean_everything(self, root: Path, path: Path, what: str) -> None:
        write(root, {"a.py": "", "sub/b.py": ""})
        async with service(root, store=path) as index:
            await index.refresh()
            write(root, {".gitignore": "a.py\n", "sub/c.py": ""})
            await index.changed([str(root / what)])
            assert set(index.view().files()) == {".gitignore", "sub/b.py", "sub/c.py"}

    async def test_a_deleted_folder_is_told_by_its_name_only(self, root: Path, path: Path) -> None:
        write(root, {"a.py": "", "pkg/m1.py": "def one(): pass\n", "pkg/sub/m2.py": "", "pkg2/m3.py": ""})
        async with service(root, store=path) as index:
            await index.refresh()
            shutil.rmtree(root / "pkg")
            await index.changed([str(root / "pkg")])
            assert set(index.view().files()) == {"a.py", "pkg2/m3.py"}
            assert index.view().defining("one") == ()

    @pytest.mark.parametrize("name", ["target/debug", "target", ".git/objects/a1", "target/cache/.gitignore"])
    async def test_what_is_new_in_an_ignored_folder_is_no_look_at_everything(
        self, root: Path, path: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(root, {".gitignore": "target/\n", "a.py": ""})
        scans = counted_scans(monkeypatch)
        async with service(root, store=path) as index:
            await index.refresh()
            write(root, {f"{name}/x.py" if "cache" not in name else name: "*\n"})
            await index.changed([str(root / name)])
            assert (len(scans), set(index.view().files())) == (1, {".gitignore", "a.py"})
            await index.changed([str(root / name), str(root)])
            assert len(scans) == 2, "one that is not ignored is enough"


class TestProcessesThatFail:
    """More files than are processed in a thread; see `scan.FEW_FILES`."""

    @pytest.mark.slow
    async def test_one_that_cannot_be_started_is_a_status(
        self, root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        many(root, 100)

        async def refused(*words: object, **more: object) -> None:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

        async with service(root, store=path) as index:
            with monkeypatch.context() as during:
                during.setattr(asyncio, "create_subprocess_exec", refused)
                status = await index.refresh()
                assert (status.state, "temporarily unavailable" in status.problem) == ("failed", True)
            assert (await index.refresh()).state == "ready"
            assert len(index.view().files()) == 100

    async def test_a_full_disk_is_a_status(self, root: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The process ends, and that it failed cannot be written either."""
        many(root, 100)

        def full(*arguments: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(sys, "executable", shutil.which("false"))
        monkeypatch.setattr(Store, "write", full)
        async with service(root, store=path) as index:
            status = await index.refresh()
            assert (status.state, status.problem) == ("failed", "database or disk is full")


class TestLife:
    async def test_started_it_goes_on_after_a_failure_of_any_kind(
        self, root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        scans = counted_scans(monkeypatch, failures=2)
        async with service(root, store=path) as index:
            index.start(seconds=0.01)
            for _ in range(1000):
                if index.view().defining("one"):
                    break
                await asyncio.sleep(0.01)
            assert index.view().defining("one") == ("a.py",)
            assert len(scans) >= 3

    async def test_started_it_sees_changes_by_itself(self, root: Path, path: Path) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        async with service(root, store=path) as index:
            index.start(seconds=0.05)
            for name in ("one", "two"):
                write(root, {"a.py": f"def {name}(): pass\n"})
                for _ in range(100):
                    if index.view().defining(name):
                        break
                    await asyncio.sleep(0.05)
                assert index.view().defining(name) == ("a.py",)

    async def test_what_was_looked_at_just_now_is_not_looked_at_again(self, root: Path, path: Path) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        async with service(root, store=path) as index:
            await index.refresh()
            seen = index.last_scan.ended
            assert seen is not None
            write(root, {"b.py": "def two(): pass\n"})
            await index.refresh(age=60)
            assert index.last_scan.ended == seen
            assert index.view().defining("two") == ()
            await index.refresh()
            assert index.last_scan.ended > seen
            assert index.view().defining("two") == ("b.py",)

    async def test_single_files_are_no_look_at_everything(self, root: Path, path: Path) -> None:
        write(root, {"a.py": "def one(): pass\n"})
        async with service(root, store=path) as index:
            await index.changed([str(root / "a.py")])
            assert index.last_scan.ended is None

    async def test_closed_it_leaves_no_task(self, root: Path, path: Path) -> None:
        before = asyncio.all_tasks()
        async with service(root, store=path) as index:
            index.start(seconds=0.01)
            await asyncio.sleep(0.05)
        assert asyncio.all_tasks() == before

    @pytest.mark.slow
    async def test_cancelled_in_the_middle_the_rest_is_done_later(self, root: Path, path: Path) -> None:
        many(root, 2000)
        await asyncio.sleep(0.2)  # a file of this moment is looked at again
        began = asyncio.Event()

        def tell(status: Status) -> None:
            if status.done:
                began.set()

        index = IndexService([str(root)], path, _enabled(), processes=2, tell=tell)
        task = asyncio.create_task(index.refresh())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() == set()
        part = len(index.view().files())
        assert 0 < part < 2000
        status = await index.refresh()
        assert 2000 - part <= status.total < 2000  # a file written while it was looked at is looked at again
        assert status.files == len(index.view().files()) == 2000
        await index.close()

    @pytest.mark.slow
    async def test_the_event_loop_goes_on_while_it_builds(self, root: Path, path: Path) -> None:
        many(root, 3000)
        async with service(root, store=path) as index:
            building = asyncio.create_task(index.refresh())
            # The thread's own time: on a busy machine it also waits for its turn.
            longest, last = 0.0, time.thread_time()
            while not building.done():
                await asyncio.sleep(0.005)
                longest, last = max(longest, time.thread_time() - last), time.thread_time()
            assert longest < 0.5
            assert building.result().state == "ready"

    @pytest.mark.slow
    async def test_another_branch_and_back_is_not_parsed_again(self, root: Path, path: Path) -> None:
        def git(*arguments: str) -> None:
            identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "core.hooksPath=/dev/null")
            subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True)

        git("init", "-b", "main")
        many(root, 60)
        git("add", ".")
        git("commit", "-m", "one")
        git("checkout", "-b", "other")
        write(root, {f"part0/m{n}.py": f"def other{n}(): pass\n" for n in range(60)})
        git("commit", "-am", "two")
        async with service(root, store=path) as index:
            await index.refresh()
            git("checkout", "main")
            await index.refresh()
            contents = index.store.query("SELECT count(*) FROM contents")
            for branch, name in (("other", "other5"), ("main", "f5")):
                git("checkout", branch)
                await index.refresh()
                assert index.view().defining(name) == ("part0/m5.py",)
                assert index.store.query("SELECT count(*) FROM contents") == contents

    @pytest.mark.slow
    @pytest.mark.parametrize("delay", [0.0, 0.15, 0.3])
    async def test_killed_while_it_builds_the_next_one_is_right(self, root: Path, path: Path, delay: float) -> None:
        many(root, 1500)
        program = textwrap.dedent("""
            import asyncio, sys
            from pathlib import Path
            from codeagent_lsp.config import IndexSettings
            from codeagent_lsp.index.service import IndexService
            print(flush=True)
            asyncio.run(IndexService([sys.argv[1]], Path(sys.argv[2]), IndexSettings(), processes=2).refresh())
        """)
        command = [sys.executable, "-c", program, str(root), str(path)]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        await process.stdout.readline()
        await asyncio.sleep(delay)
        with suppress(ProcessLookupError):  # a fast machine may be through
            process.kill()
        await process.communicate()
        async with service(root, store=path) as index:
            await index.refresh()
            view = index.view()
            assert len(view.files()) == 1500
            fresh = open_index(path.with_name("fresh.sqlite"))
            again = IndexService([str(root)], fresh.path, _enabled(), processes=2)
            await again.refresh()
            assert dict(view.all_tags()) == dict(again.view().all_tags())
            assert index.store.query("SELECT count(*) FROM lexical") == [(1500,)]
            await again.close()


def counted_scans(monkeypatch: pytest.MonkeyPatch, failures: int = 0) -> list[None]:
    """Scans of everything from now on, one item each; the first `failures` ones fail as nothing should."""
    scans: list[None] = []

    def counting(*arguments: Any) -> Scan:
        scans.append(None)
        if len(scans) <= failures:
            raise RuntimeError("as nothing should")
        return scan(*arguments)

    monkeypatch.setattr(services, "scan", counting)
    return scans


def _enabled() -> IndexSettings:
    return IndexSettings(enabled=True)


@pytest.mark.parametrize(
    ("passed", "seconds", "age", "fresh"),
    [(1, 0, 5, True), (9, 0, 5, False), (9, 1, 5, True), (11, 1, 5, False), (1, 1, 0, False), (None, 9, 5, False)],
)
def test_a_scan_counts_as_fresh_for_longer_where_it_takes_long(
    passed: float | None, seconds: float, age: float, *, fresh: bool
) -> None:
    scanned = LastScan(None if passed is None else time.monotonic() - passed, seconds)
    assert scanned.is_fresh(age) is fresh


def test_polling_pauses_for_longer_where_a_scan_takes_long() -> None:
    assert (LastScan(seconds=0.1).pause(30), LastScan(seconds=2).pause(30)) == (30, 100)
