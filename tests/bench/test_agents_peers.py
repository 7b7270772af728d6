"""Other agents in the bench, each with a scripted model on loopback: what they change and what ends them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.bench.agents import OTHERS, environment_of
from tests.bench.agents_node import NotFetched, fetched
from tests.bench.agents_proxy import CountingProxy
from tests.bench.agents_results import Ended
from tests.bench.agents_runs import Agent, Limit, ModelServer, Run, run
from tests.bench.boxed import doors
from tests.bench.by_hand import MODEL, Answer, Policy, playing
from tests.bench.chat_requests import Asked
from tests.bench.tasks import Task, lay, solved
from tests.children import command_lines

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
LITTLE = {"pi": 10_000, "opencode": 30_000, "mini": 10_000, "aider": 3_000}
"""Tokens for about three requests."""
RIGHT = "def add(a, b):\n    return a + b\n"
TOOLS = {"pi": {"read", "edit", "write", "bash"}, "opencode": {"read", "edit", "bash", "grep"}}


def shell(command: str) -> Answer:
    """A command as mini asks models for it."""
    return Answer(f"THOUGHT: I go on.\n\n```mswea_bash_command\n{command}\n```")


def steps(name: str, project: Path) -> list[Answer]:
    """The replies of a strong model: it looks, repairs the file in the agent's own way, and ends."""
    place = str(project / "sums.py")
    edit = {"path": "sums.py", "edits": [{"oldText": "a - b", "newText": "a + b"}]}
    change = {"filePath": place, "oldString": "a - b", "newString": "a + b"}
    known = {
        "pi": [
            Answer(calls=[("read", {"path": "sums.py"})]),
            Answer(calls=[("edit", edit)]),
        ],
        "opencode": [Answer(calls=[("read", {"filePath": place})]), Answer(calls=[("edit", change)])],
        "mini": [shell("cat sums.py"), shell("sed -i 's/a - b/a + b/' sums.py")],
        "aider": [Answer(f"sums.py\n```\n{RIGHT}```\n")],
    }
    last = shell("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT") if name == "mini" else Answer("add adds now.")
    return [*known[name], *([] if name == "aider" else [last])]


class Script:
    """A model that replies step by step; requests without the tools of the work are for a title."""

    def __init__(self, name: str, replies: Sequence[Answer]) -> None:
        self._needs_tools = name in TOOLS
        self._replies = list(replies)
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Answer:
        if self._needs_tools and not asked.tools:
            return Answer("A title")
        self.asked.append(asked)
        return self._replies.pop(0) if self._replies else Answer("Done.")


def endless(name: str) -> Policy:
    """A model that runs another command for ever, or writes the wrong file again."""
    numbers = count()

    def reply(_: Asked) -> Answer:
        number = next(numbers)
        if name == "aider":
            return Answer(f"sums.py\n```\ndef add(a, b):\n    return a - b - {number}\n```\n")
        command = f"echo {number}"
        return (
            shell(command)
            if name == "mini"
            else Answer(calls=[("bash", {"command": command, "description": "counts"})])
        )

    return reply


def program_of(name: str) -> str:
    """An agent's program; where it cannot be had the test is left out, and says why."""
    if name in ("aider", "mini"):
        if not (environment_of(name) / "made").exists():
            pytest.skip(
                f"{name} is not here: python -m tests.bench.agents --agents {name} fetches it, which takes minutes"
            )
        return str(environment_of(name) / "bin" / "python")
    try:
        return fetched(name)
    except NotFetched as error:
        pytest.skip(str(error))


@pytest.fixture(params=sorted(OTHERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def played(name: str, policy: Policy, project: Path, folder: Path, *, tokens: int = 0) -> Ended:
    """Let an agent do the task with a scripted model."""
    program = program_of(name)
    with (
        playing(policy, window=WINDOW) as url,
        CountingProxy(url, tokens=tokens) as proxy,
        doors(proxy.url, folder) as box,
    ):
        agent: Agent = OTHERS[name](name, ModelServer(proxy.url, MODEL, WINDOW, box), folder / "home", program)
        ended = agent.work(TASK, project, Limit(SECONDS, proxy.spent))
        counted = proxy.take()
    assert counted.requests > 0, ended.output[-3000:]
    assert not [line for line in command_lines().values() if str(folder / "home") in line], "nothing is left of it"
    return ended


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    lay(TASK, folder)
    return folder


@pytest.mark.slow
@pytest.mark.volume
@pytest.mark.timeout(900)
def test_another_agent_does_a_task_in_its_own_way(name: str, project: Path, tmp_path: Path) -> None:
    replies = steps(name, project)
    script = Script(name, replies)
    ended = played(name, script, project, tmp_path)
    assert solved(TASK, project), ended.output[-3000:]
    assert ended.said_done and not (ended.late or ended.spent or ended.crashed or ended.refused), ended
    assert len(script.asked) == len(replies)
    first = script.asked[0]
    assert TOOLS.get(name, set()) <= first.tools.keys(), "its own tools"
    assert any(TASK.words in str(message) for message in first.messages)


@pytest.mark.slow
@pytest.mark.volume
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(OTHERS.keys() - {"mini"}))  # which asks on until there is a command
def test_another_agent_that_only_asks_has_not_said_that_it_is_done(name: str, project: Path, tmp_path: Path) -> None:
    ended = played(name, Script(name, [Answer("Which file is it?")] * 9), project, tmp_path)
    assert not ended.said_done, ended
    assert not (ended.late or ended.spent or ended.crashed), ended


@pytest.mark.slow
@pytest.mark.volume
@pytest.mark.timeout(900)
def test_another_agent_is_ended_when_its_tokens_are_used_up(name: str, project: Path, tmp_path: Path) -> None:
    ended = played(name, endless(name), project, tmp_path, tokens=LITTLE[name])
    assert ended.spent and not (ended.late or ended.crashed or ended.said_done), ended
    assert not solved(TASK, project)


@pytest.mark.slow
@pytest.mark.volume
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


@pytest.mark.slow
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
