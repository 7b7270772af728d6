"""The real embedded model: it starts, calls tools under the grammar, reuses its cache, and leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelError, ModelNotFound, ModelUnreachable
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.llm.model import Model, ModelRequest
from codeagent_lsp.llm.providers.embedded import EmbeddedHost, EmbeddedModel, _Child, engine_installed
from codeagent_lsp.messages import Message, ToolSpec
from tests.examples import WHOLE
from tests.llm.support import TOOLS, collect

real = pytest.mark.skipif(
    not (weights.installed() and engine_installed()),
    reason="needs the extra `local` and `codeagent-lsp model pull`",
)


def tool(name: str, description: str, *keys: str) -> ToolSpec:
    properties = {key: {"type": "string"} for key in keys}
    parameters = {"type": "object", "properties": properties, "required": list(keys)}
    return {"name": name, "description": description, "parameters": parameters}


OFFERED = (
    *TOOLS,
    tool("edit_file", "Replace old text by new text in a file.", "path", "old", "new"),
    tool("grep", "Search the files for a regular expression.", "pattern"),
    tool("run_command", "Run a shell command.", "command"),
)
SYSTEM = Message("system", "You are a coding agent. Do what the user asks with the tools.")
PLAIN = {
    "Read the file src/app.py": "read_file",
    "Search for TODO in the code": "grep",
    "Run the tests with pytest": "run_command",
    "In a.py replace foo by bar": "edit_file",
}
QUESTIONS = {  # each tool, in three languages, with quotes and brackets; the plain ones besides with `--volumes`
    **(PLAIN if WHOLE else {}),
    "What is 2+2? Answer directly.": "",
    "Lies die Datei src/größe.py": "read_file",
    "查找所有包含 Bug 的文件": "grep",
    'Run `git log --format="%h %s" | head -3`': "run_command",
    'In page.html replace <b class="x"> by <strong>': "edit_file",
    "Put 'write tests' and 'fix the bug' on the todo list": "todo",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Model, None]:
    """One loaded model: what comes before the questions is read once."""
    model = await open_model(ModelSettings(provider="embedded"), tmp_path_factory.mktemp("model"))
    yield model
    await model.close()


@real
@pytest.mark.slow
@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_every_reply_of_the_small_model_parses(model: Model) -> None:
    right = 0
    for question, wanted in QUESTIONS.items():
        request = ModelRequest((SYSTEM, Message("user", question)), tools=OFFERED, max_tokens=200)
        shown, reply = await collect(model, request)
        assert reply.problem == "", question
        assert reply.tool_calls or reply.text
        assert shown == ("" if reply.tool_calls else reply.text)
        right += [call.name for call in reply.tool_calls] == ([wanted] if wanted else [])
    assert right >= 0.8 * len(QUESTIONS), "the calls parse, but the model calls the wrong tools"


@real
@pytest.mark.slow
@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_the_prompt_is_taken_from_the_cache(model: Model) -> None:
    """The calls of one conversation: all that was sent or written before is reused, in every turn."""
    messages = [SYSTEM, Message("user", "Read the file f0.py.")]
    earlier = sent = reused = 0
    for turn in range(10 if WHOLE else 4):
        _, reply = await collect(model, ModelRequest(tuple(messages), tools=OFFERED, max_tokens=100))
        usage = reply.usage
        if turn:
            print(f"call {turn + 1}: {usage.cached_tokens} of {usage.prompt_tokens} tokens from the cache")
            assert usage.cached_tokens >= earlier - 2, "all but the last token and the end mark are reused"
            sent, reused = sent + usage.prompt_tokens, reused + usage.cached_tokens
        earlier = usage.prompt_tokens + usage.completion_tokens
        messages.append(Message("assistant", reply.text, tool_calls=reply.tool_calls))
        messages += [Message("tool", f"x = {turn}", tool_call_id=call.id) for call in reply.tool_calls]
        if not reply.tool_calls:
            messages.append(Message("user", f"Read the file f{turn}.py."))
    print(f"{100 * reused / sent:.1f} % of the prompt tokens after the first call")
    assert reused / sent >= (0.95 if WHOLE else 0.9)  # what is new in each turn weighs more in a few
    assert reply.timings["predicted_per_second"] > 0


@real
@pytest.mark.slow
@pytest.mark.model
async def test_the_child_ends_with_the_model_and_comes_back_when_killed() -> None:
    model = EmbeddedModel(EmbeddedHost(weights.weights_path(), 1024).taken())
    assert await model.count_tokens("hello world") == 2
    first = pid_of(model.info.url)
    os.kill(first, 9)
    await asyncio.sleep(0.3)
    assert await model.count_tokens("hello world") == 2
    second = pid_of(model.info.url)
    assert second != first
    await model.close()
    assert not alive(second)


@real
@pytest.mark.slow
@pytest.mark.model
def test_the_child_ends_when_its_parent_is_killed() -> None:
    program = (
        "import asyncio, os\n"
        "from codeagent_lsp.llm.providers.embedded import EmbeddedHost, EmbeddedModel\n"
        "from codeagent_lsp.llm.weights import weights_path\n"
        "async def main():\n"
        "    model = EmbeddedModel(EmbeddedHost(weights_path(), 1024))\n"
        "    await model.ready()\n"
        "    print(model.info.url, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = pid_of(parent.stdout.readline().strip())
        parent.kill()
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


@pytest.mark.slow
async def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF no")
    model = EmbeddedModel(EmbeddedHost(path).taken())
    with pytest.raises(ModelError) as caught:
        await model.ready()
    assert isinstance(caught.value, ModelUnreachable | ModelNotFound)
    await model.close()


async def test_nothing_is_loaded_from_the_folder_where_the_server_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "secrets", "xllamacpp"):
        (tmp_path / f"{name}.py").write_text("open('loaded', 'w')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelUnreachable):
        await _Child.start(tmp_path / "none.gguf", 64)
    assert not (tmp_path / "loaded").exists()


async def test_weights_that_are_not_here_are_told(tmp_path: Path) -> None:
    model = EmbeddedModel(EmbeddedHost(tmp_path / "none.gguf").taken())
    with pytest.raises(ModelNotFound, match=r"model pull|codeagent-lsp\[local\]"):
        await model.count_tokens("x")
    await model.close()


@pytest.mark.parametrize(
    ("engine", "advice"),
    [
        ("raise ImportError('libgomp.so.1: cannot open shared object file: No such file')", "apt-get install libgomp1"),
        ("raise ImportError('no such symbol')", "codeagent-lsp doctor"),
        ("import os; os.abort()", "exit code -6"),
    ],
)
async def test_an_engine_that_cannot_be_loaded_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, advice: str
) -> None:
    (tmp_path / "xllamacpp.py").write_text(engine)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    problem = weights.engine_problem()
    assert problem is not None and advice in problem.localized("en")
    if "abort" not in engine:
        with pytest.raises(ModelUnreachable, match=advice):
            await _Child.start(tmp_path / "none.gguf", 64)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def pid_of(url: str) -> int:
    """The process that listens at a loopback URL (Linux)."""
    port = int(url.rsplit(":", 1)[1])
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inode = next(f[9] for f in map(str.split, lines) if f[1].endswith(f":{port:04X}") and f[3] == "0A")
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if entry.readlink().name == f"socket:[{inode}]":
                return int(entry.parts[2])
        except OSError:
            continue
    raise AssertionError(json.dumps({"port": port}))


HALF_A_HEAD = """
import os, socket
from urllib.parse import urlsplit
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.providers import embedded_server
embedded_server.READ_SECONDS = 1
server = embedded_server.start(str(weights.weights_path()), n_ctx=512, threads=2, key="k")
with socket.create_connection(("127.0.0.1", urlsplit(str(server.listening_address)).port), timeout=20) as client:
    client.sendall(b"GET /health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    assert b" 200 " in client.recv(9999)
    client.sendall(b"GET /health HTTP/1.1\\r\\nHo")
    while client.recv(9999):
        pass
os.write(1, b"closed")
os._exit(0)
"""


SLOTS = """
import json, os, urllib.request
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.providers import embedded_server
server = embedded_server.start(str(weights.weights_path()), n_ctx=512, threads=2, key="k", slots=3)
ask = urllib.request.Request(f"{server.listening_address}/props", headers={"authorization": "Bearer k"})
with urllib.request.urlopen(ask, timeout=20) as answer:
    props = json.load(answer)
os.write(1, json.dumps([props["total_slots"], props["default_generation_settings"]["n_ctx"]]).encode())
os._exit(0)
"""


@real
@pytest.mark.slow
@pytest.mark.model
def test_each_slot_has_the_whole_window() -> None:
    done = subprocess.run([sys.executable, "-c", SLOTS], capture_output=True, timeout=120)
    assert done.stdout.endswith(b"[3, 512]"), (done.stdout, done.stderr[-500:])


@real
@pytest.mark.slow
@pytest.mark.model
def test_half_a_head_on_a_kept_connection_does_not_hold_the_server() -> None:
    done = subprocess.run([sys.executable, "-c", HALF_A_HEAD], capture_output=True, timeout=120)
    assert done.stdout.endswith(b"closed"), done.stderr[-500:]
