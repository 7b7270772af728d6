"""Rewriting of a conversation for models without native tools: calls and results become text, roles alternate.

The result depends only on the messages, so that the beginning of the prompt stays the same from call to
call (for the prompt cache). Calls are always serialized from their values: malformed ones are never sent again. Not
here: the instructions (`call_instructions.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

from codeagent_lsp.llm import wire
from codeagent_lsp.messages import Message, ToolCall

WriteCall = Callable[[ToolCall], str]
WriteAnswer = Callable[[str], str]
Pairs = list[tuple[ToolCall, Message | None]]


def as_text(
    messages: Iterable[Message],
    instructions: str,
    write_call: WriteCall,
    write_answer: WriteAnswer = str,
    *,
    together: bool = False,
) -> tuple[Message, ...]:
    """Return the messages as text, with `instructions` added to the system message.

    Each call of a message becomes a message of its own, followed by its result; with `together` all calls stay in
    one message, after its text.
    """
    source = _with_instructions(list(messages), instructions)
    written: list[Message] = []
    position = 0
    while position < len(source):
        message = source[position]
        position += 1
        if message.role == "tool":  # its call is no longer in the history
            written.append(Message("user", _result(message, message.name), images=message.images))
        elif message.tool_calls:
            results = list(itertools.takewhile(lambda item: item.role == "tool", source[position:]))
            position += len(results)
            pairs = [(call, _of(call, results)) for call in message.tool_calls]
            write = _in_one if together else _one_by_one
            written += write(message.content, pairs, write_call)
        elif message.role == "assistant":
            written.append(Message("assistant", write_answer(message.content)))
        else:
            written.append(message)
    return tuple(_alternating(wire.tidy(written)))


def _with_instructions(messages: list[Message], instructions: str) -> list[Message]:
    if not instructions:
        return messages
    if messages and messages[0].role == "system":
        first = replace(messages[0], content=f"{messages[0].content}\n\n{instructions}")
        return [first, *messages[1:]]
    return [Message("system", instructions), *messages]


def _of(call: ToolCall, results: list[Message]) -> Message | None:
    return next((result for result in results if result.tool_call_id == call.id), None)


def _one_by_one(said: str, pairs: Pairs, write_call: WriteCall) -> list[Message]:
    written = []
    for call, result in pairs:
        # Without `said`: under a grammar a reply is one JSON object, and a history that shows text beside it teaches
        # otherwise.
        written.append(Message("assistant", write_call(call)))
        written.append(Message("user", _result(result, call.name), images=result.images if result else ()))
    return written


def _in_one(said: str, pairs: Pairs, write_call: WriteCall) -> list[Message]:
    calls = [write_call(call) for call, _ in pairs]
    answers = [_result(result, call.name) for call, result in pairs]
    images = tuple(image for _, result in pairs if result for image in result.images)
    return [
        Message("assistant", "\n".join([said, *calls] if said else calls)),
        Message("user", "\n\n".join(answers), images=images),
    ]


def _result(message: Message | None, name: str) -> str:
    if message is None:
        return f"Result of {name or 'the tool'}: none, the call did not run."
    return f"Result of {name or message.name or 'the tool'}:\n{message.content}"


def _alternating(messages: list[Message]) -> list[Message]:
    """Join neighbours of the same role, and put a user message before an assistant that would speak first."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            images = joined[-1].images + message.images
            joined[-1] = replace(joined[-1], content=f"{joined[-1].content}\n\n{message.content}", images=images)
        # Several chat templates raise an error for an assistant that comes first.
        elif message.role == "assistant" and (not joined or joined[-1].role == "system"):
            joined += [Message("user", "(The conversation goes on.)"), message]
        else:
            joined.append(message)
    return joined
