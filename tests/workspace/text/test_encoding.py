"""Bytes to text and back, without losing one."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.text.encoding import Encoding, decode, encode

CASES: dict[str, tuple[bytes, str, Encoding]] = {
    "empty": (b"", "", "utf-8"),
    "ascii": (b"a\n", "a\n", "utf-8"),
    "utf-8": ("grüße 🎉\r\n".encode(), "grüße 🎉\r\n", "utf-8"),
    "mark": (codecs.BOM_UTF8 + b"a\r\nb", "a\r\nb", "utf-8-sig"),
    "mark alone": (codecs.BOM_UTF8, "", "utf-8-sig"),
    "two marks": (codecs.BOM_UTF8 * 2, "\ufeff", "utf-8-sig"),
    "little": (codecs.BOM_UTF16_LE + "a🎉".encode("utf-16-le"), "a🎉", "utf-16-le"),
    "big": (codecs.BOM_UTF16_BE + "a\n".encode("utf-16-be"), "a\n", "utf-16-be"),
    "latin": (b"caf\xe9\n", "café\n", "latin-1"),
    "broken utf-8 behind a mark": (codecs.BOM_UTF8 + b"\xe9", "ï»¿é", "latin-1"),
    "odd utf-16": (codecs.BOM_UTF16_LE + b"abc", "ÿþabc", "latin-1"),
    "escapes": (b"\x1b[31mred\x1b[0m\x0c", "\x1b[31mred\x1b[0m\x0c", "utf-8"),
}


@pytest.mark.parametrize(("data", "text", "encoding"), CASES.values(), ids=CASES.keys())
def test_decode_and_back(data: bytes, text: str, encoding: Encoding) -> None:
    decoded = decode(data)
    assert (decoded.text, decoded.encoding) == (text, encoding)
    assert encode(decoded.text, decoded.encoding) == data


def test_only_a_guess_has_a_note() -> None:
    assert "Latin-1" in decode(b"caf\xe9").note
    assert decode(b"plain").note == ""


BINARY = {
    "NUL": b"a\0b",
    "NUL in Latin-1": b"\xe9\0",
    "utf-16 without mark": "abc".encode("utf-16-le"),
    "utf-32": codecs.BOM_UTF32_LE + "abc".encode("utf-32-le"),
    "NUL in utf-16": codecs.BOM_UTF16_LE + b"\0\0a\0",
    "picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "noise": bytes(range(1, 256)),
}


@pytest.mark.parametrize("data", BINARY.values(), ids=BINARY.keys())
def test_binary_is_refused(data: bytes) -> None:
    with pytest.raises(FileRefused, match="binary"):
        decode(data)


def test_a_character_the_encoding_has_not_is_refused_by_name() -> None:
    with pytest.raises(FileRefused, match=r"U\+20AC.*latin-1"):
        encode("10 €", "latin-1")
    with pytest.raises(FileRefused, match=r"U\+D800"):
        encode("\ud800", "utf-8")


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le")))
def test_any_bytes_come_back(data: bytes) -> None:
    try:
        decoded = decode(data)
    except FileRefused:
        return
    assert encode(decoded.text, decoded.encoding) == data


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.sampled_from(["utf-8-sig", "utf-16-le", "utf-16-be"]),
)
def test_any_text_comes_back(text: str, encoding: Encoding) -> None:
    assert decode(encode(text, encoding))[:2] == (text, encoding)
