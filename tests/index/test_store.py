"""The store: what is written is read, damage heals, readers and writers do not meet, companions are kept in step."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from codeagent_lsp.index.store import IndexEntry, Known, Stamp, Store
from codeagent_lsp.index.symbols import FileTags, Import, Reference, SymbolInfo, pack


def tags(path: str, name: str = "f", used: str = "g") -> FileTags:
    return FileTags(
        "python",
        (SymbolInfo(name, "function", path, 1, 3, f"def {name}()", "Doc."),),
        (Reference(used, 2, True, name), Reference(used, 9)),
        (Import("os", ("path",), 1),),
    )


class Words:
    """A companion that notes what it is given."""

    def __init__(self, version: str = "1") -> None:
        self.version = version

    def create(self, db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE words (ident INTEGER PRIMARY KEY, text TEXT)")

    def prepare(self, path: str, tags: FileTags, text: str) -> object:
        return f"{path} {len(tags.symbols)} {text}"

    def put(self, db: sqlite3.Connection, ident: int, prepared: object) -> None:
        db.execute("REPLACE INTO words VALUES (?, ?)", (ident, prepared))

    def drop(self, db: sqlite3.Connection, ident: int) -> None:
        db.execute("DELETE FROM words WHERE ident = ?", (ident,))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state" / "index.sqlite")


class TestReading:
    def test_a_new_store_is_empty(self, store: Store) -> None:
        assert store.files() == {}
        assert store.tags("a.py") is None
        assert [*store.defined(), *store.used(), *store.definitions(), *store.all_tags()] == []
        assert store.digest("a.py") == b""

    def test_what_is_written_is_read(self, store: Store) -> None:
        store.replace("b.py", b"2", tags("b.py", "h", "f"), "")
        store.replace("a.py", b"1", tags("a.py"), "")
        assert store.files() == {"a.py": b"1", "b.py": b"2"}
        assert store.tags("a.py") == tags("a.py")
        assert list(store.all_tags()) == [("a.py", tags("a.py")), ("b.py", tags("b.py", "h", "f"))]
        assert [(path, [s.name for s in symbols]) for path, symbols in store.definitions()] == [
            ("a.py", ["f"]), ("b.py", ["h"])
        ]  # fmt: skip
        assert list(store.defined()) == [("a.py", ("f",)), ("b.py", ("h",))]
        assert list(store.used()) == [("a.py", {"g": 2}), ("b.py", {"f": 2})]

    def test_who_defines_and_who_uses_a_name(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py", "größe", "x_y"), "")
        store.replace("b.py", b"2", tags("b.py", "x_y", "größe"), "")
        assert (store.defining("größe"), store.using("größe")) == (("a.py",), ("b.py",))
        assert (store.defining("x_y"), store.using("x_y")) == (("b.py",), ("a.py",))
        assert store.using("y") == store.defining("x") == store.using('"') == ()

    def test_the_same_content_at_two_paths_is_kept_once(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py"), "")
        store.write([IndexEntry("sub/b.py", b"1", None)])
        assert store.tags("sub/b.py") == tags("sub/b.py")
        assert store.query("SELECT count(*) FROM contents") == [(1,)]

    def test_more_files_than_a_piece_are_all_read(self, store: Store) -> None:
        packed = pack(tags("x"))
        store.write(IndexEntry(f"{number:05}.py", b"1", packed) for number in range(1203))
        assert [path for path, _ in store.defined()] == [f"{number:05}.py" for number in range(1203)]


class TestWriting:
    def test_a_replaced_file_has_its_new_tags(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py", "old"), "")
        store.replace("a.py", b"2", tags("a.py", "new"), "")
        assert (store.defining("old"), store.defining("new")) == ((), ("a.py",))

    def test_a_removed_file_is_gone_and_its_content_still_known(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py"), "")
        store.remove("a.py")
        assert store.files() == {}
        assert store.content(b"1") == pack(tags("a.py"))
        store.remove("never.py")

    def test_an_entry_for_an_unknown_content_without_tags_is_passed_over(self, store: Store) -> None:
        store.write([IndexEntry("a.py", b"unknown", None)])
        assert store.files() == {}

    def test_every_change_is_a_new_generation(self, store: Store) -> None:
        seen = [store.generation()]
        store.replace("a.py", b"1", tags("a.py"), "")
        seen.append(store.generation())
        store.remove("a.py")
        seen.append(store.generation())
        store.clear()
        seen.append(store.generation())
        assert len(set(seen)) == 4

    def test_a_new_stamp_is_no_change(self, store: Store) -> None:
        store.write([IndexEntry("a.py", b"1", pack(tags("a.py")), note="failed")])
        before = store.generation()
        store.touch({"a.py": Stamp(1, 2, 3), "gone.py": Stamp(4, 5, 6)})
        assert store.generation() == before
        assert store.known() == {"a.py": Known(b"1", Stamp(1, 2, 3), "failed")}

    def test_a_failed_write_changes_nothing(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py"), "")

        def entries() -> list[IndexEntry]:
            raise InterruptedError

        with pytest.raises(InterruptedError):
            store.write((entry for entry in [*[IndexEntry("b.py", b"1", None)], *entries()]), ["a.py"])
        assert set(store.files()) == {"a.py"}

    def test_contents_without_a_file_go_when_they_are_many(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("codeagent_lsp.index.store._SPARE", 2)
        for number in range(6):
            store.replace("a.py", bytes([number]), tags("a.py"), "")
        store.tidy()
        assert store.query("SELECT digest FROM contents") == [(bytes([5]),)]
        assert store.tags("a.py") == tags("a.py")


class TestCompanions:
    def test_they_are_given_every_change(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "i", (Words(),))
        store.replace("a.py", b"1", tags("a.py"), "one")
        (first,) = store.query("SELECT ident, text FROM words")
        store.replace("a.py", b"2", FileTags(""), "two")
        assert store.query("SELECT ident, text FROM words") == [(first[0], "a.py 0 two")]
        assert first[1] == "a.py 1 one"
        store.remove("a.py")
        assert store.query("SELECT * FROM words") == []

    def test_another_version_begins_anew(self, tmp_path: Path) -> None:
        Store(tmp_path / "i", (Words("1"),)).replace("a.py", b"1", tags("a.py"), "")
        assert Store(tmp_path / "i", (Words("1"),)).files() != {}
        assert Store(tmp_path / "i", (Words("2"),)).files() == {}

    def test_a_wrong_question_is_an_error(self, store: Store) -> None:
        with pytest.raises(sqlite3.OperationalError):
            store.query("SELECT nothing FROM files")


class TestDamage:
    @pytest.mark.parametrize("damage", ["garbage", "cut", "empty", "other", "hole"])
    @pytest.mark.parametrize("when", ["closed", "open"])
    def test_a_damaged_file_is_begun_anew(self, tmp_path: Path, damage: str, when: str) -> None:
        path = tmp_path / "index.sqlite"
        store = Store(path)
        store.write(IndexEntry(f"{number}.py", bytes([number]), pack(tags("x", f"f{number}"))) for number in range(200))
        store.close()
        if when == "open":
            store.files()
        _damage(path, damage)
        fresh = store if when == "open" else Store(path)
        list(fresh.all_tags())
        fresh.replace("new.py", b"n", tags("new.py"), "")
        assert fresh.tags("new.py") == tags("new.py")
        assert Store(path).tags("new.py") == tags("new.py")

    def test_damaged_tags_are_seen(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py"), "")
        store.close()
        with sqlite3.connect(store.path) as db:
            db.execute("UPDATE contents SET outline = 'junk'")
        db.close()
        assert store.tags("a.py") is None
        assert store.files() == {}

    def test_a_file_taken_away_while_open_is_made_again(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py"), "")
        for each in store.path.parent.iterdir():
            each.unlink()
        assert store.files() == {}
        store.replace("a.py", b"1", tags("a.py"), "")
        assert store.files() == {"a.py": b"1"}

    def test_one_that_cannot_be_written_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(OSError):
            Store(tmp_path / "file" / "index").files()


class TestTogether:
    def test_threads_read_while_one_writes(self, store: Store) -> None:
        store.replace("a.py", b"1", tags("a.py"), "")
        stop = threading.Event()
        seen: list[object] = []

        def read() -> None:
            while not stop.is_set():
                seen.append(store.tags("a.py"))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(50):
            store.replace("b.py", bytes([number]), tags("b.py", f"f{number}"), "")
        stop.set()
        for reader in readers:
            reader.join()
        assert len(seen) >= 3
        assert all(each == tags("a.py") for each in seen)

    def test_two_stores_on_one_file_see_each_other(self, store: Store) -> None:
        other = Store(store.path)
        store.replace("a.py", b"1", tags("a.py"), "")
        assert other.files() == {"a.py": b"1"}
        other.clear()
        assert store.files() == {}
        store.replace("b.py", b"2", tags("b.py"), "")
        assert other.files() == {"b.py": b"2"}

    @pytest.mark.slow
    def test_a_writer_killed_at_any_moment_leaves_whole_transactions(self, tmp_path: Path) -> None:
        path = tmp_path / "index.sqlite"
        program = (
            "import sys, itertools; from pathlib import Path\n"
            "from codeagent_lsp.index.store import Store, IndexEntry\n"
            "from codeagent_lsp.index.symbols import RawTags, pack_found\n"
            "store = Store(Path(sys.argv[1])); print(flush=True)\n"
            "for n in itertools.count():\n"
            "    store.write(IndexEntry(f'{i}.py', b'%d' % n, pack_found(RawTags(str(n)))) for i in range(20))\n"
        )
        for delay in (0.0, 0.01, 0.05, 0.2):
            writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(delay)
            os.kill(writer.pid, signal.SIGKILL)
            writer.communicate()
            files = Store(path).files()
            assert len(files) in (0, 20)
            assert len(set(files.values())) <= 1


def _damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    page = 4096
    changed = {
        "garbage": os.urandom(len(data)),
        "cut": data[: len(data) // 2],
        "empty": b"",
        "other": b"SQLite format 3\0" + bytes(5000),
        "hole": data[:page] + bytes(len(data) - page),
    }[how]
    path.write_bytes(changed)
