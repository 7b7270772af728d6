"""Tasks as lines for `codeagent-lsp batch`, so that anybody can measure a model with the product's own report."""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import Path

from tests.bench.tasks.task import Task


def batch_line(task: Task, project: Path, seconds: float) -> str:
    """One line of a tasks file; its check lays the tests fresh, in the private view in which it runs."""
    laid = (f"echo {_packed(task.files[name])} | base64 -d > {shlex.quote(name)}" for name in task.tests)
    check = " && ".join([*laid, " ".join("python3" if word == "python" else shlex.quote(word) for word in task.check)])
    line = {"id": task.id, "folder": str(project.resolve()), "task": task.words, "check": check, "timeout": seconds}
    return json.dumps(line, ensure_ascii=False)


def _packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
