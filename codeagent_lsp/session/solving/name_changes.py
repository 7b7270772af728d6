"""Renames a name in all files of a workspace, and finds uses of names that are no longer defined.

Blocks; use it in a thread. Not here: uses in one text (`agent/solving/renaming.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from codeagent_lsp.agent.context.gather import MOST_FILES
from codeagent_lsp.agent.solving.material import Material, ShownFile
from codeagent_lsp.agent.solving.pieces import identifiers
from codeagent_lsp.agent.solving.renaming import Rename, home_of, rename_in, renamed, still_used
from codeagent_lsp.index.kinds import is_made, is_test
from codeagent_lsp.session.solving.workspace_files import WorkspaceFiles
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.workspace.changes.changeset import Changeset


class NameChanges:
    """The changes of names that a task asks for, or that staged changes have made, in all files."""

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def renamed(self, words: str) -> tuple[Mapping[str, str], Material]:
        """Return the new texts, by name, for a rename that is all that the words ask for, and the files as they were;
        empty for other tasks.
        """
        asked = rename_in(words)
        if asked is None or not asked.alone or not self._files.complete:
            return {}, Material()
        sources = self._sources_with(asked)
        home = home_of(asked, sources, self._files.named(words))
        texts = renamed(asked, home, sources, self._files.targets) if home is not None else {}
        read = [ShownFile(name, file) for name in texts if (file := self._files.read(name)) is not None]
        return texts, Material(tuple(read))

    def left_behind(self, words: str, staged: Changeset) -> tuple[str, ...]:
        """Return the uses of names that the words mention and the staged changes have removed, as `name: file`.

        For a rename, these are the uses of the old name, removed or not.
        """
        asked = rename_in(words)
        if asked is not None:
            now = self._sources_with(asked)
            home = home_of(asked, {**now, **self._before(staged)}, self._files.named(words))
            if home is not None:
                return tuple(f"{asked.word}: {name}" for name in still_used(asked, home, now, self._files.targets))
        gone = frozenset[str]()
        for change in staged:
            name = self._files.relative(change.path)
            before, after = (defined_names(name, text) for text in (change.base, change.text))
            gone |= (before - after) & identifiers(words)
        return tuple(f"{word}: {name}" for word in sorted(gone) for name in self._files.using([word]))

    def _sources_with(self, asked: Rename) -> dict[str, SourceFile]:
        """Return the code files that contain the old name; of the tests only those without the new name."""
        new = re.compile(rf"\b{re.escape(asked.new)}\b")
        return {
            name: source
            for name in self._files.using([asked.word], MOST_FILES)
            if (source := self._files.source(name)) and not is_made(name)
            if not (is_test(name) and new.search(source.text))
        }

    def _before(self, staged: Changeset) -> dict[str, SourceFile]:
        """Return the changed files, parsed, as they were before the change."""
        texts = {self._files.relative(change.path): change.base for change in staged}
        return {name: source for name, text in texts.items() if text and (source := source_of(name, text))}


def defined_names(name: str, text: str | None) -> frozenset[str]:
    """Return the names that a text defines, in the language of its file name."""
    source = source_of(name, text) if text is not None else None
    return frozenset(each.symbol.name for each in source.definitions) if source is not None else frozenset()
