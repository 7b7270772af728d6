"""What the next request says of what the user did with the model's changes: true for each hunk, whenever done."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.agent.context.history import NOTE
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.session.decisions import ALL_APPLIED, HEAD, Fate, fates_of
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.edits import merge
from tests.examples import examples
from tests.session.fakes import World, call, calls, say, world
from tests.session.rewind.test_rewinding import rewound

STRONG = ModelInfo("strong", "openai", facts=window_known(200_000), tool_calling="native")
LINES = [f"line {number}\n" for number in range(1, 41)]
BEFORE = "".join(LINES)
AFTER = BEFORE.replace("line 10\n", "TEN\n").replace("line 30\n", "THIRTY\nand more\n")


async def worked(tmp_path: Path, *says: str) -> tuple[World, Proposal]:
    """A world in which a run has changed two places of a.py."""
    made = world(tmp_path / "w", says=says, deadline=0.02)
    made.open("a.py", BEFORE)
    edits = [{"path": "a.py", "old_str": "line 10\n", "new_str": "TEN\n"}]
    edits.append({"path": "a.py", "old_str": "line 30\n", "new_str": "THIRTY\nand more\n"})
    made.models["model"] = ScriptedModel([calls(call("batch_edit", edits=edits)), say("Two places.")], info=STRONG)
    done = await made.run("Change two places")
    return made, made.manager.runs.get(done.run_id).proposal


async def told(made: World) -> str:
    """What the next request says before the user's words."""
    made.models["model"] = model = ScriptedModel([say("I see.")], info=STRONG)
    before = len(made.manager.current().context.conversation)
    await made.run("And now?")
    notes = [message.content for message in model.requests[0].messages[1 + before :] if message.name == NOTE]
    return "\n\n".join(notes)


async def test_applied_later(tmp_path: Path) -> None:
    made, proposal = await worked(tmp_path)
    assert "- a.py: waiting for the user's decision, not in the file" in await told(made)
    await proposal.apply()
    assert ALL_APPLIED in await told(made)
    assert HEAD not in await told(made)  # said once


async def test_one_hunk_applied_the_other_discarded(tmp_path: Path) -> None:
    made, proposal = await worked(tmp_path)
    await proposal.apply(hunks={made.path("a.py"): frozenset([0])})
    proposal.discard()
    said = await told(made)
    assert "- a.py:\n  line 10 (TEN): in the user's files\n  line 30 (THIRTY): discarded by the user" in said


async def test_one_hunk_applied_the_other_waiting(tmp_path: Path) -> None:
    made, proposal = await worked(tmp_path)
    await proposal.apply(hunks={made.path("a.py"): frozenset([1])})
    said = await told(made)
    assert "line 10 (TEN): waiting" in said and "line 30 (THIRTY): in the user's files" in said


async def test_undone(tmp_path: Path) -> None:
    made, proposal = await worked(tmp_path, "Apply")
    assert ALL_APPLIED in await told(made)
    await proposal.undo()
    assert "- a.py: undone by the user" in await told(made)


async def test_rewound(tmp_path: Path) -> None:
    made, proposal = await worked(tmp_path, "Apply")
    await told(made)
    await rewound(made, proposal.record.run_id, "changes")
    assert "- a.py: undone by the user" in await told(made)


async def test_changed_by_hand(tmp_path: Path) -> None:
    made, _ = await worked(tmp_path, "Apply")
    made.open("a.py", "# a new first line\n" + AFTER.replace("TEN\n", "10\n"))
    said = await told(made)
    assert "line 11 (TEN): applied, then changed by the user" in said
    assert "line 31 (THIRTY): in the user's files" in said


async def test_discarded_and_told_after_a_restart(tmp_path: Path) -> None:
    made, _ = await worked(tmp_path, "Discard")
    session = made.manager.current().session_id
    made.store.close()
    again = world(tmp_path / "w", deadline=0.02, state=tmp_path / "sessions")
    again.open("a.py", BEFORE)
    again.manager.resume(session)
    assert "- a.py: discarded by the user" in await told(again)


async def test_a_made_file_and_a_deleted_one(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=["Apply"], deadline=0.02)
    made.open("old.py", "x = 1\n")
    steps = calls(call("write_file", path="new.py", content="y = 1\n"), call("delete_file", path="old.py"))
    made.models["model"] = ScriptedModel([steps, say()], info=STRONG)
    done = await made.run("Replace old.py")
    assert ALL_APPLIED in await told(made)
    await made.manager.runs.get(done.run_id).proposal.undo()
    said = await told(made)
    assert "- new.py: undone by the user" in said and "- old.py: undone by the user" in said


async def test_runs_that_were_not_talked_of_are_not_told(tmp_path: Path) -> None:
    made, _ = await worked(tmp_path, "Apply")
    await told(made)
    made.models["model"] = ScriptedModel([say("```\nline 1!\n```")], info=STRONG)
    file = made.read(made.path("a.py"))
    quick = RunRequest("edit", "louder", "louder", Target(file, 0, len("line 1\n")))
    await made.finished(made.manager.start(quick))
    assert "discarded" not in await told(made)


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32), hunks=st.integers(1, 6), typed=st.integers(0, 4))
def test_every_hunk_is_told_as_it_is(seed: int, hunks: int, typed: int) -> None:
    """Hunks are applied, left out or changed at random, and the user types in other lines: each is told rightly."""
    rng = random.Random(seed)
    count = hunks * 6
    base = [f"line {number}\n" for number in range(count)]
    wanted, now, expected = list[str](), list[str](), list[Fate]()
    for at, line in enumerate(base):
        if at % 6 != 3:
            wanted.append(line)
            extra = at % 6 in (0, 5) and rng.random() < typed / 8
            now += [f"typed {rng.random()}\n", line] if extra else [line]
            continue
        kind = rng.choice(["replace", "insert", "delete"])
        new = {"replace": [f"new {at}\n"], "insert": [line, f"new {at}\n"], "delete": []}[kind]
        wanted += new
        fate: Fate = rng.choice(["applied", "discarded", "changed"])
        if fate == "changed" and kind != "replace":
            fate = "applied"
        expected.append(fate)
        now += {"applied": new, "discarded": [line], "changed": [f"by hand {at}\n"]}[fate]
    change = FileChange("/a.py", "".join(base), "".join(wanted))
    run = RunRecord("r", proposed=Changeset((change,)))
    run.accepted = Changeset()
    found = [each.fate for each in fates_of(run, change, "".join(now))]
    assert len(merge.runs(change.base or "", change.text or "")) == len(expected)
    assert found == expected
    for each, fate in zip(fates_of(run, change, "".join(now)), expected, strict=True):
        if fate == "applied" and each.shown.startswith("new"):
            assert now[each.line - 1].strip() in (each.shown, each.shown.replace("new", "line"))


@pytest.mark.parametrize("fate", ["waiting", "undone"])
def test_why_something_is_not_there(fate: Fate) -> None:
    change = FileChange("/a.py", BEFORE, AFTER)
    run = RunRecord("r", proposed=Changeset((change,)))
    if fate == "waiting":
        run.staged = Changeset((replace(change, base="typed\n" + BEFORE, text="typed\n" + AFTER),))
    else:
        run.accepted = Changeset((change,))
    assert {each.fate for each in fates_of(run, change, "typed\n" + BEFORE)} == {fate}
