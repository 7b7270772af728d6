"""The documents that the client has open, as snapshots, kept up to date by `didOpen`, `didChange` and `didClose`.

Clients differ and err (a change for a closed file, a second open), so nothing here raises. After a change that cannot
be applied, the client has another text than is known here: the document is *out of step* until the client tells a whole
text, and the last known one stays as it is. Listeners are called on every change, which is how to wait for a text to
arrive. Not here: files on disk (`workspace/files/file_view.py`) and LSP types (`server.py` converts).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding

Listener = Callable[[str, Document | None], None]

MOST_UNOPENED = 20
"""Documents that are out of step without being open, of which so many are told of and remembered."""
STEPS_CHARACTERS = 16 * 1024 * 1024

_log = logging.getLogger(__name__)


class Documents:
    """The open documents, by URI. `encoding` is the position encoding agreed on with the client; `folders` returns the
    absolute paths of the workspace folders as the client names them, and `lost` is called with the URI of a document,
    other than an unnamed one, that gets out of step.
    """

    def __init__(
        self,
        encoding: Encoding = "utf-16",
        folders: Callable[[], Iterable[str]] = tuple,
        lost: Callable[[str], None] = lambda uri: None,
    ) -> None:
        self.encoding: Encoding = encoding
        self._folders = folders
        self._lost = lost
        self._out_of_step: dict[str, None] = {}
        self._steps: list[str] = []
        self._open: dict[str, Document] = {}
        self._opened_with: dict[str, str] | None = {}
        self._real: dict[str, str] = {}
        self._by_real: dict[str, str] = {}
        self._listeners: list[Listener] = []

    def open(self, document: Document) -> None:
        """Add a document; a second open of the same one replaces its text, with a warning in the log."""
        # Clients spell one URI in several ways (`%3A` or `:`), and close it by another than they opened it.
        key = uris.spelling(document.uri)
        shared = key in self._open and uris.is_nameless(document.uri)
        if key in self._open:
            _log.warning("A document was opened twice; the second text is used.")
        path = uris.real_path(document.uri)
        if path is not None:
            self._place(key, path)
        self._out_of_step.pop(key, None)
        if shared:  # of which of the two buffers a change tells is not known
            self.lose(document.uri)
        if self._opened_with is not None:
            self._opened_with[key] = document.text
        self._put(key, document)

    def take_beginnings(self) -> dict[str, str]:
        """Return the texts with which the open documents were opened, by URI, for a part that begins to follow edits
        later than the user makes them. They are kept until this is called, and not again afterwards.
        """
        texts, self._opened_with = self._opened_with or {}, None
        return {self._open[key].uri: text for key, text in texts.items() if key in self._open}

    def change(self, uri: str, version: int | None, changes: Iterable[Change]) -> Document | None:
        """Apply changes in order (positions counted from 0 in `encoding`) and return the new snapshot; None when the
        document is not open. If a partial change is for an older version, or its range is not in the text, nothing is
        applied and the document is out of step. A change of the whole text is always applied.
        """
        key, changes = uris.spelling(uri), list(changes)
        known = self._open.get(key)
        # VS Code does so after the undo of a new file: it closes the document, then tells of a change.
        if known is None:
            _log.warning("A change for a document that is not open was left out.")
            return None
        # What was before a whole text does not matter, whatever was wrong with it.
        whole = max((number for number, change in enumerate(changes) if change.start is None), default=None)
        changes = changes[whole or 0 :]
        if whole is None and key in self._out_of_step:
            return known
        if whole is None and _is_older(version, known.version):
            _log.warning("A change to version %s came after version %s; left out.", version, known.version)
            if changes:
                self.lose(uri)
            return known
        # Also without a change: edits have to name this version.
        document = known if version is None else replace(known, version=version)
        steps = list[str]()
        for change in changes:
            steps.append(document.text)
            if not document.has_range(change, self.encoding):
                _log.warning("A change was left out: its range is none of the text.")
                self.lose(uri)
                return known
            document = document.apply(change, self.encoding, version=version)
        self._out_of_step.pop(key, None)
        is_small = sum(map(len, steps)) <= STEPS_CHARACTERS
        self._steps = steps[1:] if is_small else []
        self._put(key, document)
        self._steps = []
        return document

    def steps(self) -> Sequence[str]:
        """Return the intermediate texts of the last change, as a client may send in one message what was typed and what
        it did itself; only while listeners are called, () for many long ones.
        """
        return self._steps

    def lose(self, uri: str) -> None:
        """Mark a document as out of step, because the client sent something about its text that was not understood; it
        need not be open. `lost` is called, the first time.
        """
        key = uris.spelling(uri)
        if key in self._out_of_step:
            return
        # Bounded, as a client may err without end; those that are not open have no text that could be wrong.
        closed = [each for each in self._out_of_step if each not in self._open]
        for each in closed[: max(0, len(closed) - MOST_UNOPENED)]:
            del self._out_of_step[each]
        self._out_of_step[key] = None
        # A buffer without a name is no file of a run: nothing comes of it that the user has to know.
        if (key in self._open or len(closed) <= MOST_UNOPENED) and not uris.is_nameless(uri):
            self._lost(uri)

    def lost_paths(self) -> tuple[str, ...]:
        """Return the real paths of the open files that are out of step; () for none."""
        return tuple(path for path, key in self._by_real.items() if key in self._out_of_step)

    def in_step(self, uri: str) -> bool:
        """Return whether the known text under `uri` is that of the client: False after `lose`, until the whole text
        comes again.
        """
        return uris.spelling(uri) not in self._out_of_step

    def close(self, uri: str) -> None:
        """Remove a document and tell the listeners; one that is not open is ignored."""
        key = uris.spelling(uri)
        self._out_of_step.pop(key, None)
        document = self._open.pop(key, None)
        if self._opened_with is not None:
            self._opened_with.pop(key, None)
        if document is not None:
            self._place(key, None)
            self._tell(document.uri, None)

    def get(self, uri: str) -> Document | None:
        """Return the open document under any spelling of its URI; None when it is not open."""
        return self._open.get(uris.spelling(uri))

    def is_current(self, document: Document) -> bool:
        """Return whether a document is the client's text at this moment, so that its positions are those in the editor;
        False once another text has come or it is closed.
        """
        return self.get(document.uri) is document and self.in_step(document.uri)

    def by_path(self, path: str) -> Document | None:
        """Return the open document of a file, by absolute path; None when it is not open.

        The client may know the file under a name that leads to `path` by symbolic links.
        """
        named = self._open.get(uris.spelling(uris.from_path(path)))
        return named if named is not None else self._open.get(self._by_real.get(path, ""))

    def uri(self, path: str) -> str:
        """Return the URI under which the client knows an absolute path, else as one below the folder names that it
        uses, or the path itself if it is a URI.
        """
        if not Path(path).is_absolute() and ":" in path:
            return path
        known = self.by_path(path)
        return known.uri if known is not None else uris.from_path(uris.named_by(path, self._folders()))

    def paths(self) -> tuple[str, ...]:
        """Return the real paths of all files that are open; documents without a path are left out; () for none."""
        return tuple(self._by_real)

    def all(self) -> tuple[Document, ...]:
        """Return all open documents, in the order they were opened."""
        return tuple(self._open.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(uri, document or None when closed)` on every change; the returned function ends that. It is
        called in the event loop, must not wait, and is not called for what is open already.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _place(self, key: str, path: str | None) -> None:
        """Set the real path of a document, None for one that is closed. Of two names of a file the later one counts."""
        # Put behind the others: where two names lead to one file, `_by_real` keeps the later.
        others = {known: place for known, place in self._real.items() if known != key}
        self._real = others if path is None else {**others, key: path}
        self._by_real = {place: known for known, place in self._real.items()}

    def _put(self, key: str, document: Document) -> None:
        self._open[key] = document
        self._tell(document.uri, document)

    def _tell(self, uri: str, document: Document | None) -> None:
        # A copy, as listeners end themselves when they have heard enough.
        for listener in tuple(self._listeners):
            try:
                listener(uri, document)
            except Exception:  # noqa: BLE001 (one failing listener must not keep the text from the others)
                _log.exception("A listener for document changes failed.")


def _is_older(version: int | None, known: int | None) -> bool:
    return version is not None and known is not None and version < known
