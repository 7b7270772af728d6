"""Cancels the work of runs at one chosen await: the only way to know that every one of them was tried.

A run's coroutine is driven through a wrapper that counts how often it waits. Not here: what is looked at afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

RUNS = ("Run.execute", "Run.work_on")


@dataclass
class Steps:
    """Which await is the one, from 1, and how many there have been; 0 cancels at none."""

    at: int
    count: int = 0

    @property
    def reached(self) -> bool:
        """Whether the run waited so often."""
        return 0 < self.at <= self.count


@contextmanager
def cancelled_at(number: int) -> Iterator[Steps]:
    """Within this, the first run that begins is cancelled when it waits for the `number`th time."""
    loop, steps = asyncio.get_running_loop(), Steps(number)

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        watched = getattr(work, "__qualname__", "") in RUNS
        return asyncio.Task(_Stepped(work, steps) if watched else work, loop=loop, **more)

    loop.set_task_factory(factory)
    try:
        yield steps
    finally:
        loop.set_task_factory(None)


class _Stepped(Coroutine[Any, Any, Any]):
    """Cancels its own task in the step that leads to the await in question, so that it strikes exactly there."""

    def __init__(self, inner: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def send(self, value: Any) -> Any:
        waited = self._inner.send(value)
        self._waits()
        return waited

    def throw(self, kind: Any, value: Any = None, trace: TracebackType | None = None, /) -> Any:
        waited = self._inner.throw(kind) if value is None else self._inner.throw(kind, value, trace)
        self._waits()
        return waited

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def _waits(self) -> None:
        self._steps.count += 1
        if self._steps.count == self._steps.at:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
