"""How a task is put to the model and how its answer is read: about files, or about a selection. Pure.

Not here: asking, checking and asking again (`solver.py`), choosing what is shown (`session/solving/gathering.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from codeagent_lsp.agent.context.tokens import estimate_tokens
from codeagent_lsp.agent.forms.answer import Answer, Files, read_answer
from codeagent_lsp.agent.forms.choice import Subject, choose_form
from codeagent_lsp.agent.forms.definitions import syntax_problem
from codeagent_lsp.agent.forms.fences import parts_of
from codeagent_lsp.agent.forms.form import TextForm
from codeagent_lsp.agent.forms.line import as_pair
from codeagent_lsp.agent.forms.proof import Proof
from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.agent.rewrite import RewriteLimits, RewriteRequest, prompt
from codeagent_lsp.agent.solving.material import Material
from codeagent_lsp.agent.solving.prompt import CUT, Tried, messages_for, told
from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.messages import Message

LEAST_COMMON = 0.3
"""Of the words of a selection or of what takes its place: code that is rewritten keeps at least so many."""

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known before an attempt: what fails now (shortened), what was tried in vain, and the forms of answers
    that could not be used or did not do. With a `suspect`, nothing but this line is asked for, as it should be.
    """

    failures: str = ""
    tried: tuple[Tried, ...] = ()
    refused: tuple[TextForm, ...] = ()
    suspect: str = ""


class Question(Protocol):
    """Turns a task into a request to the model, and the model's reply into new texts of files."""

    @property
    def shows_code(self) -> bool:
        """Whether the user sees the code while it comes, not only the words."""

    def form(self, material: Material, situation: Situation) -> TextForm:
        """The form to answer in; not one that was tried in vain, where there is another."""

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """What the model is asked."""

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """The reply as new texts; of one line that was asked about, as it should be."""


@dataclass(frozen=True)
class FilesQuestion:
    """About some files of the workspace. `forced` is the user's form; `earlier` is what was said before in the session,
    `also` what is known of the project; `repairs` says that something is wrong now.
    """

    words: str
    proof: Proof
    reply_tokens: int
    forced: TextForm | None = None
    earlier: str = ""
    also: str = ""
    repairs: bool = False
    shows_code: bool = field(default=False, init=False)

    def form(self, material: Material, situation: Situation) -> TextForm:
        """By the proof, the size and the language; for what a check sees the smallest answer first."""
        if self.forced is not None:
            return self.forced
        files = material.files
        subject = Subject(
            tokens=sum(estimate_tokens(file.read.text) for file in files),
            has_definitions=bool(files) and all(file.has_definitions for file in files),
            reply_tokens=self.reply_tokens,
            shown_whole=all(file.whole for file in files),
            checked_repair=self.repairs and bool(situation.failures) and bool(files),
        )
        return choose_form(self.proof, subject, situation.refused)

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """The files, what fails, the task, the form."""
        return messages_for(
            self.words,
            material,
            form,
            failures=situation.failures,
            tried=situation.tried,
            suspect=situation.suspect,
            earlier=self.earlier,
            also=self.also,
        )

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """By what the reply holds."""
        texts = {file.name: file.read.text for file in material.files}
        reply = as_pair(suspect, reply) if suspect else reply
        return read_answer(reply, Files(texts, material.preferred, fixed=material.fixed), form)


@dataclass(frozen=True)
class SelectionQuestion:
    """About a selection in one file, the first of the material: the answer is the code that takes its place."""

    request: RewriteRequest
    system: str
    limits: RewriteLimits
    shows_code: bool = field(default=True, init=False)

    def form(self, material: Material, situation: Situation) -> TextForm:
        """The selected code, whole."""
        return "whole"

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """The selection with what stands around it, and what was wrong with the last answer."""
        failing = f"What fails now:\n{situation.failures}" if situation.failures else ""
        parts = (prompt(self.request, self.limits), failing, *map(told, situation.tried))
        return Message("system", self.system), Message("user", "\n\n".join(filter(None, parts)))

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """The file with the code of the reply in the place of the selection; words never take the place of code."""
        name, text = material.files[0].name, self.request.text
        parts = parts_of(reply)
        prose = parts.prose
        if not parts.fences and self._is_only_words(name, reply):
            return Answer(prose=prose)
        try:
            new = replaced(text, self.request.start, self.request.end, reply)
        except ModelReplyInvalid as refusal:
            if refusal.key == "rewrite.empty":
                return Answer(prose=prose)
            problem = CUT if refusal.key == "rewrite.cut" else str(refusal)
            return Answer(prose=prose, problem=problem, has_code=True)
        if wrong := syntax_problem(name, text, new):
            return Answer(prose=prose, problem=f"With it, {name} would be broken: {wrong}.", has_code=True)
        return Answer({name: new} if new != text else {}, prose, has_code=True)

    def _is_only_words(self, name: str, reply: str) -> bool:
        """Whether a reply without a fence has next to nothing in common with the code that it should replace."""
        selected = self.request.text[self.request.start : self.request.end]
        if grammar_of(name) is None or not selected.strip():
            return False
        own, given = set(_WORD.findall(selected)), set(_WORD.findall(reply))
        return len(own & given) < LEAST_COMMON * min(len(own), len(given)) or not given
