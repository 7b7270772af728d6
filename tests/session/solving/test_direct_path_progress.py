"""What the user is told while a model is tried out and while its first answer is on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from codeagent_lsp import events
from codeagent_lsp.direct.aptitude import Proof, Score
from codeagent_lsp.llm.model import Model
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.request import RunRequest
from tests.session.fakes import World, know, until
from tests.session.solving.test_direct_path import MEAN, TASK, Known, shop


class SlowProbe(Known):
    """Answer forms that are tried out until `over` is set."""

    def __init__(self, proof: Proof) -> None:
        super().__init__(proof)
        self.over = asyncio.Event()

    async def proof(self, model: Model, on_probe: Callable[[], None]) -> Proof:
        on_probe()
        await self.over.wait()
        return await super().proof(model, on_probe)


def told(made: World) -> list[str]:
    return [event.message for event in made.events if isinstance(event, events.StatusChanged)]


async def test_the_attempt_is_told_before_the_answer_comes(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.script(ScriptedReply(MEAN.text, chunks=1, delay=60))
    run_id = made.manager.start(RunRequest("run", TASK, TASK))
    await until(lambda: told(made) == ["Attempt 1 of 3"])
    assert next(event.type for event in made.events if not event.internal) == "response_start"
    made.manager.runs.cancel()
    assert (await made.finished(run_id)).status == "cancelled"


async def test_a_model_is_tried_out_visibly(tmp_path: Path) -> None:
    made = shop(tmp_path, MEAN, form="auto")
    probe = SlowProbe(Proof({"tools": Score(0, 3), "function": Score(3, 3)}))
    know(made, probe)
    run_id = made.manager.start(RunRequest("run", TASK, TASK))
    await until(lambda: len(told(made)) == 1)
    assert told(made)[0].startswith("Testing in which form")
    probe.over.set()
    assert (await made.finished(run_id)).status == "completed"
    assert told(made)[1] == "thinking"
    assert [event.type for event in made.events].count("response_start") == 1
