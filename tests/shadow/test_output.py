"""Bytes of a command to text: any chunking, any garbage, any length."""

from __future__ import annotations

import random
import re
import stat
import time
import tracemalloc
from pathlib import Path

import pytest

from codeagent_lsp.shadow.output import KeptOutput, Output
from codeagent_lsp.shadow.shell import Stream

LIMIT = 1000


def printed(folder: Path, *chunks: bytes, kept: int = LIMIT) -> KeptOutput:
    output = Output(folder, kept_bytes=kept)
    for chunk in chunks:
        output.feed("stdout", chunk)
        if output.wants_flush:
            output.flush()
    return output.finish()


CASES = [
    pytest.param(b"", "", id="nothing"),
    pytest.param(b"plain\n", "plain\n", id="plain"),
    pytest.param(b"no end", "no end", id="no line end"),
    pytest.param("grüße 漢字 😀\n".encode(), "grüße 漢字 😀\n", id="utf-8"),
    pytest.param(b"a\xffb\xc3(\n", "a�b�(\n", id="invalid"),
    pytest.param(b"cut \xf0\x9f\x98", "cut �", id="cut character"),
    pytest.param(b"a\0b\x01\x07\x7f\n", "ab\n", id="controls"),
    pytest.param(b"a\tb\r\nc\n", "a\tb\nc\n", id="tab and crlf"),
    pytest.param(b"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[m\n", "red rgb\n", id="colours"),
    pytest.param(b"\x1b[2J\x1b[H\x1b[?25lhidden\x1b[?25h\n", "hidden\n", id="cursor"),
    pytest.param(b"\x1b]0;title\x07text\n", "text\n", id="title with bell"),
    pytest.param(b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n", "link\n", id="link with terminator"),
    pytest.param(b"\x1bP+q544e\x1b\\done\x1b_apc\x1b\\\n", "done\n", id="device strings"),
    pytest.param(b"\x1b(Bset\x1b=\x1b>\x1b7\x1b8\x1bc\n", "set\n", id="short sequences"),
    pytest.param("\x9b31mred\x9b0m\x9d0;t\x9c!\n".encode(), "red!\n", id="eight-bit controls"),
    pytest.param(b"end \x1b[31", "end [31", id="cut sequence"),
    pytest.param(b"end \x1b", "end ", id="cut at escape"),
    pytest.param(b"10%\r50%\r100%\n", "100%\n", id="progress"),
    pytest.param(b"10%\r50%\r", "50%", id="progress without an end"),
    pytest.param(b"10%\r50%\r\r\n", "50%\n", id="returns before a line end"),
    pytest.param(b"keep\n1\r2\nkeep too\n", "keep\n2\nkeep too\n", id="progress between lines"),
    pytest.param(b"N\x08NA\x08A\n", "NA\n", id="overstruck"),
]


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_at_once(tmp_path: Path, given: bytes, expected: str) -> None:
    assert printed(tmp_path, given) == KeptOutput(expected)


@pytest.mark.parametrize(("given", "expected"), [case for case in CASES if case.id != "overstruck"])
def test_byte_by_byte(tmp_path: Path, given: bytes, expected: str) -> None:
    assert printed(tmp_path, *(bytes([byte]) for byte in given)) == KeptOutput(expected)


@pytest.mark.parametrize("seed", range(20))
def test_the_chunking_does_not_matter(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        b"\x1b[31m",
        b"\x1b]0;",
        b"\x07",
        b"\x1b",
        b"\r",
        b"\n",
        "漢".encode(),
        b"\xff",
        b"text ",
        b"\x9b",
        b"[",
        b"m",
    ]
    given = b"".join(chance.choice(pieces) for _ in range(300))
    chunks, rest = [], given
    while rest:
        size = chance.randint(1, 9)
        chunks.append(rest[:size])
        rest = rest[size:]
    whole = printed(tmp_path, given, kept=1 << 20).text
    assert printed(tmp_path, *chunks, kept=1 << 20).text == whole
    assert not set(whole) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}


def test_streams_do_not_spoil_each_others_characters(tmp_path: Path) -> None:
    output = Output(tmp_path)
    first, second = "ä".encode()
    parts: list[tuple[Stream, bytes]] = [
        ("stdout", bytes([first])),
        ("stderr", b"E"),
        ("stdout", bytes([second])),
        ("stderr", b"\x1b["),
        ("stdout", b"1"),
        ("stderr", b"0mF"),
    ]
    told = [output.feed(stream, data) for stream, data in parts]
    assert told == ["", "E", "ä", "", "1", "F"]
    assert output.finish().text == "Eä1F"
    assert output.size == 9


def test_told_apart_each_stream_is_also_kept_by_itself(tmp_path: Path) -> None:
    output = Output(tmp_path, kept_bytes=300, apart=True)
    for number in range(100):
        output.feed("stdout", b"out %d\n" % number)
        output.feed("stderr", b"err %d\n" % number)
    kept = output.finish()
    assert kept.text.startswith("out 0\nerr 0\n") and "left out" in kept.text
    assert kept.streams["stdout"].splitlines() == [f"out {number}" for number in range(100)]
    assert kept.streams["stderr"].splitlines() == [f"err {number}" for number in range(100)]
    assert Output(tmp_path).finish().streams == {}


