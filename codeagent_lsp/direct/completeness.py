"""Tells whether code in a reply is the whole new text of a file or only a part of it. Pure functions.

In doubt it is a part: taken as the whole, it would delete the rest. Not here: placeholders in code
(`index/placeholders.py`), putting parts in place (`definitions.py`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from codeagent_lsp.direct.definitions import lost_definitions
from codeagent_lsp.direct.entries import lost_cases, lost_entries
from codeagent_lsp.direct.imports import imported_names
from codeagent_lsp.direct.type_parts import thinned
from codeagent_lsp.index.comments import comment_of
from codeagent_lsp.index.grammars import is_prose
from codeagent_lsp.index.placeholders import AROUND, is_phrase
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.tools.code.extent import OF_THE_FILE
from codeagent_lsp.tools.code.source import Definition, SourceFile, source_of
from codeagent_lsp.tools.code.uses import Uses
from codeagent_lsp.workspace.edits.line_matching import likeness
from codeagent_lsp.workspace.text.position import with_newlines

LEAST_SHARE = 0.5
"""A new text with less than this share of the file's lines, or of its top-level lines, was cut short."""
NEARLY_ALL = 0.8
"""A new text that has this share of the file's lines is the whole file, whatever its first and last lines are."""
MOST_LINES = 0.7
"""A text of an unknown language that has no line like these many of the file's was cut short."""
FEW = 80
"""Lines of which each is compared with each."""
ALIKE = 0.7
"""How alike, digits aside, a changed first or last line must be to the old one."""
SHORT_LINES = 3
"""A text with so many lines that say something is short."""

MOST_ENTRIES = 5
"""A text or data with so many entries may be given without some of them."""

_BLOCKS = frozenset(("function", "method", "class", "struct", "interface", "enum", "module"))
_IMPORT = re.compile(r"(?:import|from|use|using|#include|require)\b")
_QUOTED = re.compile(r"['\"<]([^'\">]+)['\">]")
# Of any language: `from a import *`, `use a::*;`, `#include "a.h"`, `import java.util.*;`, `. ./lib.sh`.
_ALL_NAMES = re.compile(
    r"(?:from|import|use|using)\b.*\*|#\s*include\b|using namespace\b|(?:source|\.)\s+\S|require\b|include\b"
)
_GUARD = re.compile(
    r"^if\s+__name__\s*==\s*['\"]__main__['\"]|^if\s+\(?\s*require\.main\s*===?\s*module|^if\s+(?:__FILE__|\$0)\s*==",
    re.MULTILINE,
)
_SYNTAX = re.compile(r"[{}\[\]()<>=;]|:(?!//)")
_FIRST = re.compile(r"\W*\w[\w.-]*")
# `<new version>`, `(content of the file)`, `{{ version }}`, `YOUR_TOKEN_HERE`, `your text here`, `x.y.z`.
_SLOT = re.compile(
    r"[<(\[{]{1,2}\s*(?:[^\W\d_][^\W_]*[ _-]+)+\w+[.:]?\s*[>)\]}]{1,2}"
    r"|[<(\[{]{1,2}\s*(?:version|contents?|text|file|code|value)\s*[>)\]}]{1,2}"
    r"|(?:your|the|new|updated|file|full)(?:[ _-]\w+){0,4}[ _-](?:here|goes here|contents?)"
    r"|[xX]\.[yYxX]\.[zZxX]",
    re.IGNORECASE,
)
_SECTION = re.compile(r"\[{1,2}[\w. \"'/:-]+\]{1,2}")
_HEADED = re.compile(
    r"\.(?:md|markdown|mdx|rst|adoc|org|txt)$|(?:^|/)(?:README|CHANGE|CONTRIBUT|HISTORY|NEWS|NOTES|TODO)[^/.]*$",
    re.IGNORECASE,
)
_STAYS = re.compile(r"^#!|^//\s*(?:go:build|\+build)|frozen_string_literal:|copyright|licen[cs]e|spdx", re.IGNORECASE)
_GOES_ON = re.compile(r"(?:#|//)(?:\s|\Z)")
_HEADING = re.compile(r"^#{1,6}(?= )", re.MULTILINE)


