"""Servers that are killed at random moments: what they told is true, and the next one goes on without repeating it."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.records.rotation import read_records
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.store import SessionStore, parse
from tests.examples import volume
from tests.server.replies import say
from tests.server.stock_editor import STOCK, StockEditor
from tests.server.stories import STORIES, Story, plan
from tests.session.fakes import assert_well_formed

POINTS = volume(200, fewer=2)
SLOWEST = 1.0  # seconds to resume
LONGEST_WAIT = 0.15  # seconds between an event and the kill

OURS = {**STOCK, "experimental": {"codeagent": {"event": True}}}
DIRECT = {"shell": {"isolation": "direct"}}
COUNTING = ("step_started", "tool_calls", "file_change", "changes_applied", "run_completed")


@dataclass
class Point:
    """One server and its end."""

    story: Story
    root: Path
    told: list[dict[str, Any]] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    buffers: dict[str, str] = field(default_factory=dict)
    resumed_in: float = 0.0
    went_on: bool = False

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def effects(self) -> Counter[str]:
        """How often each command has had its effect."""
        path = self.root / "effects.log"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def editor(self, *script: dict[str, Any]) -> StockEditor:
        workspace = self.root / "ws"
        workspace.mkdir(parents=True, exist_ok=True)
        return StockEditor(
            workspace, self.state, script=script, settings=DIRECT, capabilities=OURS,
            answers={"window/showMessageRequest": self.story.answer},
        )  # fmt: skip

    def stored(self) -> dict[str, list[dict[str, Any]]]:
        """The records of each session, by its id."""
        return {path.stem: parse(path.read_bytes()) for path in self.state.rglob("sessions/*.jsonl")}


def played(story: Story, root: Path, after: int | None = None, wait: float = 0.0) -> Point:
    """A server at work, killed `wait` seconds after it told of so many events; None: when all is done."""
    point = Point(story, root)
    editor = point.editor(*story.script)
    done = threading.Event()
    killer = threading.Thread(target=kill, args=(editor, after, wait, done))
    killer.start()
    try:
        for task in story.tasks:
            point.run_ids.append(editor.command("codeagent.run", task=task)["runId"])
            editor.client.wait(lambda message: over(message, point), 60)
    except (TimeoutError, OSError):
        assert after is not None, "it never came to its end"
    finally:
        done.set()
        killer.join()
    editor.client.exit_code()
    editor.client.kill()
    point.told = editor.notifications("codeagent/event")
    point.buffers = {uri: document.text for uri, document in editor.buffers.items()}
    return point


def kill(editor: StockEditor, after: int | None, wait: float, done: threading.Event) -> None:
    """Kill its server when it has told of so many events, or when `done` is set."""
    while after is None or len(editor.notifications("codeagent/event")) < after:
        if done.wait(0.002):
            break
    else:
        done.wait(wait)
    os.kill(editor.client.process.pid, signal.SIGKILL)


def over(message: dict[str, Any], point: Point) -> bool:
    """Whether this says that a task is done, or as far as it will get."""
    params = message.get("params") or {}
    if message.get("method") == "window/showMessageRequest":
        return point.story.open_ended and "Which name" in params["message"]
    return (
        message.get("method") == "$/progress"
        and params["token"] == f"codeagent-{point.run_ids[-1]}"
        and params["value"]["kind"] == "end"
    )


# --- what must hold


def assert_nothing_lost(point: Point) -> None:
    """Whatever a client was told, the disk knows."""
    stored = {(name, record["seq"]): record for name, records in point.stored().items() for record in records}
    for event in point.told:
        if not events.EVENT_TYPES[event["type"]].transient:
            kept = stored[event["session_id"], event["seq"]]
            assert (kept["type"], kept["run_id"]) == (event["type"], event["run_id"])
    begun = {record["run_id"] for record in stored.values() if record["type"] == "run_started"}
    assert begun >= set(point.run_ids)


def assert_stores_open(state: Path) -> None:
    """Each file is what it was, but for the line that was being written."""
    for path in state.rglob("*"):
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.name.endswith(".jsonl"):
            lines = path.read_bytes().split(b"\n")[:-1]
            assert sum(map(_broken, lines)) <= 1, path
            assert len(list(read_records(path))) >= len(lines) - 1
        elif path.is_file() and path.read_bytes()[:15] == b"SQLite format 3":
            with closing(sqlite3.connect(path)) as database:
                assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)


def _broken(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def resumed(point: Point, again: StockEditor) -> None:
    """Another server knows it all within a second, and does nothing unasked."""
    for uri, text in point.buffers.items():  # as the editor has them after its own restart
        again._open(uri, text)
    before = point.effects
    for session_id, records in point.stored().items():
        began = time.perf_counter()
        answer = again.command("codeagent.session.resume", sessionId=session_id)
        point.resumed_in = max(point.resumed_in, time.perf_counter() - began)
        assert answer["runs"] == sum(record["type"] == "run_started" for record in records)
        session = Session(session_id, SessionStore(point.root / "elsewhere"))
        replay(session, records)
        assert_well_formed(session.context.conversation)
    assert point.resumed_in < SLOWEST
    again.command("codeagent.memory.show")
    again.command("codeagent.approvals.list")
    again.command("codeagent.pending")
    assert again.edits == []
    assert point.effects == before
    assert [name for name, count in before.items() if count > 1] == []
    assert told(again, *COUNTING) == []


def gone_on(point: Point, again: StockEditor) -> None:
    """The user finishes it: nothing that was done is done again."""
    finished = {event["step_id"] for event in point.told if event["type"] == "step_completed"}
    waiting = [item for item in again.command("codeagent.pending") if item["kind"] == "changes"]
    for item in waiting:
        again.command("codeagent.apply", runId=item["runId"])
        again.told("Applied")
    plans = [item for item in again.command("codeagent.pending") if item["kind"] == "plan"]
    left = plan(point.story.steps)[1 + 3 * (int(plans[0]["stepId"]) - 1) :] if plans else []
    (point.state / "script.json").write_text(json.dumps([*left, say("Welcome back.")]))
    for item in plans:
        again.command("codeagent.plan.retryStep", runId=item["runId"], stepId=item["stepId"])
        assert again.ended(f"{item['runId']}-1")["message"]
        begun = [event["step_id"] for event in told(again, "step_started")]
        assert begun == [str(number) for number in range(int(item["stepId"]), point.story.steps + 1)]
        assert finished.isdisjoint(begun)
        point.went_on = True
        assert {path.name: again.text(path) for path in sorted((point.root / "ws").glob("f*.py"))} == point.story.files
    assert [name for name, count in point.effects.items() if name.removeprefix("step") in finished and count > 1] == []
    assert [name for name, count in point.effects.items() if count > 2] == []
    again.run("codeagent.run", task="go on")
    assert "".join(event["content"] for event in told(again, "token")).endswith("Welcome back.")


def told(editor: StockEditor, *kinds: str) -> list[dict[str, Any]]:
    """The events of these types that a client got."""
    return [event for event in editor.notifications("codeagent/event") if event["type"] in kinds]


def checked(point: Point) -> Point:
    """All of it, after the end of a server."""
    assert_nothing_lost(point)
    assert_stores_open(point.state)
    again = point.editor(say("unused"))
    try:
        resumed(point, again)
        gone_on(point, again)
        assert again.close() == 0
    finally:
        again.client.kill()
    assert_stores_open(point.state)
    return point


# --- the tests


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Point]:
    """The servers that were not killed, by the name of their story."""
    return {story.name: played(story, tmp_path_factory.mktemp("whole")) for story in STORIES}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
@pytest.mark.slow
def test_without_a_kill_all_is_done_once(story: Story, whole: dict[str, Point]) -> None:
    point = checked(whole[story.name])
    texts = {name: (point.root / "ws" / name).exists() for name in story.files}
    assert all(texts.values())
    assert set(point.effects.values()) <= {1}
    assert len(point.told) > len(story.script)


@pytest.mark.slow
def test_what_is_done_twice_or_lost_is_seen(tmp_path: Path) -> None:
    """The checks can fail: an effect too many, an event that the disk does not have, a store that does not open."""
    point = played(STORIES[1], tmp_path)
    with (tmp_path / "effects.log").open("a") as file:
        file.write("one\n")
    again = point.editor(say("unused"))
    with again, pytest.raises(AssertionError):
        resumed(point, again)
    (session,) = point.state.rglob("sessions/*.jsonl")
    whole = session.read_bytes()
    session.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    with pytest.raises((AssertionError, KeyError)):
        assert_nothing_lost(point)
    session.write_bytes(whole.replace(b'"type"', b"type"))
    with pytest.raises(AssertionError):
        assert_stores_open(point.state)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_random_points(tmp_path: Path, whole: dict[str, Point]) -> None:
    chance = random.Random(20)
    counts = [len(whole[story.name].told) for story in STORIES]
    points = []
    for number in range(POINTS):
        which = number % len(STORIES)
        after, wait = chance.randint(0, counts[which]), chance.random() * LONGEST_WAIT
        points.append(checked(played(STORIES[which], tmp_path / str(number), after, wait)))
    print(summary(points))
    assert sum(point.went_on for point in points) > POINTS / 10


def summary(points: list[Point]) -> str:
    """A line for each story."""
    stored, plans = sum(bool(point.stored()) for point in points), sum(point.went_on for point in points)
    lines = [f"{len(points)} points, {stored} with a session, all resumed; {plans} plans gone on with"]
    for story in STORIES:
        mine = [point for point in points if point.story is story]
        kinds = Counter(point.told[-1]["type"] if point.told else "nothing" for point in mine)
        slowest = max(point.resumed_in for point in mine)
        last = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(4))
        lines.append(f"{story.name:25} {len(mine):3} points, slowest resume {slowest:.3f} s, told last: {last}")
    return "\n".join(lines)
