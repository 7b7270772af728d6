"""The tree of all errors that this program raises on purpose, and their codes.

Not here: the sentences shown to the user (`texts.py`) and the mapping to JSON-RPC codes (`server/`).

    CodeAgentError
    ├── UserError                 rendered from the catalogue, English or Chinese
    │   ├── UsageError            a bad argument of a command or of the command line
    │   ├── SettingError          a setting with a bad value
    │   ├── SessionError          a session or run that does not exist, or is busy
    │   │   └── StepWaits         a failed step of a plan waits for the user
    │   ├── EditorError           the editor refused, failed or did not answer
    │   └── ModelError            anything between us and the language model
    │       ├── ModelNotFound         no endpoint, no such model, weights not fetched
    │       ├── ModelUnreachable      connect, DNS, TLS, reset
    │       ├── ModelRejected         400 and the like: a retry changes nothing
    │       │   └── ModelUnauthorized 401, 403: no key, or another one is wanted
    │       ├── BudgetSpent           the call could go beyond the budget of its run
    │       ├── ModelBusy             429, 5xx: a retry may help
    │       ├── ModelTimeout          connect, first token or silence limit passed
    │       ├── ModelStreamBroken     cut, garbled, or an error inside the stream
    │       ├── ModelReplyInvalid     finished, but not usable
    │       └── ContextOverflow       the prompt does not fit the window
    └── AgentError                plain English, read by the model
        ├── FileRefused           missing, binary, too large, a folder
        ├── PathRefused           outside the workspace, or protected
        ├── EditRefused           the edit engine found no unique, safe place
        ├── PatchRefused          a patch that does not apply as a whole
        │   └── NoSuchFile        a patch of a file that is not there
        ├── ToolFailed            reported to the model, which goes on
        │   └── ReplyUnreadable   what a service gave a tool cannot be read
        ├── ToolRetry             reported to the model with what to correct
        │   └── WrongArguments   the arguments do not fit the tool's schema
        ├── PermissionDenied      the user or a rule denied the call
        └── CircuitOpen           the tool failed too often and is paused
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from codeagent_lsp.texts import text


class ErrorType(StrEnum):
    """The coarse kind of an error, which says what a caller can do about it; the values are those in tool results."""

    PARAM = "param_error"
    PARSE = "parse_error"
    NETWORK = "network_error"
    EXECUTION = "execution_error"
    PERMISSION = "permission_error"
    CANCELLED = "cancelled"


class Advice(NamedTuple):
    """The meaning of an error code: its type, and whether the same call, unchanged, may succeed later."""

    type: ErrorType
    retry: bool


class ErrorCode(StrEnum):
    """The codes that can appear in a tool result, an event or a command's answer; the value of each is its name."""

    INVALID_PARAM = "INVALID_PARAM"
    NOT_FOUND = "NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    TIMEOUT = "TIMEOUT"
    CIRCUIT_OPEN = "CIRCUIT_OPEN"
    CANCELLED = "CANCELLED"
    PARSE_ERROR = "PARSE_ERROR"
    NETWORK_ERROR = "NETWORK_ERROR"
    EDIT_REFUSED = "EDIT_REFUSED"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    LOOP_DETECTED = "LOOP_DETECTED"
    TOOL_DISABLED = "TOOL_DISABLED"
    EDITOR_ERROR = "EDITOR_ERROR"
    MCP_PARAM_ERROR = "MCP_PARAM_ERROR"
    MCP_PARSE_ERROR = "MCP_PARSE_ERROR"
    MCP_EXECUTION_ERROR = "MCP_EXECUTION_ERROR"
    MCP_NETWORK_ERROR = "MCP_NETWORK_ERROR"
    MCP_TIMEOUT = "MCP_TIMEOUT"
    MCP_NOT_FOUND = "MCP_NOT_FOUND"
    CONNECTION_ERROR = "CONNECTION_ERROR"
    TIMEOUT_ERROR = "TIMEOUT_ERROR"
    PARAMETER_ERROR = "PARAMETER_ERROR"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    PERMISSION_ERROR = "PERMISSION_ERROR"
    SANDBOX_NOT_FOUND = "SANDBOX_NOT_FOUND"
    SANDBOX_TERMINATED = "SANDBOX_TERMINATED"

    @property
    def advice(self) -> Advice:
        """The type of this code, and whether the same call may succeed later."""
        return _ADVICE[self]


