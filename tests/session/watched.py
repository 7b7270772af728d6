"""A model that is watched while a run talks to it: what each call sent, and how much of it came from the cache."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from codeagent_lsp.llm.model import Model, ModelRequest, Reply, StreamItem, WrappedModel

HEAD = "call  prompt  cached  share  of what stood before  the model's reply"


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of the model. `stood` are the tokens of the prompt before it and of the reply to that, as far as this
    prompt begins with them: a reply that was cut is left out. 0 where it is another prompt: the first, and what a
    compaction asks and leaves.
    """

    request: ModelRequest
    reply: Reply
    stood: int

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, by the server."""
        return self.reply.usage.prompt_tokens

    @property
    def cached(self) -> int:
        """Those that the server had in its cache."""
        return self.reply.usage.cached_tokens

    @property
    def row(self) -> str:
        """A line of the table."""
        share = self.cached / self.prompt if self.prompt else 0.0
        of_stood = f"{self.cached / self.stood:.1%}" if self.stood else "(another prompt)"
        calls = ", ".join(f"{call.name} {dict(call.arguments)}" for call in self.reply.tool_calls)
        told = " ".join((calls or self.reply.problem or self.reply.text).split())
        return f"{self.prompt:6}  {self.cached:6}  {share:5.1%}  {of_stood:>20}  {told[:90]}"


class WatchedModel(WrappedModel):
    """Passes everything on to the model inside and keeps it in `asked`."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.asked: list[Asked] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async with aclosing(self._model.stream(request)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    self.asked.append(Asked(request, item, self._stood(request)))
                yield item

    def _stood(self, request: ModelRequest) -> int:
        if not self.asked:
            return 0
        last = self.asked[-1]
        before = last.request
        count = len(before.messages)
        if request.tools != before.tools or request.messages[:count] != before.messages:
            return 0
        kept = not last.reply.problem and [message.role for message in request.messages[count : count + 1]]
        return last.prompt + (last.reply.usage.completion_tokens if kept == ["assistant"] else 0)


def share(asked: Sequence[Asked]) -> float:
    """The cached tokens of all prompt tokens of these calls."""
    return sum(call.cached for call in asked) / sum(call.prompt for call in asked)


def table(asked: Sequence[Asked]) -> str:
    """A line per call."""
    return "\n".join([HEAD, *(f"{number:4}  {call.row}" for number, call in enumerate(asked, 1))])
