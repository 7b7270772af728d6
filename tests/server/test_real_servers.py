"""Small tasks through model servers that nobody here wrote: litellm's proxy, and llama.cpp's Messages and Responses.

Behind the proxy stand a scripted chat server, for parallel calls and reasoning, and the embedded weights.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.llm import weights
from codeagent_lsp.llm.providers.embedded import engine_installed
from codeagent_lsp.tools.catalogue import BUILTIN
from tests.faults.model_server import free_port
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import Said, serving_aside
from tests.server import litellm_proxy
from tests.server.conftest import StartEditor
from tests.server.litellm_proxy import Unavailable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
real = pytest.mark.skipif(
    not (weights.installed() and engine_installed()),
    reason="needs the extra `local` and `codeagent-lsp model pull`",
)

KEY = "local-" + "k" * 20
START_SECONDS = 120
RUN_SECONDS = 600.0
ENGINE = """
import sys, time
from codeagent_lsp.llm.providers.embedded_server import start
server = start(sys.argv[1], n_ctx=8192, threads=2, port=int(sys.argv[2]), key=sys.argv[3])
time.sleep(3600)
"""

READ = (("read_file", {"path": "calc.py"}), ("read_file", {"path": "test_calc.py"}))
EDIT = (("edit_file", {"path": "calc.py", "old_str": "a - b", "new_str": "a + b"}),)
TASK = (Said("I look. ", "What is wrong?", READ), Said("", "A minus.", EDIT), Said("It adds now.", "Done."))


@dataclass(frozen=True)
class Proxy:
    """litellm's address, the scripted server behind it, and the port on which the weights are expected."""

    url: str
    scripted: FakeChat
    engine_port: int


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    fake = FakeChat()
    port = free_port()
    with serving_aside(fake) as url:
        models = {
            "scripted": ("hosted_vllm/m", f"{url}/v1", "x"),
            "scripted-without-responses": ("lm_studio/m", f"{url}/v1", "x"),
            "local": ("openai/local", f"http://127.0.0.1:{port}/v1", KEY),
        }
        try:
            with litellm_proxy.litellm_proxy(models, tmp_path_factory.mktemp("litellm")) as address:
                yield Proxy(address, fake, port)
        except Unavailable as reason:
            pytest.skip(str(reason))


@pytest.fixture(scope="module")
def port(request: pytest.FixtureRequest) -> int:
    """The port of the weights: the one that the proxy knows, where there is a proxy."""
    try:
        return int(request.getfixturevalue("proxy").engine_port)
    except pytest.skip.Exception:
        return free_port()


@pytest.fixture(scope="module")
def engine(port: int) -> Iterator[str]:
    """llama.cpp's own server with the embedded weights."""
    command = [sys.executable, "-c", ENGINE, str(weights.weights_path()), str(port), KEY]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(f"http://127.0.0.1:{port}/health")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _wait(url: str) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            assert time.monotonic() < end, "llama.cpp does not answer"
            time.sleep(0.2)


def do_task(
    start: StartEditor, workspace: Path, form: str, tries: int = 1, disabled: Sequence[str] = (), **model: Any
) -> None:
    """Let the agent repair a function, and look at the user's buffer; a model of few parameters may need more tries."""
    (workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (workspace / "test_calc.py").write_text("from calc import add\n\nassert add(1, 2) == 3\n")
    editor = start(
        settings={
            "model": {"timeoutSeconds": 600, **model},
            "agent": {"answerForm": form},
            "tools": {"disabled": [*disabled]},
        }
    )
    editor.open(workspace / "calc.py")
    for _ in range(tries):
        end = editor.run("codeagent.run", RUN_SECONDS, task="In calc.py, make add add instead of subtract.")
        if "return a + b" in editor.text(workspace / "calc.py"):
            return
    raise AssertionError(end)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "responses"])
def test_parallel_calls_and_reasoning_through_litellm(
    provider: str, proxy: Proxy, start: StartEditor, workspace: Path
) -> None:
    fake = proxy.scripted
    fake.play_next(*TASK)
    name = "scripted-without-responses" if provider == "responses" else "scripted"
    known: dict[str, Any] = {"baseUrl": proxy.url, "apiKey": litellm_proxy.KEY, "toolCalling": "native"}
    do_task(start, workspace, "tools", provider=provider, name=name, effort="high", **known)
    assert [told for told in fake.refusals if "prompt_cache_key" not in told] == []
    last = fake.bodies[-1]["messages"]
    calls = [call["function"]["name"] for message in last for call in message.get("tool_calls", ())]
    assert calls == ["read_file", "read_file", "edit_file"]
    thoughts = [message["reasoning_content"] for message in last if message.get("reasoning_content")]
    assert thoughts == ([] if provider == "openai" else ["What is wrong?", "A minus."])


@real
@pytest.mark.model
@pytest.mark.parametrize("provider", ["openai", "anthropic", "responses"])
def test_real_weights_behind_litellm(
    provider: str, proxy: Proxy, engine: str, start: StartEditor, workspace: Path
) -> None:
    known: dict[str, Any] = {"baseUrl": proxy.url, "apiKey": litellm_proxy.KEY, "toolCalling": "native"}
    do_task(start, workspace, "whole", tries=3, provider=provider, name="local", **known)


@real
@pytest.mark.model
@pytest.mark.parametrize("provider", ["anthropic", "responses"])
@pytest.mark.parametrize("form", ["whole", "tools"])  # one form after the other: both have the same prompt
def test_llama_cpp_s_own_messages_and_responses(
    provider: str, form: str, engine: str, start: StartEditor, workspace: Path
) -> None:
    """With two tools: the processor of this machine takes minutes to read what the whole set says."""
    model: dict[str, Any] = {"provider": provider, "name": "local", "baseUrl": engine, "apiKey": KEY, "maxTokens": 200}
    others = [tool.traits.name for tool in BUILTIN if tool.traits.name not in ("read_file", "edit_file")]
    do_task(start, workspace, form, tries=3, disabled=others, **model)
