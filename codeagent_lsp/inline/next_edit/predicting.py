"""Prediction of the next edit with a model, where the rules found none: the request from the last edits, and the part
of the answer that may be offered.

An answer is dropped if it changes more than a few lines, or others than those it was asked about; parts of it that take
back what the user did are left out. Not here: the formats (`llm/fill/edit_formats.py`), when the model is asked and the
check by language servers (`server/next_edits.py`).
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from codeagent_lsp.inline.next_edit.history import Edited, History
from codeagent_lsp.inline.next_edit.proposals import Proposed
from codeagent_lsp.llm.fill.edit_formats import EditRequest, RecentEdit, Rewriter, is_quoted
from codeagent_lsp.workspace.text.position import shared_ends
from codeagent_lsp.workspace.text.visible import cut, first_hidden, is_unseen

AROUND = 40
"""Lines above and below the window that the model sees."""
LONGEST_LINE = 400
"""The most characters of a line: longer ones were not written by hand, and one of them fills a prompt."""
MOST_EDITS = 6
MOST_LINES = 12
"""The most lines by which an answer may be longer or shorter than the window."""
_CONTEXT = 2


@dataclass(frozen=True, slots=True)
class Window:
    """The lines of `edited.text` that the model is asked to rewrite: the characters from `start` to `end`, with the
    cursor at `cursor`.
    """

    edited: Edited
    start: int
    end: int
    cursor: int

    @property
    def text(self) -> str:
        """The text of these lines as they are now, with their line breaks."""
        return self.edited.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Shown:
    """The limits of a prompt: `name` returns the path of a file as the model is shown it, None for one that may not be
    shown; `clean` masks secrets.
    """

    name: Callable[[str], str | None]
    clean: Callable[[str], str]


async def predict(rewriter: Rewriter, history: History, shown: Shown) -> list[Proposed]:
    """Ask the model and return the edits that it expects next, in the file of the last edit; [] if the file may not be
    shown or the answer cannot be used. ModelError if the model fails.
    """
    window = window_of(history, rewriter.form.lines)
    request = None if window is None else await asyncio.to_thread(request_of, window, history, shown)
    if window is None or request is None or is_quoted(rewriter.form, request):
        return []
    answer = ""
    async with aclosing(rewriter.stream(request)) as texts:
        async for text in texts:
            answer += text
    rewritten = rewriter.form.rewritten(answer)
    return [] if rewritten is None else await asyncio.to_thread(edits_of, window, rewritten)


def window_of(history: History, lines: int) -> Window | None:
    """Return the window of `lines` lines on each side of the last edit; None without an edit, and if one of the lines
    has over 400 characters.
    """
    edited = history.files[0] if history.files else None
    if edited is None or edited.text == edited.base:
        return None
    text, cursor = edited.text, min(edited.end, len(edited.text))
    start, end = _line_start(text, cursor), _line_end(text, cursor)
    for _ in range(lines):
        start, end = _line_start(text, max(0, start - 1)), _line_end(text, end)
    window = Window(edited, start, end, cursor)
    return None if any(len(line) > LONGEST_LINE for line in window.text.splitlines()) else window


def request_of(window: Window, history: History, shown: Shown) -> EditRequest | None:
    """Return the request to the model, with LF as line breaks and secrets masked in what is beside these lines. None if
    the file may not be shown, or has a secret in these lines, since a masked line would come back changed.
    """
    edited = window.edited
    path, original = shown.name(edited.path), _original(window)
    if path is None or any(shown.clean(text) != text for text in (window.text, original)):
        return None
    recent: list[RecentEdit] = []
    # The newest file is the first one, and its edits are to be the last.
    for each in reversed(history.files):
        other = shown.name(each.path)
        if other is not None and each.text != each.base:
            recent += recent_edits(other, shown.clean(each.base), shown.clean(each.text))
    text = edited.text
    above, below = window.start, window.end
    for _ in range(AROUND):
        above, below = _line_start(text, max(0, above - 1)), _line_end(text, below)
    return EditRequest(
        path,
        _lf(shown.clean(text[above : window.start])),
        _whole(_lf(window.text)),
        _lf(shown.clean(text[window.end : below])),
        len(_lf(text[window.start : window.cursor])),
        _whole(_lf(original)),
        tuple(recent[-MOST_EDITS:]),
        above == 0,
    )


def edits_of(window: Window, rewritten: str) -> list[Proposed]:
    """Return the changes from the window to the rewritten text, each as small as whole words, without those that take
    back an edit of the user. [] if it is more than 12 lines longer or shorter, or brings invisible characters.
    """
    text = _lf(window.text)
    stripped = text.rstrip("\n")
    # Line ends at the end are those of the text: models leave them out or add some.
    new = rewritten.replace("\r\n", "\n").rstrip("\n") + text[len(stripped) :]
    old_lines, new_lines = text.splitlines(keepends=True), new.splitlines(keepends=True)
    if not new.strip() or abs(len(new_lines) - len(old_lines)) > MOST_LINES:
        return []
    # Such characters may be in the text already; none are brought in that the user could not see in a preview.
    if first_hidden(new) < len(new) and {*filter(is_unseen, new)} - {*text}:
        return []
    undone = _undone(window)
    newline = "\r\n" if "\r\n" in window.text else "\n"
    found: list[Proposed] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        before, after = "".join(old_lines[i1:i2]), "".join(new_lines[j1:j2])
        # A model that stopped early leaves out the last lines: nobody can tell that from taking them away.
        if tag == "delete" and i2 == len(old_lines):
            continue
        # Changes of blanks alone are those of a formatter.
        if (
            tag == "equal"
            or _without_blanks(before) == _without_blanks(after)
            or (_without_blanks(before), _without_blanks(after)) in undone
        ):
            continue
        offset = len("".join(old_lines[:i1]))
        found.append(_first_change(window, offset, before, after, newline))
    return found


def recent_edits(path: str, base: str, text: str) -> Iterator[RecentEdit]:
    """Yield the places in which two texts of the file at `path` differ, in their order, as hunks of a unified diff with
    2 lines of context on each side; nothing for equal texts.
    """
    old_lines, new_lines = _lf(base).splitlines(), _lf(text).splitlines()
    head, tail = shared_ends(old_lines, new_lines)
    skipped = max(0, head - _CONTEXT)
    before = old_lines[skipped : len(old_lines) - max(0, tail - _CONTEXT)]
    after = new_lines[skipped : len(new_lines) - max(0, tail - _CONTEXT)]
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        lines = [f"@@ -{skipped + i1 + 1},{i2 - i1} +{skipped + j1 + 1},{j2 - j1} @@"]
        for tag, a1, a2, b1, b2 in group:
            lines += [f" {line}" for line in before[a1:a2]] if tag == "equal" else []
            lines += [f"-{line}" for line in before[a1:a2]] if tag != "equal" else []
            lines += [f"+{line}" for line in after[b1:b2]] if tag != "equal" else []
        yield RecentEdit(path, "\n".join(before[i1:i2]), "\n".join(after[j1:j2]), "\n".join(lines))


def _first_change(window: Window, offset: int, before: str, after: str, newline: str) -> Proposed:
    """Return one change at an offset of the window's text with `\\n`, without what both sides begin and end with."""
    # An added line belongs to the end of the line before it: there an editor can show it as it is typed.
    if not before and offset:
        offset, after = offset - 1, f"\n{after.removesuffix(chr(10))}"
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    start = window.start + _offset(window.text, offset + head)
    end = window.start + _offset(window.text, offset + head + len(old))
    return Proposed(
        window.edited.path, start, end, window.edited.text[start:end], new.replace("\n", newline), _title(before, after)
    )


