"""Plans in an editor: steps, progress, decisions, failures, roll back; with and without events of our own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.files import uris
from tests.living import files_below
from tests.server.conftest import StartEditor
from tests.server.replies import call, say, write
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

OURS = {**STOCK, "experimental": {"codeagent": {"event": True}}}
BUSY = {"error": "broken"}


def plan(*titles: str) -> dict[str, Any]:
    steps = [{"title": title, "description": f"do {title}"} for title in titles]
    return call("create_plan", goal="the goal", steps=steps, estimated_complexity="low")


def step(number: int, delay: float = 0.0) -> tuple[dict[str, Any], dict[str, Any]]:
    return write(f"f{number}.py", f"x = {number}\n"), say(f"Step {number} is done.", delay=delay)


def five(*, broken: int = 0, delay: float = 0.0) -> list[dict[str, Any]]:
    script = [plan("one", "two", "three", "four", "five")]
    for number in range(1, 6):
        script.extend([BUSY] if number == broken else [])
        script.extend(step(number, delay))
    return script


def files(editor: StockEditor) -> list[int]:
    """Which of the steps' files the user has with text in them."""
    paths = {number: editor.workspace / f"f{number}.py" for number in range(1, 6)}
    return [number for number, path in paths.items() if path.exists() and editor.text(path)]


def reports(editor: StockEditor) -> list[dict[str, Any]]:
    return [params["value"] for params in editor.notifications("$/progress")]


def choose(*, failed: str | None = None) -> Any:
    """Apply every change; what to do about a step that failed, None closes the prompt."""

    def chosen(params: dict[str, Any]) -> str | None:
        titles = [item["title"] for item in params["actions"]]
        return failed if "Retry" in titles else "Apply"

    return chosen


def stopped(start: StartEditor, **options: Any) -> tuple[StockEditor, str]:
    """A plan whose third step failed, with the prompt about it closed."""
    editor = start(*five(broken=3), choose=choose(), **options)
    run_id = editor.command("codeagent.run", task="build it")["runId"]
    assert "Step 3/5 three failed:" in editor.ended(run_id)["message"]
    return editor, run_id


def offers(editor: StockEditor) -> dict[str, dict[str, Any]]:
    """What the lenses of any document offer, by title."""
    uri = editor.open(editor.workspace / "notes.py", "x\n")
    lenses = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return {lens["command"]["title"]: lens["command"] for lens in lenses}


def own_events(editor: StockEditor) -> list[dict[str, Any]]:
    return editor.notifications("codeagent/event")


def went_on(editor: StockEditor, run_id: str, number: int = 1) -> dict[str, Any]:
    """The end of a run that went on."""
    return editor.ended(f"{run_id}-{number}")


def test_steps_in_order_with_a_percentage(start: StartEditor) -> None:
    editor = start(*five(delay=0.12), choose=choose())
    run_id = editor.command("codeagent.run", task="build it")["runId"]
    assert editor.ended(run_id)["message"] == "Applied 5 files."
    seen = [value for value in reports(editor) if value["kind"] == "report"]
    messages = [str(value.get("message")) for value in seen]
    assert any(message.startswith("2/5 two · ") for message in messages)
    assert any(message.startswith("5/5 five · ") for message in messages)
    shares = [value["percentage"] for value in seen if "percentage" in value]
    assert shares == sorted(shares)
    assert 80 in shares
    assert files(editor) == [1, 2, 3, 4, 5]
    third = editor.prompts[2]["message"]
    assert third.startswith("Step 3/5 three: Create f3.py, +1?")  # more follows where ruff is installed
    assert not (editor.workspace / "f6.py").exists()
    assert editor.close() == 0


def test_a_forced_plan_begins_its_progress_with_a_percentage(start: StartEditor) -> None:
    editor = start(plan("a"), *step(1), choose=choose(), settings={"agent": {"planning": "always"}})
    run_id = editor.command("codeagent.run", task="build it")["runId"]
    editor.ended(run_id)
    assert reports(editor)[0]["percentage"] == 0


def test_the_request_decides_about_the_mode(start: StartEditor) -> None:
    editor = start(say("Straight on."), plan("a"), *step(1), choose=choose(), capabilities=OURS)
    editor.run("codeagent.run", task="build it", mode="direct")
    editor.run("codeagent.run", task="build it", mode="plan")
    modes = [event["mode"] for event in own_events(editor) if event["type"] == "response_start"]
    assert modes == ["direct", "plan"]


