"""Skills, agents and memory through a stock client's commands."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import StartEditor
from tests.server.replies import call, say

pytestmark = pytest.mark.slow  # whole servers at work

SKILL = "---\nname: pdf\ndescription: reads PDF files\ntriggers: [pdf]\n---\nDo it well.\n"


def yes(params: dict[str, Any]) -> str | None:
    """Install and apply; close everything else."""
    titles = [item["title"] for item in params["actions"]]
    return next((title for title in ("Install", "Apply") if title in titles), None)


def trusting(params: dict[str, Any]) -> str | None:
    """Trust what is asked for."""
    return next((item["title"] for item in params["actions"] if item["title"] == "Trust this content"), None)


def test_a_skill_is_installed_listed_and_used(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "SKILL.md").write_text(SKILL)
    (workspace / ".codeagent" / "skills" / "bad").mkdir(parents=True)
    (workspace / ".codeagent" / "skills" / "bad" / "SKILL.md").write_text("no head")
    editor = start(say("Fine.", expect="look made for this: pdf"), choose=yes)
    run = editor.command("codeagent.skills.install", source=str(source), location="global")["runId"]
    editor.ended(run)
    editor.told("Installed 1 files")
    rows = editor.command("codeagent.skills.list")
    skills = [row for row in rows if row["kind"] == "skill"]
    assert [(row["name"], row["place"], row["approved"]) for row in skills] == [("pdf", "user", True)]
    assert [row["name"] for row in rows if row["kind"] == "agent"] == ["planner", "coder", "reviewer"]
    assert ["has no head" in row["reason"] for row in rows if row["kind"] == "problem"] == [True]
    editor.ended(editor.command("codeagent.run", task="what is in this pdf?")["runId"])
    editor.told("Fine.")


def test_trust_in_a_skill_of_the_workspace_is_seen_and_taken_back(start: StartEditor, workspace: Path) -> None:
    folder = workspace / ".codeagent" / "skills" / "pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    load = call("skill_loader", skill_name="pdf")
    editor = start(load, say("One."), load, say("Two."), load, say("Three."), choose=trusting)

    def approved() -> list[bool]:
        return [row["approved"] for row in editor.command("codeagent.skills.list") if row["kind"] == "skill"]

    for words in ("one", "two"):
        editor.run("codeagent.run", task=words)
    assert (len(editor.prompts), approved()) == (1, [True])
    (kept,) = editor.command("codeagent.approvals.list")
    assert (kept["kind"], kept["tool"], kept["shown"]) == ("content", "", "pdf")
    assert editor.command("codeagent.approvals.revoke", approvalId=kept["approvalId"]) == {"revoked": 1}
    assert (editor.command("codeagent.approvals.list"), approved()) == ([], [False])
    editor.run("codeagent.run", task="three")
    assert len(editor.prompts) == 2
    assert editor.close() == 0


def test_the_command_of_trust_asks_and_says_what_came_of_it(start: StartEditor, workspace: Path) -> None:
    answers = ["Deny", "Trust all of this"]
    editor = start(say("Fine."), choose=lambda params: answers.pop(0))
    editor.run("codeagent.trust")
    editor.told("This workspace brings nothing")
    for name, content in ((".agents/skills/pdf/SKILL.md", SKILL), (".claude/commands/fix.md", "Fix it.")):
        (workspace / name).parent.mkdir(parents=True)
        (workspace / name).write_text(content)
    for said in ("Not trusted: the skill pdf, the command /fix.", "Trusted: the skill pdf, the command /fix."):
        editor.run("codeagent.trust")
        editor.told(said)
    assert len(editor.prompts) == 2
    editor.run("codeagent.trust", what="agents")
    assert len(editor.prompts) == 2
    assert "skills | commands" in editor.refusal("codeagent.trust", {"what": "plants"})
    assert [row["approved"] for row in editor.command("codeagent.skills.list") if row["kind"] == "skill"] == [True]


def test_memory_is_shown_and_forgotten(start: StartEditor, tmp_path: Path) -> None:
    editor = start(say("Hello."))
    editor.ended(editor.command("codeagent.run", task="hi")["runId"])
    (state,) = (tmp_path / "state" / "workspaces").iterdir()
    rows = [
        {"text": text, "kind": "decision", "reason": "[x](y)", "session": "s", "date": "d"} for text in ("One.", "Two.")
    ]
    (state / "memory.json").write_text(json.dumps({"entries": rows}))
    shown = editor.command("codeagent.memory.show")
    assert [row["text"] for row in shown["entries"]] == ["One.", "Two."]
    assert "\\[x\\](y)" in shown["markdown"]
    assert editor.command("codeagent.memory.forget", id=shown["entries"][0]["id"]) == {"forgotten": 1}
    with pytest.raises(AssertionError, match="There is no memory with the id"):
        editor.command("codeagent.memory.forget", id="nothing")
    assert editor.command("codeagent.memory.forget") == {"forgotten": 1}
    assert editor.command("codeagent.memory.show")["entries"] == []


def test_a_new_session_answers_at_once_and_the_old_one_is_remembered(start: StartEditor) -> None:
    answer = json.dumps([{"kind": "convention", "text": "The user wants tabs.", "reason": "taste"}])
    editor = start(say("I use tabs."), say(answer))
    editor.ended(editor.command("codeagent.run", task="use tabs")["runId"])
    editor.command("codeagent.session.new")
    for _ in range(100):
        entries = editor.command("codeagent.memory.show")["entries"]
        if entries:
            break
        time.sleep(0.05)
    assert [row["text"] for row in entries] == ["The user wants tabs."]
