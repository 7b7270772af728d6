"""Pins: what a tool said when it was first met, what has changed, and what the user took as seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.tools.mcp.listing import MAX_FILE, MAX_NAME, MAX_PINS, Pins, RemoteTool, remote_tool
from codeagent_lsp.tools.mcp.settings import ServerSettings

SERVER = ServerSettings("s", "stdio", "prog")
TOOL = RemoteTool("look", "Looks.", {"type": "object"}, {"type": "object"})


def test_the_first_sight_is_pinned_and_every_change_of_it_shows(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "state/mcp.json")
    assert not pins.changed(SERVER, TOOL)
    pins.keep(SERVER, [TOOL])
    again = Pins(tmp_path / "state/mcp.json")
    assert again.listed(SERVER) == (TOOL,) and not again.changed(SERVER, TOOL)
    for other in (
        replace(TOOL, description="Looks and sends."),
        replace(TOOL, schema={"type": "object", "properties": {"to": {"type": "string"}}}),
        replace(TOOL, description="Looks.\u200b"),
    ):
        assert again.changed(SERVER, other)
    assert not again.changed(SERVER, replace(TOOL, output=None))


def test_a_change_stays_one_until_the_user_saw_it(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    changed = replace(TOOL, description="Other.")
    Pins(file).keep(SERVER, [TOOL])
    Pins(file).keep(SERVER, [changed])
    assert Pins(file).changed(SERVER, changed)
    Pins(file).accept(SERVER, changed)
    assert not Pins(file).changed(SERVER, changed) and Pins(file).changed(SERVER, TOOL)


def test_a_tool_that_went_and_came_back_is_the_same(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "mcp.json")
    pins.keep(SERVER, [TOOL])
    pins.keep(SERVER, [])
    assert pins.changed(SERVER, replace(TOOL, description="Other."))


def test_another_server_of_the_same_name_starts_anew(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "mcp.json")
    pins.keep(SERVER, [TOOL])
    other = ServerSettings("s", "stdio", "another")
    assert pins.listed(other) == () and not pins.changed(other, replace(TOOL, description="Other."))


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "3", '{"s": 1}', '{"s": {"identity": "x"}}', "[" * 100_000, '{"s": {"identity": 1, "pins": 2}}'],
)
def test_a_broken_file_holds_nothing(tmp_path: Path, content: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(content)
    pins = Pins(file)
    assert pins.listed(SERVER) == ()
    pins.keep(SERVER, [TOOL])
    assert Pins(file).listed(SERVER) == (TOOL,)


def test_a_file_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    pins = Pins(tmp_path / "file/mcp.json")
    pins.keep(SERVER, [TOOL])
    assert pins.changed(SERVER, replace(TOOL, description="Other."))


def test_the_file_is_private_bounded_and_has_no_secrets(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    server = replace(SERVER, env={"KEY": "hidden-value"}, headers={"A": "hidden-value"})
    large = [replace(TOOL, name=f"t{at}", description="x" * 16_000) for at in range(100)]
    Pins(file).keep(server, large)
    assert file.stat().st_mode & 0o777 == 0o600 and file.stat().st_size < 100_000
    assert "hidden-value" not in file.read_text()
    assert Pins(file).listed(server) == () and Pins(file).changed(server, replace(large[0], description="y"))


@pytest.mark.slow
def test_no_other_server_makes_the_pins_of_one_be_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    Pins(file).keep(SERVER, [TOOL])
    names = [f"{at:03}" + "\U0001f600" * (MAX_NAME - 3) for at in range(MAX_PINS * 2)]
    flood = [replace(TOOL, name=name) for name in names]
    pins = Pins(file)
    for number in range(7):
        pins.keep(ServerSettings(f"flood{number}", "stdio", "prog"), flood)
    assert file.stat().st_size <= MAX_FILE
    assert Pins(file).changed(SERVER, replace(TOOL, description="Other.")) and not Pins(file).changed(SERVER, TOOL)


def test_a_server_with_ever_new_tools_is_asked_about_at_each_further_one(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "mcp.json")
    pins.keep(SERVER, [TOOL])
    for number in range(2):
        pins.keep(SERVER, [TOOL, *(replace(TOOL, name=f"t{number} {at}") for at in range(MAX_PINS // 2))])
    new = replace(TOOL, name="one more")
    pins.keep(SERVER, [TOOL, new])
    assert not pins.changed(SERVER, TOOL) and pins.changed(SERVER, new)
    pins.accept(SERVER, new)
    assert not pins.changed(SERVER, new)


def test_rows_that_are_no_tools() -> None:
    assert remote_tool(json.loads(json.dumps(TOOL.to_dict()))) == TOOL
    rows: list[Any] = [
        None,
        [],
        {},
        {"name": 1, "description": "", "schema": {}},
        {"name": "a", "description": "", "schema": 1},
    ]
    assert [remote_tool(row) for row in rows] == [None] * 5
