"""Background tasks: kept until they end, cancelled at once or after a grace period."""

from __future__ import annotations

import asyncio
import gc

import pytest

from codeagent_lsp.background_tasks import BackgroundTasks


async def test_a_task_is_kept_until_it_ends() -> None:
    tasks = BackgroundTasks()
    ended = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.01)
        ended.set()

    tasks.start(work())
    gc.collect()
    assert len(tasks) == 1
    await asyncio.wait_for(ended.wait(), 1)
    await asyncio.sleep(0)
    assert len(tasks) == 0


async def test_all_are_cancelled() -> None:
    tasks = BackgroundTasks()
    started = [tasks.start(asyncio.sleep(60)) for _ in range(3)]
    tasks.cancel()
    await asyncio.wait(started)
    assert all(task.cancelled() for task in started)
    assert len(tasks) == 0


@pytest.mark.slow
async def test_close_waits_for_the_quick_and_cancels_the_late() -> None:
    tasks = BackgroundTasks()
    quick, late = tasks.start(asyncio.sleep(0.01, "done")), tasks.start(asyncio.sleep(60))
    await tasks.close(0.2)
    await asyncio.wait([late])
    assert quick.result() == "done"
    assert late.cancelled()


async def test_close_without_tasks_returns_at_once() -> None:
    await asyncio.wait_for(BackgroundTasks().close(60), 1)
