"""Presentation of changes as text: a list of the files with their counts, then the diffs that fit. Pure functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codeagent_lsp.tools.git.comparing import Change, Changes
from codeagent_lsp.workspace.changes.changeset import FileChange
from codeagent_lsp.workspace.edits import merge

MAX_LISTED = 100
MAX_UNTRACKED_SHOWN = 20

Name = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Shown:
    """The line of a file in the list, and its diff, '' if there is no text."""

    line: str
    diff: str


def show(changes: Changes, name: Name, limit: int, order: Callable[[Change], int] = lambda change: 0) -> str:
    """Return at most about `limit` characters: the list, then the diffs sorted by `order`, then what was left out.

    `name` shortens paths. '' if nothing differs.
    """
    shown = [_shown(item, name) for item in sorted(_with_renames(changes.items), key=lambda pair: order(pair[0]))]
    parts = [item.line for item in shown[:MAX_LISTED]]
    if hidden := max(0, len(shown) - MAX_LISTED) + changes.more:
        parts.append(f"(and {hidden} more files)")
    if changes.untracked:
        parts.append(_untracked(changes.untracked, name))
    return "\n".join([*parts, *_diffs(shown, limit - sum(map(len, parts)))])


def quoted(name: str) -> str:
    """Return a name as git shows it: in quotes and escaped if it has control characters or undecodable bytes."""
    if name.isprintable() and '"' not in name:
        return name
    escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
                      for byte in os.fsencode(name))  # fmt: skip
    return f'"{escaped}"'


def _with_renames(items: Sequence[Change]) -> list[tuple[Change, str | None]]:
    """Return the changes with their former paths: a deleted and an added file with the same text are a rename."""
    gone = {item.before: item.path for item in items if item.status == "D" and item.before}
    moved: dict[str, str] = {}
    for item in items:
        if item.status == "A" and item.after in gone:
            moved[item.path] = gone.pop(item.after)
    sources = set(moved.values())
    return [(item, moved.get(item.path)) for item in items if item.path not in sources]


def _shown(pair: tuple[Change, str | None], name: Name) -> _Shown:
    item, source = pair
    label = quoted(name(item.path))
    if source is not None:
        return _Shown(f"R {quoted(name(source))} -> {label}", "")
    note = f" ({item.note})" if item.note else ""
    if not item.textual:
        return _Shown(f"{item.status} {label}{note}", "")
    change = FileChange(item.path, item.before, item.after)
    added, removed = change.counts()
    return _Shown(f"{item.status} {label} +{added} -{removed}{note}", _diff(item, label))


def _diff(item: Change, label: str) -> str:
    old = "/dev/null" if item.status == "A" else f"a/{label}"
    new = "/dev/null" if item.status == "D" else f"b/{label}"
    return merge.unified_diff(item.before or "", item.after or "", old, new)


def _diffs(shown: Sequence[_Shown], room: int) -> list[str]:
    """Return the diffs that fit into `room` characters, and a line that counts the others."""
    parts: list[str] = []
    left_out = 0
    for item in shown:
        if len(item.diff) <= room:
            room -= len(item.diff)
            parts += ["", item.diff.rstrip("\n")] if item.diff else []
        else:
            left_out += 1
    return [*parts, f"\n({left_out} diffs left out; name a path to see one)"] if left_out else parts


def _untracked(paths: Sequence[str], name: Name) -> str:
    names = ", ".join(quoted(name(path)) for path in paths[:MAX_UNTRACKED_SHOWN])
    more = len(paths) - MAX_UNTRACKED_SHOWN
    return f"Untracked: {names}" + (f" and {more} more" if more > 0 else "")
