"""Files of records: private, bounded, rotated, whole after a crash, survivors of a full disk; nobody waits for them."""

from __future__ import annotations

import errno
import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.records.rotation import RotatingFile, read_records, rotated_path
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TRACE_FILE, RecordWriter, TraceWriter, read_trace
from tests.clock import processor_seconds
from tests.records.formats import CONTEXTS, PLACED, TOKENS


def test_records_are_appended_to_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "state" / "x.jsonl"
    file = RotatingFile(path, max_bytes=1000, keep=1)
    file.append(b'{"n":1}')
    file.append(b'{"n":2}')
    file.sync()
    file.close()
    assert [record["n"] for record in read_records(path)] == [1, 2]
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def test_full_files_are_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    file = RotatingFile(path, max_bytes=100, keep=2)
    for number in range(60):
        file.append(json.dumps({"n": number}).encode())
    file.close()
    assert sorted(other.name for other in tmp_path.iterdir()) == ["x.jsonl", "x.jsonl.1", "x.jsonl.2"]
    assert all(rotated_path(path, number).stat().st_size <= 100 for number in range(3))
    numbers = [record["n"] for record in read_records(path)]
    assert numbers == list(range(numbers[0], 60)) and len(numbers) > 20


def test_none_are_kept_when_none_shall_be(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "x.jsonl", max_bytes=20, keep=0)
    for number in range(9):
        file.append(json.dumps({"n": number}).encode())
    file.close()
    assert [other.name for other in tmp_path.iterdir()] == ["x.jsonl"]


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}\n{"n":3,"te')
    file = RotatingFile(path, max_bytes=1000, keep=1)
    file.append(b'{"n":4}')
    file.close()
    assert [record["n"] for record in read_records(path)] == [1, 2, 4]


@pytest.mark.parametrize("junk", [b"\0\0\0\0\n", b"[1]\n", b"\xff\xfe\n", b"{" * 100_000 + b"\n", b"\n"])
def test_strange_bytes_are_left_out(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"n":1}\n' + junk + b'{"n":2}\n')
    assert [record["n"] for record in read_records(path)] == [1, 2]


def test_a_cut_at_any_byte_keeps_what_was_whole(tmp_path: Path) -> None:
    lines = [json.dumps({"n": number}).encode() + b"\n" for number in range(4)]
    data = b"".join(lines)
    for cut in range(len(data) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(data[:cut])
        file = RotatingFile(path, max_bytes=1000, keep=1)
        file.append(b'{"n":9}')
        file.close()
        whole = data[:cut].count(b"\n")
        found = [record["n"] for record in read_records(path)]
        assert found[-1] == 9 and found[:whole] == list(range(whole))


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"

    def work(who: int) -> None:
        file = RotatingFile(path, max_bytes=2000, keep=50)
        for number in range(200):
            file.append(json.dumps({"who": who, "n": number}).encode())
        file.close()

    threads = [threading.Thread(target=work, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = list(read_records(path))
    assert len(found) == 600
    assert all([record["n"] for record in found if record["who"] == who] == list(range(200)) for who in range(3))


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / "x.jsonl").symlink_to(target)
    with pytest.raises(OSError, match="symbolic"):
        RotatingFile(tmp_path / "x.jsonl", max_bytes=10, keep=1).append(b"{}")
    assert target.read_text() == "mine"


def make(folder: Path, **more: Any) -> RecordWriter:
    return RecordWriter(folder / "x.jsonl", Sanitizer(homes=()), **({"max_bytes": 10**7, "keep": 1} | more))


def test_what_was_taken_is_written_before_close_returns(tmp_path: Path) -> None:
    records = make(tmp_path)
    for number in range(300):
        records.write({"n": number})
    records.close()
    records.write({"n": "late"})
    assert [record["n"] for record in read_records(tmp_path / "x.jsonl")] == list(range(300))
    assert not [thread for thread in threading.enumerate() if thread.name == "records"]


def test_a_writer_that_is_never_used_starts_nothing(tmp_path: Path) -> None:
    records = make(tmp_path)
    records.close()
    assert not list(tmp_path.iterdir())


def test_flush_waits_for_the_disk(tmp_path: Path) -> None:
    records = make(tmp_path, durable=True)
    records.write({"n": 1})
    assert records.flush()
    assert len(list(read_records(tmp_path / "x.jsonl"))) == 1
    records.close()


def test_a_full_disk_is_told_once_and_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, full = os.write, threading.Event()
    full.set()

    def write(handle: int, data: bytes) -> int:
        if full.is_set():
            real(handle, data[:3])  # what a full disk does: a part, then nothing
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", write)
    records = make(tmp_path)
    for number in range(5):
        records.write({"n": number})
    assert records.flush()
    full.clear()
    records.write({"n": 5})
    records.close()
    assert caplog.messages == ["x.jsonl is not written: No space left on device"]
    assert [record["n"] for record in read_records(tmp_path / "x.jsonl")] == [5]


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    records = make(tmp_path / "file")
    records.write({"n": 1})
    records.write({"n": 2})
    records.close()
    assert len(caplog.messages) == 1


def test_too_many_records_are_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.records.trace.MOST_WAITING", 3)
    held = threading.Event()

    class Slow(Sanitizer):
        def sanitize(self, value: Any) -> Any:
            held.wait(5)
            return value

    records = RecordWriter(tmp_path / "x.jsonl", Slow(), max_bytes=10**6, keep=1)
    for number in range(50):
        records.write({"n": number})
    held.set()
    records.close()
    found = list(read_records(tmp_path / "x.jsonl"))
    dropped = sum(record["count"] for record in found if record.get("type") == "dropped")
    assert dropped > 40 and dropped + sum("n" in record for record in found) == 50


def test_a_huge_or_odd_record_leaves_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.records.trace.LONGEST_RECORD", 100)
    records = make(tmp_path)
    records.write({"type": "request", "ts": 1.5, "data": "word " * 100})
    records.write({"type": "odd", "data": object()})
    records.close()
    huge, odd = read_records(tmp_path / "x.jsonl")
    assert (huge["type"], huge["ts"], huge["too_large"] > 400, "data" in huge) == ("request", 1.5, True, False)
    assert odd["data"] == "<object>"


@pytest.mark.slow
def test_taking_a_record_takes_no_time(tmp_path: Path) -> None:
    records = make(tmp_path)
    text = "word " * 200_000
    with processor_seconds(0.1):
        records.write({"n": text})
    records.close(30)


@pytest.mark.slow
def test_no_secret_reaches_a_file(tmp_path: Path) -> None:
    rng = random.Random(4)
    own = "own-" + "key-" + TOKENS["npm"](rng)[4:]
    sane = Sanitizer(secrets=[own], homes=())
    trace = TraceWriter(tmp_path, sane, max_bytes=50_000, keep=9)
    audit = RecordWriter(tmp_path / "audit", sane, max_bytes=10**7, keep=1, durable=True)
    secrets = [own]
    for frame in CONTEXTS.values():
        for make_secret in TOKENS.values():
            secrets.append(make_secret(rng))
            text = frame.format(secrets[-1])
            trace.event({"type": "tool_result", "session_id": "s" * 20, "run_id": "r1", "output": text})
            trace.request("s" * 20, "r1", {"messages": [{"role": "user", "content": f"{text} {own}"}]})
            audit.write({"type": "command", "command": text, "cwd": "/x"})
    for frame, make_secret in PLACED.values():
        secrets.append(make_secret(rng))
        trace.reply(
            "s" * 20, "r1", {"content": frame.format(secrets[-1]), "nested": [{"a": (frame.format(secrets[-1]),)}]}
        )
        audit.write({"type": "asked", "task": frame.format(secrets[-1])})
    trace.close(60)
    audit.close(60)
    written = "".join(
        json.dumps(record, ensure_ascii=False)
        for name in (TRACE_FILE, "audit")
        for record in read_records(tmp_path / name)
    )
    raw = "".join(path.read_text() for path in tmp_path.iterdir())
    assert len(raw) > 100_000
    pieces = [secret[start : start + 12] for secret in secrets for start in (8, len(secret) // 2)]
    assert len(secrets) > 900 and not [piece for piece in pieces if len(piece) > 7 and piece in written]


def test_the_trace_is_read_by_session_run_and_number(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, Sanitizer(homes=()))
    for number in range(6):
        trace.event(
            {"type": "status", "session_id": f"session-{number % 2}-abcd", "run_id": f"run{number % 3}", "seq": number}
        )
    assert trace.flush()
    trace.close()

    def numbers(**choice: Any) -> list[int]:
        return [record["data"]["seq"] for record in read_trace(tmp_path, **choice)]

    assert numbers() == [0, 1, 2, 3, 4, 5]
    assert numbers(last=2) == [4, 5] and numbers(last=0) == []
    assert numbers(run="run1") == [1, 4]
    assert len(numbers(session="session-1-abcd")) == 6  # both show the same ends
    assert numbers(session="another-session") == []


def test_text_that_comes_in_pieces_is_recorded_whole(tmp_path: Path) -> None:
    secret = TOKENS["npm"](random.Random(1))
    trace = TraceWriter(tmp_path, Sanitizer(homes=()))
    for piece in ("see ", secret[:9], secret[9:], " there"):
        for run in ("r1", "r2"):
            trace.event({"type": "token", "session_id": "s", "run_id": run, "content": piece})
    trace.event({"type": "status", "session_id": "s", "run_id": "r1", "message": "done"})
    trace.close()
    found = [(record["run_id"], record["data"]) for record in read_trace(tmp_path)]
    assert [(run, data["type"]) for run, data in found] == [("r1", "token"), ("r1", "status"), ("r2", "token")]
    assert found[0][1]["content"] == found[2][1]["content"]
    assert found[0][1]["content"].startswith("see <secret:") and found[0][1]["content"].endswith("> there")


def test_long_output_is_cut_between_lines(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, Sanitizer(homes=()))
    text = "".join(f"line {number}\n" for number in range(30_000))
    for start in range(0, len(text), 1000):
        trace.event({"type": "stdout", "run_id": "r", "content": text[start : start + 1000]})
    trace.close(30)
    pieces = [record["data"]["content"] for record in read_trace(tmp_path)]
    assert "".join(pieces) == text and len(pieces) > 3 and all(piece.endswith("\n") for piece in pieces)