def _title(before: str, after: str) -> str:
    """Return a line that says what becomes of what, for a lens."""
    old, new = (cut(" ".join(side.split()), 40) for side in (before, after))
    return f"{old} → {new}" if old and new else f"+ {new}" if new else f"- {old}"


def _common(one: str, other: str) -> int:
    """Return the length of the common beginning, not ending inside a word."""
    size = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    while size and _in_word(one, size) | _in_word(other, size):
        size -= 1
    return size


def _in_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and all(char.isalnum() or char == "_" for char in text[at - 1 : at + 1])


def _undone(window: Window) -> set[tuple[str, str]]:
    """Return the changes that would take back what the user did: lines of now, and those they came from."""
    before, after = window.edited.base.splitlines(keepends=True), window.edited.text.splitlines(keepends=True)
    opcodes = _opcodes(before, after)
    pairs = [
        (_without_blanks("".join(after[j1:j2])), _without_blanks("".join(before[i1:i2])))
        for _, i1, i2, j1, j2 in opcodes
    ]
    lines = [
        (_without_blanks(new), _without_blanks(old))
        for tag, i1, i2, j1, j2 in opcodes
        if tag == "replace" and i2 - i1 == j2 - j1
        for old, new in zip(before[i1:i2], after[j1:j2], strict=True)
    ]
    return {*pairs, *lines}


def _original(window: Window) -> str:
    """Return the window as it was before the edits in it."""
    base, text = window.edited.base.splitlines(keepends=True), window.edited.text.splitlines(keepends=True)
    first = window.edited.text.count("\n", 0, window.start)
    last = first + window.text.count("\n") + (not window.text.endswith("\n") and bool(window.text))
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in _opcodes(base, text):
        start, end = max(j1, first), min(j2, last)
        if tag == "equal" and start < end:
            lines += base[i1 + start - j1 : i1 + end - j1]
        elif tag != "equal" and first <= j1 <= last:
            lines += base[i1:i2]
    return "".join(lines)


def _opcodes(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Return what makes of some lines the other ones, as `difflib` does, which takes long for the lines of a whole
    file: it gets those between the first and the last that differ.
    """
    head, tail = shared_ends(before, after)
    ends = len(before) - tail, len(after) - tail
    between = difflib.SequenceMatcher(None, before[head : ends[0]], after[head : ends[1]], autojunk=False)
    changes = [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in between.get_opcodes()]
    return [("equal", 0, head, 0, head), *changes, ("equal", ends[0], len(before), ends[1], len(after))]


def _without_blanks(text: str) -> str:
    return "".join(text.split())


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _whole(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _offset(text: str, at: int) -> int:
    """Return the offset in a text of what is at `at` in the same text with `\\n` for its line breaks."""
    if "\r\n" not in text:
        return min(at, len(text))
    seen = 0
    for offset, char in enumerate(text):
        if seen == at and not (char == "\n" and text[offset - 1 : offset] == "\r"):
            return offset
        seen += not (char == "\r" and text[offset + 1 : offset + 2] == "\n")
    return len(text)


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """Return the offset behind the line break of the line at an offset."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
