"""Other agents in the bench, each with a scripted model on loopback: what they change and what ends them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.bench.agents import OTHERS
from tests.bench.agents_node import NotFetched, fetched
from tests.bench.agents_proxy import CountingProxy
from tests.bench.agents_results import Ended
from tests.bench.agents_runs import Agent, Limit, ModelServer, Run, run
from tests.bench.boxed import doors
from tests.bench.by_hand import MODEL, Answer, Policy, playing
from tests.bench.chat_requests import Asked
from tests.bench.tasks import Task, lay, solved

SECONDS = 120.0
WINDOW = 32_768
TASK = Task(
    id="add",
    kind="fault",
    size="small",
    words="add in sums.py subtracts: test_sums.py fails. Repair it.",
    files={
        "sums.py": "def add(a, b):\n    return a - b\n",
        "test_sums.py": "import unittest\n\nfrom sums import add\n\n\nclass Sums(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 1), 3)\n",
    },
    tests=("test_sums.py",),
    check=("python", "-m", "unittest", "test_sums"),
    place="sums.py",
    cause="- for +",
)
EDITS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "pi": lambda _: {"path": "sums.py", "edits": [{"oldText": "a - b", "newText": "a + b"}]},
    "opencode": lambda project: {"filePath": str(project / "sums.py"), "oldString": "a - b", "newString": "a + b"},
}


class Script:
    """A model that reads the file, edits it with the agent's own tool, and says so; else it answers with a word."""

    def __init__(self, name: str, project: Path) -> None:
        arguments = EDITS[name](project)
        path = {key: value for key, value in arguments.items() if "ath" in key}
        self._steps = [Answer(calls=[("read", path)]), Answer(calls=[("edit", arguments)]), Answer("add adds now.")]
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Answer:
        if not asked.tools:
            return Answer("A title")
        self.asked.append(asked)
        return self._steps.pop(0) if self._steps else Answer("Done.")


class Endless:
    """A model that looks at the same file for ever."""

    def __init__(self, name: str, project: Path) -> None:
        self._path = {key: value for key, value in EDITS[name](project).items() if "ath" in key}
        self._number = 0

    def __call__(self, asked: Asked) -> Answer:
        self._number += 1
        return Answer(calls=[("bash", {"command": f"echo {self._number}", "description": "counts"})])


@pytest.fixture(params=["pi", "opencode"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def played(
    name: str, policy: Policy, project: Path, folder: Path, *, tokens: int = 0, seconds: float = SECONDS
) -> tuple[Ended, CountingProxy]:
    """Let an agent do the task with a scripted model."""
    try:
        program = fetched(name)
    except NotFetched as error:
        pytest.skip(str(error))
    with (
        playing(policy, window=WINDOW) as url,
        CountingProxy(url, tokens=tokens) as proxy,
        doors(proxy.url, folder) as box,
    ):
        agent: Agent = OTHERS[name](name, ModelServer(proxy.url, MODEL, WINDOW, box), folder / "home", program)
        ended = agent.work(TASK, project, Limit(seconds, proxy.spent))
        counted = proxy.take()
    assert counted.requests > 0, ended.output[-3000:]
    return ended, proxy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    lay(TASK, folder)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_another_agent_does_a_task_with_its_own_tools(name: str, project: Path, tmp_path: Path) -> None:
    script = Script(name, project)
    ended, _ = played(name, script, project, tmp_path)
    assert solved(TASK, project), ended.output[-3000:]
    assert ended.said_done and not (ended.late or ended.spent or ended.crashed or ended.refused), ended
    first = script.asked[0]
    assert {"read", "edit", "bash"} <= first.tools.keys(), "its own tools"
    assert TASK.words in str(first.messages[-1]), "the words and nothing of ours"
    assert len(script.asked) == 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_another_agent_is_ended_when_its_tokens_are_used_up(name: str, project: Path, tmp_path: Path) -> None:
    ended, _ = played(name, Endless(name, project), project, tmp_path, tokens=30_000)
    assert ended.spent and not ended.late and not ended.said_done, ended
    assert not solved(TASK, project)


@pytest.mark.slow
def test_in_a_box_only_given_folders_are_written_and_one_address_is_reached(tmp_path: Path) -> None:
    given, other = tmp_path / "given", tmp_path / "other"
    given.mkdir()
    other.mkdir()
    with (
        playing(lambda _: Answer("Yes.")) as url,
        socket.create_server(("127.0.0.1", 0)) as beside,
        doors(url.removesuffix("/v1"), tmp_path) as box,
    ):
        look = (
            "import pathlib, sys, urllib.request\n"
            "url, port, given, other = sys.argv[1:]\n"
            "print(b'strong' in urllib.request.urlopen(url + '/models', timeout=9).read())\n"
            "pathlib.Path(given, 'file').write_text('')\n"
            "for what in (lambda: urllib.request.urlopen('http://127.0.0.1:' + port, timeout=9),\n"
            "             lambda: pathlib.Path(other, 'file').write_text('')):\n"
            "    try:\n"
            "        print(what())\n"
            "    except OSError as error:\n"
            "        print(type(error).__name__)\n"
        )
        port = str(beside.getsockname()[1])
        command = box.command([sys.executable, "-c", look, url, port, str(given), str(other)], [given])
        ended = run(command, tmp_path, {}, Limit(SECONDS))
    assert ended.output.split() == ["True", "URLError", "OSError"], ended.output
    assert [path.name for path in (*given.iterdir(), *other.iterdir())] == ["file"]
    assert not (tmp_path / "door").exists()


def test_a_proxy_refuses_what_is_asked_when_the_tokens_are_used_up() -> None:
    def ask(url: str) -> int:
        return httpx.post(
            f"{url}/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]}
        ).status_code

    used = {"prompt_tokens": 900, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 870}}
    with playing(lambda _: Answer("Yes.", usage=used)) as url, CountingProxy(url, tokens=100) as proxy:
        assert [ask(proxy.url) for _ in range(3)] == [200, 200, 403], "50 each, those of the cache left out"
        assert proxy.spent.is_set()
        assert proxy.take().requests == 2
        assert not proxy.spent.is_set()
        assert ask(proxy.url) == 200, "the next run"


def test_a_run_is_ended_at_its_tokens_and_says_so(tmp_path: Path) -> None:
    limit = Limit(SECONDS)
    limit.spent.set()
    ended = run(["sleep", "60"], tmp_path, {}, limit)
    assert ended == Run(ended.code, "", ended.seconds, late=False, spent=True)
    assert ended.ended
