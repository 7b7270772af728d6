"""Definitions, references and calls as language servers know them; None where none answers, and the index is asked.

Not here: the tools and what the index knows (`graph_tools.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codeagent_lsp.errors import AgentError
from codeagent_lsp.language_servers.answers import CodePlace, NamedItem, Texts, items, places
from codeagent_lsp.language_servers.values import CodeServers, ServerAnswer
from codeagent_lsp.tools.code.asking_servers import NamedPlace, ask, ask_again, first, name_in, shown_places
from codeagent_lsp.tools.code.graphs import Edge, Graph, Node
from codeagent_lsp.tools.context import ToolContext

MAX_TARGETS = 5
MAX_NODES = 150


@dataclass(frozen=True, slots=True)
class ExactPlaces:
    """Places with the server that knows them, and how many more the user's rules hide."""

    server: str
    places: tuple[CodePlace, ...]
    hidden: int = 0


async def exact_definition(context: ToolContext, symbol: str, path: str | None) -> ExactPlaces | None:
    """Return where the name that a file uses is defined; None without a file or a server."""
    place = await _named(context, symbol, path)
    if place is None:
        return None
    return _shown(context, await _asked(context, "textDocument/definition", place, {}))


async def exact_references(context: ToolContext, symbol: str, targets: Sequence[str]) -> ExactPlaces | None:
    """Return the uses of the definitions of a name in these files (shown paths), and the definitions; None if no
    server knows any.
    """
    if not targets or len(targets) > MAX_TARGETS:
        return None
    found: dict[CodePlace, None] = {}
    server = ""
    for path in dict.fromkeys(targets):
        place = await _named(context, symbol, path)
        more = {"context": {"includeDeclaration": True}}
        answer = await _asked(context, "textDocument/references", place, more) if place is not None else None
        # the uses of some definitions would pass for those of all
        if answer is None:
            return None
        server = answer[0].server
        found.update(dict.fromkeys(answer[1]))
    return _shown(context, (ServerAnswer(server, None, "utf-16"), list(found)))


async def exact_calls(context: ToolContext, symbol: str, path: str, depth: int) -> tuple[str, Graph] | None:
    """Return the server and the graph of calls around a function, `depth` steps each way; None without a server."""
    place = await _named(context, symbol, path)
    if place is None:
        return None
    at = (place.offset, place.offset)
    found = await first(context, await ask(context, "textDocument/prepareCallHierarchy", place.path, at), items)
    if found is None:
        return None
    answer, starts = found
    graph = _Graph(context, answer, place.path)
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


async def _named(context: ToolContext, symbol: str, path: str | None) -> NamedPlace | None:
    """Return where a name stands in a file; None if there is no such file or name, or nobody to ask."""
    if path is None or context.get(CodeServers) is None:
        return None
    try:
        return await name_in(context, path, symbol)
    except AgentError:
        return None


async def _asked(
    context: ToolContext, method: str, place: NamedPlace, more: Mapping[str, object]
) -> tuple[ServerAnswer, list[CodePlace]] | None:
    answers = await ask(context, method, place.path, (place.offset, place.offset), more)
    return await first(context, answers, places)


def _shown(context: ToolContext, found: tuple[ServerAnswer, list[CodePlace]] | None) -> ExactPlaces | None:
    if found is None:
        return None
    shown = shown_places(context, found[1])
    return ExactPlaces(found[0].server, tuple(shown), len(found[1]) - len(shown))
