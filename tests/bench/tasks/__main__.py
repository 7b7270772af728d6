"""The command line of the task sets: write tasks to a folder, check one, list them. The package tells how."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bench.tasks.batch_lines import batch_line
from tests.bench.tasks.drawing import ALL_KINDS, DEFAULT_COUNT, KINDS, SIZES, draw
from tests.bench.tasks.exercises import exercise_tasks
from tests.bench.tasks.pieces import line_count
from tests.bench.tasks.sources import Source, fetched, public_sources
from tests.bench.tasks.task import Task, load, outcome, save


def main() -> int:
    """One of the three commands; the exit code."""
    options = _options()
    if options.check:
        return _check(Path(options.check))
    tasks = _tasks(options)
    if options.into:
        _write(tasks, Path(options.into), options.timeout)
    else:
        print(table(tasks, causes=options.causes))
    return 0


def _tasks(options: argparse.Namespace) -> list[Task]:
    if options.exercises:
        return list(exercise_tasks(Path(options.exercises)))[: options.count]
    return draw(options.seed, options.count, kinds=options.kinds, sizes=options.sizes, public=_public(options))


def _write(tasks: list[Task], folder: Path, seconds: float) -> None:
    """Write the projects, and the file for `codeagent-lsp batch`."""
    lines = []
    for task in tasks:
        project = save(task, folder)
        print(project, task.words, sep="\t")
        lines.append(batch_line(task, project, seconds))
    (folder / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def table(tasks: list[Task], *, causes: bool) -> str:
    """The tasks as lines of a Markdown table."""
    lines = ["| id | lines | place | words |" + (" cause |" if causes else "")]
    lines.append("|---|---|---|---|" + ("---|" if causes else ""))
    for task in tasks:
        end = f" {task.cause} |" if causes else ""
        lines.append(f"| {task.id} | {line_count(task.files[task.place])} | {task.place} | {task.words} |{end}")
    return "\n".join(lines)


def _check(project: Path) -> int:
    task = load(project)
    ended = outcome(task, project)
    print("solved" if ended.passed else "not solved")
    if not ended.passed:
        print(ended.output[-2000:], file=sys.stderr)
    return 0 if ended.passed else 1


def _public(options: argparse.Namespace) -> list[Source]:
    found = [source for path in options.repo for source in public_sources(Path(path))]
    for name in options.package:
        with tempfile.TemporaryDirectory() as folder:
            found += public_sources(fetched(name, Path(folder)))
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tasks", description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--into", metavar="FOLDER", help="write each task as FOLDER/ID/ and FOLDER/ID.json")
    what.add_argument("--check", metavar="FOLDER/ID", help="say whether this task is solved; exit code 0 or 1")
    what.add_argument("--list", action="store_true", help="print the tasks as a table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=DEFAULT_COUNT)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS, metavar=",".join(ALL_KINDS))
    parser.add_argument("--sizes", type=lambda text: text.split(","), default=SIZES, metavar=",".join(SIZES))
    parser.add_argument("--repo", action="append", default=[], metavar="PATH", help="faults in this code too")
    parser.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="faults in this PyPI package too"
    )
    parser.add_argument("--exercises", metavar="PATH", help="the programs of this checkout of QuixBugs instead")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="with --into: for each (300)")
    parser.add_argument("--causes", action="store_true", help="with --list: tell what is wrong in each")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
