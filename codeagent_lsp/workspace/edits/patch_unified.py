"""Parser of unified diffs: git's, and plain `---`/`+++` ones, tolerating the wrong line counts that models write.

Not here: the `*** Begin Patch` format (`patch.py`) and placing hunks (`patch.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from codeagent_lsp.errors import PatchRefused

# `@@ -1,3 +1,4 @@`, `@@@` of merges, and the bare `@@` or `@@ name` that models write.
_HUNK = re.compile(r"^@@+(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+)?")
# A name as git quotes it, such as `caf\303\251.txt`, in pieces: each escape, and what is between.
_QUOTED = re.compile(r"\\(?:[0-7]{3}|.)|[^\\]+", re.DOTALL)
_TWO_NAMES = re.compile(r'("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|\S+)')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_NULL = "/dev/null"
# `diff -u x.orig x` compares with a backup of the file; it is no rename.
_BACKUPS = (".orig", ".old", ".bak")
_MODE = re.compile(r"new (?:file )?mode (100[0-7]{3})\s*$")
# Links and submodules, whose "text" is a target or a commit.
_NO_FILE = re.compile(r"(?:(?:new|deleted) file |new |old )mode (?:120|160)000\s*$|index \S+ (?:120|160)000\s*$")
# With `diff.mnemonicPrefix` git names the sides: index, working tree, commit, object.
_SIDES = frozenset(("a/b/", "b/a/", "i/w/", "c/i/", "c/w/", "o/w/", "w/i/", "i/c/", "w/c/", "w/o/"))
_USUAL = ("a/", "b/")
_FENCE = re.compile(r"^\s*(?:```|~~~)[\w+-]*\s*$")
_HEADS = ("diff --git ", "@@", "--- ", "*** ")
# `cat <<'EOF'`, `cd src && git apply - <<EOF`, `patch -p1 <<EOF`, in which models wrap a patch.
_HEREDOC = re.compile(r"^[\w ./$&;=>-]*<<[-~]?\s*(['\"]?)(\w+)\1\s*(?:(?:\||>)[^\n]*)?$")


def parse_unified(lines: list[str]) -> list[FileChange]:
    """Parse the lines of a unified diff (without endings); text around it is skipped. [] if it names no file,
    PatchRefused when it is malformed, copies a file, or changes a binary file, a link or a submodule.
    """
    reader = _UnifiedDiffReader(lines)
    changes = []
    while reader.skip_to_file():
        changes.append(reader.file())
    return changes


_SIGNED = re.compile(r" (?:  )*\S")  # an odd indentation


class _UnifiedDiffReader:
    """A cursor over the lines of a diff; `at` is the 0-based next line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def skip_to_file(self) -> bool:
        """Go to the next file's header and return whether there is one. Other text is skipped.

        Hunks without file are refused.
        """
        while self.at < len(self.lines):
            if self._at_git_header() or self._at_names():
                return True
            if _HUNK.match(self.lines[self.at]):
                raise PatchRefused(
                    f"Line {self.at + 1} of the patch begins a hunk, but no '---'/'+++' lines name its file."
                )
            self.at += 1
        return False

    def file(self) -> FileChange:
        """Parse one file: its headers, then its hunks."""
        facts = self._git_facts() if self._at_git_header() else {}
        before, after = facts.get("from"), facts.get("to")
        prefixes = _prefixes(before, after)
        # `rename from` and `rename to` lines have no `a/` and `b/`.
        if "rename" not in facts:
            before, after = _without_prefixes(before, after, prefixes or _USUAL)
        if self._at_names():
            old, new = (_name(line[4:]) for line in self.lines[self.at : self.at + 2])
            names = _without_prefixes(old, new, prefixes or _prefixes(old, new) or _USUAL)
            if before is not None and not {before, after}.intersection(names):
                return _change(before, after, (), facts)  # they begin the next file
            if "rename" not in facts:
                before, after = names
            self.at += 2
        return _change(before, after, tuple(self._hunks()), facts)

    def _at_git_header(self) -> bool:
        return self.lines[self.at].startswith("diff --git ")

    def _at_names(self) -> bool:
        here = self.lines[self.at : self.at + 2]
        return len(here) == 2 and here[0].startswith("--- ") and here[1].startswith("+++ ")

    def _git_facts(self) -> dict[str, str]:
        """Parse git's extended header: names, and whether the file is new, deleted, renamed or copied."""
        facts = _names_of_header(self.lines[self.at])
        self.at += 1
        while self.at < len(self.lines) and not (
            self._at_names() or self._at_git_header() or _HUNK.match(self.lines[self.at])
        ):
            line = self.lines[self.at]
            if line.startswith("index ") and ".." in line:
                facts["blob"] = line[6:].partition("..")[0]
            # Git's own modes are those of files, of which only the right to be run is one of a text.
            if mode := _MODE.match(line):
                facts["runs"] = "yes" if int(mode[1], 8) & 0o100 else "no"
            for start, key in (("new file", "new"), ("deleted file", "deleted"), ("copy from", "copy")):
                if line.startswith(start):
                    facts[key] = line
            if _NO_FILE.match(line):
                raise PatchRefused("The patch changes a symbolic link or a submodule; only text files can be patched.")
            if line.startswith(("Binary files", "GIT binary patch")):
                raise PatchRefused("The patch changes a binary file; only text can be patched.")
            if line.startswith("rename from "):
                facts["from"], facts["rename"] = _name(line[12:]), "yes"
            if line.startswith("rename to "):
                facts["to"], facts["rename"] = _name(line[10:]), "yes"
            self.at += 1
        if "copy" in facts:
            raise PatchRefused("Copying a file is not supported in a patch; add the new file instead.")
        return facts

    def _hunks(self) -> list[Hunk]:
        hunks: list[Hunk] = []
        while self.at < len(self.lines):
            header = _HUNK.match(self.lines[self.at])
            if not header:
                if self._at_git_header() or self._at_names() or hunks:
                    break
                if self.lines[self.at].strip():
                    break
                self.at += 1
                continue
            start = self.at
            self.at += 1
            rows, at_end = self._rows(header)
            numbers = _Numbers.of(header, self.lines[start]) if header.group(1) else None
            hunks.append(Hunk(rows, line=numbers.old if numbers else None, at_end=at_end, numbers=numbers))
        return hunks

    def _rows(self, header: re.Match[str]) -> tuple[tuple[tuple[str, str], ...], bool]:
        """Parse the rows of one hunk. Its counts only decide whether `--- x` is a removed line or a new file."""
        # A count that is left out is 1; where there are no numbers at all, nothing more is expected.
        left = [int(header.group(i) or 1) if header.group(1) else 0 for i in (2, 4)]
        if bare := self._bare_rows(left):
            return bare, False
        rows: list[tuple[str, str]] = []
        at_end = False
        while self.at < len(self.lines):
            line = self.lines[self.at]
            # `\ No newline at end of file` is about the row above.
            if line.startswith("\\"):
                if rows:
                    rows[-1] = (rows[-1][0], rows[-1][1].removesuffix("\n"))
                at_end = True
                self.at += 1
                continue
            if self._ends_hunk(line, left):
                break
            tag, body = (line[0], line[1:]) if line else (" ", "")
            rows.append((tag, body + "\n"))
            left[0] -= tag != "+"
            left[1] -= tag != "-"
            self.at += 1
        # Blank lines beyond the counts stand between hunks or files.
        while rows and rows[-1] == (" ", "\n") and left[0] < 0:
            rows.pop()
            left[0] += 1
        return tuple(rows), at_end

    def _bare_rows(self, left: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Return the rows of a hunk whose kept lines all lack their sign, as models forget it; () for any other. Where
        its first line has a sign, its numbers must be those of its lines so read: text behind a hunk is none of it.
        """
        first = "".join(self.lines[self.at : self.at + 1])
        surely = bool(first.strip()) and first[0] not in " \t+-\\"
        counted, end = list(left), self.at
        rows: list[tuple[str, str]] = []
        while end < len(self.lines) and (surely or max(counted) > 0):
            line = self.lines[end]
            if line.startswith(_HEADS) and (line[:4] != "--- " or "".join(self.lines[end + 1 : end + 2])[:4] == "+++ "):
                break
            tag = line[0] if line[:1] in ("+", "-") else " "
            rows.append((tag, (line[1:] if tag != " " else line) + "\n"))
            counted = [counted[0] - (tag != "+"), counted[1] - (tag != "-")]
            end += 1
            # What is said behind a hunk is no line of it, where the numbers agree.
            if counted == [0, 0]:
                break
        while surely and rows and rows[-1] == (" ", "\n") and counted != [0, 0]:
            rows.pop()
        lacks = any(tag == " " and text.strip() and text[0] not in " \t\\" for tag, text in rows)
        changes = any(tag != " " for tag, _ in rows)
        if not lacks or not changes or not (surely or counted == [0, 0]):
            return ()
        # With signs after all, and words behind it, or with a remark of git.
        signed = not surely and any(tag == " " and _SIGNED.match(text) for tag, text in rows)
        if signed or any(text.startswith("\\") for _, text in rows):
            return ()
        self.at = end
        return tuple(rows)

    def _ends_hunk(self, line: str, left: list[int]) -> bool:
        if line and line[0] not in " -+":
            return True
        done = left[0] <= 0 and left[1] <= 0
        # Behind a complete hunk, a blank line belongs to it only if more rows follow: counts are often too low.
        if not line and done:
            return not any(rest[:1] in (" ", "-", "+") for rest in self.lines[self.at + 1 : self.at + 2])
        if not self._at_names():
            return False
        # Counts that are too high would swallow the next file; a removed and an added line fill them exactly.
        return done or (left != [1, 1] and bool(_HUNK.match("".join(self.lines[self.at + 2 : self.at + 3]))))


def _names_of_header(line: str) -> dict[str, str]:
    """Return the names in `diff --git a/x b/x`; unquoted names with blanks only where both halves are the same."""
    rest = line.removeprefix("diff --git ").strip()
    if two := _TWO_NAMES.fullmatch(rest):
        return {"from": _name(two[1]), "to": _name(two[2])}
    half = (len(rest) - 1) // 2
    # `a/my file b/my file`: the blank in the middle parts equal names.
    if rest[1:2] == "/" and rest[:half][2:] == rest[half + 1 :][2:]:
        return {"from": rest[:half], "to": rest[half + 1 :]}
    return {}


def _name(text: str) -> str:
    """Return the file name of a header line, unquoted and without the timestamp after a tab."""
    return unquote_name(text) or text.split("\t")[0].strip().removeprefix("./")


def unquote_name(text: str) -> str:
    """Return a name that git has put in double quotes, with its escapes (C's, octal ones as bytes of UTF-8) resolved;
    '' for a name without quotes.
    """
    text = text.strip()
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return ""
    return b"".join(map(_unescape, _QUOTED.findall(text[1:-1]))).decode("utf-8", "surrogateescape")


def _unescape(piece: str) -> bytes:
    """Return the bytes of a piece of a name as git quotes it: of all beyond ASCII as octal numbers by default."""
    if not piece.startswith("\\"):
        return piece.encode("utf-8", "surrogateescape")
    code = piece[1:]
    return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPES.get(code, code).encode()


def _prefixes(before: str | None, after: str | None) -> tuple[str, str] | None:
    """Return what git has put before the names of the two sides of one file; None if that does not show."""
    if not before or not after or before[2:] != after[2:] or before[:2] + after[:2] not in _SIDES:
        return None
    return before[:2], after[:2]


def _without_prefixes(
    before: str | None, after: str | None, prefixes: tuple[str, str]
) -> tuple[str | None, str | None]:
    """Remove git's `a/` and `b/`, but only where both names have them (or the other is /dev/null)."""
    first, second = prefixes
    has = (before in (None, _NULL) or before.startswith(first), after in (None, _NULL) or after.startswith(second))
    if all(has):
        before = before[2:] if before and before != _NULL else before
        after = after[2:] if after and after != _NULL else after
    return before, after


def _change(before: str | None, after: str | None, hunks: tuple[Hunk, ...], facts: dict[str, str]) -> FileChange:
    if not before or not after or before == after == _NULL:
        raise PatchRefused("A file of the patch has no name. Write '--- a/path' and '+++ b/path' above its hunks.")
    if before == _NULL or "new" in facts:
        return FileChange("add", after, hunks=hunks, runs=True if facts.get("runs") == "yes" else None)
    if after == _NULL or "deleted" in facts:
        return FileChange("delete", before, hunks=hunks)
    if before != after and "rename" not in facts:
        if before not in [after + suffix for suffix in _BACKUPS]:
            raise PatchRefused(
                f"The patch calls one file {before} and {after}. To rename, write 'rename from/to' lines."
            )
        before = after
    runs = None if "runs" not in facts else facts["runs"] == "yes"
    return FileChange("update", before, None if before == after else after, hunks, facts.get("blob", ""), runs)


# The content of a patch in any format: per file an operation and hunks of kept, removed and added lines.


@dataclass(frozen=True)
class _Numbers:
    """The head of a hunk: the 1-based numbers of its first old and its first new line, how many there are of each, and
    the line above them that `diff` shows behind the second `@@`.
    """

    old: int
    old_count: int
    new: int
    new_count: int
    section: str

    @classmethod
    def of(cls, header: re.Match[str], line: str) -> _Numbers:
        """Return the numbers of a head that has them; a count that is left out is 1."""
        old, old_count, new, new_count = (int(group) if group else 1 for group in header.groups())
        return cls(old, old_count, new, new_count, line[header.end() :].strip())


@dataclass(frozen=True)
class Hunk:
    """One hunk. `rows` are pairs of a tag (` `, `-` or `+`) and a line, with LF or without.

    `line` is the 1-based number of the first old line according to the patch, or None; `headers` are the texts after
    `@@`, which name lines above the hunk; `at_end` says that the hunk ends with the file. `numbers` are those of
    the head of a unified diff.
    """

    rows: tuple[tuple[str, str], ...]
    line: int | None = None
    headers: tuple[str, ...] = ()
    at_end: bool = False
    numbers: _Numbers | None = None

    @property
    def only_shows(self) -> bool:
        """Whether no line of it is removed or added: it only shows lines that stay."""
        return all(tag == " " for tag, _ in self.rows)

    @property
    def old(self) -> str:
        """The block before the change as text: kept and removed lines; '' for pure additions."""
        return "".join(line for tag, line in self.rows if tag != "+")

    @property
    def new(self) -> str:
        """The block after the change as text: kept and added lines; '' for pure removals."""
        return "".join(line for tag, line in self.rows if tag != "-")


@dataclass(frozen=True)
class FileChange:
    """The operation of a patch on one file: `add`, `delete` or `update`, the last with an optional new path
    (`moved_to`). `blob` is the beginning of git's hash of the text before, '' if the patch has none; `runs` says
    whether the file becomes executable (None: as before).
    """

    kind: str
    path: str
    moved_to: str | None = None
    hunks: tuple[Hunk, ...] = field(default=())
    blob: str = ""
    """The beginning of git's hash for the text that the patch was made from; '' if the patch does not name it."""
    runs: bool | None = None
    """Whether the file can be executed afterwards; None where that stays as it is."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that this change reads or writes, as the patch names them: the file's, and the new one if it is
        moved.
        """
        return (self.path,) if self.moved_to is None else (self.path, self.moved_to)


def unwrap(patch: str) -> list[str]:
    """Return the lines of a patch without endings, and without the blank lines, code fence or heredoc around it."""
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