_ADVICE: dict[ErrorCode, Advice] = {
    ErrorCode.INVALID_PARAM: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.NOT_FOUND: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.PERMISSION_DENIED: Advice(ErrorType.PERMISSION, retry=False),
    ErrorCode.EXECUTION_ERROR: Advice(ErrorType.EXECUTION, retry=False),
    ErrorCode.TIMEOUT: Advice(ErrorType.EXECUTION, retry=True),
    ErrorCode.CIRCUIT_OPEN: Advice(ErrorType.EXECUTION, retry=True),
    ErrorCode.CANCELLED: Advice(ErrorType.CANCELLED, retry=False),
    ErrorCode.PARSE_ERROR: Advice(ErrorType.PARSE, retry=True),
    ErrorCode.NETWORK_ERROR: Advice(ErrorType.NETWORK, retry=True),
    ErrorCode.EDIT_REFUSED: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.CONTEXT_OVERFLOW: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.LOOP_DETECTED: Advice(ErrorType.EXECUTION, retry=False),
    ErrorCode.TOOL_DISABLED: Advice(ErrorType.PERMISSION, retry=False),
    ErrorCode.EDITOR_ERROR: Advice(ErrorType.EXECUTION, retry=True),
    ErrorCode.MCP_PARAM_ERROR: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.MCP_PARSE_ERROR: Advice(ErrorType.PARSE, retry=False),
    ErrorCode.MCP_EXECUTION_ERROR: Advice(ErrorType.EXECUTION, retry=False),
    ErrorCode.MCP_NETWORK_ERROR: Advice(ErrorType.NETWORK, retry=True),
    ErrorCode.MCP_TIMEOUT: Advice(ErrorType.NETWORK, retry=True),
    ErrorCode.MCP_NOT_FOUND: Advice(ErrorType.EXECUTION, retry=False),
    ErrorCode.CONNECTION_ERROR: Advice(ErrorType.NETWORK, retry=True),
    ErrorCode.TIMEOUT_ERROR: Advice(ErrorType.EXECUTION, retry=True),
    ErrorCode.PARAMETER_ERROR: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.VALIDATION_ERROR: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.PERMISSION_ERROR: Advice(ErrorType.PERMISSION, retry=False),
    ErrorCode.SANDBOX_NOT_FOUND: Advice(ErrorType.PARAM, retry=False),
    ErrorCode.SANDBOX_TERMINATED: Advice(ErrorType.EXECUTION, retry=False),
}


class CodeAgentError(Exception):
    """The base of all errors. `str(error)` is one English sentence that says what to do next."""

    code = ErrorCode.EXECUTION_ERROR

    def localized(self, language: str) -> str:
        """Return the sentence in `language` (`en` or `zh-cn`) if the catalogue has it, else in English. Errors for the
        model have English only.
        """
        return str(self)


class UserError(CodeAgentError):
    """An error for the user, as a key of the catalogue (`texts.py`) and the values of its placeholders, so that it can
    be shown in their language.
    """

    def __init__(self, key: str, /, **values: object) -> None:
        super().__init__(text(key, "en", **values))
        self.key = key
        self.values = values

    def localized(self, language: str) -> str:
        """Return the sentence for the user in `language` (`en` or `zh-cn`). KeyError if its key is not in the
        catalogue.
        """
        return text(self.key, language, **self.values)


class UsageError(UserError):
    """An argument of a command or of the command line is missing, unknown or wrong."""

    code = ErrorCode.INVALID_PARAM


class SettingError(UserError):
    """A setting has an invalid value; the default is used instead. Also a policy, settings file or state folder that
    cannot be used.
    """

    code = ErrorCode.INVALID_PARAM


class SessionError(UserError):
    """A session or a run does not exist, or is in the wrong state for the request."""

    code = ErrorCode.NOT_FOUND


class StepWaits(SessionError):
    """A step of a plan failed, and the user did not decide in time whether to retry or skip it."""

    code = ErrorCode.TIMEOUT


class EditorError(UserError):
    """The editor refused a request, failed, or did not answer in time. Whether it did what it was asked for may be
    unknown.
    """

    code = ErrorCode.EDITOR_ERROR


class ModelError(UserError):
    """Any failure between this program and the language model."""

    code = ErrorCode.EXECUTION_ERROR


class ModelNotFound(ModelError):
    """No endpoint answers, the model's name is unknown, or the weights are not on this machine."""

    code = ErrorCode.NOT_FOUND


class ModelUnreachable(ModelError):
    """The connection was refused or reset, the name was not resolved, or TLS failed."""

    code = ErrorCode.NETWORK_ERROR


class BudgetSpent(ModelError):
    """The call was not made, because it could go beyond the budget of its run."""

    code = ErrorCode.EXECUTION_ERROR


