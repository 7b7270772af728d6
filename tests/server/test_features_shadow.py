"""Commands of a run over a stock client: on what is unsaved and proposed, isolated, and proposals when they write."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clock import sooner_than
from tests.server.conftest import StartEditor
from tests.server.replies import call, say, write
from tests.server.stock_editor import STOCK, StockEditor
from tests.shadow.rig import needs_overlay

pytestmark = pytest.mark.slow  # whole servers at work

EVENTS = {**STOCK, "experimental": {"codeagent": {"event": True}}}
TEST = """import unittest
from calc import add
from extra import ONE


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, ONE), 2)
"""


def fingerprint(folder: Path) -> str:
    """Names, kinds, modes, times and bytes of everything in a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        found.update(f"{path}|{info.st_mode}|{info.st_mtime_ns}|{info.st_size}\n".encode())
        if path.is_file() and not path.is_symlink():
            found.update(path.read_bytes())
    return found.hexdigest()


def results(editor: StockEditor) -> list[str]:
    """What the tools of the runs gave, oldest first."""
    told = [params for params in editor.notifications("codeagent/event") if params["type"] == "tool_result"]
    return [params["output"] for params in told]


def discard(params: dict[str, Any]) -> str:
    return "Discard"


@pytest.mark.journey
@needs_overlay
def test_tests_fail_on_disk_and_pass_on_the_unsaved_buffer_and_the_staged_file(
    start: StartEditor, workspace: Path
) -> None:
    (workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (workspace / "test_calc.py").write_text(TEST)
    before = fingerprint(workspace)
    editor = start(
        call("run_cmd", command="python3 -m unittest 2>&1 | tail -1"),
        write("extra.py", "ONE = 1\n"),
        call("run_cmd", command="python3 -m unittest 2>&1 | tail -1"),
        say("The tests pass."),
        capabilities=EVENTS,
        choose=discard,
    )
    editor.open(workspace / "calc.py", "def add(a, b):\n    return a + b\n")
    editor.run("codeagent.run", task="make the tests pass")
    first, _, second, checked = results(editor)
    assert "FAILED" in first
    assert "OK" in second
    assert "1 passed" in checked  # what the model says of the tests is looked at
    assert fingerprint(workspace) == before
    assert len(editor.prompts) == 1  # about the changes; none about the commands
    assert editor.close() == 0


@needs_overlay
def test_a_formatter_becomes_a_changeset_that_undoes_cleanly(start: StartEditor, workspace: Path) -> None:
    names = [f"part{number}.txt" for number in range(3)]
    for name in names:
        (workspace / name).write_text(f"{name}: some  words\n\n")
    editor = start(call("run_cmd", command="sed -i 's/  / /' *.txt"), say("Formatted."), capabilities=EVENTS)
    texts = {name: editor.text(workspace / name) for name in names}
    editor.open(workspace / names[0], f"{names[0]}: other  words, not saved\n")
    run_id = editor.command("codeagent.run", task="format")["runId"]
    editor.ended(run_id)
    assert "Apply 3 files, +3 −3?" in editor.prompts[0]["message"]
    assert editor.text(workspace / names[0]) == f"{names[0]}: other words, not saved\n"
    assert editor.text(workspace / names[1]) == f"{names[1]}: some words\n\n"
    editor.command("codeagent.undo", runId=run_id)
    editor.told("Undone")
    assert editor.text(workspace / names[0]) == f"{names[0]}: other  words, not saved\n"
    assert [editor.text(workspace / name) for name in names[1:]] == [texts[name] for name in names[1:]]
    assert editor.close() == 0


@needs_overlay
def test_what_the_user_types_while_a_command_runs_is_kept(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    editor = start(call("run_cmd", command="sed -i 's/five/FIVE/' a.txt; sleep 1"), say("ok"), capabilities=EVENTS)
    uri = editor.open(workspace / "a.txt")
    run_id = editor.command("codeagent.run", task="go")["runId"]
    time.sleep(0.5)
    editor.type(uri, (0, 0), (0, 3), "ONE")
    editor.ended(run_id)
    assert editor.text(workspace / "a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert editor.close() == 0


@needs_overlay
def test_a_file_is_run_as_it_is_in_the_editor(start: StartEditor, workspace: Path) -> None:
    (workspace / "main.py").write_text("print('on disk')\n")
    editor = start(say("unused"), capabilities=EVENTS)
    uri = editor.open(workspace / "main.py", "import sys\nprint('unsaved', *sys.argv[1:])\nsys.exit(3)\n")
    run_id = editor.command("codeagent.runFile", uri=uri, args=["x y"])["runId"]
    end = editor.ended(run_id)
    told = [params for params in editor.notifications("codeagent/event") if params["run_id"] == run_id]
    kinds = [params["type"] for params in told]
    assert kinds[0] == "response_start"
    assert [kind for kind in kinds if kind in ("started", "stdout", "exit")] == ["started", "stdout", "exit"]
    assert next(params["content"] for params in told if params["type"] == "stdout") == "unsaved x y\n"
    assert next(params["exit_code"] for params in told if params["type"] == "exit") == 3
    assert end["message"]
    assert editor.told("exit code 3")
    assert editor.close() == 0


@needs_overlay
def test_cancel_ends_a_command_and_its_children_within_a_second(start: StartEditor, workspace: Path) -> None:
    mark = f"{os.getpid()}{time.monotonic_ns()}"
    command = f"sleep 97.{mark} & setsid sleep 98.{mark} & sleep 99.{mark}"
    editor = start(call("run_cmd", command=command), say("unused"), capabilities=EVENTS)
    run_id = editor.command("codeagent.run", task="wait")["runId"]
    editor.wait_until(lambda: len(running(mark)) >= 3)
    with sooner_than(60, "the command ends by itself"):
        editor.command("codeagent.cancel", runId=run_id)
        editor.ended(run_id)
    editor.wait_until(lambda: running(mark) == [])
    assert editor.close() == 0


@needs_overlay
def test_nothing_outlives_a_server_that_is_killed(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    mark = f"{os.getpid()}{time.monotonic_ns()}"
    editor = start(call("run_cmd", command=f"sleep 97.{mark} & setsid sleep 98.{mark} & sleep 99.{mark}"), say("no"))
    editor.command("codeagent.run", task="wait")
    editor.wait_until(lambda: len(running(mark)) >= 3)
    os.kill(editor.client.process.pid, signal.SIGKILL)
    editor.wait_until(lambda: running(mark) == [])
    (left,) = (tmp_path / "state" / "layers").iterdir()
    os.utime(left, (0, 0))  # a young one could be another server's that is about to lock it
    second = start(call("run_cmd", command="echo fine"), say("ok"), capabilities=EVENTS)
    second.run("codeagent.run", task="again")
    assert "fine" in results(second)[0]
    layers = list((tmp_path / "state" / "layers").iterdir())
    assert len(layers) == 1  # the one in use; the killed server's is gone
    assert second.close() == 0
    assert list((tmp_path / "state" / "layers").iterdir()) == []


def test_without_namespaces_the_level_is_named_and_every_command_asks(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("on disk\n")
    editor = start(
        call("run_cmd", command="cat a.txt; echo new > made.txt; rm -f gone.txt"),
        say("ok"),
        capabilities=EVENTS,
        env={"CODEAGENT_NO_NAMESPACES": "1"},
        choose=lambda params: "Allow once" if "run_cmd" in params["message"] else "Apply",
    )
    editor.open(workspace / "a.txt", "not saved\n")
    editor.run("codeagent.run", task="go")
    assert "run_cmd" in editor.prompts[0]["message"]
    assert "cat a.txt" in editor.prompts[0]["message"]
    (result,) = results(editor)
    assert "not saved" in result
    assert "isolation: copy" in result
    assert editor.text(workspace / "made.txt") == "new\n"
    report = editor.command("codeagent.doctor")
    (commands,) = [item for item in report if item["name"] == "commands"]
    assert commands["detail"].startswith("copy:")
    assert "CODEAGENT_NO_NAMESPACES" in commands["advice"]
    assert editor.close() == 0


def test_a_level_that_does_not_work_is_said_and_never_replaced_by_a_weaker_one(
    start: StartEditor, workspace: Path
) -> None:
    editor = start(
        call("run_cmd", command="echo harm > made.txt"),
        say("ok"),
        capabilities=EVENTS,
        env={"CODEAGENT_NO_NAMESPACES": "1"},
        settings={"shell": {"isolation": "overlay"}},
    )
    editor.run("codeagent.run", task="go")
    (result,) = results(editor)
    assert "overlay" in result
    assert "does not work here" in result
    assert editor.prompts == []
    assert not (workspace / "made.txt").exists()
    assert editor.close() == 0


def test_in_the_real_folder_a_command_always_asks_and_says_so(start: StartEditor, workspace: Path) -> None:
    script = [call("run_cmd", command="echo real > made.txt"), say("ok")]
    editor = start(
        *script,
        capabilities=EVENTS,
        settings={"shell": {"isolation": "direct", "confirm": "never"}, "permissions": {"mode": "bypass"}},
        choose=lambda params: "Deny",
    )
    editor.run("codeagent.run", task="go")
    assert [action["title"] for action in editor.prompts[0]["actions"]] == ["Deny", "Allow once"]
    assert not (workspace / "made.txt").exists()
    assert editor.close() == 0


def test_always_allowed_calls_are_listed_and_revoked(start: StartEditor, workspace: Path) -> None:
    options: dict[str, Any] = {
        "capabilities": EVENTS,
        "env": {"CODEAGENT_NO_NAMESPACES": "1"},
        "choose": lambda params: "Always allow exactly this",
    }
    script = [call("run_cmd", command="make check"), say("ok")]
    first = start(*script, **options)
    first.run("codeagent.run", task="go")
    assert len(first.prompts) == 1
    assert first.close() == 0
    second = start(*script, *script, **options)
    second.run("codeagent.run", task="go")
    assert second.prompts == []
    (kept,) = second.command("codeagent.approvals.list")
    assert (kept["tool"], kept["shown"]) == ("run_cmd", "make check")
    assert second.command("codeagent.approvals.revoke", approvalId=kept["approvalId"]) == {"revoked": 1}
    second.run("codeagent.run", task="go")
    assert len(second.prompts) == 1
    assert second.close() == 0


def running(mark: str) -> list[str]:
    """Command lines of the processes that have `mark` in them, except those that only pass it on."""
    found = []
    for path in (folder / "cmdline" for folder in Path("/proc").glob("[0-9]*")):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"sleep" and mark.encode() in words[1]:
            found.append(words[1].decode())
    return found
