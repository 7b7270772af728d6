"""The edit engine: replace one block of a text by another, or refuse. Pure functions of their arguments.

The exact tier may match a part of a line and replaces it literally. All other tiers match whole lines
(`match_block.py`) and apply only the changed lines (`match_merge.py`). Every tier needs exactly one match. Not here:
reading files, encodings, staging.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.workspace.edits.match_block import BLANKS, Block, BlockMatch, Tier, places, rival
from codeagent_lsp.workspace.edits.match_merge import Unsafe, merge
from codeagent_lsp.workspace.text.position import content_of, dominant_newline, split_lines

_BOM = "\ufeff"
_NEWLINE = re.compile(r"\r\n|\n|\r")
_WORD = re.compile(r"\w+")
# In scripts without blanks between words, two letters say nothing.
_INSIDE_WORD = re.compile(r"[A-Za-z_]{2}|[0-9]{2}|[A-Za-z_][0-9]")
# `# ... rest of the code`, `// …`: a line that a model writes in place of lines it leaves out.
_ELISION = re.compile(r"^(?:#|//|--|/\*|<!--)?\s*(?:\.{3}|\u2026)")
MAX_DIFFERENCES = 8  # lines that a refusal shows
SLACK = 4  # lines by which the place that a block means may begin earlier or end later than the block
MAX_NUMBERS = 20  # line numbers that a refusal names
MAX_WIDTH = 160
MAX_LINES = 20_000  # of a longer file only so many are searched for the most similar place
MAX_PLACES, MAX_COMPARED = 30, 40
"""The places that are compared, and the lines of each."""


@dataclass(frozen=True)
class Replacement:
    """The whole text after an edit, and the name of the tier (see `Tier`) at which the old text matched, such as
    `exact`.
    """

    text: str
    tier: str


@dataclass(frozen=True)
class Edit:
    """One change: the characters `start` to `stop` (0-based, half-open; equal for an insertion) become `text`. `tier`
    is the name of the tier at which the old text matched, such as `exact`.
    """

    start: int
    stop: int
    text: str
    tier: str


def replace(text: str, old: str, new: str, *, replace_all: bool = False) -> Replacement:
    """Return `text` with its only match of `old` replaced by `new`. With `replace_all`, every exact occurrence is
    replaced, or the only match if there is none.

    Raises `EditRefused` with reason `not_found`, `ambiguous`, `already_applied` or `empty`; the last also if `old` and
    `new` are equal.
    """
    return _replacement(text, new, plan_all(text, old, new) if replace_all else [plan(text, old, new)])


def replace_lines(text: str, old: str, new: str) -> Replacement:
    """Return `text` as `replace` does for an `old` and a `new` that are whole lines: occurrences that are whole lines
    go before others, and one that cuts a word or a number is never taken. EditRefused as there.
    """
    return _replacement(text, new, [plan(text, old, new, lines=True)])


def _replacement(text: str, new: str, edits: list[Edit]) -> Replacement:
    changed = apply_edits(text, edits)
    if changed == text:
        raise _already(text, new, "the edit would change nothing")
    return Replacement(changed, edits[0].tier)


def apply_edits(text: str, edits: list[Edit]) -> str:
    """Return `text` after edits that do not overlap, in any order; their offsets are those of the text before."""
    # From the end on, so that the offsets of the edits before stay valid.
    for edit in sorted(edits, key=lambda e: (e.start, e.stop), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.stop :]
    return text


def plan(text: str, old: str, new: str, *, lines: bool = False) -> Edit:
    """Return the change that `replace` would make; with `lines`, that of `replace_lines`. EditRefused as there."""
    # A model never sees the byte-order mark, so it can neither match nor replace it.
    offset, text, old, new = _without_bom(text, old, new)
    _check_not_empty(old, new)
    found = exact_places(text, old)
    if lines or old.endswith(("\n", "\r")):
        found = _of_lines(text, old, found, lines=lines)
    if len(found) > 1:
        raise EditRefused("ambiguous", several(text, old, found))
    # Elsewhere the characters alone would join two lines or lose an indentation; whole lines have no such edges.
    if found and _is_literal(text, old, new, found[0]):
        edit = _exact_edit(text, old, new, found[0])
    else:
        edit = plan_lines(text, old, new)
    return Edit(edit.start + offset, edit.stop + offset, edit.text, edit.tier)


def plan_all(text: str, old: str, new: str) -> list[Edit]:
    """Return the changes of `replace(..., replace_all=True)`, in order; without an exact occurrence, the change of
    `plan`. EditRefused if neither is possible, and `ambiguous` if the occurrences overlap or `new` has some of them
    already.
    """
    _check_not_empty(old, new)
    # An LF that is found in the middle of a CRLF would leave a lone CR behind.
    found = [at for at in exact_places(text, old) if not _splits_newline(text, old, at)]
    if not found:
        return [plan(text, old, new)]
    covered = [at for at in found if _is_covered(text, old, new, at)]
    # Models repeat calls: a second time would put new_str around each of its own copies of old_str.
    if len(covered) == len(found):
        raise _already(text, new, "every occurrence of old_str is part of new_str already")
    if covered:
        message = "some occurrences of old_str are part of new_str already; edit the others one by one"
        raise EditRefused("ambiguous", message + ". " + several(text, old, found))
    # `aa` in `aaa`: the result would depend on which of the two is taken.
    if any(b - a < len(old) for a, b in pairwise(found)):
        raise EditRefused("ambiguous", "occurrences of old_str overlap each other")
    return [Edit(at, at + len(old), _localize(text, old, new, at), "exact") for at in found]


def plan_lines(text: str, old: str, new: str) -> Edit:
    """Return the change as `plan` does, but match whole lines only. EditRefused as there, also if the text after it
    would not be certain.
    """
    file, before, after = Block.of(text), Block.of(old), Block.of(new)
    found = places(file, before)
    if not found:
        if _stands_already(file, before, after):
            raise _already(text, new, "old_str is not in the file and new_str is")
        raise EditRefused("not_found", nearest(file, before))
    # From here on the file has blank lines or letters that old_str lacks, so a place with an extra line is as likely.
    twin = rival(file, before, found[0]) if found[0].tier >= Tier.BLANK_LINES else None
    if len(found) > 1 or twin is not None:
        starts = [place.first for place in found] + ([] if twin is None else [twin])
        raise EditRefused("ambiguous", several_lines([file.at[start] + 1 for start in starts]))
    place = found[0]
    # Models repeat calls: where new_str contains old_str, a second time would add its lines once more.
    if _applied_here(file, place, after):
        raise _already(text, new, "new_str stands where old_str would match")
    try:
        merged = merge(file, place, before, after)
    except Unsafe as unsafe:
        raise EditRefused("not_found", f"{nearest(file, before)}\nNot applied: {unsafe}.") from None
    # From lines back to characters: an edit is in characters, whichever tier has found its place.
    start = sum(map(len, file.lines[: merged.start]))
    stop = start + sum(map(len, file.lines[merged.start : merged.stop]))
    # The merge took everything from the file: what new_str changes is there already, in the file's own writing.
    if text[start:stop] == merged.text:
        raise _already(text, new, "the lines read like new_str already")
    return Edit(start, stop, merged.text, place.tier.label)


def exact_places(text: str, old: str) -> list[int]:
    """Return the 0-based offsets of every occurrence of `old`, in characters, overlapping ones too, ascending; of ''
    every offset up to the end.
    """
    found = []
    at = text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _without_bom(text: str, old: str, new: str) -> tuple[int, str, str, str]:
    if not text.startswith(_BOM):
        return 0, text, old, new
    return 1, text[1:], old.removeprefix(_BOM), new.removeprefix(_BOM)


def _check_not_empty(old: str, new: str) -> None:
    if not old:
        raise EditRefused("empty", "old_str is empty. Copy the lines to be replaced from the file into it.")
    if old == new:
        raise EditRefused("empty", "old_str and new_str are the same, so nothing would change.")


# --- the exact tier


def _exact_edit(text: str, old: str, new: str, at: int) -> Edit:
    if _is_covered(text, old, new, at):
        raise _already(text, new, "old_str stands inside new_str, which the file has already")
    if _adds_blank_already_there(text, old, new, at):
        message = (
            "new_str begins or ends with a blank line that old_str does not have, and the file has one there "
            "already. Include the blank lines around the block in old_str."
        )
        raise EditRefused("ambiguous", message)
    return Edit(at, at + len(old), _localize(text, old, new, at), "exact")


def _is_covered(text: str, old: str, new: str, at: int) -> bool:
    """Return whether the occurrence of `old` at `at` is part of an occurrence of `new`."""
    return any(
        text.startswith(form, at - inner)
        # In a file with CRLF, the new block stands with the file's line ends, not with those of the call.
        for form in {new, _localize(text, old, new, at)}
        # A new block that is no longer cannot hold the old one and something beside it.
        if len(form) > len(old)
        for inner in exact_places(form, old)
        if at >= inner
    )


def _localize(text: str, old: str, new: str, at: int) -> str:
    """Return `new` with the line endings used at the match, unless it only has endings that `old` has too."""
    wanted = set(_NEWLINE.findall(new))
    if not wanted or wanted <= set(_NEWLINE.findall(old)):
        return new
    here = _NEWLINE.search(text, at) if not _NEWLINE.search(old) else None
    style = here.group() if here else dominant_newline(old if _NEWLINE.search(old) else text)
    return _NEWLINE.sub(style, new)


def _is_literal(text: str, old: str, new: str, at: int) -> bool:
    """Return whether to replace the characters literally rather than whole lines."""
    if _splits_newline(text, old, at):
        return False
    return not (_glues_before(text, old, new, at) or _glues_after(text, old, new, at)) and not _indents_badly(
        text, old, new, at
    )


def _cuts_word(text: str, old: str, at: int) -> bool:
    """Return whether the occurrence begins or ends in the middle of a word or a number."""
    stop = at + len(old)
    return any(_INSIDE_WORD.fullmatch(text[max(edge - 1, 0) : edge + 1]) is not None for edge in (at, stop))


def _of_lines(text: str, old: str, found: list[int], *, lines: bool) -> list[int]:
    """Return the occurrences that who writes lines can mean: whole ones, and no part of a word, as `x = 1` within
    `max = 10`.
    """
    if not lines and len(found) != 1:
        return found
    whole = [at for at in found if _is_lines(text, old, at)] if lines else ()
    return [*whole] or [at for at in found if not _cuts_word(text, old, at)]


def _is_lines(text: str, old: str, at: int) -> bool:
    """Return whether the occurrence consists of whole lines."""
    stop = at + len(old)
    begins = at == 0 or text[at - 1] in "\r\n"
    return begins and (stop == len(text) or text[stop - 1] in "\r\n" or text[stop] in "\r\n")


def _splits_newline(text: str, old: str, at: int) -> bool:
    """Return whether the occurrence begins or ends in the middle of a CRLF."""
    stop = at + len(old)
    return text[max(at - 1, 0) : at + 1] == "\r\n" or text[stop - 1 : stop + 1] == "\r\n"


def _glues_before(text: str, old: str, new: str, at: int) -> bool:
    """Return whether `old` begins with a line end that is not a blank line in the file, as `old` suggests."""
    # A deletion may take the line end before it along; and an old_str of blank lines alone says nothing of lines.
    meant = old[0] in "\r\n" and bool(new) and bool(old.strip())
    return meant and at > 0 and text[at - 1] not in "\r\n"


def _glues_after(text: str, old: str, new: str, at: int) -> bool:
    """Return whether `old` ends with a line end, and the next line would be joined to the rest of this one."""
    if old[-1] not in "\r\n" or new.endswith(("\n", "\r")) or at + len(old) == len(text):
        return False
    starts_line = at == 0 or text[at - 1] in "\r\n"
    # A deletion of whole lines ends with their line end; one that begins amid a line would pull up the next line.
    return bool(new) or not (starts_line or old[0] in "\r\n")


def _indents_badly(text: str, old: str, new: str, at: int) -> bool:
    """Return whether `old` begins after the line's indentation, while `new` has lines without that indentation."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    prefix = text[start:at]
    if not prefix or prefix.strip(BLANKS):
        return False
    lines = split_lines(new)
    # old_str is indented less than the file. Of one line the rest of the indentation stays; more lines need a shift.
    if old[0] in BLANKS:
        return len(lines) > 1 or len(split_lines(old)) > 1
    if len(split_lines(old.strip())) > 1:
        return False  # its other lines are indented as in the file
    pairs = pairwise(lines)
    return any(before.strip() and line.strip() and not line.startswith(prefix) for before, line in pairs)


