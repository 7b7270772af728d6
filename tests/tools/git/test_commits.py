"""`git_log`: the commits before, newest first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.fakes import Bench
from tests.tools.git.repos import commit, git, start


async def log(bench: Bench, **arguments: object) -> list[str]:
    result = await bench.call("git_log", **arguments)
    assert result.ok, result.text
    return result.text.splitlines()


async def test_newest_first_with_hash_date_and_author(repo: Bench) -> None:
    name = commit(repo.root, "Second: ünï\n\nA body that is not shown.")
    lines = await log(repo)
    assert len(lines) == 2
    assert re.fullmatch(r"[0-9a-f]{7,} \d{4}-\d\d-\d\d Ann Example: Second: ünï", lines[0])
    assert name.startswith(lines[0].split()[0]) and lines[1].endswith(": Begin")


async def test_a_limit_and_a_path(repo: Bench) -> None:
    repo.write("a.py", "2\n")
    commit(repo.root, "Touch a")
    (repo.root / "a.py").unlink()
    commit(repo.root, "Drop a")
    repo.write("b.py", "2\n")
    commit(repo.root, "Touch b")
    assert [line.split(": ")[1] for line in await log(repo, limit=2)] == ["Touch b", "Drop a"]
    assert [line.split(": ")[1] for line in await log(repo, path="a.py")] == ["Drop a", "Touch a", "Begin"]
    assert await log(repo, path="never.py") == ["No commit touches never.py."]


@pytest.mark.parametrize("limit", [201, -1])
async def test_limits_that_make_no_sense(repo: Bench, limit: int) -> None:
    assert not (await repo.call("git_log", limit=limit)).ok


async def test_before_the_first_commit(tmp_path: Path) -> None:
    bench = Bench(start(tmp_path / "empty"))
    assert await log(bench) == ["No commits yet."]


async def test_outside_of_any_repository(tmp_path: Path) -> None:
    result = await Bench(tmp_path / "plain").call("git_log")
    assert not result.ok and "is not in a git repository" in result.text


async def test_a_strange_encoding_and_a_long_subject(repo: Bench) -> None:
    git(repo.root, "-c", "i18n.commitEncoding=latin1", "commit", "-q", "--allow-empty", "-m", "caf\xe9 " + "x" * 300)
    (line,) = await log(repo, limit=1)
    assert line.count("x") >= 190 and len(line) < 260
