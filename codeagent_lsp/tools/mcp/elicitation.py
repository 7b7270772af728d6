"""Answers the questions that a server asks in the middle of a call. Not here: asking the user (`asking.py`)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, ErrorData

from codeagent_lsp.tools.mcp.asking import ask_form, read_form
from codeagent_lsp.tools.mcp.calling import Calling
from codeagent_lsp.tools.mcp.clock import Clock

MAX_FORMS = 5
"""Most elicitations of a server in one call."""


class Elicitation:
    """The questions of one server, each asked on behalf of its latest running call. `clock` pauses meanwhile."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._calls: list[Calling] = []

    @contextmanager
    def during(self, calling: Calling) -> Generator[None, None, None]:
        """Let the server ask on behalf of this call while the body runs."""
        self._calls.append(calling)
        try:
            yield
        finally:
            self._calls.remove(calling)

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Ask the user on behalf of the last call; decline without a call, or for anything but a valid form."""
        calling = self._calls[-1] if self._calls else None
        schema = params.requested_schema if isinstance(params, ElicitRequestFormParams) else None
        form = read_form(params.message, schema)
        if calling is None or form is None or calling.forms >= MAX_FORMS:
            return ElicitResult(action="decline")
        calling.forms += 1
        asked = calling.context
        if form.wants_secret:
            asked.note(asked.words("mcp.secret", server=self._server))
            return ElicitResult(action="decline")
        async with self._clock.paused():
            answers = await ask_form(form, self._server, asked.asker, asked.words)
        return ElicitResult(action="decline") if answers is None else ElicitResult(action="accept", content=answers)