def _adds_blank_already_there(text: str, old: str, new: str, at: int) -> bool:
    """Return whether the edit adds a blank line at the block's edge where the file already has one."""
    # An edit of blank lines alone is meant as it is written.
    if old.strip() == new.strip() or not new.strip():
        return False
    stop = at + len(old)
    old_lines, new_lines = split_lines(old), split_lines(new)
    # Which edge the edit gives more blank lines than old_str has.
    head = _leading(new_lines) > _leading(old_lines)
    tail = _leading(new_lines[::-1]) > _leading(old_lines[::-1])
    if head and _first_kept(old_lines, new_lines) and (at == 0 or text[at - 1] in "\r\n"):
        return _leading(split_lines(text[:at])[::-1]) > 0
    if tail and _first_kept(old_lines[::-1], new_lines[::-1]):
        rest = split_lines(text[stop:])
        return _leading(rest if old[-1] in "\r\n" else rest[1:]) > 0
    return False


def _leading(lines: list[str]) -> int:
    return next((count for count, line in enumerate(lines) if line.strip(" \t\r\n")), len(lines))


def _first_kept(old: list[str], new: list[str]) -> bool:
    first, second = old[_leading(old) :], new[_leading(new) :]
    return bool(first and second) and first[0].rstrip() == second[0].rstrip()


