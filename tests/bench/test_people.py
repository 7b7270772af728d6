"""Tasks from a history that is made on the spot: what becomes a task, what does not, and what an agent is given."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.agents_results import changed_files
from tests.bench.histories import Repository
from tests.bench.tasks import Task, lay, solved
from tests.bench.tasks.people import draw_people, is_hidden, read, task_of, told, write
from tests.bench.tasks.people_places import NotInstalled, Place, language_of

PLACE = Place(Path(sys.prefix), "python")
ADD = "def add(a, b):\n    return a {} b\n"
TEST = "from sums import add\n\n\ndef test_add():\n    assert add(2, 1) == {}\n"
BLANK = Task("t", "people", "small", "words", {}, (), (), "a.py", "")
EMPTY = "def test_nothing():\n    pass\n"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, a repair with a test, and commits that are no tasks: with tests that pass before, without tests, with
    tests that fail after it.
    """
    folder = tmp_path_factory.mktemp("history")
    right = ADD.format("+")
    commits: list[tuple[str, dict[str, str]]] = [
        ("A project begins", {"sums.py": ADD.format("-"), "pyproject.toml": "", "tests/test_old.py": EMPTY}),
        ("Repair the sum\n\nSigned-off-by: A", {"sums.py": right, "tests/test_sums.py": TEST.format(3)}),
        ("Say what it is", {"sums.py": f'"""Sums."""\n\n{right}', "tests/test_more.py": EMPTY}),
        ("Only the source changes", {"sums.py": right.replace("a, b", "b, a")}),
        ("A test that fails", {"sums.py": right, "tests/test_sums.py": TEST.format(4)}),
    ]
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    for message, files in commits:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        subprocess.run([*git, "add", "-A"], cwd=folder, check=True)
        subprocess.run([*git, "commit", "-qm", message], cwd=folder, check=True)
    return folder


@pytest.mark.slow
def test_a_commit_whose_tests_decide_is_a_task(history: Path, tmp_path: Path) -> None:
    repository = Repository(str(history))
    drawn = draw_people(repository, PLACE, "sums", list(repository.changes()))
    assert len(drawn.tasks) == 1
    assert drawn.left_out == {
        "tests fail after": 1, "no source and test together": 1, "tests pass before": 1,
    }  # fmt: skip
    assert told(drawn).startswith("sums: 1 tasks (1 small) of 3 tried; left out: no source and test together 1, ")

    file = tmp_path / "sums.json"
    write(drawn, file)
    assert read(file) == drawn
    assert "return" not in file.read_text(), "no code"

    task = task_of(drawn.tasks[0], repository, PLACE, drawn.name)
    assert task.words == "Repair the sum"
    assert task.files.keys() == {"sums.py", "pyproject.toml", "tests/test_old.py"}, "the tests are hidden"
    project = tmp_path / "project"
    project.mkdir()
    lay(task, project)
    assert not solved(task, project)
    (project / "tests" / "test_sums.py").write_text("")  # what an agent writes there does not decide
    assert not solved(task, project)
    (project / "sums.py").write_text(ADD.format("+"))
    assert solved(task, project)


def test_an_agent_that_changed_nothing_is_not_said_to_have(tmp_path: Path) -> None:
    """Public code has ends of lines of all kinds."""
    task = replace(BLANK, files={"a.py": "one = 1\r\n", "b.py": "two = 2\x0b\n\r"})
    lay(task, tmp_path)
    assert changed_files(task, tmp_path) == {}
    (tmp_path / "a.py").write_bytes(b"one = 1\n")
    assert changed_files(task, tmp_path) == {"a.py": "one = 1\n"}


