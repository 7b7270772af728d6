"""Follows the files of a workspace, and hands on what other programs changed in them; and tells the other servers of
this user which files an editor has just saved, as they see only that the disk changed.

By the reports of who can tell, else by looking at the stamps of all files, which takes a fiftieth of the time at most.
A save is told by an empty note in a folder of our state, named by a hash of the file's path; the note's time is that of
the save. So nothing has to be read, locked or sent. Not here: when files are looked at and whose a change is
(`whose.py`), what becomes of it (`session/foreign_runs.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from codeagent_lsp.foreign.baseline import Baseline
from codeagent_lsp.foreign.disk import Stamp, Tree, differing, stamps
from codeagent_lsp.foreign.git_tree import Marks
from codeagent_lsp.foreign.whose import FORMATTERS, DiskChange, Gathering, Pace, Saved, Seen, verdict
from codeagent_lsp.state import make_private

FOLDER = "saves"
KEPT_SECONDS = 3600.0
"""How old a note gets: changes are looked at some seconds, at most minutes after they were made."""
SHARE = 50  # a look at all files is followed by a pause that is so many times as long
BUSY_SECONDS = 10.0  # so long a git at work is waited for
BUSY_TICK = 0.1
GIT_BEFORE, GIT_AFTER = 5.0, 1.0  # seconds around the moment in which git wrote its own files
MOST_NOTED = 4000
MOST_COMMANDS = 100
T = TypeVar("T")
logger = logging.getLogger(__name__)


class Saves:
    """The notes of saves by all servers of one user, in a folder below `root`. Methods block and never raise; without
    notes, a save in another editor looks like a change by another program.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def note(self, path: str) -> None:
        """Note that the file with this absolute real path was saved now."""
        place = self._place(path)
        with suppress(OSError):
            make_private(self._folder)
            place.touch(mode=0o600)

    def last(self, path: str) -> float | None:
        """Return when any server noted a save of a file (absolute path), in seconds since the epoch; None if that is
        not known.
        """
        try:
            return self._place(path).stat().st_mtime
        except OSError:
            return None

    def clear(self) -> None:
        """Remove the notes of all servers that are older than an hour."""
        for entry in self._entries():
            with suppress(OSError):  # another server does the same
                if time.time() - entry.stat().st_mtime > KEPT_SECONDS:
                    Path(entry).unlink()

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        with suppress(OSError), os.scandir(self._folder) as entries:
            yield from entries

    def _place(self, path: str) -> Path:
        return self._folder / hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Found:
    """What one look found: changes, and the absolute paths of files that another program changed, but of which not both
    texts are known.
    """

    changes: tuple[DiskChange, ...]
    unknown: tuple[str, ...]


