"""`scripts/test.sh` runs every stage, also behind one that fails, and says so: tried with empty programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.tidy.source import ROOT

ALWAYS = ["environment", "parts", "lint", "format", "tidy", "types", "fast"]
STAGES = [*ALWAYS, "slow", "alone", "vscode"]
PREPARE = """
missing=""
make_environment() { for name in a b; do stage_name="$name"; done; [ "${WITHOUT:-}" != environment ]; }
install_test_parts() { :; }
lacks() { missing="$missing $*;"; }
"""


def run(
    folder: Path, failing: str = "", rig: str = "exit 1", how: tuple[str, ...] = ("--all",), **variables: str
) -> subprocess.CompletedProcess[str]:
    """The script, where the program `failing` fails and all others succeed; `rig` fetches the real editor."""
    (folder / "scripts").mkdir()
    (folder / "bin").mkdir()
    shutil.copy(ROOT / "scripts" / "test.sh", folder / "scripts")
    (folder / "scripts" / "prepare.sh").write_text(PREPARE)
    (folder / "scripts" / "get-code-server.sh").write_text(f"{rig}\n")
    (folder / "editors" / "vscode" / "node_modules").mkdir(parents=True)
    (folder / "editors" / "vscode" / "test.sh").write_text(
        f'echo "extension $1."; exit {int(failing == "extension")}\n'
    )
    for name in ("ruff", "mypy", "pytest"):
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\nexit {int(name == failing)}\n")
        program.chmod(0o755)
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"} | variables
    command = ["sh", "scripts/test.sh", *how]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def begun(said: str) -> list[str]:
    return re.findall(r"^== (\w+):", said, re.MULTILINE)


def ended(said: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+) +(ok|FAILED) +\d+ s$", said, re.MULTILINE))


def test_every_stage_runs_once(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert begun(done.stdout) == STAGES
    assert ended(done.stdout) == dict.fromkeys(STAGES, "ok")
    assert "all passed" in done.stdout
    assert "a real VS Code" in done.stdout, "what is missing is told"
    assert done.returncode == 0


def test_without_arguments_one_journey_through_each_part(tmp_path: Path) -> None:
    done = run(tmp_path, how=(), rig="exit 0")
    assert begun(done.stdout) == [*ALWAYS, "journeys", "vscode"]
    assert "extension --journey." in done.stdout
    assert done.returncode == 0


def test_what_is_largest_is_left_to_volumes(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "volumes").mkdir()
    stages = re.compile(r"^== (?:slow|alone): .*", re.MULTILINE)
    done = run(tmp_path / "all")
    assert ["and not volume" in stage for stage in stages.findall(done.stdout)] == [True, True]
    assert "left to --volumes" in done.stdout
    done = run(tmp_path / "volumes", how=("--volumes",))
    assert ["and not volume" in stage for stage in stages.findall(done.stdout)] == [False, False]
    assert "left to --volumes" not in done.stdout


def test_what_is_not_understood_runs_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, how=("--fast",))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: sh scripts/test.sh [--all | --volumes]\n"


def test_the_stages_behind_one_that_fails_run_too(tmp_path: Path) -> None:
    done = run(tmp_path, failing="mypy")
    assert begun(done.stdout) == STAGES
    assert ended(done.stdout) == {**dict.fromkeys(STAGES, "ok"), "types": "FAILED"}
    assert "FAILED: types" in done.stdout
    assert "all passed" not in done.stdout
    assert done.returncode == 1


def test_without_an_environment_nothing_runs(tmp_path: Path) -> None:
    done = run(tmp_path, WITHOUT="environment")
    assert begun(done.stdout) == ["environment"]
    assert done.returncode == 1


def test_the_extension_runs_in_the_real_editor_where_that_can_be_had(tmp_path: Path) -> None:
    done = run(tmp_path, rig="exit 0")
    assert "extension --real." in done.stdout
    assert "a real VS Code" not in done.stdout + done.stderr


def test_a_failure_in_the_real_editor_is_one(tmp_path: Path) -> None:
    done = run(tmp_path, rig="exit 0", failing="extension")
    assert ended(done.stdout)["vscode"] == "FAILED"
    assert done.returncode == 1


def test_the_real_editor_can_be_left_out_which_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, rig="echo fetched", CODEAGENT_TEST_VSCODE="0")
    assert "extension ." in done.stdout, "its other tests run"
    assert "fetched" not in done.stdout
    assert "a real VS Code (CODEAGENT_TEST_VSCODE=0)" in done.stdout
