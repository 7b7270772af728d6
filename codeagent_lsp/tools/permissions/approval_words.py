"""Writes the question before a tool call, so that the line which every client shows holds all that is approved.

Untrusted text in it is escaped, on one line, and bounded; what is left out is marked with its length. Not here: which
choices there are and what follows from them (`tools/executor.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from codeagent_lsp.messages import ToolCall
from codeagent_lsp.texts import text
from codeagent_lsp.tools.permissions.command_permissions import CommandEnvironment
from codeagent_lsp.tools.permissions.policy import subjects_of
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.text.visible import ends_of, escaped, shown_exactly

MAX_SUBJECT = 800
MAX_TERM = 200
SHORT = 120
MAX_NAMED = 1500
_LONG_RUN = re.compile(" {17,}")


def asked_title(
    call: ToolCall, traits: ToolTraits, place: CommandEnvironment, news: str, language: str
) -> tuple[str, bool]:
    """Return the question about a call as one line, and whether it shows the whole call.

    `news` are the changed words of a tool. What a command is allowed besides stands before its words, so that no
    command can imitate it.
    """
    terms = _terms(call, place, language) if traits.effect == "run" else []
    subject = exactly(_subject(call, traits))
    shown = [ends_of(term, MAX_TERM, language) for term in terms]
    tool = f"{call.name} [{', '.join(shown)}]" if shown else call.name
    title = text("approval.tool", language, tool=tool, subject=ends_of(subject, MAX_SUBJECT, language))
    asked = f"{text('approval.changed', language, words=news)} {title}" if news else title
    return asked, len(subject) <= MAX_SUBJECT and all(len(term) <= MAX_TERM for term in terms)


def about(call: ToolCall, traits: ToolTraits, hide: Callable[[str], str] = str) -> str:
    """Return one short line about a call, for lists and logs; `hide` masks secrets, before anything is cut."""
    line = exactly(hide(_subject(call, traits)))
    return line if len(line) <= SHORT else f"{line[: SHORT // 2]}…{line[-SHORT // 2 :]}"


def describe(call: ToolCall) -> str:
    """Return the exact call for the user; invisible and bidirectional characters are escaped."""
    return f"{call.name}\n{shown_exactly(_arguments(call, indent=2), escaped)}"


def exactly(value: str) -> str:
    """Return a text as one line, in which every character can be told from every other. A long run of blanks is shown
    by its length: else it would push what follows out of sight.
    """
    line = "".join(escaped(char) if char in "\n\t" else char for char in shown_exactly(value, escaped))
    return _LONG_RUN.sub(lambda run: f"<U+0020 x {len(run[0])}>", line)


def named_together(names: Iterable[str]) -> list[str]:
    """Return all names, as they are shown, in lists that are short enough for one question each."""
    groups: list[str] = []
    for name in map(exactly, names):
        if groups and len(groups[-1]) + len(name) < MAX_NAMED:
            groups[-1] += f", {name}"
        else:
            groups.append(name)
    return groups


def _terms(call: ToolCall, place: CommandEnvironment, language: str) -> list[str]:
    """Return what is approved besides the words of a command: where it runs, and what it can reach."""
    given, isolation = call.arguments, place.isolation
    terms = []
    if isolation and not isolation.confined:
        terms.append(text("approval.unconfined", language))
    if given.get("allow_network") or place.shell.allow_network or (isolation and not isolation.offline):
        terms.append(text("approval.network", language))
    if folder := given.get("working_dir"):
        terms.append(text("approval.folder", language, folder=exactly(str(folder))))
    if names := given.get("env_vars"):
        terms.append(text("approval.variables", language, names=exactly(_listed(names))))
    if given.get("background"):
        terms.append(text("approval.background", language))
    return terms


def _subject(call: ToolCall, traits: ToolTraits) -> str:
    if traits.command_parameter:
        return str(call.arguments.get(traits.command_parameter, ""))
    named = subjects_of(traits, call.arguments) if traits.path_parameters or traits.subject_parameter else ()
    return ", ".join(named) if any(named) else _arguments(call)


def _listed(names: Any) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else str(names)


def _arguments(call: ToolCall, indent: int | None = None) -> str:
    return json.dumps(dict(call.arguments), indent=indent, ensure_ascii=False, default=str)
