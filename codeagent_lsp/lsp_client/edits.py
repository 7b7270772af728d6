"""The effect of an LSP WorkspaceEdit on the files on disk, computed before anything is written.

Not here: the writing (`disk.py`) and who accepted the edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.encoding import decode, encode
from codeagent_lsp.workspace.text.position import Encoding as PositionEncoding
from codeagent_lsp.workspace.text.position import LineIndex, with_newlines

ReadBytes = Callable[[Path], bytes | None]


class EditImpossible(Exception):
    """Raised if the edit does not fit the files on disk; the message is the reason. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class FileWrite:
    """The change of one file: `before` and `after` are its bytes, None if there is no such file.

    `like` is the file whose mode the new one gets.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    like: Path | None = None


def plan(edit: Mapping[str, Any], read: ReadBytes, encoding: PositionEncoding = "utf-32") -> tuple[FileWrite, ...]:
    """Return the changes of a WorkspaceEdit. `read` returns a file's bytes, None if it does not
    exist. EditImpossible.
    """
    draft = _Draft(read, encoding)
    for operation in _operations(edit):
        draft.take(operation)
    return draft.writes()


class _Draft:
    """The state of all files concerned, after the operations so far."""

    def __init__(self, read: ReadBytes, encoding: PositionEncoding) -> None:
        self._read = read
        self._encoding = encoding
        self._before: dict[Path, bytes | None] = {}
        self._after: dict[Path, bytes | None] = {}
        self._origin: dict[Path, Path] = {}

    def take(self, operation: Mapping[str, Any]) -> None:
        match operation.get("kind"):
            case "create":
                self._create(_path(operation["uri"]), operation.get("options") or {})
            case "delete":
                self._delete(_path(operation["uri"]), operation.get("options") or {})
            case "rename":
                self._rename(operation)
            case None:
                self._edit(_path(operation["textDocument"]["uri"]), operation["edits"])
            case other:
                raise EditImpossible(f"unknown operation {other}")

    def writes(self) -> tuple[FileWrite, ...]:
        return tuple(
            FileWrite(path, before, self._after[path], self._origin.get(path))
            for path, before in self._before.items()
            if before != self._after[path]
        )

    def _now(self, path: Path) -> bytes | None:
        if path not in self._after:
            self._before[path] = self._after[path] = self._read(path)
        return self._after[path]

    def _create(self, path: Path, options: Mapping[str, Any]) -> None:
        exists = self._now(path) is not None
        if exists and options.get("overwrite"):
            self._after[path] = b""
        elif exists and not options.get("ignoreIfExists"):
            raise EditImpossible(f"{path} exists already")
        elif not exists:
            self._after[path] = b""

    def _delete(self, path: Path, options: Mapping[str, Any]) -> None:
        if self._now(path) is not None:
            self._after[path] = None
        elif not options.get("ignoreIfNotExists"):
            raise EditImpossible(f"{path} does not exist")

    def _rename(self, operation: Mapping[str, Any]) -> None:
        old, new = _path(operation["oldUri"]), _path(operation["newUri"])
        options = operation.get("options") or {}
        content = self._now(old)
        if content is None:
            raise EditImpossible(f"{old} does not exist")
        if self._now(new) is not None and not options.get("overwrite"):
            if options.get("ignoreIfExists"):
                return
            raise EditImpossible(f"{new} exists already")
        self._after[new], self._after[old] = content, None
        self._origin[new] = self._origin.get(old, old)

    def _edit(self, path: Path, edits: list[Mapping[str, Any]]) -> None:
        content = self._now(path)
        if content is None:
            raise EditImpossible(f"{path} does not exist")
        try:
            decoded = decode(content)
            text = _applied(path, decoded.text, edits, self._encoding)
            self._after[path] = encode(text, decoded.encoding)
        except FileRefused as error:
            raise EditImpossible(f"{path}: {error}") from error


def _applied(path: Path, text: str, edits: list[Mapping[str, Any]], encoding: PositionEncoding) -> str:
    """Return `text` with edits applied, whose ranges all refer to `text`; new lines end with CRLF
    if all old ones do.
    """
    newline = "\r\n" if 0 < text.count("\r\n") == text.count("\n") else None
    document = Document("", text)
    lines = len(LineIndex.of(text))
    spans = [(_place(edit, "start"), _place(edit, "end"), str(edit["newText"])) for edit in edits]
    ordered = sorted(spans, key=lambda span: span[:2])  # stable: what is inserted at one place keeps its order
    # From the end, so that the places before an edit stay valid.
    for start, end, new in reversed(ordered):
        # One line beyond the last is allowed: LSP ends a range there that takes the last line end.
        if end[0] > lines:
            raise EditImpossible(f"{path} is shorter than expected: it changed on disk meanwhile")
        inserted = with_newlines(new, newline) if newline else new
        document = document.apply(Change(inserted, start, end), encoding)
    return document.text


def _place(edit: Mapping[str, Any], name: str) -> tuple[int, int]:
    position = edit["range"][name]
    return position["line"], position["character"]


def _operations(edit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = edit.get("documentChanges")
    if listed is not None:
        return list(listed)
    changes = edit.get("changes") or {}
    return [{"textDocument": {"uri": uri}, "edits": edits} for uri, edits in changes.items()]


def _path(uri: str) -> Path:
    path = uris.to_path(uri)
    if path is None:
        raise EditImpossible(f"{uri} is not a file")
    return Path(path)
