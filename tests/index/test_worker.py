"""Worker processes: portions, results, files that hang or crash them, cancelling, the end of their parent."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from codeagent_lsp.index import service
from codeagent_lsp.index.intake import MAX_DATA, MAX_MADE, Same, digest_of, indexed_part, take
from codeagent_lsp.index.scan import Folders, scan
from codeagent_lsp.index.service import JOB_BYTES, JOB_FILES, jobs, work_off
from codeagent_lsp.index.store import IndexEntry, Store, Work, open_index
from codeagent_lsp.index.worker import do
from tests.children import command_lines
from tests.index.workspaces import children, many, settle, write
from tests.records.formats import TOKENS


def found(root: Path, store: Store) -> tuple[Work, ...]:
    return scan(Folders([str(root)]), store.known(), threading.Event()).changed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_index(tmp_path / "index.sqlite")


class TestPortions:
    def test_each_file_is_in_one_and_none_is_empty(self) -> None:
        work = [Work(f"{n}", f"/{n}", b"", n * 1000) for n in range(300)]
        portions = list(jobs(work))
        assert [each for portion in portions for each in portion] == work
        assert all(1 <= len(portion) <= JOB_FILES for portion in portions)
        assert all(sum(each.size for each in portion[:-1]) < JOB_BYTES for portion in portions)

    def test_long_data_weighs_what_is_read_of_it(self) -> None:
        work = [Work(f"{n}.json", f"/{n}.json", b"", JOB_BYTES) for n in range(JOB_FILES)]
        assert len(list(jobs(work))) == 1
        assert len(list(jobs([each._replace(path=f"{each.path}.py") for each in work]))) == JOB_FILES

    def test_nothing_to_do_is_no_job(self) -> None:
        assert list(jobs([])) == []


class TestOneFile:
    def test_text_is_parsed_and_its_words_are_kept(self, root: Path, store: Store) -> None:
        write(root, {"a.py": "def walnut(): pass\n"})
        do(store, found(root, store))
        assert store.defining("walnut") == ("a.py",)
        assert store.query("SELECT count(*) FROM lexical WHERE lexical MATCH 'walnut'") == [(1,)]

    @pytest.mark.parametrize(
        ("data", "note"), [(b"\0" * 50, "binary"), (b"x = 1\n" * 200_000, "large"), (b"x = 1\n", ""), (b"", "")]
    )
    def test_what_is_no_text_is_noted(self, root: Path, store: Store, data: bytes, note: str) -> None:
        write(root, {"a.py": data})
        do(store, found(root, store))
        assert store.known()["a.py"].note == note

    def test_a_known_content_is_not_parsed_again(self, root: Path, store: Store) -> None:
        write(root, {"a.py": "def walnut(): pass\n", "b.py": "def walnut(): pass\n", "b.rb": "def walnut(): pass\n"})
        do(store, found(root, store))
        everything = scan(Folders([str(root)]), {}, threading.Event()).changed
        by_name = {work.path: take(store, work) for work in everything}
        assert by_name["b.py"] is not None
        entry = by_name["b.py"]
        assert isinstance(entry, IndexEntry)
        assert entry.packed is None
        assert store.known()["a.py"].digest == store.known()["b.py"].digest != store.known()["b.rb"].digest

    @pytest.mark.slow
    def test_an_unchanged_content_is_only_touched(self, root: Path, store: Store) -> None:
        write(root, {"a.py": "def walnut(): pass\n"})
        do(store, found(root, store))
        before = store.generation()
        settle()
        (root / "a.py").touch()
        settle()
        work = found(root, store)
        assert isinstance(take(store, work[0]), Same)
        do(store, work)
        assert found(root, store) == ()
        assert store.generation() == before

    def test_a_file_changed_just_now_is_looked_at_again(self, root: Path, store: Store) -> None:
        """Its stamp cannot tell it from one changed once more in the same moment."""
        write(root, {"a.py": "one\n"})
        do(store, found(root, store))
        (root / "a.py").write_text("two\n")
        assert [work.path for work in found(root, store)] == ["a.py"]

    def test_a_file_gone_meanwhile_is_forgotten(self, root: Path, store: Store) -> None:
        write(root, {"a.py": "x = 1\n"})
        do(store, found(root, store))
        work = Work("a.py", str(root / "a.py"), b"", 0)
        (root / "a.py").unlink()
        do(store, [work])
        assert store.files() == {}

    def test_links_and_pipes_are_not_read(self, root: Path, store: Store) -> None:
        write(root, {"a.py": "x = 1\n"})
        (root / "link.py").symlink_to(root / "a.py")
        os.mkfifo(root / "pipe.py")
        assert take(store, Work("link.py", str(root / "link.py"), b"", 0)) is None
        assert take(store, Work("pipe.py", str(root / "pipe.py"), b"", 0)) is None

    @pytest.mark.parametrize(("name", "most"), [("a.json", MAX_DATA), ("a.md", 20_000), ("a.py", 200_000)])
    def test_the_words_of_data_are_kept_only_from_its_beginning(
        self, root: Path, store: Store, name: str, most: int
    ) -> None:
        write(root, {name: "#" * (most - 100) + " walnut " + "#" * 200 + " hazelnut"})
        do(store, found(root, store))
        assert store.query("SELECT count(*) FROM lexical WHERE lexical MATCH 'walnut'") == [(1,)]
        assert store.query("SELECT count(*) FROM lexical WHERE lexical MATCH 'hazelnut'") == [(int(name != "a.json"),)]

    @pytest.mark.parametrize("folder", ["cassettes", "web/__snapshots__", "vendor/x"])
    def test_of_what_a_tool_wrote_the_head_says_what_it_is(self, folder: str) -> None:
        data = "# walnut\n" + "a: b\n" * 400
        assert indexed_part(f"{folder}/a.yaml", data).startswith("# walnut\n")
        assert (
            len(indexed_part(f"{folder}/a.yaml", data))
            <= MAX_MADE
            < len(indexed_part("config/a.yaml", data))
            == len(data)
        )
        assert indexed_part(f"{folder}/a.py", data) == data

    def test_half_a_secret_at_the_end_of_the_head_is_not_kept(self) -> None:
        secret = TOKENS["github personal"](random.Random(3))
        for before in range(MAX_DATA - len(secret) - 40, MAX_DATA + 4):
            data = "x" * 30 + " " + "y" * (before - 31) + "\nkey: " + secret + "\nmore: 1\n"
            assert secret[:12] not in indexed_part("a.yaml", data)

    def test_the_language_is_part_of_the_digest(self) -> None:
        assert digest_of("a.py", b"x") == digest_of("b/c.py", b"x") != digest_of("a.js", b"x")


async def test_the_failure_of_a_process_is_raised_as_itself_and_ends_the_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    works, ended = asyncio.Event(), asyncio.Event()

    async def one_fails(*arguments: object) -> None:
        if works.is_set():
            raise BlockingIOError("no more processes")
        works.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(service, "_hand_out", one_fails)
    portions = [(Work(f"{n}", f"/{n}", b"", 1),) for n in range(2)]
    with pytest.raises(BlockingIOError, match="no more"):
        await work_off(store, portions, 2, lambda files: None)
    assert ended.is_set()


@pytest.mark.slow
class TestProcesses:
    async def test_all_files_are_done_and_counted(self, root: Path, store: Store) -> None:
        many(root, 300)
        done: list[int] = []
        await work_off(store, tuple(jobs(found(root, store))), 2, done.append)
        assert sum(done) == 300
        assert len(store.files()) == 300
        assert store.defining("f299") == ("part2/m299.py",)
        assert children() == set()

    @pytest.mark.parametrize("how", ["hang", "crash", "exit"])
    async def test_one_bad_file_is_left_out_and_remembered(
        self, root: Path, store: Store, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        many(root, 120)
        write(root, {"part0/bad.py": "def bad(): pass\n"})
        _spoil(tmp_path, monkeypatch, how)
        await work_off(store, tuple(jobs(found(root, store))), 2, lambda files: None)
        known = store.known()
        assert len(known) == 121
        assert {path for path, each in known.items() if each.note} == {"part0/bad.py"}
        assert known["part0/bad.py"].note == "failed"
        settle()
        assert "part0/bad.py" not in {work.path for work in found(root, store)}

    async def test_cancelled_it_ends_its_processes(self, root: Path, store: Store) -> None:
        many(root, 3000)
        began = asyncio.Event()
        task = asyncio.create_task(work_off(store, tuple(jobs(found(root, store))), 2, lambda files: began.set()))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() == set()
        assert 0 < len(store.files()) < 3000

    async def test_a_worker_killed_from_outside_loses_nothing_but_one_file(self, root: Path, store: Store) -> None:
        many(root, 1500)
        task = asyncio.create_task(work_off(store, tuple(jobs(found(root, store))), 2, lambda files: None))
        await asyncio.sleep(0.6)  # in the middle of the work
        for process in children():
            os.kill(process, signal.SIGKILL)
        await task
        assert len(store.files()) == 1500
        assert len([each for each in store.known().values() if each.note == "failed"]) <= 2

    def test_workers_end_with_their_parent_and_the_index_is_whole(self, root: Path, tmp_path: Path) -> None:
        many(root, 3000)
        program = textwrap.dedent("""
            import asyncio, sys, threading
            from pathlib import Path
            from codeagent_lsp.index.store import open_index
            from codeagent_lsp.index.scan import Folders, scan
            from codeagent_lsp.index.service import jobs, work_off
            store = open_index(Path(sys.argv[2]))
            work = scan(Folders([sys.argv[1]]), store.known(), threading.Event()).changed
            asyncio.run(work_off(store, tuple(jobs(work)), 2, lambda files: print(files, flush=True)))
        """)
        path = tmp_path / "index.sqlite"
        parent = subprocess.Popen(
            [sys.executable, "-c", program, str(root), str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.kill()
        parent.communicate()
        assert _none_left(str(path))
        store = open_index(path)
        known = store.files()
        assert 0 < len(known) < 3000
        do(store, found(root, store))
        assert len(store.files()) == 3000
        assert all(store.defining(f"f{n}") for n in range(0, 3000, 250))


def _spoil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Let worker processes, not this one, come to grief over `bad.py`: a module that Python loads at its start."""
    monkeypatch.setattr(service, "_environment", lambda: {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"})
    action = {
        "hang": "signal.alarm(1); import time; time.sleep(60)",
        "crash": "os.kill(os.getpid(), signal.SIGSEGV)",
        "exit": "os._exit(3)",
    }[how]
    program = f"""
        import os, signal
        import codeagent_lsp.index.parse as parse
        import codeagent_lsp.index.intake as intake
        whole = parse.find
        def find(path, text, **rest):
            if path.endswith("bad.py"):
                {action}
            return whole(path, text, **rest)
        intake.find = find
    """
    (tmp_path / "usercustomize.py").write_text(textwrap.dedent(program))
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(program))


def _none_left(word: str) -> bool:
    """Whether no worker with this argument is left, some seconds from now at the latest."""
    for _ in range(100):
        if not any("index.worker" in command and word in command for command in command_lines().values()):
            return True
        time.sleep(0.1)
    return False
