"""The direct path: gather what a task needs, ask the model for the changed code, check it by tests, and try again.

For models that are not good at tool calls, and for all models after a tool loop that failed. `solver.py` is the page to
read first. A model answers in the *form* it is good at, which a probe finds out once: `whole` files, whole `function`s,
one `line`, search and replace `blocks`, or `diff`s; `tools` is the loop of tool calls (`agent/loop.py`). Not here: when
a run works this way (`session/solving/task_work.py`).
"""

from __future__ import annotations

from typing import Literal, get_args

AnswerForm = Literal["tools", "whole", "function", "line", "blocks", "diff"]
"""The format in which a model gives an edit: tool calls, or one of five text formats."""

TextForm = Literal["whole", "function", "line", "blocks", "diff"]
"""The forms that are one plain-text answer."""

ANSWER_FORMS: tuple[AnswerForm, ...] = get_args(AnswerForm)
TEXT_FORMS: tuple[TextForm, ...] = get_args(TextForm)
