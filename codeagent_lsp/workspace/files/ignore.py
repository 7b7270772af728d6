"""Which files of a folder are not worth looking at: built-in names, git's ignore files and our own.

`.gitignore` (nested, and from the top of the repository that holds the folder) and `.git/info/exclude` follow
git's rules; `.codeagentignore` has the same form and can only take more away. Read anew when a file changes.
Not here: what may be touched (`paths.py`); an ignored file can still be named and read.
"""

# ruff: noqa: PTH118, SIM905 - plain strings are several times faster in a walk; word lists read better as text

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern

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
_BELOW = re.compile(r"/\*\*/\s*$")

_NAMED = re.compile(r"\(\?P<\w+>")
_ANYWHERE = "^(?:.+/)?"

_Rule = tuple[bool, re.Pattern[str]]  # whether it leaves out what it fits, and what it fits


class _Rules(NamedTuple):
    """The rules of one ignore file, the last one first; `any` fits wherever one of them may."""

    each: tuple[_Rule, ...] = ()
    any: re.Pattern[str] | None = None


class _Source(NamedTuple):
    """The rules of one ignore file, which are about paths without their first `start` characters."""

    start: int
    rules: _Rules


class FolderRules(NamedTuple):
    """The rules that hold for the names in one folder; a value, good for one walk.

    `path` is the folder's below the top of the repository: '' or `a/b/`.
    """

    rules: IgnoreRules
    path: str
    git: tuple[_Source, ...]
    own: tuple[_Source, ...]

    def ignores(self, name: str, *, is_dir: bool) -> bool:
        """Whether the file or folder `name` in this folder is left out."""
        if name in BUILT_IN:
            return True
        path = f"{self.path}{name}/" if is_dir else self.path + name
        return _decision(self.git, path) or _decision(self.own, path)

    def enter(self, name: str) -> FolderRules:
        """The rules for the names in the folder `name` of this folder."""
        return self.rules._extend(self, name)


class IgnoreRules:
    """The rules of one workspace folder, an absolute real path. Safe to use from any thread."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._top = _repository(root)
        self._cache: dict[str, tuple[tuple[int, int, int], _Rules]] = {}

    def at_root(self) -> FolderRules:
        """The rules for the names in the folder itself; the way in for a walk."""
        top = FolderRules(self, "", (), ())
        exclude = self._rules(os.path.join(self._top, ".git", "info", "exclude"))
        here = self._read(top._replace(git=(_Source(0, exclude),) if exclude.each else ()))
        names = Path(self._root).relative_to(self._top).parts
        for name in names:
            if here.ignores(name, is_dir=True):  # the repository around is not about this folder
                return self._read(top._replace(path="".join(f"{each}/" for each in names)))
            here = here.enter(name)
        return here

    def is_ignored(self, path: str, *, is_dir: bool) -> bool:
        """Whether `path`, absolute and inside the folder, or a folder above it is left out."""
        *folders, name = Path(path).relative_to(self._root).parts or ("",)
        here = self.at_root()
        for folder in folders:
            if here.ignores(folder, is_dir=True):
                return True
            here = here.enter(folder)
        return bool(name) and here.ignores(name, is_dir=is_dir)

    def _extend(self, outer: FolderRules, name: str) -> FolderRules:
        return self._read(outer._replace(path=f"{outer.path}{name}/"))

    def _read(self, here: FolderRules) -> FolderRules:
        """`here` with what its own folder's ignore files add."""
        folder = os.path.join(self._top, here.path)
        git = self._rules(os.path.join(folder, _GIT))
        own = self._rules(os.path.join(folder, _OWN))
        return here._replace(
            git=(*here.git, _Source(len(here.path), git)) if git.each else here.git,
            own=(*here.own, _Source(len(here.path), own)) if own.each else here.own,
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
    """The rules in the file; none when it is a link or special, or cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return _Rules()
    try:
        text = os.read(fd, _MAX_BYTES).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError:  # a folder of that name
        return _Rules()
    finally:
        os.close(fd)
    lines = text.split("\n")
    rules = tuple(rule for line in reversed(lines) if (rule := _rule(line.removesuffix("\r"))) is not None)
    return _Rules(rules, _any(rules))


def _any(rules: tuple[_Rule, ...]) -> re.Pattern[str] | None:
    """All rules in one pattern, to be matched: most names fit none, and one question is much faster than one for each.

    What the rules for names anywhere begin with stands in it once.
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
    except re.error:  # they do not go together
        return None


def _rule(line: str) -> _Rule | None:
    """One line of an ignore file; git, too, passes over a line that makes no sense."""
    try:
        patterns = GitIgnoreSpec.from_lines([_BELOW.sub("/**/*/", line)]).patterns
    except (ValueError, re.error):
        return None
    found = (pattern for pattern in patterns if isinstance(pattern, RegexPattern))
    return next(((p.include, p.regex) for p in found if p.include is not None and p.regex is not None), None)


def _decision(sources: tuple[_Source, ...], whole: str) -> bool:
    """What the innermost file with an opinion says."""
    for start, rules in reversed(sources):
        path = whole[start:]
        if rules.any is not None and rules.any.match(path) is None:
            continue
        for ignores, pattern in rules.each:
            if _fits(pattern, path):
                return ignores
    return False


def _fits(pattern: re.Pattern[str], path: str) -> bool:
    """Whether a rule is about `path` itself. One about a folder above was asked there, and counts no more here."""
    for match in pattern.finditer(path):
        if match.groupdict().get("ps_d") is not None:
            if match.end("ps_d") == len(path):
                return True
        elif not (pattern.pattern.endswith("/") and match.end() == len(path)):  # `x/**` is not about x
            return True
    return False


def _repository(root: str) -> str:
    """The top of the git repository that holds `root`, else `root`."""
    here = Path(root)
    for folder in (here, *list(here.parents)[:_MAX_PARENTS]):
        if (folder / ".git").exists():
            return str(folder)
    return root
