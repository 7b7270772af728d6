"""Repairs the callers of what the user has changed by hand, as far as a language server proves it.

Concerned is what the server calls wrong with the change and did not without. A repair counts if the server, on exactly
the repaired texts, no longer says so and says nothing new. Not here: which repairs there are (`sites.py`), which files
are looked at and when (`server/finish_changes.py`).
"""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from codeagent_lsp.inline.finish_change.changes import Change, changes_of
from codeagent_lsp.inline.finish_change.sites import Site, apply_edits, sites
from codeagent_lsp.inline.next_edit.parsed_text import parsed_text
from codeagent_lsp.tools.diagnostics.difference import Diagnostic, ServersWithDiagnostics, difference, from_lsp
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.position import split_lines

if TYPE_CHECKING:
    from codeagent_lsp.inline.finish_change.moves import Edit
    from codeagent_lsp.language_servers.session_servers import FoundDiagnostics

MOST_FILES = 200
MOST_CHECKED = 60
"""The most files that a server is asked about, of those that name what has changed."""
MOST_ROUNDS = 6
SECONDS = 60.0
_WORD = re.compile(r"[^\W\d]\w+")
_IMPORT = re.compile(r"\s*(?:import|from|export)\b")
_UNBOUND = "Unbound"
"""In the code of pyright's warning that a name may have no value: for a repair it counts as an error."""


Over = Callable[[Mapping[str, str]], FileView]
"""Returns the user's files with other texts for some of them, by absolute path."""


@dataclass(frozen=True, slots=True)
class CallerPlace:
    """A place that the change broke: the absolute path, and the 0-based line in the user's text."""

    path: str
    line: int


