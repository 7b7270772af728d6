"""What models over HTTP have in common: one streaming POST per call, retries, one connection for many calls.

A provider says where to post, what, and how the pieces of the answer become a `Reply`. Not here: any provider's format
(the other modules), the connections (`llm/exchange.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypedDict, Unpack

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelStreamBroken,
    ModelTimeout,
)
from codeagent_lsp.llm import failures, retry
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.exchange import DONE, Exchange, json_object
from codeagent_lsp.llm.facts import Facts
from codeagent_lsp.llm.learned_facts import reply_in
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, StreamItem, TextChunk
from codeagent_lsp.llm.retry import RetryPolicy
from codeagent_lsp.llm.sse import Clock

_REPLY_NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict")
_BROKEN_OFF = ("model.stream_cut", "model.timeout_silence")


class Assembler(Protocol):
    """Makes one reply of the objects of a stream. `ended` once nothing follows, `model` the name that served."""

    ended: bool
    model: str

    @property
    def stopped(self) -> bool:
        """Return whether the reply has its reason to stop: all of it is there, only counts may follow."""

    def feed(self, chunk: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Return what can be shown of one object. Raises ModelError if it carries one, or the reply is too long."""

    def flush(self) -> list[TextChunk | ReasoningChunk]:
        """Return what was held back."""

    def finish(self, *, done_marker: bool) -> Reply:
        """Return the reply. Raises ModelStreamBroken when the stream was cut."""


class Options(TypedDict, total=False):
    """Options of a model: time limits, retries, the longest reply to requests that name none, how much it may reason,
    what stores the facts that a server tells in its errors, and whether a person works with it in an editor, with
    pauses between the tasks of a session.
    """

    limits: TimeLimits | None
    policy: RetryPolicy | None
    max_tokens: int | None
    effort: str
    learn: Callable[[Facts], None] | None
    interactive: bool


