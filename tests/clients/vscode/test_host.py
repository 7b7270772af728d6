"""Runs the tests inside the extension host (`host/index.js`) beside the installed extension, and reads their report."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import Editor, window
from tests.clients.vscode.test_runs import ONE, SOURCE, edit, until

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

HOST = Path(__file__).parent / "host"
SECONDS = 120.0


def test_what_the_extension_is_to_other_code(tmp_path: Path, editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report.json"
    monkeypatch.setenv("CODEAGENT_HOST_REPORT", str(report))
    one = {"tool_calls": [edit(ONE, "return 10\n\n\ndef f0")]}
    script: list[dict[str, Any]] = [one, {"text": "Changed."}, one, {"text": "Changed."}]
    driver = ("--disable-workspace-trust", "--vscode-option", "enable-smoke-test-driver")
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script, arguments=driver) as opened:
        server = opened.url.split("//")[1].split("/")[0]
        at = f"vscode-remote://{server}{HOST}"
        payload = [["extensionDevelopmentPath", at], ["extensionTestsPath", f"{at}/index.js"], ["skipWelcome", "true"]]
        said: list[str] = []
        for name in ("codeAutomationLog", "codeAutomationExit"):
            opened.page.expose_function(name, lambda *words: said.append(str(words)))
        opened.page.goto(f"{opened.url}&payload={urllib.parse.quote(json.dumps(payload))}")
        for _ in range(int(SECONDS * 5)):
            opened.page.wait_for_timeout(200)  # the page calls out only while it is waited for
            if report.exists():
                break
        until(report.exists, "no report: " + "\n".join(said)[-3000:], 1)
        results = json.loads(report.read_text())
        failed = {name: problem for name, problem in results.items() if problem}
        assert not failed, "\n\n".join(f"{name}: {problem}" for name, problem in failed.items())
        assert len(results) > 10