# --- all other tiers


def _applied_here(file: Block, place: BlockMatch, after: Block) -> bool:
    """Return whether the new block already is at the match.

    If it is only a part of the match, the edit is a deletion.
    """
    for there in places(file, after, limit=Tier.INDENTATION):
        if there.tier > place.tier or (there.tier == place.tier and there.first == place.first):
            continue
        # Under another shift it is another block, such as the same statement one level deeper.
        if not there.shift.none and there.shift.known.items() - place.shift.known.items():
            continue
        overlaps = there.first < place.stop and place.first < there.stop
        inside = place.first <= there.first and there.stop <= place.stop and there.size < place.size
        if overlaps and not inside:
            return True
    return False


def _stands_already(file: Block, before: Block, after: Block) -> bool:
    """Return whether the file already contains the new block, and not only because the old block contains it."""
    if not places(file, after, limit=Tier.INDENTATION):
        return False
    size = len(after.keys)
    return not any(before.keys[i : i + size] == after.keys for i in range(len(before.keys) - size + 1))


def _already(text: str, new: str, why: str) -> EditRefused:
    at = text.find(new) if new else -1
    where = f" (line {line_of(text, at)})" if at >= 0 else ""
    return EditRefused("already_applied", f"The edit seems to be applied already{where}: {why}. Do not repeat it.")