class ForeignWatch:
    """Watches the files of one workspace, while `follow` runs. `is_told` says whether the client reports changed files;
    `take` receives what was found; `saves` are those of all servers.
    """

    def __init__(
        self,
        tree: Tree,
        baseline: Baseline,
        take: Callable[[Found], Awaitable[None]],
        *,
        is_told: bool,
        saves: Saves,
        pace: Pace | None = None,
    ) -> None:
        self._tree = tree
        self._baseline = baseline
        self._take = take
        self._is_told = is_told
        self._saves = saves
        self._pace = pace or Pace()
        self._gathering = Gathering(self._pace)
        self._woken = asyncio.Event()
        self._stamps: dict[str, Stamp] = {}
        self._next_poll = 0.0
        self._marks: dict[str, Marks] = {}  # of git, by repository, as they were at the last look
        self._moved_at: float | None = None  # since when git has moved; None if what it did is judged
        self._saved: dict[str, Saved] = {}  # what the editor has saved, by path, until it is judged
        self._counted: dict[str, float] = {}  # saves of other editors that are counted already, by path
        self._ours: dict[str, frozenset[str | None]] = {}  # texts that we have asked the editor for, by path
        self._commands: list[tuple[float, float]] = []  # when commands of ours ran in the user's folders

    async def follow(self) -> None:
        """Follow the files until this is cancelled, and hand on what is found; returns at once if there are more than
        50,000.
        """
        found = await self._baseline.take_stock()
        if found is None:
            logger.info("there are too many files here to follow what other programs change")
            return
        self._stamps = {} if self._is_told else found
        self._marks = self._baseline.marks()
        while True:
            self._woken.clear()
            waiting = self._gathering.wait(time.monotonic())
            try:
                async with asyncio.timeout(self._pace.tick if waiting is None else min(waiting, self._pace.tick)):
                    await self._woken.wait()
            except TimeoutError:
                pass
            await self._tick()

    def touched(self, paths: Iterable[str]) -> None:
        """Note that files may have changed, by their absolute real paths; they are looked at once it is quiet. Those
        that are not followed are ignored; returns at once.
        """
        followed = [path for path in paths if self._tree.follows(path)]
        if followed:
            self._gathering.notice(followed, time.monotonic())
            self._woken.set()

    def saved(self, paths: Iterable[str], text: str | None) -> None:
        """Note that the editor has saved files, by their real paths, with this text (None: not known), so that the
        change counts as the user's.
        """
        paths = tuple(paths)
        for path in paths:
            _note(self._saved, path, Saved(time.time(), text))
        self.touched(paths)

    def expects(self, path: str, *texts: str | None) -> None:
        """Note the texts, None for no file, that a file (absolute path) may get because the editor was asked to write
        them, so that the change counts as ours.
        """
        _note(self._ours, path, self._ours.get(path, frozenset()).union(texts))

    @contextmanager
    def command(self) -> Iterator[None]:
        """While this context is entered, changes count as made by a command of ours in the user's folders."""
        begun = time.time()
        running = (begun, math.inf)
        self._commands = [*self._commands[-MOST_COMMANDS:], running]
        try:
            yield
        finally:
            self._commands = [(begun, time.time()) if each is running else each for each in self._commands]

    async def _tick(self) -> None:
        now = time.monotonic()
        self._tree.look_again()
        present = await asyncio.to_thread(self._baseline.marks)
        moved = present != self._marks
        if moved and self._moved_at is None:
            self._moved_at = now
        if not self._is_told and (moved or now >= self._next_poll):
            await self._poll()
        paths = self._gathering.take(time.monotonic())
        # Once git has done, and what it wrote has been told.
        rests = self._moved_at is not None and not self._gathering and now - self._moved_at >= self._pace.tick
        if not paths and not rests:
            return
        marks = await self._wait_for_git()
        await self._look(paths, marks)
        if self._moved_at is not None and not self._gathering:
            await self._after_git(marks)

    async def _after_git(self, marks: dict[str, Marks]) -> None:
        """Keep what git does not have any more: a commit that was taken back, leaves changed files."""
        found = await self._baseline.take_stock(again=True)
        if found is not None and not self._is_told:
            self.touched(differing(self._stamps, found))
            self._stamps = found
        self._marks, self._moved_at = marks, None

    async def _poll(self) -> None:
        found, seconds = await asyncio.to_thread(self._timed_stamps)
        self._next_poll = time.monotonic() + max(self._pace.tick, SHARE * seconds)
        if found is not None:
            self.touched(differing(self._stamps, found))
            self._stamps = found

    def _timed_stamps(self) -> tuple[dict[str, Stamp] | None, float]:
        """Return the stamps of all files, and the processor time of looking at them: a busy machine is no large one."""
        begun = time.thread_time()
        return stamps(self._tree, self._baseline.stopped), time.thread_time() - begun

    async def _wait_for_git(self) -> dict[str, Marks]:
        """Return git's marks once it is not at work, or after some seconds."""
        end = time.monotonic() + BUSY_SECONDS
        while True:
            marks = await asyncio.to_thread(self._baseline.marks)
            if time.monotonic() > end or not any(each.busy for each in marks.values()):
                return marks
            await asyncio.sleep(BUSY_TICK)

    async def _look(self, paths: Sequence[str], marks: Mapping[str, Marks]) -> None:
        """Look at files that have changed, and hand on whose the changes are."""
        paths = await self._files_of(paths)
        states = await asyncio.to_thread(
            lambda: {path: (self._tree.state(path), self._tree.stamp(path)) for path in paths}
        )
        # After the states: what changes between the two is looked at again with the next report of it.
        before = await self._baseline.before(paths)
        changed = {path: state for path, (state, _) in states.items() if state != before[path] or not state.known}
        moved = {top for top, each in marks.items() if each != self._marks.get(top)}
        staged = await self._baseline.as_staged(path for path in changed if self._baseline.top_of(path) in moved)
        changes, unknown = list[DiskChange](), list[str]()
        for path, now in sorted(changed.items()):
            seen = Seen(
                before[path],
                now,
                _time_of(states[path][1]),
                self._save_of(path, states[path][1]),
                self._ours.pop(path, frozenset()),
                self._commands,
                git_moved=self._is_by_git(path, states[path][1], marks),
                is_as_staged=path in staged,
            )
            found = self._judge(path, seen)
            changes += found.changes
            unknown += found.unknown
        # Before they are handed on: what follows takes long, and the next look must not find the same again.
        await self._baseline.settle(changed)
        if changes or unknown:
            await self._take(Found(tuple(changes), tuple(unknown)))

    def _save_of(self, path: str, stamp: Stamp | None) -> Saved | None:
        """Return the last save of a file, here or in another editor. Each counts once."""
        here, elsewhere = self._saved.pop(path, None), self._saves.last(path)
        if elsewhere is None or elsewhere <= self._counted.get(path, 0.0):
            return here
        _note(self._counted, path, elsewhere)
        if here is not None and elsewhere <= here.at + FORMATTERS:
            return here  # it is the note of this one, which says less
        # When a file was deleted is not known, and an old save says nothing about that.
        if stamp is None and time.time() - elsewhere > self._pace.longest:
            return here
        return Saved(elsewhere, None)

    def _judge(self, path: str, seen: Seen) -> Found:
        """Return the changes that one file has gone through since the last look."""
        judged, was, now = verdict(seen), seen.was, seen.now
        changes: list[DiskChange] = []
        if judged.known is not None:
            if was.known and judged.known.known and was != judged.known:
                changes.append(DiskChange(path, was.text, judged.known.text, is_foreign=False))
            was = judged.known
        if not judged.is_foreign:
            return Found(tuple(changes), ())
        if not was.known or not now.known:
            return Found(tuple(changes), (path,))
        self._gathering.told(path, grown=bool(was.text) and (now.text or "").startswith(was.text or ""))
        if was != now:
            changes.append(DiskChange(path, was.text, now.text, is_foreign=True))
        return Found(tuple(changes), ())

    def _is_by_git(self, path: str, stamp: Stamp | None, marks: Mapping[str, Marks]) -> bool:
        """Return whether a file was changed when git wrote what it has of its own, as by `git stash pop`."""
        top = self._baseline.top_of(path)
        git, before = (marks.get(top), self._marks.get(top)) if top is not None else (None, None)
        changed = _time_of(stamp)
        if git is None or before is None or git.head == before.head or changed is None:
            return False
        times = (each[0] / 1e9 for each in git.head if each)
        return any(-GIT_BEFORE <= changed - each <= GIT_AFTER for each in times)

    async def _files_of(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the files that are meant by paths: of folders that are new or gone, clients may tell only these."""
        if not self._is_told:
            return tuple(paths)
        found: list[str] = []
        for path in paths:
            kind = await asyncio.to_thread(self._tree.roots.kind, path)
            if kind != "folder":
                found.append(path)
            if kind in (None, "folder"):
                below = await self._baseline.files_below(path)
                found += [each for each in below if self._tree.follows(each)]
        return tuple(dict.fromkeys(found))


def _time_of(stamp: Stamp | None) -> float | None:
    """Return when a file was changed last, in seconds since the epoch."""
    return None if stamp is None else max(stamp.mtime, stamp.ctime) / 1e9


def _note(known: dict[str, T], path: str, value: T) -> None:
    known.pop(path, None)
    known[path] = value
    while len(known) > MOST_NOTED:
        del known[next(iter(known))]
