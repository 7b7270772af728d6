"""A diagnostic as a value, read from the form of LSP, and what a change made worse or better: the diagnostics of its
new text that the old one did not have, and the other way round. Pure, but for the ports of the client's own diagnostics
and of language servers.

Not here: getting the diagnostics (`linters.py`, `syntax.py`, `tools/edit_diagnostics.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, offset_at, position_at, split_lines
from codeagent_lsp.workspace.text.visible import cut, printable_line

if TYPE_CHECKING:
    from codeagent_lsp.language_servers.session_servers import FoundDiagnostics
    from codeagent_lsp.workspace.files.file_view import FileView

Severity = Literal["error", "warning", "info", "hint"]
MAX_ITEMS = 500
MAX_MESSAGE = 2000
_SEVERITIES: dict[Any, Severity] = {1: "error", 2: "warning", 3: "info", 4: "hint"}
MAX_LINES = 10
_MAX_MESSAGE = 200
_COUNTED = ("error", "warning")

Key = tuple[str, str, str, str, str]
MAX_SHOWN = 50
_SHOWN_CHARS = 300
_RANK = {"error": 0, "warning": 1, "info": 2, "hint": 3}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem in a file.

    `path` is absolute; `line` and `column` are 1-based, `column` in characters. `source` names the linter; `code` may
    be ''.
    """

    path: str
    line: int
    column: int
    severity: Severity
    message: str
    source: str = ""
    code: str = ""


class Diagnostics(Protocol):
    """Port: the diagnostics that the client shows."""

    async def of(self, path: str) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics of an open file (absolute path) for its current buffer; None if the client has none to
        give. Never raises.
        """


class ServersWithDiagnostics(Protocol):
    """Port: the language servers of a session."""

    async def diagnostics(
        self, view: FileView, paths: Sequence[str], seconds: float
    ) -> dict[str, tuple[FoundDiagnostics, ...] | None]:
        """Return for each file (absolute path) that has servers the diagnostics of its text in `view`, from each
        server; None if they are not known within so many seconds.
        """


def from_lsp(
    items: Sequence[Any], path: str, text: str, encoding: Encoding, lines: LineIndex | None = None
) -> tuple[Diagnostic, ...]:
    """Return LSP diagnostics of a text, JSON data with positions in `encoding`, as `Diagnostic`s of the file `path`;
    only the first 500 are read, and invalid ones are left out.
    """
    lines = lines or LineIndex.of(text)
    made = (_diagnostic(item, path, text, lines, encoding) for item in items[:MAX_ITEMS])
    return tuple(item for item in made if item is not None)


def _diagnostic(item: Any, path: str, text: str, lines: LineIndex, encoding: Encoding) -> Diagnostic | None:
    message, start = _get(item, "message"), _get(_get(item, "range"), "start")
    line, character = _get(start, "line"), _get(start, "character")
    if not (isinstance(message, str) and _is_count(line) and _is_count(character)):
        return None
    # Into characters, as people and models count columns.
    place = position_at(text, lines, offset_at(text, lines, (line, character), encoding), "utf-32")
    # Where a server gives no severity, LSP leaves it to the client.
    severity = _SEVERITIES.get(_get(item, "severity"), "warning")
    source, code = _get(item, "source"), _get(item, "code")
    return Diagnostic(
        path,
        place.line + 1,
        place.character + 1,
        severity,
        message[:MAX_MESSAGE],
        source[:100] if isinstance(source, str) else "",
        str(code)[:100] if isinstance(code, str | int) else "",
    )


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The diagnostics that a change made (`new`, places in the new texts) and removed (`fixed`, places in the old
    ones). `unknown` are the absolute paths of files that could not be checked in time; `sources` name what has checked
    the others, besides their syntax.
    """

    new: tuple[Diagnostic, ...] = ()
    fixed: tuple[Diagnostic, ...] = ()
    unknown: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        """The number of errors among the new diagnostics."""
        return sum(item.severity == "error" for item in self.new)


def difference(
    base: Iterable[Diagnostic],
    staged: Iterable[Diagnostic],
    texts: Mapping[str, tuple[str, str]],
    unknown: Iterable[str] = (),
    sources: Iterable[str] = (),
) -> Difference:
    """Return the difference of errors and warnings. `texts` has the old and the new text of each file that changed, by
    path; a diagnostic moves along with its line.

    One that says the same on the same line is the same. What is left over in changed lines is matched by what it says,
    as a line that was rewritten may keep its problem.
    """
    before, after = _only_counted(base), _only_counted(staged)
    told_of = {item.path for item in (*before, *after)}
    lines = {path: _Lines(old, new) for path, (old, new) in texts.items() if path in told_of}

    def now(item: Diagnostic) -> int:
        return lines[item.path].after.get(item.line, 0) if item.path in lines else item.line

    def is_written(item: Diagnostic) -> bool:
        return item.path in lines and item.line in lines[item.path].written

    # One for one: a second problem of the same words on a line is a new one.
    old, new = _without_partners(
        before, after, lambda item: (_key(item), now(item)), lambda item: (_key(item), item.line)
    )
    gone, written = [item for item in old if not now(item)], [item for item in new if is_written(item)]
    removed, made = _without_partners(gone, written, _key, _key)
    fixed = [item for item in old if now(item)] + removed
    return Difference(
        sort_diagnostics([item for item in new if not is_written(item)] + made),
        sort_diagnostics(fixed),
        tuple(unknown),
        tuple(sources),
    )