class ModelRejected(ModelError):
    """The endpoint refused the request, for example with HTTP 400: a bad key or a bad request. The same call fails
    again.
    """

    code = ErrorCode.INVALID_PARAM


class ModelUnauthorized(ModelRejected):
    """The endpoint wants a key, or another one (HTTP 401 or 403)."""

    code = ErrorCode.PERMISSION_DENIED


class ModelBusy(ModelError):
    """A rate limit (HTTP 429) or a server failure (5xx), after which a retry may help. `retry_after` is in seconds,
    None when the server did not say.
    """

    code = ErrorCode.NETWORK_ERROR

    def __init__(self, key: str, /, *, retry_after: float | None = None, **values: object) -> None:
        super().__init__(key, **values)
        self.retry_after = retry_after


class ModelTimeout(ModelError):
    """The time limit for connecting, for the first token or for silence has passed."""

    code = ErrorCode.TIMEOUT


class ModelStreamBroken(ModelError):
    """The reply was cut before its end, garbled, or contained an error. Nothing of it is used."""

    code = ErrorCode.NETWORK_ERROR


class ModelReplyInvalid(ModelError):
    """The reply ended normally but is empty or cannot be understood."""

    code = ErrorCode.PARSE_ERROR


class ContextOverflow(ModelError):
    """The prompt does not fit the model's window. `stated` is the window that the server named, in tokens, None if it
    named none.
    """

    code = ErrorCode.CONTEXT_OVERFLOW

    def __init__(self, key: str, /, *, stated: int | None = None, **values: object) -> None:
        super().__init__(key, **values)
        self.stated = stated


class AgentError(CodeAgentError):
    """An error for the model: `str(error)` is plain, precise English, with the next step in it; it has no other
    language.
    """


class FileRefused(AgentError):
    """A file cannot be read as text: missing, binary, too large, or a folder; or a character cannot be written in its
    encoding.
    """

    code = ErrorCode.NOT_FOUND


class PathRefused(AgentError):
    """A path is outside the workspace, or needs the user's own approval. It was neither read nor written."""

    code = ErrorCode.PERMISSION_DENIED


class EditRefused(AgentError):
    """There is no unique, safe place for an edit.

    `reason` is `not_found`, `ambiguous`, `already_applied` or `empty`; the message names the closest place with line
    numbers and says what differs.
    """

    code = ErrorCode.EDIT_REFUSED

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class PatchRefused(AgentError):
    """A patch is malformed or does not apply as a whole; no file was changed. The message, for the model, names file
    and hunk.
    """

    code = ErrorCode.EDIT_REFUSED


class NoSuchFile(PatchRefused):
    """A patch changes or deletes a file that does not exist; `path` is its name in the patch."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: there is no such file. To create it, use '--- /dev/null' or '*** Add File:'.")
        self.path = path


class ToolFailed(AgentError):
    """A tool could not do its work, for the reason `code`; the model gets the error as the call's result, and the run
    continues.
    """

    def __init__(self, message: str, code: ErrorCode = ErrorCode.EXECUTION_ERROR) -> None:
        super().__init__(message)
        self.code = code


class ReplyUnreadable(ToolFailed):
    """A service that a tool asks sent a reply that cannot be read. Counts as a failure for the tool's circuit
    breaker.
    """

    def __init__(self, message: str, code: ErrorCode = ErrorCode.PARSE_ERROR) -> None:
        super().__init__(message, code)


class ToolRetry(AgentError):
    """A call would work once corrected; the message says what to correct. `counts` says whether it is a failure for the
    tool's circuit breaker, `from_server` that an MCP server said so.
    """

    code = ErrorCode.INVALID_PARAM
    counts = False
    from_server = False


class WrongArguments(ToolRetry):
    """The arguments of a call do not fit its tool's schema; the message says what to correct. Counts for the tool's
    circuit breaker.
    """

    counts = True


class NotAccepted(ValueError):
    """Raised while arguments are validated, for a value of the right form that is refused. Does not count as a failure
    of the tool.
    """


class PermissionDenied(AgentError):
    """A rule, the mode or the user denied this call. `told` is what the user reads of it in place of the message, in
    their language.
    """

    code = ErrorCode.PERMISSION_DENIED

    def __init__(self, message: str, told: str = "") -> None:
        super().__init__(message)
        self.told = told


class CircuitOpen(AgentError):
    """The tool failed too often in a row and is paused until its recovery time is over; it was not called."""

    code = ErrorCode.CIRCUIT_OPEN
