"""`codeagent-lsp acp` as an editor sees it: whole tasks, from the handshake to what is in the files."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, schema
from acp.helpers import image_block, resource_link_block, text_block

from codeagent_lsp.texts import text
from tests.acp_agent.editor import NOTHING, Editor, says
from tests.terminal.scripts import Desk, call
from tests.tools.own.rig import GREET

pytestmark = pytest.mark.slow

CALC = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
EDIT = call("edit_file", path="calc.py", old_str="a - b", new_str="a + b")
FIX: list[dict[str, Any]] = [
    call("read_file", path="calc.py"),
    EDIT,
    {"text": "The **sign** was wrong.", "reasoning": "It subtracts.", "chunks": 4, "delay": 0.01},
]
TASK = "Fix the sign in calc.py"
CLOCK = Path(__file__).with_name("clock_server.py")
AUTH_REQUIRED, INVALID_PARAMS = -32000, -32602


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "calc.py").write_text(CALC)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def diffs_of(call: schema.ToolCallUpdate) -> list[schema.FileEditToolCallContent]:
    return [each for each in call.content or () if isinstance(each, schema.FileEditToolCallContent)]


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))


async def test_todos_are_shown_as_they_are_and_not_as_they_were_asked_for(workspace: Path, state: Path) -> None:
    script = [
        call("todowrite", todos=[{"content": "Look"}, {"content": "Mend"}]),
        call("todowrite", action="update", todos=[{"id": "1", "status": "done"}]),
        call("todowrite", todos=[{"id": "1", "content": "All", "status": "done"}, {"id": "1", "content": "Twice"}]),
        call("todowrite", action="add", todos=[{"content": "Test", "status": "In Progress"}]),
        {"text": "It works."},
    ]
    async with Editor(workspace, state, script) as editor:
        await editor.prompt(await editor.new(), TASK)
        plans = editor.of(schema.AgentPlanUpdate)
    assert [[(entry.content, entry.status) for entry in plan.entries] for plan in plans] == [
        [("Look", "pending"), ("Mend", "pending")],
        [("Look", "completed"), ("Mend", "pending")],
        [("Look", "completed"), ("Mend", "pending"), ("Test", "in_progress")],
    ]


@pytest.mark.journey
async def test_a_change_is_shown_and_then_written(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, FIX) as editor:
        end = await editor.prompt(await editor.new(), TASK)
        commands = await editor.until(lambda: editor.of(schema.AvailableCommandsUpdate))
    assert end.stop_reason == "end_turn"
    assert end.usage
    assert end.usage.total_tokens > 0
    assert "The **sign** was wrong." in editor.said()
    assert "".join(each.content.text for each in editor.of(schema.AgentThoughtChunk)) == "It subtracts."
    assert (workspace / "calc.py").read_text() == FIXED
    [asked] = editor.permissions
    [diff] = diffs_of(asked.tool_call)
    assert (diff.path, diff.old_text, diff.new_text) == (str(workspace / "calc.py"), CALC, FIXED)
    assert [option.kind for option in asked.options] == ["allow_once", "reject_once"]
    assert editor.written == [workspace / "calc.py"]
    assert editor.state_of(asked.tool_call.tool_call_id) == "completed"
    kinds = {each.title: each.kind for each in editor.of(schema.ToolCallStart)}
    assert (kinds["read_file calc.py"], kinds["edit_file calc.py"]) == ("read", "edit")
    assert {each.name for each in commands[0].available_commands} >= {"plan", "undo"}


async def test_unsaved_text_is_read_and_kept(workspace: Path, state: Path) -> None:
    unsaved = CALC + "\n\ndef typed():\n    '''Not saved.'''\n"
    script = [call("read_file", path="calc.py"), EDIT, {"text": "Done."}]
    async with Editor(workspace, state, script) as editor:
        editor.buffers[workspace / "calc.py"] = unsaved
        await editor.prompt(await editor.new(), TASK)
        shown = "".join(each.model_dump_json() for each in editor.of(schema.ToolCallProgress))
    assert "Not saved." in shown
    assert editor.buffers[workspace / "calc.py"] == unsaved.replace("a - b", "a + b")
    [asked] = editor.permissions
    assert diffs_of(asked.tool_call)[0].old_text == unsaved


async def test_a_file_that_becomes_executable_is_asked_about_in_words(workspace: Path, state: Path) -> None:
    file = workspace / "run.sh"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o644)
    script = [call("run_cmd", command="chmod +x run.sh"), {"text": "Done."}]
    async with Editor(workspace, state, script) as editor:
        await editor.prompt(await editor.new(), "Make run.sh executable")
    [asked] = editor.permissions
    assert [each.content.text for each in asked.tool_call.content or ()] == ["Makes run.sh executable."]
    assert [place.path for place in asked.tool_call.locations or ()] == [str(file)]
    assert file.stat().st_mode & 0o100


async def test_unsaved_text_is_what_commands_see(workspace: Path, state: Path) -> None:
    look = call("run_cmd", command="cat calc.py")
    script = [call("read_file", path="calc.py"), look, {"text": "Done."}, look, {"text": "Done."}]
    async with Editor(workspace, state, script) as editor:
        editor.buffers[workspace / "calc.py"] = CALC + "# unsaved\n"
        editor.permit = says("choice.once")
        session_id = await editor.new()
        await editor.prompt(session_id, "What is in it?")
        editor.buffers[workspace / "calc.py"] = CALC + "# typed later\n"
        await editor.prompt(session_id, "And now?")
        ran = [each.tool_call_id for each in editor.of(schema.ToolCallStart) if each.kind == "execute"]
        first, second = (
            [each for each in editor.of(schema.ToolCallProgress) if each.tool_call_id == call_id][-1] for call_id in ran
        )
    assert "# unsaved" in first.model_dump_json()
    assert "# typed later" in second.model_dump_json()
    assert (workspace / "calc.py").read_text() == CALC


async def test_what_is_typed_while_the_question_is_open_is_kept(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, FIX) as editor:
        editor.buffers[workspace / "calc.py"] = CALC

        def types_and_agrees(request: schema.RequestPermissionRequest) -> str:
            editor.buffers[workspace / "calc.py"] = "# typed meanwhile\n" + CALC
            return text("choice.apply")

        editor.permit = types_and_agrees
        await editor.prompt(await editor.new(), TASK)
    assert editor.buffers[workspace / "calc.py"] == "# typed meanwhile\n" + FIXED


async def test_a_folder_that_is_a_link_keeps_its_name(workspace: Path, state: Path) -> None:
    """What the client is told and asked for has the paths that it knows, or it would open a file twice."""
    link = workspace.with_name("link")
    link.symlink_to(workspace)
    async with Editor(link, state, FIX) as editor:
        editor.buffers[link / "calc.py"] = CALC + "# unsaved\n"
        named = resource_link_block("calc.py", (link / "calc.py").as_uri())
        await editor.prompt(await editor.new(), [text_block("Fix the sign in"), named])
        assert [each.cwd for each in (await editor.agent.list_sessions(cwd=str(link))).sessions] == [str(link)]
    assert editor.buffers[link / "calc.py"] == FIXED + "# unsaved\n"
    assert {path.parent for path in (*editor.read, *editor.written)} == {link}
    assert {diff.path for diff in diffs_of(editor.permissions[0].tool_call)} == {str(link / "calc.py")}
    places = [place.path for each in editor.of(schema.ToolCallStart) for place in each.locations or ()]
    assert set(places) == {str(link / "calc.py")}


async def test_a_refusal_leaves_everything_as_it_is(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, FIX) as editor:
        editor.permit = says("choice.discard")
        end = await editor.prompt(await editor.new(), TASK)
    assert end.stop_reason == "end_turn"
    assert (workspace / "calc.py").read_text() == CALC
    assert editor.written == []
    assert editor.state_of(editor.permissions[0].tool_call.tool_call_id) == "failed"


async def test_a_client_without_files_has_them_on_the_disk(workspace: Path, state: Path) -> None:
    script = [*FIX[:2], call("write_file", path="new.py", content="x = 1\n"), FIX[2]]
    async with Editor(workspace, state, script, NOTHING) as editor:
        await editor.prompt(await editor.new(), TASK)
    assert (workspace / "calc.py").read_text() == FIXED
    assert (workspace / "new.py").read_text() == "x = 1\n"
    assert editor.written == editor.read == []
    assert len(diffs_of(editor.permissions[0].tool_call)) == 2


async def test_a_client_whose_files_are_those_of_the_disk_is_not_asked_for_them(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, FIX, name="CodeCompanion.nvim") as editor:
        await editor.prompt(await editor.new(), TASK)
    assert (workspace / "calc.py").read_text() == FIXED
    assert editor.written == editor.read == []


async def test_files_are_made_moved_and_deleted(workspace: Path, state: Path) -> None:
    (workspace / "old.py").write_text("old = 1\n")
    (workspace / "gone.py").write_text("gone = 1\n")
    script = [
        call("write_file", path="deep/new.py", content="new = 1\n"),
        call("move_file", path="old.py", new_path="moved.py"),
        call("delete_file", path="gone.py"),
        {"text": "Done."},
    ]
    async with Editor(workspace, state, script) as editor:
        await editor.prompt(await editor.new(), "Tidy up the files")
    assert editor.said().count("Done.") == 1
    assert names_in(workspace) == ["calc.py", "deep/new.py", "moved.py"]


async def test_line_ends_and_marks_that_an_editor_hides_survive(workspace: Path, state: Path) -> None:
    (workspace / "calc.py").write_bytes(CALC.replace("\n", "\r\n").encode())
    async with Editor(workspace, state, FIX) as editor:  # its texts have LF, as Zed's do
        await editor.prompt(await editor.new(), TASK)
    assert (workspace / "calc.py").read_bytes() == FIXED.encode().replace(b"\n", b"\r\n")
    assert editor.written == [workspace / "calc.py"]


async def test_a_command_is_asked_about_and_can_be_refused(workspace: Path, state: Path) -> None:
    script = [call("run_cmd", command="touch made"), {"text": "Then not."}]
    async with Editor(workspace, state, script, settings=["shell.confirm=always"]) as editor:
        editor.permit = says("choice.deny")
        await editor.prompt(await editor.new(), "Make a file by a command")
    [asked] = editor.permissions
    assert "touch made" in str(asked.tool_call.title)
    assert asked.tool_call.kind == "execute"
    kinds = [option.kind for option in asked.options]
    assert kinds == ["reject_once", "allow_once", "allow_always", "allow_always"]
    assert editor.state_of(asked.tool_call.tool_call_id) == "failed"
    assert asked.tool_call.tool_call_id in {each.tool_call_id for each in editor.of(schema.ToolCallStart)}


async def test_what_is_allowed_for_the_session_is_not_asked_again(workspace: Path, state: Path) -> None:
    script = [call("run_cmd", command="echo one"), {"text": "1"}, call("run_cmd", command="echo one"), {"text": "2"}]
    async with Editor(workspace, state, script, settings=["shell.confirm=always"]) as editor:
        editor.permit = says("choice.session")
        session_id = await editor.new()
        await editor.prompt(session_id, "Run the command echo one")
        await editor.prompt(session_id, "Run the command echo one")
    assert len(editor.permissions) == 1
    assert "one" in editor.of(schema.ToolCallProgress)[-1].model_dump_json()


async def test_a_plan_is_shown_with_its_steps(workspace: Path, state: Path) -> None:
    steps = [
        {"title": "Fix the sign", "description": "In calc.py.", "expected_tools": ["edit_file"]},
        {"title": "Say so", "description": "In a sentence.", "expected_tools": []},
    ]
    plan = call("create_plan", goal="A right sum", steps=steps, estimated_complexity="low")
    async with Editor(workspace, state, [plan, EDIT, {"text": "Fixed."}, {"text": "It was the sign."}]) as editor:
        editor.fill = lambda mode: {"answer": "Start"}
        await editor.prompt(await editor.new(), f"/plan {TASK}")
    plans = editor.of(schema.AgentPlanUpdate)
    assert [entry.content for entry in plans[0].entries] == ["Fix the sign", "Say so"]
    assert [entry.status for entry in plans[-1].entries] == ["completed", "completed"]
    assert any(entry.status == "in_progress" for each in plans for entry in each.entries)
    assert (workspace / "calc.py").read_text() == FIXED


QUESTION = call("AskUser", questions=[{"text": "Which sign?", "options": ["plus", "minus"]}], format="single")
OPEN_QUESTION = call("AskUser", questions=[{"text": "Which name?"}], format="single")


async def test_a_question_is_a_form(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [QUESTION, {"text": "So be it."}]) as editor:
        editor.fill = lambda mode: {"answer": "plus"}
        await editor.prompt(await editor.new(), "Ask me for the sign in calc.py")
    [form] = editor.forms
    field: Any = (form.requested_schema.properties or {})["answer"]
    assert [option.const for option in field.one_of] == ["plus", "minus"]
    results = editor.of(schema.ToolCallProgress)
    assert "plus" in results[-1].model_dump_json()


async def test_without_forms_a_question_is_a_choice(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [QUESTION, {"text": "So be it."}], NOTHING) as editor:
        editor.permit = lambda request: "minus"
        await editor.prompt(await editor.new(), "Ask me for the sign in calc.py")
    assert [option.name for option in editor.permissions[0].options][:2] == ["plus", "minus"]
    assert "minus" in editor.of(schema.ToolCallProgress)[-1].model_dump_json()


async def test_without_forms_words_are_asked_for_in_the_conversation(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [OPEN_QUESTION, {"text": "A good name."}], NOTHING) as editor:
        session_id = await editor.new()
        first = await editor.prompt(session_id, "Ask me for a name")
        assert "Which name?" in editor.said()
        second = await editor.prompt(session_id, "calculator")
    assert (first.stop_reason, second.stop_reason) == ("end_turn", "end_turn")
    assert "calculator" in editor.of(schema.ToolCallProgress)[-1].model_dump_json()
    assert "A good name." in editor.said()


async def test_a_run_is_cancelled_at_once(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [{"text": "word " * 100, "chunks": 100, "delay": 1}]) as editor:
        session_id = await editor.new()
        work = asyncio.ensure_future(editor.prompt(session_id, "Say something long"))
        await editor.until(editor.said)  # the rest would take longer than a prompt is waited for
        await editor.agent.cancel(session_id=session_id)
        assert (await work).stop_reason == "cancelled"
        assert (await editor.prompt(session_id, "And now?")).stop_reason == "end_turn"


async def test_a_cancelled_question_leaves_the_changes_undecided(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [*FIX, {"text": "Hello."}]) as editor:
        session_id = await editor.new()
        asked = asyncio.Event()

        async def waits(request: schema.RequestPermissionRequest) -> None:
            asked.set()
            await editor.agent.cancel(session_id=session_id)

        editor.permit = waits
        assert (await editor.prompt(session_id, TASK)).stop_reason == "cancelled"
        assert (workspace / "calc.py").read_text() == CALC
        editor.permit = says("choice.apply")
        await editor.prompt(session_id, "Hello")
    assert len(editor.permissions) == 2
    assert (workspace / "calc.py").read_text() == FIXED


async def test_a_killed_agent_goes_on_where_it_was(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, FIX) as editor:
        session_id = await editor.new()
        never = asyncio.Event()

        async def waits(request: schema.RequestPermissionRequest) -> None:
            await never.wait()

        editor.permit = waits
        work = asyncio.ensure_future(editor.prompt(session_id, TASK))
        await editor.until(lambda: editor.permissions)
        os.kill(editor.process.pid, signal.SIGKILL)
        with pytest.raises((ConnectionError, RequestError)):
            await work
        await editor.until(lambda: not editor.children())  # nothing is left that holds the session
    async with Editor(workspace, state, [{"text": "Here I am."}]) as editor:
        found = (await editor.agent.list_sessions(cwd=str(workspace))).sessions
        assert [(each.session_id, each.cwd) for each in found] == [(session_id, str(workspace))]
        assert TASK.startswith(found[0].title[:20])
        await editor.agent.load_session(cwd=str(workspace), session_id=session_id, mcp_servers=[])
        users = [each.content.text for each in editor.of(schema.UserMessageChunk)]
        assert users == [TASK]
        assert "The **sign** was wrong." in editor.said()
        await editor.prompt(session_id, "Are you there?")
        assert "Here I am." in editor.said()
    [asked] = editor.permissions
    assert diffs_of(asked.tool_call)[0].new_text == FIXED
    assert (workspace / "calc.py").read_text() == FIXED


async def test_a_server_that_ends_is_begun_again(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [{"text": "One."}]) as editor:
        session_id = await editor.new()
        await editor.prompt(session_id, "First")
        children = editor.children()
        assert children
        for child in children:
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(RequestError):  # it may come before the end of the process is known
            await editor.prompt(session_id, "Second")
        assert (await editor.prompt(session_id, "Third")).stop_reason == "end_turn"
        assert editor.said().count("One.") == 2  # a new process begins its script anew
        found = (await editor.agent.list_sessions(cwd=str(workspace))).sessions
        assert [each.session_id for each in found] == [session_id]
        [info] = editor.of(schema.SessionInfoUpdate)
        assert info.title == "First"


async def test_tools_of_the_client_are_used(workspace: Path, state: Path) -> None:
    server = schema.McpServerStdio(name="clock", command=sys.executable, args=[str(CLOCK)], env=[])
    script = [call("mcp.clock.now"), {"text": "It is noon."}]
    async with Editor(workspace, state, script) as editor:
        made = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[server])
        editor.permit = says("choice.once")
        await editor.prompt(made.session_id, "What time is it by the clock?")
    assert "twelve" in "".join(each.model_dump_json() for each in editor.of(schema.ToolCallProgress))


async def test_a_prompt_that_waits_for_a_decision_can_be_cancelled(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [*FIX, {"text": "Hello."}]) as editor:
        session_id = await editor.new()
        editor.permit = lambda request: None
        await editor.prompt(session_id, TASK)
        assert editor.state_of(editor.permissions[0].tool_call.tool_call_id) == "failed"
        never = asyncio.Event()

        async def waits(request: schema.RequestPermissionRequest) -> None:
            await never.wait()

        editor.permit = waits
        work = asyncio.ensure_future(editor.prompt(session_id, "Hello"))
        await editor.until(lambda: len(editor.permissions) == 2)
        await editor.agent.cancel(session_id=session_id)
        assert (await work).stop_reason == "cancelled"
        await editor.prompt(session_id, "/apply")
        assert (workspace / "calc.py").read_text() == FIXED


async def test_a_cancelled_prompt_asks_about_no_other_changes(workspace: Path, state: Path) -> None:
    new = [call("write_file", path="new.py", content="x = 1\n"), {"text": "Written."}]
    async with Editor(workspace, state, [*FIX, *new]) as editor:
        editor.permit = lambda request: None
        session_id = await editor.new()
        await editor.prompt(session_id, TASK)
        await editor.prompt(session_id, "Write new.py")
        await editor.agent.load_session(cwd=str(workspace), session_id=session_id, mcp_servers=[])
        before, never = len(editor.permissions), asyncio.Event()

        async def waits(request: schema.RequestPermissionRequest) -> None:
            await never.wait()

        editor.permit = waits
        work = asyncio.ensure_future(editor.prompt(session_id, "Hello"))
        await editor.until(lambda: len(editor.permissions) > before)
        await editor.agent.cancel(session_id=session_id)
        assert (await work).stop_reason == "cancelled"
        assert len(editor.permissions) == before + 1


async def test_a_session_of_the_other_door_goes_on_here(workspace: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    told = [json.loads(line) for line in desk.run(FIX, "--yes", "--json", task=TASK).stdout.splitlines()]
    session_id = told[0]["session_id"]
    async with Editor(workspace, tmp_path / "state", [{"text": "It was the sign."}]) as editor:
        assert session_id in {
            each.session_id for each in (await editor.agent.list_sessions(cwd=str(workspace))).sessions
        }
        await editor.agent.load_session(cwd=str(workspace), session_id=session_id, mcp_servers=[])
        assert [each.content.text for each in editor.of(schema.UserMessageChunk)] == [TASK]
        calls = [each.title for each in editor.of(schema.ToolCallStart)]
        assert "edit_file calc.py" in calls
        await editor.prompt(session_id, "What was it?")
        assert "It was the sign." in editor.said()
        await editor.prompt(session_id, "/undo")
    assert (workspace / "calc.py").read_text() == CALC


async def test_closed_resumed_and_forked(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [{"text": "One."}, {"text": "Two."}]) as editor:
        session_id = await editor.new()
        await editor.prompt(session_id, "First")
        await editor.agent.close_session(session_id=session_id)
        with pytest.raises(RequestError):
            await editor.prompt(session_id, "Anybody?")
        editor.updates.clear()
        await editor.agent.resume_session(cwd=str(workspace), session_id=session_id, mcp_servers=[])
        assert not editor.of(schema.UserMessageChunk)
        await editor.prompt(session_id, "Second")
        other = (await editor.agent.fork_session(cwd=str(workspace), session_id=session_id, mcp_servers=[])).session_id
        await editor.prompt(other, "Third")
        editor.updates.clear()
        await editor.agent.load_session(cwd=str(workspace), session_id=other, mcp_servers=[])
        asked = [each.content.text for each in editor.of(schema.UserMessageChunk)]
        assert asked == ["First", "Second", "Third"]
        with pytest.raises(RequestError, match="nothing-like-it"):
            await editor.agent.load_session(cwd=str(workspace), session_id="nothing-like-it", mcp_servers=[])


async def test_options_are_told_and_set(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, FIX) as editor:
        made = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[])
        assert made.modes.current_mode_id == "ask"
        assert [option.id for option in made.config_options] == ["mode", "model", "effort"]
        await editor.agent.set_session_mode(session_id=made.session_id, mode_id="acceptEdits")
        set_to = await editor.agent.set_config_option(session_id=made.session_id, config_id="effort", value="low")
        assert [option.current_value for option in set_to.config_options][::2] == ["acceptEdits", "low"]
        with pytest.raises(RequestError) as wrong:
            await editor.agent.set_config_option(session_id=made.session_id, config_id="effort", value="enormous")
        assert wrong.value.code == INVALID_PARAMS
        await editor.prompt(made.session_id, TASK)
    assert editor.permissions == []
    assert (workspace / "calc.py").read_text() == FIXED
    assert {each.current_mode_id for each in editor.of(schema.CurrentModeUpdate)} == {"acceptEdits"}


async def test_without_a_model_the_setup_is_offered(workspace: Path, state: Path) -> None:
    async with Editor(workspace, state, [], settings=["model.name=/no/such/script.json"]) as editor:
        methods: list[Any] = editor.hello.auth_methods
        [method] = methods
        assert (method.type, method.args) == ("terminal", ["setup"])
        with pytest.raises(RequestError) as refused:
            await editor.prompt(await editor.new(), TASK)
    assert refused.value.code == AUTH_REQUIRED


async def test_links_and_pictures_come_with_a_prompt(workspace: Path, state: Path) -> None:
    link = resource_link_block("calc.py", (workspace / "calc.py").as_uri())
    script = [{"text": "I see.", "expect": "a - b"}]
    async with Editor(workspace, state, script) as editor:
        session_id = await editor.new()
        await editor.prompt(session_id, [text_block("What is wrong in"), link])
        assert "I see." in editor.said()
        picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
        await editor.prompt(session_id, [text_block("What is this?"), image_block(picture, "image/png")])
    assert "does not see pictures" in editor.said()  # the model of a script, which is said instead of dropping them


async def test_what_belongs_to_no_run_is_asked_too(workspace: Path, state: Path) -> None:
    """Whether a tool of the user's own is to be trusted: no run tells of that."""
    (state / "tools").mkdir(parents=True)
    (state / "tools" / "greet.py").write_text(GREET)
    async with Editor(workspace, state, [{"text": "Hi."}]) as editor:
        editor.permit = lambda request: request.options[1].name
        await editor.prompt(await editor.new(), "say hi")
        await editor.until(lambda: any("greet.py" in (each.tool_call.title or "") for each in editor.permissions))
        await editor.until((state / "trusted-tools.json").exists)
