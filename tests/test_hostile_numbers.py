"""Numbers that Python does not read (`²`, thousands of digits) wherever a text of others is one: no part falls over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.agent.agent_files import AgentLibrary, AgentProblem
from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.llm.deltas import Assembler
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.failures import from_event
from codeagent_lsp.llm.learned_facts import reply_in, window_in
from codeagent_lsp.server.commands.convert import chosen_hunks
from codeagent_lsp.tools.plan.written_steps import drafted_steps
from codeagent_lsp.tools.skills.trust import Trust
from codeagent_lsp.tools.testing import junit
from codeagent_lsp.workspace.text.numbers import whole_number
from tests.faults.model_server import delta
from tests.tools.fakes import Bench

WHERE = endpoint("http://127.0.0.1:1")
ODD = ("²", "①", "5²", "٣", "9" * 6000)


@pytest.mark.parametrize("text", [*ODD, "", "-1", "+1", "1.0", " 1", "1_0", "x"])
def test_no_number(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("odd", ODD)
def test_an_agent_of_the_workspace_is_a_problem_and_no_failure_of_each_run(tmp_path: Path, odd: str) -> None:
    bench = Bench(tmp_path / "work")
    bench.write(".codeagent/agents/a.md", f"---\nname: a\ndescription: Does it.\nmax_iterations: {odd}\n---\nDo it.\n")
    library = AgentLibrary(tmp_path / "own", Trust(tmp_path / "trusted.json"))
    _, problems = library.look(bench.view)
    assert [type(problem) for problem in problems] == [AgentProblem]
    assert "max_iterations" in problems[0].reason


@pytest.mark.parametrize("odd", ODD)
def test_an_error_of_a_server_stays_an_error_of_the_server(odd: str) -> None:
    for error in ({"message": "boom", "code": odd}, {"message": "boom", "status": odd}):
        assert "boom" in str(from_event(error, WHERE))
    said = f"max_tokens must be at most {odd}: maximum context length is {odd} tokens, you requested {odd}"
    assert reply_in(said, 10_000) is None and window_in(said) is None


@pytest.mark.parametrize("odd", ODD)
def test_the_index_of_a_call_is_none(odd: str) -> None:
    assembler = Assembler(WHERE)
    function = {"name": "grep", "arguments": "{}"}
    assembler.feed(delta(calls=[{"index": odd, "id": "1", "function": function}]))
    assembler.feed(delta(finish="tool_calls"))
    assert [call.name for call in assembler.finish(done_marker=True).tool_calls] == ["grep"]


@pytest.mark.parametrize("odd", ODD)
def test_other_texts_with_numbers_are_read(tmp_path: Path, odd: str) -> None:
    bench = Bench(tmp_path / "work")
    bench.write("a.py", "")
    tries: list[Callable[[], Any]] = [
        lambda: drafted_steps(f"1. Look\n{odd}. Mend\n2. Test\nStep {odd}: Done\n第{odd}步 Done\n"),
        lambda: chosen_hunks({"hunks": [f"a.py#{odd}"]}, bench.view),
        lambda: junit.parse(
            f'<testsuite><testcase name="t" file="a.py" line="{odd}"><failure>a.py:{odd}: boom</failure>'
            "</testcase></testsuite>".encode(),
            str(tmp_path),
        ),
    ]
    for attempt in tries:
        try:
            attempt()
        except CodeAgentError:
            continue  # told in words
