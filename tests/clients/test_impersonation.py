"""The server talks to each client in the way that client can take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.files.uris import from_path
from tests.clients.profiles import PROFILES, Profile
from tests.server.rawclient import Refusal
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

METHOD_NOT_FOUND = Refusal(-32601, "method not found")
SOURCE = "s = '🎉'; x = 1\ny = 1\n"
SCRIPT: list[dict[str, Any]] = [
    {"text": "Let me see.", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]},
    {
        "tool_calls": [
            {"name": "edit_file", "arguments": {"path": "a.py", "old_str": "x = 1", "new_str": "x = 2"}},
            {"name": "write_file", "arguments": {"path": "new/b.py", "content": "z = 1\n"}},
        ]
    },
    {"text": "I changed both."},
]
WHERE_X_STANDS = {"utf-8": 16, "utf-16": 14, "utf-32": 13}  # behind an emoji of 4, 2 and 1 units

Start = Callable[..., StockEditor]


@pytest.fixture
def start(tmp_path: Path) -> Any:
    editors: list[StockEditor] = []
    workspace = tmp_path / "ws"
    workspace.mkdir()

    def begin(profile: Profile | None = None, **options: Any) -> StockEditor:
        if profile is not None:
            options = {"capabilities": profile.capabilities, "client": profile.client, **options}
        editors.append(StockEditor(workspace, tmp_path / "state", **{"script": SCRIPT, **options}))
        return editors[-1]

    yield begin
    for editor in editors:
        editor.client.kill()


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_run_in_the_shape_the_client_takes(start: Start, profile: Profile) -> None:
    editor = start(profile)
    workspace = editor.workspace
    created_empty: list[bool] = []
    editor.before_apply = lambda editor: created_empty.append((workspace / "new/b.py").exists())
    uri = editor.open(workspace / "a.py", SOURCE)
    run_id = editor.command("codeagent.run", task="change x")["runId"]
    editor.wait_until(lambda: editor.text(workspace / "a.py") != SOURCE and len(created_empty) > 1)

    assert editor.encoding == profile.encoding
    assert editor.text(workspace / "a.py") == SOURCE.replace("x = 1", "x = 2")
    edits = [params["edit"] for params in editor.edits]
    assert {key for edit in edits for key, value in edit.items() if value} == {profile.shape}
    assert _first_edit(edits[0], profile.shape, uri)["range"]["start"]["character"] == WHERE_X_STANDS[profile.encoding]
    if profile.shape == "documentChanges":
        version = 1 if profile.client.get("name") == "Neovim" else 0  # which takes 0 for no version
        assert edits[0]["documentChanges"][0]["textDocument"] == {"uri": uri, "version": version}
        kinds = [change.get("kind") for change in edits[1]["documentChanges"]]
        assert kinds == (["create", None] if profile.creates else [None])
    assert created_empty[-1] is not profile.creates
    made = workspace / "new/b.py"  # the editor is asked before it makes it
    editor.wait_until(lambda: made.exists() and editor.text(made) == "z = 1\n")
    _check_progress(editor, profile, run_id)
    assert not editor.notifications("codeagent/event")
    assert editor.close() == 0


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_code_actions_in_the_form_the_client_takes(start: Start, profile: Profile) -> None:
    editor = start(profile)
    uri = editor.open(editor.workspace / "a.py", SOURCE)
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    found = editor.client.result(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": [], "only": ["refactor"]}},
    )
    assert len(found) >= 4
    for item in found:
        if profile.literals:
            assert item["kind"].startswith("refactor.rewrite.codeagent")
            assert item["command"]["arguments"] == [{"uri": uri, "range": span}]
            assert item.get("tags") == ([1] if profile.tags else None)
            assert "edit" not in item
        else:
            assert isinstance(item["command"], str), "a client without literals takes commands only"
            assert "kind" not in item


def test_a_client_that_can_nothing_still_gets_to_its_answer(start: Start) -> None:
    """No edits, no prompts, no progress: the changes wait, can be seen, and nothing is lost or written."""
    editor = start(
        capabilities={},
        client={},
        answers=dict.fromkeys(("window/showMessageRequest", "workspace/applyEdit"), lambda params: METHOD_NOT_FOUND),
    )
    editor.open(editor.workspace / "a.py", SOURCE)
    run_id = editor.command("codeagent.run", task="change x")["runId"]
    editor.wait_until(lambda: any(item["kind"] == "approval" for item in editor.command("codeagent.pending")))
    question = editor.command("codeagent.pending")[0]
    assert question["choices"] == ["Review", "Apply", "Discard"]
    assert "+s = '🎉'; x = 2" in question["detail"]
    editor.command("codeagent.respond", requestId=question["requestId"], answer="Apply")
    editor.told("cannot apply")
    editor.wait_until(lambda: [item["kind"] for item in editor.command("codeagent.pending")] == ["changes"])
    assert "+z = 1" in editor.command("codeagent.review", runId=run_id)["diff"]
    assert not list(editor.workspace.iterdir()), "nothing may be written for a client that takes no edits"
    assert editor.close() == 0


def test_a_client_without_prompts_answers_by_command_and_gets_its_edits(start: Start) -> None:
    editor = start(answers={"window/showMessageRequest": lambda params: METHOD_NOT_FOUND})
    editor.open(editor.workspace / "a.py", SOURCE)
    run_id = editor.command("codeagent.run", task="change x")["runId"]
    editor.wait_until(lambda: bool(editor.command("codeagent.pending")))
    question = editor.command("codeagent.pending")[0]
    editor.command("codeagent.respond", requestId=question["requestId"], answer="Apply")
    assert editor.ended(run_id)["message"] == "Applied 2 files."
    assert editor.text(editor.workspace / "a.py") == SOURCE.replace("x = 1", "x = 2")


def test_events_go_to_clients_that_announce_them_and_the_response_starts_first(start: Start) -> None:
    announced = {**STOCK, "experimental": {"codeagent": {"event": True}}}
    editor = start(capabilities=announced)
    editor.open(editor.workspace / "a.py", SOURCE)
    editor.run("codeagent.run", task="change x")
    found = editor.notifications("codeagent/event")
    names = [event["type"] for event in found]
    assert names[0] == "response_start"
    assert found[0]["mode"] == "direct"
    assert names[-1] == "run_completed"
    assert names.index("response_end") < names.index("changes_proposed") < names.index("changes_applied")
    assert [event["seq"] for event in found] == sorted({event["seq"] for event in found})
    assert {event["run_id"] for event in found} == {found[0]["run_id"]}


def test_free_text_goes_to_the_input_of_a_client_that_has_one(start: Start) -> None:
    asked: list[dict[str, Any]] = []

    def answer(params: dict[str, Any]) -> dict[str, str]:
        asked.append(params)
        return {"value": "Ada"}

    question: dict[str, Any] = {"questions": [{"text": "Which name?"}], "format": "single"}
    editor = start(
        capabilities={**STOCK, "experimental": {"codeagent": {"event": True, "input": True}}},
        script=[call("AskUser", **question), say("Hello Ada.")],
        answers={"codeagent/input": answer},
    )
    editor.run("codeagent.run", task="greet me")
    assert [(params["title"], "requestId" in params) for params in asked] == [("The agent asks: Which name?", True)]
    answered = [event for event in editor.notifications("codeagent/event") if event["type"] == "question_answered"]
    assert [event["answer"] for event in answered] == ["Ada"]


def test_a_client_with_content_provider_reads_our_documents_live(start: Start) -> None:
    profile = next(item for item in PROFILES if item.name == "vscode")
    registered: list[str] = []

    def register(params: dict[str, Any]) -> None:
        registered.extend(item["method"] for item in params["registrations"])

    editor = start(profile, answers={"client/registerCapability": register})
    editor.wait_until(lambda: bool(registered))
    editor.open(editor.workspace / "a.py", SOURCE)
    run_id = editor.command("codeagent.run", task="change x")["runId"]
    editor.ended(run_id)
    editor.command("codeagent.review", runId=run_id)
    editor.wait_until(lambda: any(uri.startswith("codeagent:") for uri in editor.shown))
    uri = next(uri for uri in editor.shown if uri.endswith(".diff"))
    assert "text" in editor.client.result("workspace/textDocumentContent", {"uri": uri})
    assert registered == ["workspace/textDocumentContent", "workspace/didChangeWatchedFiles"]


def test_a_folder_uri_with_odd_characters(tmp_path: Path) -> None:
    workspace = tmp_path / "a b#ü%20"
    workspace.mkdir()
    with StockEditor(workspace, tmp_path / "state", script=SCRIPT) as editor:
        uri = editor.open(workspace / "a.py", SOURCE)
        assert uri == from_path(str(workspace / "a.py"))
        assert editor.run("codeagent.run", task="change x")["message"] == "Applied 2 files."
        assert editor.text(workspace / "new/b.py") == "z = 1\n"


def _first_edit(edit: dict[str, Any], shape: str, uri: str) -> dict[str, Any]:
    edits = edit["changes"][uri] if shape == "changes" else edit["documentChanges"][0]["edits"]
    first: dict[str, Any] = edits[0]
    return first


def _check_progress(editor: StockEditor, profile: Profile, run_id: str) -> None:
    if not profile.progress:
        assert not editor.notifications("$/progress")
        assert not editor.notifications("window/workDoneProgress/create")
        return
    end = editor.ended(run_id)
    assert end["message"] == "Applied 2 files."
    values = [params["value"] for params in editor.notifications("$/progress")] + [end]
    assert [value["kind"] for value in values].count("begin") == 1
    assert values[0]["kind"] == "begin"
    assert values[0]["cancellable"]
    assert {value["kind"] for value in values[1:-1]} <= {"report"}
    assert not any("percentage" in value for value in values), "a run without a plan has no percentage"
