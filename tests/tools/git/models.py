"""A model that writes from a list, for benches."""

from __future__ import annotations

from dataclasses import dataclass, field

from codeagent_lsp.errors import ModelUnreachable
from codeagent_lsp.tools.context import Complete
from codeagent_lsp.tools.executor import ToolExecutor
from tests.tools.fakes import Bench


@dataclass
class Writer:
    """Gives the next answer and keeps what it was asked; out of answers, it cannot be reached."""

    answers: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, instructions: str, text: str) -> str:
        self.asked.append((instructions, text))
        if not self.answers:
            raise ModelUnreachable("model.unreachable", url="http://127.0.0.1:1", reason="refused")
        return self.answers.pop(0)


def with_writer(bench: Bench, *answers: str) -> Writer:
    """Let the bench ask a model that gives these answers."""
    writer = Writer(list(answers))
    bench.context = bench.context.having((Complete, writer))
    bench.executor = ToolExecutor(bench.registry, bench.context, lambda: bench.mode, bench.approvals)
    return writer
