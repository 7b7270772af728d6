"""A clock that leaps to the next timer as soon as nothing else is left to do: waiting for seconds takes none.

Only for tests of code that waits for timers alone. A thread, a process or a socket takes its time, which this clock
does not see: a time limit on one of these is over at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def leaping(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make a test of this coroutine function whose event loop has such a clock, which begins at nought."""

    @wraps(test)
    def run(*given: P.args, **named: P.kwargs) -> T:
        with asyncio.Runner(loop_factory=_LeapingLoop) as runner:
            return runner.run(test(*given, **named))

    return run


class _Selector(selectors.DefaultSelector):
    """Looks at what is ready and waits for nothing: `now` is when that would have been over."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # there is no timer: something else will happen
            return super().select()
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class _LeapingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now
