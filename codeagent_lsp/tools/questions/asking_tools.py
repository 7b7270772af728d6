"""The tool `AskUser`: one to three questions to the user, asked one at a time."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.foreign_words import agent_asks, own_titles
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


class UserQuestion(Parameters):
    """One question; without options the user enters text."""

    text: str = Field(min_length=1, max_length=2000)
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
        items={"questions": CallForms(arguments={"question": "text"})},
        plain={"questions": "text"},
    )
    output = list[list[str] | None]

    async def run(self, arguments: AskUserParameters, context: ToolContext) -> ToolOutput:
        """Return questions and answers line by line; an unanswered one is marked."""
        answers: list[list[str] | None] = []
        for question in arguments.questions:
            titles = own_titles(question.options or [], context.words)
            title, multiple = agent_asks(question.text, context.words), arguments.format == "multi"
            answer = await context.asker.ask(
                Question("question", title, tuple(titles), multiple=multiple, by_agent=True)
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
