"""How long it takes until the next edit is offered: `python -m tests.bench.next_edit_offer [--files N] [--rounds N]`.

From the last key of the second edit to the server's wish that lenses are asked for, the pause in typing included, in
a workspace of so many generated files of which fourteen have the place. An editor with its own server, over the wire.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
from pathlib import Path

from tests.index.workspaces import many, write
from tests.server.stock_editor import STOCK, StockEditor

PLACES = 14


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2500)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name) / "ws"
        workspace.mkdir()
        many(workspace, options.files)
        uses = {f"use/u{n}.py": f"from lib import fetch\n\nvalue{n} = fetch({n})\n" for n in range(PLACES)}
        write(workspace, uses)
        print("ms:", ", ".join(f"{1000 * seconds:.0f}" for seconds in measured(workspace, options.rounds)))


def measured(workspace: Path, rounds: int) -> list[float]:
    """Return the seconds of each round; the edits are taken back in between."""
    capabilities = copy.deepcopy(STOCK)
    capabilities["workspace"]["codeLens"] = {"refreshSupport": True}
    refreshed: list[float] = []
    answers = {"workspace/codeLens/refresh": lambda params: refreshed.append(time.perf_counter())}
    found = []
    with StockEditor(workspace, workspace.parent / "state", capabilities=capabilities, answers=answers) as editor:
        editor.command("codeagent.index.rebuild")
        editor.wait_until(lambda: editor.command("codeagent.index.status")["state"] == "ready", 300)
        uris = [editor.open(workspace / f"use/u{number}.py") for number in range(2)]
        for _ in range(rounds):
            for old, new in (("", ", 7"), (", 7", "")):
                refreshed.clear()
                for uri in uris:
                    end = len(editor.buffers[uri].text.split("\n")[2]) - 1
                    editor.type(uri, (2, end - len(old)), (2, end), new)
                began = time.perf_counter()
                editor.wait_until(lambda: bool(refreshed), 30)
                if new:
                    found.append(refreshed[0] - began)
    return found


if __name__ == "__main__":
    main()
