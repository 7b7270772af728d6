"""The prompt documents: made and opened, recognised, and read as a task.

They are files in the state folder, so that every editor can edit them; what is written into one is the user's and is
never changed. An editor that keeps a server to the files of its workspace does not open them with us: then the saved
file is read, and sending is offered everywhere. Not here: completion in them (`completion.py`), the run
(`commands/prompt_commands.py`).
"""

from __future__ import annotations

import re
import time
import uuid
from typing import TYPE_CHECKING

from codeagent_lsp.errors import UsageError
from codeagent_lsp.server.lenses import Waiting
from codeagent_lsp.texts import LANGUAGES, text

if TYPE_CHECKING:
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.server.prompting.prompt_files import PromptFiles

_HEADS = "|".join(re.escape(text("prompt.head", language)) for language in LANGUAGES)
_HEAD = re.compile(rf"\s*<!-- (?:{_HEADS})(?: -->|\Z)")


def without_head(words: str) -> str:
    """Return the text of a prompt document without the head that it was made with; other comments are the user's."""
    return _HEAD.sub("", words, count=1)


class PromptDocuments:
    """The prompt documents of one workspace."""

    def __init__(self, files: PromptFiles, documents: Documents) -> None:
        self._files = files
        self._documents = documents
        self._unsent: list[str] = []

    async def open(self, words: str, language: str) -> str:
        """Make a new document that begins with these words, open it, and return its URI."""
        name = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{uuid.uuid4().hex[:4]}.md"
        uri = self._files.write(name, f"<!-- {text('prompt.head', language)} -->\n\n{words}")
        self._unsent.append(uri)
        await self._files.open(uri)
        return uri

    def is_prompt(self, uri: str) -> bool:
        """Return whether this is a prompt document, also one of an earlier server."""
        return self._files.has(uri)

    def task(self, uri: str) -> str:
        """Return the words of the task in a prompt document, unsaved ones first: all but the head. UsageError if there
        are none.
        """
        if not self.is_prompt(uri):
            raise UsageError("prompt.none")
        document = self._documents.get(uri)
        words = without_head(self._files.saved(uri) if document is None else document.text).strip()
        if not words:
            raise UsageError("prompt.empty")
        return words

    def sent(self, uri: str) -> None:
        """Offer a document that is not open no more, since its task was sent."""
        self._unsent = [other for other in self._unsent if other != uri]

    def waiting(self, language: str) -> tuple[Waiting, ...]:
        """Return the offers to send prompt documents, for code lenses and code actions. Each open one has its own; the
        newest one that is not open with us, but was not sent either, is offered in every document.
        """
        opened = [document.uri for document in self._documents.all() if self.is_prompt(document.uri)]
        elsewhere = [uri for uri in self._unsent if self._documents.get(uri) is None][-1:]
        title, offer = text("prompt.title", language), text("prompt.send", language)
        places = [*((uri, uri) for uri in opened), *((uri, None) for uri in elsewhere)]
        return tuple(
            Waiting("prompt", title, place, ((offer, "codeagent.prompt.send", {"uri": uri}),), lens=place is not None)
            for uri, place in places
        )
