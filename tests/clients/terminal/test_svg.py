"""Terminal pictures: what is drawn where, in which colours, and when."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.clients.terminal.svg import CELL, INK, PAPER, Frame, draw

NAMES = {"s": "http://www.w3.org/2000/svg"}


def drawn(*frames: Frame) -> ElementTree.Element:
    return ElementTree.fromstring(draw(frames, columns=20, rows=3, title="A <title>"))


def texts(picture: ElementTree.Element) -> list[tuple[str | None, str | None]]:
    return [(text.text, text.get("fill")) for text in picture.iterfind(".//s:text", NAMES)]


def test_letters_keep_their_colours_and_their_cells() -> None:
    picture = drawn(Frame("a \x1b[38;2;255;0;0mred\x1b[0m \x1b[1m<b>\x1b[0m"))
    assert [item for item in texts(picture) if item[0] and item[0].strip()][:2] == [("a ", INK), ("red", "#ff0000")]
    red, bold = picture.findall(".//s:text", NAMES)[1:3]
    assert float(red.get("x", "")) == round(2 * CELL[0], 1)
    assert float(red.get("textLength", "")) == round(3 * CELL[0], 1)
    assert (bold.text, bold.get("font-weight")) == ("<b>", "bold")
    assert picture.findtext("s:title", namespaces=NAMES) == "A <title>"


def test_wide_characters_take_two_cells() -> None:
    picture = drawn(Frame("中\x1b[31mx\x1b[0m"))
    assert float(picture.findall(".//s:text", NAMES)[1].get("x", "")) == round(2 * CELL[0], 1)


def test_a_colour_lasts_beyond_its_line_until_the_next_one() -> None:
    picture = drawn(Frame("\x1b[38;2;255;0;0mone\ntwo\x1b[0m\nthree"))
    assert texts(picture) == [("one", "#ff0000"), ("two", "#ff0000"), ("three", INK)]


def test_reversed_text_has_a_background() -> None:
    picture = drawn(Frame("\x1b[7mabc\x1b[0m"))
    assert texts(picture) == [("abc", PAPER)]
    (back,) = picture.findall("s:defs//s:rect", NAMES)
    assert back.get("fill") == INK


def test_a_still_picture_does_not_move_and_shows_the_cursor() -> None:
    picture = drawn(Frame("one\ntwo", cursor=(1, 1)))
    assert not picture.findall(".//s:animate", NAMES)
    assert float(picture.findall("s:g/s:rect", NAMES)[0].get("y", "")) == CELL[1]


def test_frames_follow_each_other_and_equal_lines_are_drawn_once() -> None:
    picture = drawn(Frame("same\na", 1), Frame("same\nb", 1), Frame("same\nc", 2))
    moves = picture.findall(".//s:animate", NAMES)
    assert [move.get("values") for move in moves] == ["visible;hidden", "hidden;visible;hidden", "hidden;visible"]
    assert [move.get("keyTimes") for move in moves] == ["0.0000;0.2500", "0.0000;0.2500;0.5000", "0.0000;0.5000"]
    assert {move.get("dur") for move in moves} == {"4.00s"}
    assert [text for text, _ in texts(picture)] == ["same", "a", "b", "c"]
    assert [group.get("visibility") for group in picture.findall("s:g/s:g", NAMES)] == ["hidden", "hidden", "visible"]


def test_lines_below_the_screen_are_left_out() -> None:
    assert [text for text, _ in texts(drawn(Frame("1\n2\n3\n4")))] == ["1", "2", "3"]
