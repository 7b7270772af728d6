"""How the agent asks the user: one question as a value, and the port that brings back the answer.

Not here: how it is shown (`server/prompts.py`) or kept (`session/inbox.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

QuestionKind = Literal["approval", "question"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `choices` are unique short titles, the safe one first; none means free text.

    `title` is one line; `detail` is what a document shows; `danger` asks for a warning's look; `path` is the
    file it is about; `multiple` allows several choices; `secret` is free text that nobody else may see or keep.
    """

    kind: QuestionKind
    title: str
    choices: tuple[str, ...] = ()
    detail: str = ""
    danger: bool = False
    multiple: bool = False
    path: str | None = None
    secret: bool = False


class Asker(Protocol):
    """Whoever can ask the user."""

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """The chosen titles or the text; None when nobody answered. Never raises for a silent user."""
