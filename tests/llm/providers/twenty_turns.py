"""Twenty requests of one conversation with parallel calls and reasoning, and what the server read of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from codeagent_lsp.llm.model import Model, ModelRequest, ReasoningChunk, Reply
from codeagent_lsp.messages import Message, Usage
from codeagent_lsp.session.replay import message_from_dict, message_to_dict
from tests.llm.providers.fake_server import Said, shared
from tests.llm.support import TOOLS

TURNS = 20
START = Message("system", "You are careful. " * 40)


def script() -> list[Said]:
    """Every fourth reply is an answer, the others are two calls each."""
    said = []
    for turn in range(TURNS):
        thoughts = f"Turn {turn}: is it “this” or that?\nI look. "
        calls = tuple(("read_file", {"path": f"src/{turn}/{name}.py", "offset": turn}) for name in ("ä", "b"))
        said.append(Said(f"Answer {turn}.", thoughts) if turn % 4 == 3 else Said(f"Step {turn}. ", thoughts, calls))
    return said


async def converse(model: Model, *, stored: bool) -> tuple[list[Usage], list[str]]:
    """Hold the conversation, its messages stored and read again before each request if so wanted; usage, reasoning."""
    messages = [START, Message("user", "Look at all of it.")]
    usage, reasoning = [], []
    for turn in range(TURNS):
        asked = [_again(message) for message in messages] if stored else messages
        reply, thought = await answer(model, ModelRequest(tuple(asked), tools=TOOLS))
        usage.append(reply.usage)
        reasoning.append(thought)
        assert len(reply.tool_calls) == (0 if turn % 4 == 3 else 2)
        messages.append(Message("assistant", reply.text, reply.tool_calls, carried=reply.carried))
        for call in reply.tool_calls:
            messages.append(Message("tool", f"{call.arguments['path']} has 3 lines.", (), call.id, call.name))
        if not reply.tool_calls:
            messages.append(Message("user", f"Go on after {turn}."))
    return usage, reasoning


async def answer(model: Model, request: ModelRequest) -> tuple[Reply, str]:
    """The reply, and the reasoning as it was shown."""
    thought = ""
    reply: Reply | None = None
    async for item in model.stream(request):
        if isinstance(item, ReasoningChunk):
            thought += item.text
        elif isinstance(item, Reply):
            reply = item
    assert reply is not None
    return reply, thought


def kept_prefixes(bodies: Sequence[Any], prompt: Callable[[Any], Any]) -> Iterator[float]:
    """Of each request's prompt, the share that is the beginning of the next one's, byte for byte."""
    texts = [json.dumps(prompt(body), ensure_ascii=False).rstrip("]}") for body in bodies]
    for earlier, later in pairwise(texts):
        yield shared(earlier, later) / len(earlier)


def _again(message: Message) -> Message:
    return message_from_dict(json.loads(json.dumps(message_to_dict(message))))
