"""Graphs as text and as Mermaid, and how large ones are made small."""

from __future__ import annotations

from codeagent_lsp.tools.code.call_graph import Edge, Graph, Node, listing, to_mermaid
from codeagent_lsp.tools.code.graph_tools import MAX_NODES, dependency_graph, unit


def test_mermaid_with_labels_that_need_care() -> None:
    graph = Graph((Node("a", 'A<"x">#1'), Node("b", "operator`"), Node("c", "größe")), (Edge("a", "b"), Edge("b", "c")))
    assert to_mermaid(graph) == (
        'flowchart LR\n  n0["A#lt;#quot;x#quot;#gt;#35;1"]\n  n1["operator#96;"]\n  n2["größe"]\n'
        "  n0 --> n1\n  n1 --> n2\n"
    )


def test_edges_to_nodes_that_are_not_there_are_left_out() -> None:
    assert "-->" not in to_mermaid(Graph((Node("a", "a"),), (Edge("a", "b"),)))


def test_a_listing_names_places_once_and_lonely_nodes_too() -> None:
    nodes = (Node("a", "A.f", "a.py", 3), Node("b", "g", "b.py", 1), Node("c", "h", "c.py", 9))
    graph = Graph(nodes, (Edge("a", "b"),), truncated=True)
    assert listing(graph).splitlines() == [
        "A.f (a.py:3) -> g",
        "h (c.py:9)",
        "Where the others are:",
        "  g (b.py:1)",
        "(the graph has more; ask for a smaller part)",
    ]


def test_nothing_is_an_empty_listing() -> None:
    assert listing(Graph()) == ""


def test_go_files_are_their_package() -> None:
    assert (unit("a/b.go"), unit("main.go"), unit("a/b.py")) == ("a/", "./", "a/b.py")
    graph = dependency_graph({"main.go": ["pkg/a.go", "pkg/b.go"], "pkg/a.go": ["pkg/b.go"]})
    assert [(edge.source, edge.target) for edge in graph.edges] == [("./", "pkg/")]


def test_a_focus_shows_who_imports_it_and_two_steps_down() -> None:
    imports = {"a": ["b"], "b": ["c"], "c": ["d"], "d": ["e"], "x": ["y"]}
    found = {(edge.source, edge.target) for edge in dependency_graph(imports, "b").edges}
    assert found == {("a", "b"), ("b", "c"), ("c", "d")}
    assert [node.label for node in dependency_graph(imports, "z").nodes] == ["z"]


def test_too_many_files_become_folders() -> None:
    imports = {f"p{n // 50}/m{n}.py": [f"p{(n + 50) // 50}/m{n + 50}.py"] for n in range(500)}
    graph = dependency_graph(imports)
    assert len(graph.nodes) <= MAX_NODES and not graph.truncated
    assert Edge("p0/", "p1/") in graph.edges


def test_too_many_in_one_folder_are_cut_and_said() -> None:
    graph = dependency_graph({"a.py": [f"m{n}.py" for n in range(MAX_NODES + 50)]}, "a.py")
    assert len(graph.nodes) == MAX_NODES and graph.truncated
