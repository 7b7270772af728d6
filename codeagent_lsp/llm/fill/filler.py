"""Filling in the middle of a text: the request, the port that every way of asking a model implements, and the special
tokens by which families of models do it, known from the name of a model (by the models' own cards).

Values only. Not here: what goes into a request (`inline/`), how a server is asked (`ways.py`, `open_filler.py`).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of another place of the workspace that the model should know: its path, as shown, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class FillRequest:
    """The text before and after the cursor of the file `path`, and pieces of other places, the most relevant last.
    `max_tokens` limits the answer. `comment` begins a comment line in the file's language, for servers that take pieces
    in no other way; `stop` are texts at which the model ends. `sample` 0 asks for the most likely text, each other
    number for another one.
    """

    prefix: str
    suffix: str
    path: str = ""
    pieces: tuple[Piece, ...] = ()
    comment: str = "#"
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    sample: int = 0

    @property
    def temperature(self) -> float:
        """The temperature: 0.0 for the most likely text, else 0.6."""
        return 0.6 if self.sample else 0.0


class Filler(Protocol):
    """Port: a model that fills in the middle. `slow` says that it runs on this machine's processor. The caller that
    opened it calls `close`.
    """

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def slow(self) -> bool: ...

    def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        """Yield the text that belongs between prefix and suffix, as it comes. Raises ModelError.

        To end it early, close the generator: the server then stops.
        """

    async def close(self) -> None:
        """Close the connections, and end the child process if nothing else uses it."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models with the same tokens: `names` is a regular expression for their names in lower case with `-`
    for `_`, `form` the prompt with prefix and suffix, `file` the token that begins another file, '' if there is none,
    `ends` the tokens at which an answer ends.
    """

    names: str
    form: str
    file: str = ""
    ends: tuple[str, ...] = ()


_QWEN_ENDS = ("<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|cursor|>", "<|repo_name|>", "<|file_sep|>")

FAMILIES = (
    Family(
        r"qwen-?2\.5-?coder|qwen-?3-?coder|codeqwen|qwen.*coder",
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "<|file_sep|>",
        _QWEN_ENDS,
    ),
    Family(
        r"codegemma",
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "<|file_separator|>",
        ("<|file_separator|>", "<end_of_turn>", "<eos>"),
    ),
    Family(
        r"star-?coder|santacoder|stable-?code|granite.*(code|3\.|4)",
        "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
        "<file_sep>",
        ("<|endoftext|>", "<file_sep>", "<fim_pad>", "<|end_of_text|>"),
    ),
    Family(
        r"deepseek-?coder",
        "<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
        "",
        ("<｜end▁of▁sentence｜>", "<|EOT|>"),
    ),
    Family(r"code-?llama", "<PRE> {prefix} <SUF>{suffix} <MID>", "", ("<EOT>", "</s>")),
    # Mistral's order: the suffix first.
    Family(r"codestral|devstral", "[SUFFIX]{suffix}[PREFIX]{prefix}", "", ("</s>",)),
    Family(
        r"seed-?coder",
        "<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
        "",
        ("<[end▁of▁sentence]>",),
    ),
)

_MARK = re.compile(r"\{(?:prefix|suffix)\}")


def family_of(name: str) -> Family | None:
    """Return the family of a model by its name or that of its weights; None for one that is not known to fill in."""
    lowered = name.lower().replace("_", "-")
    return next((family for family in FAMILIES if re.search(family.names, lowered)), None)


def tokens_of(family: Family) -> tuple[str, ...]:
    """Return all special tokens of a family, each once: those of its prompt and those that end an answer."""
    parts = (part.strip() for part in _MARK.split(family.form))
    return tuple(dict.fromkeys(part for part in (*parts, family.file, *family.ends) if part))


UNMISTAKABLE = tuple(
    dict.fromkeys(
        token
        for family in FAMILIES
        for whole in tokens_of(family)
        for token in re.split(r"(?<=>)(?=<)", whole)
        if re.search(r"fim|[|▁]", token)
    )
)
"""Special tokens of all families that do not occur in ordinary text (`</s>`, which also ends an element of HTML, is not
one).
"""


def prompt_of(family: Family, request: FillRequest) -> str:
    """Return the prompt with the special tokens; pieces are added as other files if the family has a token for these,
    otherwise they are left out. Tokens that the texts quote are broken (`harmless`).
    """
    # One substitution for both: a prefix that itself has `{suffix}` in it stays as it is.
    sides = {"{prefix}": harmless(request.prefix), "{suffix}": harmless(request.suffix)}
    middle = _MARK.sub(lambda mark: sides[mark[0]], family.form)
    if not (family.file and request.pieces):
        return middle
    others = "".join(f"{family.file}{piece.path}\n{harmless(piece.text)}\n" for piece in request.pieces)
    return f"{others}{family.file}{request.path}\n{middle}"


def harmless(text: str) -> str:
    """Return a text in which every special token is broken by a blank, so that a file that quotes one does not end the
    prompt; unchanged if it has none.
    """
    for token in UNMISTAKABLE:
        if token in text:
            # A blank behind the first sign: the tokenizer no longer takes it for the token, and a reader still sees
            # it.
            text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def cut_tokens(text: str) -> tuple[str, bool]:
    """Return (text, ended): an answer up to its first special token of any family, and whether there was one."""
    ends = [at for token in UNMISTAKABLE if (at := text.find(token)) >= 0]
    return (text[: min(ends)], True) if ends else (text, False)
