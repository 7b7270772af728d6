"""A text in pieces comes out as the whole text would, and no secret slips through at a border."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.records.masking import LONGEST_HELD, StreamSanitizer
from codeagent_lsp.records.sanitizer import Sanitizer
from tests.examples import examples
from tests.records.formats import CONTEXTS, PLACED, TOKENS
from tests.records.lookalikes import everything
from tests.records.test_outside_frames import SECTIONS
from tests.records.test_sanitizer import survives

sanitizer = Sanitizer(homes=())


def streamed(text: str, sizes: list[int], sane: Sanitizer = sanitizer) -> str:
    """`text` fed in pieces of these sizes, over and over."""
    stream, out, start, turn = StreamSanitizer(sane.text, sane.hold_back), [], 0, 0
    while start < len(text):
        size = sizes[turn % len(sizes)]
        out.append(stream.feed(text[start : start + size]))
        start, turn = start + size, turn + 1
    return "".join((*out, stream.close()))


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_split_between_pieces_is_found(name: str) -> None:
    rng = random.Random(name)
    for frame in CONTEXTS.values():
        text = f"some words before\n{frame.format(TOKENS[name](rng))}\nand after"
        for sizes in ([1], [7], [3, 40]):
            assert streamed(text, sizes) == sanitizer.sanitize(text), (frame, sizes)


@pytest.mark.parametrize("name", PLACED)
def test_a_secret_split_from_its_place_is_found(name: str) -> None:
    frame, make = PLACED[name]
    secret = make(random.Random(name))
    text = f"before\n{frame.format(secret)}\nafter\n"
    secret = re.sub(r"-----(?:BEGIN|END) [A-Z ]+-----", "", secret)  # the lines around a key are in many programs
    for sizes in ([1], [5], [2, 33]):
        assert not survives(secret, streamed(text, sizes)), sizes


IN_LINES = [frame for frames in SECTIONS.values() for frame in frames if "⏎" in frame and "§1" not in frame]


@pytest.mark.parametrize("frame", IN_LINES)
def test_what_names_a_secret_some_lines_above_is_not_cut_from_it(frame: str) -> None:
    """However long the output goes on, and wherever it would be cut."""
    secret = "".join(random.Random(frame).sample("abcdefghijkmnpqrstuvwxyzABCDEFGHKLMNPQRSTUVWXYZ23456789", 32))
    text = frame.replace("§", secret).replace("⏎", "\n")
    stream = StreamSanitizer(sanitizer.text)
    pieces = [f"words before it\n{text}\n", "and more words\n" * 500, *["and then more\n"] * 90]
    assert not survives(secret, "".join((*map(stream.feed, pieces), stream.close())))


def test_a_list_of_hashes_is_given_out_all_the_same() -> None:
    rng = random.Random(5)
    stream = StreamSanitizer(sanitizer.text)
    lines = [f"{rng.getrandbits(160):040x} A subject\n" for _ in range(1_000)]
    given = sum(len(stream.feed(line)) for line in lines)
    assert sum(map(len, lines)) - given < LONGEST_HELD / 2


def test_look_alikes_stay_in_pieces() -> None:
    text = "\n".join(everything())
    assert streamed(text, [1, 2, 30]) == text


def test_ordinary_words_are_given_out_at_once() -> None:
    stream = StreamSanitizer(sanitizer.text, 0)
    assert stream.feed("The quick brown ") == "The quick brown "
    assert stream.feed("fox") == ""
    assert stream.feed(" jumps\n") == "fox jumps\n"
    assert stream.close() == ""


def test_a_word_is_held_until_it_is_whole() -> None:
    secret = TOKENS["gitlab"](random.Random(1))
    stream = StreamSanitizer(sanitizer.text, 0)
    assert stream.feed(f"see {secret[:12]}") == "see "
    assert stream.feed(secret[12:]) == ""
    assert stream.feed(" there") == f"{sanitizer.sanitize(secret)} "


@pytest.mark.slow
def test_what_is_held_is_bounded() -> None:
    stream = StreamSanitizer(sanitizer.text, 0)
    out = "".join(stream.feed("x" * 3000) for _ in range(100))
    assert len(out) > 300_000 - 2 * LONGEST_HELD
    assert out + stream.close() == "x" * 300_000


def test_a_key_of_ours_with_spaces_is_found() -> None:
    own = "a key with blanks in it 42"
    sane = Sanitizer(secrets=[own], homes=())
    text = f"first\nline with {own} within\nlast words of it\n"
    assert streamed(text, [3], sane) == sane.sanitize(text) != text


@pytest.mark.parametrize("size", [1 << 20, 100_000, 70_000])
def test_large_pieces_do_not_pile_up(size: int) -> None:
    """However large the pieces, little more than `LONGEST_HELD` waits; a key over the border of two is still found."""
    secret = TOKENS["gitlab"](random.Random(2))
    key = f"-----BEGIN PRIVATE KEY-----\n{'QUJD' * 16}\n{'REVG' * 16}\n-----END PRIVATE KEY-----\n"
    for inner, hidden in ((f"token = '{secret}'\n", secret), (key, "REVG" * 16)):
        text = "some words\n" * (size // 11)
        text = text[: size - len(inner) // 2] + "\n" + inner + text
        stream, out = StreamSanitizer(sanitizer.text), []
        for start in range(0, len(text), size):
            out.append(stream.feed(text[start : start + size]))
            assert min(start + size, len(text)) - sum(map(len, out)) < 2 * LONGEST_HELD
        whole = "".join((*out, stream.close()))
        assert hidden not in whole
        assert whole == sanitizer.text(text)


def test_a_line_without_an_end_is_cut_between_its_words() -> None:
    stream = StreamSanitizer(sanitizer.text)
    out = [stream.feed('"password" ' * 10_000) for _ in range(5)]
    assert sum(map(len, out)) > 550_000 - 2 * LONGEST_HELD
    assert all(piece.endswith(" ") for piece in out if piece)
    assert "".join((*out, stream.close())) == '"password" ' * 50_000


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_any_split_hides_as_much_as_none(seed: int, sizes: list[int]) -> None:
    rng = random.Random(seed)
    secrets = [TOKENS[rng.choice(sorted(TOKENS))](rng) for _ in range(3)]
    lines = [rng.choice(list(CONTEXTS.values())).format(secret) for secret in secrets]
    text = streamed("\n".join((*lines, rng.choice(everything()))), sizes)
    assert not any(survives(secret, text) for secret in secrets)
