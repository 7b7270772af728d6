"""A whole run of a model that writes its calls as text, in forms that are nowhere in its instructions, to the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.model import ToolCalling
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.context_export import SessionSurroundings, to_dict
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.staging import Staging
from tests.forms.test_skills import FOREIGN
from tests.session.fakes import MIDDLING, World, say, world

RULES = PermissionsSettings(allow=("bash(make *)",), deny=("file_read(secret.txt)",))


def action(name: str, **arguments: Any) -> ScriptedReply:
    return say(f"Thought: the next step.\nAction: {name}[{json.dumps(arguments)}]")


def written(source: str) -> ScriptedReply:
    return say(f"Thought: the next step.\nAction: {source}\nObservation: made up\nThought: done\nAll is well.")


def object_(name: str, **arguments: Any) -> ScriptedReply:
    return say(f"I call it.\n{json.dumps({'tool': name, 'args': arguments})}")


REPLIES = [
    action("todowrite", session_id="s", action="add", todos=[{"content": "look"}, "change"]),
    written('list(path=".", recursive=True)'),
    action("read", file_path="tax.py", offset=0, limit=20),
    object_("file_read", file_path="secret.txt"),
    written('grep(pattern="rate", **{"-i": True, "-n": True, "-C": 1})'),
    action("edit", file_path="tax.py", old_string="RATE = 7", new_string="RATE = 19"),
    object_("patch", file_path="tax.py", patch_content="@@ -1 +1 @@\n-RATE = 19\n+RATE = 21\n"),
    action("shell_exec", command="make test"),
    action("enable_tools", group="artifacts"),
    action("export_artifact", file_path="tax.py", artifact_name="tax.txt"),
    action("enable_tools", group="skills"),
    action("skill_loader", skill_name="release"),
    action("todowrite", action="update", todo_id="2", todos=[{"status": "completed"}]),
    say("The rate is 21."),
]
TOOLS = [
    "todowrite", "list_dir", "read_file", "read_file", "grep", "edit_file", "apply_patch", "run_cmd", "enable_tools",
    "export_artifact", "enable_tools", "skill_loader", "todowrite",
]  # fmt: skip


def ruled(settings: Settings) -> Settings:
    return replace(settings, permissions=RULES)


def opened(folder: Path, mode: ToolCalling) -> World:
    made = world(folder / "ws", says=[text("choice.trust"), "Apply"], settings=ruled)
    made.models["model"] = ToolCallingModel(ScriptedModel(REPLIES), mode)
    made.open("tax.py", "RATE = 7\n")
    (made.root / "secret.txt").write_text("hush\n")
    skill = made.root / ".memstack/skills/release/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(FOREIGN)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["text", "native"])
async def test_a_run_in_text_and_in_other_forms_comes_to_its_end(tmp_path: Path, mode: ToolCalling) -> None:
    made = opened(tmp_path, mode)
    ended = await made.run("raise the rate")
    told = [events.to_dict(event) for event in made.events]
    results = [event for event in told if event["type"] == "tool_result"]
    assert [event["tool"] for event in results] == TOOLS
    assert [(event["tool"], event["status"]) for event in results if not event["success"]] == [("read_file", "denied")]
    assert (ended.status, ended.outcome, ended.tool_used, ended.trace_id) == ("completed", "full", True, ended.run_id)
    assert made.text("tax.py") == "RATE = 21\n"
    [exported] = [item for event in results for item in event.get("artifacts", ())]
    assert exported["name"] == "tax.txt"
    shown = "".join(event["content"] for event in told if event["type"] == "token")
    assert "Action" not in shown and "made up" not in shown and shown.endswith("The rate is 21.")
    session = made.manager.current()
    stored = [events.from_dict(record) for record in made.store.load(session.session_id)]
    view = made.manager._services.workspace.view(Staging(lambda path: None, lambda path, change: None))
    data = to_dict(session.context, stored, SessionSurroundings(session.session_id, "w", Settings(), view))
    assert [(todo["content"], todo["status"]) for todo in data["todos"]] == [
        ("look", "pending"), ("change", "completed")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("VERSION", "1.2.3\n", "1.2.4\n"),
        ("config.yaml", "debug: true\n", "debug: false\n"),
        ("a.json", "{}\n", '{"a": 1}\n'),
    ],
)
async def test_a_short_file_is_given_whole(tmp_path: Path, path: str, before: str, after: str) -> None:
    def whole(settings: Settings) -> Settings:
        return replace(settings, agent=replace(settings.agent, answer_form="whole"))

    made = world(tmp_path / "ws", says=["Apply"], info=MIDDLING, settings=whole, deadline=0.2)
    made.open(path, before)
    made.models["model"] = ScriptedModel([say(f"{path}\n```\n{after}```")] * 3, info=MIDDLING)
    done = await made.run(f"Change {path}")
    assert (done.status, made.text(path)) == ("completed", after)
