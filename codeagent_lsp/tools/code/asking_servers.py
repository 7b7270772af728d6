"""Questions of tools to the language servers of a run: where a name stands that they are asked about, and definitions,
references and calls as they know them; None where none answers, and the index is asked.

Not here: the tools (`server_tools.py`, `graph_tools.py`), staging of edits (`server_tools.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from codeagent_lsp.call_forms import Agent, ForeignTool, Shape, given_as, without
from codeagent_lsp.errors import AgentError, EditRefused, ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.language_servers.answers import (
    CodePlace,
    CodeServers,
    NamedItem,
    ServerAnswer,
    ServerQuestion,
    Texts,
    items,
    places,
)
from codeagent_lsp.tools.code.call_graph import Edge, Graph, Node
from codeagent_lsp.tools.code.source import find_one, normal, source_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.find_tools import may_show
from codeagent_lsp.workspace.text.position import LineIndex, line_span

_WORD = re.compile(r"[^\W\d]\w*")
_PLACE = re.compile(r"(?P<line>[1-9]\d{0,8})(?::(?P<column>[1-9]\d{0,8}))?")

T = TypeVar("T")
MAX_TARGETS = 5
MAX_NODES = 150


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """The place of a name: absolute path, the file's text, the offset of the name in it (code points), and the name."""

    path: str
    text: str
    offset: int
    name: str


def server_calls(
    operations: tuple[str, ...],
    arguments: Mapping[str, str] = MappingProxyType({}),
    ignored: tuple[str, ...] = (),
    place: str = "",
) -> tuple[ForeignTool, ...]:
    """Return the tools by which other agents ask language servers, as far as calls with these operations are calls of
    one of our tools. `arguments` maps their names of parameters to ours, `ignored` are those that do nothing here;
    `place` names our parameter that takes a position `line:column`; '' if there is none.
    """

    def placed(given: dict[str, Any]) -> dict[str, Any]:
        line, column = given.get("line"), given.get("character")
        at = {place: f"{line}:{column}" if column else str(line)} if place and line else {}
        return {**without(given, "line", "character"), **at}

    named: tuple[tuple[str, Agent], ...] = (("LSP", "Claude Code"), ("lsp", "opencode"))
    shape = Shape("`line` and `character` are the place of a name" if place else "a place is not needed", placed)
    when, ignored = given_as("operation", *operations), ("operation", *ignored)
    return tuple(ForeignTool(name, (agent,), arguments, when, ignored, (shape,)) for name, agent in named)


def is_place(symbol: str) -> bool:
    """Return whether a symbol is the place of a name in a file, `line:column` or `line`, both counted from 1."""
    return _PLACE.fullmatch(symbol) is not None


async def name_in(context: ToolContext, path: str, symbol: str, line: int | None = None) -> NamedPlace:
    """Return the place of a name in a file (as a call names it): its definition, else its first use; `line` (1-based)
    narrows it, and is enough without a name. The symbol may be a place itself (`is_place`). ToolRetry if there is no
    such place, FileRefused if the file cannot be read.
    """
    absolute = context.view.roots.resolve(path)
    place = _PLACE.fullmatch(symbol)
    column = int(place["column"]) if place and place["column"] else None
    symbol, line = ("", int(place["line"])) if place else (symbol, line)

    def find() -> NamedPlace:
        text = context.view.read(absolute).text
        shown = context.view.roots.relative(absolute)
        offset, name = _offset(shown, text, symbol, line, column)
        return NamedPlace(absolute, text, offset, name)

    return await asyncio.to_thread(find)


