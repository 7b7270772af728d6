"""Offers to finish a change that the user has made by hand: the callers of what has another signature, name or place.

Looked for in a pause of typing where a language server of ours runs already, and by command, which starts one. Nothing
is offered that is not proved, but at an error that the editor itself shows. Not here: repairs and their proof
(`inline/finish_change/`), the texts before the edits (`next_edits.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from codeagent_lsp.server.actions import Waiting
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.visible import some_of

if TYPE_CHECKING:
    from lsprotocol import types

    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.inline.finish_change.changes import Change
    from codeagent_lsp.inline.finish_change.finishing import Finished
    from codeagent_lsp.language_servers.pool import LanguageServerPool
    from codeagent_lsp.language_servers.session_servers import SessionServers
    from codeagent_lsp.server.announcer import Announcer
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.server.next_edits import NextEdits
    from codeagent_lsp.server.run_services import Views
    from codeagent_lsp.session.manager import SessionManager
    from codeagent_lsp.session.request import RunRequest
    from codeagent_lsp.session.run_parts import Ended, RunParts
    from codeagent_lsp.workspace.files.file_view import FileText, FileView
    from codeagent_lsp.workspace.text.document import Document

PAUSE_SECONDS = 0.6
LOOK_SECONDS = 20.0
RUN_SECONDS = 90.0
INDEX_SECONDS = 15.0
MOST_NAMED = 5
_ERROR = 1


class Parts(Protocol):
    """Port: the parts of a server that `FinishChanges` uses."""

    front: Front
    views: Views
    index: IndexHost
    language_servers: LanguageServerPool
    announcer: Announcer
    manager: SessionManager


@dataclass(frozen=True)
class _Made:
    """What the user has changed, with the texts of the changed files before and now."""

    changes: tuple[Change, ...]
    bases: Mapping[str, str]
    texts: Mapping[str, str]

    @property
    def key(self) -> tuple[object, ...]:
        """What is different when another thing was changed; the bodies of functions are not."""
        return tuple((each.path, each.title, each.before.owner, each.after.owner) for each in self.changes)


class FinishChanges:
    """Offers to finish the user's own change, for one server: watches the documents until `close`. `found` is what was
    proved last, None for nothing.
    """

    def __init__(self, parts: Parts, next_edits: NextEdits) -> None:
        self.found: Finished | None = None
        self._parts = parts
        self._next_edits = next_edits
        self._made: _Made | None = None
        self._looked: tuple[object, ...] = ()
        self._dismissed: set[str] = set()
        # The texts when a change was finished last: callers may be as it left them, or as they were before all.
        self._finished_at: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None
        # After the next edits, which note the texts before the edits.
        self._unsubscribe = parts.front.server.documents.subscribe(self._on_change)
        if next_edits.history is not None:  # what was typed while this was being loaded
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def waiting(self) -> tuple[Waiting, ...]:
        """Return the offers at the definitions that have changed, for lenses and code actions; () for none."""
        found, language = self.found, self._parts.front.language()
        if found is None or not found.texts:
            return ()
        change = found.changes[0]
        document = self._parts.front.server.documents.by_path(change.path)
        line = document.text.count("\n", 0, _offset(document.text, change)) if document is not None else 0
        offers: tuple[tuple[str, str, dict[str, Any]], ...] = (
            (text("lens.finish_change_apply", language), "codeagent.finishChange", {}),
            (text("lens.next_edit_dismiss", language), "codeagent.finishChange.dismiss", {}),
        )
        title = text("lens.finish_change", language, **_counts(found))
        return (Waiting("finishChange", title, uris.from_path(change.path), offers, line),)

    def at_problems(self, document: Document, problems: Sequence[types.Diagnostic]) -> tuple[Waiting, ...]:
        """Return the offers at those errors of the editor whose lines name a changed definition, at most one; () for
        none.
        """
        made, language = self._made, self._parts.front.language()
        if made is None or any(each.title in self._dismissed for each in made.changes):
            return ()
        found = self.found if self._looked == made.key else None
        if found is not None and not found.texts:
            return ()  # it is known that nothing can be proved
        lines = document.text.split("\n")
        offers = []
        for each in problems:
            line = each.range.start.line
            here = lines[line] if line < len(lines) else ""
            change = next((change for change in made.changes if change.word in here), None)
            if change is None or each.severity not in (None, _ERROR):
                continue
            title = (
                text("action.finish_change", language, **_counts(found))
                if found is not None
                else text("action.finish_change_look", language, change=change.title)
            )
            action = (title, "codeagent.finishChange", dict[str, Any]())
            offers.append(
                Waiting("finishChange", "", document.uri, (action,), line, lens=False, last=each.range.end.line)
            )
        return tuple(offers[:1])

    def dismiss(self) -> None:
        """Stop offering the changes that are offered now, until the server ends; returns at once."""
        made = self._made
        self._dismissed |= {each.title for each in made.changes} if made is not None else set()
        self._offer(None)

    async def finish(self, parts: RunParts, request: RunRequest) -> Ended:
        """Do the work of a run that finishes the change: stage what is proved; return (status, summary), with what is
        left. Searches for at most about 90 s.
        """
        from codeagent_lsp import events  # late: with the parts of a run
        from codeagent_lsp.session.own_runs import stage_texts  # late, as above

        output = parts.output
        made = await self._changes()
        if made is None:
            return "completed", output.text("finish_change.none")
        title = made.changes[0].title
        output.emit(events.StatusChanged(message=output.text("finish_change.looking", change=title)))
        pool = self._parts.language_servers
        servers = next(iter(pool.warm), None) or pool.of(parts.session.session_id)
        found, files = await self._finish(made, servers, RUN_SECONDS, INDEX_SECONDS)
        if not found.checked:
            return "completed", output.text("finish_change.no_server", change=title)
        names = parts.proposal.view.roots.relative
        places = [f"{names(each.path)}:{each.line + 1}" for each in found.left]
        left = output.text("finish_change.left", places=some_of(places, MOST_NAMED, counted=False)) if places else ""
        if not found.texts:
            return "completed", " ".join((output.text("finish_change.nothing", change=title), left)).strip()
        rewritten = tuple((files[path], new) for path, new in found.texts.items())
        await stage_texts(parts, replace(request, rewritten=rewritten))
        self._finished_at |= {path: text for path, text in made.texts.items() if path in made.bases}
        told = output.text("finish_change.done", **_counts(found))
        words = " ".join((told, left)).strip()
        output.emit(events.StatusChanged(message=words))
        self._offer(None)
        return "completed", words

    async def close(self) -> None:
        """Stop watching the documents and cancel a search, whose end is not waited for."""
        self._unsubscribe()
        if self._looking is not None:
            self._looking.cancel()

    def _on_change(self, uri: str, document: Document | None) -> None:
        if self._looking is not None:
            self._looking.cancel()
        path = uris.real_path(uri)
        if document is None and path is not None:
            self._finished_at.pop(path, None)
        if self._next_edits.history is None:
            return
        # One task at a time, as for next edits.
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        made = self._made = await self._changes()
        if made is None or any(each.title in self._dismissed for each in made.changes):
            self._looked = ()
            self._offer(None)
            return
        if self._looked == made.key and (self.found is None or not self.found.texts):
            return  # nothing was wrong with it, and bodies change nothing about that
        warm = next((servers for servers in self._parts.language_servers.warm if not servers.busy), None)
        # A run at work needs its servers itself.
        if warm is None or self._parts.manager.runs.active():
            self._offer(None)
            return
        found, _ = await self._finish(made, warm, LOOK_SECONDS, 1.0)
        self._looked = made.key if found.checked else ()
        self._offer(found if found.checked else None)

    async def _changes(self) -> _Made | None:
        """Return what the user has changed of definitions; None for nothing."""
        from codeagent_lsp.inline.finish_change.finishing import changed_declarations  # late: parsers are heavy

        history = self._next_edits.history
        edited = [each for each in history.files if each.base != each.text] if history is not None else []
        bases = {each.path: each.base for each in edited}
        texts = {each.path: each.text for each in edited}
        since = {path: text for path, text in self._finished_at.items() if text != texts.get(path)}
        newer = await asyncio.to_thread(changed_declarations, since, texts) if since else ()
        found = (*newer, *await asyncio.to_thread(changed_declarations, bases, texts))
        return _Made(found, bases, texts) if found else None

    async def _finish(
        self, made: _Made, servers: SessionServers, seconds: float, index_seconds: float
    ) -> tuple[Finished, Mapping[str, FileText]]:
        from codeagent_lsp.inline.finish_change.finishing import MOST_FILES, finish  # late: as above

        files = await asyncio.to_thread(self._next_edits.files)
        files = replace(files, index_seconds=index_seconds)
        paths = dict.fromkeys(made.bases)
        for change in made.changes:
            for path in await files.files_with((change.word,), MOST_FILES):
                paths[path] = None
        words = [change.word for change in made.changes]

        def read() -> dict[str, FileText]:
            found: dict[str, FileText] = {}
            for path in paths:
                file = files.read(path)
                if file is not None and (path in made.bases or any(word in file.text for word in words)):
                    found[path] = file
                if len(found) >= MOST_FILES:
                    break
            return found

        read_files = await asyncio.to_thread(read)
        texts = {path: file.text for path, file in read_files.items()}
        found = await finish(made.changes, made.bases, texts, servers, self._over, seconds)
        return found, read_files

    def _over(self, texts: Mapping[str, str]) -> FileView:
        return self._parts.views.over(_Texts(texts))

    def _offer(self, found: Finished | None) -> None:
        if found != self.found:
            self.found = found
            self._parts.announcer.refresh_lenses()


class _Texts:
    """A `StagedView` of texts by absolute path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        from codeagent_lsp.workspace.files.file_view import StagedFile  # late: with what asks for it

        self._files = {path: StagedFile(text) for path, text in texts.items()}

    def lookup(self, path: str) -> Any:
        return self._files.get(path)

    def paths(self) -> tuple[str, ...]:
        return tuple(self._files)


def _counts(found: Finished) -> dict[str, Any]:
    repaired = len(found.repaired)
    return {"change": found.title, "repaired": repaired, "count": repaired + len(found.left)}


def _offset(now: str, change: Change) -> int:
    """Return where the changed definition begins in a text, in characters."""
    return len(now.encode("utf-8", "replace")[: change.after.name_range[0]].decode("utf-8", "replace"))
