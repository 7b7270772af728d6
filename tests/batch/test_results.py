"""Results that survive a kill at any moment: finished is what has its own file, and `results.jsonl` follows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.batch import results
from codeagent_lsp.batch.results import AGAIN, Outcome, ResultFolder, TaskResult, parsed
from codeagent_lsp.batch.task_file import BatchTask
from codeagent_lsp.errors import UsageError
from tests.batch.rig import read_results

TASKS = tuple(BatchTask(name, "Do it", folder="/p") for name in "abc")


def outcome(task: BatchTask, **more: object) -> Outcome:
    result = TaskResult(task.id, task.digest, solved=True, checked=True, files=("x.py",))
    return Outcome(replace(result, **more), {"changes.patch": b"\xff patch"})  # type: ignore[arg-type]


def test_what_is_recorded_is_finished(tmp_path: Path) -> None:
    with ResultFolder(tmp_path / "deep" / "out") as folder:
        assert not folder.begun()
        folder.record(outcome(TASKS[0]))
        folder.record(outcome(TASKS[1], solved=False, reason="check"))
        assert folder.begun()
        assert set(folder.earlier(TASKS)) == {"a", "b"}
    assert (folder.path / "a" / "changes.patch").read_bytes() == b"\xff patch"
    assert [result.id for result in read_results(folder.path)] == ["a", "b"]


@pytest.mark.slow
def test_a_line_that_is_missing_or_torn_is_made_good(tmp_path: Path) -> None:
    with ResultFolder(tmp_path) as folder:
        folder.record(outcome(TASKS[0], started=1.0))
        folder.record(outcome(TASKS[1], started=2.0))
        lines = tmp_path / "results.jsonl"
        whole = lines.read_text()
        for cut in range(len(whole)):
            lines.write_text(whole[:cut])
            folder.list_results(folder.earlier(TASKS).values())
            assert lines.read_text() == whole


def test_a_kill_before_the_end_of_a_result_leaves_it_unfinished(tmp_path: Path) -> None:
    with ResultFolder(tmp_path) as folder:
        folder.record(outcome(TASKS[0]))
        (tmp_path / "a" / "result.json").rename(tmp_path / "a" / ".result.json.tmp")
        assert folder.earlier(TASKS) == {}
        folder.record(outcome(TASKS[0]))
        assert set(folder.earlier(TASKS)) == {"a"}


@pytest.mark.parametrize("reason", AGAIN)
def test_what_says_nothing_of_the_task_is_done_again(tmp_path: Path, reason: str) -> None:
    with ResultFolder(tmp_path) as folder:
        folder.record(outcome(TASKS[0], solved=False, reason=reason))
        assert not folder.earlier(TASKS)["a"].finished


def test_tokens_and_cost_are_those_of_all_tries(tmp_path: Path) -> None:
    with ResultFolder(tmp_path) as folder:
        folder.record(outcome(TASKS[0], solved=False, reason="model", prompt_tokens=100, cost=0.5))
        folder.record(outcome(TASKS[0], solved=False, reason="crash"))
        folder.record(outcome(TASKS[0], prompt_tokens=40, completion_tokens=2, cost=0.25))
        found = folder.earlier(TASKS)["a"]
        assert (found.solved, found.prompt_tokens, found.tokens, found.cost) == (True, 140, 142, 0.75)
        folder.record(outcome(replace(TASKS[0], task="Do something else"), cost=0.1))
        assert read_results(tmp_path)[0].cost == 0.1


def test_a_kill_while_a_result_is_written_forgets_no_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: Path, content: bytes) -> None:
        raise KeyboardInterrupt

    with ResultFolder(tmp_path) as folder:
        folder.record(outcome(TASKS[0], solved=False, reason="model", cost=0.5))
        (tmp_path / "a" / "deep").mkdir()
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(results, "_replace", killed)
            folder.record(outcome(TASKS[0], cost=0.25))
        assert folder.earlier(TASKS)["a"].cost == 0.5
        folder.record(outcome(TASKS[0], cost=0.25))
        assert folder.earlier(TASKS)["a"].cost == 0.75
        assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["changes.patch", "result.json"]


def test_another_task_with_the_same_id_is_not_finished(tmp_path: Path) -> None:
    with ResultFolder(tmp_path) as folder:
        folder.record(outcome(TASKS[0]))
        assert folder.earlier([replace(TASKS[0], task="Do something else")]) == {}


def test_one_batch_at_a_time(tmp_path: Path) -> None:
    with ResultFolder(tmp_path), pytest.raises(UsageError, match="another batch"), ResultFolder(tmp_path):
        pass
    with ResultFolder(tmp_path):
        pass


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    """The folders of tasks are replaced: a task named `src` would take the user's own `src` away."""
    kept = tmp_path / "a" / "kept.py"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(UsageError, match="other files"), ResultFolder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert kept.read_text() == "mine"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"), ResultFolder(tmp_path / "file" / "out"):
        pass


@given(st.text())
def test_any_line_is_read_or_left_out(line: str) -> None:
    parsed(line)


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_is_read_or_left_out(value: object) -> None:
    parsed(json.dumps(value))
    parsed(json.dumps({"id": "a", "digest": "b", "solved": True, "checked": True, "files": value}))