def test_the_first_event_says_plan_and_all_come_in_order(start: StartEditor) -> None:
    editor = start(*five(), choose=choose(), capabilities=OURS)
    run_id = editor.command("codeagent.run", task="build it")["runId"]
    editor.ended(run_id)
    stream = own_events(editor)
    assert (stream[0]["type"], stream[0]["mode"]) == ("response_start", "plan")
    assert stream[-1]["type"] == "run_completed"
    numbers = [event["seq"] for event in stream]
    assert numbers == sorted(set(numbers))
    started = [event["step_id"] for event in stream if event["type"] == "step_started"]
    assert started == ["1", "2", "3", "4", "5"]
    applied = [event["step_id"] for event in stream if event["type"] == "changes_applied"]
    assert applied == started


def test_retry_at_the_prompt(start: StartEditor) -> None:
    editor = start(*five(broken=3), choose=choose(failed="Retry"))
    assert editor.run("codeagent.run", task="build it")["message"] == "Applied 5 files."
    assert files(editor) == [1, 2, 3, 4, 5]


def test_a_closed_prompt_leaves_offers_in_every_document(start: StartEditor) -> None:
    editor, run_id = stopped(start)
    assert editor.told("Step 3/5 three failed:")
    assert files(editor) == [1, 2]
    pending = [item for item in editor.command("codeagent.pending") if item["kind"] == "plan"]
    assert [(item["runId"], item["stepId"], item["state"]) for item in pending] == [(run_id, "3", "failed")]
    offered = offers(editor)
    assert "Do it" in offered and "Skip it" in offered
    editor.client.result("workspace/executeCommand", {
        "command": offered["Do it"]["command"], "arguments": offered["Do it"]["arguments"]
    })  # fmt: skip
    assert went_on(editor, run_id)["message"] == "Applied 5 files."
    assert files(editor) == [1, 2, 3, 4, 5]
    assert not [item for item in editor.command("codeagent.pending") if item["kind"] == "plan"]
    assert "Do it" not in offers(editor)
    assert editor.close() == 0


def test_the_offers_are_code_actions_too(start: StartEditor) -> None:
    editor, _ = stopped(start)
    uri = editor.open(editor.workspace / "notes.py", "x\n")
    place = {"line": 0, "character": 0}
    params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    titles = [action["title"] for action in editor.client.result("textDocument/codeAction", params)]
    assert any(title.endswith("Skip it") for title in titles)
    assert any(title.endswith("Roll back to before it") for title in titles)


def test_skip_later(start: StartEditor) -> None:
    editor, run_id = stopped(start)
    assert editor.command("codeagent.plan.skipStep", runId=run_id, stepId="3")["runId"] == run_id
    went_on(editor, run_id)
    page = editor.command("codeagent.plan.show", runId=run_id)["markdown"]
    assert "3. **three** *skipped*" in page
    assert "4. **four**" in page


def test_back_to_before_step_two(start: StartEditor) -> None:
    editor, run_id = stopped(start, capabilities=OURS)
    editor.command("codeagent.plan.rollback", runId=run_id, stepId="2")
    editor.told("Undone in 1")
    editor.wait_until(lambda: own_events(editor)[-1]["type"] == "plan_modified")
    assert files(editor) == [1]
    told = own_events(editor)
    undone = [event for event in told if event["type"] == "changes_applied" and event["undo"]]
    assert [event["steps"] for event in undone] == [["2", "3"]]
    assert told[-1]["rolled_back_to"] == "2"
    assert [item["state"] for item in told[-1]["steps"]] == ["completed", *["pending"] * 4]
    editor.command("codeagent.plan.retryStep", runId=run_id, stepId="2")
    went_on(editor, run_id)
    assert "2. **two**" in editor.command("codeagent.plan.show", runId=run_id)["markdown"]


