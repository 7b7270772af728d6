"""The dependency graph of files, by imports of files of the workspace.

Go imports packages, so a folder represents its Go files. Not here: what an import names (`imports.py`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from codeagent_lsp.tools.code.graphs import Edge, Graph, Node

MAX_NODES = 150


def dependency_graph(imports: Mapping[str, Iterable[str]], focus: str = "") -> Graph:
    """Return the graph of files by their imports; `focus` restricts it to one file, its importers and two steps of
    imports.

    If there are too many files, their folders represent them.
    """
    edges = {
        (unit(path), unit(target)): None
        for path, targets in sorted(imports.items())
        for target in targets
        if unit(path) != unit(target)
    }
    if focus:
        return _graph(_near(list(edges), unit(focus)), [unit(focus)])
    names = dict.fromkeys(name for edge in edges for name in edge)
    if len(names) > MAX_NODES:
        return _graph(_folded(list(edges)), [])
    return _graph(list(edges), [])


def unit(path: str) -> str:
    """Return the node that represents a file in the graph: the file itself, or its folder for Go."""
    return f"{posixpath.dirname(path) or '.'}/" if path.endswith(".go") else path


def _near(edges: list[tuple[str, str]], focus: str) -> list[tuple[str, str]]:
    direct = {target for source, target in edges if source == focus}
    return [edge for edge in edges if focus in edge or edge[0] in direct]


def _folded(edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the edges between folders, at the greatest depth with few enough nodes."""
    for depth in range(8, 0, -1):
        folded = {(_folder(source, depth), _folder(target, depth)): None for source, target in edges}
        kept = [edge for edge in folded if edge[0] != edge[1]]
        if len({name for edge in kept for name in edge}) <= MAX_NODES:
            return kept
    return kept


def _folder(path: str, depth: int) -> str:
    parts = path.rstrip("/").split("/")
    inner = parts if path.endswith("/") else parts[:-1]
    return "/".join(inner[:depth]) + "/" if inner else "./"


def _graph(edges: list[tuple[str, str]], always: list[str]) -> Graph:
    names = list(dict.fromkeys([*always, *(name for edge in edges for name in edge)]))
    kept = set(names[:MAX_NODES])
    nodes = tuple(Node(name, name, "" if name.endswith("/") else name) for name in names[:MAX_NODES])
    return Graph(
        nodes,
        tuple(Edge(source, target) for source, target in edges if source in kept and target in kept),
        len(names) > MAX_NODES,
    )
