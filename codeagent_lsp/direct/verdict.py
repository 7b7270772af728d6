"""The result of a check of the code, by tests or a command, before or after a change, and comparisons of two. Pure
functions.

Not here: running them (`direct/change_checks.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.tools.testing.baseline import contains


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A failed test: its id in the words of its framework, its file relative to the workspace ('' for unknown), and its
    line.
    """

    test_id: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one check. `report` is for the model, shortened to the failures; with a `problem` (English) there
    is no result: the tests could not run. A command that failed counts as one failed test. `binding` says that the task
    mentions what was checked, so that all of it has to pass; else the tests were only chosen by the names of the files.
    """

    passed: int = 0
    failed: tuple[FailedTest, ...] = ()
    report: str = ""
    problem: str = ""
    binding: bool = True

    @property
    def known(self) -> bool:
        """Return whether the check has a result."""
        return not self.problem and bool(self.passed or self.failed)

    @property
    def good(self) -> bool:
        """Return whether all that was checked passed."""
        return self.known and not self.failed

    @property
    def names(self) -> frozenset[str]:
        """Return the ids of the failed tests."""
        return frozenset(each.test_id for each in self.failed)


def satisfied(after: Verdict | None, before: Verdict | None) -> bool:
    """Return whether a change is good enough as far as a check can tell: all passes, or, where the check is not
    binding, less fails than before and nothing new. A check that has no result counts only when it had one before.
    """
    if after is None or after.good:
        return True
    if not after.known:
        return before is None or not before.known
    return no_worse(after, before) and before is not None and after.names != before.names


def no_worse(after: Verdict | None, before: Verdict | None) -> bool:
    """Return whether a change broke nothing that passed before, in a check that is not binding, or without a check."""
    if after is None:
        return True
    return after.known and not after.binding and before is not None and before.known and after.names <= before.names


def better(one: Verdict | None, other: Verdict | None) -> bool:
    """Return whether `one` went better than `other`: fewer failures, then more passes. False if `one` has no result,
    else True if `other` has none. A test file that cannot be loaded is worse than failures of all the tests in it.
    """
    if one is None or not one.known:
        return False
    if other is None or not other.known:
        return True
    return (_weight(one, other), -one.passed) < (_weight(other, one), -other.passed)


def _weight(verdict: Verdict, other: Verdict) -> int:
    """Return the number of failures; one that contains failures of the other check counts for them, and one more."""
    return sum(1 + sum(contains(one, each) for each in other.names) for one in verdict.names)
