"""Whatever the user decides in whatever order while a run asks, its end tells what is in the files and what waits."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.server.progress import ending
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.workspace.changes.changeset import ApplyOutcome
from tests.session.fakes import World, call, calls, say, until, world

TEXT = "".join(f"line {number}\n" for number in range(12))
STEPS = [{"title": title, "description": title} for title in ("first", "second")]
PLAN = call("create_plan", goal="it", steps=STEPS, estimated_complexity="low")
FIRST = [
    calls(call("edit_file", path="a", old_str=f"line {number}\n", new_str=f"ours {number}\n")) for number in (2, 9)
]
SECOND = calls(call("write_file", path="new", content="new\n"))
SCRIPTS = {
    "one decision": [*FIRST, SECOND, say("Changed.")],
    "a plan": [calls(PLAN), *FIRST, say("First."), SECOND, say("Second.")],
}
OUTCOMES: tuple[ApplyOutcome | None, ...] = (None, None, None, "none", "unknown")
SEEDS, LOTS = 1, 80


class Decisions:
    """A user who decides by prompt and by command, chosen by the seed, until the run has ended."""

    def __init__(self, made: World, seed: int) -> None:
        self.made, self.chosen = made, random.Random(seed)
        self.unknown = False

    async def to_the_end(self, run_id: str) -> events.RunCompleted:
        made = self.made
        while True:
            await until(lambda: run_id not in made.manager.runs.active() or made.inbox.open())
            if run_id not in made.manager.runs.active():
                return made.completed(run_id)
            made.editor.forced = self.chosen.choice(OUTCOMES)
            self.unknown = self.unknown or made.editor.forced == "unknown"
            try:
                await self.chosen.choice(DOES)(self, made.manager.runs.get(run_id).proposal)
            except SessionError:
                pass  # nothing of the kind waits, or can be undone
            for _ in range(5):
                await asyncio.sleep(0)

    async def answer(self, proposal: Proposal) -> None:
        (question, *_) = self.made.inbox.open()
        self.made.inbox.respond(question.request_id, (self.chosen.choice(question.question.choices),))

    async def close(self, proposal: Proposal) -> None:
        self.made.inbox.respond(self.made.inbox.open()[0].request_id, None)

    async def apply_a_hunk(self, proposal: Proposal) -> None:
        await proposal.apply(hunks={self.made.path("a"): frozenset({0})})

    async def apply_a_file(self, proposal: Proposal) -> None:
        await proposal.apply(files=frozenset(proposal.changeset.paths[-1:]))

    async def apply_all(self, proposal: Proposal) -> None:
        await proposal.apply()

    async def discard_a_hunk(self, proposal: Proposal) -> None:
        proposal.discard(hunks={self.made.path("a"): frozenset({0})})

    async def discard_a_file(self, proposal: Proposal) -> None:
        proposal.discard(files=frozenset(proposal.changeset.paths[-1:]))

    async def undo(self, proposal: Proposal) -> None:
        await proposal.undo()

    async def write_in_the_same_lines(self, proposal: Proposal) -> None:
        self.made.open("a", (self.made.text("a") or "").replace("line 2\n", "mine\n"))


DOES: tuple[Callable[[Decisions, Proposal], Awaitable[None]], ...] = (
    Decisions.answer, Decisions.answer, Decisions.close, Decisions.apply_a_hunk, Decisions.apply_a_file,
    Decisions.apply_all, Decisions.discard_a_hunk, Decisions.discard_a_file, Decisions.undo,
    Decisions.write_in_the_same_lines,
)  # fmt: skip


async def ends_truly(folder: Path, kind: str, seed: int) -> None:
    made = world(folder, *SCRIPTS[kind])
    made.open("a", TEXT)
    decisions = Decisions(made, seed)
    run_id = made.manager.start(RunRequest("run", "do it", "do it"))
    done = await decisions.to_the_end(run_id)
    waits = bool(made.manager.runs.get(run_id).proposal.changeset)
    changed = [name for name, mark in (("a", "ours"), ("new", "new")) if mark in (made.text(name) or "")]
    words = ending(done, "en")
    told = words, done.status, done.outcome
    if not decisions.unknown:
        assert [*done.files_changed] == [*map(made.path, changed)] or len(changed) == len(done.files_changed) == 2, told
    assert waits == bool(re.search(r"wait|not known", words)), told
    assert ("Partly" in words) == bool(waits and changed and done.outcome == "partial"), told
    if count := re.search(r"(?:^|\. )Applied (\d+)", words):
        assert int(count[1]) == len(changed) and not waits, told
    if "Nothing is in your files" in words or words.startswith("Discarded"):
        assert not changed, told
    if done.status == "completed":
        assert changed or waits or not done.files_changed, told


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCRIPTS)
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_the_end_is_told_as_it_is(tmp_path: Path, kind: str, seed: int) -> None:
    await ends_truly(tmp_path / "w", kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCRIPTS)
async def test_the_end_is_told_as_it_is_in_any_order(tmp_path: Path, kind: str) -> None:
    for seed in range(SEEDS, LOTS):
        await ends_truly(tmp_path / str(seed) / "w", kind, seed)


@pytest.mark.parametrize("kind", SCRIPTS)
async def test_a_run_of_which_all_was_discarded_is_rejected(tmp_path: Path, kind: str) -> None:
    made = world(tmp_path / "w", *SCRIPTS[kind], says=["Discard", "Discard"])
    made.open("a", TEXT)
    done = await made.run()
    assert (done.status, ending(done, "en")) == ("rejected", "Discarded.")
