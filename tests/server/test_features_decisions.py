"""What the user decides about changes and questions, by prompt or by command; the first answer wins."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.files.uris import to_path
from tests.server.conftest import StartEditor
from tests.server.rawclient import Refusal
from tests.server.replies import call, calls, edit, say, write
from tests.server.stock_editor import StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

LINES = "".join(f"line {number}\n" for number in range(1, 31))
TWO_HUNKS = [edit("a.py", "line 2\n", "LINE 2\n"), edit("a.py", "line 29\n", "LINE 29\n"), say("Changed.")]


def never(params: dict[str, Any]) -> None:
    """Close every prompt."""


def held(start: StartEditor, workspace: Path, *script: dict[str, Any]) -> tuple[StockEditor, str]:
    """An editor with a finished run whose changes wait, because the prompt was closed."""
    editor = start(*(script or TWO_HUNKS), choose=never)
    editor.open(workspace / "a.py", LINES)
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    assert "wait for your decision" in editor.ended(run_id)["message"]
    return editor, run_id


def test_a_closed_prompt_is_no_and_keeps_the_changes(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace)
    pending = editor.command("codeagent.pending")
    assert [(item["kind"], item["runId"]) for item in pending] == [("changes", run_id)]
    assert editor.text(workspace / "a.py") == LINES
    editor.command("codeagent.apply", runId=run_id)
    editor.told("Applied 1")
    assert "LINE 29" in editor.text(workspace / "a.py")
    assert editor.command("codeagent.pending") == []
    assert editor.close() == 0


def test_an_error_for_the_prompt_is_no(start: StartEditor, workspace: Path) -> None:
    editor = start(*TWO_HUNKS, answers={"window/showMessageRequest": lambda params: Refusal(-32603, "C-g")})
    editor.open(workspace / "a.py", LINES)
    assert "wait for your decision" in editor.run("codeagent.run", task="go")["message"]
    assert editor.text(workspace / "a.py") == LINES


def test_an_answer_that_is_no_choice_is_no(start: StartEditor, workspace: Path) -> None:
    editor = start(*TWO_HUNKS, choose=lambda params: "Sure, all of it")
    editor.open(workspace / "a.py", LINES)
    assert "wait for your decision" in editor.run("codeagent.run", task="go")["message"]
    assert editor.text(workspace / "a.py") == LINES


def test_the_question_says_what_it_is_about(start: StartEditor, workspace: Path) -> None:
    editor, _ = held(start, workspace)
    prompt = editor.prompts[0]
    assert prompt["message"].startswith("Apply changes to a.py, +2 −2?")  # more follows where ruff is installed
    assert [item["title"] for item in prompt["actions"]] == ["Review", "Apply", "Discard"]


def test_one_hunk_is_applied_and_the_other_waits(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace)
    editor.command("codeagent.apply", runId=run_id, hunks=[hunks(editor, run_id)[1]])
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == LINES.replace("line 29", "LINE 29")
    editor.wait_until(lambda: "LINE 29" not in _added(editor.command("codeagent.review", runId=run_id)["diff"]))
    assert "+LINE 2\n" in editor.command("codeagent.review", runId=run_id)["diff"]
    editor.command("codeagent.apply", runId=run_id)
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == LINES.replace("line 29", "LINE 29").replace("line 2\n", "LINE 2\n")


def test_the_review_that_is_open_shows_what_is_left(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace)
    editor.command("codeagent.review", runId=run_id)
    editor.wait_until(lambda: bool(editor.shown))
    page = Path(to_path(editor.shown[-1]) or "")
    assert {"+LINE 2\n", "+LINE 29\n"} <= set(page.read_text().splitlines(keepends=True))
    first, second = hunks(editor, run_id)
    editor.command("codeagent.discard", runId=run_id, hunks=[first])
    assert "+LINE 2\n" not in page.read_text()
    assert f"@@ {second}\n" in page.read_text()
    editor.command("codeagent.apply", runId=run_id, hunks=[second])
    editor.told("Applied 1")
    assert "LINE 29" not in page.read_text()


def test_hunks_are_those_of_the_review_that_was_seen(start: StartEditor, workspace: Path) -> None:
    """The second decision comes before the first has changed the numbers on the user's screen."""
    third = edit("a.py", "line 16\n", "LINE 16\n")
    editor, run_id = held(start, workspace, *TWO_HUNKS[:2], third, say("Changed."))
    digest = editor.command("codeagent.review", runId=run_id)["digest"]
    editor.command("codeagent.apply", runId=run_id, hunks=["a.py#1"], digest=digest)
    editor.command("codeagent.apply", runId=run_id, hunks=["a.py#2"], digest=digest)
    editor.wait_until(lambda: "LINE 16" in editor.text(workspace / "a.py"))
    assert editor.text(workspace / "a.py") == LINES.replace("line 2\n", "LINE 2\n").replace("line 16", "LINE 16")
    refused = editor.refusal("codeagent.discard", {"runId": run_id, "hunks": ["a.py#1"], "digest": digest})
    assert "not those that you have seen" in refused
    assert editor.command("codeagent.discard", runId=run_id, hunks=["a.py#3"], digest=digest)["files"]
    assert "not those" in editor.refusal("codeagent.apply", {"runId": run_id, "digest": "f" * 64})


