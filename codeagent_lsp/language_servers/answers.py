"""The questions to language servers and their answers as values, in the terms of the workspace (paths and offsets), and
the reading of answers; parts that do not fit the texts are left out.

An offset counts code points from the start of the text that the run sees. A server is not trusted: it may answer for
another version, or lie. Pure but for reading files through `FileView`; use a worker thread. Not here: edits
(`server_edits.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, line_span, offset_at, position_at, units

MAX_PLACES = 5000
MAX_ACTIONS = 100
MAX_ITEMS = 500
MAX_HOVER = 20_000
_MAX_LINE = 200
_WITH_RANGE = frozenset({"textDocument/codeAction", "textDocument/rangeFormatting"})


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A place in a file: absolute path, offsets (code points), 1-based line and column in characters, and the line's
    text. Of a file outside of the workspace only path and line are known: its offsets are -1, its text is ''.
    """

    path: str
    start: int
    end: int
    line: int
    column: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class NamedItem:
    """A function or type in a hierarchy of LSP: its name, its place, and `raw`, the item in plain JSON, by which the
    server knows it.
    """

    name: str
    place: CodePlace
    raw: Any


@dataclass(frozen=True, slots=True)
class OfferedAction:
    """A code action that a server offers: its title and kind, and `raw`, from which the edit is taken; its command is
    never run.
    """

    title: str
    kind: str
    raw: Any


class Texts:
    """The texts of one view, each read and split into lines at most once. Made for one answer; `files` are those that
    were read.
    """

    def __init__(self, view: FileView) -> None:
        self.view = view
        self.files: dict[str, FileText] = {}
        self._known: dict[str, tuple[str, LineIndex] | None] = {}

    def get(self, path: str) -> tuple[str, LineIndex] | None:
        """Return a file's text and its lines, by absolute path; None if it cannot be read. The first answer is kept."""
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> tuple[str, LineIndex] | None:
        try:
            file = self.files[path] = self.view.read(path)
        except AgentError:
            return None
        return file.text, LineIndex.of(file.text)


def places(answer: ServerAnswer, texts: Texts) -> list[CodePlace]:
    """Return the places in an answer to definition, references and the like, without duplicates, in order; only the
    first 5,000 entries are looked at.
    """
    result = answer.result if isinstance(answer.result, list) else [answer.result]
    found: dict[CodePlace, None] = {}
    for item in result[:MAX_PLACES]:
        if not isinstance(item, dict):
            continue
        # A Location or a LocationLink.
        uri = item.get("uri", item.get("targetUri"))
        span = item.get("range") or item.get("targetSelectionRange")
        if (place := place_at(uri, span, answer.encoding, texts)) is not None:
            found[place] = None
    return list(found)


def place_at(uri: Any, span: Any, encoding: Encoding, texts: Texts) -> CodePlace | None:
    """Return the place of `span`, a range of LSP in `encoding`, in the document `uri`. A file outside of the workspace
    is not read, and its offsets are -1. None if the text has no such place, or cannot be read.
    """
    path = uris.to_path(uri) if isinstance(uri, str) else None
    start = _position(span, "start")
    if path is None or start is None:
        return None
    # A file outside of the workspace is never read, not even for its line.
    if texts.view.roots.root_of(path) is None:
        return CodePlace(path, -1, -1, start[0] + 1, start[1] + 1)
    known = texts.get(path)
    offsets = offsets_in(span, *known, encoding) if known is not None else None
    if known is None or offsets is None:
        return None
    text, lines = known
    first, last = line_span(text, lines, start[0])
    return CodePlace(
        path, *offsets, start[0] + 1, offsets[0] - first + 1, text[first : min(last, first + _MAX_LINE)].strip()
    )


def offsets_in(span: Any, text: str, lines: LineIndex, encoding: Encoding) -> tuple[int, int] | None:
    """Return the offsets (code points) of `span`, a range of LSP in `encoding`, in a text; None if it does not lie in
    the text exactly or is malformed.
    """
    start, end = _position(span, "start"), _position(span, "end")
    if start is None or end is None or end < start:
        return None
    for line, character in (start, end):
        if line == len(lines) and character == 0:  # the end of a text, as some servers write it
            continue
        first, last = line_span(text, lines, line)
        if line >= len(lines) or character > units(text, first, last, encoding):
            return None
    return offset_at(text, lines, start, encoding), offset_at(text, lines, end, encoding)


def hover_text(answer: ServerAnswer) -> str:
    """Return the text of an answer to hover, its parts separated by blank lines, at most 20,000 characters; '' if there
    is none.
    """
    result = answer.result if isinstance(answer.result, dict) else {}
    return "\n\n".join(filter(None, map(str.strip, _contents(result.get("contents")))))[:MAX_HOVER]


