"""Classifies what a request asks for: work on the code, an answer about the code, an answer about this agent, or a
chat.

Rules over the words decide, in English and Chinese; where they are unsure, and in all other languages, the result is
UNCERTAIN. Only then one short question to the model may help (`classify_with_model`). Not here: what follows from the
intent (planning on or off). No word list decides about safety: permissions do not depend on the intent.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from codeagent_lsp import events
from codeagent_lsp.agent import intent_words as words
from codeagent_lsp.agent.loop import complete
from codeagent_lsp.errors import ModelError
from codeagent_lsp.llm.calls.jsontext import loads_object
from codeagent_lsp.llm.model import Model

Label = Literal["CODING_TASK", "REPO_ANALYSIS", "CAPABILITY_QUERY", "GENERAL_CHAT", "UNCERTAIN"]

READ = 2000
REPLY_TOKENS = 16
# The run has not begun while this is asked; a slow model is better used for the task itself.
PATIENCE = 15.0
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"label": {"enum": list(get_args(Label))}},
    "required": ["label"],
    "additionalProperties": False,
}
INSTRUCTIONS = (
    "Classify the user's message to a coding agent. CODING_TASK: wants code, files or commands changed, made or run. "
    "REPO_ANALYSIS: asks about this project's code. CAPABILITY_QUERY: asks about the agent itself. GENERAL_CHAT: "
    'anything else. UNCERTAIN: cannot tell. Answer {"label": ...} and nothing else.'
)


@dataclass(frozen=True, slots=True)
class Intent:
    """The class of a request, the confidence in it (0 to 1), and the reason in plain English."""

    label: Label
    confidence: float
    reason: str

    @property
    def sure(self) -> bool:
        """Whether the class is known, so that the model need not be asked."""
        return self.label != "UNCERTAIN"


def classify(text: str, *, has_selection: bool = False) -> Intent:
    """Classify a request by patterns over its first 2,000 characters, without a model; UNCERTAIN if no rule applies,
    without letters, and in languages other than English and Chinese. `has_selection` says that code is selected, which
    a short request may then be about. Pure.
    """
    asked = _normal(text)
    if not any(map(str.isalpha, asked)):
        return Intent("UNCERTAIN", 0.0, "there are no words in it")
    # Before all rules: English words within a Japanese sentence say little about what it asks.
    if words.OTHER_SCRIPT.search(asked):
        return Intent("UNCERTAIN", 0.0, "it is in a language that the rules do not know")
    found = _by_words(asked, text)
    if found is None and has_selection:
        return _about_selection(asked)
    return found or Intent("UNCERTAIN", 0.0, "no rule fits")


async def classify_with_model(model: Model, text: str, emit: Callable[[events.Event], None]) -> Intent:
    """Classify a request with one call of at most 16 tokens to the model, which gets its first 2,000 characters; usage
    events go to `emit`. UNCERTAIN when the call fails, takes longer than 15 seconds or names no known label; confidence
    0.7 otherwise.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            said = await complete(model, INSTRUCTIONS, text[:READ], emit, REPLY_TOKENS, SCHEMA)
    except (ModelError, TimeoutError):
        return Intent("UNCERTAIN", 0.0, "the model could not be asked")
    label = (loads_object(said) or {}).get("label")
    options: tuple[Label, ...] = get_args(Label)
    known = next((option for option in options if option == label), options[-1])
    return Intent(known, 0.0 if known == "UNCERTAIN" else 0.7, "the model says so")


def _normal(text: str) -> str:
    """Return the text as one line in lower case, with full-width characters replaced (Unicode NFKC)."""
    plain = unicodedata.normalize("NFKC", text[:READ]).casefold().replace("\u2019", "'")
    return re.sub(r"\s+", " ", plain).strip()


def _by_words(asked: str, text: str) -> Intent | None:
    """Classify by the rules of the request's language; `text` is the request as it was written. None where no rule
    applies.
    """
    chinese = words.HAN.search(asked) is not None
    spoken = words.CHINESE if chinese else words.ENGLISH
    # "Could you please fix …" is a wish, no question: the rules look at how the rest begins.
    bare = spoken.polite.sub("", asked)
    named = words.NAME_OF_CODE.search(text[:READ]) is not None or spoken.here.search(asked) is not None
    if spoken.chat.fullmatch(asked):
        return Intent("GENERAL_CHAT", 0.95, "small talk")
    if spoken.about_us.search(asked) or (spoken.can_you.match(asked) and spoken.in_general.fullmatch(bare)):
        return Intent("CAPABILITY_QUERY", 0.9, "asks about the agent")
    # "Add a story to this module" names code, and is no chat.
    if spoken.pastime.search(asked) and not named:
        return Intent("GENERAL_CHAT", 0.9, "a topic that is no code")
    return _chinese(asked, bare, named=named) if chinese else _english(asked, bare, named=named)


def _english(asked: str, bare: str, *, named: bool) -> Intent | None:
    # Wishes before questions: "can you rename it?" ends with a question mark as well.
    if words.EN_CHANGE.match(bare) or words.EN_WISH.match(asked):
        return Intent("CODING_TASK", 0.9, "begins with a wish for a change")
    if words.EN_CHANGE_LATER.search(asked):
        return Intent("CODING_TASK", 0.85, "asks for a change further on")
    if words.ENGLISH.look.match(bare):
        return _look(named=named)
    if words.EN_QUESTION.match(bare) or asked.endswith("?"):
        return _question(bare, words.ENGLISH, named=named)
    if words.EN_TROUBLE.search(asked):
        return Intent("CODING_TASK", 0.6, "reports a problem")
    return None


def _chinese(asked: str, bare: str, *, named: bool) -> Intent | None:
    if words.ZH_CHANGE_LATER.search(asked):
        return Intent("CODING_TASK", 0.85, "asks for a change further on")
    if words.CHINESE.look.match(bare):
        return _look(named=named)
    # Looked for anywhere: in Chinese the word that asks stands inside or at the end.
    question = words.ZH_QUESTION.search(asked) is not None
    if words.ZH_CHANGE.match(bare) and not (question and words.ZH_WHY.match(bare)):
        return Intent("CODING_TASK", 0.9, "begins with a wish for a change")
    if question:
        return _question(bare, words.CHINESE, named=named)
    if words.ZH_CHANGE_WITHIN.search(asked):
        return Intent("CODING_TASK", 0.7, "speaks of a change")
    if words.ZH_TROUBLE.search(asked):
        return Intent("CODING_TASK", 0.6, "reports a problem")
    return None


def _look(*, named: bool) -> Intent | None:
    return Intent("REPO_ANALYSIS", 0.85, "asks to look or to explain") if named else None


def _question(bare: str, spoken: words.IntentWords, *, named: bool) -> Intent | None:
    """Classify a question: about this code when it names code or refers to it, general when it asks for knowledge."""
    if spoken.why_trouble.search(bare):
        return None  # "why does the test fail?" may want an answer or a repair
    if named:
        return Intent("REPO_ANALYSIS", 0.85, "a question that names code")
    if spoken.knowledge.search(bare):
        return Intent("GENERAL_CHAT", 0.75, "a question of general knowledge")
    return Intent("REPO_ANALYSIS", 0.7, "a question about how things are here") if spoken.aimed.search(bare) else None


def _about_selection(asked: str) -> Intent:
    if asked.endswith("?") or words.ENGLISH.look.match(asked) or words.CHINESE.look.match(asked):
        return Intent("REPO_ANALYSIS", 0.7, "a question with code selected")
    return Intent("UNCERTAIN", 0.0, "no rule fits")