def test_only_so_many_are_drawn_and_tried(history: Path) -> None:
    repository = Repository(str(history))
    changes = list(repository.changes())
    assert [change.message.split("\n")[0] for change in changes][-1] == "Repair the sum", "the first has no parent"
    assert draw_people(repository, PLACE, "sums", changes, count=0).tasks == ()
    assert draw_people(repository, PLACE, "sums", changes, tries=0).tried == 0
    assert not list(repository.changes("2050-01-01"))


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("tests/data/cases/comments.py", True), ("pkg/testdata/a.txt", True), ("context_test.go", True),
        ("src/tests.py", False), ("src/contest.py", False), ("docs/index.md", False),
    ],
)  # fmt: skip
def test_what_belongs_to_the_tests_is_hidden(path: str, hidden: bool) -> None:
    assert is_hidden(path) is hidden


@pytest.mark.parametrize(
    ("language", "hidden", "end"),
    [
        ("python", ["tests/test_b.py", "tests/test_a.py", "tests/data/x.py"], ["tests/test_a.py", "tests/test_b.py"]),
        ("python", ["tests/data/cases/one.py", "tests/data/two.py"], ["-k", "one or two", "tests"]),
        ("python", ["tests/data/x.txt"], []),
        ("go", ["a_test.go", "render/b_test.go", "render/testdata/x"], ["./.", "./render"]),
        ("go", ["testdata/x"], []),
        (
            "node",
            ["s/b.test.ts", "s/a.spec.mjs", "s/x.ts"],
            ["s/a.spec.mjs", "s/b.test.ts"],
        ),
    ],
)
def test_the_command_runs_the_hidden_tests(language: str, hidden: list[str], end: list[str]) -> None:
    check = Place(Path("place"), language).check(hidden)
    assert list(check[len(check) - len(end) :]) == end
    assert bool(check) == bool(end)


def test_a_project_of_node_is_linked_to_what_was_installed_and_to_its_own_packages(tmp_path: Path) -> None:
    place = Place(tmp_path / "place", "node")
    for name in ("vitest", ".bin"):
        (place.folder / "node_modules" / name).mkdir(parents=True)
    (place.folder / "node_modules" / ".package-lock.json").write_text("{}")
    texts = {"packages/own/package.json": '{"name": "own"}', "packages/vitest/package.json": '{"name": "vitest"}'}
    texts |= {"packages/broken/package.json": "{", "a/b/c/package.json": '{"name": "deep"}', "package.json": "{}"}
    project = tmp_path / "project"
    project.mkdir()
    lay(replace(BLANK, files=texts, links=place.links(texts)), project)
    assert sorted(each.name for each in (project / "node_modules").iterdir()) == [".bin", "own", "vitest"]
    assert (project / "node_modules" / "own" / "package.json").read_text() == texts["packages/own/package.json"]
    assert (project / "node_modules" / "vitest").resolve() == place.folder / "node_modules" / "vitest"
    assert changed_files(replace(BLANK, files=texts), project) == {}, "the links are no change of an agent"
    command = place.resolved(place.check(["own.test.ts"]))
    assert command[0] == str(place.folder / "node_modules" / ".bin" / "vitest")
    assert str(place.folder / "vitest.config.mjs") in command


def test_the_tasks_that_are_kept_are_those_that_the_page_tells() -> None:
    histories = [read(file) for file in sorted(Path(__file__).with_name("people").glob("*.json"))]
    page = Path(__file__).with_name("README.md").read_text("utf-8")
    for history in histories:
        sizes = Counter(drawn.size for drawn in history.tasks)
        shares = ", ".join(str(sizes[size]) for size in ("small", "medium", "large"))
        row = f"| {history.tried} | **{len(history.tasks)}** | {shares} |"
        assert re.search(rf"^\| {history.name} \(\w+\) {re.escape(row)}", page, re.MULTILINE), told(history)
        assert all(drawn.check and drawn.hidden and drawn.sources for drawn in history.tasks)
        assert not [path for drawn in history.tasks for path in drawn.sources if is_hidden(path)]
    assert f"**{sum(len(history.tasks) for history in histories)}**" in page


def test_a_language_without_an_environment_is_told() -> None:
    assert language_of({"go.mod": 1, "README.md": 1}) == "go"
    with pytest.raises(NotInstalled, match=r"none of go\.mod, pyproject\.toml"):
        language_of({"Cargo.toml": 1})
