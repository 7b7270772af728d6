"""Our requests to the client that it has not answered yet. Their ids are separate from those of the client's requests.

Every request ends: with the answer, an error, or its time limit, after which it is forgotten and a late answer is
ignored. Not here: sending (`protocol_guard.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.errors import EditorError

METHOD_NOT_FOUND = -32601  # the code of an EditorError where the client does not know the request

_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class _Waiting:
    method: str
    future: Future[Any]


class ClientRequests:
    """The pending requests. `structure(method, result)` converts an answer and raises ValueError for a bad one."""

    def __init__(self, structure: Callable[[str, Any], Any]) -> None:
        self._structure = structure
        self._waiting: dict[str, _Waiting] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, method: str) -> tuple[str, Future[Any]]:
        """Return a new id and the future that its answer resolves."""
        identity, future = f"server-{next(self._numbers)}", Future[Any]()
        self._waiting[identity] = _Waiting(method, future)
        return identity, future

    def forget(self, identity: str) -> None:
        """Remove a request."""
        self._waiting.pop(identity, None)

    def expire(self, identity: str, seconds: float) -> None:
        """End a request that was not answered in time, with an EditorError."""
        waiting = self._waiting.pop(identity, None)
        if waiting is not None:
            _fail(waiting.future, EditorError("editor.timeout", method=waiting.method, seconds=f"{seconds:g}"))

    def answer(self, identity: Any, raw: dict[str, Any]) -> None:
        """Resolve the request that a response belongs to; an unknown id is ignored."""
        # The id is the client's word and may be a list, which no dict can look up.
        waiting = self._waiting.pop(identity, None) if isinstance(identity, str) else None
        if waiting is None or waiting.future.done():
            return
        if raw.get("error") is not None:
            _fail(waiting.future, _refusal(waiting.method, raw["error"]))
            return
        try:
            waiting.future.set_result(self._structure(waiting.method, raw.get("result")))
        except ValueError as error:
            _fail(waiting.future, EditorError("editor.error", method=waiting.method, message=str(error)))

    def close(self) -> None:
        """End all requests with an EditorError: the connection is gone."""
        for identity in tuple(self._waiting):
            waiting = self._waiting.pop(identity)
            _fail(waiting.future, EditorError("editor.gone", method=waiting.method))


def _refusal(method: str, error: Any) -> EditorError:
    fields = error if isinstance(error, dict) else {}
    message = fields.get("message")
    text = message if isinstance(message, str) and message else "unknown error"
    return EditorError("editor.error", method=method, message=text[:_LONGEST_MESSAGE], code=fields.get("code"))


def _fail(future: Future[Any], error: EditorError) -> None:
    if not future.done():
        future.set_exception(error)
