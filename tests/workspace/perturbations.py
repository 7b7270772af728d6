"""Edits as models get them wrong, made from the hunks of any git history.

`hunks_from_git` reads real edits: the file before, the old block and the new block. `perturb` turns one into cases:
a row name, the file, what a model would send, and the file that has to come out (None: the edit must be refused).
Not here: running the cases (`tests/bench/edits.py`, `test_match_history.py`).
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROWS_OK = {
    "exact": 100.0,
    "trailing blanks": 100.0,
    "trailing blanks in both": 100.0,
    "CRLF file": 100.0,
    "CRLF in the edit": 100.0,
    "dedented to column 0": 99.0,
    "one level off": 99.0,
    "one level too deep": 99.0,
    "leading blank line added": 99.0,
    "Unicode punctuation in the file": 100.0,
    "blank line dropped": 95.0,
    "typo in a context line": 95.0,
    "typo in both": 95.0,
}
ROWS_APPLIED = {"blank line dropped in both": 95.0}  # a blank line may come out on the other side of new lines
ROWS_EITHER = ("over-escaped quotes", "two at once")
ROWS_REFUSED = ("invented middle", "already applied", "ambiguous", "user inserted a line", "... elision")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_INDEX = re.compile(r"index ([0-9a-f]{40})\.\.[0-9a-f]{40}")


@dataclass(frozen=True)
class Hunk:
    """One real edit: the file before, and its tagged lines: ` ` kept, `-` removed, `+` added, with endings."""

    text: str
    tagged: tuple[tuple[str, str], ...]

    @property
    def old(self) -> str:
        return "".join(line for tag, line in self.tagged if tag != "+")

    @property
    def new(self) -> str:
        return "".join(line for tag, line in self.tagged if tag != "-")

    @property
    def expected(self) -> str:
        return self.text.replace(self.old, self.new)


@dataclass(frozen=True)
class Case:
    """One call of the engine; `expected` is the text that must come out, None where it must refuse."""

    row: str
    text: str
    old: str
    new: str
    expected: str | None


def hunks_from_git(
    repo: Path, limit: int, *, suffix: str = ".py", shortest: int = 5, longest: int = 25, per_commit: int = 3
) -> list[Hunk]:
    """Up to `limit` hunks of `shortest`..`longest` old lines that occur exactly once, the newest commits first.

    `repo` is a work tree or a bare repository.
    """
    command = ["git", "-C", str(repo), "log", "-p", "-U3", "--full-index", "--no-merges", "--diff-filter=M"]
    command += ["--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "-n", str(limit * 4)]
    command += ["--format=%x01", "--", f"*{suffix}"]
    log = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    hunks: list[Hunk] = []
    for commit in log.split("\x01"):
        wanted = min(per_commit, limit - len(hunks))
        hunks += _hunks_of_commit(repo, commit, wanted, range(shortest, longest + 1))
        if len(hunks) >= limit:
            break
    return hunks


def _hunks_of_commit(repo: Path, commit: str, wanted: int, sizes: range) -> list[Hunk]:
    found: list[Hunk] = []
    for part in re.split(r"^diff --git ", commit, flags=re.MULTILINE)[1:]:
        index = _INDEX.search(part)
        tagged = [rows for rows in _tagged_hunks(part) if sum(tag != "+" for tag, _ in rows) in sizes]
        if not index or not tagged or len(found) >= wanted:
            continue
        text = _blob(repo, index.group(1))
        if text is None or "\r" in text:
            continue
        hunks = (Hunk(text, rows) for rows in tagged)
        found += [hunk for hunk in hunks if text.count(hunk.old) == 1 and hunk.new.strip()]
    return found[:wanted]


def _blob(repo: Path, name: str) -> str | None:
    done = subprocess.run(["git", "-C", str(repo), "cat-file", "blob", name], capture_output=True)
    try:
        return done.stdout.decode("utf-8") if done.returncode == 0 else None
    except UnicodeDecodeError:
        return None


def _tagged_hunks(part: str) -> Iterator[tuple[tuple[str, str], ...]]:
    rows: list[tuple[str, str]] = []
    for line in part.split("\n"):
        if _HUNK.match(line):
            if rows:
                yield tuple(rows)
            rows = []
        elif line[:1] in (" ", "-", "+") and not line.startswith(("--- ", "+++ ")):
            rows.append((line[0], line[1:] + "\n"))
        elif line.startswith("\\") and rows:
            rows[-1] = (rows[-1][0], rows[-1][1][:-1])
    if rows:
        yield tuple(rows)


def perturb(hunk: Hunk, seed: int) -> Iterator[Case]:
    """Every case that this hunk allows; the same seed gives the same cases."""
    rng = random.Random(seed)
    for make in (_whitespace, _indentation, _blank_lines, _characters, _refusals, _combined):
        yield from make(hunk, rng)


def _lines(text: str) -> list[str]:
    return text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")


def _whitespace(hunk: Hunk, rng: random.Random) -> Iterator[Case]:
    text, old, new, expected = hunk.text, hunk.old, hunk.new, hunk.expected
    yield Case("exact", text, old, new, expected)
    noisy = "".join(
        line.rstrip("\n") + rng.choice(["", " ", "  ", "\t"]) + "\n" * line.endswith("\n")
        for line in old.splitlines(keepends=True)
    )
    if noisy != old:
        yield Case("trailing blanks", text, noisy, new, expected)
    blank = {line: line.rstrip("\n") + "  \n" for line in old.splitlines(keepends=True) if line.endswith("\n")}
    both = "".join(blank.get(line, line) for line in new.splitlines(keepends=True))
    if not re.search(r"[ \t]$", old + new, re.MULTILINE):
        yield Case("trailing blanks in both", text, "".join(map(_padded, old.splitlines(True))), both, expected)
    crlf = text.replace("\n", "\r\n")
    yield Case("CRLF file", crlf, old, new, expected.replace("\n", "\r\n"))
    yield Case("CRLF in the edit", text, old.replace("\n", "\r\n"), new.replace("\n", "\r\n"), expected)


def _padded(line: str) -> str:
    return line.rstrip("\n") + "  " + "\n" * line.endswith("\n")


def _indentation(hunk: Hunk, rng: random.Random) -> Iterator[Case]:
    text, expected = hunk.text, hunk.expected
    lines = [line for line in _lines(hunk.old) + _lines(hunk.new) if line.strip()]
    common = min(len(line) - len(line.lstrip(" ")) for line in lines)
    for row, amount in (("dedented to column 0", common), ("one level off", 4 if common > 4 else 0)):
        old, new = _outdent(hunk.old, amount), _outdent(hunk.new, amount)
        if amount and old != new:  # of an edit of blank lines' blanks nothing is left
            yield Case(row, text, old, new, expected)
    yield Case("one level too deep", text, _indent(hunk.old), _indent(hunk.new), expected)


def _outdent(block: str, amount: int) -> str:
    return re.sub(rf"^ {{0,{amount}}}", "", block, flags=re.MULTILINE)


def _indent(block: str) -> str:
    return re.sub(r"^(?=[^\n])", "    ", block, flags=re.MULTILINE)


def _blank_lines(hunk: Hunk, rng: random.Random) -> Iterator[Case]:
    text, old, new, expected = hunk.text, hunk.old, hunk.new, hunk.expected
    yield Case("leading blank line added", text, "\n" + old, "\n" + new, expected)
    rows = hunk.tagged
    kept = [i for i, (tag, line) in enumerate(rows) if tag == " " and not line.strip()]
    inner = [i for i in kept if _has_text(rows[:i]) and _has_text(rows[i + 1 :])]
    if inner:
        drop = rng.choice(inner)
        less = Hunk(text, rows[:drop] + rows[drop + 1 :])
        if re.sub(r"\s*\n", "\n", less.old) != re.sub(r"\s*\n", "\n", new):  # else there is nothing left to edit
            yield Case("blank line dropped", text, less.old, new, expected)
        if less.old != less.new:
            yield Case("blank line dropped in both", text, less.old, less.new, expected)


def _has_text(rows: tuple[tuple[str, str], ...]) -> bool:
    return any(line.strip() for tag, line in rows if tag != "+")


def _characters(hunk: Hunk, rng: random.Random) -> Iterator[Case]:
    text, old, new, expected = hunk.text, hunk.old, hunk.new, hunk.expected
    once = {line for _, line in hunk.tagged if [row for _, row in hunk.tagged].count(line) == 1}
    context = [i for i, (tag, line) in enumerate(hunk.tagged) if tag == " " and len(line.strip()) > 7]
    context = [i for i in context if hunk.tagged[i][1] in once]
    if context:
        at = rng.choice(context)
        wrong = _typo(hunk.tagged[at][1], rng)
        bad = Hunk(text, (*hunk.tagged[:at], (" ", wrong), *hunk.tagged[at + 1 :]))
        yield Case("typo in a context line", text, bad.old, new, expected)
        yield Case("typo in both", text, bad.old, bad.new, expected)
    if '"' in old:
        yield Case("over-escaped quotes", text, _escaped(old), _escaped(new), expected)
    fancy = tuple((tag, _typographic(line) if tag != "+" else line) for tag, line in hunk.tagged)
    there = Hunk(text.replace(old, Hunk(text, fancy).old), fancy)
    if there.old != old:
        yield Case("Unicode punctuation in the file", there.text, old, new, there.expected)
        yield Case("Unicode punctuation in the edit", text, there.old, there.new, expected)


def _escaped(block: str) -> str:
    return block.replace('"', '\\"')


def _typographic(line: str) -> str:
    line = re.sub(r'"([^"\n]*)"', "\u201c\\1\u201d", line)
    line = re.sub(r"'([^'\n]*)'", "\u2018\\1\u2019", line)
    return line.replace("...", "\u2026").replace(" - ", " \u2013 ").replace("# ", "#\u00a0")


def _typo(line: str, rng: random.Random) -> str:
    """One letter of a word of at least three letters replaced, dropped or doubled."""
    words = list(re.finditer(r"[A-Za-z]{3,}", line))
    if not words:
        return line[:-2] + line[-1:]
    word = rng.choice(words)
    at = rng.randrange(word.start(), word.end())
    letter = rng.choice([c for c in "abcdefghijklmnopqrstuvwxyz" if c != line[at]])
    return line[:at] + rng.choice([letter, "", line[at] * 2]) + line[at + 1 :]


def _refusals(hunk: Hunk, rng: random.Random) -> Iterator[Case]:
    text, old, new = hunk.text, hunk.old, hunk.new
    lines = old.splitlines(keepends=True)
    middle = len(lines) // 2
    pad = re.match(r"\s*", lines[middle].rstrip("\n"))
    indent = pad.group() if pad else ""
    invented = [*lines[: middle - 1], f"{indent}self.refresh_all(force=True)\n", *lines[middle + 1 :]]
    yield Case("invented middle", text, "".join(invented), new, None)
    if old not in hunk.expected:
        yield Case("already applied", hunk.expected, old, new, None)
        yield Case("already applied", hunk.expected, _indent(old), _indent(new), None)
    apart = "" if text.endswith("\n") else "\n"
    yield Case("ambiguous", text + apart + "\n" + old, old, new, None)
    yield Case("ambiguous", text + apart + "\n" + old, _indent(old), _indent(new), None)
    inserted = [*lines[:middle], f"{indent}audit(42)  # added by hand\n", *lines[middle:]]
    yield Case("user inserted a line", text.replace(old, "".join(inserted)), old, new, None)
    if len(lines) >= 7:
        elided = [*lines[:2], f"{indent}...\n", *lines[-2:]]
        yield Case("... elision", text, "".join(elided), new, None)
        yield Case("... elision", text, "".join([*lines[:2], f"{indent}# ...\n", *lines[-2:]]), new, None)


def _combined(hunk: Hunk, rng: random.Random) -> Iterator[Case]:
    """Two mistakes in one edit: it may be refused, but never come out otherwise than meant."""
    rows = [case for make in (_indentation, _blank_lines, _characters) for case in make(hunk, rng)]
    for case in rows:
        if case.row in ("dedented to column 0", "blank line dropped", "typo in a context line"):
            noisy = "".join(map(_padded, case.old.splitlines(keepends=True)))
            yield Case("two at once", case.text, noisy, case.new, case.expected)
        if case.row in ("blank line dropped", "typo in both", "leading blank line added"):
            yield Case("two at once", case.text, _indent(case.old), _indent(case.new), case.expected)
