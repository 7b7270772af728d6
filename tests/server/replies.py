"""Replies of the scripted model, in short."""

from __future__ import annotations

from typing import Any


def say(text: str, **options: Any) -> dict[str, Any]:
    """A last answer."""
    return {"text": text, **options}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """One tool call."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Several tool calls in one reply."""
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in wanted]}


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    """An edit of one file."""
    return call("edit_file", path=path, old_str=old, new_str=new)


def write(path: str, content: str) -> dict[str, Any]:
    """A whole file."""
    return call("write_file", path=path, content=content)
