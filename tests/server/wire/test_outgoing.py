"""The writer's queue: order, merging, dropping, the hard limit, and a client that stops reading."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from codeagent_lsp.server.wire.outgoing import Outgoing
from tests.clock import sooner_than


class Pipe:
    """A writer that can be stopped and broken."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.open = threading.Event()
        self.broken = False

    def write(self, data: bytes) -> None:
        self.open.wait(10)
        if self.broken:
            raise BrokenPipeError
        self.written.append(data.partition(b"\r\n\r\n")[2])


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.open.set()


def _outgoing(pipe: Pipe, **limits: Any) -> tuple[Outgoing, list[tuple[str, int]]]:
    reasons: list[tuple[str, int]] = []
    outgoing = Outgoing(pipe.write, lambda reason, code: reasons.append((reason, code)), **limits)
    outgoing.start()
    return outgoing, reasons


def _block(outgoing: Outgoing) -> None:
    """Have the writer hold one message, so that the others wait."""
    outgoing.send(b"first")
    while outgoing.waiting:
        time.sleep(0.001)


def test_messages_are_framed_and_in_order() -> None:
    written: list[bytes] = []
    outgoing = Outgoing(written.append, lambda reason, code: None)
    outgoing.start()
    for number in range(100):
        outgoing.send(b"%d" % number)
    assert outgoing.flush(5)
    assert written == [b"Content-Length: %d\r\n\r\n%d" % (len(str(n)), n) for n in range(100)]


def test_a_waiting_report_is_replaced_in_place(pipe: Pipe) -> None:
    outgoing, _ = _outgoing(pipe)
    _block(outgoing)
    outgoing.send(b"begin", seal="t")
    for number in range(50):
        outgoing.send(b"report %d" % number, merge="t")
        outgoing.send(b"other %d" % number, merge="u")
    outgoing.send(b"end", seal="t")
    outgoing.send(b"report of the next", merge="t")
    pipe.open.set()
    assert outgoing.flush(5)
    assert pipe.written == [b"first", b"begin", b"report 49", b"other 49", b"end", b"report of the next"]


def test_passing_news_is_dropped_oldest_first_and_nothing_else(pipe: Pipe) -> None:
    outgoing, _ = _outgoing(pipe, passing_limit=2000)
    _block(outgoing)
    outgoing.send(b"answer 1")
    for number in range(1000):
        outgoing.send(b"news %04d" % number, passing=True)
    outgoing.send(b"answer 2")
    assert outgoing.waiting < 2200
    pipe.open.set()
    assert outgoing.flush(5)
    assert pipe.written[:2] == [b"first", b"answer 1"]
    assert pipe.written[-2:] == [b"news 0999", b"answer 2"]
    assert 10 < len(pipe.written) < 80


def test_past_the_hard_limit_the_connection_is_given_up(pipe: Pipe) -> None:
    outgoing, reasons = _outgoing(pipe, hard_limit=1000)
    _block(outgoing)
    for _ in range(100):
        outgoing.send(b"x" * 50)
    assert [code for _, code in reasons] == [3]
    assert outgoing.waiting <= 1000
    assert outgoing.flush(0)


def test_one_message_may_be_larger_than_the_limit(pipe: Pipe) -> None:
    outgoing, reasons = _outgoing(pipe, hard_limit=1000)
    pipe.open.set()
    outgoing.send(b"x" * 5000)
    assert outgoing.flush(5)
    assert (len(pipe.written[0]), reasons) == (5000, [])


def test_a_broken_pipe_is_told_once(pipe: Pipe) -> None:
    outgoing, reasons = _outgoing(pipe)
    pipe.broken = True
    outgoing.send(b"a")
    outgoing.send(b"b")
    pipe.open.set()
    assert outgoing.flush(5)
    time.sleep(0.02)
    outgoing.send(b"c")
    assert [code for _, code in reasons] == [1]


def test_flush_gives_up_in_time(pipe: Pipe) -> None:
    outgoing, _ = _outgoing(pipe)
    outgoing.send(b"a")
    with sooner_than(30, "a pipe that nobody reads"):
        assert not outgoing.flush(0.05)


def test_many_threads_may_send() -> None:
    written: list[bytes] = []
    outgoing = Outgoing(written.append, lambda reason, code: None)
    outgoing.start()

    def send() -> None:
        for _ in range(200):
            outgoing.send(b"x")

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outgoing.flush(5)
    assert len(written) == 1600


@pytest.mark.parametrize(("alone", "before"), [(True, [b"1", b"2"]), (False, [b"1", b"2", b"3", b"4"])])
def test_behind_an_answer_nothing_is_written_until_it_is_read(alone: bool, before: list[bytes]) -> None:
    written: list[bytes] = []
    read = threading.Event()
    outgoing = Outgoing(written.append, lambda reason, code: None, lambda: 0 if read.is_set() else 7)
    outgoing.answers_alone = alone
    for number in range(1, 5):
        outgoing.send(b"%d" % number, answer=number == 2)
    outgoing.start()
    while len(written) < len(before):
        time.sleep(0.001)
    time.sleep(0.05)
    assert [data[-1:] for data in written] == before
    read.set()
    assert outgoing.flush(5)
    assert [data[-1:] for data in written] == [b"1", b"2", b"3", b"4"]
