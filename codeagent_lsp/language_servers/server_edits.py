"""WorkspaceEdits of language servers as new texts of files: all of it, verified, or nothing.

Blocks; use a worker thread. Not here: staging (`tools/code/server_tools.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from codeagent_lsp.errors import AgentError, EditRefused
from codeagent_lsp.language_servers.answers import ServerAnswer, Texts, offsets_in
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.visible import one_line

MAX_FILES = 1000
MAX_EDITS = 20_000
MAX_INSERTED = 4 << 20
MAX_LABEL = 80


@dataclass(frozen=True, slots=True)
class Splice:
    """Replaces the characters `start` to `end` (0-based, half-open) of a text by `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class ServerEdit:
    """The changes that a server asks for, by absolute path: new texts (None: deleted), moves from old to new path, the
    splices of the changed texts, and the labels of what it wants the user to confirm.
    """

    texts: Mapping[str, str | None] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    splices: Mapping[str, tuple[Splice, ...]] = field(default_factory=dict)
    to_confirm: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of places that change: the splices of all texts."""
        return sum(map(len, self.splices.values()))


def server_edit(answer: ServerAnswer, edit: Any, texts: Texts) -> ServerEdit:
    """Apply a WorkspaceEdit of a server to the present texts, and return what changes; nothing is written. EditRefused
    if any part does not fit: a range that is not there, edits that overlap, a file outside of the workspace, or one
    that exists but must not; and for more than 1,000 changed texts, 20,000 places or 4 Mi inserted characters.
    """
    reader = _Reader(answer, texts)
    for change in _changes(edit):
        reader.take(change)
    return replace(reader.done(), to_confirm=_to_confirm(edit))


def edited_paths(edit: Any) -> set[str]:
    """Return the absolute paths of the files whose text a WorkspaceEdit (LSP, plain JSON) changes; those it only
    creates, renames or deletes are not among them. Nothing is checked.
    """
    documents = [each.get("textDocument") for each in _changes(edit) if "kind" not in each]
    found = (uris.to_path(str(document.get("uri"))) for document in documents if isinstance(document, dict))
    return {path for path in found if path is not None}


class _Reader:
    def __init__(self, answer: ServerAnswer, texts: Texts) -> None:
        self._answer = answer
        self._texts = texts
        self._splices: dict[str, list[Splice]] = {}
        self._created: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._moves: dict[str, str] = {}

    def take(self, change: Mapping[str, Any]) -> None:
        match change.get("kind"):
            case None:
                self._edit(change)
            case "create":
                self._created[self._new(change.get("uri"))] = ""
            case "rename":
                old, new = self._old(change.get("oldUri")), self._new(change.get("newUri"))
                if old in self._created:
                    raise self._refusal(f"it moves {self._name(old)}, which it creates itself")
                self._moves[old] = new
            case "delete":
                self._delete(self._old(change.get("uri")))
            case kind:
                raise self._refusal(f"it holds an operation of the unknown kind {kind!r}")

    def done(self) -> ServerEdit:
        found: dict[str, str | None] = dict.fromkeys(self._deleted)
        inserted = sum(len(splice.new) for each in self._splices.values() for splice in each)
        if len(self._splices) > MAX_FILES or sum(map(len, self._splices.values())) > MAX_EDITS:
            raise self._refusal("it changes too many places")
        if inserted > MAX_INSERTED:
            raise self._refusal("it inserts too much text")
        for path, each in self._splices.items():
            found[path] = self._splice(self._text(path), each)
        # One that is created and edited has its text already.
        for path, text in self._created.items():
            found.setdefault(path, text)
        return ServerEdit(found, self._moves, {path: tuple(each) for path, each in self._splices.items()})

    def _edit(self, change: Mapping[str, Any]) -> None:
        document = change.get("textDocument")
        path = self._path(document.get("uri") if isinstance(document, dict) else None)
        # Behind a rename, edits name the file by its new path.
        before = {new: old for old, new in self._moves.items()}.get(path, path)
        if before == path:
            self._require_there(path)
        elif before in self._splices:
            raise self._refusal(f"it changes {self._name(before)} before and after it moves it")
        path = before
        text = self._text(path)
        known = self._texts.get(path)
        self._require_version(path, document.get("version") if isinstance(document, dict) else None)
        for each in change.get("edits") or ():
            new = each.get("newText") if isinstance(each, dict) else None
            if not isinstance(new, str) or "snippet" in each:
                raise self._refusal("one of its edits has no plain text")
            lines = known[1] if known is not None else None
            # A file that this edit creates is empty, so everything comes at its beginning.
            offsets = offsets_in(each.get("range"), text, lines, self._answer.encoding) if lines is not None else (0, 0)
            if offsets is None:
                raise self._refusal(f"a range of it is not in {self._name(path)}")
            self._splices.setdefault(path, []).append(Splice(*offsets, new))

    def _delete(self, path: str) -> None:
        if path in self._created:
            raise self._refusal(f"it deletes {self._name(path)}, which it creates itself")
        self._deleted.add(path)
        self._splices.pop(path, None)

    def _require_there(self, path: str) -> None:
        """Raise EditRefused for a file that the parts before have deleted, or moved away."""
        if path in self._deleted or path in self._moves:
            raise self._refusal(f"it deletes or moves {self._name(path)} before it changes it")

    def _require_version(self, path: str, version: Any) -> None:
        """Raise EditRefused for another version of a text than the editor's own servers were asked about. Our own have
        numbers of their own, and some servers say 0 where they mean none.
        """
        if version is None:
            return
        if isinstance(version, bool) or not isinstance(version, int) or version < 0:
            raise self._refusal("it is for a version of a text that never was")
        file = self._texts.files.get(path)
        present = file.version if file is not None and self._answer.lent else None
        if present is not None and version not in (0, present):
            raise self._refusal(f"it is for version {version} of {self._name(path)}, which is at {present}")

    def _splice(self, text: str, splices: list[Splice]) -> str:
        splices.sort(key=lambda each: (each.start, each.end))  # stable: insertions at one place keep their order
        parts, place = [], 0
        for splice in splices:
            if splice.start < place:
                raise self._refusal("its edits overlap")
            parts += [text[place : splice.start], splice.new]
            place = splice.end
        return "".join([*parts, text[place:]])

    def _text(self, path: str) -> str:
        if path in self._created:
            return ""
        known = self._texts.get(path)
        if known is None:
            raise self._refusal(f"{self._name(path)} cannot be read")
        return known[0]

    def _old(self, uri: Any) -> str:
        path = self._path(uri)
        self._require_there(path)
        self._text(path)
        return path

    def _new(self, uri: Any) -> str:
        path = self._path(uri)
        if self._texts.view.exists(path) or path in self._created or path in self._moves.values():
            raise self._refusal(f"{self._name(path)} exists already")
        return path

    def _path(self, uri: Any) -> str:
        written = uris.to_path(uri) if isinstance(uri, str) else None
        try:
            path = self._texts.view.roots.resolve(written) if written else None
        except AgentError as problem:
            raise self._refusal(str(problem)) from problem
        if path is None or self._texts.view.roots.root_of(path) is None:
            raise self._refusal(f"{written or uri!r} is outside of the workspace")
        return path

    def _name(self, path: str) -> str:
        return self._texts.view.roots.relative(path)

    def _refusal(self, reason: str) -> EditRefused:
        return EditRefused("not_found", f"The edit of {self._answer.server} was not made: {reason}.")


def _to_confirm(edit: Any) -> tuple[str, ...]:
    """Return the labels of the annotations that are used and need a confirmation, as one that is not there does."""
    known = edit.get("changeAnnotations") if isinstance(edit, dict) else None
    known = known if isinstance(known, dict) else {}
    named: dict[str, None] = {}
    for change in _changes(edit):
        edits = change.get("edits")
        for each in (change, *(edits if isinstance(edits, list) else ())):
            if isinstance(each, dict) and isinstance(name := each.get("annotationId"), str):
                named[name] = None
    labels = []
    for name in named:
        found = known.get(name)
        if not isinstance(found, dict) or found.get("needsConfirmation") not in (None, False):
            label = found.get("label") if isinstance(found, dict) else None
            labels.append(one_line(label if isinstance(label, str) and label else name, MAX_LABEL))
    return tuple(dict.fromkeys(labels))


def _changes(edit: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a WorkspaceEdit in one form; `documentChanges` win, as the protocol says."""
    edit = edit if isinstance(edit, dict) else {}
    listed, plain = edit.get("documentChanges"), edit.get("changes")
    if isinstance(listed, list):
        yield from (item for item in listed if isinstance(item, dict))
    elif isinstance(plain, dict):
        for uri, edits in plain.items():
            yield {"textDocument": {"uri": uri}, "edits": edits if isinstance(edits, list) else []}
