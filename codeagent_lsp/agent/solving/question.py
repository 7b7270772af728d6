"""How a task is put to the model and how its answer is read: about files, or about a selection. Pure.

Not here: asking, checking and asking again (`solver.py`), choosing what is shown (`session/gathering.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from codeagent_lsp.agent.context import estimate_tokens
from codeagent_lsp.agent.forms.answer import Answer, Files, read_answer
from codeagent_lsp.agent.forms.choice import Subject, choose_form
from codeagent_lsp.agent.forms.definitions import syntax_problem
from codeagent_lsp.agent.forms.fences import parts_of
from codeagent_lsp.agent.forms.form import TextForm
from codeagent_lsp.agent.forms.proof import Proof
from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.agent.rewrite import RewriteLimits, RewriteRequest, prompt
from codeagent_lsp.agent.solving.material import Material
from codeagent_lsp.agent.solving.prompt import Tried, messages_for, told
from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.messages import Message


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known before an attempt: what fails now (shortened), and what was tried in vain."""

    failures: str = ""
    tried: tuple[Tried, ...] = ()


class Question(Protocol):
    """One way to put a task. `shows_code` says that the user sees the code while it comes, not only the words."""

    shows_code: bool

    def form(self, material: Material, refused: Collection[TextForm]) -> TextForm:
        """The form to answer in; not one that was refused, where there is another."""

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """What the model is asked."""

    def read(self, reply: str, material: Material, form: TextForm) -> Answer:
        """The reply as new texts."""


@dataclass(frozen=True)
class FilesQuestion:
    """About some files of the workspace. `forced` is the user's form; `earlier` is what was said before in the session,
    `also` what is known of the project.
    """

    words: str
    proof: Proof
    reply_tokens: int
    forced: TextForm | None = None
    earlier: str = ""
    also: str = ""
    shows_code: bool = field(default=False, init=False)

    def form(self, material: Material, refused: Collection[TextForm]) -> TextForm:
        """By the proof, the size and the language."""
        if self.forced is not None:
            return self.forced
        files = material.files
        subject = Subject(
            tokens=sum(estimate_tokens(file.read.text) for file in files),
            has_definitions=bool(files) and all(file.has_definitions for file in files),
            reply_tokens=self.reply_tokens,
            shown_whole=all(file.whole for file in files),
        )
        return choose_form(self.proof, subject, refused)

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """The files, what fails, the task, the form."""
        return messages_for(
            self.words,
            material,
            form,
            failures=situation.failures,
            tried=situation.tried,
            earlier=self.earlier,
            also=self.also,
        )

    def read(self, reply: str, material: Material, form: TextForm) -> Answer:
        """By what the reply holds."""
        texts = {file.name: file.read.text for file in material.files}
        return read_answer(reply, Files(texts, material.preferred, fixed=material.fixed), form)


@dataclass(frozen=True)
class SelectionQuestion:
    """About a selection in one file, the first of the material: the answer is the code that takes its place."""

    request: RewriteRequest
    system: str
    limits: RewriteLimits
    shows_code: bool = field(default=True, init=False)

    def form(self, material: Material, refused: Collection[TextForm]) -> TextForm:
        """The selected code, whole."""
        return "whole"

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """The selection with what stands around it, and what was wrong with the last answer."""
        failing = f"What fails now:\n{situation.failures}" if situation.failures else ""
        parts = (prompt(self.request, self.limits), failing, *map(told, situation.tried))
        return Message("system", self.system), Message("user", "\n\n".join(filter(None, parts)))

    def read(self, reply: str, material: Material, form: TextForm) -> Answer:
        """The file with the code of the reply in the place of the selection; words never take the place of code."""
        name, text = material.files[0].name, self.request.text
        prose = parts_of(reply).prose
        try:
            new = replaced(text, self.request.start, self.request.end, reply)
        except ModelReplyInvalid as refusal:
            if refusal.key == "rewrite.empty":
                return Answer(prose=prose or reply.strip())
            return Answer(prose=prose, problem=str(refusal), has_code=True)
        if wrong := syntax_problem(name, text, new):
            return Answer(prose=prose, problem=f"With it, {name} would be broken: {wrong}.", has_code=True)
        return Answer({name: new} if new != text else {}, prose, has_code=True)
