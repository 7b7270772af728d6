"""The tools `ask_clarification`, `request_decision` and `AskUser`: questions to the user.

An option with risks is never the first one, and never assumed: its risks are part of the question itself, for clients
that show nothing else. Not here: how questions are shown (`server/prompts.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool, Shape, unpack_json, without
from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.tools.asking import Question, agent_asks, own_title, own_titles
from codeagent_lsp.tools.context import ToolContext
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
    """One possible answer to a question of `ask_clarification`; the result names it by its `id`. `label` and
    `description` are for the user.
    """

    id: str = Field(min_length=1)
    label: str = Field(min_length=1)
    description: str = ""
    recommended: bool = False


class WeighedOption(Option):
    """An option of `request_decision`, with its time, cost and risks in words."""

    estimated_time: str = ""
    estimated_cost: str = ""
    risks: list[str] = Field(default_factory=list)


class AskClarificationParameters(Parameters):
    """Parameters of `ask_clarification`: the question about what is unclear; with `allow_custom`, the user may enter
    text.
    """

    question: str = Field(min_length=1, max_length=2000)
    clarification_type: Literal["scope", "approach", "prerequisite", "priority", "custom"] = "custom"
    options: list[Option] = Field(default_factory=list, max_length=MOST_OPTIONS)
    allow_custom: bool = True


class RequestDecisionParameters(Parameters):
    """Parameters of `request_decision`: the question and its options. `default_option` is the id of the option taken
    when nobody answers in time; None to decide nothing then.
    """

    question: str = Field(min_length=1, max_length=2000)
    decision_type: Literal["branch", "method", "confirmation", "risk", "custom"] = "custom"
    options: list[WeighedOption] = Field(min_length=1, max_length=MOST_OPTIONS)
    allow_custom: bool = False
    default_option: str | None = Field(None, description="id taken when nobody answers in time")


class AskClarification(Tool[AskClarificationParameters]):
    """The tool `ask_clarification`: asks the user what the task means and waits for the answer."""

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
        """Wait for the user and return the option that they chose, or the entered text; `answered` is False in the data
        without an answer. ToolRetry for options that are not unique, or for neither options nor text.
        """
        if not arguments.options and not arguments.allow_custom:
            raise ToolRetry("Give options, or allow a custom answer.")
        _need_unique(arguments.options)
        asked = _Asked(arguments.question, arguments.clarification_type, arguments.options, arguments.allow_custom)
        answer = await _ask(asked, context)
        return ToolOutput(NO_ANSWER, {"answered": False}) if answer is None else _answer_output(answer)


class RequestDecision(Tool[RequestDecisionParameters]):
    """The tool `request_decision`: lets the user choose how to go on, and waits 540 s for that by default."""

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
        """Return the user's decision; after the time limit the default option, or that nothing was decided. ToolRetry
        for options that are not unique or an unknown default.
        """
        _need_unique(arguments.options)
        default = _default(arguments)
        asked = _Asked(arguments.question, arguments.decision_type, arguments.options, arguments.allow_custom)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await _ask(asked, context)
        except TimeoutError:
            return _by_time(default, context)
        return ToolOutput(NO_DECISION, {"answered": False}) if answer is None else _answer_output(answer)


@dataclass(frozen=True, slots=True)
class _Asked:
    question: str
    kind: str
    options: Sequence[Option]
    allow_custom: bool


async def _ask(asked: _Asked, context: ToolContext) -> Option | str | None:
    """Ask the question and return the option, the user's own text, or None without a decision."""
    words = context.words
    # The first choice is the one taken by a careless Enter, so none with risks stands there if there is another.
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
    # Dismissed, or answered by "none of these": both decide nothing, and never mean the default.
    if answer is None or not answer or answer == (neither,):
        return None
    # Asked again, now without choices: that is the form of a question that is answered with a text.
    if answer == (other,):
        said = await context.asker.ask(
            Question("question", agent_asks(asked.question, words), detail=_detail(asked, {}, context), by_agent=True)
        )
        return said[0] if said else None
    # Without choices the user's own text comes back.
    return titles.get(answer[0], answer[0])


def _answer_output(answer: Option | str) -> ToolOutput:
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
        # Cut before the mark goes on it, so that a long label cannot push the warning out of sight.
        short = one_line(option.label, LABEL - len(mark)) or one_line(option.id, LABEL - len(mark))
        short = own_title(short, words)
        title, number = f"{short}{mark}", 2
        # The model may give two options the same label, or that of one of our own choices.
        while title.casefold() in used:
            title, number = f"{short}{mark} ({number})", number + 1
        used.add(title.casefold())
        titles[title] = option
    return titles


def _risks(option: Option) -> list[str]:
    # An empty string in the list is no risk: models fill parameters in.
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


