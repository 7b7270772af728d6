"""Answers `textDocument/inlineCompletion`: what may be sent of which text, and an answer only for the text of now.

Not here: asking the model (`inline/completer.py`), switching on and off (`inline.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.inline.completer import Completer, Options
from codeagent_lsp.inline.place import Place, worth_asking
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.workspace.files.file_view import FileView
    from codeagent_lsp.workspace.text.document import Document

REMEMBERED_SECONDS = 5.0
"""How long it is remembered whether a file may be shown: rules may change while the user types."""
SCRATCH = "untitled"

MayRead = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Texts:
    """The open texts, the files behind them, what may be shown of them, and the mask of secrets."""

    documents: Documents
    view: Callable[[], FileView]
    may_read: Callable[[FileView], MayRead]
    clean: Callable[[str], str]


class InlineCompletions:
    """The completions of one server by one completer; `options` are the settings of now."""

    def __init__(self, texts: Texts, completer: Completer, options: Callable[[], Options]) -> None:
        self.completer = completer
        self.recent: OrderedDict[str, None] = OrderedDict()
        self._texts = texts
        self._options = options
        self._allowed: dict[str, tuple[float, str | None]] = {}
        self._unsubscribe = texts.documents.subscribe(self._changed)

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """Return at most one completion; None also when the text has changed meanwhile."""
        document = self._texts.documents.get(params.text_document.uri)
        if document is None:
            return None
        encoding = self._texts.documents.encoding
        offset = document.offset(params.position.line, params.position.character, encoding)
        invoked = params.context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
        name = await self._name(document)
        if name is None:
            return None
        chosen = params.context.selected_completion_info
        place, range_, begins = Place(name, document.text, offset, document.version), None, ""
        # LSP wants an answer that begins with the chosen entry and replaces its range.
        if chosen is not None:
            place, begins = _with_chosen(place, document, chosen, self._texts.documents)
            range_ = chosen.range
        if not worth_asking(place, invoked=invoked) or self._hides(place):
            return None
        text = await self.completer.complete(place, self._options(), invoked=invoked)
        # Snapshots are new with each change: the same object is the same text.
        if not text or self._texts.documents.get(params.text_document.uri) is not document:
            return None
        range_ = range_ or types.Range(params.position, params.position)
        return types.InlineCompletionList([types.InlineCompletionItem(insert_text=begins + text, range=range_)])

    def close(self) -> None:
        """Hear of no more texts."""
        self._unsubscribe()

    async def _name(self, document: Document) -> str | None:
        """Return the name under which a text is sent; None if it must not be."""
        path = uris.real_path(document.uri)
        if path is None:
            return SCRATCH if document.uri.startswith("untitled:") else None
        known = self._allowed.get(path)
        if known is None or time.monotonic() - known[0] > REMEMBERED_SECONDS:
            self._allowed[path] = known = (time.monotonic(), await asyncio.to_thread(self._shown_name, path))
        return known[1]

    def _shown_name(self, path: str) -> str | None:
        view = self._texts.view()
        inside = view.roots.root_of(path) is not None
        allowed = inside and not view.is_ignored(path) and self._texts.may_read(view)(path)
        return view.roots.relative(path) if allowed else None

    def _hides(self, place: Place) -> bool:
        """Return whether the cursor's line has a secret: nothing is written beside one."""
        line = place.text[place.line_start : place.line_end]
        return self._texts.clean(line) != line

    def _changed(self, uri: str, document: Document | None) -> None:
        path = uris.real_path(uri)
        if path is not None:
            self.recent[path] = None
            self.recent.move_to_end(path, last=False)
            if document is None:
                self.recent.pop(path, None)
        name = (self._allowed.get(path, (0.0, None))[1] if path else SCRATCH) or ""
        if document is None:
            self.completer.forget(name)
        else:
            self.completer.moved(name, document.text)


def _with_chosen(
    place: Place, document: Document, chosen: types.SelectedCompletionInfo, documents: Documents
) -> tuple[Place, str]:
    """Return the place as if the entry that is chosen in the list of completions were there, and that entry."""
    ends = [document.offset(at.line, at.character, documents.encoding) for at in (chosen.range.start, chosen.range.end)]
    start, end = min(ends), max(ends)
    text = document.text[:start] + chosen.text + document.text[end:]
    return Place(place.path, text, start + len(chosen.text), place.version), chosen.text
