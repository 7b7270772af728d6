"""The benchmark of the map on a small history made on the spot: it runs, and what it counts is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import repomap as bench
from tests.bench.histories import Repository
from tests.bench.repomap import Shares

pytestmark = pytest.mark.slow


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, message: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    filling = {f"lib/part{number}.py": f"def part_{number}():\n    return {number}\n" for number in range(40)}
    commit(folder, "the beginning of all", {**filling, "app/tax.py": "def tax():\n    return 1\n", "a.png": "x"})
    commit(folder, "only a new file is added", {"app/mail.py": "def send_mail():\n    pass\n"})
    commit(
        folder, "raise the tax of the country\n\nSigned-off-by: A <a@b.c>", {"app/tax.py": "def tax():\n    return 2\n"}
    )
    commit(folder, "tests are no sources to find", {"tests/test_tax.py": "def test_tax():\n    pass\n"})
    commit(folder, "tests are no sources to find, twice", {"tests/test_tax.py": "def test_tax():\n    return\n"})
    commit(folder, "mails are sent slowly", {"app/mail.py": "def send_mail():\n    sleep()\n"})
    return folder


def test_commits_that_edit_sources_are_the_tasks(history: Path) -> None:
    tasks = Repository(str(history)).tasks(10)

    assert [task.message for task in tasks] == ["raise the tax of the country", "mails are sent slowly"]
    assert [task.edited for task in tasks] == [("app/tax.py",), ("app/mail.py",)]


def test_the_tree_is_that_before_the_commit_and_so_are_the_earlier_edits(history: Path) -> None:
    repository = Repository(str(history))
    tax, mail = repository.tasks(10)

    before = repository.tree(tax.parent)

    assert repository.blobs([before["app/tax.py"]])[before["app/tax.py"]] == b"def tax():\n    return 1\n"
    assert "a.png" not in before
    assert "tests/test_tax.py" not in before
    assert "app/tax.py" not in tax.recent
    assert mail.recent["app/tax.py"] > 0


def test_shares() -> None:
    shares = Shares()
    shares.add(["a", "b"], ["a"])
    shares.add(["c"], ["c", "d"])

    assert str(shares) == "any 1.00  all 0.50  files 0.67"


def test_the_tables(history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["repomap", "--repo", str(history), "--tokens", "64"])

    bench.main()

    printed = capsys.readouterr().out
    assert "2 commits, 42 files" in printed
    assert "map 64                       any 1.00  all 1.00  files 1.00" in printed
    assert "the text is the same" in printed
