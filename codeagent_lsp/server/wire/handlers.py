"""Runs a handler of any kind: plain function, coroutine, thread function, or pygls' generators.

A plain function runs at once, in the order the messages came; what takes longer is returned to be started later.
Neither raises but returns an `Outcome`, so that not even a `SystemExit` in a handler reaches the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from pygls.feature_manager import is_thread_function

Handler = Callable[..., Any]
Executors = Callable[[], Executor]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a handler: `error` is None when `value` is its result."""

    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """The part of a handler that takes time. Nothing has begun before `start` is called."""

    start: Callable[[], Awaitable[Any]]

    async def outcome(self) -> Outcome:
        """Run it to its end; raises only when it is cancelled."""
        try:
            return Outcome(await self.start())
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (the loop would end with a SystemExit or KeyboardInterrupt)
            return Outcome(error=error)


def run(handler: Handler, params: Any, executor: Executors) -> Outcome | Later:
    """Run a handler as far as it goes without waiting. `executor` returns the pool for thread functions."""
    try:
        result = _call(handler, (params,), {}, executor)
    except BaseException as error:  # noqa: BLE001 (a handler must not end the server, whatever it raises)
        return Outcome(error=error)
    return result if isinstance(result, Later) else Outcome(result)


def _call(handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any], executor: Executors) -> Any:
    if is_thread_function(handler):  # type: ignore[no-untyped-call]
        return Later(partial(_in_thread, partial(handler, *args, **kwargs), executor))
    if inspect.iscoroutinefunction(handler):
        return Later(partial(handler, *args, **kwargs))
    result = handler(*args, **kwargs)
    if inspect.isgenerator(result):
        return _drive(result, executor)
    return Later(lambda: result) if inspect.isawaitable(result) else result


async def _in_thread(call: Callable[[], Any], executor: Executors) -> Any:
    def work() -> Outcome:
        try:
            return Outcome(call())
        except BaseException as error:  # noqa: BLE001 (a future cannot carry every exception)
            return Outcome(error=error)

    outcome = await asyncio.get_running_loop().run_in_executor(executor(), work)
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _drive(generator: Generator[Any, Any, Any], executor: Executors, error: BaseException | None = None) -> Any:
    """Run a built-in handler that yields the calls it wants made, as far as that goes without waiting."""
    value: Any = None
    while True:
        try:
            step = generator.send(value) if error is None else generator.throw(error)
        except StopIteration as stop:
            return stop.value
        handler, args, kwargs = step
        try:
            value, error = _call(handler, args, kwargs or {}, executor), None
        except BaseException as failure:  # noqa: BLE001 (the generator's to handle or pass on)
            error = failure
            continue
        if isinstance(value, Later):
            return Later(partial(_drive_on, generator, value, executor))


async def _drive_on(generator: Generator[Any, Any, Any], later: Later, executor: Executors) -> Any:
    error: BaseException | None = None
    try:
        await later.start()
    except BaseException as failure:  # noqa: BLE001 (the generator's to handle or pass on, being cancelled included)
        error = failure
    rest = _drive(generator, executor, error)
    return await rest.start() if isinstance(rest, Later) else rest
