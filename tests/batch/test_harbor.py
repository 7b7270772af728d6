"""The agent for Harbor, run by Harbor itself on a task of its form, without a container engine (`harbor_place.py`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.batch.rig import MENDING, PASSES, PROGRAM

ROOT = Path(__file__).parents[2]
HARBOR = os.environ.get("CODEAGENT_HARBOR", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HARBOR, reason="there is no Harbor: scripts/get-harbor.sh, which needs Python 3.12"),
]


SCRIPTS: dict[str, Any] = {
    "mend": MENDING,
    "leave": [{"text": "I would rather not."}],
    "break": [{"error": "broken"}] * 12,
}
"""What the model says, by the names of the tasks."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What Harbor found in one job of all tasks, with the program of this checkout as if it was in the image."""
    root = tmp_path_factory.mktemp("harbor")
    for name, script in SCRIPTS.items():
        _write_task(root / "tasks" / name, script)
    program = Path(sys.executable).with_name("codeagent-lsp")
    environ = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it would ask the internet
        "HARBOR_PLACE_SEEN": ":".join([str(ROOT), sys.prefix, sys.base_prefix]),
        "HARBOR_PLACE_PROGRAM": str(program),
        "PYTHONPATH": str(ROOT),
    }
    command = [HARBOR, "run", "--path", str(root / "tasks"), "--agent", "codeagent_lsp.harbor:CodeAgent", "--yes"]
    command += ["--env", "tests.batch.harbor_place:HarborPlace", "--jobs-dir", str(root / "jobs")]
    command += ["--ak", "settings=model.provider=scripted model.name=/app/script.json", "--ak", "skip_install=true"]
    command += ["--n-concurrent", "1"]
    done = subprocess.run(
        command, env=environ, cwd=root, capture_output=True, encoding="utf-8", timeout=280, check=False
    )
    found = {name: [*(root / "jobs").glob(f"*/{name}*/result.json")] for name in SCRIPTS}
    assert all(found.values()), done.stdout + done.stderr
    return {name: json.loads(paths[0].read_text()) for name, paths in found.items()}


def _write_task(task: Path, script: Any) -> None:
    (task / "environment" / "app").mkdir(parents=True)
    (task / "tests").mkdir()
    (task / "task.toml").write_text('version = "1.0"\n[agent]\ntimeout_sec = 200\n[verifier]\ntimeout_sec = 60\n')
    (task / "instruction.md").write_text('Mend double in program.py; it\'s "wrong" for `$HOME` & 2.\n')
    (task / "environment" / "Dockerfile").write_text("FROM scratch\n")
    (task / "environment" / "app" / "program.py").write_text(PROGRAM)
    (task / "environment" / "app" / "script.json").write_text(json.dumps(list(script)))
    verdict = f"cd /app; if {PASSES}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
    (task / "tests" / "test.sh").write_text(f"#!/bin/bash\n{verdict}\n")


@pytest.mark.volume
def test_harbor_runs_it(results: dict[str, dict[str, Any]]) -> None:
    result = results["mend"]
    assert result["verifier_result"]["rewards"] == {"reward": 1.0}, result
    assert result["agent_info"]["name"] == "codeagent-lsp"
    assert result["agent_result"]["n_input_tokens"] > 0
    assert result["exception_info"] is None


def test_a_run_that_changes_nothing_is_judged(results: dict[str, dict[str, Any]]) -> None:
    assert results["leave"]["verifier_result"]["rewards"] == {"reward": 0.0}, results["leave"]


def test_a_model_that_cannot_be_used_is_an_error(results: dict[str, dict[str, Any]]) -> None:
    assert results["break"]["exception_info"]["exception_type"] == "NonZeroAgentExitCodeError"
