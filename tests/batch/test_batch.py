"""Whole batches on worker processes, with a scripted model: what comes of each kind of task, what is left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from codeagent_lsp.batch.results import Outcome, ResultFolder, TaskResult
from codeagent_lsp.batch.task_file import read_tasks
from tests.batch.rig import MENDED, MENDING, PASSES, PROGRAM, BatchRig

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(tmp_path: Path) -> BatchRig:
    return BatchRig(tmp_path)


def test_tasks_are_solved_in_folders_of_their_own(rig: BatchRig) -> None:
    done = rig.run([rig.task("one"), rig.task("two", setup="echo made > extra.txt")], "--jobs", "2", "--report")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 solved" in done.stdout
    for name in ("one", "two"):
        result = rig.results()[name]
        assert (result.solved, result.checked, result.reason, result.status) == (True, True, "", "completed")
        assert (result.files, result.added, result.removed) == (("program.py",), 1, 1)
        assert result.prompt_tokens > 0
        assert result.cost is None  # nobody knows the prices of a script
        folder = rig.out / name
        assert json.loads((folder / "session.jsonl").read_text().splitlines()[-1])["type"]
        assert "session.jsonl" in {path.name for path in folder.iterdir()}
        applied = rig.root / "applied"
        applied.mkdir()
        (applied / "program.py").write_text(PROGRAM)
        subprocess.run(["git", "apply", folder / "changes.patch"], cwd=applied, check=True)
        assert (applied / "program.py").read_text() == MENDED
        (applied / "program.py").unlink()
        applied.rmdir()
    assert (rig.project / "program.py").read_text() == PROGRAM  # the user's own folder is as it was
    assert sorted(path.name for path in rig.project.iterdir()) == ["program.py"]
    assert rig.left_over() == []


def test_a_commit_of_a_repository(rig: BatchRig) -> None:
    git = ("git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(rig.project))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    (rig.project / "program.py").write_text("later = 1\n")
    subprocess.run([*git, "commit", "-qam", "second"], check=True)
    tasks = [
        rig.task("old", repo="project", commit="HEAD~1"),
        rig.task("new", repo="project", check="grep later program.py"),
    ]
    rig.run(tasks)
    results = rig.results()
    assert results["old"].solved
    assert (results["new"].checked, results["new"].files) == (True, ())


def test_a_folder_that_holds_the_results_and_what_cannot_be_copied(rig: BatchRig) -> None:
    os.mkfifo(rig.project / "pipe")
    (rig.project / "dangling").symlink_to("nowhere")
    out = rig.project / "batch"
    done = rig.run(
        [rig.task("one"), rig.task("two", setup="test ! -e batch && test -L dangling && test ! -e pipe")],
        "--out",
        str(out),
    )
    assert done.returncode == 0, done.stdout
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        "one",
        "results.jsonl",
        "two",
    ]


def test_a_password_in_an_address_is_kept_from_the_agent_and_the_results(rig: BatchRig) -> None:
    git = ("git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(rig.project))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    word = "hunter" + "2" * 8
    rig.run(
        [
            rig.task("good", repo=f"file://me:{word}@{rig.project}", check="cat .git/config; false"),
            rig.task("bad", repo=f"https://me:{word}@127.0.0.1:9/x.git"),
        ]
    )
    assert "127.0.0.1" in rig.results()["bad"].error
    assert "url = " in (rig.out / "good" / "check.txt").read_text()
    assert not any(word in path.read_text(errors="replace") for path in rig.out.rglob("*") if path.is_file())


CASES: dict[str, dict[str, object]] = {
    "setup": {"setup": "echo not today; exit 3"},
    "check": {"check": "echo wrong; exit 1"},
    "folder": {"repo": "project"},  # no repository
}


def test_each_failure_has_its_reason(rig: BatchRig) -> None:
    done = rig.run([rig.task(name, **more) for name, more in CASES.items()], "--jobs", "2")
    assert done.returncode == 1
    results = rig.results()
    assert {name: result.reason for name, result in results.items()} == {name: name for name in CASES}
    assert "not today" in results["setup"].error
    assert (rig.out / "check" / "check.txt").read_text() == "wrong\n"
    assert (results["check"].check_exit, results["check"].status) == (1, "completed")
    assert "git" in results["folder"].error
    assert rig.left_over() == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([{"text": "Nothing to do."}], "unchanged"),
        ([{"error": "broken"}] * 12, "model"),
        ([{"text": "Not so fast.", "delay": 60}], "timeout"),
    ],
)
def test_a_run_that_does_nothing(rig: BatchRig, script: object, reason: str) -> None:
    done = rig.run([rig.task(check="", timeout=3 if reason == "timeout" else 100)], script=script)
    assert done.returncode == 1
    assert (rig.results()["one"].reason, rig.results()["one"].solved) == (reason, False), rig.results()
    assert rig.left_over() == []


def test_without_a_check_a_completed_change_counts(rig: BatchRig) -> None:
    assert rig.run([rig.task(check="")]).returncode == 0
    result = rig.results()["one"]
    assert (result.solved, result.checked) == (True, False)


def test_several_attempts(rig: BatchRig) -> None:
    assert rig.run([rig.task()], "--attempts", "2").returncode == 0
    result = rig.results()["one"]
    assert (result.solved, result.attempts, result.files) == (True, 2, ("program.py",))


def test_results_are_kept_and_not_made_twice(rig: BatchRig) -> None:
    log = rig.root / "log"
    tasks = [rig.task(name, setup=f"echo {name} >> {log}") for name in ("one", "two")]
    rig.run(tasks[:1])
    again = rig.run(tasks)
    assert (again.returncode, "--resume" in again.stderr) == (2, True)
    resumed = rig.run(tasks, "--resume")
    assert (resumed.returncode, "1 task finished already" in resumed.stdout) == (0, True)
    assert log.read_text().split() == ["one", "two"]
    assert set(rig.results()) == {"one", "two"}


def test_a_budget_is_for_all_tries_and_a_task_that_is_not_begun_again_stays_listed(rig: BatchRig) -> None:
    tasks = [rig.task("one")]
    rig.command(tasks)
    (task,) = read_tasks(rig.root / "tasks.jsonl")
    spent = TaskResult(task.id, task.digest, solved=False, checked=False, reason="budget", cost=1.0)
    with ResultFolder(rig.out) as folder:
        folder.record(Outcome(spent))
    done = rig.run(tasks, "--resume", "--budget-usd", "1")
    assert (done.returncode, "1 task not begun: the budget is spent" in done.stdout) == (1, True), done
    assert rig.results()["one"].cost == 1.0


def test_the_check_cannot_write_or_reach_the_network(rig: BatchRig) -> None:
    target = rig.root / "outside"
    target.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"import socket; socket.create_connection({server.getsockname()!r}, 1)"
        script = f'touch {target}/x; touch inside; python3 -c "{connect}" 2>&1 | grep Error'
        rig.run([rig.task(check=script)])
    assert rig.results()["one"].solved, rig.results()
    assert list(target.iterdir()) == []


def test_a_check_without_isolation_says_what_allows_it(rig: BatchRig) -> None:
    tasks = [rig.task()]
    done = rig.run(tasks, "--set", "shell.isolation=direct")
    assert (done.returncode, rig.results()["one"].reason) == (1, "unisolated")
    assert "add --yes" in done.stdout
    rig.run(tasks, "--set", "shell.isolation=direct", "--yes", "--out", str(rig.root / "second"))
    assert json.loads((rig.root / "second" / "one" / "result.json").read_text())["solved"]


def test_keys_reach_neither_setup_nor_check(rig: BatchRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEAGENT_API_KEY", "key-" + "of-a-test" * 3)
    rig.run([rig.task(setup="env", check="env")])
    for name in ("setup.txt", "check.txt"):
        assert "of-a-test" not in (rig.out / "one" / name).read_text()
    assert not any("of-a-test" in path.read_text(errors="replace") for path in rig.out.rglob("*") if path.is_file())


def test_what_needs_an_approval_is_not_done(rig: BatchRig) -> None:
    """A change of a file that runs code later is not made without --yes, and made with it."""
    write = {
        "tool_calls": [
            {"name": "write_file", "arguments": {"path": ".github/workflows/x.yml", "content": "on: push\n"}}
        ]
    }
    tasks = [rig.task(check="")]
    rig.run(tasks, script=[write, *MENDING])
    assert ".github/workflows/x.yml" not in rig.results()["one"].files
    rig.run(tasks, "--yes", "--out", str(rig.root / "second"), script=[write, *MENDING])
    second = TaskResult(**json.loads((rig.root / "second" / "one" / "result.json").read_text()))
    assert ".github/workflows/x.yml" in second.files


def test_wrong_use_is_told_before_anything_starts(rig: BatchRig) -> None:
    done = rig.run([{"id": "a", "task": "x"}])
    assert (done.returncode, "line 1" in done.stderr, rig.out.exists()) == (2, True, False)
    both = rig.run([rig.task()], "--jobs", "2", "--ray", "auto")
    assert (both.returncode, "not allowed with" in both.stderr) == (2, True)
    assert PASSES
