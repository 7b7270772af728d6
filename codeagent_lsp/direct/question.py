"""Turns a task into a prompt and the model's reply into new texts: for files, or for a selection. Pure functions.

Not here: asking, checking and asking again (`solver.py`), choosing what is shown (`direct/gathering.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from codeagent_lsp.direct.answer import Answer, Files, read_answer
from codeagent_lsp.direct.definitions import syntax_problem
from codeagent_lsp.direct.envelope import grammar, read_envelope
from codeagent_lsp.direct.form import TextForm
from codeagent_lsp.direct.line import as_pair
from codeagent_lsp.direct.proof import Proof
from codeagent_lsp.agent.replacement import PLACE, replaced
from codeagent_lsp.direct.material import Material
from codeagent_lsp.direct.prompt import Tried, messages_for, told
from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.messages import Message, estimate_tokens
from codeagent_lsp.workspace.text.lines import split_lines

LEAST_CONTEXT = 400
MOST_CONTEXT = 3000


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A file, the part of it to rewrite (`start:end`, 0-based character offsets into `text`), and what to do."""

    name: str
    text: str
    start: int
    end: int
    instruction: str
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteLimits:
    """Limits of one rewrite: the model's window and the reply's length, both in tokens."""

    window: int = 8192
    reply_tokens: int = 2048
    temperature: float = 0.0


def prompt(request: RewriteRequest, limits: RewriteLimits) -> str:
    """Return the user message: instruction, diagnostics, and as much of the file around the selection as fits.
    ModelReplyInvalid when the selection is too large for the window.
    """
    selected = request.text[request.start : request.end]
    fixed = estimate_tokens(selected + request.instruction + "".join(request.diagnostics)) + 300
    if fixed + max(estimate_tokens(selected), 64) > limits.window - 200:
        raise ModelReplyInvalid("rewrite.too_large", tokens=limits.window)
    reply = max(limits.reply_tokens, estimate_tokens(selected))
    budget = max(LEAST_CONTEXT, 3 * (limits.window - fixed - reply)) // 2
    before = _tail(request.text[: request.start], min(budget, MOST_CONTEXT))
    after = _head(request.text[request.end :], min(budget, MOST_CONTEXT))
    fence = fence_of(request.text)
    parts = []
    if before.strip() or after.strip():
        around = f"{fence}\n{before}{PLACE}\n{after}\n{fence}"
        parts.append(f"For your information, {request.name} around the code:\n{around}")
    if request.diagnostics:
        parts.append("Diagnostics:\n" + "\n".join(f"- {line}" for line in request.diagnostics))
    parts.append(f"Rewrite this code, and only this:\n{fence}\n{selected}\n{fence}")
    parts.append(f"Instruction: {request.instruction.strip()}")
    return "\n\n".join(parts)


def fence_of(text: str) -> str:
    """Return a fence that is longer than any in `text`, of three backticks or more."""
    return "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", text)), 0)


def _head(text: str, limit: int) -> str:
    """Return the first whole lines of `text`, at most `limit` bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else "".join(split_lines(encoded[:limit].decode("utf-8", "ignore"))[:-1])


def _tail(text: str, limit: int) -> str:
    """Return the last whole lines of `text`, at most `limit` bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else "".join(split_lines(encoded[-limit:].decode("utf-8", "ignore"))[1:])


LONG_FILES = 1500
"""Tokens of all files together above which they are not asked for whole: the reply takes long, and models lose track.
"""


@dataclass(frozen=True, slots=True)
class Situation:
    """The state before an attempt: what fails now (shortened), the failed attempts, and the forms whose answers could
    not be used or were wrong. With a `suspect`, only the corrected text of this line is asked for. `said` is what the
    user has added to the task. `begun` says that a part of the task is done.
    """

    failures: str = ""
    tried: tuple[Tried, ...] = ()
    refused: tuple[TextForm, ...] = ()
    suspect: str = ""
    said: tuple[str, ...] = ()
    begun: bool = False


