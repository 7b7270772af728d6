"""The files that one command wrote, gathered within limits.

Not here: finding them (`upper.py`, `mirror.py`), making edits of them (`collect.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codeagent_lsp.shadow.shell import Written, WrittenKind


@dataclass(frozen=True, slots=True)
class WrittenLimits:
    """Most bytes of one text, and most files and bytes of all that one command wrote; more is only counted."""

    file_bytes: int = 1 << 20
    files: int = 500
    total_bytes: int = 16 << 20


@dataclass
class WrittenFiles:
    """The changed files found so far, by path, within the limits."""

    limits: WrittenLimits
    files: dict[str, Written] = field(default_factory=dict)
    more: int = 0
    size: int = 0

    def add(self, path: str, kind: WrittenKind, data: bytes = b"") -> None:
        """Add one file, or only count it beyond the limits."""
        if path in self.files:
            return
        if len(self.files) >= self.limits.files or self.size + len(data) > self.limits.total_bytes:
            self.more += 1
            return
        self.size += len(data)
        self.files[path] = Written(path, kind, data)
