"""Runs of the list: found after a restart, whatever names and words they have, and without a part of a secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.server.replies import call, edit, say
from tests.server.stock_editor import StockEditor
from tests.server.test_features_queue import place

__all__ = ["place"]

pytestmark = pytest.mark.slow


def test_a_name_of_odd_bytes_and_half_an_emoji_harm_no_list(place: Path, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(place) + b"/caf\xe9.txt")).write_text("x\n")
    script = [call("list_dir"), say("Done."), say("Done.")]
    with StockEditor(place, tmp_path / "state", script=script) as editor:
        editor.run("codeagent.run", task="what is here?")
        editor.run("codeagent.run", task="what about \ud83d?")
        assert len(editor.command("codeagent.runs")) == 2
        assert len(editor.command("codeagent.session.search", query="what")) == 2


def test_a_title_has_no_part_of_a_secret(place: Path, tmp_path: Path) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    script = [{"text": "Done.", "delay": 1}, say("Done."), say("Done.")]
    with StockEditor(place, tmp_path / "state", script=script) as editor:
        run_id = editor.command("codeagent.run", task="first")["runId"]
        words = f"please take the github token {secret} and go on"
        editor.command("codeagent.run", task=words)
        editor.command("codeagent.steer", runId=run_id, text=words)
        editor.ended(run_id)
        editor.wait_until(lambda: {row["state"] for row in editor.command("codeagent.runs")} == {"completed"})
        rows = editor.command("codeagent.runs")
        assert any(row["title"].startswith("please take the github token") for row in rows)
        assert secret[:12] not in str(rows)
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path.name for path in kept if secret[:12].encode() in path.read_bytes()] == []


def test_after_a_restart(place: Path, tmp_path: Path) -> None:
    script = [edit("a.py", "1", "2"), say("Done."), {"text": "slow", "delay": 60}]
    with StockEditor(place, tmp_path / "state", script=script, settings={"edits": {"apply": "auto"}}) as editor:
        editor.open(place / "a.py")
        editor.run("codeagent.run", task="change it")
        editor.command("codeagent.run", task="wait")
        queued = editor.command("codeagent.run", task="the queued one")["runId"]
    with StockEditor(place, tmp_path / "state", script=[say("Hi.")], choose=lambda params: None) as editor:
        rows = {row["title"]: row for row in editor.command("codeagent.runs")}
        first = rows["change it"]["runId"]
        assert editor.command("codeagent.session.fork", runId=first)["sessionId"] != rows["change it"]["sessionId"]
        assert editor.command("codeagent.withdraw", itemId=queued) == {"ok": True}
        assert not [item for item in editor.command("codeagent.pending") if item["kind"] == "queued"]
        told = editor.command("codeagent.session.rewind", runId=first, preview=True)
        assert [run["title"] for run in told["runs"]] == ["change it", "wait"]
        assert "There is no run nothing" in editor.refusal("codeagent.session.rewind", {"runId": "nothing"})


def test_a_task_needs_words(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[]) as editor:
        for name in ("codeagent.run", "codeagent.enqueue"):
            assert "the task is empty" in editor.refusal(name, {"task": " "})
