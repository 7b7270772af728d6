"""Messages for refused edits: the most similar place with its line numbers, and the lines that differ there.

Not here: deciding whether an edit applies. The sentences are for the model, so they are English only.
"""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher

from codeagent_lsp.workspace.edits.match_block import Block
from codeagent_lsp.workspace.text.lines import content_of

_WORD = re.compile(r"\w+")
_ELISION = re.compile(r"^(?:#|//|--|/\*|<!--)?\s*(?:\.{3}|\u2026)")
MAX_DIFFERENCES = 8
MAX_NUMBERS = 20
MAX_WIDTH = 160
MAX_LINES = 20_000
MAX_PLACES, MAX_COMPARED = 30, 40
"""The places that are compared, and the lines of each."""


def line_of(text: str, at: int) -> int:
    """Return the 1-based number of the line that contains offset `at`."""
    head = text[:at]
    return 1 + head.count("\n") + head.count("\r") - head.count("\r\n")


def several(text: str, old: str, found: list[int]) -> str:
    """Return the refusal for `old` occurring at several offsets."""
    lead = len(old) - len(old.lstrip("\r\n"))
    return several_lines([line_of(text, at + lead) for at in found[:MAX_NUMBERS]], total=len(found))


def several_lines(numbers: list[int], total: int | None = None) -> str:
    """Return the refusal for a block that matches at several 1-based line numbers."""
    total = len(numbers) if total is None else total
    shown = ", ".join(map(str, numbers[:MAX_NUMBERS])) + (", ..." if total > min(len(numbers), MAX_NUMBERS) else "")
    return (
        f"old_str fits {total} places, at lines {shown}. Add more of the lines before and after it "
        "to old_str so that it fits only one."
    )


def nearest(file: Block, block: Block) -> str:
    """Return the refusal for a block that was not found: the most similar lines and up to 8 lines that differ."""
    start = _best_start(file, block)
    advice = _advice(file, block)
    if start is None:
        return f"old_str is not in the file, and nothing like it. {advice}"
    first = max(start, 0)
    last = min(start + len(block.keys), len(file.keys)) - 1
    rows = _differences(file, block, first, last)
    place = f"lines {file.at[first] + 1}-{file.at[last] + 1}"
    if not rows:
        return f"old_str is not in the file as it stands. Closest: {place}; only whitespace differs. {advice}"
    return "\n".join([f"old_str is not in the file. Closest: {place} (- old_str, + file):", *rows, advice])


def _advice(file: Block, block: Block) -> str:
    missing = set(block.keys) - set(file.keys)
    if any(_ELISION.match(key) for key in missing):
        return "Do not leave out lines with '...': copy every line of the block, or use a smaller block."
    if any('\\"' in key or "\\'" in key for key in missing):
        return "Do not escape quotes with a backslash that the file does not have."
    return "Read these lines again and copy them exactly, with their indentation."


def _best_start(file: Block, block: Block) -> int | None:
    """Return the file's token at which the block would begin, where the longest parts of its lines are the same."""
    starts = {*_with_same_lines(file, block), *_with_same_words(file, block)}
    reachable = sorted(start for start in starts if -len(block.keys) < start < len(file.keys))
    return max(reachable, key=lambda start: _shared(file, block, start), default=None)


def _with_same_lines(file: Block, block: Block) -> list[int]:
    votes: Counter[int] = Counter()
    wanted: dict[str, list[int]] = {}
    for index, key in enumerate(block.keys):
        wanted.setdefault(key, []).append(index)
    frequency = Counter(key for key in file.keys if key in wanted)
    for number, key in enumerate(file.keys):
        if key in wanted and frequency[key] <= 50:
            for index in wanted[key][:50]:
                votes[number - index] += len(key)
    return [start for start, _ in votes.most_common(MAX_PLACES)]


def _with_same_words(file: Block, block: Block) -> list[int]:
    """Return starts at which a line has more than a third of the words of one of the block's longest lines, and two."""
    longest = sorted(range(len(block.keys)), key=lambda index: -len(block.keys[index]))[:3]
    found: Counter[int] = Counter()
    for index in longest:
        words = set(_WORD.findall(block.keys[index]))
        least = max(2, len(words) // 3 + 1)
        for number, there in enumerate(file.keys[:MAX_LINES]):
            common = sum(1 for word in words if word in there)
            if common >= least:
                found[number - index] = max(found[number - index], common)
    return [start for start, _ in found.most_common(MAX_PLACES)]


def _shared(file: Block, block: Block, start: int) -> int:
    """Return how much is the same at a place: a long part of a line counts for more than several short ones."""
    score = 0
    for index, ours in enumerate(block.keys[:MAX_COMPARED], start):
        if 0 <= index < len(file.keys):
            theirs = file.keys[index][:MAX_WIDTH]
            ours = ours[:MAX_WIDTH]
            score += SequenceMatcher(None, ours, theirs, autojunk=False).find_longest_match().size ** 2
    return score


def _differences(file: Block, block: Block, first: int, last: int) -> list[str]:
    theirs = file.keys[first : last + 1]
    matcher = SequenceMatcher(None, block.keys, theirs, autojunk=False)
    rows: list[str] = []
    for tag, a, a2, b, b2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        rows += [_row("-", block, i, "") for i in range(a, a2)]
        rows += [_row("+", file, first + j, f"{file.at[first + j] + 1}: ") for j in range(b, b2)]
    if len(rows) > MAX_DIFFERENCES:
        rows = [*rows[:MAX_DIFFERENCES], f"({len(rows) - MAX_DIFFERENCES} more lines differ)"]
    return rows


def _row(sign: str, block: Block, token: int, number: str) -> str:
    content = content_of(block.lines[block.at[token]])
    return f"{sign} {number}{content[:MAX_WIDTH]}"
