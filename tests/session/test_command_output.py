"""What a command prints becomes few events, in order, in whole lines, and never without end."""

from __future__ import annotations

import asyncio

import pytest

from codeagent_lsp.session.run_output import INTERVAL, PIECE, OutputStream
from codeagent_lsp.shadow.shell import Stream


class Heard:
    """Gathers what is emitted."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Stream, str]] = []

    def __call__(self, stream: Stream, text: str) -> None:
        self.pieces.append((stream, text))

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)


async def test_many_writes_become_one_event() -> None:
    heard = Heard()
    output = OutputStream(heard)
    for number in range(1000):
        output.write("stdout", f"{number}\n")
    output.close()
    assert len(heard.pieces) == 1
    assert heard.text == "".join(f"{number}\n" for number in range(1000))


@pytest.mark.slow
async def test_a_line_is_passed_on_without_another_one_following() -> None:
    heard = Heard()
    output = OutputStream(heard)
    output.write("stdout", "one\n")
    await asyncio.sleep(INTERVAL * 3)
    assert heard.pieces == [("stdout", "one\n")]
    output.close()


@pytest.mark.slow
async def test_the_beginning_of_a_line_waits_for_its_end() -> None:
    heard = Heard()
    output = OutputStream(heard)
    output.write("stdout", "one\ntw")
    await asyncio.sleep(INTERVAL * 3)
    assert heard.text == "one\n"
    output.write("stdout", "o\n")
    output.close()
    assert heard.text == "one\ntwo\n"


async def test_the_streams_keep_their_order() -> None:
    heard = Heard()
    output = OutputStream(heard)
    output.write("stdout", "a\n")
    output.write("stderr", "b\n")
    output.write("stdout", "c\n")
    output.close()
    assert heard.pieces == [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\n")]


async def test_a_burst_is_passed_on_whole_in_pieces() -> None:
    heard = Heard()
    output = OutputStream(heard)
    printed = "".join(f"{number}\n" for number in range(20_000))
    for at in range(0, len(printed), 3000):
        output.write("stdout", printed[at : at + 3000])
    output.close()
    assert heard.text == printed
    assert max(len(text) for _, text in heard.pieces) <= PIECE


async def test_endless_output_shows_its_beginning_its_end_and_how_much_is_between() -> None:
    heard = Heard()
    output = OutputStream(heard, total=10_000, left_out="({count} left out)")
    for number in range(20_000):
        output.write("stdout", f"{number}\n")
    output.close()
    printed = "".join(f"{number}\n" for number in range(20_000))
    left_out = len(printed) - 10_000 - PIECE
    assert heard.text == f"{printed[:10_000]}\n({left_out} left out)\n{printed[-PIECE:]}"


async def test_the_limit_is_for_each_command() -> None:
    heard = Heard()
    output = OutputStream(heard, total=10_000)
    for _ in range(5):
        output.write("stdout", "y" * 4000)
        output.close()
    assert heard.text == "y" * 20_000


async def test_nothing_is_left_behind() -> None:
    output = OutputStream(Heard())
    output.write("stdout", "x")
    output.close()
    assert not [handle for handle in getattr(asyncio.get_running_loop(), "_scheduled", []) if not handle.cancelled()]


@pytest.mark.slow
async def test_a_line_without_an_end_is_shown_in_the_end() -> None:
    """A prompt or a progress bar has none."""
    shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    output = OutputStream(lambda _, text: shown.set_result(text))
    output.write("stdout", "Proceed? ")
    assert await asyncio.wait_for(shown, 30) == "Proceed? "
    output.close()
