"""Builds the messages that ask for changed code, and turns the model's reply into new texts: for files, or for a
selection. Pure functions.

Not here: asking, checking and asking again (`solver.py`), choosing what is shown (`gathering.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from codeagent_lsp.agent.prompt import load
from codeagent_lsp.agent.replacement import PLACE, replaced
from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Answer, Files, as_pair, read_answer
from codeagent_lsp.direct.aptitude import Proof
from codeagent_lsp.direct.definitions import syntax_problem
from codeagent_lsp.direct.fences import grammar, read_envelope
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.restoring import restored
from codeagent_lsp.direct.surroundings import docs_above, with_head, without_docs, without_outer
from codeagent_lsp.direct.thinned import PART, TWICE, is_doubled, left_away
from codeagent_lsp.errors import EditRefused, ModelReplyInvalid
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.index.remarks import stands_amid_words
from codeagent_lsp.index.wrappings import refuse_wrapped
from codeagent_lsp.messages import Message, estimate_tokens
from codeagent_lsp.tools.diagnostics.syntax import is_data
from codeagent_lsp.workspace.text.position import split_lines

FORMAT: dict[TextForm, str] = {
    "whole": "Give {file} whole and corrected, from its first line to its last, in one fence.",
    "function": "Give the changed function whole, in one fence.",
    "line": (
        "Find the one wrong line of {file} and correct it. Answer in this form and nothing else:\n"
        "WRONG: <the line as it is>\nRIGHT: <the corrected line>"
    ),
    "blocks": (
        "Give each change as a block: the path of the file on a line of its own, then\n"
        "<<<<<<< SEARCH\n(lines copied exactly from the file)\n=======\n(the lines that replace them)\n>>>>>>> REPLACE"
    ),
    "diff": (
        "Give the change as one unified diff in a ```diff fence, with `--- a/PATH` and `+++ b/PATH` lines, `@@` lines "
        "and three lines of context around each change."
    ),
}
SUSPECT = (
    "Suppose that this line of it is the wrong one:\n{line}\n"
    "Answer with that one line as it should be, and nothing else."
)
CHOICE = (
    "This line of it is wrong:\n{line}\nWith each of these lines in its place all tests pass:\n{choices}\n"
    "Answer with the one that does what the code is meant to do, and nothing else."
)
EXAMPLE = "An example of how this project writes code, from {path} (for your information, it stays as it is):\n{code}"
SAME = "It changed nothing: its code is the same as the file's."
NO_CODE = "It had no code. Give the changed code."
REPEATED = "It repeated itself. Give the changed code once."
"""Sentences for the model on what is wrong with an answer."""

SEVERAL: dict[TextForm, str] = {
    "whole": (
        "Give each file that you change whole, from its first line to its last: its path on a line of its own, then "
        "all of its code in one fence."
    ),
    "function": (
        "Give each function, method or class that you change or add, whole: the path of its file on a line of its "
        "own, then the code in one fence. Put a method inside its `class` line. Give nothing else of the file."
    ),
}
"""Instructions for the answer where more than one file may change, or a new one may be needed."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A failed attempt. If the answer could not be used, `problem` says why and the rest is ''. Else `diff` is its
    change, and `report` the shortened report of the tests with it, '' if it is that from before the change.
    """

    problem: str = ""
    diff: str = ""
    report: str = ""


def messages_for(
    words: str,
    material: Material,
    form: TextForm,
    *,
    failures: str = "",
    tried: Sequence[Tried] = (),
    suspect: str = "",
    choices: Sequence[str] = (),
    earlier: str = "",
    also: str = "",
) -> tuple[Message, ...]:
    """Return the system and the user message. `words` is the task, `failures` what fails now, `tried` the failed
    attempts, `suspect` a line that may be wrong or, with `choices`, one that is, and what may stand in its place,
    `earlier` the session's conversation before, `also` what is known of the project; '' and () leave a part out.
    """
    context = [
        f"{piece.name} (for your information, it stays as it is):\n{_fence(piece.text, piece.name)}"
        for piece in material.context
    ]
    example = material.example
    # The task and the form last: a small model does what it has read last.
    parts = [
        f"What was said before:\n{earlier}" if earlier else "",
        material.listing,
        EXAMPLE.format(path=example.path, code=_fence(example.text, example.path)) if example else "",
        *context,
        *map(_render_file, material.files),
        f"What fails now:\n{_fence(failures, '')}" if failures else "",
        *map(told, tried),
        f"Task: {words.strip()}",
        _render_question(form, material, suspect, choices),
    ]
    system = "\n\n".join(filter(None, (load("solve"), also)))
    return Message("system", system), Message("user", "\n\n".join(filter(None, parts)))


def told(tried: Tried) -> str:
    """Return a failed attempt as a paragraph for the model, in English; '' if it has neither a problem nor a diff."""
    if tried.problem:
        return f"Your last answer could not be used. {tried.problem}"
    if not tried.diff:
        return ""
    with_it = f"\nWith it:\n{_fence(tried.report, '')}" if tried.report else ""
    return f"This was tried and does not do, find another cause:\n{_fence(tried.diff, 'a.diff')}{with_it}"


def language_of(name: str) -> str:
    """Return the name of a file's language, such as `python`, for the info string of a fence; '' for unknown ones.
    Judged by the file's name alone.
    """
    grammar = grammar_of(name)
    return grammar.name if grammar is not None else ""


def _render_question(form: TextForm, material: Material, suspect: str, choices: Sequence[str]) -> str:
    if choices:
        return CHOICE.format(line=suspect, choices="\n".join(choices))
    return SUSPECT.format(line=suspect) if suspect else _format(form, material)


def _format(form: TextForm, material: Material) -> str:
    """Return how to answer. For one file in few words: a small model takes each further one for a part of the task."""
    if len(material.files) == 1 and not material.listing:
        return FORMAT[form].format(file=material.files[0].name)
    return SEVERAL.get(form) or FORMAT[form].format(file="the code")


def _render_file(file: ShownFile) -> str:
    if file.whole:
        return f"{file.name}\n{_fence(file.read.text, file.name)}"
    head = f"{file.name} is long. These parts of it may matter:"
    parts = [head, *(f"{file.name}\n{_fence(piece.text, file.name)}" for piece in file.pieces)]
    if file.outline:
        parts.append("It also has: " + "; ".join(file.outline))
    return "\n".join(parts)


def _fence(text: str, name: str) -> str:
    # A fence longer than any in the text, so that Markdown in it does not close it.
    marks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", text)), 3)
    return f"{marks}{language_of(name)}\n{text.rstrip()}\n{marks}"


LEAST_CONTEXT = 400
MOST_CONTEXT = 3000


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A file (`name` is its path relative to the workspace), the part of it to rewrite (`start:end`, 0-based character
    offsets into `text`), what to do, and the diagnostics of the part, a line each.
    """

    name: str
    text: str
    start: int
    end: int
    instruction: str
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteLimits:
    """Limits of one rewrite: the model's context window and the reply, both in tokens, and the sampling temperature (0:
    always the likeliest).
    """

    window: int = 8192
    reply_tokens: int = 2048
    temperature: float = 0.0


