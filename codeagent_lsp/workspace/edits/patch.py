"""Application of a patch, a unified diff or the `*** Begin Patch` format, to texts: all of it or nothing.

Pure: files come in as a mapping and go out as a new one. A hunk is placed by its lines; the line numbers and headers
of the patch only choose between exact matches, except where a hunk has no old line. Not here: reading and writing
files.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Mapping
from itertools import pairwise, takewhile

from codeagent_lsp.errors import EditRefused, NoSuchFile, PatchRefused
from codeagent_lsp.workspace.edits.match import Edit, apply_edits, plan_lines
from codeagent_lsp.workspace.edits.patch_unified import FileChange, Hunk, parse_unified, unquote_name, unwrap
from codeagent_lsp.workspace.text.position import (
    content_of,
    dominant_newline,
    ending_of,
    runs_together,
    shared_ends,
    split_lines,
    with_newlines,
)

FileTexts = dict[str, str | None]
_BOM = "\ufeff"
_OWN_LABEL = re.compile(r"#[0-9a-f]{8}$")
BEGIN, END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_END_OF_FILE = "*** End of File"


def apply_patch(files: Mapping[str, str | None], patch: str) -> FileTexts:
    """Return a copy of `files` after the patch: path -> text, None for a file that does not exist (any more).

    `files` has to hold every path of `paths_of(patch)`; a missing one counts as None. Raises `PatchRefused`, naming
    file and hunk, if any part of the patch does not fit; `NoSuchFile`, a kind of it, if a file does not exist.
    """
    result = dict(files)
    # One after the other on the result so far: a patch may move a file and then change it under its new name.
    for change in parse_patch(patch):
        _OPERATIONS[change.kind](result, change)
    return result


def paths_of(patch: str) -> tuple[str, ...]:
    """Return the paths a patch reads or writes, each once, in its order; for a renamed file both. PatchRefused when it
    cannot be parsed.
    """
    return tuple(dict.fromkeys(path for change in parse_patch(patch) for path in change.paths))


def moves_of(patch: str) -> dict[str, str]:
    """Return the files that a patch renames, old path -> new path; raises `PatchRefused` when it cannot be parsed."""
    moved = ((change.path, change.moved_to) for change in parse_patch(patch))
    return {old: new for old, new in moved if new is not None and new != old}


def modes_of(patch: str) -> dict[str, bool]:
    """Return which files a patch makes executable (False: no longer), by their new paths; other files are not in it.
    PatchRefused when it cannot be parsed.
    """
    changes = parse_patch(patch)
    return {change.moved_to or change.path: change.runs for change in changes if change.runs is not None}


def without_signs(patch: str) -> str:
    """Return the lines of a patch without the sign (`+`, `-` or blank) that each begins with; a line without one stays
    as it is. Headers count as any other line.
    """
    return "".join(line[1:] if line[:1] in ("+", "-", " ") else line for line in split_lines(patch))


def parse_patch(patch: str) -> list[FileChange]:
    """Parse a patch, a unified diff or the `*** Begin Patch` format, and return its changes in order. PatchRefused when
    it is malformed or names no file.
    """
    lines = unwrap(patch)
    for line in lines:
        if line.rstrip() == BEGIN:
            return _not_empty(parse_begin(lines))
        # From here on it is a diff, which may itself be about a file that contains such patches.
        if line.startswith(("diff --git ", "--- ")):
            break
    return _not_empty(parse_unified(lines))


def _not_empty(changes: list[FileChange]) -> list[FileChange]:
    if not changes:
        raise PatchRefused("This is neither a unified diff nor a '*** Begin Patch' patch: no file is named in it.")
    rows = (text for change in changes for hunk in change.hunks for _, text in hunk.rows)
    # For a file such a line is two, of which a patch has no second sign.
    if any("\r" in content_of(text) for text in rows):
        raise PatchRefused("A line of the patch has a carriage return in its middle: change it by edit_file instead.")
    return changes


# --- the three operations


def _add(files: FileTexts, change: FileChange) -> None:
    if files.get(change.path) is not None:
        raise PatchRefused(f"{change.path}: the patch adds this file, but it exists already. Update it instead.")
    if any(hunk.old for hunk in change.hunks):
        raise PatchRefused(f"{change.path}: the patch adds this file, so all its lines have to begin with '+'.")
    files[change.path] = "".join(hunk.new for hunk in change.hunks)


def _delete(files: FileTexts, change: FileChange) -> None:
    text = _existing(files, change.path)
    if change.hunks:
        # By content: patches come with LF, whatever the file has.
        told = [content_of(line) for hunk in change.hunks for line in split_lines(hunk.old)]
        if any(hunk.new for hunk in change.hunks) or told != [content_of(line) for line in split_lines(text)]:
            raise PatchRefused(f"{change.path}: the patch deletes this file, but shows other lines than it has.")
    files[change.path] = None


def _update(files: FileTexts, change: FileChange) -> None:
    text = _existing(files, change.path)
    if not change.hunks and change.moved_to is None and change.runs is None:
        raise PatchRefused(f"{change.path}: the patch has no hunk for this file.")
    changed = _with_hunks(text, change)
    if change.moved_to is not None and change.moved_to != change.path:
        if files.get(change.moved_to) is not None:
            raise PatchRefused(f"{change.path}: cannot be moved to {change.moved_to}, which exists already.")
        files[change.path] = None
    files[change.moved_to or change.path] = changed


_OPERATIONS: Mapping[str, Callable[[FileTexts, FileChange], None]] = {"add": _add, "delete": _delete, "update": _update}


def _existing(files: FileTexts, path: str) -> str:
    text = files.get(path)
    if text is None:
        raise NoSuchFile(path)
    return text


def _with_hunks(text: str, change: FileChange) -> str:
    """Return `text` with all hunks applied; every hunk is matched against the original text."""
    bom = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    edits: list[Edit] = []
    drift = 0
    changes_some = not all(hunk.only_shows for hunk in change.hunks)
    numbers = _LineNumbers(text, change)
    for number, hunk in enumerate(change.hunks, 1):
        # Models add hunks of mere context to real ones; alone, such a hunk is refused.
        if hunk.only_shows and changes_some:
            continue
        try:
            edit, drift = _Placing(body, hunk, drift, numbers).run()
        except EditRefused as refused:
            message = f"{change.path}, hunk {number} of {len(change.hunks)}: {_in_patch_terms(refused)}"
            raise PatchRefused(message) from None
        # Before hunks are compared: two that share only their context do not overlap.
        edits.append(_trim(body, edit))
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.stop))
    for before, after in pairwise(ordered):
        # Two insertions at one point have no order.
        same_point = before.start == before.stop == after.start == after.stop
        if after.start < before.stop or same_point:
            raise PatchRefused(f"{change.path}: two hunks change the same lines. Join them into one hunk.")
    return bom + apply_edits(body, edits)


def _in_patch_terms(refused: EditRefused) -> str:
    return str(refused).replace("old_str", "the hunk's old block").replace("new_str", "the hunk's new block")


def _trim(text: str, edit: Edit) -> Edit:
    """Return the edit without the unchanged lines at its ends, so that hunks may share context."""
    old, new = split_lines(text[edit.start : edit.stop]), split_lines(edit.text)
    head, tail = shared_ends(old, new)
    start = edit.start + sum(map(len, old[:head]))
    stop = edit.stop - sum(map(len, old[len(old) - tail :]))
    return Edit(start, stop, "".join(new[head : len(new) - tail]), edit.tier)


class _LineNumbers:
    """Judges whether the line numbers of a patch are those of a text: for hunks that have no line around them."""

    def __init__(self, text: str, change: FileChange) -> None:
        self.text, self.change = text, change
        self.lines = [content_of(line) for line in split_lines(text.removeprefix(_BOM))]

    def problem(self, hunk: Hunk) -> str:
        """Return why the place of a hunk that only adds lines is not certain, in English; "" if it is."""
        told = hunk.numbers
        if told is None:
            return "it only adds lines; show some lines around them so that the place is clear."
        # Lines added behind line n have the number n + 1, shifted by what the hunks above add.
        if told.old_count or told.new_count != len(hunk.rows) or told.new != told.old + 1 + self._added_before(hunk):
            return (
                "it only adds lines, and its line numbers do not agree with its lines; show some lines around them so "
                "that the place is clear."
            )
        if told.old > len(self.lines) or not self._are_of_this_text(hunk):
            return (
                "it only adds lines, and its line numbers are not those of the file as it is now; show some lines "
                "around them so that the place is clear."
            )
        return ""

    def _added_before(self, hunk: Hunk) -> int:
        """Return how many more lines the text has above a hunk once the hunks before it are applied."""
        before = takewhile(lambda other: other is not hunk, self.change.hunks)
        return sum({"+": 1, "-": -1}.get(tag, 0) for other in before for tag, _ in other.rows)

    def _are_of_this_text(self, hunk: Hunk) -> bool:
        """Return whether nothing in the patch shows that it was made from another text than this."""
        blob = self.change.blob
        # With `core.autocrlf`, git keeps the text with LF while the file has CRLF.
        is_blob = bool(blob) and any(
            _blob(form).startswith(blob) for form in (self.text, with_newlines(self.text, "\n"))
        )
        if blob and not is_blob:
            return False
        # `-0,0` is also said of new files, and then the lines may be those of the whole file.
        if hunk.line == 0 and self.lines and not is_blob and self._repeats(hunk):
            return False
        section = hunk.numbers.section if hunk.numbers else ""
        if _OWN_LABEL.search(section):
            section = ""  # our own diffs name the hunk there
        # `diff` cuts the line that it shows there, so the whole one begins with it.
        if section and not any(line.strip().startswith(section) for line in self.lines[: hunk.line]):
            return False
        return all(self._stands(other) for other in self.change.hunks if other.old)

    def _repeats(self, hunk: Hunk) -> bool:
        """Return whether a hunk adds a line that the text has already, or as many lines as the text has: it may be the
        text itself, written anew.
        """
        own = {line.strip() for line in self.lines if any(map(str.isalnum, line))}
        return len(hunk.rows) >= len(self.lines) or any(text.strip() in own for _, text in hunk.rows)

    def _stands(self, hunk: Hunk) -> bool:
        """Return whether the old lines of a hunk stand where its number says."""
        old = [content_of(line) for line in split_lines(hunk.old)]
        return hunk.line is not None and self.lines[hunk.line - 1 : hunk.line - 1 + len(old)] == old


def _blob(text: str) -> str:
    """Return git's name for a text: the SHA-1 of its length and its bytes."""
    data = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class _Placing:
    """The search for the match of one hunk in a file. `drift` is by how many lines the previous line number was off."""

    def __init__(self, text: str, hunk: Hunk, drift: int, numbers: _LineNumbers) -> None:
        self.text, self.hunk, self.drift, self.numbers = text, hunk, drift, numbers
        self.lines = split_lines(text)
        self.contents = [content_of(line) for line in self.lines]
        self.old = [content_of(line) for line in split_lines(hunk.old)]
        self.new = [content_of(line) for line in split_lines(hunk.new)]

    def run(self) -> tuple[Edit, int]:
        """Return the edit and the drift for the next hunk; raises `EditRefused`."""
        if self.hunk.only_shows:
            raise EditRefused("empty", "it has no line that begins with '+' or '-'.")
        if not self.old:
            return self._insertion(), self.drift
        # By content alone; trailing blanks and the like are looked at only where nothing fits exactly.
        found = [at for at in range(len(self.lines)) if self._fits(at)]
        if not found:
            return plan_lines(self.text, self.hunk.old, self.hunk.new), self.drift
        at = self._chosen(found)
        edit = self._literal(at)
        if self._is_applied(at) or self.text[edit.start : edit.stop] == edit.text:
            raise EditRefused("already_applied", f"it seems to be applied already, at line {at + 1}.")
        # A wrong count of lines is wrong by the same number for the hunks that follow.
        return edit, self.drift if self.hunk.line is None else at + 1 - self.hunk.line

    def _fits(self, at: int) -> bool:
        return self.contents[at] == self.old[0] and self.contents[at : at + len(self.old)] == self.old

    def _is_applied(self, at: int) -> bool:
        """Return whether the new block already surrounds this match of the old one."""
        size = len(self.new)
        inner = (d for d in range(size - len(self.old) + 1) if self.new[d : d + len(self.old)] == self.old != self.new)
        return any(at >= d and self.contents[at - d : at - d + size] == self.new for d in inner)

    def _insertion(self) -> Edit:
        """Return the edit of a hunk without any old line: at the end of a file, into an empty one, or behind the line
        that it names, if the numbers of the patch are those of this text.
        """
        if self.lines and (self.hunk.line is not None or self.hunk.headers):
            if problem := self.numbers.problem(self.hunk):
                raise EditRefused("not_found", problem)
            return self._behind(self.hunk.line or 0)
        if self.new and self.contents[-len(self.new) :] == self.new:
            raise EditRefused("already_applied", "it seems to be applied already, at the end of the file.")
        newline = dominant_newline(self.text)
        joint = newline if self.lines and not ending_of(self.lines[-1]) else ""
        added = "".join(content_of(line) + newline * bool(ending_of(line)) for line in split_lines(self.hunk.new))
        return Edit(len(self.text), len(self.text), joint + added, "exact")

    def _behind(self, at: int) -> Edit:
        """Return the edit that adds the hunk's lines behind the first `at` lines."""
        if any(self.new) and self.contents[at : at + len(self.new)] == self.new:
            raise EditRefused("already_applied", f"it seems to be applied already, at line {at + 1}.")
        newline = ending_of(self.lines[max(at - 1, 0)]) or dominant_newline(self.text)
        joint = newline if at and not ending_of(self.lines[at - 1]) else ""
        added = "".join(row + newline for row in self.new)
        # Added at the end of the file: whether the last line ends is the patch's own matter then.
        if at == len(self.lines) and not self.hunk.new.endswith("\n"):
            added = added.removesuffix(newline)
        place = sum(map(len, self.lines[:at]))
        if runs_together([*self.lines[max(at - 1, 0) : at], *split_lines(joint + added), *self.lines[at : at + 1]]):
            raise EditRefused("not_found", "the mixed line ends of the file would run together.")
        return Edit(place, place, joint + added, "exact")

    # --- choosing between places that fit exactly

    def _chosen(self, found: list[int]) -> int:
        # Headers and the end of the file come from the text; line numbers are counted, which models do badly.
        for narrow in (self._under_headers, self._at_end, self._at_line):
            narrowed = narrow(found)
            if len(narrowed) == 1:
                return narrowed[0]
            found = narrowed or found
        numbers = ", ".join(str(at + 1) for at in found[:20])
        raise EditRefused("ambiguous", f"it fits at lines {numbers}. Show more lines around the change.")

    def _under_headers(self, found: list[int]) -> list[int]:
        if not self.hunk.headers:
            return found
        scopes = [(-1, len(self.lines))]
        for header in self.hunk.headers:
            scopes = [scope for start, stop in scopes for scope in self._scopes(header, start, stop)]
        # A header that is nowhere in the file is a paraphrase; then the lines of the hunk decide alone.
        if not scopes:
            return found
        # Models also name the function above the change rather than around it, so only what is above all headers is
        # wrong.
        first = min(start for start, _ in scopes)
        if all(at < first for at in found):
            raise EditRefused("not_found", f"its lines are not below '@@ {self.hunk.headers[-1]}'.")
        return [at for at in found if any(start <= at < stop for start, stop in scopes)]

    def _scopes(self, header: str, start: int, stop: int) -> list[tuple[int, int]]:
        """Return (start, stop) from each line that starts with the header to the end of what is indented below it."""
        return [
            (at, self._end_of_scope(at, stop))
            for at in range(max(start, 0), stop)
            if self.contents[at].strip().startswith(header)
        ]

    def _end_of_scope(self, at: int, stop: int) -> int:
        width = _indentation(self.contents[at])
        below = range(at + 1, stop)
        return next((i for i in below if self.contents[i].strip() and _indentation(self.contents[i]) <= width), stop)

    def _at_end(self, found: list[int]) -> list[int]:
        return [at for at in found if at + len(self.old) == len(self.lines)] if self.hunk.at_end else found

    def _at_line(self, found: list[int]) -> list[int]:
        """Return the matches at the patch's own line number, or at that number plus the drift."""
        if self.hunk.line is None:
            return found
        return [at for at in found if at + 1 in (self.hunk.line, self.hunk.line + self.drift)]

    # --- writing

    def _literal(self, at: int) -> Edit:
        """Return the edit at line `at`: kept rows as the file has them, added rows with the line ending used there."""
        stop = at + len(self.old)
        out: list[str] = []
        here, gone = at, deque[str]()
        for tag, row in self.hunk.rows:
            if tag == "+":
                # The end of the line in whose place it comes.
                near = ending_of(gone.popleft() if gone else self.lines[min(here, stop - 1)])
                out.append(content_of(row) + (near or dominant_newline(self.text)))
                continue
            if tag == " ":
                gone.clear()
                out.append(self.lines[here])
            else:
                gone.append(self.lines[here])
            here += 1
        if runs_together([*self.lines[max(at - 1, 0) : at], *out, *self.lines[stop : stop + 1]]):
            raise EditRefused("not_found", "the mixed line ends of the file would run together.")
        start = sum(map(len, self.lines[:at]))
        size = sum(map(len, self.lines[at:stop]))
        return Edit(start, start + size, self._with_ending(out, stop), "exact")

    def _with_ending(self, out: list[str], stop: int) -> str:
        """Join the lines, each with an ending; the file's last line ends as the patch says, or else as it did."""
        newline = dominant_newline(self.text)
        ended = [line if ending_of(line) else line + newline for line in out]
        if stop < len(self.lines) or not ended:
            return "".join(ended)
        # Only a row with `\ No newline at end of file` behind it shows that the patch means the last line's end.
        told = any(not row.endswith("\n") for _, row in self.hunk.rows)
        final = self.hunk.new.endswith("\n") if told else bool(ending_of(self.lines[-1]))
        return "".join(ended) if final else "".join(ended[:-1]) + content_of(ended[-1])