@pytest.mark.parametrize("capabilities", [STOCK, OURS], ids=["stock client", "with events"])
@pytest.mark.parametrize("order", ["retry", "skip", "back"])
def test_a_plan_that_failed_at_three_of_five_is_steered_to_its_end(
    start: StartEditor, order: str, capabilities: dict[str, Any]
) -> None:
    """Files, plan and events, for a client that knows nothing of ours and for one that does."""
    first = {"retry": 3, "skip": 4, "back": 2}[order]
    left = [reply for number in range(first, 6) for reply in step(number)]
    script = [plan("one", "two", "three", "four", "five"), *step(1), *step(2), BUSY, *left]
    editor = start(*script, choose=choose(), capabilities=capabilities)
    run_id = editor.command("codeagent.run", task="build it")["runId"]
    editor.ended(run_id)
    assert files(editor) == [1, 2]
    assert marks(editor, run_id) == ["x", "x", "failed", " ", " "]
    if order == "back":
        editor.command("codeagent.plan.rollback", runId=run_id, stepId="2")
        editor.told("Undone in 1")
        editor.wait_until(lambda: marks(editor, run_id) == ["x", " ", " ", " ", " "])
        assert files(editor) == [1]
    name = "skipStep" if order == "skip" else "retryStep"
    editor.command(f"codeagent.plan.{name}", runId=run_id, stepId="2" if order == "back" else "3")
    end = went_on(editor, run_id)
    done = [1, 2, 4, 5] if order == "skip" else [1, 2, 3, 4, 5]
    assert end["message"] == f"Applied {len(done)} file{'' if len(done) == 1 else 's'}."
    assert files(editor) == done
    assert all(editor.text(editor.workspace / f"f{number}.py") == f"x = {number}\n" for number in done)
    assert marks(editor, run_id) == ["x" if number in done else "skipped" for number in range(1, 6)]
    assert [item for item in editor.command("codeagent.pending") if item["kind"] == "plan"] == []
    stream = own_events(editor)
    assert bool(stream) == (capabilities is OURS)
    if stream:
        begun = [event["step_id"] for event in stream if event["type"] == "step_started"]
        assert begun == [*"123", *(str(number) for number in range(first, 6))]
        assert [event["step_id"] for event in stream if event["type"] == "step_error"] == ["3"]
        ended = [event["step_id"] for event in stream if event["type"] == "step_completed"]
        assert ended == [*"12", *(str(number) for number in range(first, 6))]
        assert [event["status"] for event in stream if event["type"] == "run_completed"] == ["stopped", "completed"]
    assert editor.close() == 0


def marks(editor: StockEditor, run_id: str) -> list[str]:
    """What the plan's page says of each step: a box, or a word."""
    page = editor.command("codeagent.plan.show", runId=run_id)["markdown"]
    found = re.findall(r"^- \[(.)\] \d\. \*\*\w+\*\*(?: \*(\w+)\*)?$", page, re.MULTILINE)
    return [word or box for box, word in found]


def test_one_step_is_undone(start: StartEditor) -> None:
    editor = start(*five(), choose=choose())
    run_id = editor.command("codeagent.run", task="build it")["runId"]
    editor.ended(run_id)
    editor.command("codeagent.undo", runId=run_id, stepId="2")
    editor.told("Undone in 1")
    assert files(editor) == [1, 3, 4, 5]
    editor.command("codeagent.undo", runId=run_id, stepId="2")
    editor.told("nothing to undo")


def test_the_plan_as_a_document_that_lives(start: StartEditor, tmp_path: Path) -> None:
    slow = [plan("a", "b"), *step(1), say("Slow.", delay=30)]
    editor = start(*slow, choose=choose())
    run_id = editor.command("codeagent.run", task="build it")["runId"]
    editor.wait_until(lambda: files(editor) == [1])
    page = editor.command("codeagent.plan.show", runId=run_id)["markdown"]
    editor.wait_until(lambda: any("plan" in uri for uri in editor.shown))
    place = files_below(tmp_path / "state", f"plan/{run_id}.md")[0]
    assert page.startswith("# the goal")
    editor.wait_until(lambda: "2. **b** *running*" in place.read_text())
    editor.command("codeagent.cancel", runId=run_id)
    editor.wait_until(lambda: "2. **b** *cancelled*" in place.read_text())


def test_what_is_written_into_the_page_of_a_plan_is_what_is_started(start: StartEditor) -> None:
    """Plan mode in a stock client: the question goes beside the page, whose list is the user's to change."""

    def edit(params: dict[str, Any]) -> str:
        return "Edit the steps" if "Start" in [item["title"] for item in params["actions"]] else "Apply"

    editor = start(plan("one", "two"), *step(2), *step(3), choose=edit)
    run_id = editor.command("codeagent.run", task="build it", mode="plan")["runId"]
    editor.wait_until(lambda: sum("/plan/" in uri for uri in editor.shown) == 2)
    assert editor.prompts[0]["message"] == "Start the plan with 2 steps? the goal"
    titles = ["Cancel", "Edit the steps", "Change…", "Start"]
    assert [item["title"] for item in editor.prompts[0]["actions"]] == titles
    path = Path(uris.to_path(editor.shown[-1]) or "")
    page = path.read_text()
    assert "Nothing has begun." in page
    uri = editor.open(path, page.replace("- [ ] 1. **one**\n  do one\n", "") + "- tell of it\n")
    editor.wait_until(lambda: any(item["kind"] == "question" for item in waiting(editor)))
    assert len(editor.prompts) == 1
    lenses = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    begin = next(lens["command"] for lens in lenses if lens["command"]["title"] == "Start")
    editor.command(begin["command"], **begin["arguments"][0])
    assert editor.ended(run_id)["message"] == "Applied 2 files."
    page = editor.command("codeagent.plan.show", runId=run_id)["markdown"]
    assert re.findall(r"\*\*(.+?)\*\*", page) == ["two", "tell of it"]


