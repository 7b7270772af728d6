"""The protocol as data, and what is generated from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from codeagent_lsp import events, protocol, schemas
from codeagent_lsp.protocol import COMMANDS, Command
from codeagent_lsp.settings_layers import catalogue
from scripts.generate import __main__ as generate

JSON_TYPES = {"string", "integer", "number", "boolean", "object", "array", "null"}


def places(schema: Any, path: str = "#") -> list[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with where it stands."""
    found = [(path, schema)]
    for name in ("properties", "$defs"):
        for key, inner in schema.get(name, {}).items():
            found += places(inner, f"{path}/{name}/{key}")
    for name in ("anyOf", "oneOf"):
        for number, inner in enumerate(schema.get(name, [])):
            found += places(inner, f"{path}/{name}/{number}")
    if isinstance(schema.get("items"), dict):
        found += places(schema["items"], f"{path}/items")
    return found


def assert_is_schema(schema: dict[str, Any]) -> None:
    """The rules of JSON Schema that generated schemas could break."""
    known = dict(places(schema))
    for path, inner in known.items():
        types = inner.get("type", [])
        assert set([types] if isinstance(types, str) else types) <= JSON_TYPES, path
        assert set(inner.get("required", [])) <= set(inner.get("properties", {})), path
        assert inner.get("$ref", "#") in known, path
        assert len(set(map(repr, inner.get("enum", [])))) == len(inner.get("enum", [])), path


@pytest.mark.parametrize("item", COMMANDS, ids=lambda item: item.name)
def test_commands_and_their_arguments_are_well_formed(item: Command) -> None:
    names = [argument.name for argument in item.arguments]
    assert len(set(names)) == len(names)
    assert all(len(set(argument.choices)) == len(argument.choices) for argument in item.arguments)
    assert item.name.startswith("codeagent.")
    assert item.summary.endswith(".")
    assert protocol.command(item.name) is item


def test_command_names_are_unique_and_unknown_ones_are_none() -> None:
    assert len({item.name for item in COMMANDS}) == len(COMMANDS)
    assert protocol.command("codeagent.fly") is None


def test_what_takes_time_says_so() -> None:
    starting = {item.name.removeprefix("codeagent.") for item in COMMANDS if item.starts_run}
    assert {"run", "ask", "edit", "explain", "fix", "refactor", "document", "test"} <= starting


def test_the_schema_of_the_settings() -> None:
    schema = schemas.settings_schema()
    assert_is_schema(schema)
    assert schema["$schema"] == schemas.DIALECT
    for setting in catalogue():
        node = schema["properties"]["codeagent"]
        for name in setting.key.split("."):
            node = node["properties"][name]
        assert node["description"] == setting.metadata["description"]
        default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
        assert node["default"] == default
        assert node.get("minimum") == setting.metadata["minimum"]
        assert node.get("maximum") == setting.metadata["maximum"]


def test_choices_of_settings_are_enums() -> None:
    section = schemas.settings_schema()["properties"]["codeagent"]["properties"]
    assert section["edits"]["properties"]["apply"]["enum"] == ["review", "auto", "live"]
    assert section["model"]["properties"]["timeoutSeconds"]["maximum"] == 3600


def test_the_schema_of_the_events() -> None:
    schema = schemas.events_schema()
    assert_is_schema(schema)
    shown = {name for name, cls in events.EVENT_TYPES.items() if not cls.internal}
    assert set(schema["discriminator"]["mapping"]) == shown
    assert len(schema["oneOf"]) == len(shown)
    for name, place in schema["discriminator"]["mapping"].items():
        definition = schema["$defs"][place.rpartition("/")[2]]
        assert definition["properties"]["type"] == {"const": name}


SCHEMA = schemas.events_schema()


@pytest.mark.parametrize("name", [name for name, cls in events.EVENT_TYPES.items() if not cls.internal])
def test_events_have_what_their_schema_requires(name: str) -> None:
    definition = SCHEMA["$defs"][events.EVENT_TYPES[name].__name__]
    written = events.to_dict(events.EVENT_TYPES[name]())
    assert set(definition["required"]) <= set(written) <= set(definition["properties"])


def test_schemas_are_plain_json() -> None:
    for schema in (schemas.settings_schema(), schemas.events_schema()):
        assert TypeAdapter(dict[str, Any]).validate_json(TypeAdapter(Any).dump_json(schema)) == schema


def test_the_committed_pages_are_what_is_generated(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.slow
def test_a_page_that_differs_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = ["--into", str(tmp_path)]
    assert generate.main(["--check", *into]) == 1
    assert generate.main(into) == 0
    assert generate.main(["--check", *into]) == 0
    (tmp_path / "docs" / "settings.md").write_text("old")
    capsys.readouterr()
    assert generate.main(["--check", *into]) == 1
    assert capsys.readouterr().err.startswith("docs/settings.md is out of date")


@pytest.mark.parametrize("page", generate.pages().values(), ids=generate.pages())
def test_tables_have_as_many_cells_as_their_heads(page: str) -> None:
    columns = 0
    for line in page.split("\n"):
        if not line.startswith("|"):
            columns = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        columns = columns or cells
        assert cells == columns, line


def test_pages_name_everything() -> None:
    pages = generate.pages()
    assert all(f"`{setting.key}`" in pages["settings.md"] for setting in catalogue())
    assert all(f"`{item.name}`" in pages["protocol.md"] for item in COMMANDS)
    for method in (protocol.EVENT_METHOD, protocol.INPUT_METHOD, protocol.DIAGNOSTICS_METHOD, protocol.LSP_METHOD):
        assert f"`{method}`" in pages["protocol.md"]


def test_the_lua_mirror_names_everything() -> None:
    mirror = generate.lua_mirror()
    assert mirror.startswith("-- Generated")
    assert all(f'"{setting.key}"' in mirror for setting in catalogue())
    assert all(f'"{item.name}"' in mirror for item in COMMANDS)
    assert f'event = "{protocol.EVENT_METHOD}"' in mirror
    assert all(f'"{method}"' in mirror for method in protocol.LENT_METHODS)
    assert '"message",' not in mirror, "internal events are not sent to clients"
