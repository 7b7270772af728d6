"""Session files: append-only, whole after any cut, private, and never a reason to stop."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.store import SessionStore, parse


def record(number: int) -> dict[str, Any]:
    return {"type": "status", "n": number, "text": "a\nb\0c 🎉 \ud800 " * (number % 4)}


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "state" / "sessions")


def file_of(store: SessionStore, tmp_path: Path, name: str = "s") -> Path:
    return tmp_path / "state" / "sessions" / f"{name}.jsonl"


def test_what_is_appended_is_loaded(store: SessionStore, tmp_path: Path) -> None:
    for number in range(10):
        store.append("s", record(number))
    assert store.load("s") == [record(number) for number in range(10)]
    store.close()
    SessionStore(tmp_path / "state" / "sessions").append("s", record(10))
    assert len(store.load("s")) == 11


@pytest.mark.slow
def test_every_byte_prefix_loads_its_complete_records(store: SessionStore, tmp_path: Path) -> None:
    ends = [0]
    for number in range(160):
        store.append("s", record(number))
        ends.append(file_of(store, tmp_path).stat().st_size)
    data = file_of(store, tmp_path).read_bytes()
    assert len(data) > 10_000
    complete = 0
    for cut in range(len(data) + 1):
        while complete + 1 < len(ends) and ends[complete + 1] <= cut:
            complete += 1
        if cut in (ends[complete], ends[complete] + 1) or cut % 11 == 0:
            assert len(parse(data[:cut])) == complete


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_tail_is_cut_before_the_first_append(store: SessionStore, tmp_path: Path, cut: int) -> None:
    store.append("s", record(1))
    store.append("s", record(3))
    store.close()
    path = file_of(store, tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    fresh = SessionStore(path.parent)
    fresh.append("s", record(2))
    assert fresh.load("s") == [record(1), record(2)]


def test_a_long_torn_tail_and_a_file_that_is_one(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"n":1}\n' + b"x" * 200_000)
    store = SessionStore(tmp_path)
    store.append("s", {"n": 2})
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'
    other = tmp_path / "t.jsonl"
    other.write_bytes(b"x" * 200_000)
    store.append("t", {"n": 3})
    assert other.read_bytes() == b'{"n":3}\n'


@pytest.mark.parametrize(
    "junk",
    [b"\0" * 4096, b"\0" * 4096 + b"\n", b"not json\n", b"[1]\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"\n\n"],
)
def test_junk_between_records_is_skipped(junk: bytes) -> None:
    assert parse(b'{"a":1}\n' + junk + b'{"a":2}\n') == [{"a": 1}, {"a": 2}]


def test_files_and_folder_are_the_users_alone(store: SessionStore, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store.append("s", record(1))
    finally:
        os.umask(before)
    path = file_of(store, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "a.b", "a\0b", "..", "x" * 65, "é", "a b", "a\n", "/etc/passwd"])
def test_ids_cannot_leave_the_folder(store: SessionStore, tmp_path: Path, bad: str) -> None:
    for use in (store.load, store.delete, store.claim, lambda name: store.append(name, {})):
        with pytest.raises(SessionError):
            use(bad)
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "s.jsonl").symlink_to(target)
    problems: list[OSError] = []
    SessionStore(tmp_path, problems.append).append("s", record(1))
    assert target.read_text() == ""
    assert len(problems) == 1


def test_listing_is_newest_first_and_skips_what_is_not_ours(store: SessionStore, tmp_path: Path) -> None:
    assert store.list() == []
    for number, name in enumerate(("old", "new")):
        store.append(name, record(1))
        os.utime(file_of(store, tmp_path, name), (number, number))
    file_of(store, tmp_path, "not ours").write_text("")
    file_of(store, tmp_path, "gone").symlink_to(tmp_path / "nowhere")
    assert [item.session_id for item in store.list()] == ["new", "old"]
    assert store.list()[0].size > 0


def test_a_deleted_session_stays_deleted_whatever_is_still_written(store: SessionStore, tmp_path: Path) -> None:
    store.append("s", record(1))
    store.delete("s")
    store.append("s", record(2))
    assert not file_of(store, tmp_path).exists()
    for use in (store.load, store.delete):
        with pytest.raises(SessionError) as caught:
            use("s")
        assert caught.value.key == "session.unknown"


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problems: list[OSError] = []
    store = SessionStore(tmp_path / "file" / "sessions", problems.append)
    store.claim("s")
    for number in range(5):
        store.append("s", record(number))
    assert len(problems) == 1


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("gone", ["state/sessions/s.jsonl", "state/sessions", "state"])
def test_what_is_removed_meanwhile_is_made_anew_and_told(tmp_path: Path, gone: str, moved: bool) -> None:
    told: list[None] = []
    store = SessionStore(tmp_path / "state" / "sessions", on_restored=lambda: told.append(None))
    for number in range(9):
        store.append("s", record(number))
        store.append("other", record(number))
        if number in (3, 6):
            place = tmp_path / gone
            if moved:
                place.rename(tmp_path / f"elsewhere{number}")
            else:
                shutil.rmtree(place) if place.is_dir() else place.unlink()
    assert store.load("s") == [record(number) for number in range(9)]
    assert store.load("other") == [record(number) for number in range(9)]
    assert len(told) == (2 if gone.endswith(".jsonl") else 4)
    assert file_of(store, tmp_path).stat().st_mode & 0o777 == 0o600
    if gone == "state":
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    with pytest.raises(SessionError):
        SessionStore(tmp_path / "state" / "sessions").claim("s")  # still locked


def test_a_read_only_folder_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> int:
        raise PermissionError(13, "read-only")

    problems: list[OSError] = []
    store = SessionStore(tmp_path, problems.append)
    monkeypatch.setattr(os, "open", refuse)  # root may write anywhere, so the system call is made to refuse
    store.append("s", record(1))
    store.append("s", record(2))
    assert [type(problem) for problem in problems] == [PermissionError]


FULL = """
import resource, signal, sys
from pathlib import Path
from codeagent_lsp.session.store import SessionStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
problems = []
store = SessionStore(Path(sys.argv[1]), problems.append)
for number in range(50):
    store.append("s", {"n": number, "text": "x" * 30})