def test_an_older_page_that_is_still_open_changes_nothing(start: StartEditor) -> None:
    """The steps were arranged by a command, and the editor has not read the page anew."""

    def edit(params: dict[str, Any]) -> str:
        return "Edit the steps" if "Start" in [item["title"] for item in params["actions"]] else "Apply"

    editor = start(plan("one", "two"), *step(2), choose=edit)
    run_id = editor.command("codeagent.run", task="build it", mode="plan")["runId"]
    editor.wait_until(lambda: sum("/plan/" in uri for uri in editor.shown) == 2)
    editor.open(Path(uris.to_path(editor.shown[-1]) or ""))
    editor.command("codeagent.plan.edit", runId=run_id, steps=[{"stepId": "2", "title": "only this"}])
    editor.command("codeagent.plan.retryStep", runId=run_id, stepId="2")
    assert editor.ended(run_id)["message"] == "Applied 1 file."
    page = editor.command("codeagent.plan.show", runId=run_id)["markdown"]
    assert re.findall(r"\*\*(.+?)\*\*", page) == ["only this"]


def waiting(editor: StockEditor) -> list[dict[str, Any]]:
    """What waits for the user."""
    items: list[dict[str, Any]] = editor.command("codeagent.pending")
    return items


def test_a_plan_is_arranged_by_a_command_and_started_later(start: StartEditor) -> None:
    begun: list[str] = []
    editor = start(plan("one", "two"), *step(2), choose=lambda params: "Apply" if begun else None)
    run_id = editor.command("codeagent.run", task="build it", mode="plan")["runId"]
    editor.ended(run_id)
    assert [item["stepId"] for item in waiting(editor) if item["kind"] == "plan"] == ["1"]
    steps = editor.command("codeagent.plan.edit", runId=run_id, steps=[{"stepId": "2", "title": "the second"}])["steps"]
    assert [(item["step_id"], item["title"]) for item in steps] == [("2", "the second")]
    unknown = {"runId": run_id, "steps": [{"stepId": "9", "title": "x"}]}
    assert "has no step 9" in editor.refusal("codeagent.plan.edit", unknown)
    assert "steps" in editor.refusal("codeagent.plan.edit", {"runId": run_id, "steps": ["x"]})
    begun.append(run_id)
    editor.command("codeagent.plan.retryStep", runId=run_id, stepId="2")
    went_on(editor, run_id)
    assert files(editor) == [2]


def test_a_plan_to_be_approved(start: StartEditor) -> None:
    script = [
        call("plan_enter", title="Move the cache"),
        call("plan_update", action="section", section="Approach", content="Slowly."),
        write("early.py", "x\n"),
        call("plan_exit"),
        *step(1),
    ]

    def approve(params: dict[str, Any]) -> str:
        return "Approve" if "Approve" in [item["title"] for item in params["actions"]] else "Apply"

    editor = start(*script, choose=approve)
    editor.run("codeagent.run", task="build it")
    assert editor.prompts[0]["message"] == "Approve the plan: Move the cache?"
    assert any("plan" in uri for uri in editor.shown)
    assert files(editor) == [1]
    assert not (editor.workspace / "early.py").exists()


def test_another_server_goes_on_with_the_plan(start: StartEditor, tmp_path: Path) -> None:
    state = tmp_path / "kept"
    editor, run_id = stopped(start, state=state)
    session = editor.command("codeagent.session.list")[0]["sessionId"]
    editor.client.kill()
    again = start(*step(3), *step(4), *step(5), choose=choose(), state=state)
    again.command("codeagent.session.resume", sessionId=session)
    assert [item["stepId"] for item in again.command("codeagent.pending") if item["kind"] == "plan"] == ["3"]
    again.command("codeagent.plan.retryStep", runId=run_id, stepId="3")
    went_on(again, run_id)
    page = again.command("codeagent.plan.show", runId=run_id)["markdown"]
    assert "5 of 5 steps completed (100 %)" in page


def test_commands_that_make_no_sense_say_so(start: StartEditor) -> None:
    editor, run_id = stopped(start)
    assert "has no step" in editor.refusal("codeagent.plan.retryStep", {"runId": run_id, "stepId": "9"})
    assert "completed" in editor.refusal("codeagent.plan.skipStep", {"runId": run_id, "stepId": "1"})
    assert "not started" in editor.refusal("codeagent.plan.rollback", {"runId": run_id, "stepId": "5"})
    assert "no run" in editor.refusal("codeagent.plan.show", {"runId": "x"})
    assert "stepId" in editor.refusal("codeagent.plan.retryStep", {"runId": run_id})
