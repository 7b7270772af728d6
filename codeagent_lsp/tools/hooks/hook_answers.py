"""What a hook answers: by its exit code and its words, or by JSON on its standard output.

It may deny with a reason, want the user to be asked, or add context; `allow` means no more than no objection,
since only the user's rules allow. Not here: running it (`hooks.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.workspace.text.visible import visible

MOST_WORDS = 10_000
DENIED = 2
"""The exit code by which a hook denies."""

_NO_SCRIPT = re.compile(r"\S*python[\w.]*: can't open file .*: \[Errno \d+\]")
"""What Python says, with the same exit code, when the script of a hook is not there, as in the hidden home folder."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook wants. `denied` is the reason for a denial, None for no objection; `asks` has the user asked;
    `context` is for the model, `notice` for the user; `problem` says how the hook itself failed, which denies nothing.
    """

    denied: str | None = None
    asks: bool = False
    context: str = ""
    notice: str = ""
    problem: str = ""


def answer_of(finished: Finished, stdout: str, stderr: str, *, words_are_context: bool) -> HookAnswer:
    """Return the answer of a hook that has run; `words_are_context` says that plain words on its standard output are
    meant for the model.
    """
    if finished.ending != "exited":
        return HookAnswer(problem=finished.ending)
    if finished.exit_code == DENIED and not _NO_SCRIPT.match(stderr):
        return HookAnswer(denied=_words(stderr) or _words(stdout) or "no reason given")
    if finished.exit_code:
        said = _words(stderr) or _words(stdout)
        return HookAnswer(problem=f"exit code {finished.exit_code}{': ' + said.splitlines()[0] if said else ''}"[:300])
    given = _json(stdout)
    if given is None:
        return HookAnswer(context=_words(stdout) if words_are_context else "")
    return _by_json(given)


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


def _json(stdout: str) -> Mapping[str, Any] | None:
    if not stdout.lstrip().startswith("{"):
        return None
    try:
        given = json.loads(stdout)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, Mapping) else None


def _text(value: Any) -> str:
    return _words(value) if isinstance(value, str) else ""


def _words(text: str) -> str:
    return visible(text).strip()[:MOST_WORDS]