def stands_for_all(path: str, now: str, code: str) -> bool:
    """Return whether `code` can be the whole new text of the file `path`, whose text is `now`; in doubt False. True if
    `now` is blank.
    """
    if not now.strip():
        return True
    old, new = source_of(path, now), source_of(path, code)
    if old is not None and new is not None:
        # Where nothing else changes, they were taken out on purpose.
        if lost_cases(old, new) and not holds_all(now, code):
            return False
        if has_blocks(old):
            return (
                not lost_definitions(path, now, code)
                and _only_renames(old, new)
                and _head_share(old, new) >= LEAST_SHARE
                and not thinned(old, new)
                and not lost_entries(old, new)
            )
    if is_emptied(now, code):
        return True
    if old is not None and new is not None and lost_entries(old, new):
        return False
    if only_stands_for_text(path, now, code):
        return False
    if (known := _same_data(path, now, code)) is not None:
        return known
    if _lacks_opening(now, code) or (_is_paired(now) and not _is_paired(code)):
        return False
    if _nearly_same(now, code) or _only_shortened(now, code):
        return True
    if old is None or new is None:
        return _is_short_text(now, code) or _keeps_heads(now, code, 0.0) or _keeps_text(path, now, code)
    if _keeps_heads(now, code, 0.0 if len(_saying(now)) == 1 else LEAST_SHARE):
        return True
    return _keeps_ends(now, code) and _head_share(old, new) > LEAST_SHARE


def holds_all(text: str, code: str) -> bool:
    """Return whether `text` has every line of `code` that says something (blank lines and the like are not counted), in
    any order; True if there is none.
    """
    return set(_saying(code)) <= set(_saying(text))


def lost_use(path: str, now: str, code: str) -> str:
    """Return a name that the new text of a file still uses and does not define or import any more; '' for none, or
    without a grammar for the language.
    """
    old, new = source_of(path, now), source_of(path, code)
    # Of a text that cannot be read it is not known what it defines.
    if old is None or new is None or old.faults or _imports_all(now, code):
        return ""
    there = {each.symbol.name for each in new.definitions} | imported_names(new)
    own = [each.symbol for each in old.definitions if each.symbol.kind not in CALLABLE]
    members = {each.name for each in own if each.parent}
    names = dict.fromkeys([*(each.name for each in own), *sorted(imported_names(old))])
    lost = [name for name in names if name and name not in there]
    if not lost:
        return ""
    uses = Uses(new)
    for name in lost:
        # Behind a point stands a member, and no name of the file; nor is one what a scope of its own has.
        member = name in members
        if member and re.search(rf"(?:\b(?:this|self)(?:\.|->)|@){re.escape(name)}\s*(?::[^=\n]*)?=(?![=>])", code):
            continue  # a constructor gives it
        found = (each for each in uses.named(name) if not each.imported and (member or each.access == "plain"))
        if any(uses.binder(each) is None and not uses.is_apart(each) for each in found):
            return name
    return ""


def _imports_all(now: str, code: str) -> bool:
    """Return whether a text has a new import that does not say which names it gives."""
    own = {line.strip() for line in now.splitlines()}
    lines = (line.strip() for line in code.splitlines())
    return any(_ALL_NAMES.match(line) for line in lines if line not in own)


def lost_frame(now: str, code: str) -> bool:
    """Return whether a program lost what makes it one that can be run: its `#!` line or its main guard."""
    guard = _GUARD.search(now)
    return (now.startswith("#!") and not code.startswith("#!")) or (guard is not None and not _GUARD.search(code))


def lost_head(now: str, code: str) -> str:
    """Return the comments about the file at its top, such as `//go:build` or a licence, that a whole new text lacks; ''
    for none, where nothing else changes, or where the text does not begin with what stands below them.
    """
    head = _head_of_file(now)
    rest = now[len(head) :]
    there = {line.strip() for line in code.splitlines()}
    lost = [line for line in head.splitlines() if OF_THE_FILE.match(line) and line.strip() not in there]
    # What switches a tool off goes when its reason is gone.
    if not lost or not all(map(_STAYS.search, lost)):
        return ""
    first, given = (next((line.strip() for line in text.splitlines() if line.strip()), "") for text in (rest, code))
    return head if first == given and rest.split() != code.split() else ""


