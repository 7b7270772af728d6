"""The table of unseen characters against the Unicode data of this Python, and every place where text is shown by it."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator

import pytest

from codeagent_lsp.messages import ToolCall
from codeagent_lsp.terminal import display
from codeagent_lsp.tools.permissions.approvals import describe, exactly
from codeagent_lsp.tools.permissions.shell_policy import hidden_characters
from codeagent_lsp.workspace.files.sensitive import runs_later
from codeagent_lsp.workspace.text import visible
from codeagent_lsp.workspace.text.visible import (
    code_point_notation,
    escape_notation,
    is_odd,
    is_unseen,
    shown,
    shown_exactly,
)

# By their names: what Unicode says of them (DerivedCoreProperties) is not in Python.
_IGNORED_NAMES = (
    "VARIATION SELECTOR",
    "HANGUL FILLER",
    "SEONG FILLER",
    "SCRIPT FILLER",
    "GRAPHEME JOINER",
    "VOWEL INHERENT",
)
_FREE_IGNORED = (0x2065, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000))
_SIGNS_BEFORE_NUMBERS = {
    "ARABIC NUMBER SIGN", "ARABIC SIGN SANAH", "ARABIC FOOTNOTE MARKER", "ARABIC SIGN SAFHA", "ARABIC SIGN SAMVAT",
    "ARABIC NUMBER MARK ABOVE", "ARABIC END OF AYAH", "SYRIAC ABBREVIATION MARK", "ARABIC POUND MARK ABOVE",
    "ARABIC PIASTRE MARK ABOVE", "ARABIC DISPUTED END OF AYAH", "KAITHI NUMBER SIGN", "KAITHI NUMBER SIGN ABOVE",
}  # fmt: skip


def _all() -> Iterator[str]:
    return map(chr, range(sys.maxunicode + 1))


def test_all_that_unicode_calls_ignorable_is_unseen() -> None:
    expected = {chr(number) for number in _FREE_IGNORED}
    for char in _all():
        name = unicodedata.name(char, "")
        if any(part in name for part in _IGNORED_NAMES) and unicodedata.category(char) != "So":
            expected.add(char)
        if unicodedata.category(char) in ("Cf", "Cs", "Zl", "Zp"):
            expected.add(char)
    assert {unicodedata.name(char) for char in expected if not is_unseen(char)} == _SIGNS_BEFORE_NUMBERS


def test_what_is_read_is_not_unseen() -> None:
    unseen = [char for char in _all() if is_unseen(char)]
    letters = [char for char in unseen if unicodedata.category(char)[0] in "LNPS"]
    assert {code_point_notation(char) for char in letters} == {
        "<U+115F>", "<U+1160>", "<U+2800>", "<U+3164>", "<U+FFA0>", "<U+1D159>",
    }  # fmt: skip
    assert not any(map(is_unseen, "\n\t \u00a0\u3000中é한ع👩"))
    assert all(map(is_odd, "\u00a0\u3000\ue000\u0378")) and not is_odd(" ")


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d👩\u200d👧",
        "❤\ufe0f\u200d🔥",
        "↔\ufe0f ℹ\ufe0f ‼\ufe0f",
        "1\ufe0f\u20e3",
        "👍🏽",
        "می\u200cخواهم",
        "क\u094d\u200dष",
    ],
)
def test_what_emoji_and_scripts_are_made_of_stays(text: str) -> None:
    assert shown(f"a {text}. b") == f"a {text}. b"
    assert shown_exactly(text) == text or "<U+" in shown_exactly(text)


@pytest.mark.parametrize(
    "text", ["a\ufe0fb", "+\ufe0f", "1\ufe0f", "a\u200cb", "é\u200dé", "中\u200d中", "👩\u200d", "x\u180b"]
)
def test_the_same_characters_elsewhere_do_not(text: str) -> None:
    assert "<U+" in shown(text)


SHOWN_BY: dict[str, Callable[[str], str]] = {
    "an approval": lambda text: describe(ToolCall("t", {"value": text})),
    "a command": exactly,
    "the terminal": display.visible,
    "text from outside": visible.visible,
}


@pytest.mark.parametrize("place", SHOWN_BY)
def test_every_place_shows_the_same_characters(place: str) -> None:
    for char in _all():
        if is_unseen(char) and char != "\r":
            assert char not in SHOWN_BY[place](f"a{char}b"), (place, code_point_notation(char))


@pytest.mark.parametrize("char", ["\u180b", "\u2800", "\u17b4", "\U000e0100", "\u202e", "\n"])
def test_names_of_files_with_them_deceive(char: str) -> None:
    assert runs_later(("src", f"a{char}b.py"))
    assert runs_later((f".g{char}it", "config")) and hidden_characters(f"a{char}b") == ((char,) if char != "\n" else ())


def test_the_two_ways_of_writing_a_character() -> None:
    assert [code_point_notation("\u202e"), escape_notation("\u202e"), escape_notation("\U000e0100")] == [
        "<U+202E>",
        "\\u202e",
        "\\U000e0100",
    ]
    assert json.loads(f'"{escape_notation(chr(0x202E))}"') == "\u202e"
    assert shown("plain\ttext\n") == shown_exactly("plain\ttext\n") == "plain\ttext\n"
