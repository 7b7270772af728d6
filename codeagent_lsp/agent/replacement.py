"""Fits the code of a model's answer into a file in place of a selection. Pure functions.

Models repeat the lines around the code and shift its indentation; all of that is undone here, and nothing else: what
stands inside strings stays as it was given. Not here: what of a reply is code (`direct/fences.py`), asking the model
(`direct/question.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from heapq import nsmallest

from codeagent_lsp.index.comments import comment_of
from codeagent_lsp.index.grammars import Grammar
from codeagent_lsp.index.indentation import has_one_style, in_style, without_literals
from codeagent_lsp.index.literals import (
    Literal,
    fixed_lines,
    kept_literal_lines,
    language_of,
    literal_lines,
    literals,
    may_hold_more,
)
from codeagent_lsp.index.placeholders import filled_lines
from codeagent_lsp.workspace.edits.line_matching import is_telling
from codeagent_lsp.workspace.edits.merge import with_line_ends_of
from codeagent_lsp.workspace.text.position import dominant_newline, margin_lines, with_newlines

OPEN, CLOSE = "<selection>", "</selection>"
PLACE = "[the code to rewrite stands here]"

_TAGS = re.compile(rf"\A\s*?[ \t]*{OPEN}[ \t]*\n?(?P<code>.*?)\n?[ \t]*{CLOSE}\s*\Z", re.DOTALL)
_OPENERS = (":", "{", "(", "[")
_PAIRS = {")": "(", "]": "[", "}": "{"}
# Models repeat the head of a function or a block, not pages.
_MOST_AROUND = 8
_NEIGHBOURS = 3
_KEY = re.compile(r"[\w\"'@.-]+[:=(]?")


def replaced(text: str, start: int, end: int, given: str, path: str = "") -> str:
    """Return `text` with the characters `start:end` replaced by the code of a model's answer, fitted to its place;
    unchanged if that is blank. The suffix of `path` gives the language, '' for an unknown one.
    """
    start += text.startswith("\ufeff") and start == 0 < end  # the byte-order mark, which a model never sees
    selected = text[start:end]
    bare = without_tags(with_newlines(given, "\n"), selected)
    # An empty answer is no wish to delete the selection.
    if not bare.strip():
        return text
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    prefix = text[line_start:start]
    suffix = re.split(r"[\r\n]", text[end:], maxsplit=1)[0]
    whole_lines = not prefix.strip() and (not suffix.strip() or selected.endswith(("\n", "\r")))
    if whole_lines:
        code = without_surroundings(bare, selected, text[:line_start], text[end:])
    else:
        code = _without_rest_of_line(bare, selected, prefix.strip(), suffix.strip())
    given_code, code = code.strip("\n"), code.strip("\n").rstrip()
    first = line_start if whole_lines else start
    # Blanks at the end of a reply mean nothing, unless they are the content of a string that goes on behind it, or were
    # there before, as those that break a line of Markdown.
    if given_code != code:
        blanks = given_code[len(code) :]
        stood = with_newlines(selected, "\n").rstrip("\n").endswith(blanks)
        code = given_code if stood or _ends_inside(text, first, end, given_code, path) else code
    inside = _inside(text, first, end, code, path)
    language = language_of(path, text)
    core = with_newlines(selected, "\n").strip("\n")
    mixed = not has_one_style(code, text)
    there = literals(text, language) if inside or mixed else ()  # a parse of the whole file
    known = literal_lines(text, there) if inside else Counter[str]()
    if isinstance(language, Grammar) or not path:  # in other files tabs may be more than indentation
        code = in_style(code, without_literals(text, there), inside, known) if mixed else code
    # Nothing is known of the language but its quotes: where the code may hold a literal, no line of it is moved, but
    # all of them if they are those of the selection then.
    elif (kept := _line_for_line(code, core, fixed_lines(inside)) if whole_lines else "") or may_hold_more(
        code, language
    ):
        code = kept or _moved_alike(code.split("\n"), core, _indent(core), _indent(code))
        inside = [Literal(-1, code.count("\n"))]
    whole = [each for each in inside if each.first >= 0]  # in a literal that has begun before, all is as it is given
    code = _with_blanks_of(code, selected, known if isinstance(language, Grammar) else None, fixed_lines(whole))
    newline = dominant_newline(text)
    new = fit_margins(code, selected, newline, prefix if not prefix.strip() else "", inside, known)
    if "\n" in selected or "\r" in selected:
        new = with_line_ends_of(selected, new)
    if not selected and not prefix.strip() and suffix.strip():  # lines that are put in before one
        new += newline + prefix
    return text[:start] + new + text[end:]


def _with_blanks_of(code: str, selected: str, known: Counter[str] | None, fixed: Collection[int]) -> str:
    """Return code with the blanks at the ends of lines that it repeats but for these, where they are content: on the
    lines `fixed` inside literals, of which the `known` ones are those of the file; with None, in a language of which
    nothing is known, on all. Where nothing but blanks is changed, that is what was asked for.
    """
    lines = code.split("\n")
    own = [line.rstrip("\r") for line in selected.split("\n")]
    if [*filter(None, map(str.strip, lines))] == [*filter(None, map(str.strip, own))]:
        return code
    meant: dict[str, set[str]] = {}
    for line in own if known is None else known:
        meant.setdefault(line.strip(), set()).add(line)
    for number, line in enumerate(lines):
        alike = meant.get(line.strip(), set())
        if len(alike) != 1 or not line.strip() or (known is not None and number not in fixed):
            continue
        (before,) = alike
        # Elsewhere a line that is indented deeper than before may be in a block now.
        if known is not None or any(_indent(line) == _indent(before).expandtabs(width) for width in (4, 8)):
            lines[number] = before
    tabs = known is None and {_indent(line)[:1] for line in own} <= {"", "\t"} and "\t" not in code and "\t" in selected
    return "\n".join(map(_with_tabs, lines) if tabs else lines)


def _line_for_line(code: str, selected: str, fixed: Collection[int]) -> str:
    """Return code, of a language without a grammar, with the margins of the selection whose lines it repeats but for
    some, each of which it has replaced by one; '' where it does more than that, or that leaves a margin open. Lines in
    literals, as far as these are known (`fixed`), are as they are given.
    """
    lines, own = code.split("\n"), selected.split("\n")
    if len(lines) != len(own):
        return ""
    same = [line.strip() == there.strip() for line, there in zip(lines, own, strict=True)]
    margins = [(_indent(line), _indent(there)) for line, there in zip(lines, own, strict=True)]
    told = [at for at, kept in enumerate(same) if kept and own[at].strip() and at not in fixed]
    # Of lines that are kept, all the file's; a new one is moved as those are that were given as deep, or are near.
    for number, kept in enumerate(same):
        if number in fixed and not kept:
            continue
        if kept or not lines[number].strip():
            lines[number] = own[number] if kept else ""
            continue
        margin = margins[number][0]
        known = nsmallest(_NEIGHBOURS, ((margins[at][0] != margin, abs(at - number), at) for at in told))
        moved = (_moved_as(margin, *margins[at]) for *_, at in known)
        right = next((each for each in moved if each is not None), None)
        if right is None:
            return ""
        lines[number] = right + lines[number].lstrip(" \t")
    filled = next((at for at, line in enumerate(own) if line.strip()), 0)
    return "\n".join(lines) if any(same) and _indent(lines[filled]) == _indent(own[filled]) else ""


def _moved_as(margin: str, given: str, there: str) -> str | None:
    """Return a margin of a reply as it has to be in a file where `there` stands in the place of the margin `given`;
    None where that does not tell.
    """
    if margin.startswith(given):
        more = margin.removeprefix(given)
        return None if more and "\t" in there and "\t" not in more else there + more
    less = given.removeprefix(margin) if given.startswith(margin) else ""
    if less and there.endswith(less):
        return there.removesuffix(less)
    # As many blanks for each tab.
    if there and not there.strip("\t") and len(given) % len(there) == 0 and not margin.strip(" "):
        width = len(given) // len(there)
        return "\t" * (len(margin) // width) if width and len(margin) % width == 0 else None
    return None


def _with_tabs(line: str) -> str:
    blanks = len(_indent(line))
    return "\t" * (blanks // 4) + line[blanks:] if blanks and not blanks % 4 else line


def without_tags(code: str, selected: str) -> str:
    """Return code without the tags that a model has put around it, and without the mark of its place. Tags that the
    selection itself has are code.
    """
    wrapped = _TAGS.match(code)
    # An XML file may have an element of that name: tags go only if the code inside still has what the selection had.
    if wrapped is not None and not (_TAGS.match(selected) and not _TAGS.match(wrapped["code"])):
        code = wrapped["code"]
    return code if PLACE in selected else code.replace(PLACE, "")


def without_surroundings(code: str, selected: str, before: str, after: str) -> str:
    r"""Return `code` (line ends `\n`), a reply in place of `selected`, without the lines that it repeats at its
    beginning and its end from the texts `before` and `after` the selection.
    """
    lines = code.strip("\n").split("\n")
    own = filled_lines(selected)
    lines = _without_frame(lines, own, filled_lines(before), filled_lines(after))
    first = _count_repeated(lines, own, filled_lines(before)[::-1])
    lines = lines[first:]
    last = _count_repeated(lines[::-1], own[::-1], filled_lines(after))
    return "\n".join(lines[: len(lines) - last])


def fit_margins(
    code: str,
    selected: str,
    newline: str,
    prefix: str = "",
    inside: Collection[Literal] = (),
    known: Counter[str] | None = None,
) -> str:
    """Return `code` with the indentation, the line ends and the blank lines at both ends of the text it replaces.

    `prefix` is the white space before the selection on its first line. `inside` are the lines of `code` that begin
    inside a literal: they stay as they are, or as they are `known`.
    """
    lead = selected[: len(selected) - len(selected.lstrip("\r\n"))] if selected.strip() else ""
    ending = selected[len(selected.rstrip("\r\n")) :] if selected.strip() else selected
    core = selected.strip("\r\n")
    body = code
    begun = [each for each in inside if each.first < 0 and not each.moves]  # before the selection
    in_literal = bool(begun)
    if "\n" not in body and not prefix and core == core.lstrip() and not in_literal:
        body = body.lstrip()
    elif not in_literal:
        wanted = prefix + with_newlines(core, "\n") if core else prefix + "x"
        body = _indent_as_whole(body, wanted, inside, known or Counter()).removeprefix(prefix)
    elif begun[0].last < body.count("\n"):
        body = _moved_alike(body.split("\n"), with_newlines(core, "\n"), _indent(core), _indent(body))
    return lead + body.replace("\n", newline) + ending


def _inside(text: str, start: int, end: int, code: str, path: str) -> list[Literal]:
    """Return the lines of `code` that begin inside a literal once it stands in the place of `start:end`. One that has
    begun before has the first line -1.
    """
    pasted = _paste(text, start, end, code)
    first = with_newlines(text[:start], "\n").count("\n")
    last = first + code.count("\n")
    found = literals(pasted, language_of(path, text), (first, last))
    return [
        Literal(-1 if each.first <= first else each.first - first, min(each.last, last) - first, each.moves)
        for each in found
        if each.first <= last and each.last >= first
    ]


def _ends_inside(text: str, start: int, end: int, code: str, path: str) -> bool:
    """Return whether the code ends inside a literal once it stands in the place of `start:end`: there the blanks at the
    end of its last line are content.
    """
    last = with_newlines(text[:start], "\n").count("\n") + code.count("\n")
    found = literals(_paste(text, start, end, code), language_of(path, text), (last, last))
    return any(not each.moves and each.first - 1 <= last < each.last for each in found)


def _paste(text: str, start: int, end: int, code: str) -> str:
    """Return the text with LF line ends, and with code in the place of `start:end`, on lines of its own if that was."""
    ending = "\n" if text[start:end].endswith(("\n", "\r")) else ""
    return with_newlines(text[:start], "\n") + code + ending + with_newlines(text[end:], "\n")


def _without_frame(lines: list[str], own: list[str], before: list[str], after: list[str]) -> list[str]:
    """Return lines without what they repeat of the text on both sides of the selection, such as the head and the end
    of a block, unless the selection has that, too.
    """
    filled = [index for index, line in enumerate(lines) if line.strip()]
    for count in range(min(len(filled) // 2, len(before), len(after), _MOST_AROUND), 0, -1):
        head = [lines[index].strip() for index in filled[:count]]
        foot = [lines[index].strip() for index in filled[-count:]]
        repeats = head == before[-count:] and foot == after[:count] and len(filled) > 2 * count
        if repeats and own[:count] != head and own[-count:] != foot:
            return lines[filled[count - 1] + 1 : filled[-count]]
    return lines


def _count_repeated(lines: list[str], own: list[str], around: list[str]) -> int:
    """Return how many of the first `lines` only repeat the lines `around` (nearest first) and are not part of `own`."""
    filled = [(index, line.strip()) for index, line in enumerate(lines) if line.strip()]
    # The longest repetition first; one line of the reply has to be left.
    for count in range(min(len(filled) - 1, len(around)), 0, -1):
        found = [line for _, line in filled[:count]]
        if found != around[:count][::-1] or own[:count] == found:
            continue
        rest = lines[filled[count][0] :]
        # A lone `}` may be the reply's own: it goes only if that makes the brackets balance as the selection's do.
        if any(_telling(line) for line in found) or _balance(rest) == _balance(own) != _balance(lines):
            return filled[count][0]
    return 0


def _telling(line: str) -> bool:
    """Return whether a line is unlikely to occur twice by chance, as a lone bracket or `else:` would."""
    letters = sum(map(str.isalnum, line))
    # An attribute, or a comment, is written once.
    if letters > 1 and (line.startswith(("@", "#[", "[")) or comment_of(line) is not None):
        return True
    return is_telling(line) and line not in ("return", "break", "continue", "finally:")


def _balance(lines: list[str]) -> tuple[int, ...]:
    text = "".join(lines)
    return tuple(text.count(opening) - text.count(closing) for closing, opening in _PAIRS.items())


def _without_rest_of_line(code: str, selected: str, prefix: str, suffix: str) -> str:
    """Return `code` without the rest of the line, where only a part of a line was asked for and the reply gives all of
    it.
    """
    body = code.strip()
    quote = prefix[-1:]
    # The quotes around a part of a string that was asked for.
    if quote and quote in "\"'`" and quote in suffix and _quoted(body) == quote != _quoted(selected.strip()):
        return body[1:-1]
    sign = len(prefix) > 1 or prefix in ("#", ";", "%")
    repeats_start = sign and body.startswith(prefix) and not selected.strip().startswith(prefix)
    if repeats_start:
        body = body[len(prefix) :].strip()
    if not suffix or not body.endswith(suffix) or selected.strip().endswith(suffix):
        return body if repeats_start else code
    rest = body[: -len(suffix)].rstrip()
    # By itself, a sign may be the code's own; one that ends a statement or an item, a remark and a piece with words
    # in it are not, if the brackets of the rest balance as those of the selection do.
    told = suffix in (";", ",") or comment_of(suffix) is not None or _telling(suffix)
    balanced = _balance([rest]) == _balance([selected])
    if rest and (repeats_start or suffix in (";", ",") or (told and balanced)):
        return rest
    return body if repeats_start else code


def _quoted(text: str) -> str:
    """Return the sign in which all of a text is quoted; '' for none."""
    first = text[:1]
    whole = len(text) > 1 and text.endswith(first) and first not in text[1:-1]
    return first if whole and first in "\"'`" else ""


def _indent_as_whole(code: str, selected: str, inside: Collection[Literal], known: Counter[str]) -> str:
    """Return `code` shifted as a whole so that its first line has the indentation of the selection's first line."""
    want, have = _indent(selected), _indent(code)
    if want == have:
        return code
    lines, fixed = code.split("\n"), fixed_lines(inside)
    at_margin = {
        number: lines[number]
        for number in margin_lines(lines, selected)
        if number and number not in fixed and lines[number] not in known
    }
    rest = [line for number, line in enumerate(lines) if number and number not in fixed and number not in at_margin]
    # Shifting would push lines that have less past the others; the model meant it as it is, unless more of the lines
    # are those of the selection when all are moved alike.
    if have and not all(line.startswith(have) or not line.strip() for line in rest):
        return _moved_alike(lines, selected, want, have, inside, known)
    # Often only the first line has lost its indentation, as the selection began behind it.
    within = {number for each in inside for number in range(each.first, each.last + 1)}
    code_lines = [line for number, line in enumerate(lines) if number and number not in within and line.strip()]
    if not have and _only_first_is_bare(lines[0], rest, code_lines, selected, want):
        return "\n".join((want + lines[0], *lines[1:]))

    def move(line: str) -> str:
        return want + line.removeprefix(have) if line.strip() else line

    stay = at_margin | kept_literal_lines(lines, inside, known, move)
    return "\n".join(stay.get(number, move(line)) for number, line in enumerate(lines))


