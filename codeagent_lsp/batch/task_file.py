"""The tasks of a batch and its options. A file of tasks is one JSON object a line, checked before anything is started.

Options are one value, which also travels to workers. Not here: the command line (`command.py`), doing a task
(`perform.py`), what came of it (`results.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import UsageError

DEFAULT_SECONDS = 1800.0
MAX_SECONDS = 24 * 3600.0

_TAKEN = frozenset({"results.jsonl", "report.html", "report.md"})
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TEXTS = ("id", "repo", "folder", "commit", "task", "setup", "check")
_KEYS = (*_TEXTS, "timeout")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BatchTask:
    """One task. `repo` (an address or an absolute path, with an optional `commit`) or `folder` (an absolute path) is
    where it begins; `setup` and `check` are shell commands, '' for none; `timeout` is how many seconds the agent has.
    """

    id: str
    task: str
    repo: str = ""
    folder: str = ""
    commit: str = ""
    setup: str = ""
    check: str = ""
    timeout: float = DEFAULT_SECONDS

    @property
    def digest(self) -> str:
        """16 hexadecimal digits (of SHA-256) that change with anything in the task, by which its results are
        recognized.
        """
        whole = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The name of the folder that the agent works in: that of the repository or folder; `task` if that gives
        none.
        """
        last = re.split(r"[/:\\]", (self.repo or self.folder).rstrip("/"))[-1].removesuffix(".git")
        return re.sub(r"[^\w.-]", "-", last).lstrip(".-") or "task"


def read_tasks(path: Path) -> tuple[BatchTask, ...]:
    """Return the tasks of a file of JSON Lines, in order; relative folders and repositories are relative to the file's
    folder. UsageError with the line and what is wrong with it, if one is invalid, the file has none or cannot be read.
    """
    try:
        # Not splitlines, which also splits at U+2028, allowed inside of JSON texts.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("batch.unreadable", path=path, reason=error) from error
    tasks: dict[str, BatchTask] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = _task(json.loads(line), path.parent.absolute())
            if task.id.casefold() in tasks:  # one folder each, also where file names have no case
                raise ValueError(f"the id {task.id} is there already")
        except ValueError as error:
            raise UsageError("batch.line", path=path, line=number, reason=error) from error
        tasks[task.id.casefold()] = task
    if not tasks:
        raise UsageError("batch.empty", path=path)
    return tuple(tasks.values())


def _task(entry: Any, base: Path) -> BatchTask:
    """Return the task of one line; ValueError says what is wrong."""
    if not isinstance(entry, dict):
        raise ValueError("it is not a JSON object")
    if strange := [key for key in entry if key not in _KEYS]:
        raise ValueError(f"unknown key {strange[0]!r}; known: {', '.join(_KEYS)}")
    texts = {key: _text(entry, key) for key in _TEXTS if entry.get(key) is not None}
    if not _ID.fullmatch(texts.get("id", "")):
        raise ValueError("id: letters, digits, '.', '_' and '-', 100 at most, beginning with a letter or digit")
    if texts["id"].casefold() in _TAKEN:
        raise ValueError(f"id: {texts['id']} is a file of the results")
    if not texts.get("task", "").strip():
        raise ValueError("task: say what shall be done")
    if bool(texts.get("repo")) == bool(texts.get("folder")):
        raise ValueError("either repo or folder says where the task begins")
    if texts.get("commit") and not texts.get("repo"):
        raise ValueError("commit: only with repo")
    if texts.get("commit", "").startswith("-"):
        raise ValueError("commit: a commit, a branch or a tag")
    return BatchTask(**{**texts, **_places(texts, base)}, timeout=_seconds(entry.get("timeout")))


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{key}: a text")
    return value


def _places(texts: Mapping[str, str], base: Path) -> dict[str, str]:
    """Return where the task begins, with absolute paths."""
    if folder := texts.get("folder"):
        path = (base / Path(folder).expanduser()).resolve()
        if not path.is_dir():
            raise ValueError(f"folder: {path} is no folder")
        return {"folder": str(path)}
    repo = texts["repo"]
    if repo.startswith("-"):
        raise ValueError("repo: an address or a path")
    if _ADDRESS.match(repo):
        return {"repo": repo}
    path = (base / Path(repo).expanduser()).resolve()
    if not path.is_dir():
        raise ValueError(f"repo: {path} is no folder; an address has a scheme, such as https://")
    return {"repo": str(path)}


def _seconds(value: Any) -> float:
    if value is None:
        return DEFAULT_SECONDS
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_SECONDS:
        raise ValueError(f"timeout: seconds, more than 0 and at most {MAX_SECONDS:.0f}")
    return float(value)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How the tasks of a batch are done: `settings` are pairs of flat key and value, `environment` the variables that
    workers on other machines lack; each task is tried by `attempts` runs; `accept_all` also allows what would need an
    approval; `language` is that of texts for users.
    """

    settings: tuple[tuple[str, Any], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    attempts: int = 1
    accept_all: bool = False
    language: str = "en"

    def limited(self, usd: float) -> BatchOptions:
        """Return the options of one task that may cost at most `usd` US dollars, all attempts together; a lower limit
        in the settings stays.
        """
        share = usd / self.attempts
        own = dict(self.settings).get("budget.usd")
        least = share if own is None else min(share, float(own))
        return replace(self, settings=(*self.settings, ("budget.usd", least)))


@dataclass(frozen=True, slots=True)
class Job:
    """One task with the options by which it is done; it is sent to workers."""

    task: BatchTask
    options: BatchOptions