def _head_of_file(text: str) -> str:
    """Return the lines at the top of a text that are comments about the file, with the blank lines between and below;
    '' for none.
    """
    end, place, goes_on, ended_by = 0, 0, False, ""
    for line in text.splitlines(keepends=True):
        said = line.strip()
        place += len(line)
        if ended_by:
            ended_by = "" if ended_by in said else ended_by
        elif said and OF_THE_FILE.match(said):
            ended_by = "*/" if said.startswith("/*") and "*/" not in said else ""
            goes_on = True
        elif said and not (goes_on and _GOES_ON.match(said)):
            break
        else:
            goes_on = goes_on and bool(said)
        end = place
    head = text[:end]
    return head if head.strip() else ""


def has_blocks(source: SourceFile) -> bool:
    """Return whether a parsed file defines functions or types, and not only variables."""
    return any(map(_is_block, source.definitions))


def _blocks(source: SourceFile) -> Iterator[Definition]:
    return filter(_is_block, source.definitions)


def _is_block(definition: Definition) -> bool:
    return definition.symbol.kind in _BLOCKS


def _only_renames(old: SourceFile, new: SourceFile) -> bool:
    """Return whether definitions that are gone were renamed: most others are still there, or the bodies are the same
    for the most part. Else the new ones are additions, and the old ones were left out.
    """
    before, after = _innermost(old), _innermost(new)
    lost = [each for name, each in before.items() if name not in after]
    # Most are there, so the code is the file; what is missing was taken out on purpose.
    if len(lost) < LEAST_SHARE * len(before):
        return True
    return all(any(_same_body(old, one, new, other) for other in after.values()) for one in lost)


def _innermost(source: SourceFile) -> dict[str, Definition]:
    """Return functions, methods, and types without any, by their dotted names."""
    owners = {each.symbol.parent for each in _blocks(source)}
    return {each.qualified: each for each in _blocks(source) if each.qualified not in owners}


def _same_body(old: SourceFile, one: Definition, new: SourceFile, other: Definition) -> bool:
    before, after = _body_lines(old, one), _body_lines(new, other)
    renamed = Counter(re.sub(rf"\b{re.escape(one.symbol.name)}\b", other.symbol.name, line) for line in before)
    return (renamed & Counter(after)).total() >= LEAST_SHARE * max(len(before), len(after), 1)


def _body_lines(source: SourceFile, definition: Definition) -> list[str]:
    node = definition.body or definition.node
    lines = (line.strip() for line in source.slice(node.start_byte, node.end_byte).splitlines())
    return [line for line in lines if _says(line)]


def _head_share(old: SourceFile, new: SourceFile) -> float:
    """Return the share of the top-level lines beside definitions (imports, constants) that remain: one function alone
    may define all that the file defines, and yet not be the file.
    """
    top, kept = _top_lines(old, heads=False), set(_top_lines(new, heads=True))
    return sum(line in kept for line in top) / len(top) if top else 1.0


def _top_lines(source: SourceFile, *, heads: bool) -> list[str]:
    """Return the lines that are not indented, without lone brackets, with or without the `heads` of definitions. A
    variable stands for its line, and what is imported from for an import: the rest of the line may change.
    """
    blocks = {each.symbol.line_start for each in _blocks(source)}
    variables = {each.symbol.line_start: each.symbol.name for each in source.definitions if not _is_block(each)}
    lines = enumerate(with_newlines(source.text, "\n").split("\n"), 1)
    top = [(number, line) for number, line in lines if _says(line) and not line[0].isspace()]
    return [variables.get(number) or _bare(line) for number, line in top if heads or number not in blocks]


