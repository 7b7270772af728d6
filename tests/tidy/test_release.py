"""One version everywhere, a changelog that can be cut, and files for registries that say what is true."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from scripts import changelog, version
from tests.tidy.source import ROOT

FORMS = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- one\n\n## [0.1.0] - 2026-11-28\n\n### Added\n\n- zero\n"


def test_there_is_one_version() -> None:
    found = version.versions()
    assert {len(each) for _, each in found} == {1} and len({one for _, each in found for one in each}) == 1


def test_a_version_is_set_everywhere(tmp_path: Path) -> None:
    for name in {name for name, _ in version.PLACES}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"))
    version.set_version("12.3.45", tmp_path)
    assert {one for _, each in version.versions(tmp_path) for one in each} == {"12.3.45"}
    with pytest.raises(ValueError, match=r"1\.2\.3"):
        version.set_version("1.2", tmp_path)


def test_the_changelog_is_cut() -> None:
    made = changelog.cut(FORMS, "0.2.0", "2026-12-01")
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- one\n\n## [0.1.0]" in made
    assert changelog.section(made, "0.2.0") == "### Added\n\n- one\n"
    for wrong in ("0.1.0", "0.2.0"):
        with pytest.raises(ValueError, match=r"CHANGELOG\.md"):
            changelog.cut(made, wrong, "2026-12-02")


def test_what_stands_in_the_changelog_has_a_version() -> None:
    assert changelog.section((ROOT / "CHANGELOG.md").read_text("utf-8"), "0.1.0")


def test_addresses_are_the_same_everywhere() -> None:
    home = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Homepage"]
    server = json.loads((ROOT / "packaging/mcp/server.json").read_text("utf-8"))
    assert server["repository"]["url"] == home
    assert yaml.safe_load((ROOT / "packaging/mason/package.yaml").read_text("utf-8"))["homepage"] == home
    assert json.loads((ROOT / "packaging/lsp4ij/template.json").read_text("utf-8"))["url"] == home
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text("utf-8"), "the registry reads it on PyPI"


def test_the_entry_of_the_acp_registry_is_in_its_form() -> None:
    """Ids, a package with the extra that has the library, a command that exists, an icon without colours of its own."""
    entry = json.loads((ROOT / "packaging/acp/agent.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert (entry["repository"], entry["license"]) == (project["urls"]["Homepage"], project["license"])
    run = entry["distribution"]["uvx"]
    assert run["package"] == f"{project['name']}[acp]=={entry['version']}"
    assert "acp" in project["optional-dependencies"]
    assert run["args"] == ["acp"]
    icon = ElementTree.fromstring((ROOT / "packaging/acp/icon.svg").read_text("utf-8"))
    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    colours = [each.get(name) for each in icon.iter() for name in ("fill", "stroke") if each.get(name)]
    assert set(colours) == {"none", "currentColor"}


def test_workflows_give_no_job_more_rights_than_it_names() -> None:
    """Each job says what it may do, and none that publishes checks out code with a token kept in it."""
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        flow = yaml.safe_load(path.read_text("utf-8"))
        assert flow["permissions"] in ({}, {"contents": "read"}), path.name
        for name, job in flow["jobs"].items():
            assert "timeout-minutes" in job, f"{path.name}: {name} may run for hours"
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout"):
                    assert step["with"]["persist-credentials"] is False, f"{path.name}: {name}"
