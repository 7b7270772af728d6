"""The questions about a run's changes: what they say of files and of tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.tools.context import Tally
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from tests.session.fakes import say, world
from tests.tools.shells import FakeEnvironments


async def test_tests_that_ran_on_what_is_staged_are_in_the_question(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=FakeEnvironments())
    run_id = (await made.run()).run_id
    proposal = made.manager.runs.get(run_id).proposal
    proposal.staging.write({made.path("a.txt"): "x\n"})
    proposal.tested()(Tally(41, 0, skipped=3))
    title = proposal.questions.title(proposal.changeset)
    assert title.endswith("Tests: 41 passed, on your unsaved text and these changes. 3 skipped.")
    proposal.staging.write({made.path("b.txt"): "later\n"})
    assert "Outdated, the text has changed since: Tests: 41 passed" in proposal.questions.title(proposal.changeset)


async def test_a_state_that_is_staged_again_has_its_own_tests(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=FakeEnvironments())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    proposal.staging.write({made.path("a.txt"): "better\n"})
    better = proposal.changeset
    proposal.tested()(Tally(41, 1))
    proposal.staging.write({made.path("a.txt"): "worse\n"})
    proposal.tested()(Tally(2, 40))
    proposal.staging.reset(better)
    title = proposal.questions.title(better)
    assert "1 failed, 41 passed" in title and "Outdated" not in title


async def test_what_is_accepted_does_not_outdate_the_tests_of_the_rest(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=FakeEnvironments())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    proposal.staging.write({made.path(name): "x\n" for name in ("a.txt", "b.txt", "c.txt")})
    proposal.tested()(Tally(41, 0))
    await proposal.apply(frozenset([made.path("a.txt")]))
    assert proposal.proved() == ("Tests: 41 passed, on your unsaved text and these changes.",)
    made.open("a.txt", "typed since\n")
    assert proposal.proved()[0].startswith("Outdated")
    made.open("a.txt", "x\n")
    assert not proposal.proved()[0].startswith("Outdated")
    proposal.discard(frozenset([made.path("b.txt")]))
    assert proposal.proved()[0].startswith("Outdated")


async def test_a_lone_file_is_named_and_several_are_counted(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"))
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    proposal.staging.write({made.path("a.txt"): "x\n"})
    assert "a.txt" in proposal.questions.title(proposal.changeset)
    proposal.staging.write({made.path("b.txt"): "y\n"})
    title = proposal.questions.title(proposal.changeset)
    assert "2" in title and "a.txt" not in title


async def test_nothing_is_settled_that_was_not_asked(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"))
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    proposal.questions.settle()
    assert made.user.shown == []


async def test_files_that_run_code_later_are_each_named(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"))
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    later = [
        ".git/hooks/pre-commit",
        ".github/workflows/a.yml",
        ".vscode/tasks.json",
        *(f".idea/{n}" for n in range(9)),
    ]
    proposal.staging.write({made.path(name): "x\n" for name in (*later, "a.txt")})
    title = proposal.questions.title(proposal.changeset)
    assert [name for name in later if name not in title] == []
    assert "a.txt" not in title and title.endswith("Apply 13 files, +13 −0?")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([FileChange("src/a.py", "x\n", "y\n")], "Apply changes to src/a.py, +1 −1?"),
        ([FileChange("src/new.py", None, "x\ny\n")], "Create src/new.py, +2?"),
        ([FileChange("src/old.py", "x\ny\n", None)], "Delete src/old.py, −2?"),
        (
            [FileChange("run.sh", "x\n", "x\n", runs=True, ran=False)],
            "Makes run.sh executable. Apply changes to run.sh, +0 −0?",
        ),
        ([FileChange("b/a.py", "x\n", "x\n", moved_from="a/a.py")], "Move a/a.py to b/a.py, +0 −0?"),
        (
            [FileChange("a.py", "x\n", None), FileChange("b.py", "x\n", None), FileChange("c.py", None, "x\n")],
            "Deletes a.py, b.py. Apply 3 files, +1 −2?",
        ),
        (
            [FileChange("c/a.py", "x\n", "y\n", moved_from="a.py"), FileChange("b c.py", "x\n", None)],
            "Deletes b c.py. Moves a.py → c/a.py. Apply 2 files, +1 −2?",
        ),
    ],
)
async def test_what_happens_to_a_file_is_said(tmp_path: Path, changes: list[FileChange], words: str) -> None:
    made = world(tmp_path / "w", say("done"))
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    placed = [
        replace(each, path=made.path(each.path), moved_from=each.moved_from and made.path(each.moved_from))
        for each in changes
    ]
    assert proposal.questions.title(Changeset(tuple(placed))) == words