def test_the_user_sees_progress_as_it_comes(tmp_path: Path) -> None:
    output = Output(tmp_path)
    told = [output.feed("stdout", chunk) for chunk in (b"10%\r", b"20%\r", b"\nok", b"\r\n")]
    assert told == ["10%", "\r20%", "\nok", "\n"]
    assert output.finish().text == "20%\nok\n"


# --- long output


def test_up_to_the_limit_nothing_is_written(tmp_path: Path) -> None:
    assert printed(tmp_path / "new", b"x" * LIMIT) == KeptOutput("x" * LIMIT)
    assert not (tmp_path / "new").exists()


def test_over_the_limit_head_and_tail_stay_and_a_file_has_all(tmp_path: Path) -> None:
    lines = [f"line {number} é" for number in range(500)]
    everything = "\n".join(lines).encode() + b"\n"
    kept = printed(tmp_path / "new", *(everything[start : start + 7] for start in range(0, len(everything), 7)))
    head, gap, tail = kept.text.partition("[... ")
    missing, _, tail = tail.partition(" bytes left out ...]\n")
    assert gap
    assert everything.decode().startswith(head)
    assert everything.decode().endswith(tail)
    assert head.endswith("\n")
    assert tail.startswith("line ")
    assert int(missing.replace(",", "")) == len(everything) - len(head.encode()) - len(tail.encode())
    assert len(kept.text.encode()) < LIMIT + 100
    assert kept.whole is not None
    assert Path(kept.whole).read_bytes() == everything
    assert stat.S_IMODE(Path(kept.whole).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_the_file_holds_the_harmless_text(tmp_path: Path) -> None:
    kept = printed(tmp_path, b"\x1b[1m1%\r2%\x1b[0m\n" * 1000)
    assert kept.whole is not None
    assert Path(kept.whole).read_text() == "2%\n" * 1000


def test_one_endless_line(tmp_path: Path) -> None:
    kept = printed(tmp_path, *[b"y" * 50_000] * 20)
    assert kept.whole is not None
    assert Path(kept.whole).stat().st_size == 1_000_000
    assert kept.text.startswith("y" * 600)
    assert len(kept.text) < LIMIT + 100


def test_without_a_folder_head_and_tail_are_all(tmp_path: Path) -> None:
    output = Output(None, kept_bytes=LIMIT)
    for _ in range(20):
        output.feed("stdout", b"line of output\n" * 5000)
        if output.wants_flush:
            output.flush()
    kept = output.finish()
    assert kept.whole is None
    assert "bytes left out" in kept.text
    assert kept.text.endswith("line of output\n")
    output.discard()


def test_discarded_output_leaves_no_file(tmp_path: Path) -> None:
    output = Output(tmp_path, kept_bytes=10)
    output.feed("stdout", b"x\n" * 100_000)
    output.flush()
    assert list(tmp_path.iterdir())
    output.discard()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = printed(tmp_path / "file" / "folder", *[b"x\n" * 50_000] * 3)
    assert kept.whole is None
    assert kept.text.startswith("x\n")


@pytest.mark.slow
def test_endless_output_takes_constant_memory(tmp_path: Path) -> None:
    output = Output(tmp_path)
    chunk = b"some text, and some more of it\n" * 2000
    tracemalloc.start()
    try:
        for _ in range(500):
            output.feed("stdout", chunk)
            if output.wants_flush:
                output.flush()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert output.size > 25 << 20
    assert peak < 2 << 20
    assert output.finish().whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [b"\x1b[", b"\x1b]", b"\x1b", b"\x1b]0;x", "\x9d".encode(), "\x9b0".encode(), b"\r", b"a\x08", b"0" * 50, b"\x08"],
)
def test_hostile_output_takes_linear_time(tmp_path: Path, unit: bytes) -> None:
    data = unit * ((1 << 20) // len(unit))
    started = time.perf_counter()
    printed(tmp_path, *(data[start : start + 65536] for start in range(0, len(data), 65536)))
    assert time.perf_counter() - started < 2


WANTED = (b"FAILED tests/test_a.py::test_width - assert 3 == 4", b"not ok 7 - width", b"the value of parse_width is 3")


@pytest.mark.slow
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("chunk", [7, 4096])
def test_what_matters_in_the_middle_of_a_long_output_is_kept(tmp_path: Path, wanted: bytes, chunk: int) -> None:
    everything = b"quiet line\n" * 3000 + b"before\n" + wanted + b"\nafter\n" + b"quiet line\n" * 5000
    output = Output(tmp_path, ["parse_width"], kept_bytes=5 * LIMIT)
    for at in range(0, len(everything), chunk):
        output.feed("stdout", everything[at : at + chunk])
    text = output.finish().text
    assert f"\nbefore\n{wanted.decode()}\nafter\n" in text and len(text.encode()) < 5 * LIMIT + 200
    gaps = [int(count.replace(",", "")) for count in re.findall(r"\[\.\.\. ([\d,]+) bytes left out", text)]
    shown = len(re.sub(r"\[\.\.\. .*\n", "", text).encode())
    assert len(gaps) == 2 and sum(gaps) + shown == len(everything)
