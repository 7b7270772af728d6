"""The texts that the user has now, in buffers and on disk, and waiting until changes that were sent are in them.

Every version since the request counts: what is typed or formatted right behind a change may hide it in the next one.
Not here: applying changes (`editor.py`), how the outcome is judged (`text_edits.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.server.documents import Documents, Listener
from codeagent_lsp.server.text_edits import holds, same_text
from codeagent_lsp.workspace.changes.changeset import Current, FileChange
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.document import Document


class CurrentTexts:
    """The texts of files (absolute paths) as they are at this moment: of the open buffer, else of the disk. `read_disk`
    returns the text of a file on disk, None when there is none.
    """

    def __init__(self, documents: Documents, read_disk: Callable[[str], str | None]) -> None:
        self._documents = documents
        self._read_disk = read_disk

    def has_unsaved_text(self, path: str) -> bool:
        """Return whether the buffer differs from the file on disk; True also if the buffer's text is not known."""
        if not self.in_step(path):
            return True
        document, disk = self.document(path), self.disk(path)
        if document is None:
            return False
        read = FileChange(path, disk, disk).read_as(document.text)
        return read is None or not same_text(read.base, document.text)

    async def opened(self, path: str, seconds: float) -> None:
        """Wait until a file (absolute path) is open in the client, at most `seconds`; returns in either case."""
        # Looked at after subscribing, so that no opening falls in between.
        is_open = asyncio.Event()

        def look(*_: object) -> None:
            if self.document(path) is not None:
                is_open.set()

        end = self.subscribe(look)
        try:
            look()
            async with asyncio.timeout(seconds):
                await is_open.wait()
        except TimeoutError:
            pass
        finally:
            end()

    async def pause(self, seconds: float, most: float) -> None:
        """Wait until no buffer has changed for `seconds`, no longer than `most` seconds."""
        changed = asyncio.Event()
        end = self.subscribe(lambda *_: changed.set())
        try:
            async with asyncio.timeout(most):
                while True:
                    async with asyncio.timeout(seconds):
                        await changed.wait()
                    changed.clear()
        except TimeoutError:
            pass  # it was quiet for as long, or as much time is over
        finally:
            end()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` on every change of a buffer; see `Documents.subscribe`."""
        return self._documents.subscribe(listener)

    def steps(self) -> Sequence[str]:
        """Return the intermediate texts of a buffer's last change; only while listeners are called, see
        `Documents.steps`.
        """
        return self._documents.steps()

    def holds(self, change: FileChange) -> bool:
        """Return whether all of the change, whatever else was typed, is in the buffer, or on disk for a file that is
        not open.
        """
        if change.text is None:
            return self._is_gone(change.path)
        left = change.moved_from is None or self._is_gone(change.moved_from)
        return left and self.has(change, self.current(change.path).text)

    def has(self, change: FileChange, now: str | None) -> bool:
        """Return whether `now`, a text of the file, has all of the change; False for None."""
        return change.text is not None and now is not None and holds(change.base, change.text, now)

    def _is_gone(self, path: str) -> bool:
        """Return whether the file is gone from disk; an editor may go on showing its text."""
        return not os.path.lexists(path) if Path(path).is_absolute() else self.document(path) is None

    def current(self, path: str) -> Current:
        """Return the text of a file as the user has it, with the version of its buffer, None for one that is not open;
        its text is None if there is no file. Blocks for one that is read from the disk.
        """
        document = self.document(path)
        if document is not None:
            return Current(document.text, document.version)
        # A URI that is no file's, such as `untitled:`, has nothing on disk.
        return Current(None if uris.to_path(self.uri(path)) is None else self.disk(path))

    def in_step(self, path: str) -> bool:
        """Return whether the known text of a path is that of the client; see `Documents.in_step`."""
        return self._documents.in_step(self.uri(path))

    def disk(self, path: str) -> str | None:
        """Return the text on disk of a file (absolute path); None if there is no file or it cannot be read as text."""
        try:
            return self._read_disk(path)
        except FileRefused:
            return None

    def document(self, path: str) -> Document | None:
        """Return the open buffer of a path; None if it is not open."""
        return self._documents.get(self.uri(path))

    def uri(self, path: str) -> str:
        """Return the URI under which the client knows a path, or the path itself if it is a URI."""
        return self._documents.uri(path)

    def file_uri(self, path: str) -> str:
        """Return the URI of the file itself, for deleting or renaming it: if the client knows it by a link, that would
        be deleted.
        """
        uri = self.uri(path)
        named = uris.to_path(uri)
        return uri if named is None or not Path(named).is_symlink() else uris.from_path(path)


POLL_SECONDS = 0.02  # the disk tells nothing by itself


class Arrivals:
    """A context manager that watches for `changes` in the client's texts; `missing` are those not seen yet.
    `is_out(change, text)` is a quick test: True only if `text` has nothing of the change, while False says nothing.
    """

    def __init__(
        self, texts: CurrentTexts, changes: Sequence[FileChange], is_out: Callable[[FileChange, str | None], bool]
    ) -> None:
        self.missing = list(changes)
        self._is_out = is_out
        self._texts = texts
        self._versions: list[tuple[str, str]] = []
        self._heard: dict[str, list[str]] = {}
        self._judged: dict[str, str | None] = {}
        self._told = asyncio.Event()

    def __enter__(self) -> Arrivals:
        """Begin to listen."""
        # Before the edit is sent: some clients tell the new text before they answer.
        self._end = self._texts.subscribe(self._note)
        for change in self.missing:
            now = self._texts.current(change.path).text
            self._heard[self._texts.uri(change.path)] = [] if now is None else [now]
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        self.look()
        self._end()

    async def until(self, enough: Callable[[], bool], seconds: float) -> None:
        """Wait until all changes have come, or `enough` returns True; at most `seconds`. Returns in any case: see
        `missing`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            self.look()
            left = deadline - loop.time()
            if not self.missing or enough() or left <= 0:
                return
            try:
                # Buffers tell of themselves; the short limit is for files that are not open.
                async with asyncio.timeout(min(left, POLL_SECONDS)):
                    await self._told.wait()
            except TimeoutError:
                continue
            self._told.clear()

    def heard(self, path: str) -> Sequence[str]:
        """Return all texts of a file (absolute path) since this began, with the steps between them, the first of which
        was there then; () if none came.
        """
        return self._heard.get(self._texts.uri(path), ())

    def look(self) -> None:
        """Drop from `missing` what is in one of the texts that have been there since the last look. Does not wait."""
        versions, self._versions = self._versions, []
        self.missing = [change for change in self.missing if not self._has_come(change, versions)]

    def _has_come(self, change: FileChange, versions: Sequence[tuple[str, str]]) -> bool:
        if change.kind == "edit":
            uri = self._texts.uri(change.path)
            texts = [text for other, text in versions if other == uri]
            if any(not self._is_out(change, text) and self._texts.has(change, text) for text in texts):
                return True
            now = self._texts.current(change.path).text
            if self._judged.get(change.path, ...) == now or self._is_out(change, now):
                return False  # comparing long texts takes longer than the pause between two looks
            self._judged[change.path] = now
        return self._texts.holds(change)

    def _note(self, uri: str, document: Document | None) -> None:
        if document is not None:
            self._versions.append((document.uri, document.text))
            self._heard.setdefault(document.uri, []).extend((*self._texts.steps(), document.text))
        self._told.set()
