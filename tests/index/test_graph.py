"""The reference graph: edges, walks from seeds, ranks, and that it survives being saved."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.index.rank import MOST_DEFINERS, MOST_EDGES, Graph, build_graph, dump_graph, load_graph


class Names(NamedTuple):
    """What a file defines, and how often it uses which name."""

    defined: tuple[str, ...]
    used: dict[str, int]


CHAIN = {
    "a.py": Names(("alpha",), {"bravo": 4}),
    "b.py": Names(("bravo",), {"charlie": 1}),
    "c.py": Names(("charlie",), {}),
    "alone.py": Names(("lonely",), {}),
}


def graph(files: dict[str, Names]) -> Graph:
    defined = ((path, names.defined) for path, names in files.items())
    used = ((path, names.used) for path, names in files.items())
    return build_graph(defined, used, {path: path.encode().ljust(32, b".") for path in files})


def neighbours(made: Graph, path: str) -> dict[str, float]:
    at = made.number[path]
    edges = range(made.starts[at], made.starts[at + 1])
    found: dict[str, float] = {}
    for edge in edges:
        target = made.paths[made.targets[edge]]
        found[target] = found.get(target, 0.0) + made.weights[edge]
    return found


def test_who_uses_a_name_and_who_defines_it_are_neighbours() -> None:
    made = graph(CHAIN)

    assert neighbours(made, "a.py").keys() == {"b.py"}
    assert neighbours(made, "b.py").keys() == {"a.py", "c.py"}
    assert neighbours(made, "alone.py") == {}


def test_an_edge_is_stronger_the_more_often_a_name_is_used() -> None:
    weights = neighbours(graph(CHAIN), "b.py")

    assert weights["a.py"] == pytest.approx(2 * weights["c.py"])
    assert sum(weights.values()) == pytest.approx(1)


def test_an_edge_is_weaker_the_more_files_define_the_name() -> None:
    files = {"user.py": Names((), {"single": 1, "double": 1})}
    files |= {"one.py": Names(("single",), {}), "two.py": Names(("double",), {}), "three.py": Names(("double",), {})}

    weights = neighbours(graph(files), "user.py")

    assert weights["one.py"] == pytest.approx(2 * weights["two.py"])


def test_names_that_say_nothing_make_no_edges() -> None:
    many = {f"{number}.py": Names(("common",), {}) for number in range(MOST_DEFINERS + 1)}
    made = graph({"user.py": Names(("mine",), {"common": 3, "mine": 2, "run": 9}), "r.py": Names(("run",), {}), **many})

    assert neighbours(made, "user.py") == {}


def test_only_the_strongest_edges_are_kept() -> None:
    files = {f"{number}.py": Names((f"name{number}",), {}) for number in range(MOST_EDGES + 20)}
    made = graph({"user.py": Names((), {f"name{number}": number + 1 for number in range(MOST_EDGES + 20)}), **files})

    assert neighbours(made, "user.py").keys() == {f"{number}.py" for number in range(20, MOST_EDGES + 20)}


def test_a_walk_stays_mostly_where_it_began() -> None:
    reached = graph(CHAIN).spread({"a.py": 1.0})

    assert reached["a.py"] > reached["c.py"] > 0
    assert reached["b.py"] > reached["c.py"]
    assert "alone.py" not in reached
    assert sum(reached.values()) <= 1 + 1e-6


def test_seeds_that_the_graph_does_not_know_are_passed_over() -> None:
    assert graph(CHAIN).spread({"new.py": 1.0}) == {}
    assert graph(CHAIN).spread({}) == {}
    assert graph({}).spread({"a.py": 1.0}) == {}


def test_what_all_lean_on_is_important() -> None:
    files = {f"user{number}.py": Names((), {"helper": 1}) for number in range(5)} | {"lib.py": Names(("helper",), {})}
    made = graph(files)

    importance = dict(zip(made.paths, made.importance, strict=True))

    assert max(importance, key=lambda path: importance[path]) == "lib.py"


def test_a_graph_is_the_same_after_being_saved() -> None:
    made = graph(CHAIN)

    assert load_graph(dump_graph(made)) == made


def test_an_empty_graph_is_saved_too() -> None:
    assert load_graph(dump_graph(graph({}))) == graph({})


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: data + b"x", lambda data: data[3:]])
def test_damaged_bytes_are_refused(damage: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_graph(damage(dump_graph(graph(CHAIN))))  # type: ignore[operator]


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_graph(data)


def test_bytes_with_edges_that_lead_nowhere_are_refused() -> None:
    made = graph(CHAIN)
    made.targets[0] = 99

    with pytest.raises(ValueError, match="edge"):
        load_graph(dump_graph(made))


def test_how_much_of_a_graph_is_out_of_date() -> None:
    made = graph(CHAIN)
    files = {path: path.encode().ljust(32, b".") for path in CHAIN}

    assert made.stale(files) == 0
    assert made.stale({**files, "a.py": b"another"}) == 0.25
    assert made.stale({path: digest for path, digest in files.items() if path != "a.py"}) == 0.25
    assert made.stale({}) == 1


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([f"{number}.py" for number in range(8)]),
        st.builds(
            Names,
            st.lists(st.sampled_from(["alpha", "bravo", "charlie", "delta"]), max_size=3, unique=True).map(tuple),
            st.dictionaries(st.sampled_from(["alpha", "bravo", "charlie", "delta"]), st.integers(1, 9), max_size=4),
        ),
    )
)
def test_the_edges_of_any_file_add_up_and_walks_end(files: dict[str, Names]) -> None:
    made = graph(files)

    for path in files:
        weights = neighbours(made, path)
        assert path not in weights
        assert not weights or sum(weights.values()) == pytest.approx(1, abs=1e-5)
        assert sum(made.spread({path: 2.0}).values()) <= 1 + 1e-5
    assert load_graph(dump_graph(made)) == made
