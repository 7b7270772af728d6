"""Files of records while others put them aside, are killed, or have damaged them."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codeagent_lsp.records.rotation import RotatingFile, read_records, rotated_path
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TRACE_FILE, TraceWriter, read_trace
from codeagent_lsp.state import STATE_VARIABLE, workspace_state
from codeagent_lsp.terminal.reports import followed, print_record, show_trace

ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import json, sys
from pathlib import Path
from codeagent_lsp.records.rotation import RotatingFile
file = RotatingFile(Path(sys.argv[1]), max_bytes=3000, keep=400)
for number in range(10**9):
    file.append(json.dumps({"who": sys.argv[2], "n": number, "pad": "x" * (number % 97)}).encode())
    if number == 200:
        print("busy", flush=True)
"""


def line(number: int, pad: int = 0) -> bytes:
    return json.dumps({"n": number, "pad": "x" * pad}).encode()


def numbers(path: Path) -> list[int]:
    return [record["n"] for record in read_records(path)]


# --- others write the same file


def test_a_file_that_another_process_has_put_aside_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    mine, other = (RotatingFile(path, max_bytes=10**6, keep=3) for _ in range(2))
    mine.append(line(1))
    path.rename(rotated_path(path, 1))
    other.append(line(2))
    mine.append(line(3))
    assert [record["n"] for record in read_records(path)] == [1, 2, 3]
    assert rotated_path(path, 1).read_bytes().count(b"\n") == 1
    mine.close()
    other.close()


def test_a_file_that_was_removed_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    file = RotatingFile(path, max_bytes=100, keep=1)
    file.append(line(1))
    path.unlink()
    file.append(line(2))
    file.close()
    assert numbers(path) == [2]


def test_a_file_that_restores_is_made_again_with_what_was_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "state"
    path = folder / "x.jsonl"
    mine, other = (RotatingFile(path, max_bytes=10**6, keep=1, restores=True) for _ in range(2))
    mine.append(line(1))
    other.append(line(2))
    for number in (3, 5):
        shutil.rmtree(folder.parent)
        mine.append(line(number))
        other.append(line(number + 1))
    assert numbers(path) == [1, 2, 3, 4, 5, 6]
    assert [stat.S_IMODE(place.stat().st_mode) for place in (path, folder, folder.parent)] == [0o600, 0o700, 0o700]
    mine.close()
    other.close()