def _bare(line: str) -> str:
    words = line.split()
    if not _IMPORT.match(line) or len(words) < 2:
        return " ".join(words).rstrip(" {;")
    quoted = _QUOTED.search(line)
    return f"import {quoted[1] if quoted else words[1].strip(',;')}"


def _says(line: str) -> bool:
    """Return whether a line has more than brackets and signs."""
    return any(char.isalnum() for char in line)


def _nearly_same(now: str, code: str) -> bool:
    old, new = _saying(now), _saying(code)
    if len(old) == len(new) == 1 and not _IMPORT.match(old[0]):
        return _alike(old[0], new[0])
    return (Counter(old) & Counter(new)).total() >= NEARLY_ALL * len(old)


def _is_paired(text: str) -> bool:
    """Return whether each bracket of a text is closed, as far as their numbers tell, and each quote of three signs."""
    quotes = ('"""', "'''", "```")
    return not any(_open_brackets(text)) and not any(text.count(quote) % 2 for quote in quotes)


def _is_short_text(now: str, code: str) -> bool:
    """Return whether a text of a few lines, such as a version, became another of as many lines or somewhat more: there
    is nothing that could have been left out. Data with signs of a syntax is more than words.
    """
    old, new = _saying(now), _saying(code)
    if len(old) > SHORT_LINES or _SYNTAX.search(now):
        return False
    return len(old) <= len(new) <= max(SHORT_LINES, 2 * len(old))


def is_emptied(now: str, code: str) -> bool:
    """Return whether a text with at most 3 lines that say something was replaced by a blank one."""
    return not code.strip() and len(_saying(now)) <= SHORT_LINES


def only_stands_for_text(path: str, now: str, code: str) -> bool:
    """Return whether a new text has nothing but placeholders, such as `<new version>` or `# unchanged`, and the old
    text has none.
    """
    old, new = _saying(now), _saying(code)
    heads = _HEADED.search(path) is not None
    return bool(new) and all(_stands(line, old, heads) for line in new) and not any(_stands(o, [], heads) for o in old)


def _stands(line: str, old: list[str], heads: bool) -> bool:
    comment = comment_of(line)
    if comment is not None and not (heads and comment.sign.startswith("#")) and not line.startswith(("#!", "---")):
        said = comment.said.strip()
        # What was commented out is still there.
        return not any(each in said or _alike(each, said) for each in old)
    return bool(_SLOT.fullmatch(line)) or is_phrase(line.strip(AROUND))


def _same_data(path: str, now: str, code: str) -> bool | None:
    """Return whether JSON was given whole: with all its keys and items, or, of a few, without some. None where that
    does not decide.
    """
    if not path.endswith(".json") or (old := _parse(now)) is None:
        return None
    if (new := _parse(code)) is None or type(old[0]) is not type(new[0]):
        return False
    if _holds(old[0], new[0]):
        return True
    few = _leaves(old[0]) <= SHORT_LINES
    return True if few and not new[0] else (_leaves(old[0]) <= MOST_ENTRIES and _is_rest(old[0], new[0])) or None


def _parse(text: str) -> tuple[Any] | None:
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def _holds(old: Any, new: Any) -> bool:
    """Return whether data has all keys of the old one, at every depth, and lists that are as long."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and _holds(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(new) >= len(old) and all(map(_holds, old, new))
    return not isinstance(old, dict | list) or not old or isinstance(new, dict | list)


def _leaves(data: Any) -> int:
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else None
    return 1 if inner is None else sum(map(_leaves, inner))


def _is_rest(old: Any, new: Any) -> bool:
    """Return whether data is the old one with at most half of its entries taken out, and nothing else changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        kept = all(key in old and old[key] == value for key, value in new.items())
    else:
        kept = isinstance(old, list) and isinstance(new, list) and _in_order(new, old)
    return kept and len(new) >= LEAST_SHARE * len(old)


def _in_order(some: Iterable[Any], whole: Iterable[Any]) -> bool:
    left = iter(whole)
    return all(any(one == other for other in left) for one in some)


