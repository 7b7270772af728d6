"""What a hook is told of a tool call, and what it answers.

It is told JSON: the tool's name and arguments in the spelling that the hook expects. It answers by its exit code and
its words, or by JSON on its standard output. Not here: running it (`hooks.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import PathRefused
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.tool import FILE_PATH
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.visible import visible

MOST_CHARS = 1 << 20

_COMMAND_END = re.compile(r"[;&|\n(){}`]+")
_BLANKS = re.compile(r"\\\n|[ \t]+")
_QUOTING = str.maketrans("", "", "\"'\\")
_MOST_WORDS = 200
_CONTENT = ("content", "new_string")

MOST_WORDS = 10_000
DENIED = 2
"""The exit code by which a hook denies."""

MOST_ANSWERS = 200
UNREADABLE = "its JSON cannot be read"

_DECODER = json.JSONDecoder(strict=False)
_OBJECT = re.compile(r"\{")
_NO_SCRIPT = re.compile(r"\S*python[\w.]*: can't open file .*: \[Errno \d+\]")
"""What Python says, with the same exit code, when the script of a hook is not there, as in the hidden home folder."""


def foreign_name(tool: ToolTraits) -> str:
    """Return the name by which hooks written for Claude Code know a tool (`Edit`, `mcp__server__tool`); its own name if
    it has none there.
    """
    server, dot, name = tool.name.partition(".")
    return tool.hook_name or (f"mcp__{server}__{name}" if dot else tool.name)


def names_of(tool: ToolTraits, *, guards: bool = False) -> tuple[str, ...]:
    """Return the names by which a hook may mean a tool: its own, that in Claude Code, and for all tools that edit or
    run commands the names of the plain ones. A tool that removes files counts as editing only for hooks that are
    `guards`, which run before the call.
    """
    also = tool.hooked_as if guards or not tool.removes else ()
    return tuple(dict.fromkeys((tool.name, foreign_name(tool), *also)))


def told_path(arguments: Mapping[str, Any], roots: Roots) -> str:
    """Return the absolute path of the file that hooks are sent for a call with these arguments; '' for none.
    PathRefused for one outside of the workspace.
    """
    path = arguments.get("path")
    return roots.resolve(path) if isinstance(path, str) else ""


def tells_content(arguments: Mapping[str, Any], forms: CallForms) -> bool:
    """Return whether the arguments of a call contain the whole text that it writes, so that a hook before it sees
    it.
    """
    own = {*_CONTENT, *(forms.arguments[name] for name in _CONTENT if name in forms.arguments)}
    return any(isinstance(arguments.get(name), str) for name in own)


def tool_input(arguments: Mapping[str, Any], forms: CallForms, roots: Roots) -> dict[str, Any]:
    """Return the arguments of a call under their own and their other names; `file_path` is absolute. For the field
    `tool_input` that hooks get. PathRefused for a path outside of the workspace.
    """
    other = {name: arguments[own] for name, own in forms.arguments.items() if own in arguments}
    for name, own in FILE_PATH.items():
        if isinstance(arguments.get(own), str):
            other[name] = roots.resolve(arguments[own])
    return {**arguments, **other}


def subjects(told: Mapping[str, Any], roots: Roots) -> tuple[str, ...]:
    """Return what a call is about, from the arguments that hooks are sent: its path as given and relative, or the
    commands in its line, also those behind another word (`timeout 5 git push`, `bash -c 'git push'`). () for neither.
    `told` is the JSON object that hooks get, with `tool_input`.
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
    """Return the command line of a call, from the JSON object that hooks are sent (`tool_input`); '' for none."""
    given = told.get("tool_input")
    command = given.get("command", given.get("cmd")) if isinstance(given, Mapping) else None
    return command if isinstance(command, str) else ""


