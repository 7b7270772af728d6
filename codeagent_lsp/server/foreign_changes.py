"""Gathers what other programs changed on the disk as runs, and tells the user of each once; shows the lines that two
have changed differently, with those of both.

Not here: following the files (`foreign/watch.py`), what is decided about such a run (`session/foreign_runs.py`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import CodeAgentError, SessionError
from codeagent_lsp.server.conflicts import OF_PROGRAM, settle
from codeagent_lsp.session.request import FOREIGN, RunRequest
from codeagent_lsp.state import state_root
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.reviewed import shows_all
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.visible import some_of

if TYPE_CHECKING:
    from codeagent_lsp.environments.environments import Environments
    from codeagent_lsp.foreign.watch import ForeignWatch, Found, Saves
    from codeagent_lsp.foreign.whose import DiskChange
    from codeagent_lsp.server.announcer import Announcer
    from codeagent_lsp.server.front import FileWatching, Front
    from codeagent_lsp.server.reviews import Reviews
    from codeagent_lsp.session.foreign_runs import ForeignProposal
    from codeagent_lsp.session.manager import SessionManager
    from codeagent_lsp.session.run import Run

START_SECONDS = 3.0
MOST_NAMED = 3
MOST_UNKNOWN = 1000
MOST_CHARACTERS = 16 << 20  # texts of one run: they are in memory, and in its session's file
COPIES = "before"

logger = logging.getLogger(__name__)


class Parts(Protocol):
    """Port: the parts of a server that `ForeignChanges` uses."""

    front: Front
    state: Path
    announcer: Announcer
    reviews: Reviews
    manager: SessionManager
    watching: FileWatching
    environments: Environments

    async def ready(self) -> None:
        """Load the modules and the redactor that runs need."""


class ForeignChanges:
    """Follows what other programs change in the workspace of one server, and makes runs of it; also a listener for
    events.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._watch: ForeignWatch | None = None
        self._following: asyncio.Task[None] | None = None
        self._folders: list[str] = []
        self._tasks = BackgroundTasks()
        self._unknown: set[str] = set()
        self._saves: Saves | None = None
        parts.environments.directly = self.command

    def renew(self) -> None:
        """Start to follow the files, or stop, by the present settings and folders; returns at once."""
        front = self._parts.front
        wanted = front.settings().foreign.watch == "auto" and self._is_editor()
        folders = front.folders() if wanted else []
        if folders == self._folders:
            return
        before, self._folders = self._following, folders
        if before is not None:
            before.cancel()
        self._following = self._tasks.start(self._follow(folders, before)) if folders else None

    async def close(self) -> None:
        """Stop following, for at most 1 s, and delete the copies of files that were kept."""
        self._tasks.cancel()
        await self._tasks.close(1.0)

    def touched(self, paths: Iterable[str]) -> None:
        """Note that the client reported these files, real paths, as changed; nothing while files are not followed.
        Returns at once.
        """
        if self._watch is not None:
            self._watch.touched(paths)

    def saved(self, uri: str, content: str | None) -> None:
        """Note that the editor has saved a document, with the text `content` if it told it, so that the change of the
        file is not taken for a foreign one.
        """
        path = uris.real_path(uri)
        if path is not None:
            self._note(path)
        if self._watch is not None and path is not None:
            document = self._parts.front.server.documents.get(uri)
            self._watch.saved((path,), content if document is None else document.text)

    def command(self) -> AbstractContextManager[None]:
        """Return a context to enter while a command of ours runs in the user's folders: changes in it are not foreign.
        It does nothing while no files are followed.
        """
        return nullcontext() if self._watch is None else self._watch.command()

    def observe(self, event: events.Event) -> None:
        """Note the changes that the editor was asked for, which are not foreign, and ask about conflicts of foreign
        ones.
        """
        if not isinstance(event, events.ChangesApplied):
            return
        for each in event.applied:  # what an editor makes, deletes or renames is on the disk at once
            self._note(str(each["path"]))
            if each.get("moved_from"):
                self._note(str(each["moved_from"]))
        if self._watch is not None:
            for each in event.applied:
                # A new file is empty until its text is saved.
                new = ("",) if each["base"] is None or each.get("moved_from") else ()
                self._watch.expects(str(each["path"]), each["text"], *new)
                if each.get("moved_from"):
                    self._watch.expects(str(each["moved_from"]), None)
        if event.conflicts and not event.undo and self._parts.manager.runs.get(event.run_id).record.foreign:
            self._tasks.start(self._ask_about_conflicts(event.run_id))

    def _note(self, path: str) -> None:
        """Tell the servers of other editors of this user that what has changed here is the user's."""
        if not self._is_editor():
            return
        if self._saves is None:
            from codeagent_lsp.foreign.watch import Saves  # late, as below

            self._saves = Saves(state_root())
        self._saves.note(path)

    def _is_editor(self) -> bool:
        """Return whether the client is the user's editor: in a terminal and behind ACP, that is another program, which
        tells of no save, so that all of them would look foreign.
        """
        front = self._parts.front
        return front.interactive() and not front.client.policy.asks

    async def _follow(self, folders: list[str], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        await asyncio.sleep(START_SECONDS)
        from codeagent_lsp.foreign.baseline import Baseline, Copies  # late: an idle server has none of it until now
        from codeagent_lsp.foreign.disk import Tree  # late, as above
        from codeagent_lsp.foreign.watch import ForeignWatch, Saves  # late, as above

        copies = Copies(self._parts.state / COPIES)
        tree = await asyncio.to_thread(lambda: Tree(Roots(folders), (os.path.realpath(self._parts.state.parent),)))
        baseline = Baseline(tree, copies)
        is_told = await self._parts.watching.begin()
        saves = self._saves = self._saves or Saves(state_root())
        await asyncio.to_thread(saves.clear)
        self._watch = ForeignWatch(tree, baseline, self._take, is_told=is_told, saves=saves)
        try:
            await self._watch.follow()
        except Exception:  # the file system fails, or we do: no reason to end the server
            logger.exception("what other programs change cannot be followed any longer")
        finally:
            self._watch = None
            await asyncio.shield(baseline.close())

    async def _take(self, found: Found) -> None:
        """Add what was found to the run that waits, or begin one."""
        from codeagent_lsp.session.foreign_runs import (  # late: with the parts of a run
            ForeignProposal,
            on_taken_back,
            unknown_words,
        )

        roots, language = Roots(self._parts.front.folders()), self._parts.front.language()
        runs = self._parts.manager.runs.all()
        proposals = (each.proposal for each in runs if isinstance(each.proposal, ForeignProposal))
        run = self._waiting()
        held = 0 if run is None else sum(_size(each.base, each.text) for each in run.record.staged)
        changes, more = _as_many_as_fit(on_taken_back(found.changes, proposals), held)
        unknown = tuple(roots.relative(path) for path in (*found.unknown, *more) if path not in self._unknown)
        if len(self._unknown) < MOST_UNKNOWN:
            self._unknown.update((*found.unknown, *more))
        if run is not None and isinstance(run.proposal, ForeignProposal):
            changed = await run.proposal.joins(changes)
            if unknown:
                self._parts.announcer.tell(unknown_words(unknown, language))
            if changed:
                await self._told_again(run, run.proposal)
            return
        foreign = [each for each in changes if each.is_foreign and each.was != each.now]
        if foreign or unknown:
            await self._begin_run(tuple(foreign), unknown)

    def _waiting(self) -> Run | None:
        """Return the latest foreign run about which nobody has decided."""
        waiting = (run for run in self._parts.manager.runs.all() if run.record.foreign and run.record.staged)
        return next(iter(reversed(tuple(waiting))), None)

    async def _begin_run(self, changes: tuple[DiskChange, ...], unknown: tuple[str, ...]) -> None:
        from codeagent_lsp.session.foreign_runs import ForeignProposal, gathering  # late: with the parts of a run

        parts, language = self._parts, self._parts.front.language()
        await parts.ready()
        title = text("foreign.title", language, count=len(changes) + len(unknown))
        run_id = parts.manager.start_beside(RunRequest(FOREIGN, "", title), gathering(changes, unknown))
        task = parts.manager.runs.task(run_id)
        if task is not None:
            await asyncio.wait([task])
        run = parts.manager.runs.get(run_id)
        if not isinstance(run.proposal, ForeignProposal) or not run.proposal.changeset:
            return
        paths = run.proposal.changeset.paths
        names = some_of(map(run.proposal.view.roots.relative, paths), MOST_NAMED, counted=False)
        parts.announcer.tell(text("foreign.told", language, count=len(paths), names=names))
        self._tasks.start(self._ask(run, run.proposal))

    async def _told_again(self, run: Run, proposal: ForeignProposal) -> None:
        """Show what a run holds now; of one that holds nothing any more, all was changed back."""
        if proposal.changeset:
            await proposal.propose()
        else:
            proposal.questions.settle()
        self._parts.reviews.renew(run.record.run_id)
        self._parts.announcer.refresh_lenses()

    async def _ask(self, run: Run, proposal: ForeignProposal) -> None:
        """Offer the decision beside what the user does, to clients that show questions in a place of their own."""
        if not self._parts.front.client.policy.events:
            return
        language = self._parts.front.language()
        review, keep, revert = (text(f"choice.{name}", language) for name in ("review", "keep", "revert"))
        while proposal.changeset:
            shown = proposal.changeset
            detail = shown.diff(proposal.view.roots.relative)
            answer = await proposal.questions.ask(proposal.title(), (review, keep, revert), detail, beside=True)
            with suppress(SessionError):  # decided about elsewhere meanwhile
                if answer == (review,):
                    await self._parts.reviews.show(run.record.run_id)
                elif not shows_all(shown, proposal.changeset) and answer:
                    await proposal.propose()
                elif answer == (keep,):
                    await self._parts.reviews.apply(run, None, None, None)
                elif answer == (revert,):
                    await self._parts.reviews.revert(run, None, None, None)
                else:
                    return

    async def _ask_about_conflicts(self, run_id: str) -> None:
        from codeagent_lsp.session.foreign_runs import ForeignProposal  # late: with the parts of a run

        run = self._parts.manager.runs.get(run_id)
        proposal = run.proposal
        assert isinstance(proposal, ForeignProposal)
        with suppress(CodeAgentError):  # decided about elsewhere meanwhile
            if proposal.contested:
                await self._ask_to_revert(proposal)
            else:
                await self._ask_to_merge(proposal)

    async def _ask_to_revert(self, proposal: ForeignProposal) -> None:
        """Ask whether what the user has changed since is taken back, too."""
        language, name = self._parts.front.language(), proposal.view.roots.relative
        mine, too = text("choice.mine", language), text("choice.revert_too", language)
        places = some_of(map(name, proposal.contested.paths), MOST_NAMED)
        title = text("foreign.conflict_revert", language, places=places)
        answer = await proposal.questions.ask(title, (mine, too), "")
        if answer == (too,):
            self._parts.announcer.tell_outcome(await proposal.revert_contested(), "foreign.reverted")
        elif answer == (mine,):
            proposal.keep_contested()
            self._parts.announcer.refresh_lenses()

    async def _ask_to_merge(self, proposal: ForeignProposal) -> None:
        """Ask whose lines count where unsaved text and the disk have different ones."""
        request = await settle(proposal, self._parts.announcer, OF_PROGRAM)
        if request is not None:
            self._parts.manager.start(request)


def _as_many_as_fit(changes: Iterable[DiskChange], held: int) -> tuple[tuple[DiskChange, ...], tuple[str, ...]]:
    """Return the changes that a run which holds so many characters can hold as well, and the paths of the others."""
    fitting: list[DiskChange] = []
    others: list[str] = []
    for each in changes:
        held += _size(each.was, each.now) if each.is_foreign else 0
        if held > MOST_CHARACTERS and each.is_foreign:
            others.append(each.path)
        else:
            fitting.append(each)
    return tuple(fitting), tuple(others)


def _size(*texts: str | None) -> int:
    return sum(len(text or "") for text in texts)
