"""What other programs changed is decided about hunk by hunk; nothing that the user typed is ever lost."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp import events
from codeagent_lsp.session.foreign_runs import ForeignProposal
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.text.position import split_lines
from tests.examples import examples
from tests.session.foreign import Desk

TEXT = "one\n2\n3\nfour\n5\n6\nseven\n"
OUTSIDE = TEXT.replace("one", "ONE").replace("seven", "SEVEN")


async def test_one_hunk_is_taken_back_and_the_rest_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT)
    await desk.outside(a=OUTSIDE)
    first, _ = desk.hunks("a")
    await desk.revert("a", first)
    assert desk.text("a") == TEXT.replace("seven", "SEVEN")
    assert desk.path("a").read_text() == OUTSIDE  # the user saves when they like
    (second,) = desk.hunks("a")
    await desk.keep("a", second)
    assert not desk.waits
    await desk.save("a")
    assert desk.path("a").read_text() == TEXT.replace("seven", "SEVEN")
    assert not desk.waits


async def test_keeping_writes_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT, b="bye\n")
    await desk.outside(a=OUTSIDE, b=None, c="new\n")
    assert {each.kind for each in desk.waits} == {"edit", "delete", "create"}
    applied = await desk.proposal.apply()
    assert (applied.outcome, len(applied.done.paths)) == ("full", 3)
    assert not desk.editor.labels
    assert not desk.waits


async def test_new_deleted_and_renamed_files_are_taken_back_and_brought_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(old=TEXT)
    await desk.outside(old=None, new=TEXT)
    await desk.proposal.revert()
    assert (desk.text("old"), desk.text("new")) == (TEXT, None)
    assert not desk.waits
    await desk.proposal.undo()
    assert (desk.text("old"), desk.text("new")) == (None, TEXT)


async def test_an_undo_brings_back_what_was_taken_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT)
    await desk.outside(a=OUTSIDE)
    await desk.proposal.revert()
    desk.types("a", f"typed\n{TEXT}")
    await desk.proposal.undo()
    assert desk.text("a") == f"typed\n{OUTSIDE}"


async def test_later_changes_join_and_what_is_changed_back_goes(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT, b="b\n")
    await desk.outside(a=OUTSIDE)
    await desk.outside(b="B\n")
    assert len(desk.runs) == 1
    assert len(desk.waits.files) == 2
    await desk.outside(a=TEXT)
    assert [each.path for each in desk.waits] == [str(desk.path("b"))]
    await desk.outside(b="b\n")
    assert not desk.waits


async def test_what_was_taken_back_stays_so_when_more_is_changed_outside(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT)
    await desk.outside(a=OUTSIDE)
    await desk.revert("a", desk.hunks("a")[0])
    await desk.outside(a=OUTSIDE.replace("four", "FOUR"))
    assert desk.waits.files[0].text == TEXT.replace("seven", "SEVEN").replace("four", "FOUR")


async def test_unsaved_text_is_merged_with_what_is_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT)
    desk.opens("a")
    desk.types("a", TEXT.replace("four", "four\ntyped"))
    await desk.outside(a=OUTSIDE)
    await desk.proposal.apply()
    assert desk.text("a") == OUTSIDE.replace("four", "four\ntyped")
    assert not desk.waits


async def test_unsaved_text_in_the_same_lines_is_a_conflict(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT)
    desk.opens("a")
    desk.types("a", TEXT.replace("one", "mine"))
    await desk.outside(a=OUTSIDE)
    applied = await desk.proposal.apply()
    assert applied.outcome == "partial"
    assert desk.text("a") == TEXT.replace("one", "mine").replace("seven", "SEVEN")
    (conflict,) = desk.proposal.conflicts()
    assert (conflict.line, conflict.ours, conflict.theirs) == (1, "ONE\n", "mine\n")
    laid = desk.proposal.onto_present({str(desk.path("a"))})
    await desk.proposal.apply(hunks=laid)
    assert desk.text("a") == OUTSIDE
    assert not desk.waits


async def test_what_was_typed_over_a_change_from_outside_is_asked_about(tmp_path: Path) -> None:
    for over in (False, True):
        desk = Desk(tmp_path / f"w{over}")
        desk.has(a=TEXT)
        await desk.outside(a=OUTSIDE)
        desk.opens("a")
        desk.types("a", OUTSIDE.replace("ONE", "ONE, mine"))
        applied = await desk.proposal.revert()
        assert applied.outcome == "partial"
        assert desk.text("a") == TEXT.replace("one", "ONE, mine")
        assert desk.proposal.contested
        if over:
            await desk.proposal.revert_contested()
        else:
            desk.proposal.keep_contested()
        assert desk.text("a") == (TEXT if over else TEXT.replace("one", "ONE, mine"))
        assert not desk.waits


async def test_a_file_from_outside_that_the_user_wrote_in_is_not_deleted(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    await desk.outside(new="new\n")
    desk.opens("new")
    desk.types("new", "new\nmine\n")
    applied = await desk.proposal.revert()
    assert applied.outcome == "none"
    assert desk.text("new") == "new\nmine\n"
    desk.proposal.keep_contested()
    assert not desk.waits


async def test_a_run_is_the_same_after_a_restart(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT)
    await desk.outside(a=OUTSIDE)
    await desk.revert("a", desk.hunks("a")[0])
    record = desk.proposal.record
    store = desk.world.store
    (session_id,) = (each.session_id for each in store.list())
    again = Session(session_id, store)
    replay(again, store.load(session_id))
    known = again.context.runs[record.run_id]
    assert (known.kind, known.status, known.title) == ("foreign", "completed", "outside")
    assert (known.staged, known.applied) == (record.staged, record.applied)


async def test_nobody_is_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "w")
    desk.has(a=TEXT)
    await desk.outside(a=OUTSIDE)
    assert not desk.world.user.shown
    proposed = [event for event in desk.world.events if isinstance(event, events.ChangesProposed)]
    assert [event.summary for event in proposed] == ["Changed outside: 1 file, +2 −2."]


# Random edits by both sides, and decisions by hunk. Each line is written once in all, so that it is known whose it is.

BASE = tuple(f"base {number}" for number in range(9))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["outside insert", "outside replace", "outside delete", "type", "save", "reload"] + ["decide"] * 4
        ),
        st.integers(0, 20),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)


class Story:
    """What happens to one file, with what has to be true after each step."""

    def __init__(self, folder: Path, ends: str) -> None:
        self.desk = Desk(folder)
        self.ends = ends
        self.desk.has(a=self.joined(list(BASE)))
        self.count = 0
        self.typed: set[str] = set()
        self.touched: set[str] = set()
        self.kept: set[str] = set()
        self.reverted: set[str] = set()

    def joined(self, lines: list[str]) -> str:
        return "".join(f"{line}{self.ends}" for line in lines)

    def lines(self, text: str | None) -> list[str]:
        return [line.rstrip("\r\n") for line in split_lines(text or "")]

    def fresh(self, who: str) -> str:
        self.count += 1
        return f"{who} {self.count}"

    async def step(self, what: str, place: int, choice: bool) -> None:
        desk = self.desk
        on_disk = self.lines(desk.path("a").read_bytes().decode())
        clean = desk.world.buffers.get_by_path(str(desk.path("a"))) is None or not desk.editor.has_unsaved_text(
            str(desk.path("a"))
        )
        if what.startswith("outside"):
            at = place % (len(on_disk) + 1)
            if what == "outside insert":
                on_disk.insert(at, self.fresh("outside"))
            elif at < len(on_disk):
                self.touched.add(on_disk[at])
                self.typed.discard(on_disk[at])  # it was saved: another program may do with it what it likes
                on_disk[at : at + 1] = [self.fresh("outside")] if what == "outside replace" else []
            await desk.outside(a=self.joined(on_disk))
            if clean and choice and desk.world.buffers.get_by_path(str(desk.path("a"))) is not None:
                desk.opens("a")  # the editor reads it again by itself
        elif what == "type":
            if desk.world.buffers.get_by_path(str(desk.path("a"))) is None:
                desk.opens("a")
            lines = self.lines(desk.text("a"))
            line = self.fresh("typed")
            lines.insert(place % (len(lines) + 1), line)
            self.typed.add(line)
            desk.types("a", self.joined(lines))
        elif what == "save" and desk.world.buffers.get_by_path(str(desk.path("a"))) is not None:
            await desk.save("a")
        elif what == "decide" and desk.waits:
            await self.decide(place, keep=choice)

    async def decide(self, place: int, *, keep: bool) -> None:
        desk, change = self.desk, self.desk.waits.files[0]
        ids = change.hunk_ids()
        number = place % len(ids)
        hunk = change.hunks()[number]
        old = self.lines("".join(split_lines(change.base or "")[hunk.old_start : hunk.old_end]))
        new = self.lines("".join(split_lines(change.text or "")[hunk.new_start : hunk.new_end]))
        before = desk.path("a").read_bytes()
        applied = await (desk.keep if keep else desk.revert)("a", ids[number])
        assert desk.path("a").read_bytes() == before, "we write nothing to the disk"
        if applied.conflicts:
            desk.proposal.keep_contested() if desk.proposal.contested else desk.proposal.discard()
            return
        present = self.lines(desk.text("a"))
        ours = {line for line in new if line.startswith("outside")}
        if keep:
            assert ours <= set(present), "what was kept is there"
            self.kept |= ours
        else:
            assert not ours & set(present), "what was taken back is gone"
            assert set(old) <= set(present), "what was there is back"
            self.reverted |= ours

    def check(self) -> None:
        present = self.lines(self.desk.text("a"))
        assert len(present) == len(set(present)), "no line is there twice"
        assert self.typed <= set(present), "nothing that was typed is lost"
        assert set(BASE) - self.touched <= set(present), "what nobody changed is there"
        untouched = [line for line in present if line in BASE]
        assert untouched == sorted(untouched), "in its order"
        assert not (self.reverted & set(present)), "what was taken back stays so"
        assert self.kept - self.touched <= set(present), "what was kept stays"
        assert all(line.endswith(self.ends) for line in split_lines(self.desk.text("a") or "")), "line ends stay"


@pytest.mark.slow  # a hundred stories
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, st.sampled_from(["\n", "\r\n"]))
def test_nothing_is_lost_whatever_happens(steps: list[tuple[str, int, bool]], ends: str) -> None:
    async def tell(folder: Path) -> None:
        story = Story(folder / "w", ends)
        for what, place, choice in steps:
            await story.step(what, place, choice)
            story.check()
        if story.desk.runs:
            proposal: ForeignProposal = story.desk.proposal
            assert Changeset(tuple(each for each in proposal.changeset if not each.empty)) == proposal.changeset

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(tell(Path(folder)))
