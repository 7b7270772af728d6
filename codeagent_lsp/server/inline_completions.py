"""Answers `textDocument/inlineCompletion`: what may be sent of which text, and an answer only for the text of now.

Not here: asking the model (`inline/completer.py`), switching on and off (`inline.py`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

import attrs
from lsprotocol import types

from codeagent_lsp.inline.completer import Completer, Options
from codeagent_lsp.inline.context import Place, worth_asking
from codeagent_lsp.server.next_edits import shown_name
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.workspace.files.file_view import FileView
    from codeagent_lsp.workspace.text.document import Document

REMEMBERED_SECONDS = 5.0
"""How long it is remembered whether a file may be shown: rules may change while the user types."""
SCRATCH = "untitled"

SHOWN = 80
"""Most characters of a completion that its entry in a list shows."""
_WORD_BEFORE = re.compile(r"\w*$")
_IN_WORDS = tuple("-:#?!*&$@")
"""In some languages editors take these for a part of the word, so that it begins before ours."""

MayRead = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Texts:
    """The open texts, the files behind them, what may be shown of them, and the mask of secrets."""

    documents: Documents
    view: Callable[[], FileView]
    may_read: Callable[[FileView], MayRead]
    clean: Callable[[str], str]


class InlineCompletions:
    """Answers requests for completions of one server by one completer, with checks of what may be sent; `options` are
    the present settings.
    """

    def __init__(self, texts: Texts, completer: Completer, options: Callable[[], Options]) -> None:
        self.completer = completer
        self.recent: OrderedDict[str, None] = OrderedDict()
        self._texts = texts
        self._options = options
        self._allowed: dict[str, tuple[float, str | None]] = {}
        self._unsubscribe = texts.documents.subscribe(self._on_change)

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """Return at most one completion; None if there is none, the file may not be sent, or the text has changed while
        it was made. Waits for the model; cancellable.
        """
        document = self._texts.documents.get(params.text_document.uri)
        place = None if document is None else await self._place(document, params.position)
        if document is None or place is None or not self._texts.documents.is_current(document):
            return None
        invoked = params.context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
        chosen, begins = params.context.selected_completion_info, ""
        # LSP wants an answer that begins with the chosen entry and replaces its range.
        if chosen is not None:
            place, begins = _with_chosen(place, document, chosen, self._texts.documents)
        text = await self._complete_at(document, place, invoked=invoked)
        if not text:
            return None
        range_ = types.Range(params.position, params.position) if chosen is None else chosen.range
        return types.InlineCompletionList([types.InlineCompletionItem(insert_text=begins + text, range=range_)])

    async def complete_plainly(
        self, params: types.CompletionParams, *, cuts_words: bool = False
    ) -> types.CompletionItem | None:
        """Return the completion as an entry that sorts last in a list; None if there is none, or the text has changed
        meanwhile. `cuts_words` is as in `ClientPolicy`.
        """
        document = self._texts.documents.get(params.text_document.uri)
        place = None if document is None else await self._place(document, params.position)
        if document is None or place is None or not self._texts.documents.is_current(document):
            return None
        text = await self._complete_at(document, place, invoked=False)
        if not text.strip():
            return None
        before, word = split_last_word(place.line_before)
        start = document.position(place.offset - len(word), self._texts.documents.encoding)
        range_ = types.Range(types.Position(start.line, start.character), params.position)
        if cuts_words and not before.endswith(_IN_WORDS):
            return as_word(plain_item(word, text, range_), before)
        return plain_item(word, text, range_)

    def close(self) -> None:
        """Stop following the documents."""
        self._unsubscribe()

    async def _place(self, document: Document, position: types.Position) -> Place | None:
        """Return the cursor in a text as it is sent; None for a text that must not be."""
        name = await self._name(document)
        offset = document.offset(position.line, position.character, self._texts.documents.encoding)
        file = uris.real_path(document.uri)
        return None if name is None else Place(name, document.text, offset, document.version, file)

    async def _complete_at(self, document: Document, place: Place, *, invoked: bool) -> str:
        """Return what the model adds to a text, if that is the text still."""
        if not worth_asking(place, invoked=invoked) or self._hides(place):
            return ""
        text = await self.completer.complete(place, self._options(), invoked=invoked)
        # Snapshots are new with each change: the same object is the same text.
        return text if self._texts.documents.is_current(document) else ""

    async def _name(self, document: Document) -> str | None:
        """Return the name under which a text is sent; None if it must not be."""
        path = uris.real_path(document.uri)
        if path is None:
            return SCRATCH if document.uri.startswith("untitled:") or uris.is_nameless(document.uri) else None
        known = self._allowed.get(path)
        if known is None or time.monotonic() - known[0] > REMEMBERED_SECONDS:
            self._allowed[path] = known = (time.monotonic(), await asyncio.to_thread(self._shown_name, path))
        return known[1]

    def _shown_name(self, path: str) -> str | None:
        view = self._texts.view()
        return shown_name(view, self._texts.may_read(view), path)

    def _hides(self, place: Place) -> bool:
        """Return whether the cursor's line has a secret: nothing is written beside one."""
        line = place.text[place.line_start : place.line_end]
        return self._texts.clean(line) != line

    def _on_change(self, uri: str, document: Document | None) -> None:
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
    return replace(place, text=text, offset=start + len(chosen.text)), chosen.text


def split_last_word(line_before: str) -> tuple[str, str]:
    """Return (before, word): the text of a line before the word that is being typed at its end, and that word, '' if
    there is none.
    """
    word = "".join(_WORD_BEFORE.findall(line_before))
    return line_before[: len(line_before) - len(word)], word


def plain_item(word: str, text: str, range_: types.Range) -> types.CompletionItem:
    """Return a completion of `word`, which is typed in `range_`, as an entry of a list: below all others, and marked.

    It holds the word, so that clients which filter by what is typed keep it.
    """
    whole = word + text
    first, *rest = whole.strip().splitlines()
    shown = first[:SHOWN].rstrip()
    return types.CompletionItem(
        label=shown + (" …" if rest or shown != first.rstrip() else ""),
        detail="CodeAgent",
        kind=types.CompletionItemKind.Text,
        filter_text=word or None,
        sort_text="\uffff",
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(range_, whole),
        # No character that the user types may take it.
        commit_characters=[],
        documentation=whole if rest else None,
    )


def as_word(item: types.CompletionItem, before: str) -> types.CompletionItem:
    """Return an entry without an edit: its text replaces the word that the client sees after `before`, and its lines
    are relative to the first one. It is cut before a line that is indented less, which this form cannot express.
    """
    assert item.text_edit is not None
    indentation = before[: len(before) - len(before.lstrip())]
    first, *rest = item.text_edit.new_text.split("\n")
    lines = [*takewhile(lambda line: not line.strip() or line.startswith(indentation), rest)]
    text = "\n".join([first, *(line.removeprefix(indentation) for line in lines)])
    return attrs.evolve(item, text_edit=None, insert_text=text, insert_text_mode=types.InsertTextMode.AdjustIndentation)
