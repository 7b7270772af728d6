"""The first event that a client gets says how the run works; all others follow it in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.session.run import Run
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.state import RunRecord
from tests.session.fakes import World, world

CREATE = {"id": "1", "name": "create_plan", "arguments": {}}
READ = {"id": "2", "name": "read_file", "arguments": {}}


def output_of(made: World, status: str = "running") -> RunOutput:
    session = made.manager.new()
    record = RunRecord("r", status=status)
    session.context.begin(record)
    run = Run(session, record, made.manager._services)
    return run._output


def heard(made: World) -> list[str]:
    return [event.type for event in made.events]


@pytest.mark.parametrize(
    ("event", "mode"),
    [
        (events.Token(content="Hi"), "direct"),
        (events.ToolCalls(calls=(READ,)), "direct"),
        (events.ToolCalls(calls=(CREATE,)), "plan"),
        (events.ToolCalls(calls=(READ, CREATE)), "plan"),
        (events.RunCompleted(status="failed"), "direct"),
        (events.ApprovalRequested(title="?"), "direct"),
        (events.FileChanged(path="a"), "direct"),
    ],
)
def test_what_tells_the_mode(tmp_path: Path, event: events.Event, mode: str) -> None:
    made = world(tmp_path / "w")
    output = output_of(made)
    for early in (events.IntentClassified(intent="x"), events.StatusChanged(message="busy"), events.UsageReported()):
        output.emit(early)
    assert heard(made) == []
    output.emit(event)
    assert heard(made) == ["response_start", "intent_classified", "status", "usage", event.type]
    assert getattr(made.events[0], "mode", "") == mode
    assert [told.seq for told in made.events] == [1, 2, 3, 4, 5]
    assert [item["seq"] for item in made.store.load(made.events[0].session_id)] == [
        told.seq for told in made.events if not told.transient
    ]


def test_what_clients_never_get_does_not_wait(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    output = output_of(made)
    output.emit(events.UsageReported())
    output.emit(events.MessageAdded(message={"role": "user", "content": "t"}))
    assert heard(made) == ["message"]
    output.begin("plan")
    output.begin("direct")
    assert heard(made) == ["message", "response_start", "usage"]
    assert getattr(made.events[1], "mode", "") == "plan"


def test_a_run_that_is_over_speaks_at_once_and_begins_again_when_it_goes_on(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    output = output_of(made, "completed")
    output.emit(events.StatusChanged(message="x"))
    output.begin_again("plan")
    assert heard(made) == ["status", "response_start"]


async def test_what_is_printed_comes_in_its_step_before_what_happens_next(tmp_path: Path) -> None:
    """Also a line without an end, which else would wait for the next command's."""
    made = world(tmp_path)
    output = output_of(made)
    output._record.step_id = "s1"
    output.begin("direct")
    output.printed("stdout", "first\nwithout an end")
    output.emit(events.ToolFinished(tool="run_cmd", success=True))
    output._record.step_id = "s2"
    output.printed("stdout", "next\n")
    output.emit(events.ToolFinished(tool="run_cmd", success=True))
    told = [event for event in made.events if isinstance(event, events.StepOutput | events.ToolFinished)]
    shown = [(event.step_id, event.content) if isinstance(event, events.StepOutput) else "end" for event in told]
    assert shown == [("s1", "first\nwithout an end"), "end", ("s2", "next\n"), "end"]


def test_the_texts_of_two_replies_do_not_run_into_each_other(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    output = output_of(made)
    for piece in ("Do", "ne."):
        output.emit(events.Token(content=piece))
    output.emit(events.UsageReported())
    output.emit(events.StatusChanged(message="checking"))
    output.emit(events.Token(content="Now it is."))
    output.emit(events.UsageReported())
    output.emit(events.ToolCalls(calls=(READ,)))
    output.emit(events.Token(content="Read."))
    said = [event.content for event in made.events if isinstance(event, events.Token)]
    assert said == ["Do", "ne.", "\n\nNow it is.", "Read."]
