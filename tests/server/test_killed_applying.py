"""A server that is killed while accepted changes, an undo or a rewind are on their way into the buffers of an editor:
the next one knows which files may have been changed, says so once, and takes back exactly what was.

Not here: the same without processes, at each step (`tests/session/rewind/test_killed_applying.py`), servers that are
killed at other work (`test_killed.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.store import SessionStore, parse
from codeagent_lsp.workspace.changes.changeset import FileChange
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.files.uris import from_path, to_path
from tests.examples import volume
from tests.server.replies import calls, say
from tests.server.stock_editor import StockEditor

POINTS = volume(300, fewer=2)
LONGEST_WAIT = 0.03  # seconds between a step and the kill
LINES = "# notes:\n" + "".join(f"line {number}\n" for number in range(40))
BEFORE = {"a.py": LINES, "b.py": LINES, "c.py": LINES, "gone.py": "gone\n"}
AFTER = {
    "a.py": LINES.replace("line 2\n", "two\n").replace("line 35\n", "35\nmore\n"),
    "b.py": LINES.replace("line 30\n", ""),
    "c.py": LINES.replace("line 9\n", "nine\n"),
    "made.py": "made\n",
}
EDITS = (
    ("edit_file", {"path": "a.py", "old_str": "line 2\n", "new_str": "two\n"}),
    ("edit_file", {"path": "a.py", "old_str": "line 35\n", "new_str": "35\nmore\n"}),
    ("edit_file", {"path": "b.py", "old_str": "line 30\n", "new_str": ""}),
    ("write_file", {"path": "made.py", "content": "made\n"}),
    ("delete_file", {"path": "gone.py"}),
    ("edit_file", {"path": "c.py", "old_str": "line 9\n", "new_str": "nine\n"}),
)
OPEN = ("a.py", "b.py")


class DyingEditor(StockEditor):
    """Kills its server at a step: before and after each request of the server, edit, and notification of it."""

    left = -1
    wait = 0.0
    killed = False
    typed: dict[str, str]

    def arm(self, step: int, wait: float) -> None:
        """Kill the server so many steps from now, and `wait` seconds later; step 0 is now."""
        self.wait = wait
        self.left = step + 1
        self.step()

    def step(self) -> None:
        """One more step."""
        self.left -= 1
        if self.left == 0:
            self._kill() if self.wait == 0 else threading.Timer(self.wait, self._kill).start()

    def type_in(self, name: str, letter: str) -> None:
        """Type at the end of the notes."""
        place = (0, len("# notes:") + len(self.typed.get(name, "")))
        self.typed[name] = self.typed.get(name, "") + letter
        with contextlib.suppress(OSError):
            self.type(from_path(str(self.workspace / name)), place, place, letter)

    def _kill(self) -> None:
        self.killed = True
        with contextlib.suppress(OSError):
            os.kill(self.client.process.pid, signal.SIGKILL)

    def _apply(self, params: dict[str, Any]) -> dict[str, Any]:
        self.step()
        answer = super()._apply(params)
        self.step()
        return answer

    def _changed(self, uri: str, changes: list[dict[str, Any]]) -> None:
        self.step()
        with contextlib.suppress(OSError):
            super()._changed(uri, changes)
        self.step()

    def _delete(self, uri: str) -> None:
        with contextlib.suppress(OSError):
            super()._delete(uri)
        self.step()

    def _create(self, uri: str) -> None:
        super()._create(uri)
        self.step()

    def _open(self, uri: str, content: str) -> None:
        with contextlib.suppress(OSError):
            super()._open(uri, content)
        self.step()


@dataclass(frozen=True)
class Point:
    """When a server is killed: at which work, step and time. A user who `saves` starts the editor anew as well."""

    number: int
    work: str
    step: int
    wait: float
    types: bool
    saves: bool


def points() -> Iterator[Point]:
    chance = random.Random(61)
    works = itertools.cycle(("apply", "undo", "rewind"))
    for number, work in zip(range(POINTS), works, strict=False):
        at_once = chance.random() < 0.5
        wait = 0.0 if at_once else chance.random() * LONGEST_WAIT
        yield Point(number, work, chance.randint(0, 22), wait, chance.random() < 0.5, chance.random() < 0.4)


def checked(point: Point, folder: Path) -> str:
    """Kill a server at a point, look at all that must hold, and return what the record said of the files."""
    place, state = folder / "ws", folder / "state"
    place.mkdir(parents=True)
    for name, text in BEFORE.items():
        (place / name).write_text(text)
    typed: dict[str, str] = {}
    script = [calls(*EDITS), say("Done.")]
    settings = {"edits": {"apply": "auto"}}
    first = DyingEditor(place, state, script=script, settings=settings)
    first.typed = typed
    with first:
        for name in OPEN:
            first.open(place / name)
        work(point, first)
        first.client.process.wait(10)
        buffers = {uri: document.text for uri, document in first.buffers.items()}
    seen = texts(place, buffers)
    assert_whole(seen, typed)
    run = record(state)
    if point.saves:
        for uri, text in buffers.items():
            Path(to_path(uri) or "").write_text(text)
    second = DyingEditor(place, state, script=[], settings=settings)
    second.typed = typed
    with second:
        for uri, text in buffers.items():
            second.open(Path(to_path(uri) or ""), text)
        unsettled = [path for each in run for path in each.unsettled]
        if unsettled:
            second.told("they may be in")
        for each in run:
            assert_known(each, seen, place)
        second.type_in("a.py", "z")
        if run:
            taken_back(point, second, run[0].run_id)
        wanted = {name: text.replace("# notes:", f"# notes:{typed.get(name, '')}") for name, text in BEFORE.items()}
        with contextlib.suppress(TimeoutError):
            second.wait_until(lambda: texts(place, bodies(second)) == wanted)
        assert texts(place, bodies(second)) == wanted, (point, run)
        again = [each for each in second.notifications("window/showMessage") if "they may be in" in each["message"]]
        assert not again, "it was told before, once"
    return "unknown" if unsettled else "in or out"


def work(point: Point, editor: DyingEditor) -> None:
    """Have the server do what it is killed at."""
    with contextlib.suppress(TimeoutError, OSError):
        if point.work == "apply":
            editor.arm(point.step, point.wait)
        run_id = editor.command("codeagent.run", task="change it")["runId"]
        if point.types:
            editor.type_in("b.py", "x")
        editor.ended(run_id)
        if point.work == "undo":
            editor.arm(point.step, point.wait)
            editor.command("codeagent.undo", runId=run_id)
        elif point.work == "rewind":
            editor.arm(point.step, point.wait)
            editor.command("codeagent.session.rewind", runId=run_id)
        if point.types:
            editor.type_in("a.py", "y")
        editor.wait_until(lambda: editor.killed, 0.5)
    editor._kill()


def taken_back(point: Point, editor: StockEditor, run_id: str) -> None:
    """Ask for it by the user's command; that there is nothing to take back is an answer."""
    command = "codeagent.session.rewind" if point.work == "rewind" else "codeagent.undo"
    editor.client.request("workspace/executeCommand", {"command": command, "arguments": [{"runId": run_id}]})


