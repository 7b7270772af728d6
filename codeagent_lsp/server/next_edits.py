"""Watches what the user changes, and offers the same change where it is due, too: as lenses, actions and completions;
and the workspace as the next edit reads it: open buffers over the disk, what may be shown, and files by their words.

Rules look for a second edit like the last one; where they find nothing, the next-edit model that the user names is
asked, in a longer pause. Not here: finding the places, prompts and answers (`inline/next_edit/`), the run that proposes
them (`session/own_runs.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from lsprotocol import types

from codeagent_lsp.errors import AgentError, CodeAgentError, ModelError, ModelRejected, ToolFailed, UsageError
from codeagent_lsp.server.actions import Waiting
from codeagent_lsp.server.secret_sources import sanitizer_for
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.paths import path_of

if TYPE_CHECKING:
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.inline.next_edit.history import History
    from codeagent_lsp.inline.next_edit.proposals import Proposed
    from codeagent_lsp.language_servers.pool import LanguageServerPool
    from codeagent_lsp.llm.fill.edit_formats import Rewriter
    from codeagent_lsp.server.announcer import Announcer
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.server.models import Models
    from codeagent_lsp.server.run_services import Views
    from codeagent_lsp.session.redaction.redactor import Redactor
    from codeagent_lsp.workspace.files.file_view import FileText, FileView
    from codeagent_lsp.workspace.text.document import Document

PAUSE_SECONDS = 0.15
MODEL_PAUSE_SECONDS = 0.25
"""How much longer than for the rules typing has to pause: a request costs time, and often money."""
AGAIN_SECONDS = 30.0
"""How long a server that was not there is left alone."""
SEARCH_SECONDS = 3.0

logger = logging.getLogger(__name__)

Rewritten = tuple[tuple["FileText", str], ...]
"""Files as they were read, and their new texts."""
INDEX_SECONDS = 1.0
MARKERS = (
    "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "composer.json",
)  # fmt: skip


class Parts(Protocol):
    """Port: the parts of a server that next edits use."""

    front: Front
    models: Models
    views: Views
    index: IndexHost
    language_servers: LanguageServerPool
    announcer: Announcer
    redactor: Redactor


class NextEdits:
    """The next edits of one server: watches the documents until `close`. `due` are the proposed edits that are still
    possible in the present texts: the last change at other places, or those that a model expects next.
    """

    def __init__(self, parts: Parts) -> None:
        self.due: tuple[Proposed, ...] = ()
        self._parts = parts
        self._model = NextEditModel(parts)
        # The texts that a model was asked about, where `due` is what it expects: it is not asked again, as rules are.
        self._asked: History | None = None
        self._history: History | None = None
        self._dismissed: set[str] = set()
        self._texts: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None
        documents = parts.front.server.documents
        self._unsubscribe = documents.subscribe(self._on_change)
        beginnings = documents.take_beginnings()
        for document in documents.all():
            # First as it was opened: what was typed since is an edit.
            self._on_change(document.uri, replace(document, text=beginnings.get(document.uri, document.text)))
            self._on_change(document.uri, document)

    @property
    def history(self) -> History | None:
        """The last edits of the user; None before the first one."""
        return self._history

    def files(self) -> NextEditFiles:
        """Return the workspace as it is now, for the search. Loads modules at the first call, so it blocks a little."""
        from codeagent_lsp.tools.permissions.policy import may_read  # late: its parsers are heavy

        view = self._parts.views.plain()
        return NextEditFiles(view, self._parts.index, may_read(self._parts.front.settings().permissions, view.roots))

    def waiting(self) -> tuple[Waiting, ...]:
        """Return the offers, one for each file with due edits, at the first place in it; () for none."""
        language = self._parts.front.language()
        paths = list(dict.fromkeys(each.path for each in self.due))
        found = []
        for path in paths:
            mine = [each for each in self.due if each.path == path]
            document = self._parts.front.server.documents.by_path(path)
            line = document.text.count("\n", 0, mine[0].start) if document is not None else 0
            if self._asked is not None:
                others = f" (+{len(mine) - 1})" if len(mine) > 1 else ""
                title = text("lens.expected_edit", language, change=f"{mine[0].title}{others}")
            else:
                title = text("lens.next_edit", language, change=mine[0].title, count=len(self.due))
            offers: tuple[tuple[str, str, dict[str, Any]], ...] = (
                (text("lens.next_edit_apply", language), "codeagent.nextEdit.apply", {}),
                (text("lens.next_edit_dismiss", language), "codeagent.nextEdit.dismiss", {}),
            )
            found.append(Waiting("nextEdit", title, uris.from_path(path), offers, line))
        return tuple(found)

    def at_line(self, document: Document, line: int) -> Proposed | None:
        """Return the due edit that begins in a line of a document, counted from 0; None for none."""
        return next((each for each in self._in(document) if document.text.count("\n", 0, each.start) == line), None)

    def nearest(self, document: Document, line: int) -> Proposed | None:
        """Return the due edit of a document that is nearest to a line, counted from 0; None for none."""
        lines = {each: document.text.count("\n", 0, each.start) for each in self._in(document)}
        return min(lines, key=lambda each: abs(lines[each] - line), default=None)

    def _in(self, document: Document) -> list[Proposed]:
        opened = self._parts.front.server.documents
        mine = (each for each in self._valid() if opened.by_path(each.path) is document)
        return [each for each in mine if document.text[each.start : each.end] == each.old]

    async def rewritten(self) -> Rewritten:
        """Search once more, and return (file, new text) for each file with due edits; nothing is offered afterwards.
        UsageError for none.
        """
        files, due = await self._find()
        due = due or (self._valid() if self._asked is not None else ())
        texts: list[tuple[FileText, str]] = []
        for path in dict.fromkeys(each.path for each in due):
            file = await asyncio.to_thread(files.read, path)
            mine = [each for each in due if each.path == path]
            if file is None or any(file.text[each.start : each.end] != each.old for each in mine):
                continue
            new = file.text
            # From the end, so that the places before it stay valid.
            for each in reversed(mine):
                new = new[: each.start] + each.new + new[each.end :]
            texts.append((file, new))
        if not texts:
            raise UsageError("next_edit.none")
        self._offer(())
        return tuple(texts)

    def dismiss(self) -> None:
        """Stop offering the changes that are offered now, in all files, until the server ends."""
        self._dismissed |= {each.title for each in self.due}
        self._offer(())

    async def close(self) -> None:
        """Stop watching the documents, cancel a search, wait for its end, and close the model."""
        self._unsubscribe()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._model.close()

    def _on_change(self, uri: str, document: Document | None) -> None:
        path = uris.real_path(uri)
        if path is None:
            return
        if document is None or not self._parts.front.settings().inline.next_edit:
            self._texts.pop(path, None)
            self._history = self._history.closed(path) if self._history is not None else None
            return
        known = self._texts.get(path)
        self._texts[path] = document.text
        if known is None or known == document.text:
            self._begin(path, document.text)
            return
        self._note(path, known, document.text)
        if self._looking is not None:
            self._looking.cancel()
        # One task at a time: each key cancels the look of the one before, so that it comes in a pause.
        self._looking = asyncio.get_running_loop().create_task(self._look())

    def _begin(self, path: str, now: str) -> None:
        if self._history is not None and self._history.of(path) is None:
            self._history = self._history.opened(path, now)

    def _note(self, path: str, before: str, now: str) -> None:
        from codeagent_lsp.inline.next_edit.history import History  # late: an idle server has no edits

        if self._history is None:
            self._history = History()
            # The history begins with the first edit, so it starts from the text before that.
            for opened, known in self._texts.items():
                self._history = self._history.opened(opened, before if opened == path else known)
        self._history = self._history.noted(path, now)

    async def _look(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        files, due = await self._find()
        due = tuple(each for each in due if each.title not in self._dismissed)
        self._offer(due)
        if not due and (history := self._history) is not None:
            expected = await self._model.predicted(history, files)
            self._offer(tuple(each for each in expected if each.title not in self._dismissed), asked=history)

    def _valid(self) -> tuple[Proposed, ...]:
        """Return what is due. What a model expects may be only added, and stands nowhere in the text then: that has to
        be the one that it was asked about.
        """
        asked, now = self._asked, self._history
        same = asked is None or (now is not None and all(asked.of(e.path) == now.of(e.path) for e in self.due))
        return self.due if same else ()

    async def _find(self) -> tuple[NextEditFiles, tuple[Proposed, ...]]:
        from codeagent_lsp.inline.next_edit.proposals import search  # late: parsers are heavy

        files = self.files()
        if self._history is None:
            return files, ()
        return files, (await search(self._history, files, SEARCH_SECONDS)).proposed

    def _offer(self, due: tuple[Proposed, ...], asked: History | None = None) -> None:
        self._asked = asked
        if due != self.due:
            self.due = due
            self._parts.announcer.refresh_lenses()


# The model that predicts the next edit, where the user names one: opened when it is first needed, asked in a pause, and
# its answer checked by the language servers that run.


class NextEditModel:
    """The next-edit model of one server, opened when it is first asked; nothing is opened while the settings name
    none.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rewriter: Rewriter | None = None
        # The settings with which it was opened, or could not be, and when it could not.
        self._wanted: object = None
        self._failed = 0.0

    async def predicted(self, history: History, files: NextEditFiles) -> tuple[Proposed, ...]:
        """Ask the model for the edits that it expects next, after a pause of 0.25 s, and return them; () if none is
        named or it fails. `files` say what may be sent. May be cancelled.
        """
        if not self._parts.front.settings().model.next_edit:
            await self.close()
            return ()
        await asyncio.sleep(MODEL_PAUSE_SECONDS)
        rewriter = await self._ready()
        if rewriter is None:
            return ()
        from codeagent_lsp.inline.next_edit.predicting import Shown, predict  # late: most servers have no such model

        sanitizer = await asyncio.to_thread(sanitizer_for, self._parts.front, self._parts.redactor)
        try:
            found = await predict(rewriter, history, Shown(files.name, sanitizer.for_model().text))
        except ModelError as error:
            logger.warning("no next edit: %s", error)
            return ()
        return () if await self._brings_error(history, found) else tuple(found)

    async def close(self) -> None:
        """Close the model if it is open; the next question opens it again."""
        rewriter, self._rewriter, self._wanted = self._rewriter, None, None
        if rewriter is not None:
            await rewriter.close()

    async def _ready(self) -> Rewriter | None:
        settings = self._parts.front.settings()
        wanted = (settings.model, settings.network)
        if wanted == self._wanted and (self._rewriter or time.monotonic() - self._failed < AGAIN_SECONDS):
            return self._rewriter
        known = self._wanted
        await self.close()
        try:
            self._rewriter = await self._parts.models.open_rewriter()
        except CodeAgentError as error:
            self._failed = time.monotonic()
            # What only another setting mends is said once; a server that is away may come back.
            if isinstance(error, ModelRejected) and known != wanted:
                words = error.localized(self._parts.front.language())
                self._parts.front.client.tell(words, types.MessageType.Warning)
            logger.warning("no next edit: %s", error)
        self._wanted = wanted
        return self._rewriter

    async def _brings_error(self, history: History, found: list[Proposed]) -> bool:
        """Return whether all of the answer together would bring an error into its lines."""
        from codeagent_lsp.inline.checking import SuggestionChecks  # late: as above
        from codeagent_lsp.inline.context import Place  # late: as above

        edited = history.of(found[0].path) if found else None
        if edited is None:
            return False
        start, end = found[0].start, found[-1].end
        old, new = edited.text[start:end], ""
        for each in found:
            new += edited.text[start : each.start] + each.new
            start = each.end
        checks = SuggestionChecks(lambda: self._parts.language_servers.warm, self._parts.views.plain)
        check = checks.begin(Place(edited.path, edited.text, found[0].start, file=edited.path), old)
        if check is None:
            return False
        try:
            return await check.brings_error(new)
        finally:
            await check.close()


