"""Events as updates, without a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acp import schema

from codeagent_lsp import events
from codeagent_lsp.acp_agent.updates import MOST_OUTPUT, Updates
from codeagent_lsp.workspace.changes.changeset import FileChange
from tests.acp_agent.editor import strict

FOLDER = Path("/folder/it")


def told(*stream: events.Event) -> tuple[Updates, list[Any]]:
    """What becomes of a stream of events, as clients get it; each update is held against the schema."""
    updates = Updates(FOLDER, "en")
    found = [update for event in stream for update in updates.of(events.to_dict(event))]
    for update in found:
        note = schema.SessionNotification(session_id="s", update=update)
        strict(schema.SessionNotification, note.model_dump(mode="json", by_alias=True, exclude_none=True))
    return updates, found


def calls(*names: str, **arguments: Any) -> events.ToolCalls:
    return events.ToolCalls(
        calls=tuple({"id": f"c{number}", "name": name, "arguments": arguments} for number, name in enumerate(names)),
        run_id="r",
    )


def change(path: str, base: str | None, text: str | None, runs: bool | None = None) -> events.FileChanged:
    changed = FileChange(path, base, text, runs=runs)
    return events.FileChanged(path=path, change=changed.to_dict(), run_id="r")


def test_a_call_has_its_kind_its_place_and_its_end() -> None:
    _, found = told(
        calls("read_file", path="a/b.py", start_line=7),
        events.ToolFinished(tool="read_file", call_id="c0", output="x = 1", success=True),
    )
    begun, ended = found
    assert (begun.kind, begun.status, begun.title) == ("read", "in_progress", "read_file a/b.py")
    assert [(place.path, place.line) for place in begun.locations] == [("/folder/it/a/b.py", 7)]
    assert (ended.tool_call_id, ended.status) == ("c0", "completed")
    assert ended.content[0].content.text == "x = 1"


def test_an_edit_shows_what_it_changed_and_not_what_was_changed_before() -> None:
    updates, found = told(
        calls("edit_file", path="a.py"),
        change("/folder/it/a.py", "one\n", "two\n"),
        events.ToolFinished(tool="edit_file", call_id="c0"),
        calls("edit_file", path="a.py"),
        change("/folder/it/a.py", "one\n", "three\n"),
        events.ToolFinished(tool="edit_file", call_id="c0"),
    )
    ends = [each for each in found if getattr(each, "status", None) == "completed"]
    assert [(diff.old_text, diff.new_text) for end in ends for diff in end.content] == [
        ("one\n", "two\n"),
        ("two\n", "three\n"),
    ]
    assert [(diff.old_text, diff.new_text) for diff in updates.diffs("r")] == [("one\n", "three\n")]


def test_that_a_file_can_be_executed_is_said_and_only_by_the_call_that_does_it() -> None:
    updates, found = told(
        calls("run_cmd", command="chmod +x run.sh"),
        change("/folder/it/run.sh", "one\n", "one\n", runs=True),
        events.ToolFinished(tool="run_cmd", call_id="c0"),
        calls("edit_file", path="run.sh"),
        change("/folder/it/run.sh", "one\n", "two\n", runs=True),
        events.ToolFinished(tool="edit_file", call_id="c0"),
    )
    first, second = [each.content for each in found if getattr(each, "status", None) == "completed"]
    assert [each.content.text for each in first] == ["Makes run.sh executable."]
    assert [(each.old_text, each.new_text) for each in second] == [("one\n", "two\n")]
    diff, words = updates.diffs("r")
    assert (diff.old_text, diff.new_text) == ("one\n", "two\n")
    assert words.content.text == "Makes run.sh executable."
    assert [place.path for place in updates.places("r")] == ["/folder/it/run.sh"]


def test_a_file_that_is_as_before_again_is_no_change() -> None:
    updates, _ = told(
        calls("edit_file", path="a.py"),
        change("/folder/it/a.py", "one\n", "two\n"),
        events.FileChanged(path="/folder/it/a.py", change=None, run_id="r"),
    )
    assert updates.diffs("r") == []


def test_output_is_kept_by_its_end() -> None:
    updates, _ = told(calls("run_cmd", command="make"), events.StepOutput(content="x" * MOST_OUTPUT + "the end"))
    [update] = updates.output()
    printed = update.content[0].content.text
    assert len(printed) == MOST_OUTPUT
    assert printed.endswith("the end")


def test_what_has_no_result_when_the_run_ends_has_failed() -> None:
    updates, found = told(calls("run_cmd", command="make"), events.RunCompleted(status="cancelled", run_id="r"))
    assert found[-1].status == "failed"
    assert updates.output() == []


def test_the_last_word_is_said_once() -> None:
    said = events.Token(content="All done.")
    _, twice = told(said, events.RunCompleted(status="completed", summary="All done."))
    _, failed = told(said, events.RunCompleted(status="failed", error="No answer from the server."))
    assert len(twice) == 1
    assert failed[-1].content.text.strip() == "No answer from the server."


def test_a_plan_follows_its_steps() -> None:
    steps = tuple({"step_id": str(number), "title": f"Step {number}", "state": "pending"} for number in (1, 2, 3))
    _, found = told(
        events.PlanCreated(goal="Goal", steps=steps),
        events.StepStarted(step_id="1", description="", progress=0),
        events.StepCompleted(step_id="1", files_changed=(), progress=33),
        events.StepStarted(step_id="2", description="", progress=33),
        events.StepError(step_id="2", error="broken"),
    )
    assert [(entry.content, entry.status) for entry in found[-1].entries] == [
        ("Step 1", "completed"),
        ("✗ Step 2", "completed"),
        ("Step 3", "pending"),
    ]


def test_todos_are_a_plan_where_there_is_no_other() -> None:
    todos = (
        {"id": "1", "content": "Look", "status": "completed", "priority": "high"},
        {"id": "2", "content": "Do", "status": "in_progress", "priority": "medium"},
        {"id": "3", "content": "Not", "status": "cancelled", "priority": "medium"},
    )
    _, found = told(
        calls("todowrite", todos=[{"content": "Look"}, {"content": "Do"}]),
        events.ToolFinished(tool="todowrite", call_id="c0", todos=todos),
        calls("todowrite", todos=[{"content": "All", "status": "completed"}]),
        events.ToolFinished(tool="todowrite", call_id="c0", success=False),
    )
    plans = [each for each in found if isinstance(each, schema.AgentPlanUpdate)]
    assert [(entry.content, entry.priority, entry.status) for entry in plans[-1].entries] == [
        ("Look", "high", "completed"),
        ("Do", "medium", "in_progress"),
    ]
    assert len(plans) == 1, "what was asked for is not what is there"


def test_an_emptied_list_of_todos_is_shown_as_such() -> None:
    todos = ({"id": "1", "content": "Look", "status": "pending", "priority": "high"},)
    _, found = told(
        calls("todowrite", todos=[{"content": "Look"}]),
        events.ToolFinished(tool="todowrite", call_id="c0", todos=todos),
        calls("todowrite", todos=[]),
        events.ToolFinished(tool="todowrite", call_id="c0", todos=()),
    )
    plans = [each for each in found if isinstance(each, schema.AgentPlanUpdate)]
    assert [len(plan.entries) for plan in plans] == [1, 0]


def test_usage_has_the_window_and_the_sum_of_the_cost() -> None:
    updates = Updates(FOLDER, "en")
    usage = events.to_dict(events.UsageReported(prompt_tokens=900, completion_tokens=100, cost=0.25))
    assert updates.of(usage) == []  # without a window there is no size to be told
    updates.window = 32_000
    [update] = updates.of(usage)
    assert (update.used, update.size, update.cost.amount, update.cost.currency) == (1000, 32_000, 0.5, "USD")


def test_changes_that_nobody_was_asked_about_are_shown_when_they_are_written() -> None:
    row = {"path": "/folder/it/a.py", "base": "one\n", "text": "two\n", "version": None, "moved_from": None}
    applied = events.ChangesApplied(
        outcome="full", files_changed=("/folder/it/a.py",), applied=(row,), undo=False, run_id="r"
    )
    updates, [alone] = told(applied)
    assert (alone.kind, alone.status, alone.content[0].new_text) == ("edit", "completed", "two\n")
    updates.asked("r", "question")
    [answered] = updates.of(events.to_dict(applied))
    assert (answered.tool_call_id, answered.status) == ("question", "completed")


def test_only_what_was_decided_about_waits_no_more() -> None:
    updates, _ = told(*(change(path, "1\n", "2\n") for path in ("/w/a", "/w/b", "/w/c", "/w/d")))

    def left(*names: str, **more: Any) -> list[str]:
        kind = events.ChangesDiscarded if "partly" in more else events.ChangesApplied
        updates.decided(events.to_dict(kind(files_changed=names, run_id="r", **more)))
        return sorted(updates.staged["r"])

    assert left("/w/a", outcome="partial") == ["/w/b", "/w/c", "/w/d"]
    assert left(outcome="none") == ["/w/b", "/w/c", "/w/d"]
    assert left("/w/b", undo=True) == ["/w/b", "/w/c", "/w/d"]
    assert left("/w/b", "/w/c", partly=("/w/c",)) == ["/w/c", "/w/d"]
    assert left("/w/c", unconfirmed=("/w/c",), outcome="unknown") == ["/w/c", "/w/d"]