def _moved_alike(
    lines: list[str],
    selected: str,
    want: str,
    have: str,
    inside: Collection[Literal] = (),
    known: Counter[str] | None = None,
) -> str:
    """Return lines with what the first one lacks or has too much of indentation put before all or taken from all, if
    that makes more of them lines of the selection; else as they are.
    """
    there = frozenset(selected.split("\n"))
    less, more = want.removesuffix(have), have.removesuffix(want)

    def move(line: str) -> str:
        if not line.strip():
            return line
        return less + line if want.endswith(have) else line.removeprefix(more)

    stay = kept_literal_lines(lines, inside, known or Counter(), move)
    moved = [stay.get(number, move(line)) for number, line in enumerate(lines)]
    alike = want.endswith(have) or (
        have.endswith(want) and all(not each.strip() or each.startswith(more) for each in lines)
    )
    better = sum(map(there.__contains__, moved)) > sum(map(there.__contains__, lines))
    return "\n".join(moved if alike and better else lines)


def _only_first_is_bare(first: str, rest: list[str], code_lines: list[str], selected: str, want: str) -> bool:
    """Return whether only the first line has lost its indentation, and all others have that of the file. `code_lines`
    are those of them outside of literals and comments.
    """
    there = frozenset(selected.split("\n")[1:])
    # Where the selection ends further out than it begins, lines that it has itself show it.
    as_given = sum(line in there for line in code_lines)
    shifted = sum(want + line in there for line in code_lines)
    if as_given != shifted:
        return as_given > shifted
    return _in_place(first, rest, want) and not _was_dedented(rest, selected, want)


def _in_place(first: str, rest: list[str], want: str) -> bool:
    """Return whether the lines below the first are indented as deep as it has to be, or deeper."""
    filled = [line for line in rest if line.strip()]
    if not filled or not all(line.startswith(want) for line in filled):
        return False
    # Below a line that opens a block, lines at `want` may just be one level deeper than a first line at 0.
    return not first.rstrip().endswith(_OPENERS) or len(_indent(filled[0])) > len(want)


def _was_dedented(rest: list[str], selected: str, want: str) -> bool:
    """Return whether lines stand where those of the selection did only when they are indented by `want`."""
    places: dict[str, set[str]] = {}
    for line in selected.split("\n"):
        if key := _KEY.match(line.strip()):
            places.setdefault(key[0], set()).add(_indent(line))
    known = [(_indent(line), places.get(key[0], set())) for line in rest if (key := _KEY.match(line.strip()))]
    # Which of both readings puts more lines where lines that begin alike stood before.
    return sum(want + indent in there for indent, there in known) > sum(indent in there for indent, there in known)


def _indent(text: str) -> str:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first[: len(first) - len(first.lstrip(" \t"))]
