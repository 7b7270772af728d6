"""What came of the tasks: one folder each and one line in `results.jsonl`, so that nothing is done twice after a kill.

`DIR/ID/result.json` is written last, atomically: with it a try of a task has ended. The line is a copy of it, added at
once and made good by the next start if a kill came in between. Only a folder of our own is written to, since the
folders of tasks in it are replaced. Not here: doing a task (`perform.py`), the report.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, Self

from codeagent_lsp.batch.task_file import BatchTask
from codeagent_lsp.errors import UsageError
from codeagent_lsp.system import lock, open_appending

RESULTS = "results.jsonl"
RESULT = "result.json"
WORK = ".work"
_LOCK = ".codeagent-batch"
"""A file that is locked while a batch runs, and that says whose the folder is."""

Reason = Literal[
    "",
    "folder",
    "setup",
    "model",
    "timeout",
    "budget",
    "unchanged",
    "stopped",
    "failed",
    "check",
    "unisolated",
    "unchecked",
    "crash",
]
"""Why a task is not solved: its folder or its setup failed, the model could not be used, its time or budget ran out,
nothing was changed, the run stopped or failed, the check failed, or could not run, without isolation or at all, its
process died."""

AGAIN: tuple[Reason, ...] = ("model", "failed", "budget", "crash")
"""Reasons that say nothing of the task: `--resume` does those once more."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of one task. `solved` is by the check; without one, by whether the run was completed. `status` is that
    of the run ('' if there was none), `error` a sentence, `check_exit` None without a check.

    Durations are in seconds, `started` in seconds since the epoch, `cost` in USD, None if the prices are not known.
    Once recorded, tokens and cost are those of all tries. `added` and `removed` count lines. `digest` identifies the
    task's content, see `BatchTask`.
    """

    id: str
    digest: str
    solved: bool
    checked: bool
    reason: Reason = ""
    error: str = ""
    status: str = ""
    summary: str = ""
    check_exit: int | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    run_seconds: float = 0.0
    started: float = 0.0
    files: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    attempts: int = 1
    session: str = ""
    model: str = ""
    task: str = ""

    @property
    def tokens(self) -> int:
        """The tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def finished(self) -> bool:
        """Whether the result is final, so that `--resume` does not do the task again."""
        return self.reason not in AGAIN

    def after(self, earlier: TaskResult | None) -> TaskResult:
        """Return the result with the tokens and costs of an earlier try of the same task added; unchanged for None and
        for another task, by its digest.
        """
        if earlier is None or earlier.digest != self.digest:
            return self
        costs = [cost for cost in (self.cost, earlier.cost) if cost is not None]
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + earlier.prompt_tokens,
            cached_tokens=self.cached_tokens + earlier.cached_tokens,
            completion_tokens=self.completion_tokens + earlier.completion_tokens,
            cost=sum(costs) if costs else None,
        )

    def line(self) -> str:
        """Return the result as one line of JSON with all its fields, without a line end; `parsed` reads it."""
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one try, and the files to store with it: content by file name, without a folder."""

    result: TaskResult
    files: Mapping[str, bytes] = field(default_factory=dict)


def parsed(line: str) -> TaskResult | None:
    """Return the result in a line of `results.jsonl` or a `result.json`; None if it is cut off or no result. Unknown
    fields are ignored.
    """
    try:
        values = json.loads(line)
        # A newer version may have written the folder, with more fields.
        known = {item.name for item in fields(TaskResult)}
        kept = {name: value for name, value in values.items() if name in known}
        return TaskResult(**{**kept, "files": tuple(kept.get("files", ()))})
    except (ValueError, TypeError, AttributeError):
        return None


class ResultFolder:
    """The folder `DIR` of one batch. Use it as a context: it is created and locked on entering; UsageError if another
    batch holds it, it has other files, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    @property
    def work(self) -> Path:
        """The path of the folder, in the batch's own, in which tasks are done on this machine; it need not exist."""
        return self.path / WORK

    def __enter__(self) -> Self:
        """Take the folder. UsageError if another batch has it, if it has other files, or it cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not (self.path / _LOCK).exists() and any(self.path.iterdir()):
                raise UsageError("batch.foreign", path=self.path)
            self._lock = open_appending(self.path / _LOCK)
            # Held as long as the descriptor is open, so a batch that is killed lets go of it.
            lock(self._lock)
        except BlockingIOError as error:
            os.close(self._lock)
            raise UsageError("batch.busy", path=self.path) from error
        except OSError as error:
            raise UsageError("batch.unwritable", path=self.path, reason=error.strerror or error) from error
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def begun(self) -> bool:
        """Return whether the folder has results of an earlier batch, finished or not; looks at the disk."""
        return (self.path / RESULTS).exists() or any(self.path.glob(f"*/{RESULT}"))

    def earlier(self, tasks: Iterable[BatchTask]) -> dict[str, TaskResult]:
        """Return the recorded results of these tasks, by id; those of a task that has changed since are left out."""
        found = {task: self._read(task.id) for task in tasks}
        return {task.id: result for task, result in found.items() if result and result.digest == task.digest}

    def list_results(self, results: Iterable[TaskResult]) -> None:
        """Replace `results.jsonl` by these results, ordered by their start. OSError if it cannot be written."""
        lines = "".join(f"{result.line()}\n" for result in sorted(results, key=lambda item: item.started))
        _replace(self.path / RESULTS, lines.encode())

    def record(self, outcome: Outcome) -> None:
        """Write the files of one try in place of those of earlier ones, `result.json` last with the tokens and costs of
        all tries, then a line in `results.jsonl`. Blocks until it is on disk; OSError if it cannot be written.

        After a kill at any moment the task is either finished or done again, and what was used is known.
        """
        place = self.path / outcome.result.id
        line = f"{outcome.result.after(self._read(outcome.result.id)).line()}\n".encode()
        place.mkdir(exist_ok=True)
        for entry in place.iterdir():
            if entry.name != RESULT:  # what earlier tries have used stays known until it is in the new one
                _remove(entry)
        for name, content in outcome.files.items():
            (place / name).write_bytes(content)
        _replace(place / RESULT, line)
        with (self.path / RESULTS).open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _read(self, task_id: str) -> TaskResult | None:
        try:
            return parsed((self.path / task_id / RESULT).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _replace(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    made = path.with_name(f".{path.name}.tmp")
    with made.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)
