"""Messages in any order: nothing hangs, all is answered by the schema, nothing is written that was not agreed to."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from codeagent_lsp.acp_agent.open_session import OpenSession
from tests.acp_agent.editor import Editor
from tests.acp_agent.in_process import InProcessEditor, all_in_process
from tests.acp_agent.restless import SCRIPT, Restless, offers, workspace_in
from tests.examples import volume

pytestmark = pytest.mark.slow

ORDERS = range(volume(10_000, fewer=150))
AT_A_TIME = 32
logger = logging.getLogger(__name__)


@pytest.mark.parametrize("seed", range(3))
async def test_any_order_is_answered_by_processes(tmp_path: Path, seed: int) -> None:
    async with Editor(workspace_in(tmp_path), tmp_path / "state", SCRIPT, offers(seed)) as editor:
        restless = Restless(editor, seed)
        await restless.run()
        await restless.leave()


@pytest.mark.timeout(2 * 3600)  # half an hour for all, on a processor of its own
async def test_any_order_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seldom_collected: None) -> None:
    wrong = await tried(tmp_path, monkeypatch, ORDERS)
    assert not wrong, "\n".join(f"{seed}: {why}" for seed, why in wrong.items())


async def test_a_session_that_loses_the_end_of_its_runs_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenSession, "_resolve", lambda *_: None)
    monkeypatch.setattr(InProcessEditor, "seconds", 2.0)
    assert await tried(tmp_path, monkeypatch, [1])


@pytest.fixture
def seldom_collected() -> Iterator[None]:
    """Fewer garbage collections, which otherwise take a tenth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    yield
    gc.set_threshold(*before)


async def tried(folder: Path, monkeypatch: pytest.MonkeyPatch, seeds: Iterable[int]) -> dict[int, str]:
    """Run orders in this process, some at a time, and return what went wrong by seed."""
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
    return wrong
