"""Whole runs as data: `scenarios/*.json` say what the model does and what must come of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.providers.scripted import load_script
from tests.session.fakes import assert_well_formed, world

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.json"))


def scenario(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def save(path: Path, script: list[Any]) -> None:
    path.write_text(json.dumps(script), "utf-8")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
async def test_scenario(path: Path, tmp_path: Path) -> None:
    wanted = scenario(path)
    made = world(tmp_path / "w", says=wanted["answers"], deadline=0.05)
    for name, content in wanted["files"].items():
        made.open(name, content)
    script = tmp_path / "script.json"
    save(script, wanted["script"])
    made.models["model"] = load_script(script)
    done = await made.run(wanted["about"])
    assert (done.status, done.outcome) == (wanted["status"], wanted["outcome"])
    for name, content in wanted["buffers"].items():
        assert made.text(name) == content
    assert names_in(made.root) == []
    assert names_in(tmp_path) == ["script.json", "sessions", "w"]
    failed = [event for event in made.events if isinstance(event, events.ToolFinished) and not event.success]
    assert len(failed) == wanted.get("failed_calls", 0)
    staged = made.manager.runs.get(done.run_id).proposal.changeset.paths
    assert staged == tuple(made.path(name) for name in wanted.get("staged", ()))
    assert_well_formed(made.manager.current().context.conversation)


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 4
