"""The bench runs what users run: both send the same requests, task by task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.agents_proxy import CountingProxy
from tests.bench.agents_runs import KEPT_OUT, ROOT, WINDOW, Limit, Ours
from tests.bench.by_hand import Answer, playing
from tests.bench.chat_requests import Asked
from tests.bench.tasks import KINDS, SIZES, Task, draw, lay

TASKS, SEED = 12, 20261127
LIMIT_SECONDS = 120.0
MODEL = "qwen2.5-coder-1.5b-instruct"


class Sent:
    """A model that cannot do any task, and what it was asked since the last time."""

    def __init__(self) -> None:
        self._asked: list[dict[str, Any]] = []

    def answer(self, asked: Asked) -> Answer:
        self._asked.append(asked.body)
        return Answer("I do not know.")

    def take(self, project: Path) -> list[str]:
        """The bodies, with the folder of the project out of them."""
        taken, self._asked = self._asked, []
        # The proxy of the bench asks for the usage of tokens, which changes no answer.
        bodies = [{key: value for key, value in body.items() if key != "stream_options"} for body in taken]
        return [json.dumps(body, sort_keys=True).replace(str(project), "PROJECT") for body in bodies]


def laid(task: Task, folder: Path) -> Path:
    folder.mkdir(parents=True)
    lay(task, folder)
    return folder


def as_a_user(task: Task, project: Path, home: Path) -> None:
    """Do a task as the README says, in the folder of the project, with the settings that `setup` keeps."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(KEPT_OUT)}
    command = [sys.executable, "-m", "codeagent_lsp.cli", "run", "--yes", task.words]
    environment = {**kept, "CODEAGENT_STATE_DIR": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, timeout=LIMIT_SECONDS, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_task_of_the_bench_is_asked_of_the_model_as_a_users_is(tmp_path: Path) -> None:
    sent, home = Sent(), tmp_path / "home"
    home.mkdir()
    with playing(sent.answer, window=WINDOW) as url, CountingProxy(url) as proxy:
        ours = Ours("ours", proxy.url, MODEL, tmp_path / "bench")
        model = {"baseUrl": url, "name": MODEL}
        (home / "settings.json").write_text(json.dumps({f"codeagent.model.{key}": each for key, each in model.items()}))
        asked = 0
        for number, task in enumerate(draw(SEED, TASKS, kinds=KINDS, sizes=SIZES)):
            benched = laid(task, tmp_path / f"b{number}" / "project")
            ours.work(task, benched, Limit(LIMIT_SECONDS))
            in_bench = sent.take(benched)
            used = laid(task, tmp_path / f"u{number}" / "project")
            as_a_user(task, used, home)
            assert sent.take(used) == in_bench, task.words
            asked += bool(in_bench)
    assert asked >= TASKS - 2, "a rename needs no model"
