"""Explains why a connection or a call failed, from the error and from what the transport has noticed of the server.

Not here: the classes of errors (`errors.py`), collecting the facts (`health.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.errors import AgentError, ErrorCode, ToolFailed
from codeagent_lsp.network import PROXY_AWAY
from codeagent_lsp.tools.mcp.errors import CONNECTION_CLOSED, McpProblem, McpRefused, grade, protocol_code, said
from codeagent_lsp.tools.mcp.health import Health
from codeagent_lsp.tools.mcp.settings import ServerSettings


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The facts by which the errors of one connection are explained."""

    settings: ServerSettings
    health: Health

    def problem(self, error: BaseException) -> McpProblem:
        """Return an error as a problem of this server."""
        health, name, where = self.health, self.settings.name, self.settings.where
        if isinstance(health.login, McpProblem):
            return health.login
        if (refused := health.refused) is not None:  # a retry changes nothing, unless the proxy is away
            away = refused.key == PROXY_AWAY
            code = ErrorCode.MCP_NETWORK_ERROR if away else ErrorCode.MCP_EXECUTION_ERROR
            return McpProblem(refused.key, code, **refused.values)
        cause = health.problem or error
        code = grade(cause)
        if isinstance(cause, FileNotFoundError) and self.settings.transport == "stdio":
            return McpProblem("mcp.not_found", code, name=name, command=where)
        if code is ErrorCode.MCP_PARSE_ERROR or (code is ErrorCode.MCP_TIMEOUT and health.garbled):
            reason = health.sample or said(cause)
            return McpProblem("mcp.unreadable", ErrorCode.MCP_PARSE_ERROR, name=name, reason=reason)
        if health.ending:
            words = health.last_words or "—"
            return McpProblem("mcp.ended", ErrorCode.MCP_NETWORK_ERROR, name=name, ending=health.ending, words=words)
        if health.status in (401, 403):
            code = ErrorCode.MCP_EXECUTION_ERROR
            return McpProblem("mcp.unauthorized", code, name=name, where=where, status=health.status)
        if health.status in (408, 429) or health.status >= 500:
            reason = f"HTTP {health.status}"
            return McpProblem("mcp.unreachable", ErrorCode.MCP_NETWORK_ERROR, name=name, where=where, reason=reason)
        if code is ErrorCode.MCP_TIMEOUT:
            return McpProblem("mcp.silent", code, name=name, seconds=f"{self.settings.seconds:g}")
        if code is ErrorCode.MCP_NETWORK_ERROR:
            return McpProblem("mcp.unreachable", code, name=name, where=where, reason=said(cause))
        return McpProblem("mcp.failed", code, name=name, reason=said(cause))

    def call_failure(self, error: BaseException, tool: str, seconds: float, *, noisy: bool) -> AgentError:
        """Return an error of a call, for the model; record that the connection is gone if it shows that. `noisy` is
        whether garbage arrived during the call, `seconds` the call's time limit.
        """
        code = protocol_code(error)
        if code == CONNECTION_CLOSED or self.health.problem is not None:
            self.health.gone.set()
        answered = code is not None and code != CONNECTION_CLOSED and self.health.problem is None
        if answered and self.health.login is None and self.health.status == 0:
            graded = grade(error)
            words = f"The server {self.settings.name} answered the call of {tool}: {said(error)}"
            if graded is ErrorCode.MCP_PARAM_ERROR:
                return McpRefused(words, graded)
            if graded is ErrorCode.MCP_NETWORK_ERROR:
                self.health.gone.set()
            return ToolFailed(words, graded)
        if isinstance(error, TimeoutError) and not noisy:
            words = f"The server {self.settings.name} did not answer in {seconds:g} s and was told to stop."
            return ToolFailed(words, ErrorCode.MCP_TIMEOUT)
        problem = self.problem(error)
        return ToolFailed(str(problem), problem.code)

    def may_be_older(self, error: BaseException) -> bool:
        """Return whether a child process exited at the handshake, without garbage output or a failed start."""
        ended = protocol_code(error) == CONNECTION_CLOSED and self.health.problem is None
        return ended and self.settings.transport == "stdio"
