"""The starting context of a task: the names of the workspace's files, and the text of those that the task names.

A model that starts with the right file in its prompt needs half the calls; on a small local model that decides whether
it succeeds at all. Bounded in files and in size. Not here: ranking by the code itself (the repo map).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import PurePath

from codeagent_lsp.agent.context.history import whole_file
from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.files.read_tools import LARGE_FILE_LINES, render
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.text.lines import split_lines

MOST_FILES = 2000
LISTED_FILES = 60
NAMED_FILES = 4

MENTIONS = 200

BEGINNING = "The beginning of the file"

_NAME = re.compile(r"(?<![\w./\\+-])[\w./\\+-]*\w\.\w{1,10}\b")
_ASCII_NAME = re.compile(_NAME.pattern, re.ASCII)  # for languages without blanks around a name


def starting_context(
    view: FileView,
    task: str,
    budget: int,
    skip: Iterable[str] = (),
    *,
    listed: bool = True,
    stands: Callable[[str, str], bool] = lambda name, text: False,
) -> str:
    """Return the text to put before a task, at most about `budget` characters; files in `skip` are left out.

    With `listed` the names of files are included, for where there is no repo map. `stands(name, text)` returns whether
    the conversation already has that text of that file ('' for the list of names), so that it is not repeated.
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
        if len(shown) <= left and not view.roots.is_secret(path):
            parts.append(shown)
            left -= len(shown)
    return "\n\n".join(parts)


def headed(name: str, file: FileText) -> str:
    """Return the text of a file for the model, under a line that says what it is; of a large one its beginning."""
    if len(split_lines(file.text)) <= LARGE_FILE_LINES:
        return whole_file(name, render(file))
    return f"{BEGINNING} {name}, as it is now:\n{render(file)}"


def if_it_stands(name: str, shown: str, stands: Callable[[str, str], bool]) -> str | None:
    """Return the words to say in place of a file with its heading, if the conversation has that text already."""
    heading, _, text = shown.partition("\n")
    return f"{heading.partition(',')[0]} stands above, unchanged." if stands(name, text) else None


def named_files(task: str, files: Iterable[str], skip: Iterable[str] = ()) -> list[str]:
    """Return at most 4 files whose path or name occurs in the task, in that order; ambiguous names are left out."""
    left_out = frozenset(skip)
    by_name: dict[str, list[str]] = {}
    for path in files:
        by_name.setdefault(PurePath(path).name, []).append(path)
    found: list[str] = []
    names = sorted((match for each in (_NAME, _ASCII_NAME) for match in each.finditer(task)), key=re.Match.start)
    mentions = dict.fromkeys(match[0].replace("\\", "/").removeprefix("./") for match in names)
    for mention in islice(mentions, MENTIONS):
        parts = PurePath(mention).parts
        fitting = [path for path in by_name.get(parts[-1], ()) if PurePath(path).parts[-len(parts) :] == parts]
        if len(fitting) == 1 and fitting[0] not in found and fitting[0] not in left_out:
            found.append(fitting[0])
    return found[:NAMED_FILES]
