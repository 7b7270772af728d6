"""The starting context of a task: the names of the workspace's files, and the text of those that the task names; and
the names of copies that editors and tools leave beside a file: `a.py~`, `~a.py`, `#a.py#`, `.#a.py`, `a.py.~1~`.

A model that starts with the right file in its prompt needs half the calls; on a small local model that decides whether
it succeeds at all. Bounded in files and in size. The name of a file is a part of that of each copy, so a search for it
finds the copy as well. Not here: ranking by the code itself (the repo map).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import PurePath

from codeagent_lsp.agent.context.history import whole_file
from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.tools.files.read_tools import LARGE_FILE_LINES, render
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.text.position import split_lines

MOST_FILES = 2000
LISTED_FILES = 60
NAMED_FILES = 4

MENTIONS = 200

BEGINNING = "The beginning of the file"

LEAST_WORD = 2
_CODE_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUOTED = re.compile(r"`([^`\n]+)`")
# `snake_case`, `camelCase`, `PascalCase`, "file.py"; a plain capital at a sentence's beginning is none of them.
_LIKE_CODE = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|\w+\.[a-z]{1,5}\b)", re.ASCII)
# A path or a file's name: "src/app.py", `./my-page.test.tsx`.
_NAME = re.compile(r"(?<![\w./\\+-])[\w./\\+-]*\w\.\w{1,10}\b")
_ASCII_NAME = re.compile(_NAME.pattern, re.ASCII)  # for languages without blanks around a name

# `VERSION`, `Makefile`, `.nvmrc`, `bin/run`: names that no ending marks, but signs that make them none of a sentence.
_BARE_NAME = re.compile(
    r"(?<![\w./\\+-])(?:(?:[\w+-][\w.+-]{0,60}/){1,12}[\w+-]{1,60}|\.\w[\w.-]{0,60}|[A-Z][A-Z0-9_-]{1,60}|[A-Z][a-z]{2,30}file)"
    r"(?![\w/\\-]|\.\w)"
)
_QUOTED_NAME = re.compile(r"(?<=`)[\w./+-]{1,200}(?=`)")
_PLAIN_NAME = re.compile(r"\w[\w.-]*")
_NAMES = (_NAME, _ASCII_NAME, _BARE_NAME, re.compile(_BARE_NAME.pattern, re.ASCII), _QUOTED_NAME)

_FILE_NAME = r"[\w.-]*\w\.[A-Za-z0-9]{1,10}"
COPY = re.compile(
    rf"(?<![\w./\\~#-])(?:[\w./\\-]*[/\\])?(?:~\$?{_FILE_NAME}|\.#{_FILE_NAME}|#{_FILE_NAME}#|{_FILE_NAME}(?:\.?~(?:\d+~)?|,v\b|;\d+))"
    r"(?![\w/\\-])"
)
"""Matches the path of a copy within a text."""


def with_heading(name: str, file: FileText) -> str:
    """Return the text of a file for the model, with line numbers as `render` writes them, below a line that names it;
    of one with more than `LARGE_FILE_LINES` lines only its beginning.
    """
    if len(split_lines(file.text)) <= LARGE_FILE_LINES:
        return whole_file(name, render(file))
    return f"{BEGINNING} {name}, as it is now:\n{render(file)}"


def starting_context(
    view: FileView,
    task: str,
    budget: int,
    skip: Iterable[str] = (),
    *,
    listed: bool = True,
    stands: Callable[[str, str], bool] = lambda name, text: False,
    headed: Callable[[str, FileText], str] = with_heading,
) -> str:
    """Return the text to put before a task, at most about `budget` characters, '' for none: the texts of at most 4
    files that the task names. Files in `skip` (absolute paths) are left out, as are those that cannot be read. Blocks.
    `headed` returns a file's text for the model with a heading. With `listed` the names of files are included, for runs
    without a repo map.

    `stands(name, text)` returns whether the conversation already has that text of that file ('' for the list of names),
    so that it is not repeated.
    """
    files = [path for folder in view.roots.folders for path in islice(view.walk(folder), MOST_FILES)]
    names = [view.roots.relative(path) for path in files]
    parts = []
    if names and listed:
        lines = "\n".join(names[:LISTED_FILES])
        more = f"\n(and {len(names) - LISTED_FILES} more)" if len(names) > LISTED_FILES else ""
        listing = f"Files of the workspace:\n{lines}{more}"[: budget // 3]
        parts.extend([] if stands("", listing) else [listing])
    left = budget - sum(map(len, parts))
    for path in named_files(task, files, skip):
        try:
            file = view.read(path)
        except AgentError:
            continue
        name = view.roots.relative(path)
        shown = headed(name, file)
        if (reference := if_it_stands(name, shown, stands)) is not None:
            parts.append(reference)
            continue
        # A file is whole or not there: of a cut one the model would take the part for all. Secrets are asked about by
        # tools.
        if len(shown) <= left and not view.roots.is_secret(path):
            parts.append(shown)
            left -= len(shown)
    return "\n\n".join(parts)


def if_it_stands(name: str, shown: str, stands: Callable[[str, str], bool]) -> str | None:
    """Return a sentence in place of a file with its heading, `shown`, if the conversation has that text already; else
    None. `stands(name, text)` is as for `starting_context`.
    """
    heading, _, text = shown.partition("\n")
    return f"{heading.partition(',')[0]} stands above, unchanged." if stands(name, text) else None


PARTS = "Parts of"
WHOLE_LINES = 400
"""Lines of the longest file that a capable model is shown whole because the task names it."""
OUTLINE_LINES, MATTER_LINES, AROUND = 80, 120, 3
HEAD_LINES = 12


def headed_or_parts(task: str) -> Callable[[str, FileText], str]:
    """Return a function that formats a file, by its relative path and its text, for a task: whole up to 400 lines, else
    its outline and the lines, numbered from 1, around words of the task; where none occurs, its first 12 lines.
    """
    words = frozenset(word for word in _CODE_WORD.findall(task) if len(word) > LEAST_WORD)

    def shown(name: str, file: FileText) -> str:
        lines = split_lines(file.text)
        if len(lines) <= WHOLE_LINES:
            return whole_file(name, render(file))
        source = source_of(name, file.text)
        symbols = [each.symbol for each in source.definitions] if source is not None else []
        outline = [
            f"{symbol.line_start}-{symbol.line_end}: {symbol.signature or symbol.qualified}"
            for symbol in symbols
            if symbol.kind != "variable"
        ]
        more = [f"(and {len(outline) - OUTLINE_LINES} more)"] if len(outline) > OUTLINE_LINES else []
        parts = ["\n".join(["Outline, with lines:", *outline[:OUTLINE_LINES], *more])] if outline else []
        # Where nothing of the task is in the file, its head (imports, the first comment) says what it is.
        matter = _matter(lines, words) or range(1, HEAD_LINES + 1)
        parts.append(_ranges(lines, matter))
        head = f"{PARTS} {name}, which has {len(lines)} lines (read the others with start_line and end_line):"
        return "\n".join((head, *parts))

    return shown


def names_in_code(text: str) -> frozenset[str]:
    """Return the words of a text that look like code: with an underscore, a dot or capitals inside, or in backticks;
    empty if there are none.
    """
    quoted = (word for part in _QUOTED.findall(text) for word in _CODE_WORD.findall(part))
    return frozenset((*quoted, *(match[0] for match in _LIKE_CODE.finditer(text))))


def named_files(task: str, files: Iterable[str], skip: Iterable[str] = ()) -> list[str]:
    """Return at most 4 of `files` (absolute paths) whose path or name occurs in the task, in the order in which they
    are named there; a name that fits several files is left out, and so are those in `skip`.
    """
    left_out = frozenset(skip)
    by_name: dict[str, list[str]] = {}
    for path in files:
        by_name.setdefault(PurePath(path).name, []).append(path)
    found: list[str] = []
    odd = sorted((name for name in by_name if not _PLAIN_NAME.fullmatch(name) and name in task), key=len, reverse=True)
    names: list[re.Match[str]] = []
    # First those that have the name of another file in them: `+page.ts`, `a.py~`, also of copies that are not there.
    for pattern in (*(re.compile(rf"[\w./\\-]*{re.escape(name)}(?!\w)") for name in odd), COPY):
        names += pattern.finditer(task)
        task = pattern.sub(lambda match: " " * len(match[0]), task)
    names += (match for each in _NAMES for match in each.finditer(task))
    names.sort(key=re.Match.start)
    mentions = dict.fromkeys(match[0].replace("\\", "/").removeprefix("./") for match in names)
    for mention in islice(mentions, MENTIONS):
        parts = PurePath(mention).parts
        fitting = [path for path in by_name.get(parts[-1], ()) if PurePath(path).parts[-len(parts) :] == parts]
        # An ambiguous name would show a file that is not meant, and hide that the question is open.
        if len(fitting) == 1 and fitting[0] not in found and fitting[0] not in left_out:
            found.append(fitting[0])
    return found[:NAMED_FILES]


def is_copy(path: str) -> bool:
    """Return whether a path is that of a backup or lock file of an editor or tool, such as `a.py~` or `.#a.py`, by its
    name alone.
    """
    return COPY.fullmatch(path) is not None


def _matter(lines: Sequence[str], words: frozenset[str]) -> list[int]:
    """Return the 1-based numbers of the lines with the rarest of these words and of those around them, in order."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        for word in words.intersection(_CODE_WORD.findall(line)):
            places.setdefault(word, []).append(number)
    kept: set[int] = set()
    # The rarest names first: a word that is in every second line tells nothing.
    for found in sorted(places.values(), key=len):
        for number in found:
            around = range(max(1, number - AROUND), min(len(lines), number + AROUND) + 1)
            if len(kept.union(around)) > MATTER_LINES:
                return sorted(kept)
            kept.update(around)
    return sorted(kept)


def _ranges(lines: Sequence[str], numbers: Iterable[int]) -> str:
    """Return lines with their numbers, and a mark where some are left out."""
    shown: list[str] = []
    last = 0
    for number in numbers:
        if shown and number != last + 1:
            shown.append("…")
        shown.append(f"{number}|{lines[number - 1].rstrip()}")
        last = number
    return "\n".join(shown)