def _indentation(content: str) -> int:
    return len(content) - len(content.lstrip())


# Parser of the `*** Begin Patch` format: one section per file, hunks without line numbers.


def parse_begin(lines: list[str]) -> list[FileChange]:
    """Parse the changes between `*** Begin Patch` and `*** End Patch` from lines without their ends, and return them in
    order. PatchRefused when one is malformed or the end is missing; ValueError without a beginning.
    """
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
        for start, read in (
            (_ADD, self._parse_addition),
            (_DELETE, self._parse_deletion),
            (_UPDATE, self._parse_update),
        ):
            if line.startswith(start):
                return read(_name(line.removeprefix(start)))
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
        # Models part sections by blank lines; a blank line of the file has at least its sign.
        while body and not body[-1]:
            body.pop()
        return body

    def _parse_addition(self, path: str) -> FileChange:
        body = self._body()
        bad = next((line for line in body if not line.startswith("+")), None)
        if bad is not None:
            raise PatchRefused(f"In '*** Add File: {path}' every line begins with '+', but not {bad[:80]!r}.")
        return FileChange("add", path, hunks=(Hunk(tuple(("+", line[1:] + "\n") for line in body)),))

    def _parse_deletion(self, path: str) -> FileChange:
        if self._body():
            raise PatchRefused(f"'*** Delete File: {path}' is followed by lines that do not belong there.")
        return FileChange("delete", path)

    def _parse_update(self, path: str) -> FileChange:
        body = self._body()
        moved = _name(body.pop(0).removeprefix(_MOVE)) if body and body[0].startswith(_MOVE) else None
        hunks: list[Hunk] = []
        headers: list[str] = []
        rows: list[tuple[str, str]] = []
        # The `@@` behind the last row closes its hunk.
        for line in [*body, "@@"]:
            if line.startswith("@@"):
                if rows:
                    hunks.append(Hunk(tuple(rows), headers=tuple(headers)))
                    headers, rows = [], []
                header = line.strip("@ ")
                # Several in a row narrow the place: the class, then the method.
                headers += [header] if header else []
            elif line.strip() == _END_OF_FILE:
                hunks.append(Hunk(tuple(rows), headers=tuple(headers), at_end=True))
                headers, rows = [], []
            else:
                rows.append(_row(path, line))
        if headers:
            raise PatchRefused(f"In '*** Update File: {path}' the last '@@' is followed by no lines.")
        return FileChange("update", path, moved, tuple(hunk for hunk in hunks if hunk.rows))


def _name(text: str) -> str:
    return unquote_name(text) or text.strip().removeprefix("./")


def _row(path: str, line: str) -> tuple[str, str]:
    # A blank context line whose sign was stripped on the way.
    if not line:
        return (" ", "\n")
    if line[0] not in " -+":
        message = "every line of a hunk begins with a blank, '-' or '+'"
        raise PatchRefused(f"In '*** Update File: {path}' {message}, but not {line[:80]!r}.")
    return (line[0], line[1:] + "\n")