def test_an_id_means_the_same_hunk_whatever_was_decided_since(start: StartEditor, workspace: Path) -> None:
    third = edit("a.py", "line 16\n", "LINE 16\n")
    editor, run_id = held(start, workspace, *TWO_HUNKS[:2], third, say("Changed."))
    first, second, last = hunks(editor, run_id)
    editor.command("codeagent.apply", runId=run_id, hunks=[first])
    editor.told("Applied 1")
    refused = editor.refusal("codeagent.discard", {"runId": run_id, "hunks": [second, first]})
    assert f"The change {first} is not staged any more" in refused
    assert refused.endswith(f"Staged now: {second}, {last}")
    editor.command("codeagent.discard", runId=run_id, hunks=[second])
    assert hunks(editor, run_id) == [last]
    editor.command("codeagent.apply", runId=run_id)
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == LINES.replace("line 2\n", "LINE 2\n").replace("line 29", "LINE 29")


def test_numbers_count_in_the_last_review(start: StartEditor, workspace: Path) -> None:
    third = edit("a.py", "line 16\n", "LINE 16\n")
    editor, run_id = held(start, workspace, *TWO_HUNKS[:2], third, say("Changed."))
    *_, last = hunks(editor, run_id)
    editor.command("codeagent.apply", runId=run_id, hunks=["a.py#1"])
    editor.told("Applied 1")
    editor.command("codeagent.discard", runId=run_id, hunks=["a.py#2"])
    assert "not those" in editor.refusal("codeagent.discard", {"runId": run_id, "hunks": ["a.py#2"]})
    assert hunks(editor, run_id) == [last]


def test_a_hunk_that_conflicts_leaves_the_others_waiting(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace)
    editor.type(next(iter(editor.buffers)), (1, 0), (1, 6), "mine")
    editor.command("codeagent.apply", runId=run_id, hunks=["a.py#1"])
    editor.told("a.py:2")
    waiting = _added(editor.command("codeagent.review", runId=run_id)["diff"])
    assert "LINE 2\n" in waiting
    assert "LINE 29" in waiting
    editor.command("codeagent.apply", runId=run_id, hunks=["a.py#2"])
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == LINES.replace("line 2\n", "mine\n").replace("line 29", "LINE 29")


@pytest.mark.parametrize("choice", ["Keep mine", "Take the agent's", "Ask the agent again"])
def test_a_hunk_that_conflicts_has_three_ways_out(start: StartEditor, workspace: Path, choice: str) -> None:
    """The other hunk waits as before, whatever becomes of this one."""
    first = [edit("a.py", "line 2\n", "LINE 2\n"), edit("a.py", "line 29", "LINE 29"), say("Done.")]
    choose = lambda params: choice if "same lines" in params["message"] else None  # noqa: E731
    editor = start(*first, say("Made anew."), choose=choose)
    uri = editor.open(workspace / "a.py", LINES)
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    editor.ended(run_id)
    editor.type(uri, (1, 0), (1, 6), "mine")
    editor.command("codeagent.apply", runId=run_id, hunks=["a.py#1"])
    editor.wait_until(lambda: any("deleted them: a.py:2" in prompt["message"] for prompt in editor.prompts))
    if choice == "Take the agent's":
        editor.told("Applied 1")
        assert editor.text(workspace / "a.py") == LINES.replace("line 2\n", "LINE 2\n")
    editor.wait_until(lambda: "LINE 2\n" not in _added(editor.command("codeagent.review", runId=run_id)["diff"]))
    if choice != "Take the agent's":
        assert editor.text(workspace / "a.py") == LINES.replace("line 2\n", "mine\n")
    assert _added(editor.command("codeagent.review", runId=run_id)["diff"]).splitlines()[1:] == ["+LINE 29"]
    if choice == "Ask the agent again":
        editor.wait_until(lambda: "Made anew." in str(editor.notifications("window/showMessage")))


