"""The level `direct`: the real folder, and no secret about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.shadow.copying import DirectLayer, direct_isolation
from codeagent_lsp.shadow.folder import LayerFolder
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, Writings
from tests.shadow.fakes import ran


@pytest.fixture
def layer(tmp_path: Path) -> DirectLayer:
    return DirectLayer(LayerFolder(str(tmp_path / "layers")))


def test_commands_run_in_the_real_folder(layer: DirectLayer, workspace: Path) -> None:
    layer.prepare({str(workspace / "staged.txt"): b"staged\n"})
    assert ran(layer.launch(Command("pwd; ls; echo x > written.txt", str(workspace)))) == f"{workspace}\n"
    assert (workspace / "written.txt").read_text() == "x\n"
    assert layer.writings() == Writings()


def test_words_are_not_a_script(layer: DirectLayer, workspace: Path) -> None:
    assert ran(layer.launch(Command(("echo", "$HOME;", "*"), str(workspace)))) == "$HOME; *\n"


def test_nothing_is_promised_and_it_is_said(layer: DirectLayer) -> None:
    isolation = layer.isolation
    assert isolation == direct_isolation()
    assert not (isolation.confined or isolation.offline or isolation.hidden or isolation.complete)
    assert "unsaved or proposed" in isolation.reason


def test_the_environment_is_scrubbed(layer: DirectLayer, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "value")
    monkeypatch.setenv("BASH_ENV", "/nowhere")
    launch = layer.launch(Command("true", str(workspace), environment={"OURS": "1"}))
    assert "SOME_TOKEN" not in launch.environment
    assert "BASH_ENV" not in launch.environment
    assert launch.environment["OURS"] == "1"


def test_reports_are_those_of_one_command(layer: DirectLayer, workspace: Path) -> None:
    command = Command(f'echo x > "${REPORT_VARIABLE}/x.xml"', str(workspace))
    launch = layer.launch(command)
    ran(launch)
    assert [path.name for path in Path(launch.reports).iterdir()] == ["x.xml"]
    assert list(Path(layer.launch(command).reports).iterdir()) == []


def test_nothing_of_ours_is_left(layer: DirectLayer, workspace: Path, tmp_path: Path) -> None:
    layer.launch(Command("true", str(workspace)))
    layer.close()
    assert list((tmp_path / "layers").iterdir()) == []
