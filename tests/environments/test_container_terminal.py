"""What joins a terminal here with a program in a container, over a fake of an engine."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeagent_lsp.environments import container_terminal

PATH = "/v1.40/exec/abc"


class Engine:
    """Starts one program, which says hello and then everything twice; remembers what it was asked."""

    def __init__(self, status: str = "101 UPGRADED") -> None:
        self.asked: list[str] = []
        self.typed = b""
        self.over = asyncio.Event()
        self._status = status

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().split("content-length: ")[1].split()[0])
            self.asked.append(f"{head.split(' HTTP')[0]} {(await reader.readexactly(length)).decode()}")
            if "/resize" in head:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                return
            writer.write(f"HTTP/1.1 {self._status}\r\n\r\nhel".encode())
            if "101" in self._status:
                await self._work(reader, writer)
            self.over.set()
        finally:
            writer.close()

    async def _work(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"lo\r\n")
        while data := await reader.read(1000):
            self.typed += data
            writer.write(data * 2)
            if b"\x04" in data:
                break


class Joined:
    """The program in a terminal of ours."""

    def __init__(self, engine: Engine, socket: Path) -> None:
        self.engine = engine
        self.ours, theirs = pty.openpty()
        self.size(24, 80)
        os.set_blocking(self.ours, False)
        words = (sys.executable, "-I", "-S", container_terminal.__file__, str(socket), PATH)
        self.process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.said = b""

    def size(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, data: bytes) -> None:
        os.write(self.ours, data)

    async def sees(self, words: bytes) -> None:
        async with asyncio.timeout(10):
            while words not in self.said:
                try:
                    self.said += os.read(self.ours, 1000)
                except BlockingIOError:
                    await asyncio.sleep(0.01)

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, 10)


@asynccontextmanager
async def joined(folder: Path, engine: Engine) -> AsyncGenerator[Joined]:
    async with await asyncio.start_unix_server(engine.meet, folder / "engine"):
        made = Joined(engine, folder / "engine")
        try:
            yield made
        finally:
            made.process.kill()
            made.process.wait(10)
            os.close(made.ours)
            await engine.over.wait()


async def until(engine: Engine, asked: str) -> None:
    async with asyncio.timeout(10):
        while asked not in " ".join(engine.asked):  # noqa: ASYNC110 - what a fake was asked is no event
            await asyncio.sleep(0.01)


async def test_bytes_go_both_ways_unread(tmp_path: Path) -> None:
    engine = Engine()
    async with joined(tmp_path, engine) as shell:
        await shell.sees(b"hello\r\n")
        assert engine.asked[0] == f'POST {PATH}/start {{"Detach": false, "Tty": true}}'
        shell.type(b"\x03\x1a\x11\xc3\xa4\r")
        await shell.sees(b"\x03\x1a\x11\xc3\xa4\r" * 2)
        assert engine.typed == b"\x03\x1a\x11\xc3\xa4\r"
        shell.type(b"\x04")
        assert await shell.ended() == 0


async def test_the_size_is_told_at_first_and_when_it_changes(tmp_path: Path) -> None:
    engine = Engine()
    async with joined(tmp_path, engine) as shell:
        await shell.sees(b"hello")
        await until(engine, f"{PATH}/resize?h=24&w=80")
        shell.size(50, 132)
        await until(engine, f"{PATH}/resize?h=50&w=132")
        shell.type(b"still there")
        await shell.sees(b"still there" * 2)


async def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    engine = Engine()
    async with joined(tmp_path, engine) as shell:
        await shell.sees(b"hello")
        kept, shell.ours = shell.ours, os.open(os.devnull, os.O_RDONLY)
        os.close(kept)
        await shell.ended()
        async with asyncio.timeout(10):
            await engine.over.wait()


@pytest.mark.slow
@pytest.mark.parametrize("status", ["409 Conflict", "500 Internal Server Error", "2"])
async def test_an_engine_that_refuses_is_an_end_with_its_words(tmp_path: Path, status: str) -> None:
    async with joined(tmp_path, Engine(status)) as shell:
        await shell.sees(b"did not start a shell: hel")
        assert await shell.ended() == 1
