"""What goes wrong on the way to the web, for the model: each says what to do next."""

from __future__ import annotations

from codeagent_lsp.errors import ErrorCode, ToolFailed


class WebRefused(ToolFailed):
    """An address that is never fetched, whoever allows it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.PERMISSION_DENIED)


def unreachable(host: str, reason: str) -> ToolFailed:
    """A server that does not answer."""
    return ToolFailed(f"{host} cannot be reached: {reason}", ErrorCode.NETWORK_ERROR)


def not_installed(what: str) -> ToolFailed:
    """A library of the extra that is not here."""
    message = f"{what} is not installed here. The user can add it: pip install 'codeagent-lsp[web]'"
    return ToolFailed(message, ErrorCode.NOT_FOUND)