def since(found: Difference, before: Difference) -> Difference:
    """Return what a difference has that an earlier one of the same run did not have: problems that are new since, and
    those that are fixed since, of the user's text or of an earlier edit.
    """
    made, mended = _without_partners(list(before.new), list(found.new), _key, _key)
    _, fixed = _without_partners(list(before.fixed), list(found.fixed), _key, _key)
    return Difference(tuple(mended), (*fixed, *made), found.unknown, found.sources)


def describe_difference(found: Difference, name: Callable[[str], str]) -> str:
    """Return the difference for a reader: "Diagnostics: 2 fixed, 1 new:", with at most 10 lines for the new ones; '' if
    there is none. `name` makes a shown name of an absolute path.
    """
    counts = [f"{len(found.fixed)} fixed"] if found.fixed else []
    counts += [f"{len(found.new)} new"] if found.new else []
    if not counts:
        return ""
    lines = [f"Diagnostics: {', '.join(counts)}{':' if found.new else '.'}", *new_lines(found, name)]
    return "\n".join(lines)


def new_lines(found: Difference, name: Callable[[str], str]) -> tuple[str, ...]:
    """Return a line for each new diagnostic, `path:line:column severity message` with the path as `name` shows it, the
    worst first, at most 10 in all; the last then says how many more there are.
    """
    shown = found.new if len(found.new) <= MAX_LINES else found.new[: MAX_LINES - 1]
    lines = [
        f"{name(item.path)}:{item.line}:{item.column} {item.severity} {printable_line(item.message, _MAX_MESSAGE)}"
        for item in shown
    ]
    if len(shown) < len(found.new):
        lines.append(f"(and {len(found.new) - len(shown)} more)")
    return tuple(lines)


def _only_counted(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [item for item in found if item.severity in _COUNTED]


def _without_partners(
    before: list[Diagnostic],
    after: list[Diagnostic],
    old_key: Callable[[Diagnostic], object],
    new_key: Callable[[Diagnostic], object],
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Return those of each side that have no partner with an equal key on the other, one for one."""
    return _beyond(before, old_key, Counter(map(new_key, after))), _beyond(
        after, new_key, Counter(map(old_key, before))
    )


def _beyond(
    found: list[Diagnostic], key: Callable[[Diagnostic], object], partners: Counter[object]
) -> list[Diagnostic]:
    left = []
    for item in found:
        if partners[key(item)] > 0:
            partners[key(item)] -= 1
        else:
            left.append(item)
    return left


def _key(item: Diagnostic) -> Key:
    return item.path, item.severity, item.source, item.code, " ".join(item.message.split())


class _Lines:
    """How the lines of a text moved, 1-based: `after` maps unchanged ones to their new number, `written` are new."""

    def __init__(self, old: str, new: str) -> None:
        self.after: dict[int, int] = {}
        self.written: set[int] = set()
        place = shift = 0
        for run in (*merge.runs(old, new), merge.Run(*_ends(old, new))):
            self.after.update((number + 1, number + 1 + shift) for number in range(place, run.old_start))
            self.written.update(range(run.new_start + 1, run.new_end + 1))
            place, shift = run.old_end, run.new_end - run.old_end


def _ends(old: str, new: str) -> tuple[int, int, int, int]:
    """Return the empty run behind the last lines, where diagnostics of a whole file may stand."""
    return len(split_lines(old)) + 1, len(split_lines(old)) + 1, len(split_lines(new)) + 1, len(split_lines(new)) + 1


# Presentation of diagnostics to the model: errors first, then by place, a bounded number. Pure functions.


def sort_diagnostics(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics without duplicates, the worst first, then by file, line and column."""
    return tuple(
        sorted(dict.fromkeys(found), key=lambda item: (_RANK[item.severity], item.path, item.line, item.column))
    )


def show(found: tuple[Diagnostic, ...], name: Callable[[str], str]) -> str:
    """Return one line for each diagnostic, at most 50, and the total if there are more; '' for none. `name` makes a
    shown name of an absolute path.
    """
    lines = [_line(item, name) for item in found[:MAX_SHOWN]]
    if len(found) > MAX_SHOWN:
        errors = sum(item.severity == "error" for item in found)
        lines.append(f"(and {len(found) - MAX_SHOWN} more; {errors} errors in all)")
    return "\n".join(lines)


def _line(item: Diagnostic, name: Callable[[str], str]) -> str:
    short = cut(" ".join(item.message.split()), _SHOWN_CHARS)
    plain = "".join(char if char.isprintable() else " " for char in short)
    words = (f"{name(item.path)}:{item.line}:{item.column}", item.severity, item.code, plain)
    return " ".join(filter(None, words)) + (f" ({item.source})" if item.source else "")
