"""What a hook answers: by its exit code and its words, or by JSON on its standard output.

It may deny with a reason, want the user to be asked, or add context; `allow` means no more than no objection,
since only the user's rules allow. Not here: running it (`hooks.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.workspace.text.visible import visible

MOST_WORDS = 10_000
DENIED = 2
"""The exit code by which a hook denies."""

MOST_ANSWERS = 200
UNREADABLE = "its JSON cannot be read"

_DECODER = json.JSONDecoder(strict=False)
_OBJECT = re.compile(r"\{")
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