print(len(problems))
"""


def test_a_full_disk_is_told_once_and_whole_records_stay(tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE is not None
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "1", done.stderr
    path = tmp_path / "s.jsonl"
    written = parse(path.read_bytes())
    assert [item["n"] for item in written] == list(range(len(written)))
    assert len(written) > 10
    SessionStore(tmp_path).append("s", {"n": "after"})
    assert parse(path.read_bytes()) == [*written, {"n": "after"}]


BUSY = """
import sys
from pathlib import Path
from codeagent_lsp.session.store import SessionStore
store = SessionStore(Path(sys.argv[1]))
store.append("s", {"n": 1})
print("ready", flush=True)
sys.stdin.read()
"""


def test_two_processes_on_one_session(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        store = SessionStore(tmp_path)
        for use in (store.claim, store.delete, lambda name: store.append(name, {"n": 2})):
            with pytest.raises(SessionError) as caught:
                use("s")
            assert caught.value.key == "session.busy"
        store.append("t", {"n": 3})
        other.communicate("")
    store.append("s", {"n": 4})
    assert parse((tmp_path / "s.jsonl").read_bytes()) == [{"n": 1}, {"n": 4}]


def test_a_released_session_may_be_taken_by_another_store(tmp_path: Path) -> None:
    one, two = SessionStore(tmp_path), SessionStore(tmp_path)
    one.append("s", {"n": 1})
    with pytest.raises(SessionError):
        two.claim("s")
    one.release("s")
    two.claim("s")
    two.close()


def test_lines_are_json_one_each(store: SessionStore, tmp_path: Path) -> None:
    store.append("s", record(3))
    raw = file_of(store, tmp_path).read_bytes()
    assert raw.count(b"\n") == 1
    assert raw.isascii()
    assert json.loads(raw) == record(3)
