"""Which servers a file has: settings, markers, and programs of the project before those on PATH."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import SettingError
from codeagent_lsp.language_servers.known import KNOWN, with_own
from codeagent_lsp.language_servers.running_servers import servers_for
from tests.language_servers.rig import Workspace

GOOD: dict[str, Any] = {"command": ["mine", "--stdio"], "languages": {"xyz": "xyz"}}
COMMANDS: list[Any] = [None, "mine", [], [1], {}, [None]]
LANGUAGES: list[Any] = [None, {}, [], "py", 1]


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def on_path(*names: str) -> Any:
    return lambda name: f"/usr/bin/{name}" if name in names else None


def found(workspace: Workspace, name: str, *names: str) -> dict[str, tuple[str, str]]:
    servers = servers_for(workspace.view, workspace.path(name), KNOWN, on_path(*names))
    return {each.server.name: (each.program, each.folder) for each in servers}


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, "mine", [], ["mine"], {}),
        *({**GOOD, "command": command} for command in COMMANDS),
        *({**GOOD, "languages": languages} for languages in LANGUAGES),
        *({**GOOD, name: 1} for name in ("settings", "initializationOptions", "markers", "diagnostics")),
        {**GOOD, "diagnostics": "tsserver"},
        {**GOOD, "diagnostics": ["pull"]},
        {**GOOD, "markers": [1]},
        {**GOOD, "shell": True},
        {"command": ["mine"]},
    ],
)
def test_bad_settings_are_refused(value: Any) -> None:
    with pytest.raises(SettingError, match="mine"):
        with_own({"mine": value})


def test_own_servers_come_first_and_false_switches_off() -> None:
    servers = with_own({"mine": {**GOOD, "languages": {".xyz": "x"}, "diagnostics": "pull"}, "gopls": False})
    assert [server.name for server in servers] == [
        "mine",
        *(server.name for server in KNOWN if server.name != "gopls"),
    ]
    assert servers[0].language_of("/a/b.XYZ") == "x"
    assert with_own({"ruff": False, "no-such": False}) == tuple(server for server in KNOWN if server.name != "ruff")


def test_an_own_server_takes_the_place_of_a_known_one() -> None:
    own: Mapping[str, Any] = {"basedpyright": {"command": ["/x"], "languages": {"py": "python"}}}
    assert [server.command for server in with_own(own) if server.name == "basedpyright"] == [("/x",)]


def test_one_that_knows_types_and_one_linter(workspace: Path) -> None:
    project = Workspace(workspace)
    assert list(found(project, "a.py", "pyright-langserver", "basedpyright-langserver", "ruff")) == [
        *("basedpyright", "ruff")
    ]
    assert list(found(project, "a.py", "pyright-langserver")) == ["pyright"]
    assert found(project, "a.py") == {}
    assert found(project, "a.unknown", "ruff", "gopls") == {}
    assert found(project, "Makefile", "ruff", "gopls") == {}


def test_programs_of_the_project_come_before_those_on_path(workspace: Path) -> None:
    project = Workspace(workspace)
    outer = program(workspace / ".venv" / "bin" / "ruff")
    assert found(project, "pkg/a.py", "ruff")["ruff"] == (str(outer), str(workspace))
    inner = program(workspace / "pkg" / "venv" / "bin" / "ruff")
    assert found(project, "pkg/a.py", "ruff")["ruff"] == (str(inner), str(workspace))
    assert found(project, "a.py", "ruff")["ruff"] == (str(outer), str(workspace))


def test_the_innermost_marker_is_the_project(workspace: Path) -> None:
    project = Workspace(workspace)
    for name in ("pyproject.toml", "pkg/pyproject.toml", "pkg/deep/readme"):
        project.write(name, "")
    assert found(project, "pkg/deep/a.py", "ruff")["ruff"][1] == str(workspace / "pkg")
    assert found(project, "other/a.py", "ruff")["ruff"][1] == str(workspace)
    project.stage("pkg/deep/setup.py", "x")
    assert found(project, "pkg/deep/a.py", "ruff")["ruff"][1] == str(workspace / "pkg" / "deep"), "a staged file counts"


def test_what_needs_a_marker_is_not_used_without(workspace: Path) -> None:
    project = Workspace(workspace)
    assert found(project, "a.rs", "rust-analyzer") == {}
    project.write("Cargo.toml", "")
    assert list(found(project, "a.rs", "rust-analyzer")) == ["rust-analyzer"]


def test_links_out_of_the_workspace_are_no_programs_of_it(workspace: Path, tmp_path: Path) -> None:
    """What is beside the workspace is not the project's; PATH decides."""
    project = Workspace(workspace)
    outside = program(tmp_path / "outside" / "bin" / "ruff")
    (workspace / ".venv").symlink_to(tmp_path / "outside")
    assert found(project, "a.py") == {}
    assert found(project, "a.py", "ruff")["ruff"][0] == "/usr/bin/ruff"
    (workspace / "venv" / "bin").mkdir(parents=True)
    (workspace / "venv" / "bin" / "ruff").symlink_to(outside)
    assert found(project, "a.py", "ruff")["ruff"][0] == "/usr/bin/ruff"


def test_what_cannot_be_started_is_no_program(workspace: Path) -> None:
    project = Workspace(workspace)
    (workspace / ".venv" / "bin" / "ruff").mkdir(parents=True)
    project.write("venv/bin/ruff", "no program")
    program(workspace / "node_modules" / "ruff" / "ruff.js")
    (workspace / "node_modules" / ".bin").mkdir()
    (workspace / "node_modules" / ".bin" / "ruff").symlink_to("../ruff/ruff.js")
    link = str(workspace / "node_modules" / ".bin" / "ruff")
    assert found(project, "a.py", "ruff")["ruff"][0] == link, "as npm links it"


@pytest.mark.parametrize("name", ["/etc/a.py", "/a.py"])
def test_a_file_outside_of_the_workspace_has_no_server(workspace: Path, name: str) -> None:
    assert found(Workspace(workspace), name, "ruff", "basedpyright-langserver") == {}
