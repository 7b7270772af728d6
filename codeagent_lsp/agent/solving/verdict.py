"""What a check of the code gave, as a value: tests or a command, before or after a change. Pure.

Not here: running them (`session/solving/change_checks.py`).
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


def satisfied(after: Verdict | None, before: Verdict | None) -> bool:
    """Whether a change does what it should, as far as a check tells: all that was checked passes, or, where nobody
    spoke of it, less of it fails than before. What could not be checked before either cannot fail.
    """
    if after is None or after.good:
        return True
    if not after.known:
        return before is None or not before.known
    return no_worse(after, before) and before is not None and after.names != before.names


def no_worse(after: Verdict | None, before: Verdict | None) -> bool:
    """Whether a change broke nothing that passed before, in a check that nobody spoke of."""
    if after is None:
        return True
    return after.known and not after.binding and before is not None and before.known and after.names <= before.names


def better(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether the first check went better than the second: fewer failures, then more passes."""
    if one is None or not one.known:
        return False
    if other is None or not other.known:
        return True
    return (len(one.failed), -one.passed) < (len(other.failed), -other.passed)
