"""The conformance suite of the protocol against our client; the table is printed with `pytest -s`."""

from __future__ import annotations

import pytest

from tests.bench.mcp_conformance import SCENARIOS, table

pytestmark = pytest.mark.slow  # fetched from npm once; a server and a client for each scenario


def test_every_scenario_but_those_of_oauth_passes() -> None:
    rows = list(table(SCENARIOS))
    for row in rows:
        print(f"{row.scenario}: {row.passed} passed, {row.failed} failed {row.complaint}")
    assert [row.scenario for row in rows] == list(SCENARIOS)
    assert all(row.passed and not row.failed for row in rows), rows
