"""Which answer form a request is made in: by what the model has proved, by size, and by language. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from codeagent_lsp.agent.forms.form import TEXT_FORMS, TextForm
from codeagent_lsp.agent.forms.proof import Proof

SHORT_FILES = 700
"""Tokens of all files together up to which they are asked for whole: longer answers cost more than they mend."""


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
    fitting = [form for form in _by_size(subject) if _fits(form, subject)] or ["blocks"]
    return tuple(sorted(fitting, key=lambda form: -round(proof.share(form))))  # stable: ties stay as the size has them


def _by_size(subject: Subject) -> tuple[TextForm, ...]:
    larger = _larger(subject)
    return ("line", *larger) if subject.checked_repair else larger


def _larger(subject: Subject) -> tuple[TextForm, ...]:
    if subject.tokens <= SHORT_FILES:
        return ("whole", "function", "blocks")
    return ("function", "whole", "blocks") if subject.has_definitions else ("blocks", "whole")


def _fits(form: TextForm, subject: Subject) -> bool:
    if form == "whole":
        return subject.shown_whole and subject.tokens * 1.2 + 100 <= subject.reply_tokens
    return form != "function" or subject.has_definitions


def is_text_form(name: str) -> bool:
    """Whether a form is one plain answer."""
    return name in TEXT_FORMS
