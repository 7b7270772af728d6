"""A model with stand-ins: when one fails before its first word, after its own retries, the next takes over for good.

Not here: retries of one model (`retry.py`), opening models (`factory.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from codeagent_lsp.errors import ContextOverflow, ModelError, ModelReplyInvalid
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, StreamItem

Opener = Callable[[], Awaitable[Model]]
Tell = Callable[[ModelError, ModelInfo], None]
"""Receives why the model before failed, and the one that takes over."""


class StandInModel:
    """The `Model` port around the first of several models that works; the models belong to whoever opened them."""

    def __init__(self, model: Model, others: Sequence[Opener], tell: Tell) -> None:
        self._model = model
        self._others = list(others)
        self._tell = tell

    @classmethod
    async def open(cls, openers: Sequence[Opener], tell: Tell) -> StandInModel:
        """Return the first model that can be opened, with the others behind it. Raises the error of the first."""
        first, *others = openers
        try:
            return cls(await first(), others, tell)
        except ModelError as error:
            stand_in = await _next(others, error, tell)
            return cls(stand_in, others, tell)

    @property
    def info(self) -> ModelInfo:
        """Return the info of the model that works now."""
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Stream the reply of the first model that gives one. Raises the error of the first if none does."""
        while True:
            begun = False
            try:
                async with aclosing(self._model.stream(request)) as items:
                    async for item in items:
                        begun = True
                        yield item
                return
            except (ContextOverflow, ModelReplyInvalid):
                raise  # about this request: another model is no cure
            except ModelError as error:
                if begun:
                    raise
                self._model = await _next(self._others, error, self._tell)

    async def count_tokens(self, text: str) -> int:
        """Return the number of tokens as the present model counts them."""
        return await self._model.count_tokens(text)

    async def close(self) -> None:
        """Close the present model."""
        await self._model.close()


async def _next(others: list[Opener], error: ModelError, tell: Tell) -> Model:
    """Return the next model that can be opened, taken out of the list. Raises `error` when there is none."""
    while others:
        try:
            model = await others.pop(0)()
        except ModelError:
            continue
        tell(error, model.info)
        return model
    raise error