class Question(Protocol):
    """Turns a task into a request to the model, and the model's reply into new texts of files."""

    @property
    def shows_code(self) -> bool:
        """Return whether the user sees the code while it is streamed, not only the prose."""

    def form(self, material: Material, situation: Situation) -> TextForm:
        """Return the form to answer in; not one that failed before, where there is another."""

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """Return the prompt."""

    def grammar(self) -> str:
        """Return a GBNF grammar of the answer, for servers that can hold a model to one; '' for none."""

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
        """Choose by the proof, size and language; where a check reports a fault, be it one of the last answer's, the
        smallest answer first.
        """
        if self.forced is not None:
            return self.forced
        files = material.files
        subject = Subject(
            tokens=sum(estimate_tokens(file.read.text) for file in files),
            has_definitions=bool(files) and all(file.has_definitions for file in files),
            reply_tokens=self.reply_tokens,
            shown_whole=all(file.whole for file in files),
            checked_repair=(self.repairs or situation.begun) and bool(situation.failures) and bool(files),
        )
        return choose_form(self.proof, subject, situation.refused)

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """Return the files, what fails, the task, and the form to answer in."""
        return messages_for(
            "\n".join((self.words, *situation.said)),
            material,
            form,
            failures=situation.failures,
            tried=situation.tried,
            suspect=situation.suspect,
            earlier=self.earlier,
            also=self.also,
        )

    def grammar(self) -> str:
        """Return '': the prose of an answer about files is shown to the user."""
        return ""

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
        parts = (prompt(self.request, self.limits), *situation.said, failing, *map(told, situation.tried))
        return Message("system", self.system), Message("user", "\n\n".join(filter(None, parts)))

    def grammar(self) -> str:
        """Return the grammar of the envelope."""
        return grammar(fence_of(self.request.text))

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """Return the file with the selection replaced by the code of the reply; prose never replaces code."""
        name, text, request = material.files[0].name, self.request.text, self.request
        found = read_envelope(reply, text[request.start : request.end])
        if found.code is None:
            return Answer(prose=found.prose, problem=found.problem, declined=found.declined)
        new = replaced(text, request.start, request.end, found.code, name)
        if wrong := syntax_problem(name, text, new):
            return Answer(prose=found.prose, problem=f"With it, {name} would be broken: {wrong}.", has_code=True)
        return Answer({name: new} if new != text else {}, found.prose, has_code=True)


# Chooses the answer form for a request: by the model's probe results, the size of the files, and their language. Pure
# functions.


@dataclass(frozen=True, slots=True)
class Subject:
    """The change to be made: tokens of the whole files, whether definitions can be found in their language, the tokens
    that a reply may have, whether the files are shown whole, and whether a check reports a fault that is to be
    repaired.
    """

    tokens: int
    has_definitions: bool
    reply_tokens: int
    shown_whole: bool = True
    checked_repair: bool = False


def choose_form(proof: Proof, subject: Subject, tried: Collection[TextForm] = ()) -> TextForm:
    """Return the best form that was not tried yet; when all were, the best one."""
    order = preferred_forms(proof, subject)
    return next((form for form in order if form not in tried), order[0])


def preferred_forms(proof: Proof, subject: Subject) -> tuple[TextForm, ...]:
    """Return the forms that fit the subject, best first: those the model has proved, then by size and language."""
    fitting = [form for form in _by_language(subject) if _fits(form, subject)] or ["blocks"]
    return tuple(sorted(fitting, key=lambda form: not proof.has(form)))  # stable: ties stay in their order


def _by_language(subject: Subject) -> tuple[TextForm, ...]:
    """Return the forms, smallest answers first: `line` only where a check sees the fault, `function` where the language
    has definitions.
    """
    larger: tuple[TextForm, ...] = ("function", "whole", "blocks") if subject.has_definitions else ("whole", "blocks")
    return ("line", *larger) if subject.checked_repair else larger


def _fits(form: TextForm, subject: Subject) -> bool:
    if form == "whole":
        room = min(LONG_FILES, (subject.reply_tokens - 100) / 1.2)
        return subject.shown_whole and subject.tokens <= room
    return form != "function" or subject.has_definitions