class HttpModel:
    """One model of one server.

    `OPTIONAL` are parameters that a server may refuse: left out, or sent under the other name, from the second try on.
    """

    OPTIONAL: Mapping[str, str] = {}

    def __init__(
        self,
        where: Endpoint,
        info: ModelInfo,
        **options: Unpack[Options],
    ) -> None:
        self.served_model = ""
        self._where = where
        self._info = info
        self._limits = options.get("limits") or TimeLimits()
        self._policy = options.get("policy") or RetryPolicy()
        self._max_tokens = options.get("max_tokens")
        self._effort = options.get("effort", "auto")
        self._remember = options.get("learn")
        self._refused: set[str] = set()
        self._http = Exchange(where, self._limits, self._headers())

    @property
    def info(self) -> ModelInfo:
        """The model's name, provider, URL and capabilities."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer; transient failures are retried before the first item, an empty answer once."""
        once = partial(self._exchange, request)
        patient = partial(retry.patient, once, self._policy)
        try:
            async with aclosing(retry.answered(patient, self._info.name)) as items:
                async for item in items:
                    yield item
        except ContextOverflow as overflow:
            if overflow.stated is not None:
                await self._learn_facts(Facts(context_window=overflow.stated))
            raise

    async def count_tokens(self, text: str) -> int:
        """Return a conservative estimate."""
        return most_tokens(text)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _headers(self) -> dict[str, str]:
        """Return the headers of every request, besides those of the endpoint."""
        return {}

    def _effort_for(self, request: ModelRequest) -> str:
        """Return how much a reply may reason: by the setting, and not at all where the request says so."""
        return self._effort if request.thinks else "none"

    def _url(self) -> str:
        raise NotImplementedError

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        raise NotImplementedError

    def _assembler(self) -> Assembler:
        raise NotImplementedError

    async def _missing(self, error: ModelError) -> ModelError:
        """Return the error for a model that the server does not know, perhaps with those that it has."""
        return error

    def _acceptable(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the parameters that this server has rejected before."""
        for option in self._refused & body.keys():
            value = body.pop(option)
            if self.OPTIONAL[option]:
                body[self.OPTIONAL[option]] = value
        return body

    async def _exchange(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield one exchange; it is repeated at once without an optional parameter that the server rejects."""
        while True:
            # In the loop: what a refusal has taught holds for the next try.
            request = self._within(request)
            body = self._acceptable(self._body(request))
            try:
                async with aclosing(self._reply(body)) as items:
                    async for item in items:
                        yield item
                return
            except ModelRejected as error:
                if (longest := reply_in(refusal(error), _asked(body))) is not None:
                    await self._learn_facts(Facts(longest_reply=longest))
                # Each try has to teach something new, so the loop ends.
                elif not self._learn(error, body):
                    raise
            except ModelNotFound as error:
                raise (await self._missing(error) if error.key == "model.unknown" else error) from None

    def _within(self, request: ModelRequest) -> ModelRequest:
        """Return the request with no more tokens for its reply than the server has said that it gives."""
        longest, asked = self._info.facts.longest_reply, request.max_tokens or self._max_tokens
        return replace(request, max_tokens=longest) if longest and asked and asked > longest else request

    async def _learn_facts(self, told: Facts) -> None:
        self._info = replace(self._info, facts=self._info.facts.learned(told))
        if self._remember is not None:
            await asyncio.to_thread(self._remember, told)

    def _learn(self, error: ModelError, body: dict[str, Any]) -> bool:
        reason = refusal(error)
        refused = {option for option in self.OPTIONAL if option in reason and option in body}
        self._refused |= refused
        return bool(refused)

    async def _reply(self, body: dict[str, Any], url: str = "") -> AsyncGenerator[StreamItem, None]:
        clock = Clock.start(self._limits)
        assembler = self._assembler()
        done, chunk = False, {}
        async with (
            self._http.post(url or self._url(), body, clock) as response,
            aclosing(self._http.objects(response, clock)) as objects,
        ):
            try:
                async for data in objects:
                    if not (done := data.strip() == DONE):
                        chunk = self._chunk(data)
                        for item in assembler.feed(chunk):
                            yield item
                    # Only counts can follow: their lateness must not cost a complete reply.
                    if assembler.stopped:
                        clock.stop(self._limits)
                    if done := done or assembler.ended:
                        await self._http.drain(objects)
                        break
            except (ModelStreamBroken, ModelTimeout) as error:
                # A stream that breaks behind a complete reply has lost nothing but its counts.
                if not assembler.stopped or error.key not in _BROKEN_OFF:
                    raise
        for item in assembler.flush():
            yield item
        reply = _finished(assembler, self._where, chunk, done_marker=done)
        self.served_model = assembler.model or self.served_model
        yield reply

    def _chunk(self, data: str) -> dict[str, Any]:
        """Parse the object of one event. Anything else (a ping) is empty.

        Broken objects raise ModelStreamBroken, as a piece of the answer could be missing.
        """
        value = json_object(data)
        if value is None and data.lstrip().startswith("{"):
            raise ModelStreamBroken("model.stream_error", url=self._where.root, reason="a chunk is not JSON")
        return value or {}


def _finished(assembler: Assembler, where: Endpoint, last: Mapping[str, Any], *, done_marker: bool) -> Reply:
    """Return the reply; in place of none, raise the error that the last object may have been."""
    told = failures.told_in(last, where)
    try:
        reply = assembler.finish(done_marker=done_marker)
    except ModelStreamBroken as broken:
        raise told or broken from None
    if told is not None and retry.is_empty(reply):
        raise told
    return reply


def _asked(body: Mapping[str, Any]) -> int:
    """Return the length of the reply that a request asks for, in tokens, by any of its usual names; 0 for none."""
    places = (body, body.get("generationConfig"), body.get("options"))
    numbers = (place.get(name) for place in places if isinstance(place, Mapping) for name in _REPLY_NAMES)
    return next((number for number in numbers if type(number) is int), 0)


def refusal(error: ModelError) -> str:
    """Return why a server refused a request, with the name of the parameter; '' for other errors."""
    values = error.values if error.key == "model.rejected" else {}
    return f"{values.get('reason', '')} {values.get('param', '')}".strip()


def most_tokens(text: str) -> int:
    """Return what no usual tokenizer makes more tokens of a text than: 1 for 3 ASCII, 5 for 4 other characters."""
    ascii_count = sum(1 for c in text if c.isascii())
    return -(-ascii_count // 3) + -(-(len(text) - ascii_count) * 5 // 4)
