"""What is allowed beyond one call: exact, for a session or always, revocable, and never lost by a damaged file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.permissions.approvals import MAX_STANDING, Approvals, StandingApprovals, fingerprint

CALL = ToolCall("run_cmd", {"command": "make", "timeout": None}, "c1")


def test_a_fingerprint_is_the_exact_call() -> None:
    same = ToolCall("run_cmd", {"timeout": None, "command": "make"}, "c2")
    others = [
        ToolCall("run_cmd", {"command": "make ", "timeout": None}, "c1"),
        ToolCall("run_cmd", {"command": "make", "timeout": 3}, "c1"),
        ToolCall("run_tests", {"command": "make", "timeout": None}, "c1"),
    ]
    assert fingerprint(CALL) == fingerprint(same)
    assert fingerprint(CALL) not in {fingerprint(call) for call in others}


def test_an_approval_for_one_isolation_is_none_for_another() -> None:
    assert fingerprint(CALL, "overlay") != fingerprint(CALL, "copy")


def test_for_the_session_only() -> None:
    approvals = Approvals()
    approvals.allow_for_session("a")
    assert approvals.covers("a")
    assert not approvals.covers("b")
    assert not Approvals().covers("a")


def test_always_holds_in_every_session_and_for_other_servers(tmp_path: Path) -> None:
    standing = StandingApprovals(tmp_path / "state" / "approvals.json")
    standing.add(CALL, "a", "make")
    assert Approvals(standing).covers("a")
    assert Approvals(StandingApprovals(tmp_path / "state" / "approvals.json")).covers("a")


def test_the_file_is_private(tmp_path: Path) -> None:
    file = tmp_path / "state" / "approvals.json"
    StandingApprovals(file).add(CALL, "a", "make")
    assert file.stat().st_mode & 0o077 == 0
    assert {item.name for item in file.parent.iterdir()} == {"approvals.json", "approvals.json.lock"}


def test_one_can_be_revoked_or_all(tmp_path: Path) -> None:
    standing = StandingApprovals(tmp_path / "approvals.json")
    for name in "abc":
        standing.add(CALL, name, f"make {name}")
    assert standing.revoke("b") == 1
    assert [item.shown for item in standing.all()] == ["make a", "make c"]
    assert standing.revoke("b") == 0
    assert standing.revoke() == 2
    assert standing.all() == ()


def test_a_revoked_call_is_asked_again(tmp_path: Path) -> None:
    standing = StandingApprovals(tmp_path / "approvals.json")
    approvals = Approvals(standing)
    standing.add(CALL, "a", "make")
    standing.revoke("a")
    assert not approvals.covers("a")


def test_twice_the_same_is_kept_once(tmp_path: Path) -> None:
    standing = StandingApprovals(tmp_path / "approvals.json")
    standing.add(CALL, "a", "make")
    standing.add(CALL, "a", "make")
    assert len(standing.all()) == 1


def test_the_number_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "approvals.json"
    row = {"tool": "run_cmd", "shown": "x", "since": 0}
    file.write_text(json.dumps([{"approval_id": str(number), **row} for number in range(MAX_STANDING)]))
    standing = StandingApprovals(file)
    standing.add(CALL, "new", "make")
    assert len(standing.all()) == MAX_STANDING
    assert not standing.covers("0")
    assert standing.covers("new")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", "null", "[1, null, {}]", '[{"approval_id": 1, "tool": "a", "shown": "b"}]', "\xff\xfe"],
)
def test_a_damaged_file_allows_nothing_and_can_be_used_again(tmp_path: Path, content: str) -> None:
    file = tmp_path / "approvals.json"
    file.write_bytes(content.encode("latin-1"))
    standing = StandingApprovals(file)
    assert standing.all() == ()
    standing.add(CALL, "a", "make")
    assert standing.covers("a")


@pytest.mark.slow
def test_what_one_editor_revokes_does_not_come_back_with_what_others_add(tmp_path: Path) -> None:
    file = tmp_path / "approvals.json"
    StandingApprovals(file).add(CALL, "gone", "gone")
    program = """
import sys
from pathlib import Path
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.permissions.approvals import StandingApprovals
for number in range(60):
    StandingApprovals(Path(sys.argv[1])).add(ToolCall("run_cmd", {}, "c1"), sys.argv[2] + str(number), "")
"""
    editors = [subprocess.Popen([sys.executable, "-c", program, str(file), name]) for name in ("a", "b")]
    until = time.monotonic() + 30
    while not StandingApprovals(file).covers("a5"):
        assert time.monotonic() < until
        time.sleep(0.005)
    assert StandingApprovals(file).revoke("gone") == 1
    assert [editor.wait(30) for editor in editors] == [0, 0]
    kept = {item.approval_id for item in StandingApprovals(file).all()}
    assert kept == {f"{name}{number}" for name in "ab" for number in range(60)}