# Messages for refused edits: the most similar place with its line numbers, and the lines that differ there.


def line_of(text: str, at: int) -> int:
    """Return the 1-based number of the line that contains offset `at`, in characters; LF, CRLF and CR end lines."""
    head = text[:at]
    return 1 + head.count("\n") + head.count("\r") - head.count("\r\n")


def several(text: str, old: str, found: list[int]) -> str:
    """Return the message, for the model, of the refusal for an `old` that occurs at several offsets (`found`, in
    characters), with at most 20 line numbers.
    """
    lead = len(old) - len(old.lstrip("\r\n"))
    return several_lines([line_of(text, at + lead) for at in found[:MAX_NUMBERS]], total=len(found))


def several_lines(numbers: list[int], total: int | None = None) -> str:
    """Return the message of the refusal for a block that matches at several 1-based line numbers, at most 20 of them
    named; `total` is the number of all matches (None: those of `numbers`).
    """
    total = len(numbers) if total is None else total
    shown = ", ".join(map(str, numbers[:MAX_NUMBERS])) + (", ..." if total > min(len(numbers), MAX_NUMBERS) else "")
    return (
        f"old_str fits {total} places, at lines {shown}. Add more of the lines before and after it "
        "to old_str so that it fits only one."
    )


def nearest(file: Block, block: Block) -> str:
    """Return the message, for the model, of the refusal for a block that was not found in `file`: the most similar
    lines, and up to 8 lines that differ.
    """
    start = _best_start(file, block)
    advice = _advice(file, block)
    if start is None:
        return f"old_str is not in the file, and nothing like it. {advice}"
    first, last = _extent(file, block, start)
    rows = _differences(file, block, first, last)
    place = f"line {file.at[first] + 1}" if first == last else f"lines {file.at[first] + 1}-{file.at[last] + 1}"
    if not rows:
        differs = "only blanks, quotes or dashes differ"
        return f"old_str is not in the file as it stands. Closest: {place}; {differs}. {advice}"
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
    return max(reachable, key=lambda start: _shared_length(file, block, start), default=None)


def _extent(file: Block, block: Block, start: int) -> tuple[int, int]:
    """Return the first and the last token of a place, which may be some lines longer or shorter than the block: where
    its lines stand around `start`.
    """
    size = len(block.keys)
    low = max(start - SLACK, 0)
    around = file.keys[low : start + size + SLACK]
    same = SequenceMatcher(None, around, block.keys, autojunk=False).get_matching_blocks()[:-1]
    first = low + same[0].a - same[0].b if same else start
    last = low + same[-1].a + size - same[-1].b - 1 if same else start + size - 1
    return max(first, 0), min(last, len(file.keys) - 1)


def _with_same_lines(file: Block, block: Block) -> list[int]:
    votes: Counter[int] = Counter()
    wanted: dict[str, list[int]] = {}
    for index, key in enumerate(block.keys):
        wanted.setdefault(key, []).append(index)
    frequency = Counter(key for key in file.keys if key in wanted)
    for number, key in enumerate(file.keys):
        # Lines such as `}` are everywhere: they tell no place, and would make this quadratic.
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


def _shared_length(file: Block, block: Block, start: int) -> int:
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
