"""Truncation of long text to its head and tail and the lines of interest between them, with lines that count the
omitted characters. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeagent_lsp.workspace.text.excerpts import LinesOfInterest

LEAST_BETWEEN = 300
"""In a smaller share than this, in bytes, no line from between head and tail is shown."""


def truncate(value: str, limit: int, whole: str = "", keywords: Sequence[str] = ()) -> str:
    """Return at most about `limit` bytes of UTF-8: head and tail, cut at line ends where possible, and from between
    them, in up to a third, lines with errors or with one of `keywords`.

    `whole` names, in the first line that stands for what is left out, where the complete text is.
    """
    encoded = value.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit:
        return value
    start = encoded.find(b"\n", limit * 4 // 9) + 1  # head and tail have two thirds at least
    between = LinesOfInterest(limit // 3, keywords)
    if start and limit // 3 >= LEAST_BETWEEN:
        between.add(encoded[start : len(encoded) - limit * 2 // 9])
    found = between.found()
    room = limit - sum(line.cost for line in found)
    head_size = room * 2 // 3
    head = _cut_back(encoded[:head_size].decode("utf-8", "ignore"))
    tail = _cut_front(encoded[len(encoded) - (room - head_size) :].decode("utf-8", "ignore"))
    at, end = (len(part.encode("utf-8", "surrogatepass")) for part in (head, tail))
    parts, where = [head], f"; all of it: {whole}" if whole else ""
    for line in (*found, None):
        begins = len(encoded) - end if line is None else start + line.start
        if begins < at or (line is not None and begins + line.size > len(encoded) - end):
            continue  # head or tail has it
        if encoded[at:begins].strip(b"\n") or line is None:
            count = len(encoded[at:begins].decode("utf-8", "surrogatepass"))
            parts.append(f"[... {count} characters left out{where} ...]")
            where = ""
        parts.append(tail if line is None else line.text)
        at = begins + (0 if line is None else line.size)
    return "\n".join(parts)


def _cut_back(value: str) -> str:
    position = value.rfind("\n")
    return value[:position] if position > len(value) // 2 else value


def _cut_front(value: str) -> str:
    position = value.find("\n")
    return value[position + 1 :] if 0 <= position < len(value) // 2 else value