def prompt(request: RewriteRequest, limits: RewriteLimits) -> str:
    """Return the user message: instruction, diagnostics, and as much of the file around the selection as fits.
    ModelReplyInvalid when the selection is too large for the window.
    """
    selected = request.text[request.start : request.end]
    fixed = estimate_tokens(selected + request.instruction + "".join(request.diagnostics)) + 300
    # Prompt and answer share the window, and the answer is about as long as the selection.
    if fixed + max(estimate_tokens(selected), 64) > limits.window - 200:
        raise ModelReplyInvalid("rewrite.too_large", tokens=limits.window)
    reply = max(limits.reply_tokens, estimate_tokens(selected))
    # Three bytes for a token, half of it on each side.
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
    """Return a fence of backticks longer than any in `text`, at least three."""
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
    not be used or were wrong. With a `suspect`, only the corrected text of this line is asked for, with `choices` it is
    one of these. `said` is what the user has added to the task. `begun` says that a part of the task is done.
    """

    failures: str = ""
    tried: tuple[Tried, ...] = ()
    refused: tuple[TextForm, ...] = ()
    suspect: str = ""
    choices: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    begun: bool = False


class Question(Protocol):
    """Port: turns a task into a request to the model, and the model's reply into new texts of files. One per task."""

    @property
    def shows_code(self) -> bool:
        """Whether the user sees the code while it is streamed, not only the prose."""

    def form(self, material: Material, situation: Situation) -> TextForm:
        """Return the form to answer in: `whole`, `function`, `line`, `blocks` or `diff`; not one of `situation.refused`
        if there is another.
        """

    def messages(self, material: Material, form: TextForm, situation: Situation) -> tuple[Message, ...]:
        """Return the system and the user message that ask for an answer in this form."""

    def grammar(self) -> str:
        """Return a GBNF grammar (llama.cpp) of the answer, for servers that can hold a model to one; '' for none."""

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """Read the reply as new texts of the material's files; a reply about a `suspect` is its corrected line. Never
        raises: an answer that cannot be used has a `problem`.
        """


