"""The parts that tools need to hand out skills in one run: the shelf, the user's language, and the question of trust.

Not here: which skills there are (`shelf.py`), which texts are trusted already (`trust.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from codeagent_lsp.tools.asking import Asker, Question
from codeagent_lsp.tools.skills.shelf import SkillShelf
from codeagent_lsp.tools.skills.trust import Trust


class Translator(Protocol):
    """Port: returns sentences of the catalogue in the user's language."""

    def __call__(self, key: str, /, **values: object) -> str: ...


@dataclass(frozen=True, slots=True)
class SkillDesk:
    """The skills of one run. `mode` is that of the agent: `direct`, `plan`, `ask`, or the name of a subagent."""

    shelf: SkillShelf
    words: Translator
    mode: str = "direct"


async def vouched(
    trust: Trust, asker: Asker, words: Translator, title: str, digest: str, name: str, detail: str
) -> bool:
    """Return whether the user trusts this exact content, by an earlier answer or by asking now. No answer means no."""
    return bool(await trusted(trust, asker, words, title, digest, name, detail))


async def trusted(
    trust: Trust, asker: Asker, words: Translator, title: str, digest: str, name: str, detail: str
) -> bool | None:
    """Return whether the user trusts this exact content; None without an answer."""
    if trust.covers(digest):
        return True
    deny, once, always = (words(f"choice.{key}") for key in ("deny", "once", "trust"))
    answer = await asker.ask(Question("approval", title, (deny, once, always), detail=detail, danger=True))
    if answer == (always,):
        trust.add(digest, name)
    return None if answer is None else answer in ((once,), (always,))
