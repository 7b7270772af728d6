"""The tree of errors and its codes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from codeagent_lsp import errors
from codeagent_lsp.errors import CodeAgentError, ErrorCode, ErrorType, ModelBusy, UsageError, UserError


def tree(cls: type[CodeAgentError] = CodeAgentError) -> Iterator[type[CodeAgentError]]:
    """The class and everything below it that this package defines."""
    yield cls
    for child in cls.__subclasses__():
        if child.__module__.startswith("codeagent_lsp."):
            yield from tree(child)


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_advice(code: ErrorCode) -> None:
    assert code.advice.type in ErrorType
    assert isinstance(code.advice.retry, bool)
    assert code.value == code.name


@pytest.mark.parametrize("code", [code for code in ErrorCode if "TIMEOUT" in code or "NETWORK" in code])
def test_what_passes_may_be_tried_again(code: ErrorCode) -> None:
    assert code.advice.retry


@pytest.mark.parametrize("code", [ErrorCode.CANCELLED, ErrorCode.PERMISSION_DENIED, ErrorCode.INVALID_PARAM])
def test_what_stays_is_not_tried_again(code: ErrorCode) -> None:
    assert not code.advice.retry


@pytest.mark.parametrize("cls", [*tree()], ids=lambda cls: cls.__name__)
def test_every_error_has_a_code_a_docstring_and_a_place_in_the_tree(cls: type[CodeAgentError]) -> None:
    assert isinstance(cls.code, ErrorCode)
    assert inspect.getdoc(cls)
    assert cls.__module__ != errors.__name__ or cls.__name__ in (errors.__doc__ or "")


def test_errors_for_users_speak_both_languages() -> None:
    error = UsageError("command.missing", command="codeagent.run", name="task")
    assert "task" in str(error)
    assert str(error) == error.localized("en") != error.localized("zh-cn")
    assert "task" in error.localized("zh-cn")


def test_a_key_that_does_not_exist_is_a_bug() -> None:
    with pytest.raises(KeyError):
        UserError("no.such.key")


def test_a_busy_model_says_when_to_come_back() -> None:
    assert ModelBusy("model.busy", url="u", reason="r", retry_after=2.5).retry_after == 2.5
    assert ModelBusy("model.busy", url="u", reason="r").retry_after is None


def test_an_edit_that_is_refused_says_why() -> None:
    error = errors.EditRefused("ambiguous", "It stands there twice.")
    assert (error.reason, str(error), error.code) == ("ambiguous", "It stands there twice.", ErrorCode.EDIT_REFUSED)


@pytest.mark.parametrize(
    ("code", "kind", "retry"),
    [
        ("INVALID_PARAM", "param_error", False),
        ("NOT_FOUND", "param_error", False),
        ("PERMISSION_DENIED", "permission_error", False),
        ("EXECUTION_ERROR", "execution_error", False),
        ("TIMEOUT", "execution_error", True),
        ("CIRCUIT_OPEN", "execution_error", True),
        ("CANCELLED", "cancelled", False),
        ("MCP_PARAM_ERROR", "param_error", False),
        ("MCP_PARSE_ERROR", "parse_error", False),
        ("MCP_EXECUTION_ERROR", "execution_error", False),
        ("MCP_NETWORK_ERROR", "network_error", True),
        ("MCP_TIMEOUT", "network_error", True),
        ("MCP_NOT_FOUND", "execution_error", False),
        ("CONNECTION_ERROR", "network_error", True),
        ("TIMEOUT_ERROR", "execution_error", True),
        ("PARAMETER_ERROR", "param_error", False),
        ("VALIDATION_ERROR", "param_error", False),
        ("PERMISSION_ERROR", "permission_error", False),
        ("SANDBOX_NOT_FOUND", "param_error", False),
        ("SANDBOX_TERMINATED", "execution_error", False),
    ],
)
def test_what_other_programs_rely_on(code: str, kind: str, retry: bool) -> None:
    advice = ErrorCode(code).advice
    assert (advice.type.value, advice.retry) == (kind, retry)