def as_json(event: Mapping[str, Any]) -> bytes:
    """Return the event as one line of JSON in UTF-8; above 1,048,576 characters, long texts in it lose their end."""
    written = json.dumps(event, ensure_ascii=False, default=str)
    if len(written) > MOST_CHARS:
        written = json.dumps(_shorten(event, MOST_CHARS // 16), ensure_ascii=False, default=str)
    return (written + "\n").encode("utf-8", "replace")


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value[:limit]
    if isinstance(value, Mapping):
        return {key: _shorten(item, limit) for key, item in list(value.items())[:100]}
    if isinstance(value, list | tuple):
        return [_shorten(item, limit // 10) for item in value[:100]]
    return value


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer of one hook. `denied` is the reason for a denial, None for no objection; `asks` demands that the user
    is asked; `context` is for the model, `notice` for the user; `problem` says how the hook itself failed, which denies
    nothing.
    """

    denied: str | None = None
    asks: bool = False
    context: str = ""
    notice: str = ""
    problem: str = ""


def answer_of(finished: Finished, stdout: str, stderr: str, *, words_are_context: bool) -> HookAnswer:
    """Return the answer of a hook that has run, by its exit code (2 denies, with stderr as the reason) or JSON on
    `stdout` (as Claude Code's hooks); with `words_are_context`, plain text on its standard output is meant for the
    model.
    """
    if finished.ending != "exited":
        return HookAnswer(problem=finished.ending)
    if finished.exit_code == DENIED and not _NO_SCRIPT.match(stderr):
        return HookAnswer(denied=_words(stderr) or _words(stdout) or "no reason given")
    if finished.exit_code:
        said = _words(stderr) or _words(stdout)
        return HookAnswer(problem=f"exit code {finished.exit_code}{': ' + said.splitlines()[0] if said else ''}"[:300])
    given, is_json = _objects(stdout), stdout.lstrip().startswith("{")
    answer = _together([_by_json(each) for each in given])
    # braces amid plain words may be no answer at all, so JSON without known fields counts only at the start
    if answer != HookAnswer() or (given and is_json):
        return answer
    if is_json and not words_are_context:
        return HookAnswer(problem=UNREADABLE)
    return HookAnswer(context=_words(stdout) if words_are_context else "")


def _together(answers: Sequence[HookAnswer]) -> HookAnswer:
    """Return answers of one hook as one; a denial is one wherever it stands."""
    return HookAnswer(
        next((each.denied for each in answers if each.denied is not None), None),
        any(each.asks for each in answers),
        "\n".join(filter(None, (each.context for each in answers))),
        "\n".join(filter(None, (each.notice for each in answers))),
    )


def _by_json(given: Mapping[str, Any]) -> HookAnswer:
    inner = given.get("hookSpecificOutput")
    inner = inner if isinstance(inner, Mapping) else {}
    decision = inner.get("permissionDecision", given.get("decision"))
    reason = _text(inner.get("permissionDecisionReason")) or _text(given.get("reason")) or "no reason given"
    denied = reason if decision in ("deny", "block") else None
    if given.get("continue") is False:
        denied = _text(given.get("stopReason")) or reason
    context = _text(inner.get("additionalContext")) or _text(given.get("additionalContext"))
    return HookAnswer(denied, decision == "ask", context, _text(given.get("systemMessage")))


def _objects(stdout: str) -> list[Mapping[str, Any]]:
    """Return the answers in JSON, wherever they begin; line breaks within a text, as a shell makes them, are right."""
    found: list[Mapping[str, Any]] = []
    end = 0
    for match in islice(_OBJECT.finditer(stdout), MOST_ANSWERS):
        at = match.start()
        # within the object before, and so no answer of its own
        if at < end:
            continue
        with suppress(ValueError, RecursionError):
            given, end = _DECODER.raw_decode(stdout, at)
            found.append(given)
    return found


def _text(value: Any) -> str:
    return _words(value) if isinstance(value, str) else ""


def _words(text: str) -> str:
    return visible(text).strip()[:MOST_WORDS]
