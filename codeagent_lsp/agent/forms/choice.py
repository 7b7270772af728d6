"""Which answer form a request is made in: by what the model has proved, by size, and by language. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from codeagent_lsp.agent.forms.form import TextForm
from codeagent_lsp.agent.forms.proof import Proof

LONG_FILES = 1500
"""Tokens of all files together above which they are not asked for whole: it takes long, and gets lost on the way."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to be changed: tokens of the files whole, whether their language has definitions that can be found, the
    tokens that a reply may have, whether all is shown, and whether something is wrong that a check can see.
    """

    tokens: int
    has_definitions: bool
    reply_tokens: int
    shown_whole: bool = True
    checked_repair: bool = False


def choose_form(proof: Proof, subject: Subject, tried: Collection[TextForm] = ()) -> TextForm:
    """The best form that was not tried yet; when all were, the best one again."""
    order = preferred_forms(proof, subject)
    return next((form for form in order if form not in tried), order[0])


def preferred_forms(proof: Proof, subject: Subject) -> tuple[TextForm, ...]:
    """The forms that fit the subject, best first: those the model has proved, then by size and language."""
    fitting = [form for form in _by_language(subject) if _fits(form, subject)] or ["blocks"]
    return tuple(sorted(fitting, key=lambda form: not proof.has(form)))  # stable: ties stay in their order


def _by_language(subject: Subject) -> tuple[TextForm, ...]:
    """The smallest answers first, as far as definitions can be found and a check sees what is wrong."""
    larger: tuple[TextForm, ...] = ("function", "whole", "blocks") if subject.has_definitions else ("whole", "blocks")
    return ("line", *larger) if subject.checked_repair else larger


def _fits(form: TextForm, subject: Subject) -> bool:
    if form == "whole":
        room = min(LONG_FILES, (subject.reply_tokens - 100) / 1.2)
        return subject.shown_whole and subject.tokens <= room
    return form != "function" or subject.has_definitions