def bodies(editor: StockEditor) -> dict[str, str]:
    return {uri: document.text for uri, document in list(editor.buffers.items())}


def texts(place: Path, buffers: dict[str, str]) -> dict[str, str]:
    """The files as the user has them."""
    found = {path.name: path.read_text() for path in place.iterdir() if path.is_file()}
    return {**found, **{Path(to_path(uri) or "").name: text for uri, text in buffers.items()}}


def assert_whole(seen: dict[str, str], typed: dict[str, str]) -> None:
    """Each file has its old or its new text, or whole hunks of it, and what was typed."""
    for name in {*BEFORE, *AFTER}:
        notes = f"# notes:{typed.get(name, '')}\n"
        allowed = {BEFORE.get(name), AFTER.get(name)}
        if name == "made.py":
            allowed.add("")  # made, and not yet filled
        elif name in AFTER:
            hunks = len(FileChange(name, BEFORE[name], AFTER[name]).hunks())
            allowed |= {merge.select_hunks(BEFORE[name], AFTER[name], {number}) for number in range(hunks)}
        text = seen.get(name)
        assert text is None or not typed.get(name) or text.startswith(notes), "what was typed is lost"
        assert (text and text.replace(notes, "# notes:\n")) in {*allowed, "" if "" in allowed else None}, (name, text)


def record(state: Path) -> list[RunRecord]:
    """What is stored of the runs, the task first."""
    found: list[RunRecord] = []
    for path in state.rglob("sessions/*.jsonl"):
        session = Session(path.stem, SessionStore(state / "elsewhere"))
        replay(session, parse(path.read_bytes()))
        found += session.context.runs.values()
    return found


def assert_known(run: RunRecord, seen: dict[str, str], place: Path) -> None:
    """Of each file that holds a change of the agent, the record says that it may."""
    if run.kind != "run":
        return
    changed = {name for name in {*BEFORE, *AFTER} if _plain(seen.get(name)) != _plain(BEFORE.get(name))}
    told = {Path(path).name for part in run.applied for path in part.changeset.paths} | {
        Path(path).name for path in run.unsettled
    }
    assert changed <= told, (changed, told)


def _plain(text: str | None) -> str | None:
    return text and text.partition("\n")[2] if text and text.startswith("# notes:") else text


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_on_the_way(tmp_path: Path) -> None:
    all_points = [*points()]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda point: checked(point, tmp_path / str(point.number)), all_points)
        known = Counter(f"{point.work}: {said}" for point, said in zip(all_points, answers, strict=True))
    print(f"{known.total()} points: {dict(known)}")
    assert known.total() == POINTS
