"""The tools `ask_clarification` and `request_decision`: one question with explained options.

An option with risks is never the first one, and never assumed: its risks are part of the question itself, for clients
that show nothing else. Not here: plain questions (`asking_tools.py`), how they are shown (`server/prompts.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.foreign_words import agent_asks, own_title
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.text.visible import one_line, visible

DECISION_SECONDS = 540.0  # shorter than the question's own limit, so that a time-out differs from a closed window
LABEL = 60
RISKY = " ⚠"
MOST_OPTIONS = 10
NO_ANSWER = "No answer. Decide yourself, carefully, and say what you assumed."
NO_DECISION = "No answer, so nothing is decided. Take no way that has risks; say what is open."


class Option(Parameters):
    """One possible answer."""

    id: str = Field(min_length=1)
    label: str = Field(min_length=1)
    description: str = ""
    recommended: bool = False


class WeighedOption(Option):
    """One way to proceed, with its time, cost and risks."""

    estimated_time: str = ""
    estimated_cost: str = ""
    risks: list[str] = Field(default_factory=list)


class AskClarificationParameters(Parameters):
    """The question about what is unclear."""

    question: str = Field(min_length=1, max_length=2000)
    clarification_type: Literal["scope", "approach", "prerequisite", "priority", "custom"] = "custom"
    options: list[Option] = Field(default_factory=list, max_length=MOST_OPTIONS)
    allow_custom: bool = True


class RequestDecisionParameters(Parameters):
    """The question to decide and its options. `default_option` is the id of the option taken when nobody answers in
    time; None to decide nothing then.
    """

    question: str = Field(min_length=1, max_length=2000)
    decision_type: Literal["branch", "method", "confirmation", "risk", "custom"] = "custom"
    options: list[WeighedOption] = Field(min_length=1, max_length=MOST_OPTIONS)
    allow_custom: bool = False
    default_option: str | None = Field(None, description="id taken when nobody answers in time")


class AskClarification(Tool[AskClarificationParameters]):
    """Ask the user to clarify the task."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "ask_clarification",
        "Ask what the user means when the task can be read in several ways; offer the ways as options.",
        "ask",
        "hitl",
        timeout=None,
    )
    parameters = AskClarificationParameters
    example: ClassVar[Example] = {
        "question": "Which files?",
        "clarification_type": "scope",
        "options": [{"id": "src", "label": "Only src"}, {"id": "all", "label": "All"}],
    }
    output = dict[str, Any]  # answered, and id and label or custom

    async def run(self, arguments: AskClarificationParameters, context: ToolContext) -> ToolOutput:
        """Return the option that the user chose, or the entered text."""
        if not arguments.options and not arguments.allow_custom:
            raise ToolRetry("Give options, or allow a custom answer.")
        _need_unique(arguments.options)
        asked = _Asked(arguments.question, arguments.clarification_type, arguments.options, arguments.allow_custom)
        answer = await _ask(asked, context)
        return ToolOutput(NO_ANSWER, {"answered": False}) if answer is None else _told(answer)


class RequestDecision(Tool[RequestDecisionParameters]):
    """Ask the user to decide within `seconds`."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "request_decision",
        "Let the user decide between ways to go on, with time, cost and risks of each. The default is taken when "
        "nobody answers in time.",
        "ask",
        "hitl",
        timeout=None,
    )
    parameters = RequestDecisionParameters
    example: ClassVar[Example] = {
        "question": "How shall it be merged?",
        "decision_type": "method",
        "options": [{"id": "merge", "label": "Merge"}, {"id": "rebase", "label": "Rebase", "risks": ["history"]}],
    }
    output = dict[str, Any]  # answered, and id and label or custom

    def __init__(self, seconds: float = DECISION_SECONDS) -> None:
        self._seconds = seconds

    async def run(self, arguments: RequestDecisionParameters, context: ToolContext) -> ToolOutput:
        """Return the decision, by the user or, after the time limit, by default."""
        _need_unique(arguments.options)
        default = _default(arguments)
        asked = _Asked(arguments.question, arguments.decision_type, arguments.options, arguments.allow_custom)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await _ask(asked, context)
        except TimeoutError:
            return _by_time(default, context)
        return ToolOutput(NO_DECISION, {"answered": False}) if answer is None else _told(answer)


@dataclass(frozen=True, slots=True)
class _Asked:
    question: str
    kind: str
    options: Sequence[Option]
    allow_custom: bool


async def _ask(asked: _Asked, context: ToolContext) -> Option | str | None:
    """Ask the question and return the option, the user's own text, or None without a decision."""
    words = context.words
    ordered = sorted(asked.options, key=lambda option: (bool(_risks(option)), not option.recommended))
    other, neither = words("choice.other"), words("choice.neither")
    titles = _titles(ordered, (other, neither), words)
    choices = tuple(titles)
    if ordered and _risks(ordered[0]):  # all have risks: the first choice changes nothing
        choices = (neither, *choices)
    if asked.allow_custom and asked.options:
        choices = (*choices, other)
    risky = any(map(_risks, asked.options))
    told = _with_risks(visible(asked.question), titles, words("decision.risks")) if risky else asked.question
    title = agent_asks(told, words)
    answer = await context.asker.ask(
        Question("question", title, choices, _detail(asked, titles, context), danger=risky, by_agent=True)
    )
    if answer is None or not answer or answer == (neither,):
        return None
    if answer == (other,):
        said = await context.asker.ask(
            Question("question", agent_asks(asked.question, words), detail=_detail(asked, {}, context), by_agent=True)
        )
        return said[0] if said else None
    return titles.get(answer[0], answer[0])