def _with_labels(given: dict[str, Any]) -> dict[str, Any]:
    """Return a question with options that are objects as their labels; what describes them becomes part of it."""
    options = unpack_json(given.get("options"))
    # Gemini's question of this type has its two answers in its own dialog.
    if given.get("type") == "yesno" and not options:
        options = ["Yes", "No"]
    if not isinstance(options, list) or not options:
        return without(given, "options")
    found = [_option(option) for option in options]
    told = [f"{label}: {words}" for label, words in found if words]
    text = given.get("text")
    # Our question has no place for what describes an option, and the choice may hang on it.
    if told and isinstance(text, str):
        given = {**given, "text": f"{text} ({'; '.join(told)})"[:_LONGEST]}
    return {**given, "options": [label for label, _ in found]}


def _option(option: Any) -> tuple[Any, str]:
    """Return the label of an option and what describes it."""
    if not isinstance(option, Mapping):
        return option, ""
    label = next((option[key] for key in ("label", "text", "value", "id") if option.get(key)), "")
    return label, str(option.get("description") or "")


def _several(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with what questions say of several answers as the format of all."""
    questions = given.get("questions")
    if not isinstance(questions, list) or "format" in given:
        return given
    asked = [question for question in questions if isinstance(question, Mapping)]
    many = any(question.get(key) is True for question in asked for key in _MANY)
    return {**given, "format": "multi"} if many else given


def _one_question(given: dict[str, Any]) -> dict[str, Any]:
    """Return a question with its options, in whatever parameter, as the only one."""
    options = given.get("options") or given.get("follow_up") or given.get("suggestions")
    question = {"question": given.get("question"), **({"options": options} if options else {})}
    return {**without(given, "question", "options", "follow_up", "suggestions"), "questions": [question]}


_LONGEST = 2000
_MANY = ("multiSelect", "multi_select", "multiple", "allow_multiple", "allowMultiple")
_ONE = Shape("one question, with `options` or `follow_up`", _one_question)


class UserQuestion(Parameters):
    """A question of `AskUser`; without options the user enters text."""

    text: str = Field(min_length=1, max_length=_LONGEST)
    options: list[str] | None = Field(None, max_length=10)


class AskUserParameters(Parameters):
    """Parameters of `AskUser`: up to three questions; with `multi`, several options may be chosen."""

    questions: list[UserQuestion] = Field(min_length=1, max_length=3)
    format: Literal["single", "multi"] = "single"


class AskUser(Tool[AskUserParameters]):
    """The tool `AskUser`: asks the user up to three questions, one after the other, and waits for the answers."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "AskUser", "Ask the user up to three questions. Use it only when you cannot find out yourself.", "ask",
        timeout=None,
    )  # fmt: skip
    parameters = AskUserParameters
    example: ClassVar[Example] = {"questions": [{"text": "Which rate?", "options": ["7", "19"]}]}
    forms: ClassVar[CallForms] = CallForms(
        names=("ask_user",),
        items={
            "questions": CallForms(
                arguments={"question": "text"},
                also={"prompt": "text"},
                shapes=(Shape("an option may be an object with a `label` and a `description`", _with_labels),),
            )
        },
        plain={"questions": "text"},
        shapes=(Shape("a question with `multiSelect`, `multiple` or `allow_multiple` is `multi`", _several),),
        foreign=(
            ForeignTool("AskUserQuestion", ("Claude Code",), ignored=("answers", "annotations", "metadata")),
            ForeignTool("ask_user", ("Gemini CLI",)),
            ForeignTool("question", ("opencode",)),
            ForeignTool("request_user_input", ("codex",)),
            ForeignTool("vscode_askQuestions", ("Copilot",)),
            ForeignTool("AskQuestion", ("Cursor",), ignored=("title",)),
            ForeignTool("ask_followup_question", ("cline", "Roo Code"), shapes=(_ONE,)),
        ),
    )
    output = list[list[str] | None]

    async def run(self, arguments: AskUserParameters, context: ToolContext) -> ToolOutput:
        """Return questions and answers line by line; an unanswered one is marked, and None in the data, which has a
        list of chosen options or of the entered text for each. Waits for the user.
        """
        answers: list[list[str] | None] = []
        for question in arguments.questions:
            titles = own_titles(question.options or [], context.words)
            title, multiple = agent_asks(question.text, context.words), arguments.format == "multi"
            answer = await context.asker.ask(
                Question("question", title, tuple(titles), multiple=multiple, by_agent=True, free=True)
            )
            answers.append(None if answer is None else [titles.get(said, said) for said in answer])
        lines = [
            f"Q: {question.text}\nA: {_answer_words(answer)}"
            for question, answer in zip(arguments.questions, answers, strict=True)
        ]
        return ToolOutput("\n".join(lines), answers)


def _answer_words(answer: list[str] | None) -> str:
    if answer is None:
        return "(no answer; decide yourself, carefully)"
    return ", ".join(answer) or "(nothing chosen)"