@dataclass(frozen=True)
class FilesQuestion:
    """The question of a task about files of the workspace. `forced` is the answer form from the settings, if any;
    `earlier` is the session's conversation so far, `also` what is known of the project; `repairs` says that something
    is wrong now.
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
        """Return the form by the model's proof, the files' size and language; the form with the smallest answers first
        if a check reports a fault.
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
        """Return the system and the user message, with the files, what fails, the task, and the form to answer in."""
        return messages_for(
            "\n".join((self.words, *situation.said)),
            material,
            form,
            failures=situation.failures,
            tried=situation.tried,
            suspect=situation.suspect,
            choices=situation.choices,
            earlier=self.earlier,
            also=self.also,
        )

    def grammar(self) -> str:
        """Return '': the prose of an answer about files is shown to the user."""
        return ""

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """Read the reply by its content, as new texts of the files of `material`. Never raises: an answer that cannot
        be used has a `problem`.
        """
        texts = {file.name: file.read.text for file in material.files}
        reply = as_pair(suspect, reply) if suspect else reply
        answer = read_answer(reply, Files(texts, material.preferred, fixed=material.fixed), form)
        request = "\n".join((self.words, self.earlier))
        new = {path: _restored(path, texts.get(path, ""), text, request) for path, text in answer.texts.items()}
        return replace(answer, texts=new)


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
        """Return the system and the user message, with the selection, the text around it, and what was wrong with the
        last answer. ModelReplyInvalid if the selection is too large for the window.
        """
        failing = f"What fails now:\n{situation.failures}" if situation.failures else ""
        parts = (prompt(self.request, self.limits), *situation.said, failing, *map(told, situation.tried))
        return Message("system", self.system), Message("user", "\n\n".join(filter(None, parts)))

    def grammar(self) -> str:
        """Return the grammar (GBNF, llama.cpp) of one fenced block with a fence longer than any in the file."""
        return grammar(fence_of(self.request.text))

    def read(self, reply: str, material: Material, form: TextForm, suspect: str = "") -> Answer:
        """Return the whole text of the selection's file with the selection replaced by the code of the reply. An answer
        without exactly one block of code, or with broken code, changes nothing and has a `problem`; never raises.
        """
        name, text, request = material.files[0].name, self.request.text, self.request
        amid_words = stands_amid_words(name, text, request.start, request.end)
        found = read_envelope(reply, text[request.start : request.end], name, amid_words=amid_words)
        if found.code is None:
            return Answer(prose=found.prose, problem=found.problem, declined=found.declined)
        try:
            start = _behind_line_ends(text, request.start, request.end)
            if problem := self._partial(text[start : request.end], found.code, name):
                return Answer(prose=found.prose, problem=problem, has_code=True)
            code = found.code
            if (top := docs_above(name, text, start, code)) < start:
                # Better docs than those above the selection take their place, if they were asked for.
                start, code = (top, code) if _ABOUT_DOCS.search(request.instruction) else (start, without_docs(code))
            inner = without_outer(name, text, start, request.end, code)
            new = with_head(name, replaced(text, start, request.end, inner.code, name), inner.imports)
            wrong = syntax_problem(name, text, new)
            if wrong and is_data(name):
                mended = replaced(text, start, request.end, _with_other_comma(inner.code), name)
                new, wrong = (new, wrong) if syntax_problem(name, text, mended) else (mended, "")
            if wrong:
                return Answer(prose=found.prose, problem=f"With it, {name} would be broken: {wrong}.", has_code=True)
            refuse_wrapped(name, text, new)
            new = _restored(name, text, new, "\n".join((request.instruction, *request.diagnostics)))
        except EditRefused as refusal:
            return Answer(prose=found.prose, problem=str(refusal), has_code=True)
        return Answer({name: new} if new != text else {}, found.prose, has_code=True)

    def _partial(self, selected: str, code: str, name: str) -> str:
        """Return what is wrong with code that is a part of the selected one, or has it twice; '' for nothing."""
        said = "\n".join((self.request.instruction, *self.request.diagnostics))
        if line := left_away(name, selected, code, said):
            return PART.format(line=line)
        return TWICE if is_doubled(selected, code, said) else ""


