"""What is sent of a text: within the budget, whole lines, and a beginning that stays while the user types."""

from __future__ import annotations

from codeagent_lsp.inline.context import SLOW, Place, prefix_of, suffix_of, worth_asking

TEXT = "".join(f"line number {n} = {n}\n" for n in range(400))


def test_whole_lines_within_the_budget() -> None:
    place = Place("x.py", TEXT, len(TEXT) // 2)
    prefix, suffix = prefix_of(place, SLOW), suffix_of(place, SLOW)
    assert SLOW.prefix // 2 - 30 <= len(prefix) <= SLOW.prefix
    assert 0 < len(suffix) <= SLOW.suffix
    assert TEXT[: place.offset].endswith(prefix) and prefix.startswith("line")
    assert TEXT[place.offset :].startswith(suffix) and suffix.endswith("\n")


def test_the_beginning_stays_while_the_user_types() -> None:
    """Of all cursors in a row, only every so many characters one has another beginning."""
    begins = {len(TEXT[:offset]) - len(prefix_of(Place("x.py", TEXT, offset), SLOW)) for offset in range(5000, 5900)}
    assert len(begins) <= 3


def test_a_short_text_is_sent_whole() -> None:
    place = Place("x.py", "a = 1\nb = 2\n", 6)
    assert prefix_of(place, SLOW) == "a = 1\n"
    assert suffix_of(place, SLOW) == "b = 2\n"


def test_one_endless_line_is_bounded() -> None:
    place = Place("x.js", "x" * 50_000, 40_000)
    assert len(prefix_of(place, SLOW)) <= 2 * SLOW.prefix
    assert len(suffix_of(place, SLOW)) <= SLOW.suffix
    assert not worth_asking(place, invoked=True)


def test_nothing_inside_a_word_unless_asked_for() -> None:
    place = Place("x.py", "number", 3)
    assert not worth_asking(place, invoked=False)
    assert worth_asking(place, invoked=True)
    assert worth_asking(Place("x.py", "num)", 3), invoked=False)


def test_lines_of_a_place() -> None:
    place = Place("x.go", "a\r\n\tb c\r\nd", 5)
    assert (place.line_before, place.line_after, place.indentation) == ("\tb", " c", "\t")
    assert (place.line_break, place.comment) == ("\r\n", "//")
