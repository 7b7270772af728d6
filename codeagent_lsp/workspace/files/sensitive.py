"""Classification of file names in a workspace that are dangerous to write, as a program runs them, or to read.

Based on the name alone, so that files that do not exist yet are covered, after folding what file systems fold: case,
Unicode forms, ignored code points, trailing dots, streams and short names. Not here: resolving paths (`paths.py`) and
the user's permissions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from codeagent_lsp.workspace.files.risky_names import BUILDS, OBEYED, SECRETS, SETTINGS
from codeagent_lsp.workspace.text.unseen import is_unseen

_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_GIT_HOOK = re.compile(
    r"(?:applypatch-msg|fsmonitor-watchman|(?:pre|post|prepare)-[a-z-]+|commit-msg|update|reference-transaction)"
)
_TEST_FOLDERS = frozenset({"test", "tests"})
_COPY_END = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|copy|tmp|sw[a-p]|[0-9]{1,3}))+$")
_SWAP = re.compile(r"\.(.+)\.sw[a-p]|\.?#(.+?)#?")


def runs_later(parts: Sequence[str]) -> bool:
    """Return whether some program runs or obeys a file of this name, or the name deceives.

    `parts` start below the root.

    Also True for no parts, the root itself, which is never to be moved or deleted.
    """
    folded = [fold(part) for part in parts]
    if not folded or any(map(_spoofs, parts)) or SETTINGS.match(folded) or OBEYED.match(folded):
        return True
    return _runs_by_place(folded) or BUILDS.match(folded)


def only_builds_run(parts: Sequence[str]) -> bool:
    """Return whether a file that `runs_later` is run only by builds and tests of the project, which somebody starts."""
    folded = [fold(part) for part in parts]
    if not folded or any(map(_spoofs, parts)) or SETTINGS.match(folded) or OBEYED.match(folded):
        return False
    return not _runs_by_place(folded) and BUILDS.match(folded)


def is_settings(parts: Sequence[str]) -> bool:
    """Return whether a file says what an editor, an agent, a shell or git runs, so that no command may write it."""
    folded = [fold(part) for part in parts]
    return bool(folded) and (not SETTINGS.folders.isdisjoint(folded[:-1]) or SETTINGS.match_file(folded))


def holds_secrets(parts: Sequence[str]) -> bool:
    """Return whether a file of this name usually contains keys or passwords; `parts` start below the root."""
    folded = [fold(part) for part in parts]
    return bool(folded) and (SECRETS.match(folded) or SECRETS.match_file([*folded[:-1], _original(folded[-1])]))


def fold(part: str) -> str:
    """Return a file name as the most permissive file system reads it.

    For example, `.GIT.`, `.g<joiner>it` and `GIT~1` become `.git`.
    """
    # Some file systems ignore invisible characters.
    kept = "".join(char for char in part if char not in "\n\t" and not is_unseen(char))
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", kept).casefold())
    stem = plain.partition(":")[0].rstrip(". ")
    return ".git" if re.fullmatch(r"git~\d+", stem) else stem


def _runs_by_place(folded: Sequence[str]) -> bool:
    """Return whether the name has its meaning from its folder: tests' settings, hooks; or is a device of Windows."""
    name = folded[-1]
    if name == "conftest.py":
        return not _TEST_FOLDERS.intersection(folded[:-1])
    hook = len(folded) > 1 and folded[-2] in ("hooks", ".hooks") and _GIT_HOOK.fullmatch(name)
    return bool(hook or _DEVICE.fullmatch(name))


def _original(name: str) -> str:
    """Return the name of the file that an editor's backup or swap file is a copy of; of other files, the name."""
    swap = _SWAP.fullmatch(name)
    if swap:
        return swap[1] or swap[2]
    end = _COPY_END.search(name)
    return name[: end.start()] if end and end.start() else name


def _spoofs(part: str) -> bool:
    """Return whether a name is displayed as something else: line breaks, bidi marks, invisible characters."""
    return any(char in "\n\t" or is_unseen(char) for char in part)
