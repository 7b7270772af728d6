"""What a check of the code gave, as a value: tests or a command, before or after a change. Pure.

Not here: running them (`session/checking.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed: its id as its framework says it, and its file, relative to the workspace ('' for unknown)."""

    test_id: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check. `report` is for the model, shortened to what failed; with a `problem` (English) nothing can be said:
    the tests could not run. A command that failed counts as one failed test.
    """

    passed: int = 0
    failed: tuple[FailedTest, ...] = ()
    report: str = ""
    problem: str = ""

    @property
    def known(self) -> bool:
        """Whether it says anything about the code."""
        return not self.problem and bool(self.passed or self.failed)

    @property
    def good(self) -> bool:
        """Whether all that was checked passed."""
        return self.known and not self.failed

    @property
    def names(self) -> frozenset[str]:
        """The ids of the failed tests."""
        return frozenset(each.test_id for each in self.failed)


def satisfied(after: Verdict | None, before: Verdict | None, *, all_have_to_pass: bool) -> bool:
    """Whether a change can stand: its tests pass, or, where nobody spoke of them, it broke none that passed before.

    What cannot be checked cannot fail.
    """
    if after is None or not after.known:
        return True
    if after.good:
        return True
    known_before = before is not None and before.known
    return not all_have_to_pass and known_before and before is not None and after.names <= before.names


def better(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether the first check went better than the second: fewer failures, then more passes."""
    if one is None or not one.known:
        return False
    if other is None or not other.known:
        return True
    return (len(one.failed), -one.passed) < (len(other.failed), -other.passed)
