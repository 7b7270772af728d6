"""A model that spends its reply on thinking gets room for the answer beside it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from codeagent_lsp.direct.question import FilesQuestion
from codeagent_lsp.direct.solver import THINKING_TOKENS, Solver, SolverLimits
from codeagent_lsp.llm.model import ModelRequest, Reply, StreamItem
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from tests.direct.test_solver import BOTH, PROVED, Bench, check


class Thinker(ScriptedModel):
    """A scripted model that thinks for 2,000 tokens before it says anything."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Give the next reply, or only thoughts where there is no room for more."""
        if (request.max_tokens or 0) < 2000:
            self.requests.append(request)
            yield Reply("", finish_reason="length", reasoning="hm, " * 100)
            return
        async for item in super().stream(request):
            yield item


async def test_the_second_request_has_room_for_thoughts() -> None:
    bench, model = Bench(check), Thinker([BOTH, BOTH])
    question = FilesQuestion("The tests fail. Repair it.", PROVED, 2048, "function")
    solver = Solver(model, bench, question, SolverLimits(window=32_768), lambda event: None)
    solution = await solver.solve(is_task=True)
    assert solution.ending == "solved"
    first, second = (request.max_tokens or 0 for request in model.requests[:2])
    assert second == first + THINKING_TOKENS
