"""The past commits of real repositories: which are read, and that what is asked in other words is found by them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codeagent_lsp.config import PermissionsSettings
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.words import question
from codeagent_lsp.session import run_index
from codeagent_lsp.session.run_index import RunIndex, past_commits
from codeagent_lsp.workspace.files.paths import Roots
from tests.index.workspaces import write
from tests.session.indexed import indexing
from tests.workspace.file_fakes import workspace

ASKED = "含税价格不对"
FILES = {
    "shop/taxes.py": "def f(x):\n    return x * 2\n",
    **{f"lib/part{n}.py": f"def p{n}(): ...\n" for n in range(30)},
}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine git may take longer than a run waits for it."""
    monkeypatch.setattr(run_index, "LOG_SECONDS", 60.0)


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(folder), *words],
        check=True,
        capture_output=True,
    )


def repository(folder: Path) -> Path:
    """A repository whose second commit changes one file, with a message in Chinese."""
    write(folder, FILES)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Begin")
    write(folder, {"shop/taxes.py": "def f(x):\n    return x * 3\n"})
    git(folder, "commit", "-qam", "修复含税价格的计算")
    return folder


async def found(*folders: Path) -> dict[str, float]:
    return (await past_commits(Roots([str(folder) for folder in folders]))).files(question(ASKED))


async def test_paths_are_as_the_index_has_them(tmp_path: Path) -> None:
    folder = repository(tmp_path / "w")
    assert await found(folder) == {"shop/taxes.py": 1.0}
    assert await found(folder / "shop") == {"taxes.py": 1.0}, "a folder of a larger repository"
    assert await found(folder / "lib") == {}
    (tmp_path / "plain").mkdir()
    assert await found(tmp_path / "plain", folder) == {"w/shop/taxes.py": 1.0}


async def test_without_a_readable_repository_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "plain", {"a.py": ""})
    git(tmp_path / "plain", "init", "-q")
    assert await found(tmp_path / "plain") == {}, "no commit yet"
    (tmp_path / "plain" / ".git" / "HEAD").write_text("nonsense")
    assert await found(tmp_path / "plain") == {}
    folder = repository(tmp_path / "w")
    monkeypatch.setattr(run_index, "LOG_SECONDS", 0.0)
    assert await found(folder) == {}, "git was late"


async def test_the_log_runs_no_program_of_the_repository(tmp_path: Path) -> None:
    folder = repository(tmp_path / "w")
    for name in ("gpg.program", "core.fsmonitor", "core.pager", "core.sshCommand"):
        git(folder, "config", name, f"touch {tmp_path}/ran; true")
    git(folder, "config", "log.showSignature", "true")
    assert await found(folder) == {"shop/taxes.py": 1.0}
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
async def test_a_run_finds_a_file_by_what_was_said_of_it(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "w"))
    async with indexing(place.root) as real:
        index = RunIndex(real, place.view, PermissionsSettings)
        assert (await index.search(ASKED, 3))[0].path == "shop/taxes.py"
        assert "shop/taxes.py" in (await index.task_map(Task(ASKED), 200)).shown[:1]
