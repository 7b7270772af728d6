"""The content of a patch in any format: per file an operation and hunks of kept, removed and added lines.

Not here: parsing the two formats (`patch_unified.py`, `patch.py`) and applying (`patch.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"^\s*(?:```|~~~)[\w+-]*\s*$")
_HEREDOC = re.compile(r"^[\w ]*<<-?\s*(['\"]?)(\w+)\1\s*$")


@dataclass(frozen=True)
class Hunk:
    """One hunk. `rows` are pairs of a tag (` `, `-` or `+`) and a line, with LF or without.

    `line` is the 1-based number of the first old line according to the patch, or None; `headers` are the texts after
    `@@`, which name lines above the hunk; `at_end` says that the hunk ends with the file.
    """

    rows: tuple[tuple[str, str], ...]
    line: int | None = None
    headers: tuple[str, ...] = ()
    at_end: bool = False

    @property
    def only_shows(self) -> bool:
        """Whether it has lines around a change, and no change."""
        return all(tag == " " for tag, _ in self.rows)

    @property
    def old(self) -> str:
        """The block before: kept and removed lines."""
        return "".join(line for tag, line in self.rows if tag != "+")

    @property
    def new(self) -> str:
        """The block after: kept and added lines."""
        return "".join(line for tag, line in self.rows if tag != "-")


@dataclass(frozen=True)
class FileChange:
    """The operation on one file: `add`, `delete` or `update`, the last with an optional new path."""

    kind: str
    path: str
    moved_to: str | None = None
    hunks: tuple[Hunk, ...] = field(default=())

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths this change reads or writes."""
        return (self.path,) if self.moved_to is None else (self.path, self.moved_to)


def unwrap(patch: str) -> list[str]:
    """Return the lines of a patch without endings, and without a code fence or heredoc around it."""
    lines = [line.removesuffix("\r") for line in patch.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    if len(lines) > 1 and _FENCE.match(lines[0]) and _FENCE.match(lines[-1]):
        lines = lines[1:-1]
    heredoc = _HEREDOC.match(lines[0]) if lines else None
    if heredoc and lines[-1].strip() == heredoc.group(2):
        lines = lines[1:-1]
    return lines
