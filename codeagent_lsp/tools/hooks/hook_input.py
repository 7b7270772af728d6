"""What a hook is told of a tool call, as JSON: the tool's name and arguments in the spelling that the hook expects.

Hooks in the files of another program get its names of the tools; arguments are given in both spellings. Not here: what
it answers (`hook_answers.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import PathRefused
from codeagent_lsp.tools.tool import FILE_PATH
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files.paths import Roots

MOST_CHARS = 1 << 20

_COMMAND_END = re.compile(r"[;&|\n(){}`]+")
_BLANKS = re.compile(r"\\\n|[ \t]+")
_QUOTING = str.maketrans("", "", "\"'\\")
_MOST_WORDS = 200
_CONTENT = ("content", "new_string")


def foreign_name(tool: ToolTraits) -> str:
    """Return the name that a tool has in the files of another program; its own if it has none there."""
    server, dot, name = tool.name.partition(".")
    return tool.hook_name or (f"mcp__{server}__{name}" if dot else tool.name)


def names_of(tool: ToolTraits, *, guards: bool = False) -> tuple[str, ...]:
    """Return the names by which a hook may mean a tool: its own, that of other programs, and for all edits and all
    commands those of the plain one. For hooks that are `guards`, to take a file away is to edit it; there is nothing to
    format in it afterwards.
    """
    also = tool.hooked_as if guards or not tool.removes else ()
    return tuple(dict.fromkeys((tool.name, foreign_name(tool), *also)))


def told_path(arguments: Mapping[str, Any], roots: Roots) -> str:
    """Return the file that a hook is told for a call with these arguments, an absolute path; '' for none."""
    path = arguments.get("path")
    return roots.resolve(path) if isinstance(path, str) else ""


def tells_content(arguments: Mapping[str, Any], forms: CallForms) -> bool:
    """Return whether a call with these arguments tells a hook all that it writes."""
    own = {*_CONTENT, *(forms.arguments[name] for name in _CONTENT if name in forms.arguments)}
    return any(isinstance(arguments.get(name), str) for name in own)


def tool_input(arguments: Mapping[str, Any], forms: CallForms, roots: Roots) -> dict[str, Any]:
    """Return the arguments of a call under their own and their other names; `file_path` is absolute."""
    other = {name: arguments[own] for name, own in forms.arguments.items() if own in arguments}
    for name, own in FILE_PATH.items():
        if isinstance(arguments.get(own), str):
            other[name] = roots.resolve(arguments[own])
    return {**arguments, **other}


def subjects(told: Mapping[str, Any], roots: Roots) -> tuple[str, ...]:
    """Return what a call is about, from the arguments that hooks are told: its path, or the commands in its line. What
    may be one, as it stands behind another word (`timeout 5 git push`, `bash -c 'git push'`), counts as one.
    """
    given = told.get("tool_input")
    if not isinstance(given, Mapping):
        return ()
    path = given.get("file_path", given.get("path"))
    if command := command_line(told):
        written = _COMMAND_END.split(_BLANKS.sub(" ", command))
        parts = [form.split() for part in written for form in (part, part.translate(_QUOTING))]
        ends = (" ".join(words[at:]) for words in parts for at in range(min(len(words), _MOST_WORDS)))
        return (command.strip(), *dict.fromkeys(ends))
    if not isinstance(path, str):
        return ()
    try:
        return (path, roots.relative(roots.resolve(path)))
    except PathRefused:  # outside of the workspace: it is refused elsewhere
        return (path,)


def command_line(told: Mapping[str, Any]) -> str:
    """Return the command line of a call, from the arguments that hooks are told; '' for none."""
    given = told.get("tool_input")
    command = given.get("command", given.get("cmd")) if isinstance(given, Mapping) else None
    return command if isinstance(command, str) else ""


def as_json(event: Mapping[str, Any]) -> bytes:
    """Return the event as JSON in one line; texts that are too long lose their end."""
    written = json.dumps(event, ensure_ascii=False, default=str)
    if len(written) > MOST_CHARS:
        written = json.dumps(_shortened(event, MOST_CHARS // 16), ensure_ascii=False, default=str)
    return (written + "\n").encode("utf-8", "replace")


def _shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value[:limit]
    if isinstance(value, Mapping):
        return {key: _shortened(item, limit) for key, item in list(value.items())[:100]}
    if isinstance(value, list | tuple):
        return [_shortened(item, limit // 10) for item in value[:100]]
    return value