@pytest.mark.parametrize("choice", ["Keep mine", "Undo them, too"])
def test_an_undo_asks_whether_it_goes_over_what_was_typed(start: StartEditor, workspace: Path, choice: str) -> None:
    choose = lambda params: choice if "all the same" in params["message"] else "Apply"  # noqa: E731
    editor = start(*TWO_HUNKS, choose=choose)
    uri = editor.open(workspace / "a.py", LINES)
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    editor.ended(run_id)
    editor.type(uri, (1, 0), (1, 6), "mine")
    editor.type(uri, (9, 0), (9, 0), "typed\n")
    editor.command("codeagent.undo", runId=run_id)
    editor.wait_until(lambda: any("would be undone: a.py:2" in prompt["message"] for prompt in editor.prompts))
    wanted = LINES.replace("line 10\n", "typed\nline 10\n")
    if choice == "Keep mine":
        wanted = wanted.replace("line 2\n", "mine\n")
    editor.wait_until(lambda: editor.text(workspace / "a.py") == wanted)


def test_lines_that_were_kept_can_be_undone_after_a_restart(workspace: Path, tmp_path: Path) -> None:
    path, told = workspace / "a.py", "all the same"
    with StockEditor(
        workspace,
        tmp_path / "state",
        script=TWO_HUNKS,
        choose=lambda params: "Keep mine" if told in params["message"] else "Apply",
    ) as editor:
        uri = editor.open(path, LINES)
        run_id = editor.command("codeagent.run", task="change it")["runId"]
        editor.ended(run_id)
        editor.type(uri, (1, 0), (1, 6), "mine")
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: any(told in prompt["message"] for prompt in editor.prompts))
        kept = editor.text(path)
        assert kept == LINES.replace("line 2\n", "mine\n")
    with StockEditor(workspace, tmp_path / "state", choose=lambda params: "Undo them, too") as editor:
        editor.open(path, f"typed\n{kept}")
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: any("would be undone: a.py:3" in prompt["message"] for prompt in editor.prompts))
        editor.wait_until(lambda: editor.text(path) == f"typed\n{LINES}")


def test_one_hunk_is_discarded_and_the_other_applied(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace)
    assert editor.command("codeagent.discard", runId=run_id, hunks=["a.py#1"])["files"]
    editor.command("codeagent.apply", runId=run_id)
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == LINES.replace("line 29", "LINE 29")


def test_one_file_of_two_is_applied_and_the_other_discarded(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace, edit("a.py", "line 2\n", "LINE 2\n"), write("b.py", "x\n"), say("Done."))
    editor.command("codeagent.apply", runId=run_id, files=["a.py"])
    editor.told("Applied 1")
    assert "LINE 2" in editor.text(workspace / "a.py")
    assert not (workspace / "b.py").exists()
    assert [Path(name).name for name in editor.command("codeagent.discard", runId=run_id)["files"]] == ["b.py"]
    assert editor.command("codeagent.pending") == []
    assert "do not wait any more" in editor.refusal("codeagent.discard", {"runId": run_id})


def test_review_opens_the_diff(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace)
    answer = editor.command("codeagent.review", runId=run_id)
    assert "-line 2\n+LINE 2\n" in answer["diff"]
    assert answer["diff"].startswith("--- a/a.py\n+++ b/a.py\n")
    editor.wait_until(lambda: any(uri.endswith(".diff") for uri in editor.shown))
    assert "workspace" not in answer["diff"]


