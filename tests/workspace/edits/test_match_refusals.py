"""What a refusal says, that it stays short whatever comes in, and random edits against an obvious oracle."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.workspace.edits.match import plan, replace
from codeagent_lsp.workspace.text.position import split_lines
from tests.clock import processor_seconds
from tests.workspace.edits.test_match import refusal
from tests.workspace.perturbations import hunks_from_git
from tests.workspace.synthetic_history import build_history

SHORT = 1500


# --- what it says

TEXT = "".join(
    f"def step_{number}(state):\n    return state.advance({number}, mode='fast')\n\n" for number in range(40)
)
STEP = "def step_7(state):\n    return state.advance(7, mode='fast')\n"

TOLD = {
    "another argument": (STEP.replace("7, mode", "7, kind"), "not_found", ["lines 22-23", "+ 23: ", "kind='fast'"]),
    "a line too many": (
        STEP.replace("    return", "    log()\n    return"),
        "not_found",
        ["-     log()", "lines 22-23"],
    ),
    "nothing alike": ("completely = other(thing)\n", "not_found", ["nothing like it"]),
    "dots": ("def step_7(state):\n    ...\n", "not_found", ["leave out", "lines 22-23"]),
    "escapes": (STEP.replace("'", "\\'"), "not_found", ["backslash"]),
    "everywhere": ("mode='fast'", "ambiguous", ["fits 40 places", "lines 2, 5, 8", "..."]),
    "two places": ("(1", "ambiguous", ["fits 11 places", "lines 5, 32"]),
    "nothing": ("", "empty", ["old_str is empty"]),
    "the same": ("NEW", "empty", ["the same"]),
}


@pytest.mark.parametrize(("old", "reason", "words"), TOLD.values(), ids=TOLD.keys())
def test_a_refusal_says_where_and_what(old: str, reason: str, words: list[str]) -> None:
    error = refusal(TEXT, old, "NEW")
    assert error.reason == reason
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize("at", [0, 1, 19, 38, 39])
def test_the_closest_place_has_the_numbers_an_editor_shows(at: int) -> None:
    old = f"def step_{at}(state):\n    return state.advance({at}, mode='slow')\n"
    error = refusal(TEXT, old, "x = 1\n")
    assert f"lines {3 * at + 1}-{3 * at + 2}" in str(error)
    assert f"+ {3 * at + 2}:     return state.advance({at}, mode='fast')" in str(error)
    assert "-     return" in str(error)


@pytest.mark.parametrize("odd", ["\x0c", "\x85", "\u2028", "\x0b"])
def test_line_numbers_do_not_count_odd_separators(odd: str) -> None:
    error = refusal(f"a{odd}b\n{odd}\n" + TEXT, STEP.replace("fast", "slow"), "x\n")
    assert "lines 24-25" in str(error)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_numbers_with_other_line_ends(end: str) -> None:
    assert "lines 22-23" in str(refusal(TEXT.replace("\n", end), STEP.replace("fast", "slow"), "x\n"))
    assert "lines 2, 5" in str(refusal(TEXT.replace("\n", end), "mode='fast'", "x"))


HUGE = "".join(f"value_{number} = compute({number})\n" for number in range(20_000))
ENDLESS = {
    "a huge block": ("".join(f"value_{n} = other({n})\n" for n in range(0, 20_000, 2)), HUGE),
    "a line without end": ("x" * 400_000, "y" * 400_000),
    "a line without end, alike": ("x" * 200_000 + "\ntail\n", "x" * 200_000 + "y\ntail\n"),
    "a thousand places": ("b", "a b\n" * 1000),
    "a thousand places at other depths": ("b\nc\n", "  b  \n  c  \n" * 1000),
    "blank lines": ("\n" * 50_000 + "x", "\n" * 60_000),
    "one word everywhere": ("word\nword\nother\n", "word\n" * 20_000),
    "wide characters": ("字" * 5000 + "\nx\n", "字" * 5000 + "典\nx\n"),
    "nulls": ("\0" * 5000, "\0" * 100 + "x"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("old", "text"), ENDLESS.values(), ids=ENDLESS.keys())
def test_a_refusal_is_short_and_in_time(old: str, text: str) -> None:
    with processor_seconds(3):
        error = refusal(text, old, "something = else_altogether\n")
    assert 20 < len(str(error)) < SHORT


# --- traps


def test_near_duplicates_are_told_apart_or_refused() -> None:
    block = "if {0}:\n    open({0})\n    read({0})\n    close({0})\n"
    text = block.format("left") + block.format("lefT") + block.format("right")
    old, new = block.format("right"), block.format("right").replace("read", "write")
    assert replace(text, old, new).text == text.replace(old, new)
    between = block.format("lef")
    assert refusal(text, between, between.replace("read", "write")).reason in ("not_found", "ambiguous")


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("ab\nab\nab\n", "ab\nab\n", "x\n"),
        ("}\n}\n}\n", "}\n}\n", "}\n"),
        ("aaa", "aa", "b"),
        ("  x\n  x\n  x\n", "x\nx\n", "y\n"),
    ],
)
def test_blocks_that_overlap_themselves(text: str, old: str, new: str) -> None:
    assert refusal(text, old, new).reason == "ambiguous"
    assert refusal(text, old, new, replace_all=True).reason == "ambiguous"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b\n", "a\nb\n"),
        ("b\n", "b\nc\n"),
        ("b\n", "a\nb\nc\n"),
        ("b", "(b)"),
        ("b = 1", "b = 12"),
        ("import b\n", "import a\nimport b\n"),
        ("x\ny\n", "if z:\n    x\n    y\n"),
    ],
)
def test_old_inside_new_only_once(old: str, new: str) -> None:
    text = f"head\n{old}" + ("tail\n" if old.endswith("\n") else "\ntail\n")
    once = replace(text, old, new).text
    assert once == text.replace(old, new)
    assert refusal(once, old, new).reason == "already_applied"


def test_a_change_and_the_way_back() -> None:
    there = replace(TEXT, STEP, STEP.replace("fast", "slow")).text
    assert replace(there, STEP.replace("fast", "slow"), STEP).text == TEXT


@pytest.mark.slow
def test_no_edit_of_a_history_is_made_twice(tmp_path: Path) -> None:
    hunks = hunks_from_git(build_history(tmp_path, seed=9), 120)
    assert len(hunks) > 80
    for hunk in hunks:
        once = replace(hunk.text, hunk.old, hunk.new).text
        assert once == hunk.expected
        try:
            twice = replace(once, hunk.old, hunk.new).text
        except EditRefused as error:
            assert error.reason in ("already_applied", "not_found", "ambiguous")
            assert len(str(error)) < SHORT
        else:
            pytest.fail(f"applied twice:\n{hunk.old}\n->\n{hunk.new}\n{twice}")


# --- random edits against an oracle

WORDS = ("alpha", "beta", "gamma(1)", "if delta:", "}", "", "  epsilon", "\tzeta", "“eta”", "字 = 1", "x\x0cy")


def occurrences(text: str, old: str) -> list[int]:
    return [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)]


def random_case(chance: random.Random) -> tuple[str, str, str]:
    """A text, a part of it (or nearly), and something else."""
    lines = [chance.choice(WORDS) + chance.choice(["", "", str(chance.randrange(5))]) for _ in range(12)]
    text = "".join(line + chance.choice(["\n", "\n", "\n", "\r\n", "\r"]) for line in lines)
    if chance.random() < 0.3:
        text = text.rstrip("\r\n")
    start = chance.randrange(len(text) + 1)
    old = text[start : start + chance.choice([2, 5, 9, 20])]
    if chance.random() < 0.5:
        first = chance.randrange(12)
        old = "".join(split_lines(text)[first : first + chance.randrange(1, 4)])
    if chance.random() < 0.2:
        old = old.replace(chance.choice("aeb1"), "q", 1)
    new = chance.choice(["", "new", "new\n", f"{old}more", old.upper(), "one\ntwo\n", old.replace("a", "aa")])
    return text, old, new


def changed_beyond(text: str, old: str, result: str) -> str:
    """What is wrong with a result: a character changed outside the lines that `old` could stand for."""
    head = next((i for i, (a, b) in enumerate(zip(text, result, strict=False)) if a != b), min(len(text), len(result)))
    room = min(len(text), len(result)) - head
    tail = next((i for i in range(room) if text[-1 - i] != result[-1 - i]), room)
    touched = split_lines(text[head : len(text) - tail])
    limit = len(split_lines(old)) + 3
    return "" if len(touched) <= limit else f"{len(touched)} lines changed, not {limit} at most"


@pytest.mark.slow
def test_random_edits_against_an_oracle() -> None:
    chance = random.Random(20)
    counts = {"exact": 0, "other": 0, "refused": 0}
    for _ in range(5000):
        text, old, new = random_case(chance)
        found = occurrences(text, old)
        plain = "\n" not in old + new and "\r" not in old + new
        try:
            done = replace(text, old, new)
        except EditRefused as error:
            counts["refused"] += 1
            assert len(str(error)) < SHORT
            if len(found) > 1 and old and old != new:
                assert error.reason == "ambiguous", (text, old, new)
            once_inside_a_line = len(found) == 1 and plain and old not in new and old.strip(" \t") == old
            assert not once_inside_a_line, ("refused for nothing", text, old, new, str(error))
            continue
        assert len(found) <= 1, ("one of several was taken", text, old, new)
        counts["exact" if done.tier == "exact" else "other"] += 1
        if plain and found:
            assert done.text == text[: found[0]] + new + text[found[0] + len(old) :]
        assert not changed_beyond(text, old, done.text), (text, old, new, done)
    assert min(counts.values()) > 100, counts


def test_a_plan_is_what_replace_does() -> None:
    chance = random.Random(21)
    for _ in range(500):
        text, old, new = random_case(chance)
        try:
            edit = plan(text, old, new)
        except EditRefused:
            with pytest.raises(EditRefused):
                replace(text, old, new)
            continue
        try:
            done = replace(text, old, new)
        except EditRefused as error:
            assert error.reason == "already_applied"  # the plan would change nothing
            continue
        assert (done.text, done.tier) == (text[: edit.start] + edit.text + text[edit.stop :], edit.tier)


def test_all_is_all() -> None:
    chance = random.Random(22)
    done = 0
    for _ in range(1000):
        text, old, new = random_case(chance)
        plain = old and "\n" not in old + new and "\r" not in old + new
        if not plain or len(occurrences(text, old)) < 2 or old in new:
            continue
        try:
            result = replace(text, old, new, replace_all=True)
        except EditRefused as error:
            assert "overlap" in str(error) or old == new or old in new
            continue
        done += 1
        assert result.text == text.replace(old, new)
    assert done > 20


FAR_AND_NEAR = {
    "a comment with more of the words": (
        "# total tax items rate price True",
        "    price = price_of(item, rate)",
        "    price = price_of(item, rate, total, tax, items, True)",
    ),
    "short lines that are the same": (
        "    }\n    return\n    }\n    return",
        "    const sum = items.reduce(add, 0)\n    }",
        "    const sum = items.reduce(plus, 0)\n    }\n    return",
    ),
    "the same words in another order": (
        "assert log.name == 'a' and log.size == 1",
        "value = compute(log.name, 'a', 1) + extra",
        "value = compute(log.name, 'a', 2, log, size, 1)",
    ),
}


@pytest.mark.parametrize(("far", "near", "sought"), FAR_AND_NEAR.values(), ids=FAR_AND_NEAR.keys())
def test_the_closest_place_is_where_the_longest_part_is_the_same(far: str, near: str, sought: str) -> None:
    text = "\n".join([far, *(f"x{number} = {number}" for number in range(30)), near, "end\n"])
    first = text[: text.index(near)].count("\n") + 1
    assert re.search(rf"Closest: lines? {first}\b", str(refusal(text, sought, "new")))


def test_the_closest_place_has_all_lines_that_stand_in_both() -> None:
    text = 'def f():\n    go()\n\n\ndef g():\n    """\n    Do it.\n    """\n    return 1\n'
    told = str(refusal(text, 'def f():\n    go()\n\n\ndef g():\n    """Do it.\n    """\n    return 1\n', "new"))
    assert "Closest: lines 1-9 " in told
    assert [line for line in told.splitlines() if line[:2] in ("- ", "+ ")] == [
        '-     """Do it.',
        '+ 6:     """',
        "+ 7:     Do it.",
    ]