@dataclass(frozen=True)
class Finished:
    """The proved repairs of some changes: new texts by absolute path, the places that they repair and those that are
    left. `checked` is False if no language server answered.
    """

    changes: tuple[Change, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    repaired: tuple[Site, ...] = ()
    left: tuple[CallerPlace, ...] = ()
    checked: bool = True

    @property
    def title(self) -> str:
        """The changes on one line for the user: the first one and the number of the others, such as `f(a) → f(a, b)
        +2`; '' for none.
        """
        titles = tuple(dict.fromkeys(each.title for each in self.changes))
        return f"{titles[0]} +{len(titles) - 1}" if len(titles) > 1 else "".join(titles)


def changed_declarations(bases: Mapping[str, str], texts: Mapping[str, str]) -> tuple[Change, ...]:
    """Return at most 12 changes of declarations that the user made, [] for none. `bases` are the texts before, `texts`
    those of now, both by path; a file missing in `texts`, in a language without a grammar, or with new syntax errors is
    left out. Parses and blocks.
    """
    pairs = []
    for path, base in bases.items():
        now = texts.get(path)
        if now is None or now == base:
            continue
        before, after = parsed_text(path, base), parsed_text(path, now)
        if before is not None and after is not None:
            pairs.append((before, after))
    return changes_of(pairs)


def affected_places(changes: Sequence[Change], texts: Mapping[str, str]) -> dict[str, list[Site]]:
    """Return the places that may be broken by changes, by the path of their file, files with clear repairs first; {} if
    there are none. Parses all texts that have the old names and blocks.
    """
    found: dict[str, list[Site]] = {}
    for path, text in texts.items():
        parsed = parsed_text(path, text) if any(change.word in text for change in changes) else None
        here = [site for change in changes for site in sites(parsed, change)] if parsed is not None else []
        if here:
            found[path] = here
    return dict(sorted(found.items(), key=lambda item: not any(site.edits for site in item[1])))


async def finish(
    changes: Sequence[Change],
    bases: Mapping[str, str],
    texts: Mapping[str, str],
    servers: ServersWithDiagnostics,
    over: Over,
    seconds: float = SECONDS,
) -> Finished:
    """Return the repairs in the files of `texts` (absolute paths) that the language servers prove right, in at most
    `seconds`; nothing is written. What is not known by then is left alone, and so are all but the first 60 files that
    name a change. May be cancelled.
    """
    places = await asyncio.to_thread(affected_places, changes, texts)
    if not any(site.edits for found in places.values() for site in found):
        return Finished(tuple(changes))
    paths = list(places)[:MOST_CHECKED]
    defined_in = [path for path in dict.fromkeys(change.path for change in changes) if path in texts]
    # Only what is looked at, and what the user has changed, need be open in the servers.
    texts = {path: text for path, text in texts.items() if path in bases or path in paths}
    before = {path: bases.get(path, text) for path, text in texts.items()}
    check = _Check(servers, over, time.monotonic() + seconds)
    # Asked with the change first: where nothing is wrong now, nothing has to be asked about the text before.
    now = await check.errors(texts, list(dict.fromkeys((*paths, *defined_in))))
    work = _Repairs(changes, {path: texts[path] for path in now}, now, places)
    wrong = [*dict.fromkeys((*work.wrong(), *(path for path in defined_in if now.get(path))))]
    was = await check.errors(before, wrong) if wrong else {}
    brought = {path: _brought(was[path], now[path], before[path], texts[path]) for path in was}
    # Of the errors of now, only those that the change brought: what was wrong before is none of ours.
    sound = [change for change in changes if is_sound(change, brought.get(change.path, ()), texts)]
    await asyncio.to_thread(work.begin, brought, sound)
    for _ in range(MOST_ROUNDS):
        if not work.chosen:
            break
        # The proof: a repair counts only if the servers find nothing wrong with it.
        after = await check.errors({**texts, **work.texts()}, list(now))
        # Nothing to take back or to add: what is chosen now is proved.
        if not await asyncio.to_thread(work.judge, after):
            return work.finished()
    return Finished(tuple(changes), {}, (), work.left(), bool(now))


def is_sound(change: Change, brought: Iterable[Diagnostic], texts: Mapping[str, str]) -> bool:
    """Return whether the server understands a changed definition, by the diagnostics that the change `brought` to its
    file. If, for instance, a type in it does not exist, the server says nothing about callers, which would prove any
    repair right.
    """
    text, after = texts.get(change.path, ""), change.after
    data = text.encode("utf-8", "replace")
    start, end = after.node_range[0], after.node_range[1] - len(after.body.encode("utf-8", "replace"))
    if after.kind == "class" and after.signature is None:
        end = after.name_range[1]
    head = data[start:end].decode("utf-8", "replace")
    first = data[:start].count(b"\n") + 1
    name = data[: after.name_range[0]].count(b"\n") + 1
    column = (
        len(data[data.rfind(b"\n", 0, after.name_range[0]) + 1 : after.name_range[0]].decode("utf-8", "replace")) + 1
    )
    words, lines = set(_WORD.findall(head)), split_lines(text)
    for item in brought:
        line = lines[item.line - 1] if item.line <= len(lines) else ""
        inside = first <= item.line <= first + head.count("\n")
        # At the name itself it is told what others make of it, such as the class that it overrides.
        if inside and (item.line, item.column) != (name, column):
            return False
        if _IMPORT.match(line) and words & set(_WORD.findall(line)):
            return False
    return True


class _Check:
    """The errors of texts, as the servers know them."""

    def __init__(self, servers: ServersWithDiagnostics, over: Over, deadline: float) -> None:
        self._servers = servers
        self._over = over
        self._deadline = deadline

    async def errors(self, texts: Mapping[str, str], paths: Sequence[str]) -> dict[str, tuple[Diagnostic, ...]]:
        """Return the errors of some files; a file of which they are not known is left out."""
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            return {}
        found = await self._servers.diagnostics(self._over(texts), paths, seconds)
        return {
            path: tuple(item for each in said for item in _errors(path, each))
            for path, said in found.items()
            if said is not None
        }


def _errors(path: str, said: FoundDiagnostics) -> Iterable[Diagnostic]:
    for item in from_lsp(said.items, path, said.text, said.encoding):
        if item.severity == "error" or _UNBOUND in item.code:
            yield item


def _brought(was: Sequence[Diagnostic], now: Sequence[Diagnostic], before: str, text: str) -> tuple[Diagnostic, ...]:
    """Return the errors that a file has with the change and had not without."""
    if not now:
        return ()
    return difference(was, now, {now[0].path: (before, text)}).new


class _Repairs:
    """The sites that are being tried: `chosen` by their files. One object for one question."""

    def __init__(
        self,
        changes: Sequence[Change],
        texts: Mapping[str, str],
        now: Mapping[str, Sequence[Diagnostic]],
        places: Mapping[str, Sequence[Site]],
    ) -> None:
        self.chosen: dict[str, list[Site]] = {}
        self._words = {each.word for each in changes}
        self._changes = changes
        self._texts = texts
        self._now = now
        self._brought: Mapping[str, Sequence[Diagnostic]] = {}
        self._sites = places
        self._dropped: set[Site] = set()
        self._starts = {path: _starts(text) for path, text in texts.items()}

    def wrong(self) -> list[str]:
        """Return the files with an error at a site, or in a line that names what has changed."""
        return [path for path, found in self._now.items() if any(self._is_near(path, item) for item in found)]

    def begin(self, brought: Mapping[str, Sequence[Diagnostic]], sound: Sequence[Change]) -> None:
        """Choose the sites of these changes that have an error of the user's edits."""
        self._brought = brought
        if len(sound) < len(self._changes):
            self._sites = affected_places(sound, self._texts)
        for path, items in brought.items():
            for item in items:
                self._choose(path, self._offset(item))

    def _is_near(self, path: str, item: Diagnostic) -> bool:
        at = self._offset(item)
        named = any(word in self._line_of(item) for word in self._words)
        return named or any(site.start <= at <= site.end for site in self._sites.get(path, ()))

    def _line_of(self, item: Diagnostic) -> str:
        starts, text = self._starts[item.path], self._texts[item.path]
        return text[starts[item.line - 1] : starts[item.line]] if item.line < len(starts) else ""

    def texts(self) -> dict[str, str]:
        """Return the repaired texts."""
        return {path: apply_edits(self._texts[path], self._edits(path)) for path in self.chosen if self.chosen[path]}

    def judge(self, after: Mapping[str, Sequence[Diagnostic]]) -> bool:
        """Take back what is not right by what the server says of the repaired texts, and choose what has become wrong;
        return whether anything is different now.
        """
        before = {path: tuple(found) for path, found in self.chosen.items()}
        for path in list(self._texts):
            # Of a file about which the servers say nothing in time, nothing is proved.
            if path not in after:
                self._drop(path, self.chosen.get(path, ()))
                continue
            back = _Back(self._edits(path), self._texts[path], self.texts().get(path, self._texts[path]))
            # Counted: a line may have the same error twice, of which a repair may have removed one.
            known = Counter((*_problem_key(item), item.line) for item in self._now[path])
            for item in after[path]:
                at = back.offset(item)
                key = (*_problem_key(item), self._line(path, at) + 1)
                if known[key] > 0:
                    known[key] -= 1
                    # It was there before: what it is about is not repaired.
                    if self._is_brought(path, item, at) and (mine := self._at(path, at)):
                        self._drop(path, mine)
                        self._choose(path, at)
                elif not self._choose(path, at):
                    mine = self._at(path, at) or self._in_line(path, self._line(path, at))
                    self._drop(path, mine or self.chosen.get(path, ()))
        return before != {path: tuple(found) for path, found in self.chosen.items()}

    def finished(self) -> Finished:
        """Return what is proved."""
        new = self.texts()
        repaired = tuple(site for path in new for site in self.chosen[path])
        return Finished(tuple(self._changes), new, repaired, self.left())

    def left(self) -> tuple[CallerPlace, ...]:
        """Return the places that the change broke and nothing here repairs."""
        found: dict[CallerPlace, None] = {}
        for path, items in self._brought.items():
            for item in items:
                at = self._offset(item)
                mine = [site for site in self.chosen.get(path, ()) if site.start <= at <= site.end]
                if not mine and self._is_near(path, item):
                    found[CallerPlace(path, item.line - 1)] = None
        return tuple(found)

    def _choose(self, path: str, at: int) -> bool:
        """Choose the innermost site at a place that can be repaired; return whether one was added."""
        here = [site for site in self._sites.get(path, ()) if site.start <= at < max(site.end, site.start + 1)]
        # The innermost first: in `f(g(x))`, an error at `g` is about the inner call.
        for site in sorted(here, key=lambda site: site.end - site.start):
            chosen = self.chosen.setdefault(path, [])
            # One repair of a place at a time: where an error stays with it, the next one is tried.
            if any((site.start, site.end) == (other.start, other.end) for other in chosen):
                continue
            if site.edits and site not in self._dropped and not any(_overlap(site, other) for other in chosen):
                chosen.append(site)
                return True
        return False

    def _drop(self, path: str, found: Iterable[Site]) -> None:
        gone = set(found)
        self._dropped |= gone
        if path in self.chosen:
            self.chosen[path] = [site for site in self.chosen[path] if site not in gone]

    def _at(self, path: str, at: int) -> list[Site]:
        here = [site for site in self.chosen.get(path, ()) if site.start <= at <= site.end]
        return sorted(here, key=lambda site: site.end - site.start)[:1]

    def _in_line(self, path: str, line: int) -> list[Site]:
        return [
            site
            for site in self.chosen.get(path, ())
            if any(self._line(path, edit.start) <= line <= self._line(path, edit.end) for edit in site.edits or ())
        ]

    def _is_brought(self, path: str, item: Diagnostic, at: int) -> bool:
        line = self._line(path, at) + 1
        return any(
            _problem_key(each) == _problem_key(item) and each.line == line for each in self._brought.get(path, ())
        )

    def _edits(self, path: str) -> list[Edit]:
        return [edit for site in self.chosen.get(path, ()) for edit in site.edits or ()]

    def _offset(self, item: Diagnostic) -> int:
        starts = self._starts[item.path]
        return starts[min(item.line - 1, len(starts) - 1)] + item.column - 1

    def _line(self, path: str, offset: int) -> int:
        return bisect_right(self._starts[path], offset) - 1


class _Back:
    """From places of a repaired text to those of the text before."""

    def __init__(self, edits: Iterable[Edit], before: str, after: str) -> None:
        self._edits = sorted(set(edits), key=lambda edit: (edit.start, edit.end))
        self._starts = _starts(after)
        self._end = len(before)

    def offset(self, item: Diagnostic) -> int:
        """Return where in the text before a diagnostic of the repaired one begins."""
        at = self._starts[min(item.line - 1, len(self._starts) - 1)] + item.column - 1
        shift = 0
        for edit in self._edits:
            start = edit.start + shift
            if at < start:
                break
            if at < start + len(edit.new):
                return edit.start
            shift += len(edit.new) - (edit.end - edit.start)
        return min(at - shift, self._end)


def _starts(text: str) -> list[int]:
    return [0, *accumulate(map(len, split_lines(text)))]


def _problem_key(item: Diagnostic) -> tuple[str, str, str]:
    return item.source, item.code, " ".join(item.message.split())


def _overlap(one: Site, other: Site) -> bool:
    for mine in one.edits or ():
        for theirs in other.edits or ():
            if mine == theirs:
                continue
            if mine.start < theirs.end and theirs.start < mine.end:
                return True
            if mine.start == theirs.start and mine.start in (mine.end, theirs.end):
                return mine.start == mine.end and theirs.start == theirs.end
    return False
