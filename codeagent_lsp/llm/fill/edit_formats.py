"""The prompts by which next-edit models are asked to rewrite the lines around the cursor, by the name of a model.

Sources: Sweep's model card, Zed's `zeta` data set and Zeta 2 model card, Inception's editor integrations. Values only.
Not here: which lines are asked about and what becomes of an answer (`inline/next_edit/predicting.py`), which server
takes it (`ways.py`).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol

SPARE_TOKENS = 256
"""Tokens that an answer may have beyond those of the lines it rewrites."""


@dataclass(frozen=True, slots=True)
class RecentEdit:
    """A place in the file `path` that the user changed: some lines with a line or two around them, before and after.
    `diff` is the body of a unified diff of the same lines, with its header of line numbers, without a line break at its
    end.
    """

    path: str
    before: str
    after: str
    diff: str


@dataclass(frozen=True, slots=True)
class EditRequest:
    """Lines of the file `path` that may be rewritten: `window`, with `above` and `below` around it, all of whole lines
    with `\\n`; `cursor` is the offset in the window, `original` the window before the edits in it, `recent` the last
    edits, the oldest first. `at_start` is whether `above` begins with the file.
    """

    path: str
    above: str
    window: str
    below: str
    cursor: int
    original: str
    recent: tuple[RecentEdit, ...] = ()
    at_start: bool = True

    @property
    def max_tokens(self) -> int:
        """The most tokens of an answer. Code has three or four characters a token; two leave room for other scripts."""
        return len(self.window) // 2 + SPARE_TOKENS

    @property
    def marked(self) -> tuple[str, str]:
        """The window as (before, after): its text before and after the cursor."""
        return self.window[: self.cursor], self.window[self.cursor :]


@dataclass(frozen=True, slots=True)
class EditFormat:
    """The format of one family of next-edit models: how many lines on each side of the cursor it rewrites, its prompt,
    and the texts at which an answer stops. `rewritten` returns the new text of the window by an answer, None if the
    answer has none; line breaks at its end mean nothing. `as_message` if the model is asked by a message of its own
    interface, not by a bare prompt. `tokens` are special tokens that no text in a request may contain.
    """

    names: str
    lines: int
    prompt: Callable[[EditRequest], str]
    rewritten: Callable[[str], str | None]
    stop: tuple[str, ...]
    tokens: tuple[str, ...]
    as_message: bool = False


class Rewriter(Protocol):
    """Port: a next-edit model, which rewrites the lines around a cursor."""

    @property
    def form(self) -> EditFormat:
        """The format of its prompts and answers."""

    def stream(self, request: EditRequest) -> AsyncGenerator[str, None]:
        """Yield the answer as it comes. Raises ModelError; to end it early, close the generator."""

    async def close(self) -> None:
        """Close the connections."""


def format_of(name: str) -> EditFormat | None:
    """Return the format of a model by its name or that of its weights; None for one that is not a known next-edit
    model.
    """
    lowered = name.lower().replace("_", "-")
    return next((form for form in FORMATS if re.search(form.names, lowered)), None)


def is_quoted(form: EditFormat, request: EditRequest) -> bool:
    """Return whether a text of the request contains a special token of the format, so that the prompt would be
    misread.
    """
    edits = (part for edit in request.recent for part in (edit.path, edit.before, edit.after))
    parts = (request.path, request.above, request.window, request.below, request.original, *edits)
    return any(token in part for part in parts for token in form.tokens)


# Sweep: parts after `<|file_sep|>`, the last of which the model goes on with. Nothing of the file beyond the window.


def _sweep_prompt(request: EditRequest) -> str:
    parts = [
        f"<|file_sep|>{edit.path}.diff\noriginal:\n{edit.before.rstrip(chr(10))}\nupdated:\n{edit.after.rstrip(chr(10))}"
        for edit in request.recent
    ]
    for label, text in (("original", request.original), ("current", request.window)):
        parts.append(f"<|file_sep|>{label}/{request.path}\n{text.rstrip(chr(10))}")
    return "\n".join([*parts, f"<|file_sep|>updated/{request.path}"])


def _sweep_rewritten(answer: str) -> str | None:
    return answer.partition("<|file_sep|>")[0].partition("<|endoftext|>")[0].removeprefix("\n")


# Zeta, the first: an instruction, the edits as diffs, and a fenced excerpt of which a marked region is rewritten.

_REGION, _REGION_END, _HERE = "<|editable_region_start|>", "<|editable_region_end|>", "<|user_cursor_is_here|>"
_ZETA_TASK = (
    "You are a code completion assistant and your task is to analyze user edits and then rewrite an excerpt that the "
    "user provides, suggesting the appropriate edits within the excerpt, taking into account the cursor location."
)


def _zeta_prompt(request: EditRequest) -> str:
    edits = "\n\n".join(f'User edited "{edit.path}":\n```diff\n{edit.diff}\n```' for edit in request.recent)
    before, after = request.marked
    start = "<|start_of_file|>\n" if request.at_start else ""
    region = f"{_REGION}\n{before}{_HERE}{after.rstrip(chr(10))}\n{_REGION_END}"
    excerpt = f"```{request.path}\n{start}{request.above}{region}\n{request.below}\n```"
    return (
        f"### Instruction:\n{_ZETA_TASK}\n\n### User Edits:\n\n{edits}\n\n### User Excerpt:\n\n{excerpt}\n\n"
        "### Response:\n"
    )


def _zeta_rewritten(answer: str) -> str | None:
    _, begun, rest = answer.partition(f"{_REGION}\n")
    return rest.partition(_REGION_END)[0].replace(_HERE, "") if begun else None


# Zeta 2: what follows, what stands before with the edits, and the window as one side of a conflict, whose other side it
# writes.

_UPDATED, _CURSOR = ">>>>>>> UPDATED", "<|user_cursor|>"


def _as_diffs(request: EditRequest) -> str:
    return "".join(f"--- a/{edit.path}\n+++ b/{edit.path}\n{edit.diff}\n" for edit in request.recent)


def _zeta2_prompt(request: EditRequest) -> str:
    before, after = request.marked
    return (
        f"<[fim-suffix]>\n{request.below}<[fim-prefix]><filename>edit_history\n{_as_diffs(request)}\n"
        f"<filename>{request.path}\n{request.above}<<<<<<< CURRENT\n{before}{_CURSOR}{after}=======\n<[fim-middle]>"
    )


def _zeta2_rewritten(answer: str) -> str | None:
    text = answer.partition(_UPDATED)[0].replace(_CURSOR, "", 1)
    return None if any(mark in text for mark in (_CURSOR, "<<<<<<< CURRENT", "<[fim-")) else text


# Mercury: marked parts in one message; it answers with the code, or with `None`.


def _mercury_prompt(request: EditRequest) -> str:
    before, after = request.marked
    return (
        "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n"
        f"<|current_file_content|>\ncurrent_file_path: {request.path}\n{request.above}"
        f"<|code_to_edit|>\n{before}<|cursor|>{after}\n<|/code_to_edit|>\n{request.below}\n<|/current_file_content|>\n"
        f"<|edit_diff_history|>\n{_as_diffs(request)}\n<|/edit_diff_history|>\n"
    )


def _mercury_rewritten(answer: str) -> str | None:
    text = answer.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text.partition("\n")[2].removesuffix("```")
    for mark in ("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>"):
        text = text.replace(mark, "")
    return None if text.strip() == "None" else text


FORMATS = (
    EditFormat(
        r"sweep.*next-?edit|next-?edit.*sweep",
        10,
        _sweep_prompt,
        _sweep_rewritten,
        ("<|file_sep|>", "<|endoftext|>"),
        ("<|file_sep|>", "<|endoftext|>"),
    ),
    EditFormat(
        r"\bzeta-?2",
        12,
        _zeta2_prompt,
        _zeta2_rewritten,
        (_UPDATED, "<[end▁of▁sentence]>"),
        (_UPDATED, _CURSOR, "<<<<<<< CURRENT", "<[fim-", "<[end▁of▁sentence]>"),
    ),
    EditFormat(r"\bzeta\b", 12, _zeta_prompt, _zeta_rewritten, (_REGION_END,), (_REGION, _REGION_END, _HERE)),
    EditFormat(
        r"\bmercury\b",
        12,
        _mercury_prompt,
        _mercury_rewritten,
        (),
        ("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>", "<|/current_file_content|>", "<|edit_diff_history|>"),
        as_message=True,
    ),
)