@dataclass(frozen=True)
class NextEditFiles:
    """The workspace at one moment, for the search of next edits. Paths are absolute; `may_read` says what may be sent
    without asking. An index that is being built is waited for `index_seconds`.
    """

    view: FileView
    index: IndexHost
    may_read: Callable[[str], bool]
    index_seconds: float = INDEX_SECONDS

    async def files_with(self, words: Sequence[str], limit: int) -> Sequence[str]:
        """Return the absolute paths of all open files, and of files that may have all of these words, by the index, at
        most about `limit`; without an index of the open ones alone.
        """
        opened = [path for path in self.view.over_disk() if Path(path).is_absolute()]
        try:
            answers = await self.index.ready(self.index_seconds)
        except ToolFailed:
            return opened
        return [*opened, *await asyncio.to_thread(self._indexed_paths, answers, words, limit)]

    async def text(self, path: str) -> str | None:
        """Return the text of a file inside the workspace that may be shown to a model; None for others and for one that
        cannot be read.
        """
        found = await asyncio.to_thread(self.read, path)
        return found.text if found is not None else None

    def project(self, path: str) -> str:
        """Return the folder of the project that a file belongs to; '' for the workspace itself. Looks at the disk."""
        return project_of(path, lambda name: Path(name).is_file())

    def read(self, path: str) -> FileText | None:
        """Return a file (absolute path) that may be shown to a model; None for others and for one that cannot be read.
        Blocks.
        """
        try:
            return None if self.name(path) is None else self.view.read(path)
        except AgentError:
            return None

    def name(self, path: str) -> str | None:
        """Return the path of a file as models get it, relative to the workspace; None for one that may not be sent."""
        return shown_name(self.view, self.may_read, path)

    def _indexed_paths(self, answers: Answers, words: Sequence[str], limit: int) -> list[str]:
        from codeagent_lsp.index import store  # late: an idle server does without SQLite

        found = store.files_with(answers.view(self.view), words, limit)
        folders = self.view.roots.folders
        places = ([path_of(folder, name) for folder in folders] for name in found)
        return [next((path for path in each if self.view.exists(path)), each[0]) for each in places if each]


def shown_name(view: FileView, may_read: Callable[[str], bool], path: str) -> str | None:
    """Return the path of a file as models get it, relative to the workspace; None for one outside of it or ignored, or
    that a model may not read without a question.
    """
    allowed = view.roots.root_of(path) is not None and not view.is_ignored(path) and may_read(path)
    return view.roots.relative(path) if allowed else None


# To which project of a workspace a file belongs: changes in one are not due in another. Pure.


def project_of(path: str, is_file: Callable[[str], bool]) -> str:
    """Return the absolute path of the folder with the nearest project file, such as `pyproject.toml`, above a file
    (absolute path); '' for none.
    """
    for folder in PurePosixPath(path).parents:
        if any(is_file(str(folder / marker)) for marker in MARKERS):
            return str(folder)
    return ""
