"""Defines the user's request as a value, which goes from a command or a code action to a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from codeagent_lsp.messages import Image
from codeagent_lsp.workspace.files.file_view import FileText
from codeagent_lsp.workspace.text.visible import cut

RunKind = Literal[
    "run",
    "ask",
    "edit",
    "explain",
    "fix",
    "refactor",
    "document",
    "test",
    "runFile",
    "skills.install",
    "trust",
    "prove",
    "minimize",
    "nextEdit.apply",
    "finishChange",
    "session.rewind",
    "lent",
    "foreign",
]

Planning = Literal["auto", "always", "never"]

REWRITES: tuple[RunKind, ...] = ("edit", "fix", "refactor", "document")
CHANGES: tuple[RunKind, ...] = (*REWRITES, "nextEdit.apply", "finishChange")
"""Kinds that stage a change without calling a tool, so that no permission of a tool is asked for."""

WITH_WORDS: tuple[RunKind, ...] = ("run", "ask", "explain", "test", *REWRITES)
"""Kinds of which the user's words are for the model."""

ANSWERS: tuple[RunKind, ...] = ("ask", "explain")
FOREIGN: RunKind = "foreign"
"""The kind of the runs that gather what other programs changed."""
LENT: RunKind = "lent"
"""The kind of the runs in which another agent uses the editor."""
TRIALS: tuple[RunKind, ...] = ("prove", "minimize")
"""Kinds that try the changes of another run."""

INSTRUCTIONS: dict[RunKind, str] = {
    "explain": "Explain this code: what it does, how, and what to watch out for.",
    "fix": "Fix the problem in this code. Change as little as possible.",
    "refactor": "Refactor this code so that it is simpler and clearer. Its behaviour stays the same.",
    "document": "Add documentation comments to this code, in the style of its language. Change nothing else.",
    "test": "Write tests for this code, in the project's test framework and in the place where its tests are.",
}

TITLE_LENGTH = 60
# Masking takes time by length, and a pasted log of megabytes has no more to say in 60 characters.
MOST_LOOKED_AT = 4000


def short_title(words: str, hide: Callable[[str], str]) -> str:
    """Return the words on one line of at most 60 characters, for progress and lists. Only the first 4,000 characters
    are read; `hide` masks secrets before the cut, since a cut secret would no longer be recognized.
    """
    return cut(" ".join(hide(words[:MOST_LOOKED_AT]).split()), TITLE_LENGTH)


@dataclass(frozen=True, slots=True)
class Target:
    """A range in a file: `start` and `end` are 0-based offsets in `file.text`, the text at the time of the request."""

    file: FileText
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One request of the user. `title` is a short line for progress; `diagnostics` are messages with line numbers;
    `args` are for the program of a file run, the skill to install, or the kind of what is to be trusted; `planning`
    None follows the settings; `rewritten` are new texts that were made without a model, with the files as they were
    read.

    For the model, beside the task: `given` are texts, `images` pictures, `files` the whole files that it names
    (absolute path and text); `wordless` if the task is nothing but attachments; `arguments` are the user's own words in
    a task that is a command's text. The best of `attempts` is proposed, and with `until_proven` they end as soon as all
    tests pass on the changes of one; `attempt` is the number of one of them, from 1, else 0.
    """

    kind: RunKind
    task: str
    title: str
    target: Target | None = None
    diagnostics: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    planning: Planning | None = None
    rewritten: tuple[tuple[FileText, str], ...] = ()
    given: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    wordless: bool = False
    images: tuple[Image, ...] = ()
    attempts: int = 1
    attempt: int = 0
    until_proven: bool = False
    arguments: str = ""

    @property
    def instruction(self) -> str:
        """The instruction for the model: the user's words, the default of the kind, or both; '' for neither."""
        default = INSTRUCTIONS.get(self.kind, "")
        return f"{default}\n{self.task}".strip() if default and self.task else self.task or default

    @property
    def has_selection(self) -> bool:
        """Whether it is about a part of a file that the user has selected, not only about a place in it."""
        return self.target is not None and self.target.end > self.target.start

    def with_words(self, words: str) -> RunRequest:
        """Return the request with these words as its task."""
        return replace(self, task=words)
