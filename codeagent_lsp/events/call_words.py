"""Tool calls in a few words for users: the tool's name and what the call is about, as far as its arguments say it.

Not here: what a call would do, in the words of a question (`tools/permissions/approvals.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from codeagent_lsp.workspace.text.visible import some_of

# In this order: what is searched for says more than where.
_KEYS = (
    "pattern",
    "query",
    "path",
    "file_path",
    "command",
    "question",
    "symbol",
    "url",
    "name",
    "function_name",
    "goal",
)
_PATHS, _LISTS = ("path", "file_path"), ("files", "edits")
_MOST_NAMED = 3
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Delete|Update) File: |\+\+\+ (?:b/)?)(?!/dev/null)(\S.*?)\s*$", re.MULTILINE)


def call_words(call: Mapping[str, Any]) -> str:
    """Return a tool call of an event, with `name` and `subject` or `arguments`, as the tool's name and its subject,
    such as a path; only the name if it has no subject.
    """
    return f"{call.get('name', '')} {call.get('subject') or subject_of(call.get('arguments'))}".strip()


def subject_of(arguments: object, name: Callable[[str], str] = str) -> str:
    """Return what a call with these arguments is about, such as a path, a pattern or at most three names; '' if they do
    not say it, or are no mapping. `name` returns a path as users know it.
    """
    given = arguments if isinstance(arguments, Mapping) else {}
    if given.get("symbol") and given.get("new_name"):
        return f"{given['symbol']} → {given['new_name']}"
    if given.get("agent") and given.get("task"):
        return f"{given['agent']}: {given.get('description') or given['task']}"
    for key in _KEYS:
        if given.get(key):
            return name(str(given[key])) if key in _PATHS else str(given[key])
    names = [str(each.get("path", "")) for key in _LISTS for each in _rows(given.get(key))]
    names += _PATCHED.findall(given["patch"]) if isinstance(given.get("patch"), str) else []
    if names := list(dict.fromkeys(map(name, filter(None, names)))):
        return some_of(names, _MOST_NAMED)
    questions = [str(each.get("text", "")) for each in _rows(given.get("questions"))]
    return questions[0] if questions else _todo(_rows(given.get("todos")))


def _todo(todos: list[Mapping[str, Any]]) -> str:
    """Return how far a todo list is, and what is being worked on."""
    done = sum(each.get("status") == "completed" for each in todos)
    now = next((str(each.get("content") or "") for each in todos if each.get("status") == "in_progress"), "")
    return f"{done}/{len(todos)} {now}".strip() if todos else ""


def _rows(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
