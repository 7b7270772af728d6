"""The call graph around a function, by names: callees downwards and callers upwards; and graphs of code as values, each
shown as a compact listing or as Mermaid.

A call resolves to the definition of its name in the same class, else in the same file, else to the only one that fits
in the workspace. Not here: calls on objects of unknown type if several definitions fit, other graphs
(`graph_tools.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from codeagent_lsp.index.grammars import text_of
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.code.meaning import definition_site
from codeagent_lsp.tools.code.owners import SELVES
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.tools.code.uses import Use, Uses, around

_ENTITIES = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
_BAD = re.compile(r"[\"<>`]")
MAX_NODES = 150
_CALLABLE = frozenset(("function", "method", "class", "struct", "macro"))


@dataclass(frozen=True, slots=True)
class Node:
    """A node; `path` and `line` (1-based) are its place, '' and 0 if unknown."""

    id: str
    label: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from the id of one node to that of another."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and edges in a fixed order; `truncated` if some were left out."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    truncated: bool = False


def to_mermaid(graph: Graph) -> str:
    """Return the graph as the text of a Mermaid flowchart (`flowchart LR`); edges to nodes that are not in it are left
    out.
    """
    # names such as `end` are words of Mermaid's own
    number = {node.id: f"n{at}" for at, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    lines += [f'  {number[node.id]}["{_escape(node.label)}"]' for node in graph.nodes]
    lines += [
        f"  {number[edge.source]} --> {number[edge.target]}"
        for edge in graph.edges
        if edge.source in number and edge.target in number
    ]
    return "\n".join(lines) + "\n"


def listing(graph: Graph) -> str:
    """Return text for the model: one line `node -> targets` for each node with outgoing edges, then the isolated nodes
    and the places of others; it says so if the graph was cut. '' for an empty graph.
    """
    labels = {node.id: node.label for node in graph.nodes}
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.source, []).append(labels.get(edge.target, edge.target))
    lines = [f"{_node_line(node)} -> {', '.join(targets[node.id])}" for node in graph.nodes if node.id in targets]
    reached = {edge.target for edge in graph.edges}
    lines += [_node_line(node) for node in graph.nodes if node.id not in targets and node.id not in reached]
    places = [_node_line(node) for node in graph.nodes if node.line and node.id not in targets and node.id in reached]
    if places:
        lines += ["Where the others are:", *(f"  {place}" for place in places)]
    if graph.truncated:
        lines.append("(the graph has more; ask for a smaller part)")
    return "\n".join(lines)


def _node_line(node: Node) -> str:
    return f"{node.label} ({node.path}:{node.line})" if node.line else node.label


def _escape(label: str) -> str:
    # `#` comes first, as Mermaid's entities begin with it
    return _BAD.sub(lambda found: _ENTITIES[found[0]], label.replace("#", "#35;"))


class DefinitionPlace(NamedTuple):
    """A definition together with its file (absolute path) and parsed text."""

    path: str
    source: SourceFile
    definition: Definition

    @property
    def id(self) -> str:
        """An identifier that is unique among all definitions: path, 1-based line and qualified name."""
        return f"{self.source.path}:{self.definition.symbol.line_start}:{self.definition.qualified}"


@dataclass
class CallGraph:
    """Builds one call graph and holds the nodes and edges found so far; use a new object for each graph."""

    codebase: Codebase
    _nodes: dict[str, Node] = field(default_factory=dict)
    _edges: dict[Edge, None] = field(default_factory=dict)
    _uses: dict[str, list[Use]] = field(default_factory=dict)
    _full: bool = False

    async def of(self, starts: Sequence[DefinitionPlace], depth: int) -> Graph:
        """Return the graph of the callees and callers of `starts`, up to `depth` steps in both directions and 150
        nodes; `truncated` if a limit left some out.
        """
        for start in starts:
            self._node(start)
        # Each way from the start only: callers of callees would soon be the whole program.
        await self._down(starts, depth)
        await self._up(starts, depth)
        return Graph(tuple(self._nodes.values()), tuple(self._edges), self._full or self.codebase.truncated)

    async def _down(self, starts: Sequence[DefinitionPlace], depth: int) -> None:
        pending = list(starts)
        seen = {start.id for start in starts}
        for _ in range(depth):
            found: list[DefinitionPlace] = []
            for caller in pending:
                for use in self._calls_in(caller):
                    callees = await self._meant(caller, use)
                    for callee in callees:
                        self._join(caller, callee)
                        if callee.id not in seen:
                            seen.add(callee.id)
                            found.append(callee)
            pending = found

    async def _up(self, starts: Sequence[DefinitionPlace], depth: int) -> None:
        pending = list(starts)
        seen = {start.id for start in starts}
        for _ in range(depth):
            found: list[DefinitionPlace] = []
            for callee in pending:
                for caller in await self._callers(callee):
                    self._join(caller, callee)
                    if caller.id not in seen:
                        seen.add(caller.id)
                        found.append(caller)
            pending = found

    async def _callers(self, callee: DefinitionPlace) -> list[DefinitionPlace]:
        name = callee.definition.symbol.name
        found: dict[str, DefinitionPlace] = {}
        for path in await self.codebase.using(name):
            source = await self.codebase.source(path)
            # Nothing more is sought once the graph is full, as a name such as `get` is called everywhere.
            for use in self._calls(path, source) if source is not None and not self._full else ():
                if source is None or use.node.text != name.encode("utf-8", "replace"):
                    continue
                inside = around(source, use.node.start_byte)
                caller = DefinitionPlace(path, source, inside) if inside is not None else None
                if caller is not None and any(each.id == callee.id for each in await self._meant(caller, use)):
                    found[caller.id] = caller
        return list(found.values())

    async def _meant(self, caller: DefinitionPlace, use: Use) -> list[DefinitionPlace]:
        """Return the definitions that a call refers to; none if unknown, several for overloads."""
        name = text_of(use.node)
        here = [each for each in _callable(caller.path, caller.source) if each.definition.symbol.name == name]
        # From near to far: the class itself, then this file, then all others.
        if use.receiver in SELVES:
            owner = caller.definition.symbol.parent
            own = [each for each in here if each.definition.symbol.parent == owner]
            if own:
                return own
        elif use.access == "plain":
            # A bare name may be a method in languages without `self`.
            plain = [each for each in here if each.definition.symbol.kind != "method"] or here
            if plain:
                return plain
        elsewhere = []
        for path in await self.codebase.defining(name):
            source = await self.codebase.source(path)
            if source is not None:
                elsewhere += [each for each in _callable(path, source) if each.definition.symbol.name == name]
        # Only a single one counts: with several, which is called depends on types.
        elsewhere = [each for each in elsewhere if _fits(each, use)]
        return elsewhere if len({(each.path, each.definition.qualified) for each in elsewhere}) == 1 else []

    def _calls_in(self, place: DefinitionPlace) -> list[Use]:
        node = place.definition.outer
        return [
            use
            for use in self._calls(place.path, place.source)
            if node.start_byte <= use.node.start_byte < node.end_byte
            # Calls in a function within it are those of that function.
            and around(place.source, use.node.start_byte) == place.definition
        ]

    def _calls(self, path: str, source: SourceFile) -> list[Use]:
        if path not in self._uses:
            uses = Uses(source)
            self._uses[path] = [use for use in uses.all() if use.call and not self._is_only_local(source, uses, use)]
        return self._uses[path]

    def _is_only_local(self, source: SourceFile, uses: Uses, use: Use) -> bool:
        """Return whether a call is of a parameter or a local variable, not of a nested function."""
        binder = uses.binder(use)
        if binder is None:
            return False
        name = text_of(use.node)
        return not any(each.symbol.name == name and uses.home(each) == binder for each in source.definitions)

    def _join(self, caller: DefinitionPlace, callee: DefinitionPlace) -> None:
        if self._node(caller) and self._node(callee):
            self._edges[Edge(caller.id, callee.id)] = None

    def _node(self, place: DefinitionPlace) -> bool:
        if place.id not in self._nodes:
            if len(self._nodes) >= MAX_NODES:
                self._full = True
                return False
            site = definition_site(place.source, place.definition)
            self._nodes[place.id] = Node(place.id, place.definition.qualified, site.path, site.line)
        return True


def _fits(place: DefinitionPlace, use: Use) -> bool:
    """Return whether a call can refer to a definition in another file; after a dot, only the name of its file or parent
    fits.
    """
    if place.definition.symbol.kind == "method":
        return use.access != "plain"
    if use.access == "plain":
        return True
    owner = re.split(r"\.|::|->|\\", use.receiver)[-1]
    path = PurePosixPath(place.source.path.replace("\\", "/"))
    return owner in (path.stem, path.parent.name, place.definition.symbol.parent.rpartition(".")[2])


def _callable(path: str, source: SourceFile) -> list[DefinitionPlace]:
    return [DefinitionPlace(path, source, each) for each in source.definitions if each.symbol.kind in _CALLABLE]
