"""Results for reports: many at random with a seed, and one in which every text is hostile."""

from __future__ import annotations

import random
from typing import Any

from codeagent_lsp.batch.results import Reason, TaskResult

REASONS: tuple[Reason, ...] = ("check", "timeout", "unchanged", "model", "setup")
HOSTILE = (
    "\"'><script>alert(1)</script><img src=//evil.example/x onerror=alert(1)> | `x` ``y`` @admin #1 a/b#2 "
    "[link](javascript:alert(1)) ![i](//evil.example/i) https://evil.example www.evil.example \\| $(id) \r\n\n"
    "| cell | \x1b[31m\u202egpj.exe\u200b\x00\ud800 ~~~ <!-- -->&amp;"
)


def result(name: str = "one", **more: Any) -> TaskResult:
    """A task that was solved."""
    values = {"solved": True, "checked": True, "status": "completed", "cost": 0.02, "seconds": 30.0, **more}
    usage = {"prompt_tokens": 20_000, "cached_tokens": 10_000, "completion_tokens": 500, "started": 1.8e9}
    return TaskResult(**{"id": name, "digest": "d", "model": "some-model", "task": "Mend it", **usage, **values})


def unsolved(name: str = "two", **more: Any) -> TaskResult:
    """A task that was not."""
    return result(name, **{"solved": False, "reason": "check", "error": "exit code 1. boom", **more})


def hostile(name: str = HOSTILE) -> TaskResult:
    """A task of which every text wants to be more than text."""
    texts = {"task": HOSTILE, "error": HOSTILE, "model": HOSTILE, "summary": HOSTILE, "files": (HOSTILE, "a.py")}
    return unsolved(name, **texts)


def many(count: int, seed: int = 1) -> list[TaskResult]:
    """So many tasks, two of three solved."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        tokens, seconds = int(chance.lognormvariate(10.5, 0.9)), chance.lognormvariate(4.2, 0.8)
        more = {"prompt_tokens": tokens, "cost": tokens * 4e-7, "seconds": seconds, "started": 1.8e9 + 20 * number}
        if chance.random() < 0.67:
            found.append(result(f"task-{number:04d}", **more, checked=chance.random() < 0.85, files=("a.py",), added=3))
        else:
            found.append(unsolved(f"task-{number:04d}", **more, reason=chance.choice(REASONS)))
    return found
