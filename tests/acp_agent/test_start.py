"""What the second door costs where it is not used, and what it says where its library is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codeagent_lsp import cli
from tests.acp_agent.editor import COMMAND
from tests.server.warm import COLD, quick_starts

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


@pytest.mark.slow
def test_what_is_no_message_ends_nothing(tmp_path: Path) -> None:
    sent = [
        "garbage",
        "[1, 2]",
        '{"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": {"sessionId": 5}}',
        '{"jsonrpc": "2.0", "id": 8, "method": "no/such"}',
        '{"jsonrpc": "2.0", "id": 9}',
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 99}}',
    ]
    env = {**os.environ, **quick_starts(), "CODEAGENT_STATE_DIR": str(tmp_path)}
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("\n".join(sent) + "\n")
        process.stdin.flush()
        answers = {message["id"]: message for message in (json.loads(process.stdout.readline()) for _ in range(3))}
        process.stdin.close()
        assert process.wait(20) == 0
    assert (answers[7]["error"]["code"], answers[8]["error"]["code"]) == (-32602, -32601)
    assert answers[1]["result"]["protocolVersion"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    env = {**os.environ, **quick_starts(), "CODEAGENT_STATE_DIR": str(tmp_path)}
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdin
        assert process.stdout
        for identity, method, params in (
            (1, "initialize", {"protocolVersion": 1}),
            (2, "session/new", {"cwd": str(tmp_path), "mcpServers": []}),
        ):
            message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == identity
        process.send_signal(number)
        assert process.wait(10) == 0