def _told(answer: Option | str) -> ToolOutput:
    if isinstance(answer, str):
        return ToolOutput(f"The user says: {answer}", {"answered": True, "custom": answer})
    return ToolOutput(f"The user chose {_name(answer)}.", {"answered": True, "id": answer.id, "label": answer.label})


def _by_time(default: Option | None, context: ToolContext) -> ToolOutput:
    """Return the result after the time limit, and show it to the user."""
    if default is None:
        context.note(context.words("decision.nothing"))
        return ToolOutput(NO_DECISION, {"answered": False})
    context.note(context.words("decision.default", option=one_line(default.label, LABEL)))
    data = {"answered": False, "id": default.id, "label": default.label}
    return ToolOutput(f"Nobody answered in time, so the default is taken: {_name(default)}. Say so at the end.", data)


def _name(option: Option) -> str:
    return f"{option.id!r}: {one_line(option.label, 200)}"


def _default(arguments: RequestDecisionParameters) -> Option | None:
    wanted = arguments.default_option
    found = next((option for option in arguments.options if option.id == wanted), None)
    if wanted is not None and found is None:
        ids = ", ".join(option.id for option in arguments.options)
        raise ToolRetry(f"default_option must be the id of an option: {ids}.")
    return found


def _need_unique(options: Iterable[Option]) -> None:
    ids = [option.id for option in options]
    if len(set(ids)) != len(ids):
        raise ToolRetry("Every option needs an id of its own.")


def _titles(options: Iterable[Option], taken: Iterable[str], words: Callable[..., str]) -> dict[str, Option]:
    """Map a short unique title to each option, since clients answer with the title alone."""
    used, titles = {name.casefold() for name in taken}, {}
    for option in options:
        mark = (f" ({words('decision.recommended')})" if option.recommended else "") + (RISKY if _risks(option) else "")
        short = one_line(option.label, LABEL - len(mark)) or one_line(option.id, LABEL - len(mark))
        short = own_title(short, words)
        title, number = f"{short}{mark}", 2
        while title.casefold() in used:
            title, number = f"{short}{mark} ({number})", number + 1
        used.add(title.casefold())
        titles[title] = option
    return titles


def _risks(option: Option) -> list[str]:
    return [risk for risk in option.risks if risk.strip()] if isinstance(option, WeighedOption) else []


def _with_risks(question: str, titles: Mapping[str, Option], word: str) -> str:
    """Return the question with its risks near the front: a client may show only the first 200 characters."""
    risky = [(title, _risks(option)) for title, option in titles.items() if _risks(option)]
    told = "; ".join(f"{one_line(title, 30)}: {one_line(', '.join(risks), 60)}" for title, risks in risky[:3])
    return f"{one_line(question, 90)} [{word}: {told}]"


def _detail(asked: _Asked, titles: Mapping[str, Option], context: ToolContext) -> str:
    """Return the whole question as Markdown."""
    words = context.words
    lines = [visible(asked.question), ""]
    for title, option in titles.items():
        lines.append(f"- **{title}**{': ' + one_line(option.description, 2000) if option.description.strip() else ''}")
        if isinstance(option, WeighedOption):
            facts = (("decision.time", option.estimated_time), ("decision.cost", option.estimated_cost))
            lines.extend(f"  - {words(key)}: {one_line(value, 100)}" for key, value in facts if value.strip())
            lines.extend(f"  - ⚠ {words('decision.risk')}: {one_line(risk, 500)}" for risk in _risks(option))
    return "\n".join(lines).strip()
