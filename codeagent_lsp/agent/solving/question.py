"""Turns a task into a prompt and the model's reply into new texts: for files, or for a selection. Pure functions.

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
"""The share of words that a selection and the code that replaces it have in common at least."""

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Situation:
    """The state before an attempt: what fails now (shortened), the failed attempts, and the forms whose answers could
    not be used or were wrong. With a `suspect`, only the corrected text of this line is asked for.
    """

    failures: str = ""
    tried: tuple[Tried, ...] = ()
    refused: tuple[TextForm, ...] = ()
    suspect: str = ""


class Question(Protocol):
    """Turns a task into a request to the model, and the model's reply into new texts of files."""

    @property
    def shows_code(self) -> bool:
        """Return whether the user sees the code while it is streamed, not only the prose."""

    def form(self, material: Material, situation: Situation) -> TextForm:
        """Return the form to answer in; not one that failed before, where there is another."""

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """Return the prompt."""

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """Read the reply as new texts; a reply about a `suspect` is the corrected line."""


@dataclass(frozen=True)
class FilesQuestion:
    """A task about files of the workspace. `forced` is the answer form from the settings; `earlier` is the session's
    conversation before, `also` what is known of the project; `repairs` says that something is wrong now.
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
        """Choose by the proof, size and language; where a check reports the fault, the smallest answer first."""
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
        """Return the files, what fails, the task, and the form to answer in."""
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
        """Read the reply by its content."""
        texts = {file.name: file.read.text for file in material.files}
        reply = as_pair(suspect, reply) if suspect else reply
        return read_answer(reply, Files(texts, material.preferred, fixed=material.fixed), form)


@dataclass(frozen=True)
class SelectionQuestion:
    """A task about a selection in one file, the first of the material: the answer is the code that replaces it."""

    request: RewriteRequest
    system: str
    limits: RewriteLimits
    shows_code: bool = field(default=True, init=False)

    def form(self, material: Material, situation: Situation) -> TextForm:
        """Return `whole`: the selected code is asked for whole."""
        return "whole"

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """Return the selection with the text around it, and what was wrong with the last answer."""
        failing = f"What fails now:\n{situation.failures}" if situation.failures else ""
        parts = (prompt(self.request, self.limits), failing, *map(told, situation.tried))
        return Message("system", self.system), Message("user", "\n\n".join(filter(None, parts)))

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """Return the file with the selection replaced by the code of the reply; prose never replaces code."""
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
        """Return whether a reply without a fence has next to nothing in common with the code that it should replace."""
        selected = self.request.text[self.request.start : self.request.end]
        if grammar_of(name) is None or not selected.strip():
            return False
        own, given = set(_WORD.findall(selected)), set(_WORD.findall(reply))
        return len(own & given) < LEAST_COMMON * min(len(own), len(given)) or not given