def reviewed(start: StartEditor, workspace: Path, *script: dict[str, Any]) -> tuple[StockEditor, str, str]:
    """An editor whose user has asked for the review, which is open in it."""
    editor = start(*(script or TWO_HUNKS), choose=lambda params: "Review")
    editor.open(workspace / "a.py", LINES)
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    editor.wait_until(lambda: bool(editor.shown), 20)
    editor.wait_until(lambda: [each["kind"] for each in editor.command("codeagent.pending")] == ["approval"])
    return editor, run_id, editor.open(Path(to_path(editor.shown[-1]) or ""))


def offers(editor: StockEditor, uri: str, line: int) -> dict[str, Any]:
    """The commands of the code actions at a line, by title."""
    place = {"line": line, "character": 0}
    params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    return {each["title"]: each["command"] for each in editor.client.result("textDocument/codeAction", params)}


def lens_rows(editor: StockEditor, uri: str) -> list[tuple[int, str]]:
    found = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return [(each["range"]["start"]["line"], each["command"]["title"]) for each in found]


def do(editor: StockEditor, offered: dict[str, Any], title: str) -> None:
    command = offered[title]
    editor.client.result("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})


def test_a_review_is_decided_in_its_document_and_no_question_comes_over_it(start: StartEditor, workspace: Path) -> None:
    editor, run_id, review = reviewed(start, workspace)
    rows = editor.buffers[review].text.splitlines()
    first, second = (number for number, row in enumerate(rows) if row.startswith("@@ "))
    here = offers(editor, review, first + 2)
    assert [*here][:4] == [
        "Agent: apply this change",
        "Agent: discard this change",
        "Agent: apply all changes to a.py",
        "Agent: discard all changes to a.py",
    ]
    assert not any("Explain" in title for title in here), "a diff is no code"
    assert "Agent asks: Apply changes to a.py, +2 −2?" in "".join(here), "the question is here"
    assert (second, "Agent: apply this change") in lens_rows(editor, review)
    do(editor, here, "Agent: apply this change")
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == LINES.replace("line 2\n", "LINE 2\n")
    editor.ended(run_id)
    assert "Agent: apply this change" not in offers(editor, review, first + 2), "it is decided about"
    do(editor, offers(editor, review, second + 2), "Agent: discard this change")
    editor.wait_until(lambda: editor.command("codeagent.pending") == [])
    assert len(editor.prompts) == 1


def test_hunks_and_the_file_are_decided_about_where_they_are_in_the_code(start: StartEditor, workspace: Path) -> None:
    editor, _ = held(start, workspace)
    uri = next(iter(editor.buffers))
    editor.type(uri, (0, 0), (0, 0), "# mine\n")
    assert (2, "Agent: apply this change") in lens_rows(editor, uri)
    assert (29, "Agent: apply this change") in lens_rows(editor, uri)
    assert "Agent: apply this change" not in offers(editor, uri, 10)
    do(editor, offers(editor, uri, 29), "Agent: apply this change")
    editor.told("Applied 1")
    mine = f"# mine\n{LINES}"
    assert editor.text(workspace / "a.py") == mine.replace("line 29", "LINE 29")
    do(editor, offers(editor, uri, 10), "Agent: apply all changes to a.py")
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == mine.replace("line 29", "LINE 29").replace("line 2\n", "LINE 2\n")
    assert not any("this change" in title for _, title in lens_rows(editor, uri))


def test_a_new_file_is_decided_about_as_a_whole_in_the_review(start: StartEditor, workspace: Path) -> None:
    script = [write("new.py", "x = 1\n"), edit("a.py", "line 2\n", "LINE 2\n"), say("Changed.")]
    editor, _, review = reviewed(start, workspace, *script)
    row = editor.buffers[review].text.splitlines().index("+x = 1")
    here = offers(editor, review, row)
    assert "Agent: apply this change" not in here
    do(editor, here, "Agent: apply all changes to new.py")
    editor.told("Applied 1")
    assert editor.text(workspace / "new.py") == "x = 1\n"
    assert editor.text(workspace / "a.py") == LINES


def test_each_answer_opens_a_document_that_begins_with_it(start: StartEditor, workspace: Path) -> None:
    editor = start(say("one\n" * 60), say("two\n" * 60))
    editor.open(workspace / "a.py", LINES)
    for words in ("one", "two"):
        editor.run("codeagent.ask", question=f"which of them is {words}?")
        editor.wait_until(lambda: bool(editor.shown))
        shown = Path(to_path(editor.shown.pop()) or "").read_text()
        assert shown.startswith(f"## Ask: which of them is {words}?\n\n{words}\n{words}\n")
        assert "The whole conversation: " in shown
        assert "one" not in shown or words == "one"


def test_a_question_answered_by_command_first_takes_no_second_answer(start: StartEditor, workspace: Path) -> None:
    late = threading.Event()

    def slowly(params: dict[str, Any]) -> str:
        late.wait(10)
        return "Discard"

    editor = start(*TWO_HUNKS, choose=slowly)
    editor.open(workspace / "a.py", LINES)
    run_id = editor.client.start(
        "workspace/executeCommand", {"command": "codeagent.run", "arguments": [{"task": "go"}]}
    )
    editor.wait_until(lambda: len(editor.prompts) == 1)
    late.set()
    assert editor.ended(editor.client.response(run_id)["result"]["runId"])["message"] == "Discarded."
    assert editor.text(workspace / "a.py") == LINES


def test_responding_twice_or_with_nonsense_is_refused(start: StartEditor, workspace: Path) -> None:
    editor = _asking(start, workspace)
    question = _open_question(editor)
    assert question["title"] == "The agent asks: Which colour?"
    assert editor.refusal("codeagent.respond", {"requestId": question["requestId"], "answer": ["Red", "Blue"]})
    assert editor.command("codeagent.respond", requestId=question["requestId"], answer="Blue") == {"ok": True}
    assert editor.refusal("codeagent.respond", {"requestId": question["requestId"], "answer": "Red"})


def test_questions_are_shown_one_at_a_time(start: StartEditor, workspace: Path) -> None:
    open_now, most = [0], [0]

    def choose(params: dict[str, Any]) -> str:
        open_now[0] += 1
        most[0] = max(most[0], open_now[0])
        open_now[0] -= 1
        titles: list[str] = [item["title"] for item in params["actions"]]
        return titles[0]

    question = {"questions": [{"text": f"Question {n}?", "options": ["a", "b"]} for n in (1, 2, 3)], "format": "single"}
    editor = start(call("AskUser", **question), say("Thanks."), choose=choose)
    editor.run("codeagent.run", task="ask")
    assert [prompt["message"] for prompt in editor.prompts] == [f"The agent asks: Question {n}?" for n in (1, 2, 3)]
    assert most[0] == 1


def test_several_choices_are_a_sequence_with_an_end(start: StartEditor, workspace: Path) -> None:
    picks = iter(["Blue", "Red", "That is all"])
    question = {"questions": [{"text": "Colours?", "options": ["Red", "Green", "Blue"]}], "format": "multi"}
    editor = start(call("AskUser", **question), say("Thanks."), choose=lambda params: next(picks))
    session = editor.command("codeagent.run", task="ask")
    editor.ended(session["runId"])
    offered = [[item["title"] for item in prompt["actions"]] for prompt in editor.prompts]
    assert offered[0] == ["That is all", "Red", "Green", "Blue"]
    assert offered[2] == ["That is all", "Green"]
    exported = editor.command("codeagent.session.export", sessionId=session["sessionId"])["markdown"]
    assert "Blue, Red" in exported


def test_a_free_answer_is_sent_when_its_document_is_saved(start: StartEditor, workspace: Path) -> None:
    editor = start(call("AskUser", questions=[{"text": "Which name?"}], format="single"), say("Hello."))
    session = editor.command("codeagent.run", task="ask")
    editor.wait_until(lambda: bool(editor.shown))
    uri = editor.shown[0]
    place = Path(uri.removeprefix("file://"))
    text = place.read_text()
    assert "Which name?" in text
    editor.open(place, text + "Ada\n")
    editor.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert editor.ended(session["runId"])["message"] == "Done."
    assert "Ada" in editor.command("codeagent.session.export", sessionId=session["sessionId"])["markdown"]


def test_a_question_for_text_has_an_action_and_a_lens_that_show_it_again(start: StartEditor, workspace: Path) -> None:
    editor = start(call("AskUser", questions=[{"text": "Which name?"}], format="single"), say("Hello."))
    uri = editor.open(workspace / "a.py", "x\n")
    editor.command("codeagent.run", task="ask")
    editor.wait_until(lambda: bool(editor.shown))
    (lens,) = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert "Which name?" in lens["command"]["title"]
    here = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    given = {"textDocument": {"uri": uri}, "range": here, "context": {"diagnostics": []}}
    actions = editor.client.result("textDocument/codeAction", given)
    assert any("Which name?" in action["title"] for action in actions)
    command = lens["command"]
    editor.client.result("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
    editor.wait_until(lambda: len(editor.shown) == 2)
    assert [item["kind"] for item in editor.command("codeagent.pending")] == ["question"]


def test_an_answer_document_saved_empty_answers_nothing(start: StartEditor, workspace: Path) -> None:
    editor = start(call("AskUser", questions=[{"text": "Which name?"}], format="single"), say("Hello."))
    editor.command("codeagent.run", task="ask")
    editor.wait_until(lambda: bool(editor.shown))
    place = Path(editor.shown[0].removeprefix("file://"))
    editor.open(place, place.read_text())
    editor.client.notify("textDocument/didSave", {"textDocument": {"uri": editor.shown[0]}})
    assert [item["kind"] for item in editor.command("codeagent.pending")] == ["question"]


def test_pending_things_are_lenses_and_actions_of_their_file(start: StartEditor, workspace: Path) -> None:
    editor, run_id = held(start, workspace)
    uri = next(iter(editor.buffers))
    lenses = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert [lens["command"]["command"] for lens in lenses] == [
        "codeagent.review",
        *("codeagent.apply", "codeagent.discard") * 3,  # all of it, and each hunk
    ]
    other = editor.open(workspace / "other.py", "x\n")
    assert editor.client.result("textDocument/codeLens", {"textDocument": {"uri": other}}) == []
    apply = lenses[1]["command"]
    editor.client.result("workspace/executeCommand", {"command": apply["command"], "arguments": apply["arguments"]})
    editor.told("Applied 1")
    assert editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}}) == []
    assert run_id


