"""The ignore rules of a folder: built-in names, git's ignore files and `.codeagentignore`.

`.gitignore` (nested, and from the top of the repository that holds the folder) and `.git/info/exclude` follow
git's rules (gitignore(5)); `.codeagentignore` has the same format, can only ignore more, and names a file however
Unicode composes its letters. Files are read again when they change. Not here: access control (`paths.py`); an ignored
file can still be named and read.
"""

# ruff: noqa: PTH118, SIM905 - plain strings are several times faster in a walk; word lists read better as text

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern

from codeagent_lsp.system import open_reading

BUILT_IN = frozenset(
    """
    .git .hg .svn .jj node_modules __pycache__ .venv venv .tox .nox .mypy_cache .ruff_cache .pytest_cache
    .hypothesis .gradle .terraform .next .nuxt .svelte-kit .parcel-cache .turbo .cache .eggs bower_components
    .DS_Store Thumbs.db
    """.split()
)

_GIT = ".gitignore"
_OWN = ".codeagentignore"
_MAX_BYTES = 1 << 20
_MAX_PARENTS = 30
# `a/**/` is only the folders below `a` for git, and `a` itself for pathspec.
_BELOW = re.compile(r"/\*\*/\s*$")

# pathspec gives its groups names, and one pattern cannot have a name twice.
_NAMED = re.compile(r"\(\?P<\w+>")
_ANYWHERE = "^(?:.+/)?"

_Rule = tuple[bool, re.Pattern[str]]  # whether it ignores (or re-includes) what it matches, and the pattern


class _Rules(NamedTuple):
    """The rules of one ignore file, the last one first.

    `any` matches every path that at least one of them may match.
    """

    each: tuple[_Rule, ...] = ()
    any: re.Pattern[str] | None = None


class _Source(NamedTuple):
    """The rules of one ignore file, for paths without their first `start` characters."""

    start: int
    rules: _Rules


class FolderRules(NamedTuple):
    """The ignore rules for the names in one folder; an immutable value, good for one walk.

    `path` is the folder's path below the top of the repository: '' or `a/b/`.
    """

    rules: IgnoreRules
    path: str
    git: tuple[_Source, ...]
    own: tuple[_Source, ...]

    def ignores(self, name: str, *, is_dir: bool) -> bool:
        """Return whether the file or folder `name` in this folder is ignored, by built-in names or by ignore files;
        folders above are not looked at.
        """
        if name in BUILT_IN:
            return True
        path = f"{self.path}{name}/" if is_dir else self.path + name
        return _decision(self.git, path) or _decision(self.own, _compose(path))

    def named_for_agents(self, name: str, *, is_dir: bool) -> bool:
        """Return whether a `.codeagentignore` ignores the file or folder `name` in this folder, whatever git's files
        say; folders above are not looked at.
        """
        return _decision(self.own, _compose(f"{self.path}{name}/" if is_dir else self.path + name))

    def enter(self, name: str) -> FolderRules:
        """Return the rules for the names in the folder `name` of this folder, with those of its own ignore files; reads
        the disk.
        """
        return self.rules._extend(self, name)


class IgnoreRules:
    """The ignore rules of one workspace folder, an absolute real path. Files are read on demand and again when they
    have changed. Safe to use from any thread.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._top = _repository(root)
        self._cache: dict[str, tuple[tuple[int, int, int], _Rules]] = {}

    def at_root(self) -> FolderRules:
        """Return the rules for the names directly in the folder; the start of a walk. Reads the disk."""
        top = FolderRules(self, "", (), ())
        exclude = self._rules(os.path.join(self._top, ".git", "info", "exclude"))
        here = self._read(top._replace(git=(_Source(0, exclude),) if exclude.each else ()))
        names = Path(self._root).relative_to(self._top).parts
        for name in names:
            if here.ignores(name, is_dir=True):  # the repository ignores this folder: its rules do not apply
                return self._read(top._replace(path="".join(f"{each}/" for each in names)))
            here = here.enter(name)
        return here

    def is_ignored(self, path: str, *, is_dir: bool) -> bool:
        """Return whether `path`, absolute and inside the folder, or one of its parent folders is ignored."""
        return self._any_on_the_way(path, FolderRules.ignores, is_dir=is_dir)

    def is_named_for_agents(self, path: str) -> bool:
        """Return whether a `.codeagentignore` ignores the file `path`, absolute and inside the folder, or a folder that
        it is in: the user wants no agent to work with it, whatever git ignores.
        """
        return self._any_on_the_way(path, FolderRules.named_for_agents, is_dir=False)

    def _any_on_the_way(self, path: str, ignores: Callable[..., bool], *, is_dir: bool) -> bool:
        *folders, name = Path(path).relative_to(self._root).parts or ("",)
        here = self.at_root()
        for folder in folders:
            if ignores(here, folder, is_dir=True):
                return True
            here = here.enter(folder)
        return bool(name) and ignores(here, name, is_dir=is_dir)

    def _extend(self, outer: FolderRules, name: str) -> FolderRules:
        return self._read(outer._replace(path=f"{outer.path}{name}/"))

    def _read(self, here: FolderRules) -> FolderRules:
        """Return `here` with the rules of its own folder's ignore files added."""
        folder = os.path.join(self._top, here.path)
        git = self._rules(os.path.join(folder, _GIT))
        own = self._rules(os.path.join(folder, _OWN))
        return here._replace(
            git=(*here.git, _Source(len(here.path), git)) if git.each else here.git,
            own=(*here.own, _Source(len(_compose(here.path)), own)) if own.each else here.own,
        )

    def _rules(self, path: str) -> _Rules:
        try:
            info = os.lstat(path)
        except OSError:
            self._cache.pop(path, None)
            return _Rules()
        mark = (info.st_mtime_ns, info.st_size, info.st_ino)
        known = self._cache.get(path)
        if known is None or known[0] != mark:
            known = self._cache[path] = (mark, _load(path))
        return known[1]


