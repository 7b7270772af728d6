"""The check whether a word, as a path, may be read without asking: inside the workspace and no secret. Pure functions.

Judged by name alone, as no folder is known here: the caller resolves links (`workspace/files/paths.py`).
"""

from __future__ import annotations

import re
from typing import Literal

from codeagent_lsp.tools.permissions.shell.plain import Word
from codeagent_lsp.workspace.files.sensitive import holds_secrets

Globs = Literal["none", "source", "any"]

# Files of such names hold text for people or machines to compile; what holds data may be a secret by any name.
_GLOB = re.compile(r"(?:\./)?(?:[\w][\w.-]*/)*[\w-]*\*(?:\.[\w]+)*\.[a-zA-Z][\w]*")
_DATA_NAME = re.compile(
    r".*\.(?:txt|json|ya?ml|toml|ini|cfg|conf|csv|env|properties|xml|plist|tfvars|db|sqlite|kdbx|bak|old)",
    re.IGNORECASE,
)


def unreadable(word: Word, *, globs: Globs) -> str | None:
    """Return the reason, in English, why a path may not be read without asking; None if it may.

    `globs`: the names that a pattern may match: none, those of source files, or any (for commands that do not show the
    text).
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
    """Return whether the name of a file or its folder marks it as a secret."""
    return holds_secrets([part for part in path.split("/") if part not in ("", ".")])


def _is_open(path: str, globs: Globs) -> bool:
    """Return whether a pattern selects files by their ending, in folders that are named in full."""
    example = path.replace("*", "x")
    if globs == "none" or not _GLOB.fullmatch(path) or is_secret(example):
        return False
    return globs == "any" or not _DATA_NAME.fullmatch(example)
