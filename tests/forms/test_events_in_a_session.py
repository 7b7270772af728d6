"""Every event of the table comes in a real session with its fields filled, and every call in a text is carried out.

Runs with a scripted model: a plan that is started, refused, cancelled, replaced and one that fails, a file that is run,
a model that goes in circles, tools that fail and that export.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import EditorError
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, Finished, OnOutput, Shell, no_output
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from tests.forms.test_calls_in_a_session import session
from tests.forms.test_table import TABLE
from tests.session.fakes import MIDDLING, World, call, calls, say, until, world
from tests.session.plan.plans import APPLY, BUSY, CANCEL, START, STOP, create, ended, planned, run, start, step, stuck
from tests.session.test_file_run import run as run_file
from tests.tools.shells import FakeEnvironments, FakeShell

MAY_BE_FALSE = ("success",)


class _Loud(FakeShell):
    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        on_output("stderr", "err\n")
        return await super().run(command, on_output)


class _LoudEnvironments(FakeEnvironments):
    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        return _Loud(*self._results, staging=staging)


def rows(kind: str) -> Iterator[tuple[str, list[Any]]]:
    for row in TABLE:
        for check, *values in json.loads(row["shown by"] or "[]"):
            if check == kind:
                yield row["form"], values


async def _plans(folder: Path) -> list[World]:
    started = world(folder / "1", create("a", "b"), *step(1), *step(2), says=[START, APPLY, APPLY])
    await run(started, "always")
    refused = world(folder / "2", create("a"), *step(1), says=[CANCEL], deadline=0.05)
    await run(refused, "always")
    replies = [create("a", "b"), *stuck(2), create("x", "y"), *step(1), *step(2)]
    replaced = world(folder / "3", *replies, apply="auto", settings=planned(iterations=2))
    await run(replaced)
    failed = world(folder / "4", create("a", "b"), *step(1), *step(2), says=[APPLY], deadline=0.05)
    failed.editor.failure = EditorError("session.unknown", session="x")
    await run(failed)
    cancelled = world(folder / "5", create("a", "b"), *step(1), *step(2), says=[STOP], deadline=20)
    run_id = start(cancelled)
    await until(lambda: bool(cancelled.inbox.open()) or bool(cancelled.of(events.StepCompleted)))
    cancelled.manager.runs.cancel(run_id)
    await ended(cancelled, run_id)
    circles = [calls(call("read_file", path="f1.py"))] * 12
    circling = world(folder / "6", create("a"), *circles, *step(1), apply="auto", deadline=0.05)
    circling.open("f1.py", "x = 1\n")
    await run(circling)
    return [started, refused, replaced, failed, cancelled, circling]


async def _runs(folder: Path) -> list[World]:
    environments = _LoudEnvironments([Finished(3, "out\n", seconds=0.25)])
    filed = world(folder / "7", environments=environments)
    await run_file(filed)
    replies = [create("a"), calls(call("run_cmd", command="make")), say("Done.")]
    stepping = world(folder / "11", *replies, environments=environments, says=["Allow once"], deadline=0.05)
    await run(stepping)
    broken = world(folder / "8", BUSY, BUSY, BUSY, deadline=0.05)
    await broken.run()
    asked = ModelInfo("m", "openai", facts=window_known(16_384), tool_calling="native")
    unclear = world(folder / "9", deadline=0.05)
    unclear.models["model"] = ScriptedModel([say('{"intent": "code"}'), say("Done."), say("Done.")], info=asked)
    await unclear.run("the login page")
    tools = session(folder / "10")
    tools.open("a.py", "a\n")
    tools.user.says = [APPLY, "Allow once"] * 3
    tools.models["model"] = ScriptedModel(
        [
            calls(call("read_file", path="missing.py")),
            calls(call("enable_tools", group="artifacts")),
            calls(call("export_artifact", file_path="a.py", artifact_name="b.py")),
            calls(call("write_file", path="new.py", content="x\n")),
            *[say("Done.")] * 4,
        ]
    )
    await tools.run("do it")
    return [filed, stepping, broken, unclear, tools]


@pytest.mark.slow  # some ten runs
async def test_each_event_comes_with_its_fields(tmp_path: Path) -> None:
    worlds = [*await _plans(tmp_path), *await _runs(tmp_path)]
    told = [events.to_dict(event) for made in worlds for event in made.events]
    missing = []
    for form, (kind, *names) in rows("event"):
        mine = [event for event in told if event["type"] == kind]
        # Each field is filled in one of them; a result that has an error has no output.
        lacking = [
            n for n in names if not any(n in MAY_BE_FALSE or event.get(n) not in (None, "", []) for event in mine)
        ]
        if not mine or lacking:
            missing.append((form, kind, lacking or "never came"))
    assert missing == [], missing


@pytest.mark.slow  # some twenty runs
@pytest.mark.parametrize("mode", ["text", "native"])
async def test_each_call_in_a_text_is_carried_out(tmp_path: Path, mode: Any) -> None:
    wrong = []
    for number, (form, (words, wanted)) in enumerate(rows("text")):
        made = session(tmp_path / str(number))
        model = ScriptedModel([ScriptedReply(text=words), *[say("Done.")] * 3])
        made.models["model"] = ToolCallingModel(model, mode)
        done = await made.run("look at a.py")
        results = [events.to_dict(event) for event in made.of(events.ToolFinished)]
        if done.status != "completed" or [event["tool"] for event in results if event["success"]] != [
            name for name, _ in wanted
        ]:
            wrong.append((form, words, done.status, [(event["tool"], event["error"]) for event in results]))
    assert wrong == []


ENDLESS = {
    "json": 'I look.\n{{"tool": "read_file", "args": {{"path": "{0}"',
    "unknown": '{{"tool": "nothing{0}", "args": {{"x": 1}}}}',
    "misfit": '<invoke name="read_file"><parameter name="p{0}">a</parameter></invoke>',
    "words": "<tool_call>\nread {0}\n</tool_call>",
    "action": 'Action: read_file[{{"path": {0} ]',
}


@pytest.mark.slow  # some ten runs
@pytest.mark.parametrize("mode", ["text", "native"])
@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize(("info", "task"), [(None, "look at a.py"), (MIDDLING, "change a.py: rename a to b")])
async def test_calls_that_nobody_can_read_end_soon_in_true_words_and_unseen(
    tmp_path: Path, mode: Any, varied: bool, info: ModelInfo | None, task: str
) -> None:
    for name, form in ENDLESS.items():
        made = session(tmp_path / name)
        replies = [say(form.format(at if varied else "a.py")) for at in range(40)]
        made.models["model"] = ToolCallingModel(ScriptedModel(replies, info=info), mode)
        done = await made.run(task)
        asked = made.of(events.UsageReported)
        shown = "".join(event.content for event in made.of(events.Token) if isinstance(event, events.Token))
        assert done.status == "stopped" and done.summary.startswith(text("run.anomaly")), (name, done)
        assert "model calls" not in done.summary and "read" not in done.summary, (name, done)
        assert len(asked) <= 10 and "read" not in shown and "nothing" not in shown, (name, len(asked), shown)
