"""What one tool gave becomes arguments of the next: paths, filters, sums, names, and the `compose` tool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, TypeAdapter

from codeagent_lsp.errors import ToolFailed, ToolRetry
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.composition import (
    Aggregate,
    Filter,
    Transformation,
    arguments_for,
    at,
    composable,
    plain,
    transform,
)
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.orchestration.orchestration_tools import Compose
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from tests.tools.fakes import Bench

FILES = [{"name": "a.py", "size": 3}, {"name": "b.md", "size": 5}, {"name": "c.py", "size": 7}]


def change(**fields: Any) -> Transformation:
    return Transformation.model_validate(fields)


# --- paths


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", {"items": FILES}),
        ("items", FILES),
        ("items[1].name", "b.md"),
        ("items[*].size", [3, 5, 7]),
        ("items[*]", FILES),
    ],
)
def test_a_path_leads_into_a_value(path: str, found: Any) -> None:
    assert at({"items": FILES}, path) == found


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nothing", "There is: items"),
        ("items[9]", "list|array of 3"),
        ("items.name", "leads nowhere at 'name'"),
        ("items[0][*]", "needs a list"),
        ("items[", "is no path"),
        ("items[-1]", "is no path"),
    ],
)
def test_a_path_that_leads_nowhere_is_explained(path: str, words: str) -> None:
    with pytest.raises(ToolRetry, match=words):
        at({"items": FILES}, path)


# --- filter and aggregate


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ({"field": "name", "op": "eq", "value": "a.py"}, ["a.py"]),
        ({"field": "name", "op": "ne", "value": "a.py"}, ["b.md", "c.py"]),
        ({"field": "name", "op": "contains", "value": ".py"}, ["a.py", "c.py"]),
        ({"field": "size", "op": "gt", "value": 3}, ["b.md", "c.py"]),
        ({"field": "size", "op": "ge", "value": 5}, ["b.md", "c.py"]),
        ({"field": "size", "op": "lt", "value": 5}, ["a.py"]),
        ({"field": "size", "op": "le", "value": 5}, ["a.py", "b.md"]),
        ({"field": "size", "op": "gt", "value": "3"}, []),
        ({"field": "missing", "op": "eq", "value": 1}, []),
        ({"field": "missing", "op": "ne", "value": 1}, ["a.py", "b.md", "c.py"]),
    ],
)
def test_filters(rule: dict[str, Any], names: list[str]) -> None:
    found = transform(FILES, Transformation(filter=Filter.model_validate(rule)))
    assert [item["name"] for item in found] == names


@pytest.mark.parametrize(
    ("function", "field", "value"),
    [
        ("count", "", 3),
        ("sum", "size", 15),
        ("first", "name", "a.py"),
        ("last", "name", "c.py"),
        ("last", "", FILES[2]),
    ],
)
def test_aggregates(function: Any, field: str, value: Any) -> None:
    assert transform(FILES, Transformation(aggregate=Aggregate(function=function, field=field))) == value


def test_the_order_is_extract_filter_aggregate() -> None:
    made = change(
        extract_path="found",
        filter={"field": "size", "op": "gt", "value": 3},
        aggregate={"function": "count"},
    )
    assert transform({"found": FILES}, made) == 2


@pytest.mark.parametrize(
    ("value", "made", "words"),
    [
        ("text", change(filter={"value": 1}), "filter needs a list"),
        ({}, change(aggregate={"function": "count"}), "aggregate needs a list"),
        ([], change(aggregate={"function": "first"}), "empty list"),
        (["a"], change(aggregate={"function": "sum"}), "needs numbers"),
    ],
)
def test_what_does_not_fit_is_explained(value: Any, made: Transformation, words: str) -> None:
    with pytest.raises(ToolRetry, match=words):
        transform(value, made)


# --- arguments

SCHEMA = {
    "properties": {
        "limit": {"type": "integer"},
        "path": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}


@pytest.mark.parametrize(
    ("value", "made", "given", "arguments"),
    [
        ("a.py", {}, (), {"path": "a.py"}),
        (["a", "b"], {}, (), {"path": "a\nb"}),
        ([{"x": 1}], {}, (), {"path": '[{"x": 1}]'}),
        ({"path": "p", "limit": 3, "else": 1}, {}, (), {"path": "p", "limit": 3}),
        (7, {}, ("path",), {"limit": 7}),
        ("one", {"field_mapping": {"names": ""}}, (), {"names": ["one"]}),
        ({"a": {"b": "x"}}, {"field_mapping": {"path": "a.b"}}, (), {"path": "x"}),
        ({"path": "p", "count": 1}, {"field_mapping": {"path": ""}}, (), {"path": "p"}),
        ([{"path": "p", "count": 1}], {"field_mapping": {"path": "[0]"}}, (), {"path": "p"}),
        ({"count": 1}, {"field_mapping": {"path": ""}}, (), {"path": '{"count": 1}'}),
    ],
)
def test_arguments_are_made_to_fit(value: Any, made: dict[str, Any], given: Any, arguments: dict[str, Any]) -> None:
    assert arguments_for(value, SCHEMA, change(**made), given) == arguments


def test_a_mapping_to_a_parameter_that_is_none_is_explained() -> None:
    with pytest.raises(ToolRetry, match=r"no parameters: file. There are: limit, path, names"):
        arguments_for("x", SCHEMA, change(field_mapping={"file": ""}))


def test_unknown_keys_of_a_transformation_are_an_error() -> None:
    with pytest.raises(ValueError, match="extract"):
        change(extract="a")


@dataclass
class Point:
    x: int
    tags: tuple[str, ...] = ("t",)


class Shown(BaseModel):
    y: int


def test_data_of_any_kind_becomes_plain() -> None:
    assert plain({"p": Point(1), 2: [Shown(y=2), None, Path("a")]}) == {
        "p": {"x": 1, "tags": ["t"]},
        "2": [{"y": 2}, None, "a"],
    }


# --- tools


class TakeParameters(Parameters):
    words: list[str]
    count: int = 1


class Take(Tool[TakeParameters]):
    traits: ClassVar[ToolTraits] = ToolTraits("take", "For tests of chains.", "write")
    parameters = TakeParameters

    async def run(self, arguments: TakeParameters, context: ToolContext) -> ToolOutput:
        return ToolOutput(f"took {arguments.words}", {"count": len(arguments.words)})


class CountParameters(Parameters):
    count: int


class Count(Tool[CountParameters]):
    traits: ClassVar[ToolTraits] = ToolTraits("count", "For tests of chains.", "read")
    parameters = CountParameters
    output = dict[str, int]

    async def run(self, arguments: CountParameters, context: ToolContext) -> ToolOutput:
        if arguments.count < 0:
            raise ToolFailed("below zero")
        return ToolOutput(f"counted {arguments.count}", {"count": arguments.count + 1})


def test_what_can_follow_what() -> None:
    assert Take().can_compose_with(Take())  # a text can be made a list of texts
    assert not composable({"type": "boolean"}, Count().input_schema())
    assert composable({"type": "integer"}, {"properties": {"n": {"type": "number"}}})
    assert composable({"type": "object", "properties": {"count": {}}}, Count().input_schema())
    assert not Take().can_compose_with(Count())


def test_output_schemas() -> None:
    assert Take().output_schema() is None
    assert Count().output_schema() == {"type": "object", "additionalProperties": {"type": "integer"}}
    for cls in BUILTIN:
        schema = cls().output_schema()
        assert schema is None or schema.get("type") or schema.get("properties")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list_dir", {"path": "."}),
        ("glob_file_search", {"pattern": "*.py"}),
        ("grep", {"pattern": "x"}),
        ("write_file", {"path": "n.py", "content": "x\n"}),
        ("read_file", {"path": "a.py"}),
        ("todoread", {}),
    ],
)
async def test_the_data_of_a_tool_is_what_its_schema_says(tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    bench = Bench(tmp_path / "w")
    bench.write("a.py", "x = 1\n")
    result = await bench.call(name, **arguments)
    tool = bench.registry.get(name)
    assert tool.output is not None
    TypeAdapter(tool.output).validate_python(plain(result.data))


async def chain(bench: Bench, *steps: dict[str, Any]) -> Any:
    return await bench.executor.execute(ToolCall("compose", {"steps": list(steps)}))


def made(folder: Path) -> Bench:
    return Bench(folder / "w", [Compose(), Take(), Count()])


async def test_a_chain_passes_results_on(tmp_path: Path) -> None:
    result = await chain(
        made(tmp_path),
        {"tool": "take", "arguments": {"words": ["a", "b"]}},
        {"tool": "count", "take": {"extract_path": "count"}},
        {"tool": "count", "take": {"field_mapping": {"count": "count"}}},
    )
    assert result.ok, result.text
    assert result.text.splitlines() == ["1. take: took ['a', 'b']", "2. count: counted 2", "3. count:", "counted 3"]
    assert result.data == {"count": 4}


async def test_a_step_with_all_it_needs_takes_nothing(tmp_path: Path) -> None:
    result = await chain(
        made(tmp_path), {"tool": "count", "arguments": {"count": 1}}, {"tool": "count", "arguments": {"count": 9}}
    )
    assert "counted 9" in result.text


async def test_the_text_of_a_result_can_be_taken(tmp_path: Path) -> None:
    result = await chain(
        made(tmp_path),
        {"tool": "count", "arguments": {"count": 1}},
        {"tool": "take", "take": {"extract_path": "$text"}},
    )
    assert "took ['counted 1']" in result.text


async def test_a_chain_stops_at_the_first_failure_and_says_what_was_done(tmp_path: Path) -> None:
    bench = made(tmp_path)
    result = await chain(
        bench,
        {"tool": "count", "arguments": {"count": 1}},
        {"tool": "count", "arguments": {"count": -1}},
        {"tool": "count", "arguments": {"count": 5}},
    )
    assert result.status == "retry"
    assert "1. count: counted 1" in result.text
    assert "2. count did not work, so the chain stopped: below zero" in result.text
    assert {entry.tool.traits.name: entry.stats.calls for entry in bench.registry.entries()}["count"] == 2


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"tool": "compose", "arguments": {"steps": []}}, "cannot hold a chain"),
        ({"tool": "nothing"}, "There is no tool 'nothing'"),
        ({"tool": "count", "take": {"extract_path": "away"}}, "leads nowhere"),
        ({"tool": "count", "take": {"nonsense": 1}}, "Wrong arguments for compose"),
    ],
)
async def test_chains_that_cannot_be(tmp_path: Path, step: dict[str, Any], words: str) -> None:
    result = await chain(made(tmp_path), {"tool": "count", "arguments": {"count": 1}}, step)
    assert not result.ok
    assert words in result.text


async def test_every_step_is_judged_like_a_call_of_its_own(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.mode = "readOnly"
    steps = ({"tool": "count", "arguments": {"count": 1}}, {"tool": "take", "arguments": {"words": ["x"]}})
    result = await chain(bench, *steps)
    assert result.status == "denied"
    assert "readOnly" in result.text
    bench.mode = "ask"
    bench.rules(ask=("count",))
    denied = await chain(bench, *steps)
    assert (denied.status, len(bench.asker.asked)) == ("denied", 1)
    assert bench.asker.asked[0].title.startswith("Allow count")


@pytest.mark.parametrize("take", [{"extract_path": "[0].path"}, {"aggregate": "first"}])
async def test_real_tools_in_a_chain(tmp_path: Path, take: dict[str, Any]) -> None:
    bench = Bench(tmp_path / "w")
    bench.write("src/a.py", "needle = 1\n")
    bench.write("src/b.py", "nothing\n")
    result = await chain(
        bench,
        {"tool": "grep", "arguments": {"pattern": "needle"}},
        {"tool": "read_file", "take": take},
    )
    assert result.ok, result.text
    assert "needle = 1" in result.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "take",
    [
        None,
        {"extract_path": "[0]"},
        {"extract_path": "matches[0].path"},
        {"extract_path": "[0]", "field_mapping": {"path": "path"}},
        {"field_mapping": {"path": "[0].path"}},
        {"filter": {"field": "path", "op": "contains", "value": "a.py"}, "aggregate": {"function": "first"}},
        {"aggregate": {"function": "last", "field": "path"}},
    ],
)
@pytest.mark.parametrize("how", [{}, {"output": "files"}, {"output": "count"}, {"path": "src/a.py", "context": 1}])
async def test_what_grep_finds_goes_on_to_the_next_tool(
    tmp_path: Path, take: dict[str, Any] | None, how: dict[str, Any]
) -> None:
    bench = Bench(tmp_path / "w")
    bench.write("src/a.py", "needle = 1\nneedle = 2\n")
    bench.write("src/b.py", "nothing\n")
    read = {"tool": "read_file"} | ({"take": take} if take else {})
    result = await chain(bench, {"tool": "grep", "arguments": {"pattern": "needle", **how}}, read)
    assert result.ok, result.text
    assert "needle = 2" in result.text and result.data["path"].endswith("a.py")


async def test_of_several_files_one_has_to_be_chosen(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "w")
    bench.write("a.py", "needle\n")
    bench.write("b.py", "needle\n")
    result = await chain(bench, {"tool": "grep", "arguments": {"pattern": "needle"}}, {"tool": "read_file"})
    assert not result.ok and "2 results with different `path`. Choose one: extract_path [0].path" in result.text
    rows = (await bench.call("grep", pattern="needle")).data
    assert rows == [{"path": name, "line": 1, "text": "needle"} for name in ("a.py", "b.py")]


async def test_a_chain_that_fails_is_not_the_chains_fault(tmp_path: Path) -> None:
    bench = made(tmp_path)
    for _ in range(4):
        await chain(bench, {"tool": "count", "arguments": {"count": 1}}, {"tool": "count", "arguments": {"count": -1}})
    assert bench.registry.circuits.state("compose") == "closed"
