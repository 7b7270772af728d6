"""Where a budget ends in the middle of a step, the step is not left at work, and can be done again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from codeagent_lsp.errors import BudgetSpent
from codeagent_lsp.llm.model import ModelRequest, StreamItem
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from tests.session.fakes import world
from tests.session.plan.plans import create, reloaded, run, states, step


class Stingy(ScriptedModel):
    """A scripted model whose budget ends after some calls."""

    left = 3

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Give the next reply, or raise."""
        self.left -= 1
        if self.left < 0:
            raise BudgetSpent("budget.tokens", limit="100", spent="120")
        async for item in super().stream(request):
            yield item


async def test_the_step_is_cancelled_and_the_next_one_waits(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.models["model"] = Stingy([create("a", "b", "c"), *step(1), *step(2)])
    done = await run(made)
    assert (done.status, done.stopped_by) == ("stopped", "budget")
    assert states(reloaded(made)) == ["completed", "cancelled", "pending"]
