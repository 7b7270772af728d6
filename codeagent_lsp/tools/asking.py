"""The value for one question to the user, and the port that returns the answer.

Not here: how it is shown (`server/prompts.py`) or kept (`session/inbox.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

QuestionKind = Literal["approval", "question"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the user. `choices` are unique short titles, the safe one first; an empty tuple asks for free
    text.

    `title` is one line; `detail` is the text of a document shown with it; `danger` asks the client for a warning style;
    `path` is the file concerned; `multiple` allows several choices; `secret` marks free text that is never shown again
    or stored; `by_agent` marks what the model itself wants to know; `beside` marks what stands beside a document that
    the user is reading, and does not come over it; `free` takes words of the user's own beside its choices;
    `call_id` is the tool call that waits for the answer.
    """

    kind: QuestionKind
    title: str
    choices: tuple[str, ...] = ()
    detail: str = ""
    danger: bool = False
    multiple: bool = False
    path: str | None = None
    secret: bool = False
    by_agent: bool = False
    beside: bool = False
    free: bool = False
    call_id: str | None = None


class Asker(Protocol):
    """Port: asks the user a question."""

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Return the chosen titles or the entered text; None without an answer. Never raises when the user does not
        answer.
        """
