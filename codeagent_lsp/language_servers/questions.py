"""Questions in the form of the protocol. Pure functions. Not here: answers (`answers.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codeagent_lsp.language_servers.values import ServerQuestion
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, position_at

_WITH_RANGE = frozenset({"textDocument/codeAction", "textDocument/rangeFormatting"})


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
