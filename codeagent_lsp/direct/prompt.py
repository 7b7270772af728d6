"""Builds the messages that ask for changed code: what the task needs, what failed so far, and how to answer. Pure
functions.

The parts that stay the same from one attempt to the next come first, so that a prompt cache holds. Not here: choosing
what is shown (`direct/gathering.py`), reading the answer (`direct/answer.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codeagent_lsp.direct.form import TextForm
from codeagent_lsp.agent.prompt import load
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.messages import Message

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
    """A failed attempt: why it could not be used, or what it changed (a diff) and what fails with it, shortened."""

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
    earlier: str = "",
    also: str = "",
) -> tuple[Message, ...]:
    """Return the system and the user message. `failures` is what fails now, `suspect` a line that may be wrong,
    `earlier` the session's conversation before, `also` what is known of the project.
    """
    context = [
        f"{piece.name} (for your information, it stays as it is):\n{_fenced(piece.text, piece.name)}"
        for piece in material.context
    ]
    example = material.example
    parts = [
        f"What was said before:\n{earlier}" if earlier else "",
        material.listing,
        EXAMPLE.format(path=example.path, code=_fenced(example.text, example.path)) if example else "",
        *context,
        *map(_shown, material.files),
        f"What fails now:\n{_fenced(failures, '')}" if failures else "",
        *map(told, tried),
        f"Task: {words.strip()}",
        SUSPECT.format(line=suspect) if suspect else _format(form, material),
    ]
    system = "\n\n".join(filter(None, (load("solve"), also)))
    return Message("system", system), Message("user", "\n\n".join(filter(None, parts)))


def told(tried: Tried) -> str:
    """Format a failed attempt for the model; '' where there is nothing to say of it."""
    if tried.problem:
        return f"Your last answer could not be used. {tried.problem}"
    if not tried.diff:
        return ""
    with_it = f"\nWith it:\n{_fenced(tried.report, '')}" if tried.report else ""
    return f"This was tried and does not do, find another cause:\n{_fenced(tried.diff, 'a.diff')}{with_it}"


def language_of(name: str) -> str:
    """Return the language of a file for the info string of a fence; '' for unknown ones."""
    grammar = grammar_of(name)
    return grammar.name if grammar is not None else ""


def _format(form: TextForm, material: Material) -> str:
    """Return how to answer. For one file in few words: a small model takes each further one for a part of the task."""
    if len(material.files) == 1 and not material.listing:
        return FORMAT[form].format(file=material.files[0].name)
    return SEVERAL.get(form) or FORMAT[form].format(file="the code")


def _shown(file: ShownFile) -> str:
    if file.whole:
        return f"{file.name}\n{_fenced(file.read.text, file.name)}"
    head = f"{file.name} is long. These parts of it may matter:"
    parts = [head, *(f"{file.name}\n{_fenced(piece.text, file.name)}" for piece in file.pieces)]
    if file.outline:
        parts.append("It also has: " + "; ".join(file.outline))
    return "\n".join(parts)


def _fenced(text: str, name: str) -> str:
    marks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", text)), 3)
    return f"{marks}{language_of(name)}\n{text.rstrip()}\n{marks}"
