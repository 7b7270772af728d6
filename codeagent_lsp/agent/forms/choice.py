"""Chooses the answer form for a request: by the model's probe results, the size of the files, and their language. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from codeagent_lsp.agent.forms.form import TextForm
from codeagent_lsp.agent.forms.proof import Proof

LONG_FILES = 1500
"""Tokens of all files together above which they are not asked for whole: the reply takes long, and models lose track.
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """The change to be made: tokens of the whole files, whether definitions can be found in their language, the tokens
    that a reply may have, whether the files are shown whole, and whether a check reports a fault that is to be
    repaired.
    """

    tokens: int
    has_definitions: bool
    reply_tokens: int
    shown_whole: bool = True
    checked_repair: bool = False


def choose_form(proof: Proof, subject: Subject, tried: Collection[TextForm] = ()) -> TextForm:
    """Return the best form that was not tried yet; when all were, the best one."""
    order = preferred_forms(proof, subject)
    return next((form for form in order if form not in tried), order[0])


def preferred_forms(proof: Proof, subject: Subject) -> tuple[TextForm, ...]:
    """Return the forms that fit the subject, best first: those the model has proved, then by size and language."""
    fitting = [form for form in _by_language(subject) if _fits(form, subject)] or ["blocks"]
    return tuple(sorted(fitting, key=lambda form: not proof.has(form)))  # stable: ties stay in their order


def _by_language(subject: Subject) -> tuple[TextForm, ...]:
    """Return the forms, smallest answers first: `line` only where a check sees the fault, `function` where the language
    has definitions.
    """
    larger: tuple[TextForm, ...] = ("function", "whole", "blocks") if subject.has_definitions else ("whole", "blocks")
    return ("line", *larger) if subject.checked_repair else larger


def _fits(form: TextForm, subject: Subject) -> bool:
    if form == "whole":
        room = min(LONG_FILES, (subject.reply_tokens - 100) / 1.2)
        return subject.shown_whole and subject.tokens <= room
    return form != "function" or subject.has_definitions
