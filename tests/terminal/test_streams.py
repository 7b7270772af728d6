"""Text as it arrives: Markdown in pieces of any size, diffs of every shape, lines from a keyboard."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator

import pytest
from rich.console import Console

from codeagent_lsp.terminal.questions import Keyboard, picked
from codeagent_lsp.terminal.screen import diff_lines, is_diff
from codeagent_lsp.terminal.stage import Blocks, Stage

ANSWERS: dict[str, tuple[str, list[str]]] = {
    "words": ("one\ntwo\n\nthree", ["one\ntwo\n\n", "three"]),
    "many empty lines": ("one\n\n\n\ntwo\n", ["one\n\n", "two\n"]),
    "blanks on an empty line": ("one\n  \t\ntwo", ["one\n  \t\n", "two"]),
    "a fence": ("```py\na\n\nb\n```\nafter", ["```py\na\n\nb\n```\n", "after"]),
    "words before a fence": ("say:\n```\nx\n```\n", ["say:\n", "```\nx\n```\n"]),
    "a fence in a fence": ("````\n```\nx\n```\n````\nend", ["````\n```\nx\n```\n````\n", "end"]),
    "waves": ("~~~\n```\n\n~~~\nend", ["~~~\n```\n\n~~~\n", "end"]),
    "a fence that is not closed": ("```\nx\n\ny\n", ["```\nx\n\ny\n"]),
    "a fence with words is no end": ("```\nx\n```py\ny\n```\n", ["```\nx\n```py\ny\n```\n"]),
    "only empty lines": ("\n\n  \n", []),
    "a list": ("- a\n- b\n\n- c\n", ["- a\n- b\n\n", "- c\n"]),
    "chinese": ("你好。\n\n再见", ["你好。\n\n", "再见"]),
}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("answer", "blocks"), ANSWERS.values(), ids=ANSWERS.keys())
def test_blocks_do_not_depend_on_the_pieces(answer: str, blocks: list[str], size: int) -> None:
    feed, found = Blocks(), list[str]()
    for start in range(0, len(answer), size):
        found += feed.feed(answer[start : start + size])
    found += feed.close()
    assert [block.strip() for block in found] == [block.strip() for block in blocks]
    assert feed.rest == ""


@pytest.mark.parametrize("name", ANSWERS)
def test_a_file_gets_the_answer_as_it_was_written(name: str) -> None:
    answer, _ = ANSWERS[name]
    out = io.StringIO()
    stage = Stage(Console(file=out, width=20))
    for char in answer:
        stage.write(char)
    stage.flush()
    stage.flush()
    assert out.getvalue().split() == answer.split()


@pytest.mark.slow
async def test_a_terminal_shows_the_block_being_written_and_takes_it_away() -> None:
    out = io.StringIO()
    stage = Stage(Console(file=out, width=40, force_terminal=True, legacy_windows=False, color_system=None))
    stage.activity = "reading a.py"
    stage.resume()
    stage.resume()
    stage.write("half a sen")
    await asyncio.sleep(0.25)
    assert "half a sen" in out.getvalue() and "reading a.py" in out.getvalue()
    stage.write("tence\n\n")
    stage.pause()
    stage.pause()
    assert "half a sentence" in out.getvalue()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
    length = out.tell()
    await asyncio.sleep(0.15)
    assert out.tell() == length


@pytest.mark.slow
async def test_a_terminal_shows_the_line_being_printed_and_the_last_ones() -> None:
    out = io.StringIO()
    stage = Stage(Console(file=out, width=40, force_terminal=True, legacy_windows=False, color_system=None))
    stage.activity = "a call with a long line of arguments, and more"
    stage.resume()
    stage.output("".join(f"line {number}\n" for number in range(100)) + " 10 %\r 20 %", str)
    await asyncio.sleep(0.15)
    assert "line 95\n" in out.getvalue().replace("\r", "") and "    line 50\n" not in out.getvalue()
    assert " 20 %" in out.getvalue() and " 10 %" not in out.getvalue()
    assert "a call with a long line of argu… · 0 s" in out.getvalue()
    stage.output("\r 99 %\n", str)
    stage.pause()
    assert "     99 % " in out.getvalue()


# --- diffs


HEAD = "--- a/x\n+++ b/x\n"
DIFFS: dict[str, tuple[str, list[str]]] = {
    "one line": (f"{HEAD}@@ -1 +1 @@\n-a\n+b\n", ["✎ x", "1     - a", "1 + b"]),
    "numbers go on": (f"{HEAD}@@ -9,3 +9,2 @@\n a\n-b\n c\n", ["✎ x", "9   9   a", "10     - b", "11  10   c"]),
    "only added": (f"{HEAD}@@ -3,0 +4,2 @@\n+a\n+b\n", ["✎ x", "4 + a", "5 + b"]),
    "no final newline": (f"{HEAD}@@ -1 +1 @@\n-a\n+b\n\\ No newline at end\n", ["✎ x", "1     - a", "1 + b", "\\ No"]),
    "two files": (f"{HEAD}@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n", ["✎ x", "- a", "+ b", "✎ y"]),
    "blank context": (f"{HEAD}@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", ["✎ x", "1   1   a", "2   2", "3     - b", "3 + c"]),
    "carriage returns": (f"{HEAD}@@ -1 +1 @@\n-a\r\n+b\r\n", ["✎ x", "1     - a", "1 + b"]),
    "tabs": (f"{HEAD}@@ -1 +1 @@\n-\ta\n+\t\tb\tc\n", ["✎ x", "-     a", "+         b   c"]),
    "a name with tricks": ("--- a/x\x1b[2J\n+++ b/x\x1b[2J\n", ["✎ x<U+001B>[2J"]),
    "a rename alone": ("diff --git a/x b/y\nrename from x\nrename to y\n", ["diff", "rename from x", "rename to y"]),
}  # fmt: skip


@pytest.mark.parametrize(("diff", "words"), DIFFS.values(), ids=DIFFS.keys())
def test_diffs(diff: str, words: list[str]) -> None:
    lines = [line.plain.strip() for line in diff_lines(diff)]
    for line, word in zip(lines, words, strict=False):
        assert word.strip() in line
    assert len(lines) >= len(words)
    assert not any(char in line for line in lines for char in "\x1b\r\t")


@pytest.mark.parametrize(
    "words", ["", "--- a rule", "--- a/x\nwords", "+++ b/x\n--- a/x", "diff", "a\n--- a/x\n+++ b/x"]
)
def test_words_are_no_diff(words: str) -> None:
    assert not is_diff(words)


# --- typing


@pytest.fixture
def pipe() -> Iterator[tuple[int, Keyboard]]:
    read, write = os.pipe()
    yield write, Keyboard(read)
    os.close(read)


async def test_lines_in_pieces(pipe: tuple[int, Keyboard]) -> None:
    write, keyboard = pipe
    data = "first\nzweite Zeile ü\n\nlast\n".encode()
    for start in range(len(data)):
        os.write(write, data[start : start + 1])
    os.close(write)
    assert [await keyboard.line() for _ in range(6)] == ["first", "zweite Zeile ü", "", "last", None, None]


async def test_bytes_that_are_no_text_and_an_end_without_a_line(pipe: tuple[int, Keyboard]) -> None:
    write, keyboard = pipe
    os.write(write, b"caf\xe9\nhalf")
    os.close(write)
    assert await keyboard.line() == "caf\ufffd"
    assert await keyboard.line() is None


async def test_waiting_for_a_line_can_be_cancelled_and_nothing_is_lost(pipe: tuple[int, Keyboard]) -> None:
    write, keyboard = pipe
    waiting = asyncio.ensure_future(keyboard.line())
    await asyncio.sleep(0)
    os.write(write, b"par")
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.write(write, b"tial\n")
    os.close(write)
    assert await keyboard.line() == "partial"


CHOICES = ("Deny", "Allow once", "Allow exactly this for the session", "Abbrechen", "允许一次")


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        *[("1", "Deny"), ("5", "允许一次"), (" 2 ", "Allow once"), ("6", None), ("0", None), ("-1", None)],
        *[("d", "Deny"), ("DENY", "Deny"), ("allow", None), ("allow o", "Allow once"), ("allow once", "Allow once")],
        *[("a", None), ("ab", "Abbrechen"), ("允许", "允许一次"), ("y", None), ("yes", None), ("\x1b[A", None)],
        *[("２", "Allow once"), ("²", None), ("once", None), ("denyx", None), ("99999999999999999999", None)],
    ],
)  # fmt: skip
def test_what_a_typed_line_means(typed: str, choice: str | None) -> None:
    assert picked(typed, CHOICES) == choice
