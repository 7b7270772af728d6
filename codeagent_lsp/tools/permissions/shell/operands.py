"""Which words, as paths, may be read unasked: inside the workspace by their name, and no secrets. Pure.

By name alone, as no folder is known here: where a link leads is for the caller to ask (`workspace/files/paths.py`).
"""

from __future__ import annotations

import re
from typing import Literal

from codeagent_lsp.tools.permissions.shell.plain import Word
from codeagent_lsp.workspace.files.sensitive import fold, holds_secrets

Globs = Literal["none", "source", "any"]

_DATA = r"(?:txt|json|ya?ml|toml|ini|cfg|conf|csv|env|properties|xml|plist|tfvars|db|sqlite|kdbx|bak|old)"
_SECRET = re.compile(
    rf"(?:[\w-]*[._-])?(?:secrets?|credentials?|passw(?:or)?ds?|passwd|private[_-]?keys?|api[_-]?keys?|token(?=\.))(?:\.{_DATA})*"
    r"|\.\w+_history"
)
# Files of such names hold text for people or machines to compile; what holds data may be a secret by any name.
_GLOB = re.compile(r"(?:\./)?(?:[\w][\w.-]*/)*[\w-]*\*(?:\.[\w]+)*\.[a-zA-Z][\w]*")
_DATA_NAME = re.compile(rf".*\.{_DATA}", re.IGNORECASE)


def unreadable(word: Word, *, globs: Globs) -> str | None:
    """Why a path is not read unasked, in English.

    `globs`: what names it may stand for, if it is a pattern: none, those of source files, or of any whose text is
    not shown.
    """
    path = word.value
    if path == "/dev/null":
        return None
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        return "It names a place outside the workspace."
    if word.glob:
        return None if _is_open(path, globs) else "It names files by a pattern."
    return "It names a file that may hold secrets." if is_secret(path) else None


def is_secret(path: str) -> bool:
    """Whether the name alone says that the file, or its folder, is not for a model to read unasked."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    folded = [fold(part) for part in parts]
    return ".git" in folded or holds_secrets(parts) or any(map(_SECRET.fullmatch, folded[-1:]))


def _is_open(path: str, globs: Globs) -> bool:
    """Whether the pattern names files by their ending, in folders that are named in full."""
    example = path.replace("*", "x")
    if globs == "none" or not _GLOB.fullmatch(path) or is_secret(example):
        return False
    return globs == "any" or not _DATA_NAME.fullmatch(example)
