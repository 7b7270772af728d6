"""The conformance suite of the protocol against the sandbox server; the table is printed with `pytest -s`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp_server.conformance import SCENARIOS, table

pytestmark = pytest.mark.slow  # fetched from npm once; a client for each scenario


async def test_every_scenario_that_needs_no_tools_of_its_own_passes(workspace: Path) -> None:
    rows = [row async for row in table(workspace, SCENARIOS)]
    for row in rows:
        print(f"{row.scenario}: {row.passed} passed, {row.failed} failed {row.complaint}")
    assert [row.scenario for row in rows] == list(SCENARIOS)
    assert all(row.passed and not row.failed for row in rows), rows
