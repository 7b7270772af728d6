"""Names hunks by their text, so that a name means the same hunk whatever else was decided meanwhile. Pure.

A number would mean another hunk as soon as one before it is applied or discarded. Not here: what was seen in a review
(`reviewed.py`), what is done with the chosen hunks (`changeset.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.text.lines import split_lines

LENGTH = 8


def hunk_ids(base: str, text: str) -> tuple[str, ...]:
    """Return the ids of the hunks between two texts, in order: hexadecimal, with a letter in each.

    The lines around a hunk count: no other hunk has them. Of hunks that are alike even so, each id says which of how
    many it is, so that none is taken for another once one of them is decided about.
    """
    old, new = split_lines(base), split_lines(text)
    shown = [_shown(hunk, old, new) for hunk in merge.hunks(base, text)]
    alike, before = Counter(shown), Counter[str]()
    ids = []
    for each in shown:
        before[each] += 1
        ids.append(_fingerprint(each if alike[each] == 1 else f"{each} {before[each]}/{alike[each]}"))
    return tuple(ids)


def _shown(hunk: merge.Hunk, old: list[str], new: list[str]) -> str:
    """Return what a diff shows of a hunk but for the numbers of its lines."""
    first, last = hunk[0].old_start, hunk[-1].old_end
    changed = [(old[run.old_start : run.old_end], new[run.new_start : run.new_end]) for run in hunk]
    return json.dumps([old[max(0, first - merge.CONTEXT) : first], changed, old[last : last + merge.CONTEXT]])


def _fingerprint(shown: str) -> str:
    digest = hashlib.sha256(shown.encode()).hexdigest()
    pieces = (digest[at : at + LENGTH] for at in range(len(digest) - LENGTH))
    return next((piece for piece in pieces if not piece.isdecimal()), "f" * LENGTH)
