"""The check whether a word, as a path, may be read without asking: inside the workspace and no secret. Pure functions.

Judged by name alone, as no folder is known here: the caller resolves links (`workspace/files/paths.py`).
"""

from __future__ import annotations

import fnmatch
import re
from typing import Literal

from codeagent_lsp.tools.permissions.shell.plain import Word
from codeagent_lsp.workspace.files.sensitive import fold, holds_secrets

Globs = Literal["none", "source", "any"]

_MAX_BRANCHES = 16
_BRACES = re.compile(r"\{([^{}]*)\}")
_KIND = re.compile(r"\*(?:\.\w+)+")
_EXAMPLES = (
    *(".env", ".env.local", ".npmrc", ".netrc", ".pgpass", ".pypirc", ".git-credentials", ".htpasswd", ".secrets"),
    *("id_rsa", "id_ed25519", "server.key", "server.pem", "credentials", "credentials.json", "secrets.yml"),
)
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


def chooses_secrets(pattern: str) -> bool:
    """Return whether a filter by names selects files for being secrets: it names them, or hidden files, or nearly all.

    A pattern that leaves files out narrows a search; one for an ending, such as `*.json`, is about that kind of file.
    """
    if pattern.startswith("!"):
        return False
    names = [name.rsplit("/", 1)[-1] for name in _branches(pattern)]
    return len(names) > _MAX_BRANCHES or any(map(_selects_secrets, names))


def _selects_secrets(name: str) -> bool:
    example = name.replace("*", "x")
    if is_secret(example) or is_secret(name):
        return True
    if _KIND.fullmatch(name):
        return False
    return any(fnmatch.fnmatchcase(secret, fold(name)) for secret in _EXAMPLES)


def _branches(pattern: str) -> list[str]:
    """Return what `{a,b}` in a pattern stands for; more than are looked at if there are too many, or odd ones."""
    found = [pattern]
    for _ in range(_MAX_BRANCHES):
        place = next((at for at, name in enumerate(found) if _BRACES.search(name)), None)
        if place is None:
            return [""] * (_MAX_BRANCHES + 1) if any("{" in name or "}" in name for name in found) else found
        name = found.pop(place)
        match = _BRACES.search(name)
        if match is not None:
            found += [name[: match.start()] + part + name[match.end() :] for part in match[1].split(",")]
    return [""] * (_MAX_BRANCHES + 1)


def _is_open(path: str, globs: Globs) -> bool:
    """Return whether a pattern selects files by their ending, in folders that are named in full."""
    example = path.replace("*", "x")
    if globs == "any" and path in ("*", "./*", "*/"):
        return True
    if globs == "none" or not _GLOB.fullmatch(path) or is_secret(example):
        return False
    return globs == "any" or not _DATA_NAME.fullmatch(example)
