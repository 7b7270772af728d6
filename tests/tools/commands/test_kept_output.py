"""All of a long output is kept without secrets, wherever they lie in it, and the raw file is gone however it ends."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from pathlib import Path

import pytest

from codeagent_lsp.records.masking import Masking
from codeagent_lsp.tools.commands import kept_output
from codeagent_lsp.tools.commands.kept_output import PIECE, keep_whole
from codeagent_lsp.tools.context import Redaction, ToolContext
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.variables.variables import Variable, Variables
from tests.records.formats import TOKENS
from tests.tools.fakes import Bench

LINE = b"a line of an ordinary build, number 17\n"


def secret(seed: int = 1) -> bytes:
    return TOKENS["gitlab"](random.Random(seed)).encode()


def context(folder: Path, variables: Variables | None = None) -> ToolContext:
    kept = OutputStore(folder / "kept")
    parts = (Redaction, Redaction(Masking().hide)), (OutputStore, kept), (Variables, variables)
    return Bench(folder / "work", []).context.having(*parts)


def spooled(folder: Path, data: bytes) -> str:
    path = folder / "spool" / "command-1.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def kept(folder: Path) -> bytes:
    (path,) = (folder / "kept").rglob("*.txt")
    return path.read_bytes()


def spool(folder: Path) -> list[Path]:
    return list((folder / "spool").iterdir())


async def test_a_long_output_without_secrets_is_kept_as_it_is(tmp_path: Path) -> None:
    data = LINE * 20_000 + "ünï ✓ no newline at the end".encode()
    assert await keep_whole(spooled(tmp_path, data), context(tmp_path)) == "@output/1.txt"
    assert kept(tmp_path) == data
    assert spool(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 5, 39, 200])
async def test_a_secret_over_the_border_of_two_pieces_is_masked(tmp_path: Path, before: int) -> None:
    """`before` characters of it lie before the border."""
    frame = b"TOKEN=" + secret() + b"\n"
    filler = LINE * (PIECE // len(LINE) + 1)
    data = filler[: PIECE - before - 1] + b"\n" + frame + filler
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    text = kept(tmp_path)
    assert secret() not in text
    assert text.count(b"<secret:") == 1
    assert text.endswith(filler)


async def test_a_private_key_over_the_border_is_masked(tmp_path: Path) -> None:
    lines = [bytes(random.Random(7).choices(b"ABCDEFGHIJKLMNOPabcdefg0123456789+/", k=64)) for _ in range(24)]
    begin, end = (b"-----%s PRIVATE KEY-----\n" % word for word in (b"BEGIN", b"END"))
    block = begin + b"\n".join(lines) + b"\n" + end
    data = LINE * (PIECE // len(LINE) - 10) + block + LINE * 20
    assert data.index(begin) < PIECE < data.index(end)
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    text = kept(tmp_path)
    assert [line for line in lines if line in text] == []
    assert text.endswith(LINE * 20)


async def test_values_of_variables_are_masked_too(tmp_path: Path) -> None:
    variables = Variables()
    variables.allow(Variable("DEPLOY", "session", "plain words of the user"), network=False)
    data = b"x" * (PIECE - 7) + b"plain words of the user" + b"y" * 100
    await keep_whole(spooled(tmp_path, data), context(tmp_path, variables=variables))
    assert kept(tmp_path) == b"x" * (PIECE - 7) + b"[$DEPLOY]" + b"y" * 100


async def test_a_character_over_the_border_stays_whole(tmp_path: Path) -> None:
    data = b"x" * (PIECE - 1) + "é".encode() + b"\xff end"
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    assert kept(tmp_path).decode() == "x" * (PIECE - 1) + "é\ufffd end"


async def test_without_a_place_nothing_is_kept_and_nothing_stays(tmp_path: Path) -> None:
    nowhere = context(tmp_path).having((OutputStore, None))
    assert await keep_whole(spooled(tmp_path, b"TOKEN=" + secret()), nowhere) == ""
    assert spool(tmp_path) == []


async def test_a_disk_that_refuses_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("not a folder")
    assert await keep_whole(spooled(tmp_path, LINE * 10), context(tmp_path)) == ""
    assert spool(tmp_path) == []


async def test_a_file_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    assert await keep_whole(str(tmp_path / "missing.txt"), context(tmp_path)) == ""


async def test_cancelled_in_the_middle_nothing_stays(tmp_path: Path) -> None:
    here, reached = context(tmp_path), asyncio.Event()
    loop, hide = asyncio.get_running_loop(), here.redaction.hide

    def slow(text: str) -> str:
        loop.call_soon_threadsafe(reached.set)
        return hide(text)

    work = asyncio.create_task(keep_whole(spooled(tmp_path, LINE * 200_000), here.having((Redaction, Redaction(slow)))))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert spool(tmp_path) == []
    assert not (tmp_path / "kept").exists()


async def test_what_is_kept_is_read_by_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_output, "PIECE", 100)  # pieces of any size give the same
    data = b"".join(b"key_%d = '%s'\n" % (seed, secret(seed)) for seed in range(50))
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    (path,) = (tmp_path / "kept").rglob("*.txt")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().count(b"<secret:") == 50
    assert [seed for seed in range(50) if secret(seed) in path.read_bytes()] == []


@pytest.mark.slow
async def test_memory_does_not_grow_with_the_output(tmp_path: Path) -> None:
    here, file = context(tmp_path), spooled(tmp_path, LINE * ((8 << 20) // len(LINE)))
    tracemalloc.start()
    try:
        await keep_whole(file, here)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept(tmp_path)) > 7 << 20
    assert peak < 8 * PIECE + (2 << 20)