def items(answer: ServerAnswer, texts: Texts, key: str = "") -> list[NamedItem]:
    """Return at most 500 items of a hierarchy; `key` is the name of the item in each entry (`from`, `to`), '' for
    entries that are items themselves. Items that fit no text are left out.
    """
    found = []
    for entry in (answer.result if isinstance(answer.result, list) else [])[:MAX_ITEMS]:
        item = entry.get(key) if key and isinstance(entry, dict) else entry
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            continue
        span = item.get("selectionRange") or item.get("range")
        if (place := place_at(item.get("uri"), span, answer.encoding, texts)) is not None:
            found.append(NamedItem(_one_line(item["name"]), place, item))
    return found


def actions(answer: ServerAnswer) -> list[OfferedAction]:
    """Return at most 100 code actions (LSP), in order, that can become an edit; plain commands and disabled actions are
    left out, and so is what is malformed.
    """
    result = answer.result if isinstance(answer.result, list) else []
    return [
        OfferedAction(_one_line(item["title"]), str(item.get("kind") or "")[:100], item)
        for item in result[:MAX_ACTIONS]
        if isinstance(item, dict) and isinstance(item.get("title"), str)
        # A plain command has a string there; an action with data can still be resolved to an edit.
        if item.get("edit") or (item.get("data") is not None and not isinstance(item.get("command"), str))
        if not item.get("disabled")
    ]


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A request about a place in a file: an LSP `method`, an absolute path, and a range of offsets (`end` equal to
    `start`: a place; None: the whole file). `more` are further parameters; `server` asks only the one of this name.
    """

    method: str
    path: str
    start: int | None = None
    end: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer of one server: plain JSON of the protocol, with positions in `encoding`. `lent` is True for a server
    of the user's editor.
    """

    server: str
    result: Any
    encoding: Encoding
    lent: bool = False


class CodeServers(Protocol):
    """Port: the language servers of a session as one run uses them, with the texts that this run sees."""

    async def ask(self, question: ServerQuestion) -> tuple[ServerAnswer, ...]:
        """Return the answers of all servers for the file that have one; () if there is no server or none answers in
        time. Never raises ToolFailed.
        """


def parameters(question: ServerQuestion, text: str, encoding: Encoding) -> dict[str, Any]:
    """Return the LSP parameters of a question, as plain JSON: its offsets in `text`, the text of its file, become
    positions in `encoding`. A question by an item of the server's own consists of that item alone.
    """
    if question.method == "codeAction/resolve":
        return dict(question.more["item"])
    # Callers and subtypes are asked for by an item of the server's own, not by a place.
    if "item" in question.more or question.method == "workspace/symbol":
        return dict(question.more)
    params: dict[str, Any] = {"textDocument": {"uri": uris.from_path(question.path)}, **question.more}
    if question.start is None:
        return params
    start, end = question.start, question.start if question.end is None else question.end
    if question.method in _WITH_RANGE:
        return {**params, "range": lsp_range(text, start, end, encoding)}
    return {**params, "position": lsp_range(text, start, start, encoding)["start"]}


def with_diagnostics(params: dict[str, Any], items: Sequence[Any]) -> dict[str, Any]:
    """Return a copy of parameters of `textDocument/codeAction` with those diagnostics of `items`, plain JSON of LSP,
    that touch its lines, as servers fix only what they are given. KeyError if the parameters have no `range`.
    """
    first, last = (params["range"][name]["line"] for name in ("start", "end"))
    here = [item for item in items if isinstance(item, dict) and _touches(item.get("range"), first, last)]
    return {**params, "context": {**params.get("context", {}), "diagnostics": here}}


def lsp_range(text: str, start: int, end: int, encoding: Encoding) -> dict[str, Any]:
    """Return the range of LSP (`start` and `end`, each with `line` and `character` from 0, in code units of `encoding`)
    for the offsets `start` and `end` (code points) in a text; offsets outside of it are clamped.
    """
    lines = LineIndex.of(text)
    places = (position_at(text, lines, offset, encoding) for offset in (start, end))
    first, last = ({"line": place.line, "character": place.character} for place in places)
    return {"start": first, "end": last}


def _contents(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and isinstance(value.get("value"), str):
        yield value["value"]
    elif isinstance(value, list):
        for part in value[:20]:
            yield from _contents(part) if not isinstance(part, list) else ()


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text[:_MAX_LINE]).split())


def _position(span: Any, name: str) -> tuple[int, int] | None:
    at = span.get(name) if isinstance(span, dict) else None
    line, character = (at.get("line"), at.get("character")) if isinstance(at, dict) else (None, None)
    # By type, as True is an int too.
    if type(line) is not int or type(character) is not int or line < 0 or character < 0:
        return None
    return line, character


def _touches(span: Any, first: int, last: int) -> bool:
    try:
        return bool(span["start"]["line"] <= last and span["end"]["line"] >= first)
    except (TypeError, KeyError):
        return False
