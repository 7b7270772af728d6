"""Classification of errors of environments: by exception type and HTTP status, by text only at last. Pure functions.

Libraries are not imported: their exceptions are recognised by their class names. Not here: what is tried again
(`patience.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from codeagent_lsp.errors import CodeAgentError, ErrorCode

SANDBOX_CODES = frozenset(
    {
        ErrorCode.CONNECTION_ERROR,
        ErrorCode.TIMEOUT_ERROR,
        ErrorCode.PARAMETER_ERROR,
        ErrorCode.VALIDATION_ERROR,
        ErrorCode.PERMISSION_ERROR,
        ErrorCode.EXECUTION_ERROR,
        ErrorCode.SANDBOX_NOT_FOUND,
        ErrorCode.SANDBOX_TERMINATED,
    }
)

_BY_TYPE: tuple[tuple[str, ErrorCode], ...] = (
    # the first that fits; class names, as some are in libraries that may not be imported
    ("PermissionError", ErrorCode.PERMISSION_ERROR),
    ("FileNotFoundError", ErrorCode.PARAMETER_ERROR),
    ("ProcessLookupError", ErrorCode.SANDBOX_TERMINATED),
    ("TimeoutError", ErrorCode.TIMEOUT_ERROR),
    ("TimeoutException", ErrorCode.TIMEOUT_ERROR),
    ("LookupError", ErrorCode.SANDBOX_NOT_FOUND),
    ("ValueError", ErrorCode.VALIDATION_ERROR),
    ("TransportError", ErrorCode.CONNECTION_ERROR),
    ("EOFError", ErrorCode.CONNECTION_ERROR),
    ("OSError", ErrorCode.CONNECTION_ERROR),
)
_BY_STATUS: Mapping[int, ErrorCode] = MappingProxyType(
    {
        400: ErrorCode.PARAMETER_ERROR,
        401: ErrorCode.PERMISSION_ERROR,
        403: ErrorCode.PERMISSION_ERROR,
        404: ErrorCode.SANDBOX_NOT_FOUND,
        408: ErrorCode.TIMEOUT_ERROR,
        409: ErrorCode.SANDBOX_TERMINATED,
        410: ErrorCode.SANDBOX_TERMINATED,
        502: ErrorCode.CONNECTION_ERROR,
        503: ErrorCode.CONNECTION_ERROR,
        504: ErrorCode.TIMEOUT_ERROR,
    }
)
_BY_TEXT: tuple[tuple[re.Pattern[str], ErrorCode], ...] = (
    (re.compile(r"(?i)no such container|no such exec|does not exist"), ErrorCode.SANDBOX_NOT_FOUND),
    (re.compile(r"(?i)state improper|is not running|was terminated|has stopped"), ErrorCode.SANDBOX_TERMINATED),
    (re.compile(r"(?i)timed? ?out|deadline exceeded"), ErrorCode.TIMEOUT_ERROR),
    (re.compile(r"(?i)permission denied|not permitted|unauthorized|\beperm\b"), ErrorCode.PERMISSION_ERROR),
    (re.compile(r"(?i)file not found|no such file|\benoent\b"), ErrorCode.PARAMETER_ERROR),
    (re.compile(r"(?i)(?:invalid|missing) parameter"), ErrorCode.PARAMETER_ERROR),
    (re.compile(r"(?i)connection refused|websocket|cannot connect"), ErrorCode.CONNECTION_ERROR),
)


def grade(error: BaseException) -> ErrorCode:
    """Return the error code for an error in the communication with an environment."""
    first = first_error(error)
    if isinstance(first, CodeAgentError):
        return first.code if first.code in SANDBOX_CODES else ErrorCode.EXECUTION_ERROR
    return code_by_type(first, _BY_TYPE) or _by_text(str(first))


def grade_status(status: int, said: str) -> ErrorCode:
    """Return the error code for an HTTP error status; by the message if the status is unknown."""
    return _BY_STATUS.get(status) or _by_text(said)


def first_error(error: BaseException) -> BaseException:
    """Return the first leaf of nested exception groups, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def code_by_type(error: BaseException, known: Iterable[tuple[str, ErrorCode]]) -> ErrorCode | None:
    """Return the code of the first name in `known` among the error's class names; None if there is none."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return next((code for name, code in known if name in names), None)


def _by_text(said: str) -> ErrorCode:
    return next((code for pattern, code in _BY_TEXT if pattern.search(said)), ErrorCode.EXECUTION_ERROR)
