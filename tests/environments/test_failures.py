"""What goes wrong with an environment, graded by type, then status, then text."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.environments.failures import SANDBOX_CODES, grade, grade_status
from codeagent_lsp.errors import ErrorCode, SettingError, ToolFailed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectionResetError(), "CONNECTION_ERROR"),
        (FileNotFoundError("no socket"), "PARAMETER_ERROR"),
        (httpx.ConnectError("x"), "CONNECTION_ERROR"),
        (httpx.RemoteProtocolError("x"), "CONNECTION_ERROR"),
        (asyncio.IncompleteReadError(b"", 5), "CONNECTION_ERROR"),
        (TimeoutError(), "TIMEOUT_ERROR"),
        (httpx.ReadTimeout("x"), "TIMEOUT_ERROR"),
        (PermissionError(), "PERMISSION_ERROR"),
        (ProcessLookupError(), "SANDBOX_TERMINATED"),
        (json.JSONDecodeError("x", "", 0), "VALIDATION_ERROR"),
        (KeyError("Id"), "SANDBOX_NOT_FOUND"),
        (RuntimeError("boom"), "EXECUTION_ERROR"),
        (RuntimeError("the sandbox s1 was terminated"), "SANDBOX_TERMINATED"),
        (RuntimeError("no such container: 5"), "SANDBOX_NOT_FOUND"),
        (RuntimeError("Connection refused"), "CONNECTION_ERROR"),
        (RuntimeError("the WebSocket closed"), "CONNECTION_ERROR"),
        (RuntimeError("cannot connect"), "CONNECTION_ERROR"),
        (RuntimeError("deadline exceeded"), "TIMEOUT_ERROR"),
        (RuntimeError("Invalid parameter x"), "PARAMETER_ERROR"),
        (RuntimeError("missing parameter x"), "PARAMETER_ERROR"),
        (RuntimeError("Unauthorized"), "PERMISSION_ERROR"),
        (RuntimeError("EPERM: no"), "PERMISSION_ERROR"),
        (RuntimeError("ENOENT: x"), "PARAMETER_ERROR"),
        (RuntimeError("File not found: x"), "PARAMETER_ERROR"),
        (RuntimeError("a permanent thing"), "EXECUTION_ERROR"),
        (ExceptionGroup("a", [ExceptionGroup("b", [PermissionError()])]), "PERMISSION_ERROR"),
        (EnvironmentProblem("x", ErrorCode.TIMEOUT_ERROR), "TIMEOUT_ERROR"),
        (ToolFailed("timed out", ErrorCode.TIMEOUT), "EXECUTION_ERROR"),
        (SettingError("container.no_image", image="x"), "EXECUTION_ERROR"),
    ],
)
def test_grades(error: BaseException, code: str) -> None:
    assert grade(error) == code
    assert grade(error) in SANDBOX_CODES


def test_a_status_is_stronger_than_words() -> None:
    assert grade_status(404, "timed out") == ErrorCode.SANDBOX_NOT_FOUND
    assert grade_status(500, "timed out") == ErrorCode.TIMEOUT_ERROR
    assert grade_status(418, "tea") == ErrorCode.EXECUTION_ERROR
