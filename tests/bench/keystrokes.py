"""What a build of the index costs the one who types: `python -m tests.bench.keystrokes [--files 10000]`.

One server on a folder of generated files; a keystroke is a change of an open buffer and a request for code actions
behind it, fifty a second, so its time is what the server needs to take the change in and to answer. First with nothing
else going on, then while the index of all files is built anew, then again without. Only the relation of the rows means
something: the workers of a build share the processors with whoever measures.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.index_build import generate
from tests.bench.startup import TEXT, one_code_action
from tests.server.stock_editor import StockEditor

PAUSE = 0.02


def main() -> None:
    """Print a row for each situation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--strokes", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place, "workspace")
        workspace.mkdir()
        generate(workspace, options.files)
        (workspace / "typed.py").write_text(TEXT)
        with StockEditor(workspace, Path(place, "state")) as editor:
            _measure(editor, editor.open(workspace / "typed.py"), options.strokes)


def _measure(editor: StockEditor, uri: str, strokes: int) -> None:
    _wait(editor, "ready")
    _print("nothing else", _typed(editor, uri, strokes, lambda: True))
    editor.client.start("workspace/executeCommand", {"command": "codeagent.index.rebuild", "arguments": [{}]})
    _wait(editor, "building")
    begun = time.perf_counter()
    seconds = _typed(editor, uri, 1_000_000, _Building(editor))
    _print("while it builds", seconds)
    print(f"the build took {time.perf_counter() - begun:.1f} s beside the typing")
    _wait(editor, "ready")
    _print("nothing else", _typed(editor, uri, strokes, lambda: True))


def _typed(editor: StockEditor, uri: str, most: int, goes_on: Callable[[], bool]) -> list[float]:
    """The seconds of each keystroke; `goes_on` is asked before every tenth."""
    seconds: list[float] = []
    for number in range(most):
        if number % 10 == 0 and not goes_on():
            break
        time.sleep(PAUSE)
        line = number * 7 % 900
        begun = time.perf_counter()
        editor.type(uri, (line, 0), (line, 0), "x")
        one_code_action(editor.client, uri, line)
        seconds.append(time.perf_counter() - begun)
    return seconds


class _Building:
    """Whether the index is being built, asked of the server without waiting for its answer: it is typed meanwhile."""

    def __init__(self, editor: StockEditor) -> None:
        self._client = editor.client
        self._asked: int | None = None

    def __call__(self) -> bool:
        if self._asked is None:
            status = {"command": "codeagent.index.status", "arguments": [{}]}
            self._asked = self._client.start("workspace/executeCommand", status)
        try:
            answer = self._client.response(self._asked, 0)
        except TimeoutError:
            return True
        self._asked = None
        return bool(answer["result"]["state"] == "building")


def _state(editor: StockEditor) -> str:
    state: str = editor.command("codeagent.index.status")["state"]
    return state


def _wait(editor: StockEditor, wanted: str) -> None:
    end = time.monotonic() + 900
    while _state(editor) != wanted:
        assert time.monotonic() < end, f"the index never was {wanted}"
        time.sleep(0.01)


def _print(title: str, seconds: list[float]) -> None:
    ordered = sorted(each * 1000 for each in seconds)
    p99 = ordered[int(len(ordered) * 0.99)]
    print(
        f"{title:>16}: {len(ordered)} keystrokes, ms: p50 {statistics.median(ordered):.2f}  p99 {p99:.2f}"
        f"  longest {ordered[-1]:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