def _load(path: str) -> _Rules:
    """Return the rules in the file; none when it is a link or special, or cannot be read."""
    try:
        fd = open_reading(path)
    except OSError:
        return _Rules()
    try:
        text = os.read(fd, _MAX_BYTES).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError:  # it is a folder
        return _Rules()
    finally:
        os.close(fd)
    lines = (_compose(text) if path.endswith(_OWN) else text).split("\n")
    rules = tuple(rule for line in reversed(lines) if (rule := _rule(line.removesuffix("\r"))) is not None)
    return _Rules(rules, _any(rules))


def _compose(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def _any(rules: tuple[_Rule, ...]) -> re.Pattern[str] | None:
    """Return one pattern for all rules, or None: most names match no rule, and one match is much faster than many.

    The prefix that all rules for names at any depth share is written once.
    """
    flags = {pattern.flags for _, pattern in rules}
    texts = [_NAMED.sub("(?:", pattern.pattern) for _, pattern in rules]
    if len(flags) != 1 or not all(text.startswith("^") for text in texts):
        return None
    anywhere = [f"(?:{text.removeprefix(_ANYWHERE)})" for text in texts if text.startswith(_ANYWHERE)]
    others = [f"(?:{text[1:]})" for text in texts if not text.startswith(_ANYWHERE)]
    if anywhere:
        others.append(f"{_ANYWHERE[1:]}(?:{'|'.join(anywhere)})")
    try:
        return re.compile("|".join(others), flags.pop() & ~re.UNICODE)
    except re.error:  # the patterns cannot be combined
        return None


def _rule(line: str) -> _Rule | None:
    """Parse one line of an ignore file; None for an invalid line, which git also skips."""
    try:
        patterns = GitIgnoreSpec.from_lines([_BELOW.sub("/**/*/", line)]).patterns
    except (ValueError, re.error):
        return None
    found = (pattern for pattern in patterns if isinstance(pattern, RegexPattern))
    return next(((p.include, p.regex) for p in found if p.include is not None and p.regex is not None), None)


def _decision(sources: tuple[_Source, ...], whole: str) -> bool:
    """Return the decision of the innermost ignore file that has a matching rule; False if none has."""
    for start, rules in reversed(sources):
        path = whole[start:]
        if rules.any is not None and rules.any.match(path) is None:
            continue
        for ignores, pattern in rules.each:
            if _fits(pattern, path):
                return ignores
    return False


def _fits(pattern: re.Pattern[str], path: str) -> bool:
    """Return whether a rule matches `path` itself.

    Rules that match a parent folder were applied when walking into it.
    """
    for match in pattern.finditer(path):
        if match.groupdict().get("ps_d") is not None:
            if match.end("ps_d") == len(path):
                return True
        elif not (pattern.pattern.endswith("/") and match.end() == len(path)):  # `x/**` does not match x
            return True
    return False


def _repository(root: str) -> str:
    """Return the top of the git repository that contains `root`, otherwise `root`."""
    here = Path(root)
    for folder in (here, *list(here.parents)[:_MAX_PARENTS]):
        if (folder / ".git").exists():
            return str(folder)
    return root
