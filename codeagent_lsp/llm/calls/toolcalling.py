"""Tool calling for any model: by the native tools API, under a JSON grammar, or in plain text.

`ToolCallingModel` wraps a backend and is itself a `Model`; its callers see only `Reply.tool_calls`, or
`Reply.problem` when a call was not understood. Not here: finding out the mode of a model (`llm/factory.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from codeagent_lsp.call_forms import ANSWERS, USE_TOOL, answer_in, several, wrap_call
from codeagent_lsp.errors import ModelRejected, ModelReplyInvalid
from codeagent_lsp.llm import wire
from codeagent_lsp.llm.calls import text_calls, toolcalls
from codeagent_lsp.llm.calls.bare_calls import check
from codeagent_lsp.llm.calls.jsontext import is_deep, loads_object
from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.calls.text_calls import ANSWER, AnswerReader, render
from codeagent_lsp.llm.model import (
    Model,
    ModelInfo,
    ModelRequest,
    Reply,
    StreamItem,
    TextChunk,
    ToolCalling,
    WrappedModel,
)
from codeagent_lsp.messages import Message, ToolCall, ToolSpec

_PLANNING = ("plan_enter", "plan_exit")
_PLAN_EXITS = ("ExitPlanMode", "exit_plan_mode")
_REMEMBERED = 500
_UNREADABLE = 2
"""Replies in a row with calls that cannot be understood, after which a model is asked how it calls tools."""


class Untried(Protocol):
    """Port: a model that is assumed to call tools by the API, and has not been probed (`llm/factory.py`)."""

    async def worked(self) -> None:
        """Remember, in the state folder, that it called tools by the API."""

    async def asked(self) -> ToolCalling:
        """Probe the model by requests and return the mode in which it calls tools."""


class ToolCallingModel(WrappedModel):
    """A model that calls tools in the given mode. `tool_calls` of a reply fit their tools' schemas. Calls that fit are
    kept even when `problem` reports others that do not. With `untried`, it is not known whether it can call tools by
    the API: if it cannot, another mode is found and used from then on.
    """

    def __init__(self, model: Model, mode: ToolCalling, untried: Untried | None = None) -> None:
        super().__init__(model)
        self._mode: ToolCalling = mode
        self._untried = untried
        self._unreadable = 0
        # By call id or answer; bounded, the oldest are forgotten first.
        self._written: OrderedDict[str, str] = OrderedDict()

    @property
    def info(self) -> ModelInfo:
        """The description of the wrapped model, with the mode in which it calls tools."""
        return replace(self._model.info, tool_calling=self._mode)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer in the mode that the model was found to support. If the request has no tools, or a schema of
        its own, no format is imposed. Its `Reply` comes last. ModelError as the wrapped model.
        """
        by_mode = {"native": self._native, "constrained": self._stream_constrained, "text": self._text}
        plain = not request.tools or request.response_schema is not None
        if plain and (self._mode != "native" or not request.tools):  # calls without tools are refused by some servers
            request = self._without_tools(request)
        try:
            async with aclosing(self._model.stream(request) if plain else by_mode[self._mode](request)) as items:
                async for item in items:
                    if isinstance(item, Reply) and not plain:
                        await self._learn(item)
                    yield item
            return
        except ModelRejected as error:
            # Only this refusal says something about the way of calling; and a proven model would not become another
            # one.
            if error.key != "model.no_tools" or self._untried is None or plain:
                raise
            await self._ask()
            if self._mode == "native":
                raise
        async with aclosing(by_mode[self._mode](request)) as items:
            async for item in items:
                yield item

    async def _learn(self, reply: Reply) -> None:
        """Learn from a reply of a model that was not tried: one readable call proves it, and after two unreadable
        replies in a row it is asked in which way it calls tools.
        """
        # A cut reply is unreadable for another reason.
        if self._untried is None or reply.finish_reason == "length":
            return
        if reply.tool_calls:
            untried, self._untried = self._untried, None
            await untried.worked()
            return
        self._unreadable = self._unreadable + 1 if reply.problem else 0
        if self._unreadable >= _UNREADABLE:
            await self._ask()

    async def _ask(self) -> None:
        # Taken before the await: two replies at once must not both ask.
        untried, self._untried = self._untried, None
        if untried is not None:
            self._mode = await untried.asked()

    async def _native(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        shown = False
        answers = _answers(request)
        tools = (*request.tools, *request.also, *answers)
        parser = StreamParser(tools)  # models without native tools write the call into their text
        asked = replace(request, messages=_write_undescribed(request))
        try:
            async with aclosing(self._model.stream(asked)) as items:
                async for item in _without_calls(items, parser):
                    shown = True
                    for each in (
                        _answer_as_text(_coerce_calls(item, tools), answers) if isinstance(item, Reply) else (item,)
                    ):
                        yield each
            return
        except ModelReplyInvalid as error:
            # Once something was shown, a second answer would stand behind it.
            if error.key != "model.server_parse" or shown:
                raise
        async with aclosing(self._text(request)) as items:  # the server fails to parse calls that the model wrote well
            async for item in items:
                yield item

    async def _stream_constrained(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        told = text_calls.constrained_instructions(request.tools)
        asked = replace(
            request,
            messages=text_calls.as_text(request.messages, told, self._write_call, self._write_answer),
            tools=(),
            response_schema=text_calls.reply_schema(_callable(request)),
        )
        reader, shown = AnswerReader(), ""
        async with aclosing(self._model.stream(asked)) as items:
            async for item in items:
                if isinstance(item, TextChunk):
                    if text := reader.feed(item.text):
                        shown += text
                        yield TextChunk(text)
                elif isinstance(item, Reply):
                    answers = _answers(request)
                    reply = _from_object(item, (*request.tools, *request.also, *answers), shown)
                    self._remember(item.text, reply)
                    for each in _answer_as_text(reply, answers):
                        yield each
                else:
                    yield item

    async def _text(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        told = text_calls.instructions(request.tools)
        messages = text_calls.as_text(request.messages, told, render, together=True)
        answers = _answers(request)
        tools = (*request.tools, *request.also, *answers)
        parser = StreamParser(tools)
        asked = replace(request, messages=messages, tools=())
        async with aclosing(self._model.stream(asked)) as items:
            async for item in _without_calls(items, parser):
                for each in (
                    _answer_as_text(_coerce_calls(item, tools), answers) if isinstance(item, Reply) else (item,)
                ):
                    yield each

    def _remember(self, raw: str, reply: Reply) -> None:
        """Remember the model's own bytes of a reply, so that sending them back hits its prompt cache."""
        if loads_object(raw) is None or reply.problem:
            return
        self._written[reply.tool_calls[0].id if reply.tool_calls else reply.text] = raw
        while len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    def _write_call(self, call: ToolCall) -> str:
        return self._written.get(call.id) or text_calls.write_call(call)

    def _write_answer(self, text: str) -> str:
        return self._written.get(text) or text_calls.write_answer(text)

    def _without_tools(self, request: ModelRequest) -> ModelRequest:
        """Rewrite a history that contains calls as text, for a request without tools."""
        if not any(message.tool_calls or message.role == "tool" for message in request.messages):
            return request
        write = text_calls.write_call if self._mode == "constrained" else render
        return replace(request, messages=text_calls.as_text(request.messages, "", write, together=True))


class TextCallsModel(WrappedModel):
    """A model whose calls are not checked. A reply without any is searched for calls in its text, which are carried out
    and not shown.
    """

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer, its `Reply` last; calls in its text are only searched for if the request has tools and no
        schema of its own. ModelError as the wrapped model.
        """
        if not request.tools or request.response_schema is not None:
            async with aclosing(self._model.stream(request)) as items:
                async for item in items:
                    yield item
            return
        answers = _answers(request)
        tools = (*request.tools, *request.also, *answers)
        async with aclosing(self._model.stream(request)) as items:
            async for item in _without_calls(items, StreamParser(tools)):
                if isinstance(item, Reply) and item.text and not item.tool_calls and not item.problem:
                    for each in _answer_as_text(_from_text(item, tools), answers):
                        yield each
                else:
                    yield item


async def _without_calls(
    items: AsyncGenerator[StreamItem, None], parser: StreamParser
) -> AsyncGenerator[StreamItem, None]:
    """Yield the items, with text only as far as it belongs to no call."""
    async for item in items:
        if isinstance(item, TextChunk):
            parser.feed(item.text)
            if text := parser.visible():
                yield TextChunk(text)
            continue
        # Before the reply: text that was held back as a possible call turned out to be text.
        if isinstance(item, Reply) and (rest := parser.rest()):
            yield TextChunk(rest)
        yield item


def _write_undescribed(request: ModelRequest) -> tuple[Message, ...]:
    """Return the messages with calls of tools that are not described written as calls of `use_tool`: some servers
    refuse a conversation with others, and a model does next what it sees.
    """
    names = {tool["name"] for tool in request.tools}
    if USE_TOOL not in names:
        return request.messages
    return tuple(
        replace(message, tool_calls=tuple(call if call.name in names else _wrap(call) for call in message.tool_calls))
        if any(call.name not in names for call in message.tool_calls)
        else message
        for message in request.messages
    )


def _wrap(call: ToolCall) -> ToolCall:
    name, arguments = wrap_call(call.name, call.arguments)
    return replace(call, name=name, arguments=arguments)


def _answers(request: ModelRequest) -> tuple[ToolSpec, ...]:
    """Return the tools of other agents by which models answer, for which there is no tool here."""
    known = {tool["name"] for tool in (*request.tools, *request.also)}
    plans = [call.name for message in request.messages for call in message.tool_calls if call.name in _PLANNING]
    # While a plan document is open, another agent's name for leaving it is the call, not an answer.
    planning = plans[-1:] == ["plan_enter"]
    return tuple(
        ToolSpec(name=name, description="", parameters={"type": "object"})
        for name in ANSWERS
        if name not in known and not (planning and name in _PLAN_EXITS)
    )


def _answer_as_text(reply: Reply, answers: tuple[ToolSpec, ...]) -> tuple[StreamItem, ...]:
    """Return a reply with calls that are answers as its text, behind a chunk with that text."""
    names = {tool["name"] for tool in answers}
    said = [answer_in(call.name, call.arguments) for call in reply.tool_calls if call.name in names]
    if not said:
        return (reply,)
    calls = tuple(call for call in reply.tool_calls if call.name not in names)
    text = "\n\n".join(filter(None, said))
    more = f"\n\n{text}" if text and reply.text else text
    answered = replace(reply, text=reply.text + more, tool_calls=calls, finish_reason="tool_calls" if calls else "stop")
    return (TextChunk(more), answered) if more else (answered,)


def _spread_calls(reply: Reply) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, those that hold several as these."""
    return tuple(
        ToolCall(name, arguments, f"{call.id}_{number}" if number else call.id)
        for call in reply.tool_calls
        for number, (name, arguments) in enumerate(several(call.name, call.arguments) or [(call.name, call.arguments)])
    )


def _callable(request: ModelRequest) -> tuple[ToolSpec, ...]:
    """Return the tools that a reply may call. Without a grammar, the caller of the tools enforces this."""
    return tuple(tool for tool in request.tools if request.allowed is None or tool["name"] in request.allowed)


def _coerce_calls(reply: Reply, tools: tuple[ToolSpec, ...]) -> Reply:
    """Return a native reply with its calls coerced to their schemas; calls written into the text are found too."""
    if not reply.tool_calls:
        return _from_text(reply, tools) if reply.text and not reply.problem else reply
    results = [(call, check(call.name, call.arguments, tools)) for call in _spread_calls(reply)]
    calls = tuple(replace(result, id=call.id) for call, result in results if isinstance(result, ToolCall))
    problems = [reply.problem, *(result for _, result in results if isinstance(result, str))]
    # Too deep for all that shows or stores them.
    misfits = tuple(
        replace(call, arguments={}) if is_deep(dict(call.arguments)) else call
        for call, result in results
        if isinstance(result, str)
    )
    problem = " ".join(filter(None, problems))
    return replace(reply, tool_calls=calls, problem=problem, unusable=(*reply.unusable, *misfits))


def _from_object(reply: Reply, tools: tuple[ToolSpec, ...], shown: str) -> Reply:
    """Parse a reply that should be one JSON object; a server without grammars may send any text."""
    # Not repaired: a call that was cut must not become another one.
    value = loads_object(reply.text)
    arguments = value.get("args") if value else None
    if value and value.get("tool") == ANSWER and isinstance(arguments, dict):
        return replace(reply, text=str(arguments.get("text", "")))
    if reply.finish_reason == "length":  # an answer may be cut, a call may not
        return replace(reply, text=shown, problem="" if shown else _too_long(reply.text))
    answer: ToolSpec = {
        "name": ANSWER,
        "description": "",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    found = _from_text(reply, (*tools, answer))
    texts = [str(call.arguments["text"]) for call in found.tool_calls if call.name == ANSWER]
    calls = tuple(call for call in found.tool_calls if call.name != ANSWER)
    return replace(
        found,
        text=found.text or " ".join(texts),
        tool_calls=calls,
        finish_reason="tool_calls" if calls else "stop",
    )


def _from_text(reply: Reply, tools: tuple[ToolSpec, ...]) -> Reply:
    found = toolcalls.extract(reply.text, tools)
    if not found.calls and not found.problem:
        return reply
    if reply.finish_reason == "length":  # the last call may be cut, and repairing it would invent its end
        return replace(reply, text=found.text, problem=_too_long(reply.text))
    calls = tuple(replace(call, id=wire.new_call_id()) for call in found.calls)
    reason = "tool_calls" if calls else reply.finish_reason
    return replace(
        reply,
        text=found.text,
        tool_calls=calls,
        finish_reason=reason,
        problem=found.problem or reply.problem,
        unusable=(*reply.unusable, *found.unusable),
        unclear=found.unclear,
    )


def _too_long(text: str) -> str:
    return (
        f"The reply was cut at the token limit after {len(text)} characters and nothing of it ran. "
        "Do less in one call: write long files in parts."
    )