_ABOUT_DOCS = re.compile(r"comment|doc|descri|explain|annotat|注释|文档|说明|kommentar|beschreib", re.IGNORECASE)


def _restored(path: str, before: str, after: str, request: str) -> str:
    """Return the new text of a file with what a reply left out of it, unless that would break it."""
    done = restored(path, before, after, request)
    return after if done != after and syntax_problem(path, after, done) else done


def _behind_line_ends(text: str, start: int, end: int) -> int:
    """Return the start of a selection behind the line ends that it begins with, at the end of a line that it has
    nothing else of.
    """
    selected = text[start:end]
    return start + len(selected) - len(selected.lstrip("\r\n")) if selected.strip() else start


def _with_other_comma(code: str) -> str:
    """Return a piece of data with the comma behind it that models forget, or without the one that they add."""
    bare = code.rstrip()
    return bare[:-1] if bare.endswith(",") else f"{bare},"


# Chooses the answer form for a request: by the model's probe results, the size of the files, and their language. Pure
# functions.


@dataclass(frozen=True, slots=True)
class Subject:
    """What decides the answer form: tokens of the whole files, whether definitions can be found in their language, the
    tokens that a reply may have, whether the files are shown whole, and whether a check reports a fault to repair.
    """

    tokens: int
    has_definitions: bool
    reply_tokens: int
    shown_whole: bool = True
    checked_repair: bool = False


def choose_form(proof: Proof, subject: Subject, tried: Collection[TextForm] = ()) -> TextForm:
    """Return the text form that a model is best at, by `proof`, and that was not `tried` yet; the best
    one if all were.
    """
    order = preferred_forms(proof, subject)
    return next((form for form in order if form not in tried), order[0])


def preferred_forms(proof: Proof, subject: Subject) -> tuple[TextForm, ...]:
    """Return the text forms that fit the subject, best first, never none: those the model has proved, then by size and
    language.
    """
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
        # A fifth more than the file has now, and some prose.
        room = min(LONG_FILES, (subject.reply_tokens - 100) / 1.2)
        return subject.shown_whole and subject.tokens <= room
    return form != "function" or subject.has_definitions
