"""Parser of the `*** Begin Patch` format: one section per file, hunks without line numbers.

Not here: unified diffs (`patch_unified.py`) and placing hunks (`patch.py`).
"""

from __future__ import annotations

from codeagent_lsp.errors import PatchRefused
from codeagent_lsp.workspace.edits.patch_model import FileChange, Hunk

BEGIN, END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_END_OF_FILE = "*** End of File"


def parse_begin(lines: list[str]) -> list[FileChange]:
    """Parse the changes between `*** Begin Patch` and `*** End Patch`; raises `PatchRefused` when malformed."""
    stripped = [line.rstrip() for line in lines]
    start = stripped.index(BEGIN) + 1
    if END not in stripped:
        raise PatchRefused(f"The patch does not end with '{END}'; it may have been cut off. Send it again.")
    reader = _BeginPatchReader(lines[start : stripped.index(END)])
    changes = []
    while reader.more():
        changes.append(reader.section())
    return changes


class _BeginPatchReader:
    """A cursor over the lines of a patch; `at` is the 0-based next line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def more(self) -> bool:
        """Skip blank lines and return whether another section follows."""
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        return self.at < len(self.lines)

    def section(self) -> FileChange:
        """Parse the section of one file."""
        line = self._next()
        for start, read in ((_ADD, self._added), (_DELETE, self._deleted), (_UPDATE, self._updated)):
            if line.startswith(start):
                return read(line.removeprefix(start).strip().removeprefix("./"))
        raise PatchRefused(
            f"Patch line {line[:80]!r} is none of '*** Add File:', '*** Delete File:', '*** Update File:'."
        )

    def _next(self) -> str:
        self.at += 1
        return self.lines[self.at - 1]

    def _body(self) -> list[str]:
        start = self.at
        while self.at < len(self.lines) and not self.lines[self.at].startswith((_ADD, _DELETE, _UPDATE)):
            self.at += 1
        body = self.lines[start : self.at]
        while body and not body[-1]:
            body.pop()
        return body

    def _added(self, path: str) -> FileChange:
        body = self._body()
        bad = next((line for line in body if not line.startswith("+")), None)
        if bad is not None:
            raise PatchRefused(f"In '*** Add File: {path}' every line begins with '+', but not {bad[:80]!r}.")
        return FileChange("add", path, hunks=(Hunk(tuple(("+", line[1:] + "\n") for line in body)),))

    def _deleted(self, path: str) -> FileChange:
        if self._body():
            raise PatchRefused(f"'*** Delete File: {path}' is followed by lines that do not belong there.")
        return FileChange("delete", path)

    def _updated(self, path: str) -> FileChange:
        body = self._body()
        moved = (
            body.pop(0).removeprefix(_MOVE).strip().removeprefix("./") if body and body[0].startswith(_MOVE) else None
        )
        hunks: list[Hunk] = []
        headers: list[str] = []
        rows: list[tuple[str, str]] = []
        for line in [*body, "@@"]:
            if line.startswith("@@"):
                if rows:
                    hunks.append(Hunk(tuple(rows), headers=tuple(headers)))
                    headers, rows = [], []
                header = line.strip("@ ")
                headers += [header] if header else []
            elif line.strip() == _END_OF_FILE:
                hunks.append(Hunk(tuple(rows), headers=tuple(headers), at_end=True))
                headers, rows = [], []
            else:
                rows.append(_row(path, line))
        if headers:
            raise PatchRefused(f"In '*** Update File: {path}' the last '@@' is followed by no lines.")
        return FileChange("update", path, moved, tuple(hunk for hunk in hunks if hunk.rows))


def _row(path: str, line: str) -> tuple[str, str]:
    if not line:
        return (" ", "\n")
    if line[0] not in " -+":
        message = "every line of a hunk begins with a blank, '-' or '+'"
        raise PatchRefused(f"In '*** Update File: {path}' {message}, but not {line[:80]!r}.")
    return (line[0], line[1:] + "\n")
