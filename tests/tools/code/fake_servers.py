"""A fake of the `CodeServers` port: answers prepared by method, and what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codeagent_lsp.language_servers.answers import ServerAnswer, ServerQuestion
from codeagent_lsp.workspace.files import uris

Reply = Callable[[ServerQuestion], Any]


class FakeServers:
    """Answers each method by a function of the question, as the server `fake`."""

    def __init__(self, replies: Mapping[str, Reply]) -> None:
        self.replies = dict(replies)
        self.asked: list[ServerQuestion] = []
        self.lent = False

    async def ask(self, question: ServerQuestion) -> tuple[ServerAnswer, ...]:
        """Return the prepared answer; none for other methods."""
        self.asked.append(question)
        reply = self.replies.get(question.method)
        return () if reply is None else (ServerAnswer("fake", reply(question), "utf-16", lent=self.lent),)


def span(line: int, start: int, end: int) -> dict[str, Any]:
    """Return an LSP range within one 0-based line."""
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def at(path: str, line: int, start: int, end: int) -> dict[str, Any]:
    """Return an LSP location."""
    return {"uri": uris.from_path(path), "range": span(line, start, end)}


def edit(path: str, *changes: tuple[int, int, int, str]) -> dict[str, Any]:
    """Return a WorkspaceEdit of one file: (line, start, end, new text) each."""
    made = [{"range": span(line, start, end), "newText": new} for line, start, end, new in changes]
    return {"documentChanges": [{"textDocument": {"uri": uris.from_path(path), "version": None}, "edits": made}]}
