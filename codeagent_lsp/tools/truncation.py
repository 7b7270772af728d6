"""Truncation of long text to its head and tail, with a line that counts the omitted characters. Pure functions."""

from __future__ import annotations


def truncate(value: str, limit: int, whole: str = "") -> str:
    """Return at most about `limit` bytes of UTF-8: head and tail, cut at line ends where possible.

    `whole` names, in the line between them, where the complete text is.
    """
    encoded = value.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit:
        return value
    head_size = limit * 2 // 3
    head = _cut_back(encoded[:head_size].decode("utf-8", "ignore"))
    tail = _cut_front(encoded[len(encoded) - (limit - head_size) :].decode("utf-8", "ignore"))
    missing = len(value) - len(head) - len(tail)
    where = f"; all of it: {whole}" if whole else ""
    return f"{head}\n[... {missing} characters left out{where} ...]\n{tail}"


def _cut_back(value: str) -> str:
    position = value.rfind("\n")
    return value[:position] if position > len(value) // 2 else value


def _cut_front(value: str) -> str:
    position = value.find("\n")
    return value[position + 1 :] if 0 <= position < len(value) // 2 else value
