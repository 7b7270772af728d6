"""Virtual documents that the user can open: transcripts, reviews, reports, answers.

Where the client supports `workspace/textDocumentContent` they are live under the scheme `codeagent`; elsewhere they are
files in the state folder. They are opened without taking the focus. Not here: their content.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from codeagent_lsp.protocol import DOCUMENT_SCHEME
from codeagent_lsp.state import make_private
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.position import with_newlines

if TYPE_CHECKING:
    from codeagent_lsp.server.front import Client

REVIEWS = "review/"
REFRESH_METHOD = "workspace/textDocumentContent/refresh"
MODE_LINES = 5  # so many at the beginning and at the end are read by Vim and Neovim, unless a user wants more
# `vim: set …`, `vi:`, `ex:`, `vim>703:`.
# Before the first may be a byte-order mark, which the editor takes away.
_MODE_LINE = re.compile(r"(?<![^\s\ufeff])(?:vi|[vV]im[<=>]?\d*|ex):")
# `-*- eval: … -*-` in the first two lines, and the list at the end of a text, are what Emacs sets variables by.
_FIRST_LINE = re.compile(r"-\*-(?=.*-\*-)")
_VARIABLES = re.compile(r"Local Variables:", re.IGNORECASE)
VARIABLES_END = 3000  # so many characters at the end are read by Emacs, from the last form feed on


class VirtualDocuments:
    """Virtual documents by name, for instance `review/4f2a.diff`. `folder` is called when a file is needed.

    `hide` masks secrets in what becomes a file, except in reviews, which show the changes exactly.
    """

    def __init__(
        self,
        client: Client,
        folder: Callable[[], Path],
        hide: Callable[[str], str] = str,
    ) -> None:
        self._client = client
        self._folder = folder
        self._hide = hide
        self._texts: dict[str, str] = {}
        self._answers: dict[str, tuple[str, str]] = {}

    def content(self, uri: str) -> str:
        """Return the text behind one of our URIs; '' for an unknown one."""
        return self._texts.get(uri.removeprefix(f"{DOCUMENT_SCHEME}:").lstrip("/"), "")

    def text(self, name: str) -> str:
        """Return the text of a document; '' for an unknown one."""
        return self._texts.get(name, "")

    def put(self, name: str, content: str) -> None:
        """Set a document's text; one that is shown is refreshed if it differs. Where documents are files it is written,
        which blocks; errors of the disk are ignored.
        """
        known = name in self._texts
        if self._texts.get(name) == content and (self._client.policy.text_content or Path(self._path(name)).exists()):
            return  # a file that was written anew, though the same, makes editors ask which text is to stay
        self._texts[name] = content
        if self._client.policy.text_content:
            if known:
                self._client.server.notify(REFRESH_METHOD, {"uri": self.uri(name)})
        else:
            self._write(name, content)

    @property
    def writable(self) -> bool:
        """Whether the user can edit a document that is shown, because it is a file."""
        return not self._client.policy.text_content and self._client.policy.shows_documents

    @property
    def client_has_windows(self) -> bool:
        """Whether the client has windows of its own for transcripts, plans and reviews, as ours have."""
        return self._client.policy.events

    def written(self, name: str) -> str | None:
        """Return the text of a document's file, with the user's edits; None if the user cannot edit it or it cannot be
        read. Blocks.
        """
        if not self.writable:
            return None
        try:
            return Path(self._path(name)).read_text("utf-8", "replace")
        except OSError:
            return None

    def append(self, name: str, content: str) -> None:
        """Add text to the end of a document, which is created if necessary."""
        self.put(name, self._texts.get(name, "") + content)

    def remove(self, *names: str) -> None:
        """Remove documents and their files; unknown names are ignored. Blocks for the files."""
        for name in names:
            self._texts.pop(name, None)
            Path(self._path(name)).unlink(missing_ok=True)

    def uri(self, name: str) -> str:
        """Return the URI under which the client finds a document, whether it exists or not: with a scheme of ours if
        the client can ask for its text, else of a file.
        """
        if self._client.policy.text_content:
            return f"{DOCUMENT_SCHEME}:/{name}"
        return uris.from_path(self._path(name))

    def place(self, name: str) -> str:
        """Return the place of a document for the user: its path, or its URI if it is no file."""
        return self.uri(name) if self._client.policy.text_content else self._path(name)

    async def show(self, name: str, *, take_focus: bool = False) -> bool:
        """Open a document that was `put`, with `take_focus` for the keyboard, and wait at most 10 s; if the client
        cannot, show its path to the user. Return True if the client opened it.
        """
        if await self._client.show(self.uri(name), take_focus=take_focus):
            return True
        message = text("document.at", self._client.language, place=str(self._path(name)))
        if self._client.policy.text_content:
            self._write(name, self._texts.get(name, ""))
        self._client.tell(message)
        return False

    async def open_answer(self, request_id: str, title: str, detail: str) -> bool:
        """Create and open a file for the user to write an answer into, which is sent when it is saved. Return whether
        the client opened it.
        """
        name = f"answer/{request_id[:8]}.md"
        head = text("answer.head", self._client.language)
        comment = f"<!-- {_inside_comment(title)}\n{_inside_comment(detail)}\n{head} -->"
        comment = with_newlines(self._hide(comment), "\n")
        self._write(name, f"{comment}\n\n")
        uri = uris.from_path(self._path(name))
        # The comment is kept exactly, so that it is known where the answer begins.
        self._answers[uris.key(uri)] = (request_id, comment)
        return await self._client.show(uri, take_focus=True)

    def answer_in(self, uri: str, content: str) -> tuple[str, str] | None:
        """Return (id of the question, answer) of an answer document with the text `content`, the answer without its
        head, '' for none; None for other documents.
        """
        request_id, comment = self._answers.get(uris.key(uri), ("", ""))
        if not request_id:
            return None
        plain = with_newlines(content, "\n")
        if not plain.startswith(comment):  # the user or the editor has changed it, but it still ends
            comment = "".join(plain.partition("-->")[:2])
        return request_id, plain.removeprefix(comment).strip()

    def is_answer(self, uri: str) -> bool:
        """Return whether a document, by its URI, is one of those that `open_answer` created."""
        return uris.key(uri) in self._answers

    def _write(self, name: str, content: str) -> None:
        path = Path(self._path(name))
        try:
            make_private(path.parent)
            masked = content if name.startswith(REVIEWS) else self._hide(content)
            path.write_text(without_mode_lines(masked), "utf-8", "replace")
        except OSError:
            return  # a full disk or a read-only folder must not stop a run

    def _path(self, name: str) -> str:
        return str(self._folder() / "documents" / name)


def without_mode_lines(content: str) -> str:
    """Return a text in which Vim, Neovim and Emacs find no line that sets their options, as words of a model must not.
    At the beginning the colon and `-*-` are escaped, which Markdown does not show; at the end blank lines and a form
    feed are added, so that a diff there stays valid.
    """
    lines = content.split("\n")
    head = "\n".join(lines[:MODE_LINES])
    first = "\n".join(lines[:2])
    escaped = _FIRST_LINE.sub(r"-\\*-", first) + head[len(first) :]
    escaped = _MODE_LINE.sub(lambda match: f"{match[0][:-1]}\\:", escaped)
    found = escaped + content[len(head) :]
    if _MODE_LINE.search("\n".join(lines[-MODE_LINES - 1 :])):
        found += "\n" * (MODE_LINES + 1)
    return f"{found}\n\f\n" if _VARIABLES.search(found, max(0, len(found) - VARIABLES_END)) else found


def _inside_comment(words: str) -> str:
    """Return words of a model such that they cannot end the comment: what follows it is the user's answer."""
    return words.replace("-->", "-- >").replace("<!--", "<! --")
