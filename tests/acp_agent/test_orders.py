"""Messages in any order: nothing hangs, all is answered by the schema, nothing is written that was not agreed to."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.acp_agent.editor import Editor
from tests.acp_agent.in_process import InProcessEditor, all_in_process
from tests.acp_agent.restless import SCRIPT, Restless, offers, workspace_in

pytestmark = pytest.mark.slow

IN_PROCESSES = range(3)
FEW, ALL = range(12), range(int(os.environ.get("CODEAGENT_TEST_ORDERS", "10000")))
AT_A_TIME = 32
logger = logging.getLogger(__name__)


@pytest.mark.parametrize("seed", IN_PROCESSES)
async def test_any_order_is_answered(tmp_path: Path, seed: int) -> None:
    async with Editor(workspace_in(tmp_path), tmp_path / "state", SCRIPT, offers(seed)) as editor:
        restless = Restless(editor, seed)
        await restless.run()
        await restless.leave()


async def test_many_orders_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await all_answered(tmp_path, monkeypatch, FEW)


@pytest.mark.volume
@pytest.mark.alone
@pytest.mark.timeout(3600)
async def test_ten_thousand_orders_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seldom_collected: None
) -> None:
    await all_answered(tmp_path, monkeypatch, ALL)


@pytest.fixture
def seldom_collected() -> Iterator[None]:
    """Fewer garbage collections, which otherwise take a tenth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    yield
    gc.set_threshold(*before)


async def all_answered(folder: Path, monkeypatch: pytest.MonkeyPatch, seeds: Iterable[int]) -> None:
    """Run orders in this process, some at a time; fail with all that went wrong."""
    all_in_process(monkeypatch, folder / "state")
    free, wrong = asyncio.Semaphore(AT_A_TIME), dict[int, str]()

    async def one(seed: int) -> None:
        async with free:
            place = folder / str(seed)
            try:
                async with InProcessEditor(workspace_in(place), place / "state", SCRIPT, offers(seed)) as editor:
                    restless = Restless(editor, seed)
                    await restless.run()
                    await restless.leave()
            except Exception as error:  # told at the end, with all others
                wrong[seed] = f"{type(error).__name__}: {error}"[:2000]
                logger.warning("order %d: %s", seed, wrong[seed])
            finally:
                await asyncio.to_thread(shutil.rmtree, place)

    await asyncio.gather(*map(one, seeds))
    assert not wrong, "\n".join(f"{seed}: {why}" for seed, why in wrong.items())
