"""What the words of a command stand for in a workspace: secrets, links that lead out, patterns that match either.

Reads names and links only. Not here: which words a command has (`shell_policy.py`), resolving one path
(`workspace/files/paths.py`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from glob import iglob
from itertools import islice
from pathlib import Path

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files.paths import Roots

MAX_MATCHES = 2_000
MAX_ENTRIES = 20_000


@dataclass(frozen=True, slots=True)
class CommandPlaces:
    """The files of one workspace, as a command's words name them; relative ones are in its first folder."""

    roots: Roots

    def is_secret(self, word: str) -> bool:
        """Return whether a word names a file that usually holds secrets: as a path, as a pattern that matches one, or
        behind the revision that git shows it of.
        """
        names = [word, *self._matches(word)]
        names += [word.partition(":")[2]] if ":" in word else []
        return any(map(self._holds_secrets, names))

    def leads_out(self, word: str) -> bool:
        """Return whether a word, as a path or as a pattern of names, leads out of the workspace.

        So does a pattern that matches too much to look at, a link to a secret, or a name that programs take for an
        option.
        """
        if self._is_outside(word):
            return True
        found = self._matches(word)
        return len(found) > MAX_MATCHES or any(map(self._is_odd, found))

    def holds_ways_out(self, word: str) -> bool:
        """Return whether the folder that a word names holds, at any depth, a link that leads out or to a secret."""
        try:
            folder = self.roots.resolve(word)
        except AgentError:
            return True
        return any(self._is_odd(path) for path in _links(folder))

    def is_file(self, word: str) -> bool:
        """Return whether a word names something that lies in the workspace, a link included."""
        full = os.path.normpath(Path(*self.roots.folders[:1], word))
        return os.path.lexists(full) and any(full.startswith(f"{root}/") for root in self.roots.folders)

    def _matches(self, word: str) -> list[str]:
        """Return the names that a pattern matches, one more than `MAX_MATCHES` at most; none for a plain word."""
        if not any(char in word for char in "*?[") or not self.roots.folders:
            return []
        found = iglob(word, root_dir=self.roots.folders[0])  # noqa: PTH207 - names alone
        return list(islice(found, MAX_MATCHES + 1))

    def _holds_secrets(self, name: str) -> bool:
        try:
            return self.roots.is_secret(self.roots.resolve(name))
        except AgentError:
            return False

    def _is_outside(self, word: str) -> bool:
        """Return whether a path leads out; an absolute one that does not exist is a pattern or a program's text."""
        if word.startswith("/") and not os.path.lexists(word):
            return False
        try:
            self.roots.resolve(word)
        except AgentError:
            return True
        return False

    def _is_odd(self, path: str) -> bool:
        full = Path(self.roots.folders[0], path)
        return full.name.startswith("-") or self._is_outside(path) or (full.is_symlink() and self.is_secret(path))


def _links(folder: str) -> list[str]:
    """Return the symbolic links below a folder; an impossible one if there is too much to look at."""
    found: list[str] = []
    waiting, seen = [folder], 0
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        seen += len(entries)
        if seen > MAX_ENTRIES:
            return ["/"]
        found += [entry.path for entry in entries if entry.is_symlink()]
        waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found
