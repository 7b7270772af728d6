"""`memory.json`, and when a session is read for it: after its end or in a rest, never beside a run."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import ModelNotFound
from codeagent_lsp.llm.model import Model
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.memory import remembering
from codeagent_lsp.session.memory.remembering import MAX_WAITING, MemoryEntry, MemoryStore, Remembering, id_of
from codeagent_lsp.session.store import SessionStore
from tests.session.fakes import say, until


def entry(text: str) -> MemoryEntry:
    return MemoryEntry(id_of(text), "decision", text, "because", "s1", "2026-01-01")


def answer(*texts: str) -> ScriptedReply:
    return say(json.dumps([{"kind": "decision", "text": text, "reason": "so"} for text in texts]))


class Mind:
    """A memory over sessions written by hand."""

    def __init__(
        self, folder: Path, *replies: ScriptedReply, after_run: float = 0.0, after_session: float = 0.0
    ) -> None:
        self.on = True
        self.store = MemoryStore(folder / "memory.json", lambda: self.on)
        self.sessions = SessionStore(folder / "sessions")
        self.model: Model = ScriptedModel(replies)
        self.fails: Exception | None = None
        self.remembering = Remembering(
            self.store, self.sessions, self._open, after_run=after_run, after_session=after_session
        )

    async def _open(self) -> Model:
        if self.fails is not None:
            raise self.fails
        return self.model

    @property
    def asked(self) -> list[str]:
        assert isinstance(self.model, ScriptedModel)
        return [request.messages[-1].content for request in self.model.requests]

    @property
    def texts(self) -> list[str]:
        return [found.text for found in self.store.entries()]

    def session(self, session_id: str, seq: int = 1, task: str = "Use tabs, please.", said: str = "I do.") -> None:
        start = events.RunStarted(task=task, title=task, kind="run", session_id=session_id, seq=seq)
        self.sessions.append(session_id, events.to_dict(start))
        message = {"role": "assistant", "content": said}
        told = events.MessageAdded(message=message, session_id=session_id, seq=seq + 1)
        self.sessions.append(session_id, events.to_dict(told))

    def ended(self, session_id: str) -> None:
        self.remembering.observe(events.RunCompleted(session_id=session_id, run_id="r"))

    async def settled(self) -> None:
        await until(lambda: not [task for task in asyncio.all_tasks() if task.get_name() == "memory"])


# --- the file


def test_entries_are_kept_joined_and_forgotten(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "state" / "memory.json")
    assert store.entries() == ()
    assert store.forget() == 0
    store.add([entry("We use tabs."), entry("We test with pytest.")])
    again = MemoryStore(tmp_path / "state" / "memory.json")
    assert [item.text for item in again.entries()] == ["We use tabs.", "We test with pytest."]
    assert (tmp_path / "state" / "memory.json").stat().st_mode & 0o777 == 0o600
    assert again.forget("nothing") == 0
    assert again.forget(id_of("We use tabs.")) == 1
    assert [item.text for item in store.entries()] == ["We test with pytest."]
    assert store.forget() == 1
    assert store.entries() == ()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"entries": 3}', '{"entries": [3, {}], "seen": 3, "waiting": 3}', "[" * 5000]
)
def test_a_damaged_file_is_no_memory_and_can_be_written(tmp_path: Path, content: str) -> None:
    file = tmp_path / "memory.json"
    file.write_text(content)
    store = MemoryStore(file)
    assert (store.entries(), store.waiting(), store.read_up_to("s")) == ((), (), 0)
    store.wait(["s"])
    store.add([entry("We use tabs.")])
    store.done("s", 7)
    assert ([item.text for item in store.entries()], store.waiting(), store.read_up_to("s")) == (
        ["We use tabs."],
        (),
        7,
    )


def test_what_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = MemoryStore(tmp_path / "file" / "memory.json")
    store.add([entry("We use tabs.")])
    store.wait(["s"])
    assert store.entries() == ()


def test_only_a_few_sessions_wait(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "memory.json")
    store.wait(str(number) for number in range(20))
    assert len(store.waiting()) == MAX_WAITING
    assert store.waiting()[-1] == "19"


def test_off_means_nothing_is_offered_but_all_can_be_seen(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "memory.json", lambda: False)
    store.add([entry("We use tabs.")])
    assert store.offered() == ()
    assert len(store.entries()) == 1


# --- when


async def test_a_session_is_read_once_and_then_only_what_is_new(tmp_path: Path) -> None:
    mind = Mind(tmp_path, answer("The user wants tabs."), answer("They deploy on Fridays."))
    mind.session("s1")
    mind.ended("s1")
    await mind.settled()
    assert mind.texts == ["The user wants tabs."]
    assert "user: Use tabs, please.\nassistant: I do." in mind.asked[0]
    (found,) = mind.store.entries()
    assert found.session == "s1"
    assert len(found.date) == 10
    mind.ended("s1")
    await mind.settled()
    assert len(mind.asked) == 1
    mind.session("s1", 10, "Deploy on Fridays.")
    mind.ended("s1")
    await mind.settled()
    assert mind.texts == ["The user wants tabs.", "They deploy on Fridays."]
    assert "Use tabs" not in mind.asked[1]
    assert "- The user wants tabs." in mind.asked[1]


async def test_a_run_that_begins_stops_it_and_a_rest_takes_it_up(tmp_path: Path) -> None:
    mind = Mind(tmp_path, replace(answer("Never finished at all."), delay=30.0), answer("The user wants tabs."))
    mind.session("s1")
    mind.ended("s1")
    await until(lambda: mind.asked)
    mind.remembering.observe(events.RunStarted(session_id="s1"))
    await mind.settled()
    assert mind.texts == []
    mind.ended("s1")
    await mind.settled()
    assert mind.texts == ["The user wants tabs."]


async def test_another_session_is_the_end_of_the_one_before(tmp_path: Path) -> None:
    mind = Mind(tmp_path, answer("The user wants tabs."), after_run=500.0)
    mind.session("s1")
    mind.ended("s1")
    await asyncio.sleep(0)
    assert mind.asked == []
    mind.remembering.session_ended()
    await mind.settled()
    assert mind.texts == ["The user wants tabs."]


@pytest.mark.slow
async def test_leaving_is_quick_and_the_next_server_reads_what_was_left(tmp_path: Path) -> None:
    mind = Mind(tmp_path, replace(answer("Too late for this."), delay=30.0))
    mind.session("s1")
    mind.ended("s1")
    await until(lambda: mind.asked)
    began = time.monotonic()
    await mind.remembering.close()
    assert time.monotonic() - began < 10, "the model takes thirty"
    await mind.settled()
    assert mind.store.waiting() == ("s1",)
    mind.sessions.close()
    again = Mind(tmp_path, answer("The user wants tabs."), answer("Nothing of the kind."))
    again.session("s2", said="")
    again.ended("s2")
    await again.settled()
    assert again.texts == ["The user wants tabs."]
    assert again.store.waiting() == ()
    await again.remembering.close()


async def test_leaving_waits_a_moment_for_what_is_nearly_done(tmp_path: Path) -> None:
    mind = Mind(tmp_path, replace(answer("The user wants tabs."), delay=0.1))
    mind.session("s1")
    mind.ended("s1")
    await until(lambda: mind.asked)
    await mind.remembering.close()
    assert mind.texts == ["The user wants tabs."]
    assert mind.store.waiting() == ()


async def test_leaving_without_anything_begun_asks_nobody(tmp_path: Path) -> None:
    mind = Mind(tmp_path, after_run=500.0)
    mind.session("s1")
    mind.ended("s1")
    await mind.remembering.close()
    await mind.settled()
    assert mind.asked == []
    assert mind.store.waiting() == ("s1",)


async def test_switched_off(tmp_path: Path) -> None:
    mind = Mind(tmp_path)
    mind.on = False
    mind.session("s1")
    mind.ended("s1")
    await mind.remembering.close()
    await mind.settled()
    assert mind.asked == []
    assert not (tmp_path / "memory.json").exists()


async def test_secrets_are_neither_shown_to_the_model_nor_kept(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    mind = Mind(tmp_path, answer(f"The token is {secret}.", "The user wants tabs."))
    mind.session("s1", task=f"Use {secret} to log in.")
    mind.ended("s1")
    await mind.settled()
    assert mind.texts == ["The user wants tabs."]
    assert secret not in mind.asked[0]
    assert secret not in (tmp_path / "memory.json").read_text()


@pytest.mark.parametrize("problem", [ModelNotFound("run.internal"), RuntimeError("odd")])
async def test_without_a_model_it_is_tried_again_later(tmp_path: Path, problem: Exception) -> None:
    mind = Mind(tmp_path, answer("The user wants tabs."))
    mind.fails = problem
    mind.session("s1")
    mind.ended("s1")
    await mind.settled()
    assert mind.texts == []
    mind.fails = None
    mind.ended("s1")
    await mind.settled()
    assert mind.texts == ["The user wants tabs."]


async def test_a_deleted_session_and_one_without_words(tmp_path: Path) -> None:
    mind = Mind(tmp_path, answer("Never asked for."))
    mind.ended("gone")
    mind.session("quiet", said=" ")
    mind.ended("quiet")
    await mind.settled()
    assert mind.asked == []
    await mind.remembering.close()
    assert mind.store.waiting() == ()


async def test_it_ends_at_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "WORK_SECONDS", 0.05)
    mind = Mind(tmp_path, replace(answer("Too late for this."), delay=30.0))
    mind.session("s1")
    mind.ended("s1")
    await mind.settled()
    assert mind.texts == []
