"""Killed at any point: of the words for later, none is lost and none is there twice."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.store import SessionStore
from tests.examples import volume
from tests.session.killing import lines_until_killed

KILLS = volume(100)


@pytest.mark.slow
def test_words_for_later_outlive_the_process_once(tmp_path: Path) -> None:
    rng = random.Random(11)
    places: Counter[str] = Counter()
    for number in range(KILLS):
        root = tmp_path / str(number)
        root.mkdir()
        lines = lines_until_killed("tests.session.queue.queue_worker:work", root, rng.random() * 0.25)
        session_id = lines[0].split()[1]
        acknowledged = [line.removeprefix("item ") for line in lines[1:-1] if line.startswith("item ")]
        if not acknowledged:
            continue  # nothing may have been stored yet
        found = whereabouts(root / "sessions", session_id)
        for words in acknowledged:
            assert len(found.get(words, ())) == 1, (number, words, found.get(words))
        places.update(place for words in found.values() for place in words)
    wanted = {"said", "task", "heard", "began"}
    assert set(places) == wanted if KILLS == 100 else set(places) <= wanted, places


def whereabouts(folder: Path, session_id: str) -> dict[str, list[str]]:
    """Where each of the user's words is after the process has died, by the words."""
    store = SessionStore(folder)
    session = Session(session_id, store)
    replay(session, store.load(session_id))
    waiting, found = session.context.waiting, dict[str, list[str]]()
    for said in waiting.said.values():
        found.setdefault(said.text, []).append("said")
    for task in waiting.tasks.values():
        found.setdefault(task.task, []).append("task")
    for message in session.context.conversation:
        if message.role == "user" and not message.name and message.content.startswith("word"):
            found.setdefault(message.content, []).append("heard")
    for record in store.load(session_id):
        event = events.from_dict(record)
        if isinstance(event, events.RunStarted):
            found.setdefault(event.task, []).append("began")
            if "heard" in found[event.task] and event.task.startswith("word"):
                found[event.task].remove("heard")  # as a task of its own, it is in the conversation once, too
    return found
