"""The names of the answer forms."""

from __future__ import annotations

from typing import Literal, get_args

AnswerForm = Literal["tools", "whole", "function", "line", "blocks", "diff"]
"""How a model gives an edit: by tool calls, or as text in one of five formats."""

TextForm = Literal["whole", "function", "line", "blocks", "diff"]
"""The forms that are one plain-text answer."""

ANSWER_FORMS: tuple[AnswerForm, ...] = get_args(AnswerForm)
TEXT_FORMS: tuple[TextForm, ...] = get_args(TextForm)
