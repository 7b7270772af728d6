"""Prints which modules a run goes through, by `python -m tests.bench.walk`: a task, and a call that asks for approval.

Real servers over real pipes; the model is a script. The first run of a session loads and opens much, so a run before is
not counted.

A module counts when a function of it is called between the command and the end of the run; values and errors that are
only made there count too. Modules are in the order of their first call.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from tests.server import stock_editor
from tests.server.replies import call, edit, say
from tests.server.stock_editor import StockEditor

PACKAGE = str(Path(__file__).resolve().parents[2] / "codeagent_lsp") + os.sep
SETTLE_SECONDS = 4.0  # what begins with the server, such as the first index, is over by then
WALKS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "a task, from the command to the WorkspaceEdit": (edit("a.py", "old", "new"), say("Done.")),
    "a tool call that asks for approval": (call("run_cmd", command="touch made"), say("Done.")),
}


def main() -> None:
    """Walk and print, or be the server that is watched."""
    if sys.argv[1:2] == ["serve"]:
        serve(Path(os.environ["WALK_FILE"]))
        return
    for title, script in WALKS.items():
        modules = walked(script)
        folders = Counter(module.split("/")[0] for module in modules)
        print(f"{title}: {len(modules)} modules ({', '.join(f'{name} {n}' for name, n in folders.most_common())})")
        print("  " + " → ".join(modules))


def walked(script: tuple[Mapping[str, Any], ...]) -> list[str]:
    """Return the modules that a run of this script goes through."""
    stock_editor.SERVER = (sys.executable, "-m", "tests.bench.walk", "serve")
    with tempfile.TemporaryDirectory() as folder:
        seen, workspace = Path(folder) / "seen.json", Path(folder) / "ws"
        workspace.mkdir()
        settings = {"permissions": {"mode": "ask"}, "shell": {"confirm": "always"}}
        editor = StockEditor(
            workspace, Path(folder) / "state", script=(say("Ready."), *script),
            settings=settings, env={"WALK_FILE": str(seen)}, warm=False,
            choose=lambda params: next(
                item["title"] for item in params["actions"] if item["title"] in ("Apply", "Allow once")
            ),
        )  # fmt: skip
        try:
            editor.open(workspace / "a.py", "old\n")
            time.sleep(SETTLE_SECONDS)
            editor.run("codeagent.run", task="What is this?")
            os.kill(editor.client.process.pid, signal.SIGUSR1)
            editor.run("codeagent.run", task="change it")
            os.kill(editor.client.process.pid, signal.SIGUSR2)
            editor.wait_until(seen.exists)
            found: list[str] = json.loads(seen.read_text())
            return found
        finally:
            editor.client.kill()


def serve(file: Path) -> None:
    """Be a server that notes the modules of its calls; SIGUSR1 begins anew, SIGUSR2 writes them to `file`."""
    from codeagent_lsp.cli import main as run  # late: what it imports is not watched

    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            called[name] = None

    def write(number: int, frame: FrameType | None) -> None:
        part = file.with_suffix(".part")
        part.write_text(json.dumps([name.removeprefix(PACKAGE) for name in called if "<" not in name]))
        part.rename(file)

    signal.signal(signal.SIGUSR1, lambda number, frame: called.clear())
    signal.signal(signal.SIGUSR2, write)
    threading.setprofile(note)
    sys.setprofile(note)
    sys.argv = ["codeagent-lsp", "serve"]
    run()


if __name__ == "__main__":
    main()
