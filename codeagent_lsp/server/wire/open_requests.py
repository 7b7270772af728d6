"""The client's requests that are being handled. Each is answered exactly once: by its handler, or as cancelled.

Not here: our requests to the client (`client_requests.py`), running handlers (`handlers.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.server.wire import jsonrpc
from codeagent_lsp.server.wire.envelope import MessageId, is_id

CANCELLED = -32800


@dataclass(eq=False, slots=True)
class OpenRequest:
    """A request that is being handled; `task` is None until its handler waits for something."""

    id: MessageId
    method: str
    task: asyncio.Task[None] | None = None


class OpenRequests:
    """The requests without an answer, by id; `send` takes the bytes of an answer."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._requests: dict[MessageId, OpenRequest] = {}

    def __contains__(self, identity: MessageId) -> bool:
        return identity in self._requests

    def add(self, identity: MessageId, method: str) -> OpenRequest:
        """Add a request, whose id is not in use."""
        request = self._requests[identity] = OpenRequest(identity, method)
        return request

    def answer(self, request: OpenRequest, body: bytes) -> bool:
        """Answer a request unless it has been answered; return whether this call did it."""
        if self._requests.get(request.id) is not request:
            return False
        del self._requests[request.id]
        self._send(body)
        return True

    def answer_cancelled(self, request: OpenRequest) -> bool:
        """Answer a request as cancelled unless it has been answered; return whether this call did it."""
        refusal = jsonrpc.error(request.id, CANCELLED, "The request was cancelled")
        return self.answer(request, jsonrpc.encode(refusal))

    def cancel(self, identity: Any) -> None:
        """Answer a request as cancelled at once, and stop its handler; a later result is dropped."""
        request = self._requests.get(identity) if is_id(identity) else None
        if request is not None and self.answer_cancelled(request) and request.task is not None:
            request.task.cancel()

    def cancel_others(self) -> None:
        """Cancel every request except the one whose handler calls this."""
        here = asyncio.current_task()
        for request in tuple(self._requests.values()):
            if request.task is not None and request.task is not here:
                self.cancel(request.id)