def _lacks_opening(now: str, code: str) -> bool:
    """Return whether a text began with a bracket, a section or a `#!` line, and no line of the new one does."""
    first = next((line for line in now.splitlines() if line.strip() and comment_of(line.strip()) is None), "")
    sign = "#!" if now.startswith("#!") else first[: 2 if first.startswith(("<?", "<!")) else 1]
    if sign not in ("{", "[", "<", "<?", "<!", "#!"):
        return False
    return not any(line.startswith(sign) for line in code.splitlines())


def _only_shortened(now: str, code: str) -> bool:
    """Return whether a text of a few lines lost some of them, at most half, and all others are as they were: a part
    of a file would have a change.
    """
    old, new = _saying(now), _saying(code)
    if not new or len(new) >= len(old) or len(old) > MOST_ENTRIES or len(new) < LEAST_SHARE * len(old):
        return False
    return _in_order(new, old) and _open_brackets(now) == _open_brackets(code)


def _open_brackets(text: str) -> list[int]:
    return [text.count(one) - text.count(other) for one, other in ("()", "[]", "{}")]


def _keeps_heads(now: str, code: str, least: float) -> bool:
    """Return whether a text still has a line for each of its lines, by the words that they begin with, and this share
    of lines like the old ones: a part of a file has fewer lines.
    """
    old, new = _saying(now), _saying(code)
    missing = Counter(map(_head, old)) - Counter(map(_head, new))
    return bool(old) and not missing and (not least or _share_kept(old, new) >= least)


def _head(line: str) -> str:
    """Return what a line is about: the first word with the signs before it, or what is imported from."""
    if _IMPORT.match(line):
        return _bare(line)
    if line.startswith("#!"):
        return "#!"
    found = _FIRST.match(line)
    return _digits_aside(found[0] if found else line)


def _keeps_ends(now: str, code: str) -> bool:
    old, new = _saying(now), _saying(code)
    return not old or (old[0] in new and old[-1] in new)


def _keeps_text(path: str, now: str, code: str) -> bool:
    """Return whether a text of an unknown language keeps most lines, the first and the last too, or, a document, its
    headings.
    """
    old, new = _saying(now), _saying(code)
    if not old or len(new) < LEAST_SHARE * len(old):
        return not old
    # Of a few lines, one that is gone while others have changed was more likely left out.
    few = len(new) < len(old) <= MOST_ENTRIES
    sections = [sum(map(bool, map(_SECTION.fullmatch, lines))) for lines in (old, new)]
    if not is_prose(path) and (few or sections[1] < sections[0] or _share_kept(old, new) < MOST_LINES):
        return False
    ends = (old[0] in new or _alike(old[0], new[0])) and any(_alike(old[-1], line) for line in new)
    return ends or (is_prose(path) and _same_headings(now, code))


def _share_kept(old: list[str], new: list[str]) -> float:
    """Return the share of lines that have a line like them, each another one."""
    left = Counter(map(_digits_aside, new))
    missing = []
    for line in map(_digits_aside, old):
        if left[line]:
            left[line] -= 1
        else:
            missing.append(line)
    kept, rest = len(old) - len(missing), list(left.elements())
    # Each with each is quadratic; a file with so many changed lines is not judged by likeness.
    for line in missing if max(len(missing), len(rest)) <= FEW else ():
        like = next((other for other in rest if _alike(line, other)), None)
        if like is not None:
            rest.remove(like)
            kept += 1
    return kept / len(old)


def _saying(text: str) -> list[str]:
    return [line.strip() for line in with_newlines(text, "\n").split("\n") if _says(line)]


def _alike(old: str, new: str) -> bool:
    return likeness(_digits_aside(old), _digits_aside(new)) >= ALIKE


def _digits_aside(line: str) -> str:
    return re.sub(r"\d+", "0", line)


def _same_headings(now: str, code: str) -> bool:
    """Return whether a document has all levels of headings of the old one, in order: a translation."""
    # One iterator for all levels: `in` goes on where the last one was found, so the order counts.
    old, new = _HEADING.findall(now), iter(_HEADING.findall(code))
    return len(old) > 1 and all(level in new for level in old)