def test_only_one_of_two_puts_a_full_file_aside(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    files = [RotatingFile(path, max_bytes=64, keep=50) for _ in range(2)]
    for number in range(40):
        files[number % 2].append(line(number))
    for file in files:
        file.close()
    assert numbers(path) == list(range(40))
    aside = [rotated_path(path, number) for number in range(1, 51) if rotated_path(path, number).exists()]
    assert all(other.stat().st_size > 32 for other in aside)


@pytest.mark.slow
def test_whoever_reads_meanwhile_sees_whole_records_in_order(tmp_path: Path) -> None:
    path, done = tmp_path / "x.jsonl", threading.Event()

    def write() -> None:
        file = RotatingFile(path, max_bytes=500, keep=4)
        for number in range(1500):
            file.append(line(number, number % 40))
        file.close()
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    rounds = 0
    while not done.is_set():
        seen = numbers(path)
        assert len(seen) == len([number for number in seen if 0 <= number < 1500])
        rounds += 1
    thread.join()
    assert rounds > 0
    assert numbers(path)[-1] == 1499


@pytest.mark.slow
def test_killed_writers_leave_whole_records_and_others_go_on(tmp_path: Path) -> None:
    path, chance = tmp_path / "x.jsonl", random.Random(4)
    for number in range(6):
        command = [sys.executable, "-c", WORKER, str(path), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            time.sleep(chance.random() * 0.05)
            worker.send_signal(signal.SIGKILL)
    found = list(read_records(path))
    for number in range(6):
        mine = [record["n"] for record in found if record["who"] == str(number)]
        assert mine == list(range(mine[0], mine[-1] + 1))
        assert mine[-1] >= 200 or number == 0
    raw = b"".join(
        rotated_path(path, number).read_bytes() for number in range(401) if rotated_path(path, number).exists()
    )
    assert raw.count(b"\n") - len(found) <= 6  # at most one torn line each
    file = RotatingFile(path, max_bytes=10**6, keep=400)
    file.append(line(-1))
    file.close()
    assert numbers(path)[-1] == -1


# --- sizes


def test_a_line_longer_than_a_file_stands_in_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    file = RotatingFile(path, max_bytes=100, keep=3)
    for number in (1, 2, 3):
        file.append(line(number, 5000 if number == 2 else 0))
    file.close()
    assert numbers(path) == [1, 2, 3]
    assert [rotated_path(path, number).read_bytes().count(b"\n") for number in range(3)] == [1, 1, 1]


def test_what_was_kept_by_a_larger_setting_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for number in (9, 3, 1, 0):
        rotated_path(path, number).write_bytes(line(100 - number) + b"\n")
    for name in ("x.jsonl.bak", "x.jsonl.", "x.jsonl.1.gz", "y.jsonl.1"):
        (tmp_path / name).write_bytes(line(5) + b"\n")
    assert numbers(path) == [91, 97, 99, 100]


def test_a_folder_in_place_of_a_file_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(line(1) + b"\n")
    rotated_path(path, 1).mkdir()
    assert numbers(path) == [1]


# --- a damaged trace


DAMAGE = {
    "nothing": b"",
    "NULs": b"\0" * 4096,
    "binary": os.urandom(4096),
    "half a record": b'{"type": "event", "data": {"mess',
    "a record in latin-1": '{"type": "événement"}\n'.encode("latin-1"),
    "very deep": b"[" * 50_000 + b"\n",
    "a very long line": b'{"type": "event", "data": {"type": "status", "message": "' + b"y" * 3_000_000 + b'"}}\n',
    "no newlines": b"x" * 100_000,
    "odd types": b'{"type": 5, "ts": "soon", "session": [], "run_id": {}, "data": "text"}\n',
    "lines of another system": b'{"type": "event", "data": {"type": "status"}}\r\n',
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_trace_is_shown_as_far_as_it_goes(
    folder: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state = workspace_state([str(folder.resolve())])
    trace = TraceWriter(state, Sanitizer())
    trace.event({"type": "status", "run_id": "r", "message": "before it"})
    trace.close()
    with (state / TRACE_FILE).open("ab") as file:
        file.write(DAMAGE[damage])
    trace = TraceWriter(state, Sanitizer())
    trace.event({"type": "status", "run_id": "r", "message": "after it"})
    trace.close()
    assert show_trace(str(folder)) == 0
    out = capsys.readouterr().out
    assert "before it" in out
    assert "after it" in out
    assert len(out) < 5000
    assert [record["data"]["message"] for record in read_trace(state, run="r", last=1)] == ["after it"]


@pytest.mark.slow
def test_all_kinds_of_json_are_shown_on_a_line() -> None:
    rng = random.Random(5)

    def anything(depth: int = 0) -> Any:
        plain = [None, True, 5, -1.5, "text\x1b[31m\n", "", "y" * 5000, float("inf")]
        if depth > 3 or rng.random() < 0.5:
            return rng.choice(plain)
        names = ["type", "data", "messages", "ts", "run_id", "model", "x"]
        made = {rng.choice(names): anything(depth + 1) for _ in range(4)}
        return made if rng.random() < 0.5 else list(made.values())

    for _ in range(300):
        out = io.StringIO()
        record = {"type": rng.choice(["event", "request", "reply", 5]), "data": anything(), "ts": anything(3)}
        print_record(record, Console(file=out, width=200), Sanitizer())
        assert out.getvalue().count("\n") == 1
        assert "\x1b" not in out.getvalue()
        assert len(out.getvalue()) < 600


def test_a_trace_that_is_cut_short_is_followed_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / TRACE_FILE
    path.write_bytes((line(0) + b"\n") * 50)
    steps = iter(range(10))

    def wait(_: float) -> None:
        step = next(steps)
        if step == 0:
            path.write_bytes(line(1) + b"\n")
        elif step == 1:
            path.unlink()
        elif step == 2:
            path.write_bytes(b"junk\n" + line(2) + b"\n")

    stream = followed(path, wait)
    assert [next(stream)["n"] for _ in range(2)] == [1, 2]
