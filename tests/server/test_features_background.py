"""Commands in the background of a run, in a stock editor: told, and ended with the run, a cancel, the server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.children import command_lines
from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.shadow.rig import needs_overlay

pytestmark = [pytest.mark.slow, needs_overlay]

DAEMON = "(setsid sh -c 'trap \"\" TERM HUP; sleep {0}; :' </dev/null >/dev/null 2>&1 &); echo serving; sleep {0}"


def running(mark: str) -> bool:
    return any(mark in line for line in command_lines().values())


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def test_it_is_reached_what_it_wrote_is_proposed_and_it_ends_with_the_run(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("saved\n")
    editor = start(
        call("run_cmd", command=DAEMON.format("871.5"), background=True, ready="serving"),
        call("run_beside", command="cp a.txt b.txt", id="bg1"),
        call("stop_command", id="bg1"),
        say("Seen."),
    )
    uri = editor.open(workspace / "a.txt")
    editor.type(uri, (0, 0), (0, 5), "unsaved")
    editor.run("codeagent.run", task="try the server")
    assert [buffer.text for uri, buffer in editor.buffers.items() if uri.endswith("/b.txt")] == ["unsaved\n"]
    markdown = editor.command("codeagent.session.export")["markdown"]
    assert markdown.index("run_cmd") < markdown.index("run_beside") < markdown.index("Seen.")
    until(lambda: not running("871.5"))
    assert editor.close() == 0


def test_a_cancel_ends_it(start: StartEditor) -> None:
    editor = start(
        call("run_cmd", command=DAEMON.format("872.5"), background=True, ready="serving"),
        {"text": "Slow.", "delay": 60},
    )
    run_id = editor.command("codeagent.run", task="try the server")["runId"]
    until(lambda: running("872.5"))
    editor.command("codeagent.cancel", runId=run_id)
    assert "ancelled" in editor.ended(run_id)["message"]
    until(lambda: not running("872.5"))
    assert editor.close() == 0


def test_kill_minus_nine_of_the_server_leaves_nothing(start: StartEditor) -> None:
    """Two of them, with daemons that ignore signals, and one beside: all end with the server."""
    editor = start(
        call("run_cmd", command=DAEMON.format("873.5"), background=True, ready="serving"),
        call("run_cmd", command=DAEMON.format("874.5"), background=True, ready="serving"),
        call("run_beside", command="sleep 875.5", id="bg2"),
        say("Never."),
    )
    editor.command("codeagent.run", task="try the server")
    until(lambda: running("875.5"))
    os.kill(editor.client.process.pid, signal.SIGKILL)
    until(lambda: not any(running(mark) for mark in ("873.5", "874.5", "875.5")))
