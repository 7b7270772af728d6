"""The user's request as a value, which goes from a command or a code action to a run, and what its words point at:
`@path`, `@path#symbol`, `@path:10-20`, `@diff`, `@diagnostics`, `@selection`, `@terminal-output`.

Of what they point at, only the spelling. Not here: which text a mention stands for (`session/mentioned.py`), whole
files that are named without a sign (`agent/context/gather.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
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

MOST_MENTIONS = 30
MOST_SHORTER = 12

MentionKind = Literal["file", "diff", "diagnostics", "selection", "terminal-output"]

SPECIAL: tuple[MentionKind, ...] = ("diff", "diagnostics", "selection", "terminal-output")

# What ends a plain name: blanks, quotes, brackets and punctuation, also the full-width ones of Chinese and Japanese.
_NO_NAME = r"\s\"'`@()<>\[\]{},;!?*|，。；：！？（）、「」『』《》“”"
_SYMBOL = r"[\w.:~$-]+"
_QUOTED = r'"([^"\n]{1,1000})"|“([^”\n]{1,1000})”'
_PLAIN = rf"(?:[^{_NO_NAME}]|\[[^{_NO_NAME}]+\]|\([^{_NO_NAME}]+\)){{1,1000}}"  # app/(shop)/[id]/page.tsx
# Not inside of a word, an address or a path: `me@x.org`, `/@types`, `\@a` mention nothing.
_MENTION = re.compile(rf"(?<![A-Za-z0-9_@/.`\\])@(?:{_QUOTED}|({_PLAIN}))(?:#({_SYMBOL}))?")
# `:10`, `:10-20`, `:10:5` (line and column, as compilers print), `#L3`, `#L3-L9`.
_LINES = re.compile(r"(?::|#L)(\d{1,7})(?:-L?(\d{1,7})|:\d{1,7})?$")
_PART = re.compile(rf"(.+)#({_SYMBOL})")
# Where words of another script may follow a name without a blank, or a bracket: `a.py里的`, `a.py(see)`.
_WORDS_BEGIN = re.compile(r"(?<=[\x21-\x7e])(?=[^\x00-\x7f])|(?=[(\[])")
# A fenced block, or code between backticks in as many as it began with: there `@` is a decorator or a scope.
_CODE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ \t]*\1|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE
)


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


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention. `path` is as it was written; `symbol` is a name in that file; `lines` are the first and last line,
    1-based; `text` is the mention itself.
    """

    kind: MentionKind
    text: str
    path: str = ""
    symbol: str = ""
    lines: tuple[int, int] | None = None


def mentions_in(words: str, most: int = MOST_MENTIONS) -> tuple[Mention, ...]:
    """Return the mentions in the words, each once, in order; at most `most`. Code in the words, fenced or between
    backticks, has none. Whether a file exists is not looked at.
    """
    # Blanks of the same length, so that offsets stay.
    prose = _CODE.sub(lambda match: " " * len(match[0]), words)
    found = (_mention(match) for match in _MENTION.finditer(prose))
    return tuple(islice(dict.fromkeys(mention for mention in found if mention is not None), most))


def shorter_readings(mention: Mention) -> Iterator[Mention]:
    """Yield other readings of a mention: as a file whose name looks like lines or a symbol, and, the longest first,
    without the words that follow it, as languages without blanks have them (`@src/a.py里的名字`).
    """
    if mention.kind == "file" and mention.path != mention.text[1:]:
        yield Mention("file", mention.text, mention.text[1:])
    for match in reversed(list(islice(_WORDS_BEGIN.finditer(mention.text), MOST_SHORTER))):
        found = _MENTION.fullmatch(mention.text[: match.start()])
        shorter = None if found is None else _mention(found)
        if shorter is not None:
            yield shorter


def write_mention(path: str, lines: tuple[int, int] | None = None) -> str:
    """Return the mention of a file as a user writes it: `@path`, the path as it is given, quoted if necessary, with
    `#L3-L9` for `lines` (the first and the last one, 1-based).
    """
    match = _MENTION.fullmatch(f"@{path}")
    plain = match is not None and _mention(match) == Mention("file", f"@{path}", path)
    name = path if plain else f'"{path}"'
    if lines is None:
        return f"@{name}"
    first, last = lines
    return f"@{name}#L{first}" if first == last else f"@{name}#L{first}-L{last}"


def _mention(match: re.Match[str]) -> Mention | None:
    quoted, plain, symbol = match[1] or match[2], match[3] or "", match[4] or ""
    # The end of a sentence belongs to the words: `look at @diff.`
    special = next((kind for kind in SPECIAL if plain.rstrip(".:") == kind), None)
    if special is not None:
        return Mention(special, f"@{special}")
    path, lines = quoted or plain, None
    if not quoted and not symbol and (parts := _PART.fullmatch(plain)):
        path, symbol = parts[1], parts[2]
    if symbol:
        lines = _lines(f"#{symbol}")
    elif not quoted:
        path = path.rstrip(".:")
        lines = _lines(path)
        path = path if lines is None else _LINES.sub("", path)
    symbol = "" if lines is not None else symbol.rstrip(".:")
    return Mention("file", match[0].rstrip(".:"), path, symbol, lines) if path else None


def _lines(text: str) -> tuple[int, int] | None:
    match = _LINES.search(text)
    if match is None:
        return None
    first = max(1, int(match[1]))
    return first, max(first, int(match[2] or first))
