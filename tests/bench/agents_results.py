"""What came of one agent on one task, why it failed if it did, and the tables over many of them. Runs nothing."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

from tests.bench.tasks import Task

SOLVED = ""
CAUSES = (
    "nothing changed", "tests changed only", "wrong edit: tests still fail", "broke syntax", "refused/format",
    "time limit", "token limit", "crash",
)  # fmt: skip
NOT_SOURCES = (".git/", ".aider", "__pycache__/", ".pytest_cache/")


@dataclass(frozen=True, slots=True)
class Ended:
    """How an agent's process ended: `status` in its own words, `late` and `spent` at its limit of time or tokens,
    `refused` when an answer of the model was not usable.
    """

    status: str
    said_done: bool
    seconds: float
    error: str = ""
    output: str = ""
    late: bool = False
    spent: bool = False
    crashed: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the results: one agent on one task in one round."""

    round: int
    task: str
    kind: str
    size: str
    agent: str
    solved: bool
    said_done: bool
    status: str
    cause: str
    error: str
    seconds: float
    requests: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    model_seconds: float
    files_changed: tuple[str, ...]

    @property
    def key(self) -> tuple[int, str, str]:
        """What makes it the same measurement."""
        return self.round, self.task, self.agent


def append(path: Path, result: Result) -> None:
    """Write one more line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")


def read(path: Path) -> list[Result]:
    """The results of a file; none when there is no file. A last line that was cut off is left out."""
    if not path.exists():
        return []
    found = []
    known = {field.name for field in fields(Result)}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        values["files_changed"] = tuple(values["files_changed"])
        found.append(Result(**{name: value for name, value in values.items() if name in known}))
    return found


def changed_files(task: Task, project: Path) -> dict[str, str | None]:
    """The files of a project that differ from the task's, with their texts; None for what is gone."""
    now = {name: text for name, text in _texts(project) if not _is_by_product(name)}
    changed: dict[str, str | None] = {name: text for name, text in now.items() if task.files.get(name) != text}
    return {**changed, **{name: None for name in task.files if name not in now}}


def cause_of(task: Task, changed: Mapping[str, str | None], ended: Ended) -> str:
    """Why a task was not solved, from how the run ended and what it left."""
    if ended.late:
        return "time limit"
    if ended.spent:
        return "token limit"
    if ended.crashed:
        return "crash"
    if not changed:
        return "refused/format" if ended.refused else "nothing changed"
    if all(name.rpartition("/")[2].startswith("test") for name in changed):
        return "tests changed only"
    if any(name.endswith(".py") and text is not None and not _parses(text) for name, text in changed.items()):
        return "broke syntax"
    return "wrong edit: tests still fail"


def report(results: Sequence[Result]) -> str:
    """The tables, as Markdown."""
    agents = list(dict.fromkeys(result.agent for result in results))
    groups = {agent: [result for result in results if result.agent == agent] for agent in agents}
    parts = [_overview(groups), _shares(groups, "kind", lambda result: result.kind)]
    parts += [_shares(groups, "size", lambda result: result.size), _causes(groups)]
    return "\n\n".join(parts)


def _overview(groups: Mapping[str, Sequence[Result]]) -> str:
    head = (
        "agent", "solved", "said done, not solved", "solved, not said done", "requests per task", "tokens in per task",
        "of them cached", "tokens out per task", "seconds, median", "seconds, total", "of them in the model",
    )  # fmt: skip
    return _table(head, ((agent, *_row(results)) for agent, results in groups.items()))


def _row(results: Sequence[Result]) -> tuple[str, ...]:
    count = len(results)
    prompt = sum(result.prompt_tokens for result in results)
    cached = sum(result.cached_tokens for result in results)
    return (
        _of(results),
        str(sum(result.said_done and not result.solved for result in results)),
        str(sum(result.solved and not result.said_done for result in results)),
        f"{sum(result.requests for result in results) / count:.1f}",
        f"{prompt / count:,.0f}",
        f"{cached / prompt:.0%}" if prompt else "-",
        f"{sum(result.completion_tokens for result in results) / count:,.0f}",
        f"{median(result.seconds for result in results):.1f}",
        f"{sum(result.seconds for result in results):,.0f}",
        f"{sum(result.model_seconds for result in results):,.0f}",
    )


def _shares(groups: Mapping[str, Sequence[Result]], title: str, of: Callable[[Result], str]) -> str:
    values = list(dict.fromkeys(of(result) for results in groups.values() for result in results))
    rows = (
        (agent, *(_of([result for result in results if of(result) == value]) for value in values))
        for agent, results in groups.items()
    )
    return _table((f"solved by {title}", *values), rows)


def _causes(groups: Mapping[str, Sequence[Result]]) -> str:
    counts = {agent: Counter(result.cause for result in results if result.cause) for agent, results in groups.items()}
    every = [cause for cause in CAUSES if any(count[cause] for count in counts.values())]
    return _table(
        ("not solved because", *every),
        ((agent, *(str(count[cause]) for cause in every)) for agent, count in counts.items()),
    )


def _of(results: Sequence[Result]) -> str:
    return f"{sum(result.solved for result in results)}/{len(results)}" if results else "-"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _texts(project: Path) -> Iterable[tuple[str, str]]:
    for path in sorted(project.rglob("*")):
        if path.is_file():
            yield path.relative_to(project).as_posix(), path.read_bytes().decode("utf-8", "replace")


def _is_by_product(name: str) -> bool:
    return any(part in name for part in NOT_SOURCES) or name.endswith(".pyc")


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
