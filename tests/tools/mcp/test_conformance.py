"""The conformance suite of the protocol against our client; the table is printed with `pytest -s`."""

from __future__ import annotations

import pytest

from tests.bench.mcp_conformance import WITHOUT, all_scenarios, expected, table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # fetched from npm once; a server and a client for each


def test_every_scenario_but_the_known_ones_passes() -> None:
    wanted = expected()
    assert len(wanted) >= 20
    assert set(WITHOUT) < set(all_scenarios())
    rows = list(table(wanted))
    for row in rows:
        print(f"{row.scenario}: {row.passed} passed, {row.failed} failed {row.complaint}")
    assert [row.scenario for row in rows] == list(wanted)
    assert all(row.passed and not row.failed for row in rows), rows
