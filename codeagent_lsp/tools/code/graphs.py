"""A graph of code as a value, with renderings as a compact listing and as Mermaid. Pure functions.

Not here: which nodes and edges there are (`call_graph.py`, `graph_tools.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTITIES = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
_BAD = re.compile(r"[\"<>`]")


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
    """Return the graph as the text of a Mermaid flowchart."""
    # names such as `end` are words of Mermaid's own
    number = {node.id: f"n{at}" for at, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    lines += [f'  {number[node.id]}["{_escaped(node.label)}"]' for node in graph.nodes]
    lines += [
        f"  {number[edge.source]} --> {number[edge.target]}"
        for edge in graph.edges
        if edge.source in number and edge.target in number
    ]
    return "\n".join(lines) + "\n"


def listing(graph: Graph, arrow: str = "->") -> str:
    """Return one line for each node with outgoing edges and its targets, then the isolated nodes and the places of
    others.
    """
    labels = {node.id: node.label for node in graph.nodes}
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.source, []).append(labels.get(edge.target, edge.target))
    lines = [f"{_named(node)} {arrow} {', '.join(targets[node.id])}" for node in graph.nodes if node.id in targets]
    reached = {edge.target for edge in graph.edges}
    lines += [_named(node) for node in graph.nodes if node.id not in targets and node.id not in reached]
    places = [_named(node) for node in graph.nodes if node.line and node.id not in targets and node.id in reached]
    if places:
        lines += ["Where the others are:", *(f"  {place}" for place in places)]
    if graph.truncated:
        lines.append("(the graph has more; ask for a smaller part)")
    return "\n".join(lines)


def _named(node: Node) -> str:
    return f"{node.label} ({node.path}:{node.line})" if node.line else node.label


def _escaped(label: str) -> str:
    # `#` comes first, as Mermaid's entities begin with it
    return _BAD.sub(lambda found: _ENTITIES[found[0]], label.replace("#", "#35;"))
