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


def test_harbor_runs_it(tmp_path: Path) -> None:
    result = trial(tmp_path, MENDING)
    assert result["verifier_result"]["rewards"] == {"reward": 1.0}, result
    assert result["agent_info"]["name"] == "codeagent-lsp"
    assert result["agent_result"]["n_input_tokens"] > 0
    assert result["exception_info"] is None


def test_a_run_that_changes_nothing_is_judged(tmp_path: Path) -> None:
    result = trial(tmp_path, [{"text": "I would rather not."}])
    assert result["verifier_result"]["rewards"] == {"reward": 0.0}, result


def test_a_model_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    result = trial(tmp_path, [{"error": "broken"}] * 12)
    assert result["exception_info"]["exception_type"] == "NonZeroAgentExitCodeError"


def trial(root: Path, script: Any) -> dict[str, Any]:
    """Let Harbor do one trial, with the program of this checkout as if it was in the image, and return its result."""
    task, places = root / "mend", root / "seen"
    (task / "environment" / "app").mkdir(parents=True)
    (task / "tests").mkdir()
    places.mkdir()
    (task / "task.toml").write_text('version = "1.0"\n[agent]\ntimeout_sec = 200\n[verifier]\ntimeout_sec = 60\n')
    (task / "instruction.md").write_text('Mend double in program.py; it\'s "wrong" for `$HOME` & 2.\n')
    (task / "environment" / "Dockerfile").write_text("FROM scratch\n")
    (task / "environment" / "app" / "program.py").write_text(PROGRAM)
    verdict = f"cd /app; if {PASSES}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
    (task / "tests" / "test.sh").write_text(f"#!/bin/bash\n{verdict}\n")
    (places / "script.json").write_text(json.dumps(list(script)))
    program = Path(sys.executable).with_name("codeagent-lsp")
    seen = [str(places), str(ROOT), sys.prefix, sys.base_prefix]
    environ = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it would ask the internet
        "HARBOR_PLACE_SEEN": ":".join(seen),
        "HARBOR_PLACE_PROGRAM": str(program),
        "PYTHONPATH": str(ROOT),
    }
    settings = f"model.provider=scripted model.name={places}/script.json"
    command = [HARBOR, "run", "--path", str(task), "--agent", "codeagent_lsp.harbor:CodeAgent", "--yes"]
    command += ["--env", "tests.batch.harbor_place:HarborPlace", "--jobs-dir", str(root / "jobs")]
    command += ["--ak", f"settings={settings}", "--ak", "skip_install=true"]
    done = subprocess.run(
        command, env=environ, cwd=root, capture_output=True, encoding="utf-8", timeout=280, check=False
    )
    found = list((root / "jobs").glob("*/mend*/result.json"))
    assert found, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(found[0].read_text())
    return result
