"""Tasks that people had: commits of a public history that change sources and tests; the tests are hidden.

    python -m tests.bench.tasks.people --repo PATH --name NAME --out FILE [--since DATE] [--count N] [--tries N]
                                       [--with WORDS] [--seconds S]
    python -m tests.bench.tasks.people --repo PATH --again FILE

The message of the commit, and nothing else, is what the user types; the project is that of its parent, so that the
commit's tests are not there. A commit becomes a task if these tests fail on the project and pass on the commit, in an
environment that is installed here (`people_places.py`). FILE gets hashes, names of files and commands, never code: with
the history (any clone, also a bare one) it gives the tasks again, on any machine. `--again` proves them once more.
`--with` are further words for pip or npm. Which commits are tried is their order, from the newest: nobody chooses.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from codeagent_lsp.index.grammars import is_source, is_test
from tests.bench.histories import Change, Repository
from tests.bench.tasks.people_places import NotInstalled, Place, language_of, place_for
from tests.bench.tasks.task import Task, lay, outcome

MOST_SOURCES = 5
FEWEST_WORDS = 3
SMALL_LINES, MEDIUM_LINES = 10, 40
"""Changed lines of all sources together; small tasks also change one file alone."""
TEST_FOLDERS = {"test", "tests", "testing", "testdata", "__tests__"}
SINCE = "2025-01-01"
LEFT_OUT = (
    "no source and test together", "too many sources", "no words", "no tests that can be run", "tests pass before",
    "tests fail after", "tests take too long",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """A commit that is a task: the tests to hide, the sources that it changes, its size, the command that decides."""

    commit: str
    parent: str
    size: str
    hidden: tuple[str, ...]
    sources: tuple[str, ...]
    check: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """What a file holds: the name of the history, the commit whose needs are installed, words for pip or npm, tasks;
    beside them how many commits were tried, and why others were left out.
    """

    name: str
    newest: str
    extra: tuple[str, ...]
    tried: int
    left_out: Mapping[str, int]
    tasks: tuple[Drawn, ...]


def people_tasks(file: Path, repo: str) -> list[Task]:
    """Return the tasks of a file, from a clone of its history. NotInstalled if its environment cannot be made."""
    history, repository = read(file), Repository(repo)
    place = _place(repository, history.name, history.newest, history.extra)
    return [task_of(drawn, repository, place, history.name) for drawn in history.tasks]


def draw_people(
    repository: Repository,
    place: Place,
    name: str,
    changes: Sequence[Change],
    *,
    count: int = 20,
    tries: int = 60,
    seconds: float = 60.0,
    extra: Sequence[str] = (),
) -> History:
    """Return the first `count` of these commits that are tasks, of at most `tries` that could be; told on the way."""
    left_out: Counter[str] = Counter()
    found: list[Drawn] = []
    tried = 0
    for change in changes:
        if len(found) == count or tried == tries:
            break
        drawn = suitable(change, repository, place)
        if isinstance(drawn, str):
            left_out[drawn] += 1
            continue
        tried += 1
        if why := refuted(drawn, repository, place, name, seconds):
            left_out[why] += 1
        else:
            found.append(drawn)
        print(f"{drawn.commit[:10]} {drawn.size}: {why or 'a task'}; {_title(change.message)}", flush=True)
    return History(name, changes[0].name, tuple(extra), tried, dict(left_out), tuple(found))


def suitable(change: Change, repository: Repository, place: Place) -> Drawn | str:
    """Return what a commit would be as a task, or why it is left out."""
    sources = tuple(path for kind, path in change.files if is_source(path) and not is_hidden(path))
    hidden = tuple(path for kind, path in change.files if is_hidden(path) and kind != "D")
    if not sources or not hidden or not any(kind == "M" and path in sources for kind, path in change.files):
        return "no source and test together"
    if len(sources) > MOST_SOURCES:
        return "too many sources"
    if len(change.message.split()) < FEWEST_WORDS:
        return "no words"
    check = place.check(hidden)
    if not check:
        return "no tests that can be run"
    lines = sum(
        line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}
        for path in sources
        for line in repository.diff(change, path).splitlines()
    )
    small = lines <= SMALL_LINES and len(sources) == 1
    size = "small" if small else "medium" if lines <= MEDIUM_LINES else "large"
    return Drawn(change.name, change.parent, size, hidden, sources, check)


def is_hidden(path: str) -> bool:
    """Return whether a file is part of the tests, what they read included."""
    return is_test(path) or bool(TEST_FOLDERS & set(PurePosixPath(path).parts[:-1]))


def refuted(drawn: Drawn, repository: Repository, place: Place, name: str, seconds: float) -> str:
    """Run the hidden tests before and after the commit; return why it is no task, or nothing."""
    task = task_of(drawn, repository, place, name)
    after = _texts(repository, drawn.commit)
    for files, wanted, why in ((after, True, "tests fail after"), (task.files, False, "tests pass before")):
        with tempfile.TemporaryDirectory(prefix="people-") as folder:
            project = Path(folder) / "project"
            lay(replace(task, files=files, links=place.links(files)), project)
            ended = outcome(task, project, seconds)
        if ended.hung:
            return "tests take too long"
        if ended.passed != wanted:
            if wanted:  # so that a reader sees an environment that lacks something
                print("".join(f"  | {line[:160]}\n" for line in ended.output.strip().splitlines()[-3:]), end="")
            return why
    return ""


def task_of(drawn: Drawn, repository: Repository, place: Place, name: str) -> Task:
    """Return the task of a commit."""
    texts, after = _texts(repository, drawn.parent), _texts(repository, drawn.commit)
    first, *others = [path for path in drawn.sources if path in texts] or list(drawn.sources)
    return Task(
        id=f"people-{name}-{drawn.commit[:10]}",
        kind="people",
        size=drawn.size,
        words=repository.message(drawn.commit),
        files=texts,
        tests=(),
        check=place.resolved(drawn.check),
        place=first,
        cause=f"{name} {drawn.commit}",
        also=tuple(path for path in others if path in texts),
        hidden={path: after[path] for path in drawn.hidden if path in after},
        programs=str(place.programs),
        links=place.links(texts),
    )


def _texts(repository: Repository, commit: str) -> dict[str, str]:
    """The files of a commit that are text."""
    found = {}
    tree = repository.tree(commit)
    contents = repository.blobs(set(tree.values()))
    for path, blob in tree.items():
        try:
            found[path] = contents[blob].decode("utf-8")
        except UnicodeDecodeError:
            continue
    return found


def _place(repository: Repository, name: str, newest: str, extra: Sequence[str]) -> Place:
    tree = repository.tree(newest)
    contents = repository.blobs(set(tree.values()))
    return place_for(name, language_of(tree), {path: contents[blob] for path, blob in tree.items()}, extra)


def _title(message: str) -> str:
    return message.splitlines()[0][:80]


def read(file: Path) -> History:
    """Return what `write` wrote."""
    values = json.loads(file.read_text(encoding="utf-8"))
    lists = ("hidden", "sources", "check")
    tasks = [
        Drawn(**{**each, **{name: tuple(each[name]) for name in lists}})  # JSON knows no tuples
        for each in values.pop("tasks")
    ]
    return History(**{**values, "extra": tuple(values["extra"]), "tasks": tuple(tasks)})


def write(history: History, file: Path) -> None:
    """Write the tasks of a history: hashes, names and commands."""
    file.write_text(json.dumps(asdict(history), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def told(history: History) -> str:
    """Return how many were found, and why others were not."""
    sizes = Counter(drawn.size for drawn in history.tasks)
    why = ", ".join(f"{reason} {history.left_out[reason]}" for reason in LEFT_OUT if history.left_out.get(reason))
    shares = ", ".join(f"{sizes[size]} {size}" for size in ("small", "medium", "large") if sizes[size])
    return (
        f"{history.name}: {len(history.tasks)} tasks ({shares or 'none'}) of {history.tried} tried; "
        f"left out: {why or 'none'}"
    )


def _again(history: History, repository: Repository, seconds: float) -> Iterator[tuple[Drawn, str]]:
    place = _place(repository, history.name, history.newest, history.extra)
    for drawn in history.tasks:
        yield drawn, refuted(drawn, repository, place, history.name, seconds)


def main() -> int:
    """Draw tasks, or prove them again."""
    options = _options()
    repository = Repository(options.repo)
    try:
        if options.again:
            wrong = 0
            for drawn, why in _again(read(options.again), repository, options.seconds):
                print(f"{drawn.commit[:10]}: {why or 'proved'}", flush=True)
                wrong += bool(why)
            return 1 if wrong else 0
        changes, extra = list(repository.changes(options.since)), options.extra.split()
        if not changes:
            sys.exit(f"no commit since {options.since}: give an earlier day by --since")
        place = _place(repository, options.name, changes[0].name, extra)
        history = draw_people(
            repository, place, options.name, changes,
            count=options.count, tries=options.tries, seconds=options.seconds, extra=extra,
        )  # fmt: skip
    except NotInstalled as error:
        sys.exit(str(error))
    write(history, options.out)
    print(told(history))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tasks.people", description=__doc__.splitlines()[0])
    parser.add_argument("--repo", required=True, metavar="PATH", help="a clone of the history, also a bare one")
    parser.add_argument("--name", default="history", help="of the history, in the names of its tasks")
    parser.add_argument("--out", type=Path, default=Path("people.json"), metavar="FILE", help="(people.json)")
    parser.add_argument("--again", type=Path, metavar="FILE", help="prove the tasks of this file once more")
    parser.add_argument("--since", default=SINCE, metavar="DATE", help=f"only commits of this day or later ({SINCE})")
    parser.add_argument("--count", type=int, default=20, metavar="N", help="so many tasks (20)")
    parser.add_argument("--tries", type=int, default=60, metavar="N", help="of so many commits at most (60)")
    parser.add_argument("--with", dest="extra", default="", metavar="WORDS", help="what pip or npm installs besides")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="for the tests of one task (60)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
