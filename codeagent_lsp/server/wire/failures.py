"""Describes failures of handlers to the client: a code, one sentence, and nothing that could be a secret.

Not here: sending them (`protocol_guard.py`).
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

from pygls.exceptions import JsonRpcException

from codeagent_lsp.errors import CodeAgentError, ErrorCode, UserError

INTERNAL_ERROR = -32603
REQUEST_FAILED = -32803
INVALID_PARAMS = -32602
_FRAMES = 12  # the innermost ones

_log = logging.getLogger(__name__)


def describe(error: BaseException, method: str, language: str) -> dict[str, Any]:
    """Return the `error` member of the answer. Errors of our own give their message, all others only their type."""
    if isinstance(error, JsonRpcException):
        return {"code": error.code, "message": error.message}
    if isinstance(error, CodeAgentError):
        code = INVALID_PARAMS if error.code is ErrorCode.INVALID_PARAM else REQUEST_FAILED
        message = error.localized(language) if isinstance(error, UserError) else str(error)
        return {"code": code, "message": message, "data": {"code": str(error.code)}}
    return {"code": INTERNAL_ERROR, "message": f"Internal error in {method}: {type(error).__name__}"}


def log_failure(error: BaseException | None, method: str) -> None:
    """Log where a handler failed, with the stack. Messages of exceptions can contain file contents or keys and are left
    out.
    """
    if error is None or isinstance(error, JsonRpcException | CodeAgentError):
        return
    frames = "".join(traceback.format_tb(error.__traceback__, limit=-_FRAMES))
    _log.error("Failed in %s: %s\n%s", method, type(error).__name__, frames)
