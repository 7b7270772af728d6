"""Old exchanges become a line each, old results a reference."""

from __future__ import annotations

from codeagent_lsp.agent.context.compaction import LONG_OUTPUT, digest, short_result
from codeagent_lsp.agent.context.history import note, take_apart
from codeagent_lsp.messages import Message, ToolCall


def exchange(call: ToolCall, result: str, said: str = "") -> list[Message]:
    return [Message("assistant", said, (call,)), Message("tool", result, tool_call_id=call.id, name=call.name)]


WORK = [
    Message("user", "the task"),
    *exchange(ToolCall("read_file", {"path": "a.py", "start_line": 5}, "1"), "5|x\n6|y", "I look first."),
    *exchange(ToolCall("run_cmd", {"command": "pytest -q"}, "2"), "\n3 passed\nin 0.1 s"),
    note("Step back."),
    Message("assistant", "All is well."),
]


def test_one_line_tells_what_was_done_and_how_it_went() -> None:
    lines = digest(take_apart(WORK).exchanges, "", 1000).split("\n")
    assert lines == [
        "- I said: I look first.",
        "- read_file a.py lines 5-: read 2 lines",
        "- run_cmd pytest -q: 3 passed",
        "- I said: All is well.",
    ]


def test_the_latest_lines_stay_and_the_earlier_summary_is_not_lost() -> None:
    many = [
        message
        for number in range(200)
        for message in exchange(ToolCall("t", {"n": number}, str(number)), f"r{number}")
    ]
    told = digest(take_apart(many).exchanges, "It began well.", 400)
    assert told.startswith("It began well.\n(")
    assert "earlier steps)" in told
    assert told.endswith("- t: r199")
    assert len(told) < 450


def test_a_call_without_a_result_and_an_empty_result() -> None:
    call = ToolCall("t", {"path": "x"}, "1")
    assert digest([(Message("assistant", "", (call,)),)], "", 200) == "- t x: no result"
    assert digest([tuple(exchange(call, " \n"))], "", 200) == "- t x: done"


def test_old_results_by_tool() -> None:
    text = "a line of text\n" * 400
    assert short_result(ToolCall("read_file", {"path": "a.py"}), text).startswith("(read_file a.py: 401 lines, removed")
    assert all(
        len(short_result(ToolCall(name, {"command": "x"}), text)) <= LONG_OUTPUT
        for name in ("run_cmd", "run_tests", "command_output")
    )
    assert short_result(ToolCall("grep", {"pattern": "x"}), text) == text
    assert short_result(ToolCall("edit_file", {"path": "a.py"}), "Done.") == "Done."


def test_a_result_made_short_stays_as_it_is() -> None:
    call = ToolCall("read_file", {"path": "a.py"})
    short = short_result(call, "text\n" * 400)
    assert short_result(call, short) == short
