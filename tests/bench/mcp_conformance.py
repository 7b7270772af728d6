"""Runs the conformance suite of MCP against our client and prints the table: `python -m tests.bench.mcp_conformance`.

The suite is `@modelcontextprotocol/conformance`, fetched from npm. It starts a server for each scenario and then this
module with the server's address, which is our client: it lists the tools and calls each. `--all` adds the scenarios
that we do not pass.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import AgentError
from codeagent_lsp.server.mcp_servers import Memory
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import tool_context
from codeagent_lsp.tools.mcp.connection import open_connection
from codeagent_lsp.tools.mcp.host import Calling, Host, Step
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.variables.variables import Vault
from tests.server.warm import quick_starts
from tests.tools.fakes import Bench
from tests.tools.mcp.real import conformance

WITHOUT: Mapping[str, str] = {
    "auth/basic-cimd": "a client that is known by a page on the web: we have none",
    "auth/2025-03-26-oauth-metadata-backcompat": "metadata of another issuer than was asked: the library refuses it",
    "auth/client-credentials-jwt": "logins of machines, without a user",
    "auth/client-credentials-basic": "logins of machines, without a user",
    "auth/cross-app-access-complete-flow": "logins by another application's identity",
}
"""Scenarios that do not pass, and why."""
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


class Willing:
    """The `Logins` of somebody who goes wherever they are sent."""

    def __init__(self) -> None:
        self._vault = Memory()
        self._going: list[asyncio.Task[None]] = []

    async def browse(self, server: str, where: str, url: str) -> bool:
        self._going.append(asyncio.create_task(obedient(url)))
        return True

    async def vault(self) -> Vault:
        return self._vault

    async def learn(self, secrets: Iterable[str]) -> None:
        pass

    async def record(self, server: str, where: str, step: Step, reason: str = "") -> None:
        pass

    def words(self, key: str, /, **values: object) -> str:
        return text(key, "en", **values)


async def obedient(url: str) -> None:
    """A browser that asks nobody."""
    await asyncio.to_thread(visit, url)


def visit(url: str) -> None:
    """The same; blocks."""
    with suppress(OSError):  # whatever the page says
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10).read()


async def be_client(url: str) -> None:
    """Do what a client does: shake hands, list, call everything once."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "work")
        context = tool_context(bench.view, bench.staging, Settings(), asker=Agreeable())
        settings = ServerSettings("suite", "http", url=url, seconds=20.0, oauth=_registered())
        async with open_connection(settings, Host(lambda: [folder], {}, lambda: None, Willing())) as connection:
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


def expected() -> tuple[str, ...]:
    """The scenarios that pass."""
    return tuple(name for name in all_scenarios() if name not in WITHOUT)


def all_scenarios() -> tuple[str, ...]:
    """The names of all scenarios for clients."""
    listed = subprocess.run([*conformance(), "list"], capture_output=True, text=True, timeout=SECONDS).stdout
    lines = listed.partition("Client scenarios")[2].splitlines()
    return tuple(line.split()[1] for line in lines if line.startswith("  - "))


def _row(scenario: str, suite: list[str], folder: Path) -> Row:
    client = f"{sys.executable} -m tests.bench.mcp_conformance client"
    root = Path(__file__).parents[2]
    command = [*suite, "client", "--command", client, "--scenario", scenario, "--output-dir", str(folder)]
    environment = {**os.environ, **quick_starts()}
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=3 * SECONDS)
    checks = [check for path in folder.rglob("checks.json") for check in json.loads(path.read_text())]
    if not checks:
        return Row(scenario, 0, 1, (ended.stderr or ended.stdout).strip()[-200:])
    failed = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    return Row(scenario, passed, len(failed), str(failed[0].get("errorMessage", failed[0]["id"])) if failed else "")


def _registered() -> dict[str, str]:
    """Who the suite says that we are, where it says so."""
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if "client_id" not in given or "private_key_pem" in given:
        return {}
    return {"clientId": given["client_id"], "clientSecret": given.get("client_secret", "")}


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
    for row in table(all_scenarios() if "--all" in sys.argv else expected()):
        print(f"| {row.scenario} | {row.passed} | {row.failed} | {row.complaint[:120]} |", flush=True)
        rows.append(row)
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