async def ask(
    context: ToolContext,
    method: str,
    path: str,
    place: tuple[int, int] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[ServerAnswer, ...]:
    """Return what the servers answer to an LSP request about a file (absolute path), or a `place` of two offsets in it,
    start and end; () without a server. `method` and `more`, further parameters, are LSP's; offsets are characters from
    0. Waits for them.
    """
    servers = context.get(CodeServers)
    if servers is None:
        return ()
    start, end = place or (None, None)
    return await servers.ask(ServerQuestion(method, path, start, end, more))


async def ask_again(
    context: ToolContext,
    answer: ServerAnswer,
    method: str,
    path: str,
    more: Mapping[str, Any],
    place: tuple[int, int] | None = None,
) -> ServerAnswer | None:
    """Ask the server that gave `answer` about an item of it (in `more`, LSP parameters), or a place of two offsets in
    the file `path` (absolute), and return what it says; None if it says nothing.
    """
    servers = context.get(CodeServers)
    if servers is None:
        return None
    start, end = place or (None, None)
    # Items of a server hold data of its own, which no other can read.
    found = await servers.ask(ServerQuestion(method, path, start, end, more, answer.server))
    # A server of ours and one of the editor may have the same name.
    return next((each for each in found if each.lent == answer.lent), None)


async def first(
    context: ToolContext, answers: Iterable[ServerAnswer], read: Callable[[ServerAnswer, Texts], T]
) -> tuple[ServerAnswer, T] | None:
    """Return (answer, found) for the first answer in which `read`, called in a thread, finds something; None if none
    has any.
    """
    for answer in answers:
        if found := await asyncio.to_thread(read, answer, Texts(context.view)):
            return answer, found
    return None


def no_server(path: str) -> ToolFailed:
    """Return, without raising it, the failure of a tool that needs a language server for a file if none answers."""
    return ToolFailed(
        f"No language server answered for {path}. Use find_references, read_file and edit_file.", ErrorCode.NOT_FOUND
    )


def shown_places(context: ToolContext, found: Iterable[CodePlace]) -> list[CodePlace]:
    """Return the places that the user's rules let the model see; in their order; places outside of the workspace,
    without text, are kept.
    """
    # A place outside of the workspace is shown as a path and a line only, without any text.
    return [place for place in found if place.start < 0 or may_show(context, place.path, None)]


def _offset(path: str, text: str, symbol: str, line: int | None, column: int | None = None) -> tuple[int, str]:
    name = normal(symbol).rpartition(".")[2]
    # A definition before any use: a word of the same name in a comment above would be found first.
    if symbol and line is None and (offset := _defined_at(path, text, symbol)) is not None:
        return offset, name
    lines = LineIndex.of(text)
    if line is not None and not 1 <= line <= len(lines):
        raise ToolRetry(f"{path} has {len(lines)} lines, and no line {line}.")
    first, last = line_span(text, lines, line - 1) if line is not None else (0, len(text))
    if not symbol:
        # Counted from 1; without a column it is in front of the line, where no word is.
        at = first + (column or 0) - 1
        for word in _WORD.finditer(text, first, last):
            # Just behind the word counts as well: so editors place the cursor.
            if word.start() <= at <= word.end():
                return word.start(), word.group()
        return _only_name(path, text, line or 1, first, last)
    match = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(text, first, last)
    if match is None:
        where = f"line {line} of {path}" if line is not None else path
        raise ToolRetry(f"There is no {name} in {where}.")
    return match.start(), name


def _only_name(path: str, text: str, line: int, first: int, last: int) -> tuple[int, str]:
    """Return the name that is defined on a line, else the first one on it."""
    source = source_of(path, text)
    for definition in source.definitions if source is not None else ():
        if source is not None and definition.name is not None and source.line(definition.name.start_byte) == line:
            return source.char(definition.name.start_byte), definition.symbol.name
    match = _WORD.search(text, first, last)
    if match is None:
        raise ToolRetry(f"There is no name on line {line} of {path}. Give symbol.")
    return match.start(), match.group()


def _defined_at(path: str, text: str, symbol: str) -> int | None:
    source = source_of(path, text)
    try:
        definition = find_one(source, symbol) if source is not None else None
    except EditRefused as refusal:
        # Else the first use would be taken, which need not be of the definition that was meant.
        if refusal.reason == "ambiguous":
            raise
        return None
    if source is None or definition is None or definition.name is None:
        return None
    name, start = definition.symbol.name, source.char(definition.name.start_byte)
    return max(text.find(name, start), start)  # without quotes or sigils before it


@dataclass(frozen=True, slots=True)
class ExactPlaces:
    """Places with the name of the server that knows them, and how many more the user's rules hide from the model."""

    server: str
    places: tuple[CodePlace, ...]
    hidden: int = 0


async def exact_definition(context: ToolContext, symbol: str, path: str | None) -> ExactPlaces | None:
    """Return where the name `symbol` that a file (as a call names it) uses is defined, by the language servers; None
    without a path, a place of the name in it, or a server that knows. Waits for servers.
    """
    place = await _find_name(context, symbol, path)
    if place is None:
        return None
    return _exact_places(context, await _ask(context, "textDocument/definition", place, {}))


async def exact_references(context: ToolContext, symbol: str, targets: Sequence[str]) -> ExactPlaces | None:
    """Return the definitions and uses of a name that is defined in these files (shown paths); None if for one of the
    files no server knows any, or there are more than 5 files.
    """
    # One question for each definition; for many, as of `__init__`, the index answers sooner and as well.
    if not targets or len(targets) > MAX_TARGETS:
        return None
    found: dict[CodePlace, None] = {}
    server = ""
    for path in dict.fromkeys(targets):
        place = await _find_name(context, symbol, path)
        more = {"context": {"includeDeclaration": True}}
        answer = await _ask(context, "textDocument/references", place, more) if place is not None else None
        # the uses of some definitions would pass for those of all
        if answer is None:
            return None
        server = answer[0].server
        found.update(dict.fromkeys(answer[1]))
    return _exact_places(context, (ServerAnswer(server, None, "utf-16"), list(found)))


async def exact_calls(context: ToolContext, symbol: str, path: str, depth: int) -> tuple[str, Graph] | None:
    """Return (server's name, graph of calls) around a function of the file `path` (as a call names it), `depth` steps
    each way; None without a server or if it knows no such function.
    """
    place = await _find_name(context, symbol, path)
    if place is None:
        return None
    at = (place.offset, place.offset)
    found = await first(context, await ask(context, "textDocument/prepareCallHierarchy", place.path, at), items)
    if found is None:
        return None
    answer, starts = found
    graph = _Graph(context, answer, place.path)
    # Both ways from the same start: only callees of callees and callers of callers, as anything else soon spans the
    # whole program.
    await graph.grow(starts[:1], depth, "callHierarchy/outgoingCalls", "to")
    await graph.grow(starts[:1], depth, "callHierarchy/incomingCalls", "from")
    return answer.server, graph.done()


class _Graph:
    def __init__(self, context: ToolContext, answer: ServerAnswer, path: str) -> None:
        self._context = context
        self._answer = answer
        self._path = path
        self._nodes: dict[str, Node] = {}
        self._edges: dict[Edge, None] = {}

    async def grow(self, starts: Sequence[NamedItem], depth: int, method: str, key: str) -> None:
        pending = list(starts)
        for item in pending:
            self._node(item)
        for _ in range(depth):
            following: list[NamedItem] = []
            for item in pending:
                for other in await self._next(item, method, key):
                    known = self._id(other) in self._nodes
                    if len(self._nodes) >= MAX_NODES and not known:
                        continue
                    pair = (item, other) if key == "to" else (other, item)
                    self._edges[Edge(*map(self._node, pair))] = None
                    # functions that call each other would be asked about again at every step
                    following += [] if known else [other]
            pending = following

    def done(self) -> Graph:
        return Graph(tuple(self._nodes.values()), tuple(self._edges), len(self._nodes) >= MAX_NODES)

    async def _next(self, item: NamedItem, method: str, key: str) -> list[NamedItem]:
        again = await ask_again(self._context, self._answer, method, self._path, {"item": item.raw})
        found = await asyncio.to_thread(items, again, Texts(self._context.view), key) if again is not None else []
        shown = set(shown_places(self._context, [each.place for each in found if each.place.start >= 0]))
        return [each for each in found if each.place in shown]

    def _node(self, item: NamedItem) -> str:
        name = self._context.view.roots.relative(item.place.path)
        self._nodes.setdefault(self._id(item), Node(self._id(item), item.name, name, item.place.line))
        return self._id(item)

    def _id(self, item: NamedItem) -> str:
        return f"{self._context.view.roots.relative(item.place.path)}:{item.place.line}:{item.name}"


async def _find_name(context: ToolContext, symbol: str, path: str | None) -> NamedPlace | None:
    """Return where a name stands in a file; None if there is no such file or name, or nobody to ask."""
    if path is None or context.get(CodeServers) is None:
        return None
    try:
        return await name_in(context, path, symbol)
    except AgentError:
        return None


async def _ask(
    context: ToolContext, method: str, place: NamedPlace, more: Mapping[str, object]
) -> tuple[ServerAnswer, list[CodePlace]] | None:
    answers = await ask(context, method, place.path, (place.offset, place.offset), more)
    return await first(context, answers, places)


def _exact_places(context: ToolContext, found: tuple[ServerAnswer, list[CodePlace]] | None) -> ExactPlaces | None:
    if found is None:
        return None
    shown = shown_places(context, found[1])
    return ExactPlaces(found[0].server, tuple(shown), len(found[1]) - len(shown))
