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
    the tests could not run. A command that failed counts as one failed test. `binding` says that the task speaks of
    what was checked, so that all of it has to pass; else it only bears the names of the files.
    """

    passed: int = 0
    failed: tuple[FailedTest, ...] = ()
    report: str = ""
    problem: str = ""
    binding: bool = True

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


def satisfied(after: Verdict | None, before: Verdict | None, *, repairs: bool) -> bool:
    """Whether a change can stand: its tests pass, or, where nobody spoke of them, it broke none that passed before.

    Of a task that `repairs` something fewer have to fail than before. What cannot be checked cannot fail.
    """
    if after is None or not after.known or after.good:
        return True
    if after.binding or before is None or not before.known:
        return False
    return after.names < before.names or (after.names == before.names and not repairs)


def better(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether the first check went better than the second: fewer failures, then more passes."""
    if one is None or not one.known:
        return False
    if other is None or not other.known:
        return True
    return (len(one.failed), -one.passed) < (len(other.failed), -other.passed)
