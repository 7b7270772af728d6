"""Reading the file of tasks: each mistake is named with its line before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.batch.task_file import DEFAULT_SECONDS, BatchTask, read_tasks
from codeagent_lsp.errors import UsageError


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_a_task_and_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    path = written(
        tmp_path,
        {"id": "a.1", "folder": "project", "task": "Do it"},
        "",
        {"id": "b", "folder": ".", "task": "x", "timeout": 5},
    )
    first, second = read_tasks(path)
    assert first == BatchTask("a.1", "Do it", folder=str(tmp_path / "project"))
    assert (first.timeout, first.name, second.timeout) == (DEFAULT_SECONDS, "project", 5.0)


@pytest.mark.parametrize(
    ("repo", "name"),
    [
        ("https://example.org/team/shop.git", "shop"),
        ("git@example.org:team/shop.git", "shop"),
        ("ssh://example.org/~/shop/", "shop"),
        ("file:///srv/..git", "task"),
    ],
)
def test_an_address_stays_as_it_is(tmp_path: Path, repo: str, name: str) -> None:
    (task,) = read_tasks(written(tmp_path, {"id": "a", "repo": repo, "commit": "v1", "task": "x"}))
    assert (task.repo, task.commit, task.name) == (repo, "v1", name)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[]", "not a JSON object"),
        ("{", "Expecting"),
        ({"id": "a", "folder": ".", "task": "x", "chek": "y"}, "unknown key 'chek'"),
        ({"folder": ".", "task": "x"}, "id:"),
        ({"id": "../a", "folder": ".", "task": "x"}, "id:"),
        ({"id": "Results.jsonl", "folder": ".", "task": "x"}, "a file of the results"),
        ({"id": ".work", "folder": ".", "task": "x"}, "id:"),
        ({"id": "a", "folder": ".", "task": "  "}, "task:"),
        ({"id": "a", "task": "x"}, "either repo or folder"),
        ({"id": "a", "task": "x", "repo": ".", "folder": "."}, "either repo or folder"),
        ({"id": "a", "task": "x", "folder": "missing"}, "is no folder"),
        ({"id": "a", "task": "x", "repo": "missing"}, "is no folder"),
        ({"id": "a", "task": "x", "repo": "--upload-pack=touch"}, "an address or a path"),
        ({"id": "a", "task": "x", "repo": ".", "commit": "--orphan"}, "commit:"),
        ({"id": "a", "task": "x", "folder": ".", "commit": "b"}, "only with repo"),
        ({"id": "a", "task": "x", "folder": ".", "timeout": 0}, "timeout:"),
        ({"id": "a", "task": "x", "folder": ".", "timeout": True}, "timeout:"),
        ({"id": "a", "task": "x", "folder": ".", "timeout": float("nan")}, "timeout:"),
        ({"id": "a", "task": ["x"], "folder": "."}, "task: a text"),
        ({"id": "A", "task": "x", "folder": "."}, "there already"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, line: Any, words: str) -> None:
    path = (
        written(tmp_path, {"id": "a", "folder": ".", "task": "first"}, line)
        if "there already" in words
        else written(tmp_path, "", line)
    )
    with pytest.raises(UsageError, match=rf"line 2: .*{words}"):
        read_tasks(path)


def test_no_tasks_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no tasks"):
        read_tasks(written(tmp_path, ""))
    with pytest.raises(UsageError, match="cannot be read"):
        read_tasks(tmp_path / "none.jsonl")


def test_the_digest_tells_tasks_apart(tmp_path: Path) -> None:
    one = BatchTask("a", "x", folder="/p")
    assert one.digest == BatchTask("a", "x", folder="/p").digest
    assert (
        len(
            {one.digest, BatchTask("a", "y", folder="/p").digest, BatchTask("a", "x", folder="/p", check="true").digest}
        )
        == 3
    )
