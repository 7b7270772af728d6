"""Where a learned change is due in one text: ranges in characters with their new texts, none twice, none overlapping.

Pure. Not here: which files are looked at (`search.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeagent_lsp.inline.next_edit.examples import Example
from codeagent_lsp.inline.next_edit.parsed_text import ParsedText
from codeagent_lsp.inline.next_edit.renamings import Renaming, renamings
from codeagent_lsp.inline.next_edit.rewrites import Rewrite, learned

MOST_CHANGES = 4
"""Changes that are learned at once."""

MOST_LEFT_OUT = 1
"""Places before the first example that may be left as they are."""

Change = Rewrite | Renaming


@dataclass(frozen=True, slots=True)
class Learned:
    """A change, and the places of its two examples: the file, and the bytes of its text of now."""

    change: Change
    newest: tuple[str, int]
    other: tuple[str, int]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it is looked for in; none for all. What two edits in one file have in common need not be
        meant elsewhere, unless it is the name of something.
        """
        named = isinstance(self.change, Renaming)
        return () if named or self.newest[0] != self.other[0] else (self.newest[0],)


@dataclass(frozen=True, slots=True)
class Proposed:
    """An edit that is due: `old`, at the characters from `start` to `end` of the text of `path`, becomes `new`."""

    path: str
    start: int
    end: int
    old: str
    new: str
    title: str


def changes_of(newest: Example, others: Sequence[Example]) -> list[Learned]:
    """Return what the newest example has in common with others, each change once."""
    found: list[Learned] = []
    here = (newest.after.path, newest.new_range[0])
    for other in others:
        names = renamings(newest, other)
        # A renaming says more: it knows which uses are of the same thing.
        rewrite = None if names else learned(newest, other)
        for change in (*names, *((rewrite,) if rewrite else ())):
            if all(change != known.change for known in found):
                found.append(Learned(change, here, (other.after.path, other.new_range[0])))
        if len(found) >= MOST_CHANGES:
            break
    return found


def proposals(text: ParsedText, learned: Learned) -> list[Proposed] | None:
    """Return the edits that are due in a text, in its order; None where the user left some out before or between the
    examples, so that it is not plain which are meant.
    """
    found: list[Proposed] = []
    edited = sorted(at for path, at in (learned.newest, learned.other) if path == text.path)
    # A name that is defined no longer is due at all of its uses; a rewrite may be meant for some places only.
    selective = isinstance(learned.change, Rewrite) and bool(edited)
    left_out = 0
    for node, new in learned.change.places(text):
        if selective and node.start_byte < edited[-1]:
            left_out += 1
            if left_out > MOST_LEFT_OUT or node.start_byte > edited[0]:
                return None
            continue
        old = text.of(node)
        start = text.char(node.start_byte)
        if old != new:
            found.append(Proposed(text.path, start, start + len(old), old, new, learned.change.title))
    return apart(found)


def apart(found: Iterable[Proposed]) -> list[Proposed]:
    """Return the edits of one text in its order, without those that overlap: where two are due, neither is plain."""
    taken: list[Proposed] = []
    for each in sorted(found, key=lambda each: (each.start, each.end)):
        if taken and each.start < taken[-1].end:
            if (each.start, each.end, each.new) != (taken[-1].start, taken[-1].end, taken[-1].new):
                taken.pop()
            continue
        taken.append(each)
    return taken
