"""Bytes and texts as tables: encodings there and back, positions of every odd kind of character."""

from __future__ import annotations

import codecs

import pytest

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.text.document import Change, Document, text_digest
from codeagent_lsp.workspace.text.encoding import Encoding, decode, encode
from codeagent_lsp.workspace.text.position import Encoding as Units
from codeagent_lsp.workspace.text.position import (
    LineIndex,
    offset_at,
    position_at,
    split_lines,
    with_newlines,
    without_line_numbers,
)
from tests.workspace import reference

BYTES: dict[str, tuple[bytes, str, Encoding]] = {
    "only a mark": (codecs.BOM_UTF8, "", "utf-8-sig"),
    "only a wide mark": (codecs.BOM_UTF16_LE, "", "utf-16-le"),
    "only a wide mark, big": (codecs.BOM_UTF16_BE, "", "utf-16-be"),
    "two marks": (codecs.BOM_UTF8 * 2 + b"a", "\ufeffa", "utf-8-sig"),
    "a mark inside": (b"a" + codecs.BOM_UTF8, "a\ufeff", "utf-8"),
    "emoji": ("😀👩‍👩‍👧".encode(), "😀👩‍👩‍👧", "utf-8"),
    "wide emoji": (codecs.BOM_UTF16_LE + "😀".encode("utf-16-le"), "😀", "utf-16-le"),
    "every line end": (b"a\nb\r\nc\rd\r\r\n", "a\nb\r\nc\rd\r\r\n", "utf-8"),
    "odd separators": ("a\x0b\x0c\x85\u2028\u2029b".encode(), "a\x0b\x0c\x85\u2028\u2029b", "utf-8"),
    "a byte that is none": (b"abc\xff", "abcÿ", "latin-1"),
    "cut in a character": ("é".encode()[:1], "Ã", "latin-1"),
    "an overlong form": (b"x\xc0\xaf", "xÀ¯", "latin-1"),
    "half a pair in bytes": (b"x\xed\xa0\x80 long enough", "xí\xa0\x80 long enough", "latin-1"),
    "tabs and bells": (b"\t\x08\x1b[0m ok", "\t\x08\x1b[0m ok", "utf-8"),
    "latin with a delete": ("ä\x7fö".encode("latin-1"), "ä\x7fö", "latin-1"),
}


@pytest.mark.parametrize(("data", "text", "encoding"), BYTES.values(), ids=BYTES.keys())
def test_bytes_there_and_back(data: bytes, text: str, encoding: Encoding) -> None:
    decoded = decode(data)
    assert (decoded.text, decoded.encoding) == (text, encoding)
    assert encode(text, encoding) == data
    assert bool(decoded.note) == (encoding == "latin-1")


@pytest.mark.parametrize("char", ["€", "字", "😀", "\u2028", "\u0100"])
def test_latin_refuses_what_it_has_not(char: str) -> None:
    with pytest.raises(FileRefused, match=f"U\\+{ord(char):04X}"):
        encode(f"ok {char}", "latin-1")
    for encoding in ("utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"):
        assert decode(encode(f"ok {char}", encoding)).text == f"ok {char}"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.03, 0.5])
def test_a_few_control_bytes_are_borne_in_latin_and_many_are_not(share: float) -> None:
    controls = round(1000 * share)
    data = b"\xe9" + b"a" * (999 - controls) + b"\x01" * controls
    if share <= 0.02:
        assert decode(data).encoding == "latin-1"
    else:
        with pytest.raises(FileRefused, match="binary"):
            decode(data)


# --- positions: units in utf-8, utf-16 and utf-32


UNITS: dict[str, tuple[str, int, int, int]] = {
    "letter": ("a", 1, 1, 1),
    "accent": ("é", 2, 1, 1),
    "accent of its own": ("e\u0301", 3, 2, 2),
    "han": ("中", 3, 1, 1),
    "rare han": ("\U00020000", 4, 2, 1),
    "emoji": ("😀", 4, 2, 1),
    "skin": ("👍🏽", 8, 4, 2),
    "family": ("👩\u200d👩\u200d👧", 18, 8, 5),
    "flag": ("🇩🇪", 8, 4, 2),
    "keycap": ("1\ufe0f\u20e3", 7, 3, 3),
    "mark": ("\ufeff", 3, 1, 1),
    "half a pair": ("\ud83d", 3, 1, 1),
    "other half": ("\ude00", 3, 1, 1),
    "right to left": ("שלום", 8, 4, 4),
    "joined": ("ﷺ", 3, 1, 1),
    "next line": ("\x85", 2, 1, 1),
    "line separator": ("\u2028", 3, 1, 1),
    "form feed": ("\x0c", 1, 1, 1),
    "nul": ("\0", 1, 1, 1),
}
ENCODINGS: tuple[Units, ...] = ("utf-8", "utf-16", "utf-32")


@pytest.mark.parametrize(("text", "eight", "sixteen", "thirty_two"), UNITS.values(), ids=UNITS.keys())
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_units_of_odd_characters(text: str, eight: int, sixteen: int, thirty_two: int, end: str) -> None:
    whole = f"x{end}ab{text}cd{end}{text}"
    index = LineIndex.of(whole)
    place = 1 + len(end) + 2 + len(text)
    for encoding, width in zip(ENCODINGS, (eight, sixteen, thirty_two), strict=True):
        assert position_at(whole, index, place, encoding) == (1, 2 + width)
        assert offset_at(whole, index, (1, 2 + width), encoding) == place
        assert position_at(whole, index, len(whole), encoding) == (2, width)
        for character in range(width + 5):
            found = offset_at(whole, index, (1, character), encoding)
            assert found == reference.offset(whole, 1, character, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", UNITS)
def test_typing_and_deleting_odd_characters(name: str, encoding: Units) -> None:
    text, *widths = UNITS[name]
    width = widths[ENCODINGS.index(encoding)]
    document = Document("file:///w/a", "one\ntwo\n", 1)
    typed = document.apply(Change(text, (1, 1), (1, 1)), encoding, version=2)
    assert (typed.text, typed.version) == (f"one\nt{text}wo\n", 2)
    after = typed.apply(Change("!", (1, 1 + width), (1, 1 + width)), encoding)
    assert after.text == f"one\nt{text}!wo\n"
    assert after.apply(Change("", (1, 1), (1, 2 + width)), encoding).text == document.text
    assert typed.digest == text_digest(typed.text) != document.digest


# --- lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", ["\n"]),
        ("\r\r\n\n", ["\r", "\r\n", "\n"]),
        ("a", ["a"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", ["a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"]),
        ("a\n\rb", ["a\n", "\r", "b"]),
    ],
)
def test_lines(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines
    assert [text[start:end] for start, end in reference.lines(text)][: len(lines)] == [x.rstrip("\r\n") for x in lines]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_all_line_ends_at_once(newline: str) -> None:
    assert with_newlines("a\nb\r\nc\rd\r\r\n\n", newline) == newline.join(["a", "b", "c", "d", "", "", ""])


@pytest.mark.parametrize(
    ("read", "plain"),
    [
        ("1|a\n2|b\n", "a\nb\n"),
        ("  9|a\n 10|\n", "a\n\n"),
        ("7|only", "only"),
        ("1|a\n3|b\n", None),
        ("1|a\nb\n", None),
        ("x = 1 | 2\n", None),
        ("", None),
        ("12345678|too large\n", None),
    ],
)
def test_line_numbers_are_dropped_only_when_they_count_up(read: str, plain: str | None) -> None:
    assert without_line_numbers(read) == (read if plain is None else plain)
