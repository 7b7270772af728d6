"""`trace show` as a person sees it: one line a record, cleaned again, safe for the terminal."""

from __future__ import annotations

import io
import json
import random
from itertools import islice
from pathlib import Path

import pytest
from rich.console import Console

from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TRACE_FILE, TraceWriter
from codeagent_lsp.state import STATE_VARIABLE, workspace_state
from codeagent_lsp.terminal.reports import followed, print_record, show_trace
from tests.records.formats import TOKENS


def shown(record: dict[str, object]) -> str:
    out = io.StringIO()
    print_record(record, Console(file=out, width=200), Sanitizer())
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


def state_of(workspace: Path) -> Path:
    return workspace_state([str(workspace.resolve())])


def test_a_record_is_one_line() -> None:
    line = shown({"ts": 1.0, "type": "event", "run_id": "r1", "data": {"type": "status", "message": "two\nlines"}})
    assert line.count("\n") == 1 and "status" in line and "message: two lines" in line and "r1" in line


def test_a_request_shows_its_last_message() -> None:
    data = {"model": "tiny", "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "hello"}]}
    line = shown({"ts": 1.0, "type": "request", "data": data})
    assert "tiny · 2 messages" in line and "hello" in line


def test_the_share_from_the_cache_is_told_of_a_reply_and_of_its_usage() -> None:
    usage = {"prompt_tokens": 200, "cached_tokens": 150, "completion_tokens": 3}
    assert "75 % cached" in shown({"ts": 1.0, "type": "event", "data": {"type": "usage", **usage, "cost": 0.1}})
    assert "75 % cached" in shown({"ts": 1.0, "type": "reply", "data": {"text": "hello", "usage": usage}})
    assert "cached ·" not in shown({"ts": 1.0, "type": "reply", "data": {"usage": {**usage, "cached_tokens": 0}}})


def test_secrets_and_control_sequences_never_reach_the_terminal() -> None:
    secret = TOKENS["npm"](random.Random(1))
    line = shown({"ts": "?", "type": "reply", "data": {"content": f"{secret} \x1b[31mred\u202e"}})
    assert secret not in line and "\x1b" not in line and "\u202e" not in line and "<secret:" in line


@pytest.mark.parametrize(
    "record", [{}, {"data": 5}, {"ts": 1e300, "type": None}, {"type": "request", "data": {"messages": 5}}]
)
def test_odd_records_are_shown_too(record: dict[str, object]) -> None:
    assert shown(record).endswith("\n")


def test_show_prints_what_was_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = TraceWriter(state_of(folder), Sanitizer())
    for number in range(4):
        trace.event({"type": "status", "run_id": f"run{number}", "message": f"message-{number}"})
    trace.close()
    assert show_trace(str(folder), last=2) == 0
    out = capsys.readouterr().out
    assert "message-3" in out and "message-2" in out and "message-1" not in out
    assert show_trace(str(folder), run="run1") == 0
    assert "message-1" in capsys.readouterr().out


def test_nothing_recorded_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show_trace(str(folder)) == 1
    assert capsys.readouterr().err.strip()


def test_what_is_added_is_followed_also_after_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / TRACE_FILE
    path.write_text('{"n": 0}\n')
    steps = iter(range(10))

    def wait(_: float) -> None:
        step = next(steps)
        if step == 0:
            with path.open("a") as file:
                file.write('{"n": 1}\n{"n"')
        elif step == 1:
            with path.open("a") as file:
                file.write(": 2}\n")
        elif step == 2:
            path.rename(tmp_path / "aside")
            path.write_text(json.dumps({"n": 3}) + "\n")

    assert [record["n"] for record in islice(followed(path, wait), 3)] == [1, 2, 3]


def test_full_shows_all_that_was_printed_line_by_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = TraceWriter(state_of(folder), Sanitizer())
    lines = [f"line {number}" for number in range(2000)]
    trace.event({"type": "tool_result", "run_id": "r", "tool": "run_cmd", "output": "\n".join([*lines, "\x1b[2J"])})
    trace.close()
    assert show_trace(str(folder), full=True) == 0
    printed = capsys.readouterr().out.splitlines()[1:]
    assert printed[:2000] == [f"    {line}" for line in lines]
    assert printed[2000] == "    <U+001B>[2J"
