"""The tool `AskUser`: one to three questions to the user, asked one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool, Shape, unpacked, without
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.foreign_words import agent_asks, own_titles
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


def _labelled(given: dict[str, Any]) -> dict[str, Any]:
    """Return a question with options that are objects as their labels; what describes them becomes part of it."""
    options = unpacked(given.get("options"))
    if given.get("type") == "yesno" and not options:
        options = ["Yes", "No"]
    if not isinstance(options, list) or not options:
        return without(given, "options")
    found = [_option(option) for option in options]
    told = [f"{label}: {words}" for label, words in found if words]
    text = given.get("text")
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
    """One question; without options the user enters text."""

    text: str = Field(min_length=1, max_length=_LONGEST)
    options: list[str] | None = Field(None, max_length=10)


class AskUserParameters(Parameters):
    """Up to three questions."""

    questions: list[UserQuestion] = Field(min_length=1, max_length=3)
    format: Literal["single", "multi"] = "single"


class AskUser(Tool[AskUserParameters]):
    """Ask the user what only the user can know."""

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
                shapes=(Shape("an option may be an object with a `label` and a `description`", _labelled),),
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
        """Return questions and answers line by line; an unanswered one is marked."""
        answers: list[list[str] | None] = []
        for question in arguments.questions:
            titles = own_titles(question.options or [], context.words)
            title, multiple = agent_asks(question.text, context.words), arguments.format == "multi"
            answer = await context.asker.ask(
                Question("question", title, tuple(titles), multiple=multiple, by_agent=True, free=True)
            )
            answers.append(None if answer is None else [titles.get(said, said) for said in answer])
        lines = [
            f"Q: {question.text}\nA: {_said(answer)}"
            for question, answer in zip(arguments.questions, answers, strict=True)
        ]
        return ToolOutput("\n".join(lines), answers)


def _said(answer: list[str] | None) -> str:
    if answer is None:
        return "(no answer; decide yourself, carefully)"
    return ", ".join(answer) or "(nothing chosen)"
