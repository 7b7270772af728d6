"""One request to the model without tools and without history: instructions and a text in, plain text out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.loop import usage_event
from codeagent_lsp.errors import ModelStreamBroken
from codeagent_lsp.llm.model import Model, ModelRequest, Reply
from codeagent_lsp.messages import Message


async def complete(
    model: Model,
    instructions: str,
    text: str,
    emit: Callable[[events.Event], None],
    reply_tokens: int,
    schema: dict[str, Any] | None = None,
) -> str:
    """Return the model's answer, as JSON where a `schema` is given. Its token usage is emitted as an event, its text is
    not streamed. ModelStreamBroken when the stream ends before the reply is complete.
    """
    messages = (Message("system", instructions), Message("user", text))
    request = ModelRequest(messages, max_tokens=reply_tokens, response_schema=schema)
    async with aclosing(model.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                emit(usage_event(item))
                return item.text
    raise ModelStreamBroken("model.stream_cut", url=model.info.url or model.info.name)
