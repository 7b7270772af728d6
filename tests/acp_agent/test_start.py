"""What the second door costs where it is not used, and what it says where its library is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codeagent_lsp import cli
from tests.server.warm import COLD

STARTED = """
import sys
import codeagent_lsp.cli, codeagent_lsp.app, codeagent_lsp.server.backend, codeagent_lsp.terminal.run
print(sorted(name for name in sys.modules if name.partition(".")[0] == "acp" or "acp_agent" in name))
"""
MISSING = """
import sys
sys.modules["acp"] = None
sys.argv = ["codeagent-lsp", "acp"]
from codeagent_lsp.cli import main
sys.exit(main())
"""


def python(code: str, state: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **COLD, "CODEAGENT_STATE_DIR": str(state), "LANG": "C.UTF-8"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60)


@pytest.mark.slow
def test_no_other_command_imports_the_library(tmp_path: Path) -> None:
    assert python(STARTED, tmp_path).stdout == "[]\n"


@pytest.mark.slow
def test_a_missing_library_is_said(tmp_path: Path) -> None:
    done = python(MISSING, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "codeagent-lsp[acp]" in done.stderr


def test_a_wrong_setting_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["acp", "--set", "model.effort=enormous"]) == 2
    assert "model.effort" in capsys.readouterr().err
