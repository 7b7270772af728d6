"""The values that language servers are asked with and answer with, in the terms of the workspace: paths and offsets.

An offset counts code points from the start of the text that the run sees. Pure. Here is also the form of the questions
in the protocol; that of the answers is in `answers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, position_at

_WITH_RANGE = frozenset({"textDocument/codeAction", "textDocument/rangeFormatting"})


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A request about a place in a file: an LSP `method`, an absolute path, and a range of offsets (`end` equal to
    `start`: a place; None: the whole file). `more` are further parameters; `server` asks only the one of this name.
    """

    method: str
    path: str
    start: int | None = None
    end: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What one server answered: plain JSON of the protocol, with positions in `encoding`. `lent` is True for a server
    of the user's editor.
    """

    server: str
    result: Any
    encoding: Encoding
    lent: bool = False


class CodeServers(Protocol):
    """Port: the language servers that know the text which one run sees."""

    async def ask(self, question: ServerQuestion) -> tuple[ServerAnswer, ...]:
        """Return the answers of all servers that have one; none if there is no server. Never raises ToolFailed."""


def parameters(question: ServerQuestion, text: str, encoding: Encoding) -> dict[str, Any]:
    """Return the parameters of a question about a file with this text."""
    if question.method == "codeAction/resolve":
        return dict(question.more["item"])
    # Callers and subtypes are asked for by an item of the server's own, not by a place.
    if "item" in question.more or question.method == "workspace/symbol":
        return dict(question.more)
    params: dict[str, Any] = {"textDocument": {"uri": uris.from_path(question.path)}, **question.more}
    if question.start is None:
        return params
    start, end = question.start, question.start if question.end is None else question.end
    if question.method in _WITH_RANGE:
        return {**params, "range": lsp_range(text, start, end, encoding)}
    return {**params, "position": lsp_range(text, start, start, encoding)["start"]}


def with_diagnostics(params: dict[str, Any], items: Sequence[Any]) -> dict[str, Any]:
    """Return parameters of `textDocument/codeAction` with the diagnostics of its lines, which servers fix."""
    first, last = (params["range"][name]["line"] for name in ("start", "end"))
    here = [item for item in items if isinstance(item, dict) and _touches(item.get("range"), first, last)]
    return {**params, "context": {**params.get("context", {}), "diagnostics": here}}


def _touches(span: Any, first: int, last: int) -> bool:
    try:
        return bool(span["start"]["line"] <= last and span["end"]["line"] >= first)
    except (TypeError, KeyError):
        return False


def lsp_range(text: str, start: int, end: int, encoding: Encoding) -> dict[str, Any]:
    """Return the range of two offsets."""
    lines = LineIndex.of(text)
    places = (position_at(text, lines, offset, encoding) for offset in (start, end))
    first, last = ({"line": place.line, "character": place.character} for place in places)
    return {"start": first, "end": last}
