"""The questions about a run's changes: what they say of files and of tests."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.tools.context import Tally
from tests.session.fakes import say, world
from tests.tools.shells import FakeEnvironments


async def test_tests_that_ran_on_what_is_staged_are_in_the_question(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=FakeEnvironments())
    run_id = (await made.run()).run_id
    proposal = made.manager.runs.get(run_id).proposal
    proposal.staging.write({made.path("a.txt"): "x\n"})
    proposal.tested()(Tally(41, 0))
    title = proposal.questions.title(proposal.changeset)
    assert title.endswith("Tests: 41 passed, on your unsaved text and these changes.")
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
