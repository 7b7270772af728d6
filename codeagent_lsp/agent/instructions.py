"""Reads the instructions of a project for agents, in the workspace folders and in folders below them: `AGENTS.md`, and
where there is none `CLAUDE.md` with the files that it imports by `@path`.

The text is read with unsaved changes from the editor, never with changes that a run has staged. Text of a workspace is
untrusted: invisible characters are written out, its size is bounded, and nothing is imported from outside the workspace
or of which the user would be asked. Not here: when it is sent to the model (`session/memory/knowledge.py`).
"""

# ruff: noqa: PTH118, PTH120 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files.file_view import FileView, own_file
from codeagent_lsp.workspace.files.paths import is_untitled
from codeagent_lsp.workspace.text.position import split_lines
from codeagent_lsp.workspace.text.visible import has_unseen, visible

INSTRUCTIONS_FILE = "AGENTS.md"
OTHER_FILE = "CLAUDE.md"
"""Read in folders without the other; only this one imports."""

INSTRUCTIONS_LIMIT = 32 * 1024
IMPORT_DEPTH = 5
MOST_IMPORTS = 100
"""So many imports are looked for at most for one prompt, those that name no file included."""

MayRead = Callable[[str], bool]

# A fence of Markdown, also in a quote; one of backticks has none of them in its first line: "```x```" is inline code.
_FENCE = re.compile(r"[ \t>]*(`{3,}(?![^\n]*`)|~{3,})(.*)")
# Code between backticks, as many at the end as at the beginning.
_SPAN = re.compile(r"(?<!`)(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
# `@docs/style.md`, `@~/x`, `@a\ b.md`, but not `me@x.org`: before it stands a blank, a quote or a bracket, or
# nothing.
_IMPORT = re.compile(r"""(?<![^\s("'\[])@((?:\\ |[^\s\\]){1,1000})""")
_AFTER_NAMES = ".,;:!?)]}\"'*_"


@dataclass(frozen=True, slots=True)
class Instructions:
    """One instruction file: absolute path, name as shown, text; `unseen` if it has characters that a reader would not
    see.
    """

    path: str
    name: str
    text: str
    unseen: bool = False


def root_instructions(
    view: FileView, limit: int = INSTRUCTIONS_LIMIT, may_read: MayRead | None = None
) -> tuple[Instructions, ...]:
    """Return the instruction files of the workspace folders, in their order, each followed by what it imports, together
    at most `limit` bytes of UTF-8 (32 KiB if that is less); the last one is cut. () if there are none. `may_read`
    returns whether a file (absolute path) may be read without asking; without it, files that they import are left out.
    Blocks.
    """
    return _Collected(view, limit, may_read).of(view.roots.folders)


def nested_instructions(
    view: FileView, paths: Iterable[str], limit: int = INSTRUCTIONS_LIMIT, may_read: MayRead | None = None
) -> tuple[Instructions, ...]:
    """Return the instruction files of the folders between the workspace folders and `paths` (absolute), the nearest
    folder first; the workspace folders' own are left out. `limit` and `may_read` are as for `root_instructions`.
    Blocks.
    """
    return _Collected(view, limit, may_read).of(
        dict.fromkeys(place for path in paths for place in _between(view, path))
    )


def render_instructions(found: Iterable[Instructions]) -> str:
    """Return the instructions as text for the model, each below the name of its file; '' for none."""
    return "\n\n".join(f"Project instructions ({item.name}):\n{item.text}" for item in found)


def _between(view: FileView, path: str) -> list[str]:
    """Return the folders that contain `path`, the nearest first, up to but without the workspace folder."""
    if is_untitled(path) or (root := view.roots.root_of(path)) is None:
        return []
    found, folder = [], os.path.dirname(path) if path != root else path
    while folder != root and view.roots.root_of(folder) == root:
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


class _Collected:
    """The instruction files for one prompt, each once, together at most `limit` bytes."""

    def __init__(self, view: FileView, limit: int, may_read: MayRead | None) -> None:
        self._view = view
        self._left = min(limit, INSTRUCTIONS_LIMIT)
        self._may_read = may_read or (lambda path: False)
        self._imports = MOST_IMPORTS
        self._found: dict[str, Instructions] = {}

    def of(self, folders: Iterable[str]) -> tuple[Instructions, ...]:
        """Return the files of these folders, each followed by those that it imports."""
        for folder in folders:
            path = os.path.join(folder, INSTRUCTIONS_FILE)
            if own_file(self._view, path) is not None:
                self._add(path)
            else:
                self._add_with_imports(os.path.join(folder, OTHER_FILE), 0)
        return tuple(self._found.values())

    def _add_with_imports(self, path: str, depth: int) -> None:
        item = self._add(path)
        # A file that is there already adds nothing, which also ends imports in a circle.
        if item is None or depth == IMPORT_DEPTH:
            return
        for name in _imports(item.text):
            if self._imports <= 0 or self._left <= 0:
                return
            self._imports -= 1
            if (imported := self._resolve_import(name, path)) is not None:
                self._add_with_imports(imported, depth + 1)

    def _add(self, path: str) -> Instructions | None:
        """Add a file and return it; None for one that is there already, is no text, or for which there is no room."""
        file = own_file(self._view, path)
        if path in self._found or file is None or not file.text.strip() or self._left <= 0:
            return None
        text = _cut(visible(file.text).strip(), self._left)
        # After the cut, and after invisible characters are written out, which makes a text longer.
        self._left -= len(text.encode("utf-8", "replace"))
        item = Instructions(path, self._view.roots.relative(path), text, has_unseen(file.text))
        self._found[path] = item
        return item

    def _resolve_import(self, name: str, importer: str) -> str | None:
        """Return the file of the workspace that an import in another file means; None for none that may be read."""
        # As it is first: a name may end with a dot or a bracket; else that belongs to the sentence.
        for written in dict.fromkeys((name, name.rstrip(_AFTER_NAMES))):
            if not written:
                continue
            try:
                path = self._view.roots.resolve(os.path.join(os.path.dirname(importer), written))
            except AgentError:  # outside of the workspace, also by a link, or no name of a file
                continue
            if own_file(self._view, path) is not None:
                return path if self._may_read(path) else None
        return None


def _imports(text: str) -> Iterator[str]:
    """Yield the paths that a Markdown text imports: `@path` after a blank, outside of code; `\\ ` is a blank in it."""
    prose: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match:
            fence = match[1]
        prose.append("" if fence or match else line)
    # By paragraph, as in Markdown: a lone backtick must not turn the rest of the file into code.
    for paragraph in _BLANK_LINE.split("\n".join(prose)):
        yield from (name.replace("\\ ", " ") for name in _IMPORT.findall(_SPAN.sub(" ", paragraph)))


def _cut(text: str, limit: int) -> str:
    """Return the first whole lines within `limit` bytes, or a part of the first line."""
    if len(text.encode("utf-8", "replace")) <= limit:
        return text
    kept = text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    lines = split_lines(kept)
    return ("".join(lines[:-1]) if len(lines) > 1 else kept).rstrip() + "\n(… cut)"
