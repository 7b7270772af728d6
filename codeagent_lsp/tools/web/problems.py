"""Errors of the web tools, worded for the model."""

from __future__ import annotations

from codeagent_lsp.errors import ErrorCode, ToolFailed


class WebRefused(ToolFailed):
    """Raised for an address that is never fetched, whatever the user allows."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.PERMISSION_DENIED)


def unreachable(host: str, reason: str) -> ToolFailed:
    """Return the error about a server that does not answer."""
    return ToolFailed(f"{host} cannot be reached: {reason}", ErrorCode.NETWORK_ERROR)


def not_installed(what: str) -> ToolFailed:
    """Return the error about a library of the extra `web` that is not installed."""
    message = f"{what} is not installed here. The user can add it: pip install 'codeagent-lsp[web]'"
    return ToolFailed(message, ErrorCode.NOT_FOUND)
