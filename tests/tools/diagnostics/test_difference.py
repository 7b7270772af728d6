"""What an edit made worse and better: diagnostics move with their lines, and nothing else counts as new."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.tools.diagnostics.difference import (
    MAX_LINES,
    Diagnostic,
    Difference,
    Severity,
    describe_difference,
    difference,
)

FILE = "/w/a.py"


def problem(
    line: int, message: str = "bad", severity: Severity = "error", path: str = FILE, column: int = 1
) -> Diagnostic:
    return Diagnostic(path, line, column, severity, message, "check", "E1")


def compared(base: list[Diagnostic], staged: list[Diagnostic], old: str, new: str) -> Difference:
    return difference(base, staged, {FILE: (old, new)})


class TestDifference:
    def test_one_that_moved_is_neither(self) -> None:
        found = compared([problem(2)], [problem(4)], "a\nb\n", "x\ny\na\nb\n")
        assert found == Difference()

    def test_a_new_one_in_a_changed_line(self) -> None:
        found = compared([], [problem(2)], "a\nb\n", "a\nB\n")
        assert (found.new, found.fixed) == ((problem(2),), ())

    def test_one_that_went_with_its_line(self) -> None:
        found = compared([problem(2)], [], "a\nb\nc\n", "a\nc\n")
        assert (found.new, found.fixed) == ((), (problem(2),))

    def test_a_rewritten_line_keeps_its_problem(self) -> None:
        found = compared([problem(2)], [problem(2, column=9)], "a\nb\n", "a\n  B\n")
        assert found == Difference()

    def test_a_rewritten_line_with_one_more(self) -> None:
        found = compared([problem(2)], [problem(2), problem(2, column=7)], "a\nb\n", "a\nB\n")
        assert found.new == (problem(2, column=7),)
        assert found.fixed == ()

    def test_the_same_words_on_another_unchanged_line_are_new(self) -> None:
        """The definition went away with the line that had the problem: its use has the same problem now."""
        found = compared([problem(1)], [problem(3)], "a\nb\nc\n", "A\nb\nc\n")
        assert (found.new, found.fixed) == ((problem(3),), (problem(1),))

    def test_in_a_file_that_did_not_change(self) -> None:
        other = problem(7, path="/w/b.py")
        assert compared([], [other], "a\n", "b\n").new == (other,)
        assert compared([other], [other], "a\n", "b\n") == Difference()
        assert compared([other], [], "a\n", "b\n").fixed == (other,)

    def test_hints_do_not_count(self) -> None:
        assert (
            compared([problem(1, severity="info")], [problem(2, severity="hint")], "a\nb\n", "a\nb\n") == Difference()
        )

    def test_at_the_end_of_a_text(self) -> None:
        found = compared([problem(3)], [problem(4)], "a\nb\n", "x\na\nb\n")
        assert found == Difference()

    def test_a_new_file(self) -> None:
        assert compared([], [problem(1)], "", "a\n").new == (problem(1),)

    def test_a_deleted_file(self) -> None:
        assert compared([problem(1)], [], "a\n", "").fixed == (problem(1),)


LINES = st.lists(st.sampled_from("abcd"), max_size=12)


@given(LINES, st.integers(0, 12), st.integers(0, 3), st.lists(st.sampled_from("xyz"), max_size=3), st.data())
def test_problems_of_lines_follow_them(
    lines: list[str], start: int, removed: int, put: list[str], data: st.DataObject
) -> None:
    """Each line has a problem that depends on the line alone. Then as many are new as the new lines have more, and none
    is new that an unchanged line had before.
    """
    bad = frozenset(data.draw(st.lists(st.sampled_from("abcdxyz"))))
    start = min(start, len(lines))
    after = [*lines[:start], *put, *lines[start + removed :]]
    base, staged = ([problem(n, line) for n, line in enumerate(each, 1) if line in bad] for each in (lines, after))
    old, new = ("".join(f"{line}\n" for line in each) for each in (lines, after))
    found = compared(base, staged, old, new)
    gone, came = lines[start : start + removed], put
    assert len(found.new) <= sum(line in bad for line in came)
    assert len(found.fixed) <= sum(line in bad for line in gone)
    assert len(found.new) - len(found.fixed) == len(staged) - len(base)


class TestWords:
    def test_counts_then_lines_the_worst_first(self) -> None:
        found = Difference((problem(3), problem(1, "why", "warning")), (problem(9), problem(8)))
        assert describe_difference(found, lambda path: path[3:]).splitlines() == [
            "Diagnostics: 2 fixed, 2 new:",
            "a.py:3:1 error bad",
            "a.py:1:1 warning why",
        ]

    def test_bounded(self) -> None:
        found = Difference(tuple(problem(line, "x" * 1000) for line in range(1, 40)))
        lines = describe_difference(found, str).splitlines()
        assert len(lines) == MAX_LINES + 1
        assert lines[-1] == "(and 30 more)"
        assert all(len(line) < 300 for line in lines)

    def test_nothing_to_say(self) -> None:
        assert describe_difference(Difference(), str) == ""
        assert describe_difference(Difference(fixed=(problem(1),)), str) == "Diagnostics: 1 fixed."
