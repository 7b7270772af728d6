"""Watches what the user changes, and offers the same change where it is due, too: as lenses, actions and completions.

Nothing is looked for before a second edit was made, and only in a pause of typing. Not here: finding the places
(`inline/next_edit/`), the run that proposes them (`session/own_runs.py`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from codeagent_lsp.errors import UsageError
from codeagent_lsp.server.lenses import Waiting
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.inline.next_edit.history import History
    from codeagent_lsp.inline.next_edit.proposals import Proposed
    from codeagent_lsp.server.announcer import Announcer
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.server.next_edit_files import NextEditFiles
    from codeagent_lsp.server.workspace_ports import Views
    from codeagent_lsp.workspace.files.file_view import FileText
    from codeagent_lsp.workspace.text.document import Document

PAUSE_SECONDS = 0.15
SEARCH_SECONDS = 3.0

Rewritten = tuple[tuple["FileText", str], ...]
"""Files as they were read, and their new texts."""


class Parts(Protocol):
    """The parts of a server that next edits need."""

    front: Front
    views: Views
    index: IndexHost
    announcer: Announcer


class NextEdits:
    """The next edits of one server. `due` is where the last change is due, of the texts of now."""

    def __init__(self, parts: Parts) -> None:
        self.due: tuple[Proposed, ...] = ()
        self._parts = parts
        self._history: History | None = None
        self._dismissed: set[str] = set()
        self._texts: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None
        documents = parts.front.server.documents
        self._unsubscribe = documents.subscribe(self._changed)
        for document in documents.all():
            self._changed(document.uri, document)

    @property
    def history(self) -> History | None:
        """The last edits; None before the first one."""
        return self._history

    def files(self) -> NextEditFiles:
        """Return the workspace of now. Blocks a little, as modules are loaded."""
        from codeagent_lsp.server.next_edit_files import NextEditFiles  # late: parsers are heavy
        from codeagent_lsp.tools.permissions.policy import may_read  # late: as above

        view = self._parts.views.plain()
        return NextEditFiles(view, self._parts.index, may_read(self._parts.front.settings().permissions, view.roots))

    def waiting(self) -> tuple[Waiting, ...]:
        """Return the offers, one for each file in which something is due, at the first place."""
        language = self._parts.front.language()
        paths = list(dict.fromkeys(each.path for each in self.due))
        found = []
        for path in paths:
            mine = [each for each in self.due if each.path == path]
            document = self._parts.front.server.documents.by_path(path)
            line = document.text.count("\n", 0, mine[0].start) if document is not None else 0
            title = text("lens.next_edit", language, change=mine[0].title, count=len(self.due))
            offers: tuple[tuple[str, str, dict[str, Any]], ...] = (
                (text("lens.next_edit_apply", language), "codeagent.nextEdit.apply", {}),
                (text("lens.next_edit_dismiss", language), "codeagent.nextEdit.dismiss", {}),
            )
            found.append(Waiting("nextEdit", title, uris.from_path(path), offers, line))
        return tuple(found)

    def at_line(self, document: Document, line: int) -> Proposed | None:
        """Return the edit that is due in a line of a document, from 0."""
        return next((each for each in self._in(document) if document.text.count("\n", 0, each.start) == line), None)

    def nearest(self, document: Document, line: int) -> Proposed | None:
        """Return the edit of a document that is due nearest to a line; None for none."""
        lines = {each: document.text.count("\n", 0, each.start) for each in self._in(document)}
        return min(lines, key=lambda each: abs(lines[each] - line), default=None)

    def _in(self, document: Document) -> list[Proposed]:
        opened = self._parts.front.server.documents
        mine = (each for each in self.due if opened.by_path(each.path) is document)
        return [each for each in mine if document.text[each.start : each.end] == each.old]

    async def rewritten(self) -> Rewritten:
        """Look once more, and return the files in which something is due, with their new texts. UsageError for none."""
        files, due = await self._found()
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
        """Offer the change that is offered now no more."""
        self._dismissed |= {each.title for each in self.due}
        self._offer(())

    async def close(self) -> None:
        """Stop watching."""
        self._unsubscribe()
        if self._looking is not None:
            self._looking.cancel()

    def _changed(self, uri: str, document: Document | None) -> None:
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
        _, due = await self._found()
        self._offer(tuple(each for each in due if each.title not in self._dismissed))

    async def _found(self) -> tuple[NextEditFiles, tuple[Proposed, ...]]:
        from codeagent_lsp.inline.next_edit.proposals import search  # late: parsers are heavy

        files = self.files()
        if self._history is None:
            return files, ()
        return files, (await search(self._history, files, SEARCH_SECONDS)).proposed

    def _offer(self, due: tuple[Proposed, ...]) -> None:
        if due != self.due:
            self.due = due
            self._parts.announcer.refresh_lenses()