def test_what_an_open_question_offers_is_offered_once(start: StartEditor, workspace: Path) -> None:
    editor = start(*TWO_HUNKS, answers={"window/showMessageRequest": lambda params: Refusal(-32601)})
    uri = editor.open(workspace / "a.py", LINES)
    run_id = editor.command("codeagent.run", task="go")["runId"]
    _open_question(editor)
    for titles in (list(offers(editor, uri, 15)), [title for _, title in lens_rows(editor, uri)]):
        for choice in ("Review", "Apply", "Discard"):
            assert len([title for title in titles if title == choice or title.endswith(f" {choice}")]) == 1, titles
    editor.command("codeagent.cancel")
    editor.ended(run_id, 1.0)
    assert "Agent: 1 changed file · Apply" in offers(editor, uri, 15), "the question is closed: now it is offered here"


def test_where_changes_of_two_runs_wait_each_offer_names_its_task(start: StartEditor, workspace: Path) -> None:
    more = (edit("a.py", "line 15\n", "LINE 15\n"), say("More."))
    editor = start(*TWO_HUNKS, *more, answers={"window/showMessageRequest": lambda params: None})
    uri = editor.open(workspace / "a.py", LINES)
    editor.ended(editor.command("codeagent.run", task="the ends")["runId"])
    assert (1, "Agent: apply this change") in lens_rows(editor, uri), "one run needs no name"
    editor.ended(editor.command("codeagent.run", task="the middle of it all, which is said at great length")["runId"])
    short = "the middle of it all, which is said at …"
    rows = lens_rows(editor, uri)
    assert {title for row, title in rows if "apply this" in title} == {
        "Agent: apply this change (“the ends”)",
        f"Agent: apply this change (“{short}”)",
    }
    assert (0, f"Agent: 1 changed file, “{short}” · Review") in rows
    do(editor, offers(editor, uri, 15), f"Agent: apply all changes to a.py (“{short}”)")
    editor.told("Applied 1")
    assert (1, "Agent: apply this change") in lens_rows(editor, uri)


