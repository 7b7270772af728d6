"""Which requests each phase of a connection refuses, and the exit code in it."""

from __future__ import annotations

import pytest

from codeagent_lsp.server.wire.phase import Phase


@pytest.mark.parametrize(
    ("phase", "initialize", "other"),
    [
        (Phase.FRESH, None, -32002),
        (Phase.STARTING, -32600, -32002),
        (Phase.READY, -32600, None),
        (Phase.SHUT, -32600, -32600),
    ],
)
def test_refusals(phase: Phase, initialize: int | None, other: int | None) -> None:
    codes = [refusal and refusal[0] for refusal in map(phase.refusal, ("initialize", "shutdown"))]
    assert codes == [initialize, other]


def test_only_a_shutdown_makes_the_end_a_good_one() -> None:
    assert [phase.exit_code for phase in Phase] == [1, 1, 1, 0]
