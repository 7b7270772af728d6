"""The page about the tools: its examples are calls that work, its words fit the tools."""

from __future__ import annotations

from typing import Any

import pytest

from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.executor import understood
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.tools.traits import CORE, EXTENDED
from scripts.generate.tools_page import COMMON, errors_of, kind_of, tools_page

NAMES = [cls.traits.name for cls in BUILTIN]


@pytest.mark.parametrize("cls", BUILTIN, ids=NAMES)
def test_an_example_fits_its_tool(cls: type[Tool[Any]]) -> None:
    tool, example = cls(), cls.example
    assert "example" in vars(cls)
    assert understood(ToolCall(cls.traits.name, example), tool).tool is tool
    assert set(tool.input_schema().get("required", ())) <= set(example)


@pytest.mark.parametrize("cls", BUILTIN, ids=NAMES)
def test_every_tool_is_on_the_page(cls: type[Tool[Any]]) -> None:
    section = tools_page("NOTE").partition(f"### `{cls.traits.name}`")[2].partition("\n### ")[0]
    assert cls.traits.description in section and "```json" in section
    assert f"- Effect: `{cls.traits.effect}`" in section
    for name in cls().input_schema().get("properties", {}):
        assert f"| `{name}` |" in section
    for code in errors_of(cls()):
        assert f"`{code}`" in section


def test_every_group_is_on_the_page_that_has_tools() -> None:
    page = tools_page("NOTE")
    used = {cls.traits.group for cls in BUILTIN}
    assert {group for group in (CORE, *EXTENDED) if f"\n## {group}\n" in page} == used
    assert "\nNOTE\n" in page and "\n\n\n" not in page


def test_codes_that_are_told_are_explained() -> None:
    page = tools_page("")
    codes = {*COMMON, *(code for cls in BUILTIN for code in errors_of(cls()))}
    assert all(f"| `{code}` | `{code.advice.type}` |" in page for code in codes)
    assert not set(COMMON) & {code for cls in BUILTIN for code in errors_of(cls())}
    assert ErrorCode.EDIT_REFUSED in codes


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "minLength": 1}, "text, at least 1 characters"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "integer, 1–5"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 600}, "number, more than 0, at most 600"),
        ({"enum": ["a", "b"], "type": "string"}, "`a` \\| `b`"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 3}, "list of text, at most 3"),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, "{`a?`: true or false}"),
        ({"type": "object"}, "object"),
        ({}, "any value"),
    ],
)
def test_types_in_words(schema: dict[str, Any], words: str) -> None:
    assert kind_of(schema) == words
