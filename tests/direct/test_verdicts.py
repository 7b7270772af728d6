"""When a change may stand, and which of two checks went better."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.checks import FailedTest, Verdict, better, no_worse, satisfied


def verdict(passed: int, *failed: str, binding: bool = True) -> Verdict:
    return Verdict(passed, tuple(map(FailedTest, failed)), binding=binding)


UNKNOWN = Verdict(problem="pytest is not installed")


@pytest.mark.parametrize(
    ("after", "before", "stands"),
    [
        (verdict(3), verdict(2, "a"), True),
        (verdict(2, "a"), verdict(2, "a"), False),
        (verdict(2, "a"), verdict(1, "a", "b"), False),
        (None, None, True),
        (UNKNOWN, UNKNOWN, True),
        (UNKNOWN, None, True),
        (UNKNOWN, verdict(2, "a"), False),
        (verdict(2, "a", binding=False), verdict(2, "a", binding=False), False),
        (verdict(2, "a", binding=False), verdict(1, "a", "b", binding=False), True),
        (verdict(2, "b", binding=False), verdict(1, "a", binding=False), False),
        (verdict(2, "a", binding=False), verdict(3, binding=False), False),
        (verdict(2, "a", binding=False), None, False),
    ],
)
def test_what_does_what_it_should(after: Verdict | None, before: Verdict | None, *, stands: bool) -> None:
    assert satisfied(after, before) is stands


def test_what_breaks_nothing() -> None:
    same = verdict(2, "a", binding=False)
    assert no_worse(same, same)
    assert no_worse(None, same)
    assert not no_worse(UNKNOWN, same)
    assert not no_worse(verdict(2, "b", binding=False), same)
    assert not no_worse(verdict(2, "a"), verdict(2, "a"))
    assert not no_worse(same, None)


@pytest.mark.parametrize(
    ("one", "other", "is_better"),
    [
        (verdict(3), verdict(2, "a"), True),
        (verdict(2, "a"), verdict(2, "b"), False),
        (verdict(3, "a"), verdict(2, "a"), True),
        (verdict(0, "a"), None, True),
        (None, verdict(1), False),
        (UNKNOWN, verdict(0, "a"), False),
        (verdict(9, "a", "b"), verdict(1, "a"), False),
        (verdict(0, "test_a.T.x", "test_a.T.y"), verdict(0, "test_a"), True),
        (verdict(0, "t/test_a.py::x", "t/test_a.py::y"), verdict(0, "t/test_a.py"), True),
        (verdict(0, "test_a"), verdict(0, "test_a.T.x", "test_a.T.y"), False),
        (verdict(0, "test_ab.x", "test_ab.y"), verdict(0, "test_a"), False),
        (verdict(0, "test_a.T.x", "other.T.y"), verdict(0, "test_a"), False),
    ],
)
def test_better(one: Verdict | None, other: Verdict | None, *, is_better: bool) -> None:
    assert better(one, other) is is_better
