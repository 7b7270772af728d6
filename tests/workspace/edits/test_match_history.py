"""The table of the edit engine over a history made here, and over any named in CODEAGENT_EDIT_REPOS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench.edits import Score, goal_met, main, measure
from tests.examples import volume
from tests.workspace.perturbations import ROWS_APPLIED, ROWS_OK, ROWS_REFUSED, hunks_from_git, perturb
from tests.workspace.synthetic_history import build_history

REPOS = [Path(name) for name in os.environ.get("CODEAGENT_EDIT_REPOS", "").split(os.pathsep) if name]


def _assert_goals(scores: dict[str, Score]) -> None:
    missed = {row: dict(score.counts) for row, score in scores.items() if not goal_met(row, score)}
    assert not missed
    assert all(scores[row].counts["ok"] == 0 for row in ROWS_REFUSED)


@pytest.mark.slow
def test_made_up_history_meets_every_goal(tmp_path: Path) -> None:
    most = max(60, volume(150))
    hunks = hunks_from_git(build_history(tmp_path, seed=5), most)
    assert len(hunks) > most * 2 / 3
    scores = measure(hunks)
    assert {*ROWS_OK, *ROWS_APPLIED} <= set(scores)
    _assert_goals(scores)


@pytest.mark.slow
@pytest.mark.parametrize("repo", REPOS, ids=str)
def test_real_history_meets_every_goal(repo: Path) -> None:
    _assert_goals(measure(hunks_from_git(repo, 450)))


def test_hunks_are_what_git_says(tmp_path: Path) -> None:
    hunks = hunks_from_git(build_history(tmp_path, seed=2, files=2, commits=4), 10)
    assert hunks
    for hunk in hunks:
        assert hunk.text.count(hunk.old) == 1
        assert 5 <= hunk.old.count("\n") <= 25
        assert hunk.expected != hunk.text
        assert [*perturb(hunk, 7)] == [*perturb(hunk, 7)]


def test_a_missed_goal_is_seen() -> None:
    bad = Score()
    bad.counts.update(ok=999, wrong=1)
    assert not goal_met("two at once", bad)
    assert not goal_met("exact", bad)
    late = Score()
    late.counts.update(ok=98, refused=2)
    assert not goal_met("dedented to column 0", late)
    assert goal_met("blank line dropped", late)


@pytest.mark.slow
def test_bench_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--limit", "8"]) in (0, 1)
    out = capsys.readouterr().out
    assert "user inserted a line" in out
    assert "p95" in out