def test_undo_takes_back_what_was_applied_last_also_of_an_earlier_run(start: StartEditor, workspace: Path) -> None:
    more = (edit("a.py", "line 15\n", "LINE 15\n"), say("More."))
    editor = start(*TWO_HUNKS, *more, answers={"window/showMessageRequest": lambda params: None})
    uri = editor.open(workspace / "a.py", LINES)
    for task in ("the ends", "the middle"):
        editor.ended(editor.command("codeagent.run", task=task)["runId"])
    do(editor, offers(editor, uri, 14), "Agent: apply this change (“the middle”)")
    editor.told("Applied 1")
    do(editor, offers(editor, uri, 1), "Agent: apply this change")
    editor.wait_until(lambda: "LINE 2\n" in editor.text(workspace / "a.py"))
    editor.command("codeagent.undo")
    editor.wait_until(lambda: editor.text(workspace / "a.py") == LINES.replace("line 15", "LINE 15"))
    editor.command("codeagent.undo")
    editor.wait_until(lambda: editor.text(workspace / "a.py") == LINES)


def test_a_decision_by_command_closes_the_question(start: StartEditor, workspace: Path) -> None:
    editor = start(*TWO_HUNKS, answers={"window/showMessageRequest": lambda params: Refusal(-32601)})
    editor.open(workspace / "a.py", LINES)
    run_id = editor.command("codeagent.run", task="go")["runId"]
    _open_question(editor)
    editor.command("codeagent.apply", runId=run_id)
    assert "Applied" in editor.ended(run_id)["message"]
    assert editor.command("codeagent.pending") == []
    assert "LINE 29" in editor.text(workspace / "a.py")


