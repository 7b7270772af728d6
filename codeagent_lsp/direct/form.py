"""The names of the answer forms."""

from __future__ import annotations

from typing import Literal, get_args

AnswerForm = Literal["tools", "whole", "function", "line", "blocks", "diff"]
"""The format in which a model gives an edit: tool calls, or one of five text formats."""

TextForm = Literal["whole", "function", "line", "blocks", "diff"]
"""The forms that are one plain-text answer."""

ANSWER_FORMS: tuple[AnswerForm, ...] = get_args(AnswerForm)
TEXT_FORMS: tuple[TextForm, ...] = get_args(TextForm)
