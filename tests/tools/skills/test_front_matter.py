"""Heads of Markdown files: what can be understood, and errors that name the line for the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from codeagent_lsp.tools.skills.skill_folders import Document, FrontMatterError
from codeagent_lsp.tools.skills.skill_folders import parse as parse_for


def parse(source: str) -> Document:
    return parse_for(source, ("k", "?"))


def head(*lines: str) -> str:
    return "\n".join(["---", *lines, "---", "body"])


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (["k: plain text"], "plain text"),
        (["k: with: colons and#hash"], "with: colons and#hash"),
        (["k: text # a comment"], "text"),
        (['k: "quo\\"ted\\n" # c'], 'quo"ted\n'),
        (["k: 'it''s'"], "it's"),
        (["k:"], ""),
        (["k: ~"], ""),
        (["k: one", "  goes on"], "one goes on"),
        (["k: >", "  folded", "  lines", "", "  here"], "folded lines\nhere"),
        (["k: |-", "  kept", "    in", "  lines"], "kept\n  in\nlines"),
        (["k: [a, 'b, c', \"d\"]"], ("a", "b, c", "d")),
        (["k: [a,", "  b]"], ("a", "b")),
        (["k: []"], ()),
        (["k:", "  - one", "  - 'two'  # c", "  # c"], ("one", "two")),
        (["k:", "- at the margin"], ("at the margin",)),
        (["# first", "", "k: v"], "v"),
        (["k: Use it when: always # c"], "Use it when: always"),
        (["k: a\tb"], "a\tb"),
        (["k: [pr-number] [priority]"], "[pr-number] [priority]"),
        (["k: @file"], "@file"),
        (["k: **/*.ts"], "**/*.ts"),
        (["k: \"done\" or 'open'"], "\"done\" or 'open'"),
        (["other: {a: b}", "k: v", "more:", "  nested: [c]"], "v"),
        (["k: yes"], "yes"),
        (["k: &anchor 1.0"], "1.0"),
    ],
)
def test_values(lines: list[str], value: object) -> None:
    document = parse(head(*lines))
    assert document.head == {"k": value}
    assert document.body == "body\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["no colon"], 2),
        (["k: v", "k: w"], 3),
        (["k:", "  nested: v"], 3),
        (["k: 'open"], 2),
        (['k: "open'], 2),
        (["k: [a"], 2),
        (["k: *nothing"], 2),
        (["k: [a, [b]]"], 2),
        (["- a list"], 2),
        (["? [a]", ": b"], 2),
        (["k: \x07"], 2),
        (["k: " + "[" * 5000], 2),
        (["k: {a: b}"], 2),
        (["k:", "  - a", "  b"], 4),
    ],
)
def test_what_cannot_be_understood_names_its_line(lines: list[str], line: int) -> None:
    with pytest.raises(FrontMatterError) as caught:
        parse(head(*lines))
    assert caught.value.line == line
    assert f"line {line}" in str(caught.value)


def test_a_head_that_never_ends_and_one_that_is_not_there() -> None:
    with pytest.raises(FrontMatterError, match="never ends"):
        parse("---\nname: x\n")
    with pytest.raises(FrontMatterError, match="more than"):
        parse("---\n" + "# x\n" * 500 + "---\n")
    assert parse("# Title\n---\n").head == {}


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    document = parse("\ufeff---\r\nname: x\r\n---\r\nhello\r\n")
    assert (document.head, document.body) == ({"name": "x"}, "hello\n")


def test_one_text_can_stand_for_a_list_and_the_other_way_round() -> None:
    document = parse(head("a: one, two", "b: [three, four]"))
    assert document.many("a") == ("one", "two")
    assert document.one("b") == "three, four"
    assert (document.one("c"), document.many("c")) == ("", ())


@given(some.text(alphabet="ab:-[]{}'\"#|>&*\n \t\\,", max_size=60))
def test_nothing_but_its_own_error_comes_out(text: str) -> None:
    try:
        document = parse(f"---\n{text}\n---\nbody\n")
    except FrontMatterError:
        return
    assert isinstance(document.body, str)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("[" * 5000, "nested so deeply"),
        ("[ " * 5000, "nested so deeply"),
        ("{a: " * 3000, "nested so deeply"),
        ("{a, " * 3000, "nested so deeply"),
        ('["a", ' * 2000, "nested so deeply"),
        ("\n" + "- " * 5000, "nested so deeply"),
        ("\n" + "\n".join(" " * depth + "a:" for depth in range(1, 150)), "nested so deeply"),
        (f"[{'x,' * 500_000}x]", "more than 16,384 characters"),
        ("x " * 1_000_000, "more than 16,384 characters"),
    ],
)
def test_a_hostile_head_takes_no_time(value: str, problem: str) -> None:
    for _ in range(5):
        with pytest.raises(FrontMatterError, match=problem):
            parse(head(f"k: {value}"))


@pytest.mark.parametrize("value", ["text [[[[like]]]] this", "'" + "{[x]} " * 200 + "'", "a - b: " + "[x] " * 100])
def test_brackets_in_a_text_are_no_nesting(value: str) -> None:
    assert parse(head(f"k: {value}")).one("k").strip() == value.strip("'").strip()
