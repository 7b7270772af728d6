"""Why a connection or a call failed: facts about the server count before the error that they led to."""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.tools.mcp.connection import Diagnosis
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.settings import ServerSettings, Transport
from codeagent_lsp.tools.mcp.stdio import Health


def diagnosis(transport: Transport = "stdio", **facts: object) -> Diagnosis:
    health = Health()
    for name, value in facts.items():
        setattr(health, name, value)
    return Diagnosis(ServerSettings("s", transport, command="program", url="https://h/x"), health)


@pytest.mark.parametrize(
    ("made", "error", "key"),
    [
        (diagnosis(), FileNotFoundError("program"), "mcp.not_found"),
        (diagnosis(garbled=1), TimeoutError(), "mcp.unreadable"),
        (diagnosis(), TimeoutError(), "mcp.silent"),
        (diagnosis(ending="code 1"), RuntimeError("?"), "mcp.ended"),
        (diagnosis("http", status=401), RuntimeError("?"), "mcp.unauthorized"),
        (diagnosis("http", status=503), RuntimeError("?"), "mcp.unreachable"),
        (diagnosis("http"), ConnectionResetError(), "mcp.unreachable"),
        (diagnosis(problem=TimeoutError()), RuntimeError("?"), "mcp.silent"),
        (diagnosis(login=McpProblem("mcp.library")), TimeoutError(), "mcp.library"),
    ],
)
def test_the_problem_of_a_server(made: Diagnosis, error: BaseException, key: str) -> None:
    assert made.problem(error).key == key


@pytest.mark.parametrize("noisy", [True, False])
def test_a_call_without_an_answer_is_told_to_stop_unless_garbage_came(noisy: bool) -> None:
    failure = diagnosis(garbled=int(noisy)).call_failure(TimeoutError(), "look", 2.0, noisy=noisy)
    assert ("was told to stop" in str(failure)) is not noisy


def test_a_broken_transport_ends_the_connection() -> None:
    made = diagnosis(problem=ConnectionResetError())
    made.call_failure(ConnectionResetError(), "look", 2.0, noisy=False)
    assert made.health.gone.is_set()


def test_a_late_answer_does_not_end_the_connection() -> None:
    made = diagnosis()
    assert getattr(made.call_failure(TimeoutError(), "look", 2.0, noisy=False), "code", None) is ErrorCode.MCP_TIMEOUT
    assert not made.health.gone.is_set()
