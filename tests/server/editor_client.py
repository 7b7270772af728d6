"""A client in memory for tests of the editor: it does with an edit what a test says, well or badly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from lsprotocol import types

from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files.uris import from_path, to_path
from codeagent_lsp.workspace.text.document import Change, Document

TEXT = "one\ntwo\nthree\nfour\nfive\n"
ALL = ClientPolicy(versioned_edits=True, creates=True, deletes=True, renames=True, applies_edits=True)

Behaviour = Callable[["FakeClient", types.ApplyWorkspaceEditParams], Any]


class FakeClient:
    """Stands for server and client in one: keeps the documents, and does with an edit what `behaviour` says."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.documents = Documents("utf-16")
        self.sent: list[types.ApplyWorkspaceEditParams] = []
        self.behaviour = behaviour

    async def request(self, method: str, params: types.ApplyWorkspaceEditParams, seconds: float) -> Any:
        self.sent.append(params)
        answer = self.behaviour(self, params)
        return await answer if asyncio.iscoroutine(answer) else answer

    def open(self, path: Path, text: str, version: int = 0) -> None:
        self.documents.open(Document(from_path(str(path)), text, version))

    def change(self, path: Path, version: int, *changes: Change) -> None:
        """Change a buffer as the user does."""
        self.documents.change(from_path(str(path)), version, changes)

    def text(self, path: Path) -> str | None:
        """Return the text of a buffer, None if it is not open."""
        document = self.documents.get(from_path(str(path)))
        return None if document is None else document.text

    def carry_out(self, params: types.ApplyWorkspaceEditParams) -> None:
        """Apply text edits to open buffers and operations to the disk."""
        changes = params.edit.document_changes or [
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri), edits)
            for uri, edits in (params.edit.changes or {}).items()
        ]
        for change in changes:
            if isinstance(change, types.TextDocumentEdit):
                self._edit(change)
            elif isinstance(change, types.CreateFile):
                _path(change.uri).touch(exist_ok=False)
            elif isinstance(change, types.DeleteFile):
                _path(change.uri).unlink()
                self.documents.close(change.uri)
            else:
                _path(change.old_uri).rename(_path(change.new_uri))
                self.documents.close(change.old_uri)

    def _edit(self, change: types.TextDocumentEdit) -> None:
        uri = change.text_document.uri
        if self.documents.get(uri) is None:
            self.documents.open(Document(uri, _path(uri).read_text(), 0))
        known = self.documents.get(uri)
        assert known is not None
        edits = [cast("types.TextEdit", edit) for edit in reversed(change.edits)]
        spans = [
            Change(
                edit.new_text,
                (edit.range.start.line, edit.range.start.character),
                (edit.range.end.line, edit.range.end.character),
            )
            for edit in edits
        ]
        self.documents.change(uri, (known.version or 0) + 1, spans)


def obedient(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
    client.carry_out(params)
    return types.ApplyWorkspaceEditResult(applied=True)


def connect(behaviour: Behaviour = obedient, policy: ClientPolicy = ALL) -> tuple[FakeClient, LspEditor]:
    client = FakeClient(behaviour)

    def disk(path: str) -> str | None:
        return Path(path).read_bytes().decode() if os.path.isfile(path) else None  # noqa: PTH113 (no error for a long name)

    return client, LspEditor(Client(cast("CodeAgentServer", client), policy=policy), disk)


def change(path: Path, base: str | None, text: str | None, **more: Any) -> Changeset:
    return Changeset((FileChange(str(path), base, text, **more),))


def without(*fields: str) -> ClientPolicy:
    """Return the policy of a client that cannot do some of what `ALL` can."""
    less: dict[str, Any] = dict.fromkeys(fields, False)
    return replace(ALL, **less)


def _path(uri: str) -> Path:
    return Path(to_path(uri) or "")
