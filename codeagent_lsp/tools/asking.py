"""A question to the user as a value, the port that returns the answer, and words of a model or a server made unlike an
approval: bounded, on one line, nothing unseen.

Not here: approvals (`permissions/approvals.py`), how a question is shown (`server/prompts.py`) or kept
(`session/inbox.py`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, Protocol

from codeagent_lsp.texts import text
from codeagent_lsp.workspace.text.visible import one_line

QuestionKind = Literal["approval", "question"]
MAX_QUESTION = 1500
MAX_CHOICE = 80
ALIKE = 0.8

_OWN = (
    *("choice.deny", "choice.once", "choice.session", "choice.always", "choice.apply", "choice.discard"),
    *(
        "choice.approve",
        "choice.reject",
        "choice.delete",
        "choice.trust",
        "choice.trust_all",
        "choice.install",
        "mcp.login.open",
    ),
)
_ROOTS = ("allow", "always", "apply", "approve", "permit", "grant", "允许", "始终", "应用", "批准", "同意", "授权")
# Letters of Cyrillic and Greek, digits and signs, each to the Latin letter that it looks like.
_LOOK_ALIKE = str.maketrans("аоеруԝѕіјӏαορνι01|!$@", "aoepywsijlaopvioliisa")


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the user. `choices` are unique short titles, the safe one first; an empty tuple asks for free
    text.

    `title` is one line; `detail` is the text of a document shown with it; `danger` asks the client for a warning style;
    `path` is the file concerned; `multiple` allows several choices; `secret` marks free text that is never shown again
    or stored; `by_agent` marks what the model itself wants to know; `beside` marks what stands beside a document that
    the user is reading, and does not come over it; `free` takes words of the user's own beside its choices;
    `call_id` is the tool call that waits for the answer; `dismissed` is the choice that closing it by hand stands for.
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
    dismissed: str = ""


class Asker(Protocol):
    """Port: asks the user one question of a run at a time, and waits for the answer."""

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Wait for the user and return the chosen titles or the entered text; None without an answer. Never raises when
        the user does not answer; cancelling withdraws the question.
        """


def agent_asks(question: str, words: Callable[..., str]) -> str:
    """Return a model's question as one line of at most 1,500 characters, in the user's language, that says the model
    asks.
    """
    return words("question.agent", question=one_line(_bare_question(question), MAX_QUESTION))


def own_titles(choices: Iterable[str], words: Callable[..., str]) -> dict[str, str]:
    """Return the model's choices by the titles of their buttons, which are one line of at most 80 characters and
    unique, in their order; blank and repeated choices are left out.
    """
    titles: dict[str, str] = {}
    for choice in dict.fromkeys(choice.strip() for choice in choices if choice.strip()):
        titles.setdefault(own_title(one_line(choice, MAX_CHOICE), words), choice)
    return titles


def own_title(title: str, words: Callable[..., str]) -> str:
    """Return the title for a button; one that could be taken for an approval, such as "Allow", gets words, in the
    user's language, that prevent this; any other stays as it is.
    """
    return words("question.option", choice=title) if _like_an_approval(title) else title


def _bare_question(question: str) -> str:
    """Return a question without what says already, in any of our languages, that the agent asks."""
    prefixes = [text("question.agent", language, question="").strip() for language in ("en", "zh-cn")]
    while (start := question.lstrip()).lower().startswith(tuple(prefix.lower() for prefix in prefixes)):
        prefix = next(prefix for prefix in prefixes if start.lower().startswith(prefix.lower()))
        question = start[len(prefix) :]
    return question


def _like_an_approval(title: str) -> bool:
    bare = _bare(title)
    if any(root in bare for root in _ROOTS):
        return True
    own = (_bare(text(key, language)) for key in _OWN for language in ("en", "zh-cn"))
    return any(SequenceMatcher(None, bare, name, autojunk=False).ratio() >= ALIKE for name in own)


def _bare(title: str) -> str:
    """Return the letters of a title, without case, marks and blanks; letters that look alike become one."""
    apart = unicodedata.normalize("NFKD", title).casefold().translate(_LOOK_ALIKE)
    return "".join(char for char in apart if char.isalnum())