def test_a_cancel_while_the_question_is_open_keeps_the_changes(start: StartEditor, workspace: Path) -> None:
    editor = start(*TWO_HUNKS, answers={"window/showMessageRequest": lambda params: Refusal(-32601)})
    editor.open(workspace / "a.py", LINES)
    run_id = editor.command("codeagent.run", task="go")["runId"]
    question = _open_question(editor)
    assert editor.command("codeagent.cancel") == {"cancelled": [run_id]}
    assert editor.ended(run_id, 1.0)["message"] == "Cancelled."
    assert editor.refusal("codeagent.respond", {"requestId": question["requestId"], "answer": "Apply"})
    assert [item["kind"] for item in editor.command("codeagent.pending")] == ["changes"]


def test_two_tool_calls_in_one_reply_both_ask(start: StartEditor, workspace: Path) -> None:
    asks = [("AskUser", {"questions": [{"text": f"{n}?", "options": ["a", "b"]}], "format": "single"}) for n in "12"]
    editor = start(calls(*asks), say("Thanks."), choose=lambda params: params["actions"][0]["title"])
    editor.run("codeagent.run", task="ask")
    assert sorted(prompt["message"] for prompt in editor.prompts) == ["The agent asks: 1?", "The agent asks: 2?"]


def _asking(start: StartEditor, workspace: Path) -> StockEditor:
    question = {"questions": [{"text": "Which colour?", "options": ["Red", "Blue"]}], "format": "single"}
    editor = start(
        call("AskUser", **question),
        say("Thanks."),
        answers={"window/showMessageRequest": lambda params: Refusal(-32601)},
    )
    editor.command("codeagent.run", task="ask")
    return editor


def _open_question(editor: StockEditor) -> dict[str, Any]:
    editor.wait_until(lambda: any("requestId" in item for item in editor.command("codeagent.pending")))
    found: dict[str, Any] = next(item for item in editor.command("codeagent.pending") if "requestId" in item)
    return found


def hunks(editor: StockEditor, run_id: str) -> list[str]:
    """The names of the hunks that are staged, as the review has them."""
    return re.findall(r"^@@ .* @@ (\S+)$", editor.command("codeagent.review", runId=run_id)["diff"], re.MULTILINE)


def _added(diff: str) -> str:
    return "\n".join(line for line in diff.split("\n") if line.startswith("+"))
