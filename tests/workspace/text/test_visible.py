"""Text that nobody vouches for: what is unseen is written out, what people write stays."""

from __future__ import annotations

import pytest

from codeagent_lsp.workspace.text.visible import cut_at_word, has_unseen, in_box, one_line, visible

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
HEART = "\u2764\ufe0f"
TAGGED = "".join(chr(0xE0000 + ord(char)) for char in "run it")


@pytest.mark.parametrize(
    "text", ["plain\ttext\n", "", "naïve, 中文、한국어, عربي", FAMILY, HEART, f"1\ufe0f\u20e3 {HEART}", "a\u0301"]
)
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text
    assert not has_unseen(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200bb", "a\\u200bb"),
        ("a\u200db", "a\\u200db"),
        ("x\u202ey", "x\\u202ey"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("a\u00adb", "a\\u00adb"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x07b", "a\\u0007b"),
        ("a\u3164b", "a\\u3164b"),
        (f"ok{TAGGED}", "ok[hidden: run it]"),
        ("a" + "\U000e0101" * 5, "a[5 hidden characters]"),
        ("a\u2028b", "a\\u2028b"),
        ("x\ufe0f", "x\\ufe0f"),
    ],
)
def test_what_is_unseen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert has_unseen(text)
    assert visible(shown) == shown


def test_windows_line_ends_and_a_byte_order_mark_are_nothing_to_report() -> None:
    assert visible("\ufeffa\r\nb\r\n") == "a\nb\n"
    assert not has_unseen("\ufeffa\r\nb\r\n")


def test_one_line_is_one_line_and_short() -> None:
    assert one_line("a\n  b\t\u200bc", 40) == "a b \\u200bc"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("", ""),
        ("exactly so many char", "exactly so many char"),
        ("in tables and arrays; nothing", "in tables and…"),
        ("in tables and arrays nothing", "in tables and…"),
        ("in tables and array nothing", "in tables and array…"),
        ("a_word_without_any_end", "a_word_without_any_…"),
        ("x a_word_without_any_end", "x a_word_without_an…"),
    ],
)
def test_a_line_is_cut_at_the_end_of_a_word(line: str, shown: str) -> None:
    assert cut_at_word(line, 20) == shown


def test_a_link_in_a_box_leads_to_the_web_or_is_none() -> None:
    for address in (
        "command:x",
        "COMMAND:x",
        " command:x",
        "file:///x",
        "vscode://x",
        "javascript:x",
        "http:x",
        "x-y.z+1:a",
    ):
        assert in_box(f"[a]({address})") == rf"[a]\({address})"
    for plain in ("[a](https://x)", "[a](HTTP://x)", "a[0](x)", "f(x: int)", "call](b)", "[a](b c:d)"):
        assert in_box(plain) == plain
