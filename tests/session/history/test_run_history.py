"""The list of recorded runs and the search over them: made from the session files, and never behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.session.history.listing import history_in, listed
from codeagent_lsp.session.history.run_history import RunHistory
from codeagent_lsp.session.store import SessionStore


@pytest.fixture
def history(tmp_path: Path) -> Iterator[RunHistory]:
    made = history_in(tmp_path)
    yield made
    made.close()


def record(folder: Path, session: str, *lines: dict[str, Any]) -> None:
    place = folder / "sessions"
    place.mkdir(exist_ok=True)
    with (place / f"{session}.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def started(run_id: str, task: str, ts: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"type": "run_started", "run_id": run_id, "task": task, "title": task, "ts": ts, **more}


def message(run_id: str, content: str, role: str = "assistant", **more: Any) -> dict[str, Any]:
    return {"type": "message", "run_id": run_id, "ts": 2.0, "message": {"role": role, "content": content, **more}}


def names(history: RunHistory, query: str) -> list[str]:
    return [found.run.run_id for found in history.search(query, 10)]


def test_runs_are_listed_with_what_is_known_of_them(tmp_path: Path, history: RunHistory) -> None:
    usage = {"type": "usage", "run_id": "r1", "prompt_tokens": 100, "completion_tokens": 20, "cost": 0.5, "ts": 3}
    usage["cached_tokens"] = 83
    step = {"type": "step_started", "run_id": "r1", "description": "second step", "ts": 3}
    end = {"type": "run_completed", "run_id": "r1", "status": "stopped", "ts": 4}
    record(tmp_path, "s1", started("r1", "repair it"), usage, usage, step, end)
    record(tmp_path, "s2", started("r2", "another", ts=9), {"type": "task_queued", "run_id": "r3", "title": "later"})
    one, two, three = sorted(history.runs(10), key=lambda run: run.run_id)
    assert (one.title, one.status, one.tokens, one.cost, one.step) == ("repair it", "stopped", 240, 1.0, "second step")
    assert listed(one)["cachedPercent"] == 83
    assert "cachedPercent" not in listed(two)
    assert (two.status, three.status, three.title) == ("running", "queued", "later")
    assert [run.run_id for run in history.runs(1)] == ["r2"]


def test_a_run_with_attempts_is_listed_with_what_they_used(tmp_path: Path, history: RunHistory) -> None:
    own = {"type": "usage", "run_id": "r1", "prompt_tokens": 10, "completion_tokens": 2, "cost": 0.1, "ts": 3}
    whole = {"prompt_tokens": 310, "completion_tokens": 62, "cost": 0.7}
    end = {"type": "run_completed", "run_id": "r1", "status": "completed", "ts": 4, "usage": whole}
    record(tmp_path, "s1", started("r1", "three tries"), own, end)
    (run,) = history.runs(10)
    assert (run.tokens, run.cost) == (372, 0.7)


def test_it_is_never_behind_the_files(tmp_path: Path, history: RunHistory) -> None:
    record(tmp_path, "s1", started("r1", "the first task"))
    assert names(history, "first") == ["r1"]
    record(tmp_path, "s1", message("r1", "the answer is forty-two"), started("r2", "the second task"))
    assert names(history, "forty-two") == ["r1"]
    assert names(history, "second") == ["r2"]
    with (tmp_path / "sessions" / "s1.jsonl").open("a") as file:
        file.write('{"type": "run_started", "run_id": "r3", "task": "half')  # its newline is still to come
    assert names(history, "half") == []
    with (tmp_path / "sessions" / "s1.jsonl").open("a") as file:
        file.write(' a line", "ts": 5}\n')
    assert names(history, "half") == ["r3"]


def test_what_is_deleted_is_forgotten(tmp_path: Path, history: RunHistory) -> None:
    record(tmp_path, "s1", started("r1", "confidential matter"))
    assert names(history, "confidential") == ["r1"]
    (tmp_path / "sessions" / "s1.jsonl").unlink()
    assert names(history, "confidential") == []
    history.close()
    assert not any(b"confidential" in path.read_bytes() for path in tmp_path.glob("runs.sqlite*"))


def test_a_file_that_became_shorter_is_read_anew(tmp_path: Path, history: RunHistory) -> None:
    record(tmp_path, "s1", started("r1", "one"), started("r2", "two"))
    assert len(history.runs(10)) == 2
    (tmp_path / "sessions" / "s1.jsonl").write_text(json.dumps(started("r9", "nine")) + "\n")
    assert [run.run_id for run in history.runs(10)] == ["r9"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("login page", ["r1"]),
        ("LOGIN", ["r1"]),
        ("log", ["r1"]),
        ("parse_config", ["r2"]),
        ("登录", ["r3"]),
        ("修复 页面", ["r3"]),
        ("页登", []),
        ("größe", ["r4"]),
        ("app.py", ["r2"]),
        ("nobody", []),
        ("", []),
        ('"', []),
        ("AND OR NOT *", []),
        ("login nobody", ["r1"]),
        ("note", []),
    ],
)
def test_words_are_found(tmp_path: Path, history: RunHistory, query: str, found: list[str]) -> None:
    record(
        tmp_path,
        "s1",
        started("r1", "Repair the login page"),
        message("r1", "a note of the program", "user", name="note"),
        started("r2", "why?"),
        message("r2", "parse_config reads it"),
        {"type": "file_change", "run_id": "r2", "path": "/w/app.py"},
        started("r3", "修复登录页面的错误"),
        started("r4", "die Größe der Schrift"),
    )
    assert names(history, query) == found


def test_the_excerpt_shows_where(tmp_path: Path, history: RunHistory) -> None:
    record(tmp_path, "s1", started("r1", "a" * 500 + " 修复登录页面 needle " + "b" * 500))
    (found,) = history.search("needle", 5)
    assert "修复登录页面 needle" in found.excerpt
    assert len(found.excerpt) < 200


def test_damage_and_nonsense_are_survived(tmp_path: Path, history: RunHistory) -> None:
    record(tmp_path, "s1", started("r1", "fine"))
    with (tmp_path / "sessions" / "s1.jsonl").open("ab") as file:
        file.write(b'\0\0\0\nnot json\n[1]\n{"type": "message", "run_id": "r1", "message": "x"}\n{"run_id": 5}\n')
        file.write(b'{"type": "usage", "run_id": "r1", "cost": "x"}\n{"type": "run_started", "ts": "later"}\n')
    assert [run.run_id for run in history.runs(5)] == ["r1"]
    history.close()
    (tmp_path / "runs.sqlite").write_bytes(b"garbage" * 1000)
    assert names(history, "fine") in (["r1"], [])  # healed at the first question or the second
    assert names(history, "fine") == ["r1"]


def test_another_process_at_work_is_seen(tmp_path: Path) -> None:
    one, two = SessionStore(tmp_path), SessionStore(tmp_path)
    one.append("s", {"type": "x"})
    assert two.is_used_elsewhere("s")
    assert not one.is_used_elsewhere("s")
    one.close()
    assert not two.is_used_elsewhere("s")
    assert not two.is_used_elsewhere("unknown")
