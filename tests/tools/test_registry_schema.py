"""The registry, what models are told about tools, and truncation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.messages import without_forms
from codeagent_lsp.tools.catalogue import BUILTIN, SMALL_SET
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.outputs import truncate
from codeagent_lsp.tools.registry import ToolRegistry, ToolStats
from codeagent_lsp.tools.tool import UNTOLD, Parameters, Tool, ToolOutput, compact_schema
from codeagent_lsp.tools.traits import ToolTraits


def builtin(**settings: Any) -> ToolRegistry:
    return ToolRegistry([cls() for cls in BUILTIN], **settings)


# --- registry


def test_registering_and_taking_away() -> None:
    registry = ToolRegistry()
    tool = BUILTIN[0]()
    registry.register(tool)
    assert registry.get("list_dir") is tool
    with pytest.raises(ValueError, match="registered already"):
        registry.register(BUILTIN[0]())
    registry.unregister("list_dir")
    assert registry.names() == ()
    with pytest.raises(ToolFailed) as missing:
        registry.unregister("list_dir")
    assert missing.value.code is ErrorCode.NOT_FOUND


def test_tools_are_fetched_when_somebody_first_asks() -> None:
    made: list[str] = []

    def tools() -> Iterator[Tool[Any]]:
        for cls in BUILTIN[:2]:
            made.append(cls.traits.name)
            yield cls()

    registry = ToolRegistry(tools(), disabled=["read_file"])
    registry.miss("mcp.x", ToolFailed("gone"))
    assert made == []
    assert registry.names("active") == ("list_dir",)
    assert registry.names() == ("list_dir", "read_file")
    assert made == ["list_dir", "read_file"]


def test_switching_off_and_on() -> None:
    registry = builtin(disabled=["grep", "no_such_tool"])
    assert registry.names("disabled") == ("grep",)
    with pytest.raises(ToolFailed, match="switched off in the settings") as off:
        registry.get("grep")
    assert off.value.code is ErrorCode.TOOL_DISABLED
    registry.enable("grep")
    assert registry.get("grep").traits.name == "grep"
    registry.disable("grep", "cannot start")
    with pytest.raises(ToolFailed, match="is disabled: cannot start"):
        registry.get("grep")
    assert "grep" not in {spec["name"] for spec in registry.specs(["read"], ["core"])}


def test_lists_by_state_and_group_in_the_order_of_registration() -> None:
    registry = builtin(disabled=["move_file"])
    assert registry.names() == tuple(cls.traits.name for cls in BUILTIN)
    assert registry.names("active", "files") == (
        *("read_files", "insert_text", "batch_edit", "preview_edit", "delete_file"),
    )
    assert [spec["name"] for spec in registry.specs(["write"], ["core"])] == [
        "edit_file",
        "write_file",
        "apply_patch",
        "undo_patch",
    ]
    assert len(registry.entries()) == len(BUILTIN)


def test_stats_are_values() -> None:
    registry = builtin()
    registry.count("grep", ok=True, milliseconds=10)
    registry.count("grep", ok=False, milliseconds=30)
    stats = {entry.tool.traits.name: entry.stats for entry in registry.entries()}
    assert stats["grep"] == ToolStats(2, 1, 40)
    assert (stats["grep"].mean_ms, stats["read_file"].mean_ms) == (20, 0)


def test_names_are_unique_and_the_small_set_exists() -> None:
    names = [cls.traits.name for cls in BUILTIN]
    assert len(set(names)) == len(names)
    assert set(SMALL_SET) <= set(names)


# --- schemas


def nodes(schema: Any) -> Iterator[Any]:
    yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from nodes(inner)


@pytest.mark.parametrize("cls", BUILTIN, ids=lambda cls: cls.traits.name)
def test_what_a_model_is_told_is_small_and_plain(cls: type[Tool[Any]]) -> None:
    spec = cls().spec()
    schema = spec["parameters"]
    text = json.dumps(without_forms(spec))
    assert len(text) < 1200
    assert schema["type"] == "object" and schema["additionalProperties"] is False
    fields = cls.parameters.model_fields.items()
    assert set(schema["properties"]) == {name for name, each in fields if each.json_schema_extra != UNTOLD}
    assert set(schema.get("required", ())) <= set(schema["properties"])
    assert not any(word in text for word in ('"$ref"', '"$defs"', '"title": "', '"anyOf"'))
    for node in nodes(schema):
        if isinstance(node, dict) and node.get("type") == "object":
            assert "description" not in node
    assert 10 < len(spec["description"]) < 300


@pytest.mark.parametrize("cls", BUILTIN, ids=lambda cls: cls.traits.name)
def test_path_parameters_exist(cls: type[Tool[Any]]) -> None:
    """Permissions look at them: a misspelt one would let everything through."""
    for name in cls.traits.path_parameters:
        head, _, inner = name.partition(".")
        assert head in cls.parameters.model_fields
        if inner:
            assert inner in json.dumps(cls().spec()["parameters"]["properties"][head])
    paths = {name for name in cls.parameters.model_fields if "path" in name or name == "patch"}
    assert paths <= set(cls.traits.path_parameters)


def test_the_whole_catalogue_fits_a_small_window() -> None:
    small = [spec for spec in builtin().specs(["read", "write", "ask"], ["core", "files"]) if spec["name"] in SMALL_SET]
    assert len(json.dumps([without_forms(spec) for spec in small])) < 4500


class Inner(BaseModel):
    """Not for models."""

    title: str
    description: str = Field(description="kept")


class Awkward(Parameters):
    """Not for models."""

    title: str
    type: Literal["a", "b"] = "a"
    items: list[Inner] | None = None
    either: int | str | None = None
    default: int = 3


class AwkwardTool(Tool[Awkward]):
    traits: ClassVar[ToolTraits] = ToolTraits("awkward", "For tests.", "read")
    parameters = Awkward

    async def run(self, arguments: Awkward, context: ToolContext) -> ToolOutput:
        return ToolOutput("")


def test_parameters_with_the_names_of_schema_words_survive() -> None:
    schema = AwkwardTool().spec()["parameters"]
    assert list(schema["properties"]) == ["title", "type", "items", "either", "default"]
    assert schema["properties"]["title"] == {"type": "string"}
    assert schema["properties"]["type"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    inner = schema["properties"]["items"]["items"]
    assert inner["properties"] == {
        "title": {"type": "string"},
        "description": {"type": "string", "description": "kept"},
    }
    assert inner["required"] == ["title", "description"]
    assert schema["properties"]["default"] == {"type": "integer", "default": 3}
    assert schema["required"] == ["title"]
    assert "Not for models" not in json.dumps(schema)


def test_a_schema_without_anything_to_drop_stays() -> None:
    plain = {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}, "required": ["a"]}
    assert compact_schema(plain) == plain


# --- truncation


@given(st.text(), st.integers(10, 200))
def test_truncation_is_bounded_and_keeps_both_ends(text: str, limit: int) -> None:
    short = truncate(text, limit)
    if len(text.encode()) <= limit:
        assert short == text
    else:
        assert len(short.encode()) <= limit + 60
        head, _, tail = short.partition("\n[... ")
        missing, _, tail = tail.partition(" characters left out ...]\n")
        assert text.startswith(head) and text.endswith(tail)
        assert len(head) + int(missing) + len(tail) == len(text)


def test_truncation_cuts_at_line_ends_where_it_can() -> None:
    short = truncate("".join(f"line {number}\n" for number in range(100)), 100)
    head, _, tail = short.partition("\n[... ")
    assert head.endswith("line 8") and tail.split("\n", 1)[1].startswith("line ")
