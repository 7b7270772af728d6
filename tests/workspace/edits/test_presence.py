"""What of a change is in a text, whatever was typed in it, left out of it, and made of it by a formatter."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest

from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.presence import State, is_in, run_states
from codeagent_lsp.workspace.edits.spelling import bare, in_spelling_of
from tests.examples import examples

CASES = 2000


class Landing(NamedTuple):
    """A change, the text in which some of its runs have come, and the states that this gives, in order."""

    base: str
    text: str
    now: str
    states: list[State]


def as_it_is(line: str) -> str:
    return line


def by_a_formatter(line: str) -> str:
    """A line as formatters write it: blanks around operators and behind commas, double quotes, a long call broken."""
    line = re.sub(r" *([=+]) *", r" \1 ", line).replace("'", '"')
    line = re.sub(r", *", ", ", line)
    called = re.fullmatch(r"( *)(\w+ = \w+)\((.*), (.*)\)\n", line)
    if called and len(line) > 30:
        indent, head, first, second = called.groups()
        return f"{indent}{head}(\n{indent}    {first},\n{indent}    {second},\n{indent})\n"
    return line


def landing(chance: random.Random, written: Callable[[str], str]) -> Landing:
    """Blocks of lines that stay apart: changed or not, landed or not; the user types beside them, too."""
    base: list[str] = []
    text: list[str] = []
    now: list[str] = []
    states: list[State] = []
    for number in range(chance.randrange(1, 9)):
        block = [
            f"    v{number}{part}=call{number}('{part}',{part}+{number})\n" for part in range(chance.randrange(3, 5))
        ]
        made = list(block)
        place = chance.randrange(len(block))
        match chance.choice(["none", "replace", "replace", "insert", "delete"]):
            case "replace":
                made[place] = f"    new{number}=other{number}('with a longer text',{number}+1)\n"
            case "insert":
                made[place:place] = [f"    added{number}='{number}'\n", f"    more{number}=call('{number}')\n"]
            case "delete":
                del made[1]
        here = list(block)
        if made != block:
            came = chance.random() < 0.5
            states.append("in" if came else "out")
            here = list(made) if came else here
        now += map(written, here)
        base, text = [*base, *block], [*text, *made]
        between = f"between {number}\n"
        typed = chance.choice(["", "", "    # typed\n"])  # also right beside a change
        base, text = [*base, between], [*text, between]
        now += [typed, between] if chance.random() < 0.5 else [between, typed]
        now = [line for line in now if line]
    return Landing("".join(base), "".join(text), "".join(now), states)


@pytest.mark.slow
@pytest.mark.parametrize("written", [as_it_is, by_a_formatter])
def test_each_run_is_known_to_be_in_or_out(written: Callable[[str], str]) -> None:
    chance = random.Random(11)
    runs = 0
    for _ in range(examples(CASES)):
        case = landing(chance, written)
        found = run_states(case.base, case.text, case.now)
        assert list(found.values()) == case.states, case
        runs += len(found)
    assert runs > examples(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("written", [as_it_is, by_a_formatter])
def test_taking_back_what_is_in_leaves_the_rest_as_it_is_written(written: Callable[[str], str]) -> None:
    """The text without the change has no line of it any more, all lines of before, and whatever else was there."""
    chance = random.Random(12)
    for _ in range(examples(CASES)):
        case = landing(chance, written)
        landed = [run for run, state in run_states(case.base, case.text, case.now).items() if state == "in"]
        put = merge.select_runs(case.base, case.text, landed)
        back = merge.merge(put, case.base, case.now, beside=True, formatted=True)
        assert not back.conflicts, case
        assert set(run_states(case.base, case.text, back.text).values()) <= {"out"}
        assert back.text.count("# typed") == case.now.count("# typed")
        untouched = [line for line in case.now.splitlines() if line.startswith("between")]
        assert [line for line in back.text.splitlines() if line.startswith("between")] == untouched


@pytest.mark.parametrize(
    ("base", "text", "now", "states"),
    [
        ("a\nb\n", "a\nB\n", "a\nuser\n", ["changed"]),
        ("a\nb\n", "a\nB\n", "a\r\nB\r\n", ["in"]),
        ("a\nb", "a\nB", "a\nB\n", ["in"]),
        ("a\nb\n", "a\n", "a\n", ["in"]),
        ("a\nb\n", "a\n", "a\nb\n", ["out"]),
        ("a\nb\nc\n", "a\nc\n", "a\nuser\nc\n", ["in"]),
        ("a\nc\n", "a\nb\nc\n", "a\nuser\nc\n", ["out"]),
        ("a\nc\n", "a\nb\nc\n", "a\nb\nuser\nc\n", ["in"]),
        ("", "a\n", "a\n", ["in"]),
        ("", "a\n", "", ["out"]),
        ("}\n}\n", "}\n}\n}\n", "}\n}\n", ["out"]),
        ("}\n}\n", "}\n}\n}\n", "}\n}\n}\n", ["in"]),
        ("x=1\n", "x=2\n", "x = 2\n", ["in"]),
        ("x=1\n", "x=2\n", "x = 1\n", ["out"]),
        ("x=1\n", "x = 1\n", "x=1\n", ["out"]),  # only how it is written changes: exactly that counts
        ("x=1\n", "x = 1\n", "x = 1\n", ["in"]),
        ("a\nb = 1\nc\n", "a\nb = 2\nc\n", "a\nb = 2  # user\nc\n", ["in"]),
        ("a\nb = 1\nc\n", "a\nb = 2\nc\n", "a\nuser; b = 2\nc\n", ["in"]),
        ("a\nb = 1\nc\n", "a\nb = 2\nc\n", "a\nb = 1  # user\nc\n", ["changed"]),
        ("a\nb = 1\nc\n", "a\nb = 2\nc\n", "a\nb = 23\nc\n", ["changed"]),
        ("a\nb = 1\nc\n", "a\nb = 2\nc\n", "a\nbb = 2\nc\n", ["changed"]),
        ("a\nf(x) + 1\nc\n", "a\nf(x)\nc\n", "a\nf(x) + 1  # user\nc\n", ["changed"]),
        ("a\nf(x)\nc\n", "a\nf(x) + 1\nc\n", "a\nf(x) + 1  # user\nc\n", ["in"]),
        ("a\nb = 1\nc\n", "a\nb = 2\nd = 3\nc\n", "a\nb = 2\nd = 3  # user\nc\n", ["in"]),
        ("a\nb = 1\nc\n", "a\nb = 2\nd = 3\nc\n", "a\nb = 2  # user\nc\n", ["changed"]),
    ],
)
def test_single_cases(base: str, text: str, now: str, states: Sequence[State]) -> None:
    assert list(run_states(base, text, now).values()) == states
    assert is_in(base, text, now) is (states == ["in"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(a,b)\n", "f(\n    a,\n    b,\n)\n"),
        ("x = 'a'\n", 'x = "a"\n'),
        ("if (a and\n        b):\n", "if a and b:\n"),
        ("x = 1;\n", "x = 1\n"),
        ("return a \\\n  + b\n", "return a + b\n"),
    ],
)
def test_what_formatters_change_is_no_change(one: str, other: str) -> None:
    assert bare(one) == bare(other)


@pytest.mark.parametrize(
    ("one", "other"), [("a - b", "a + b"), ("f(a, b)", "f(a)"), ("x = 1", "y = 1"), ("[a]", "(a)")]
)
def test_what_says_something_else_is_one(one: str, other: str) -> None:
    assert bare(one) != bare(other)


def test_a_text_in_another_spelling_changes_nowhere_else() -> None:
    base = "def f():\n  a=1\n\ndef g():\n  return 'x'\n"
    changed = base.replace("a=1", "a=2")
    formatted = 'def f():\n  a = 1\n\n\ndef g():\n  return "x"\n'
    assert in_spelling_of(base, changed, formatted) == (formatted, formatted.replace("a = 1", "a=2"))


def test_lines_to_put_back_where_all_is_indented_otherwise_are_a_conflict() -> None:
    """Nobody can say how they would have to be indented."""
    base, text = "def f():\n  a=1\n  b\n", "def f():\n  a=2\n  b\n"
    now = "def f():\n    a = 2\n    b\n"
    back = merge.merge(text, base, now, beside=True, formatted=True)
    assert (back.text, len(back.conflicts)) == (now, 1)
    added = merge.merge(text, "def f():\n  b\n", now, beside=True, formatted=True)
    assert added == merge.Merged("def f():\n    b\n", ())  # what only goes needs no indentation
