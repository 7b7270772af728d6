"""Runs the conformance suite of MCP against our client and prints the table: `python -m tests.bench.mcp_conformance`.

The suite is `@modelcontextprotocol/conformance`, fetched from npm. It starts a server for each scenario and then this
module with the server's address, which is our client: it lists the tools and calls each. `--all` adds the scenarios of
OAuth, which we do not have.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.base import ToolContext
from codeagent_lsp.tools.mcp.calling import Calling
from codeagent_lsp.tools.mcp.connection import Host, connected
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.todos import TodoList
from tests.tools.fakes import Bench
from tests.tools.mcp.real import conformance

SCENARIOS = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")
SECONDS = 60
EXAMPLES = {"number": 5, "integer": 5, "string": "text", "boolean": True}


@dataclass(frozen=True, slots=True)
class Row:
    """What one scenario said: how many checks passed and failed, and the first complaint."""

    scenario: str
    passed: int
    failed: int
    complaint: str = ""


class Agreeable:
    """A user who takes what a server suggests."""

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        return (question.choices[1],) if len(question.choices) > 1 else None


async def be_client(url: str) -> None:
    """Do what a client does: shake hands, list, call everything once."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "work")
        context = ToolContext(bench.view, bench.staging, Agreeable(), TodoList(), Settings())
        settings = ServerSettings("suite", "http", url=url, seconds=20.0)
        async with connected(settings, Host(lambda: [folder], {}, lambda: None)) as connection:
            for tool in await connection.tools():
                calling = Calling(context, tool.name, settings.seconds)
                try:
                    print(json.dumps(await connection.call(tool.name, _examples(tool.schema), calling)))
                except AgentError as error:
                    print(error)


def table(scenarios: tuple[str, ...]) -> Iterator[Row]:
    """The rows, one scenario after the other."""
    node, suite = conformance()
    for scenario in scenarios:
        with tempfile.TemporaryDirectory() as folder:
            yield _row(scenario, [node, suite], Path(folder))


def all_scenarios() -> tuple[str, ...]:
    """The names of all scenarios for clients."""
    listed = subprocess.run([*conformance(), "list"], capture_output=True, text=True, timeout=SECONDS).stdout
    lines = listed.partition("Client scenarios")[2].splitlines()
    return tuple(line.split()[1] for line in lines if line.startswith("  - "))


def _row(scenario: str, suite: list[str], folder: Path) -> Row:
    client = f"{sys.executable} -m tests.bench.mcp_conformance client"
    root = Path(__file__).parents[2]
    command = [*suite, "client", "--command", client, "--scenario", scenario, "--output-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=3 * SECONDS)
    checks = [check for path in folder.rglob("checks.json") for check in json.loads(path.read_text())]
    if not checks:
        return Row(scenario, 0, 1, (ended.stderr or ended.stdout).strip()[-200:])
    failed = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    return Row(scenario, passed, len(failed), str(failed[0].get("errorMessage", failed[0]["id"])) if failed else "")


def _examples(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    return {name: EXAMPLES.get(properties.get(name, {}).get("type"), 1) for name in schema.get("required") or ()}


def main() -> int:
    """Print the table; 1 when anything failed."""
    if sys.argv[1:2] == ["client"]:
        asyncio.run(be_client(sys.argv[-1]))
        return 0
    rows = []
    print("| scenario | checks passed | failed | |\n|---|---|---|---|")
    for row in table(all_scenarios() if "--all" in sys.argv else SCENARIOS):
        print(f"| {row.scenario} | {row.passed} | {row.failed} | {row.complaint[:120]} |", flush=True)
        rows.append(row)
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
