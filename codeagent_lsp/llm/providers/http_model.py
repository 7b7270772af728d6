"""The base of all models over HTTP: one streaming POST per call, retries, one connection for many calls.

A provider says where to post, what, and how the pieces of the answer become a `Reply`. A call is retried only while
nothing of its answer was shown, in two layers: `patient` waits and repeats a call whose first item never came (connect
errors, resets, 429, 5xx); `retry_if_empty` repeats a call once whose reply was empty. Not here: any provider's format
(the other modules), the connections (`llm/exchange.py`), classifying errors (`failures.py`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypedDict, Unpack

from tenacity import AsyncRetrying, RetryCallState, stop_after_attempt, stop_after_delay, stop_any

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
    ModelUnreachable,
)
from codeagent_lsp.llm import failures
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.exchange import DONE, Clock, Exchange
from codeagent_lsp.llm.learned_facts import Facts, reply_in
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, StreamItem, TextChunk
from codeagent_lsp.network import PROXY_AWAY
from codeagent_lsp.state import json_object

_REPLY_NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict")
_BROKEN_OFF = ("model.stream_cut", "model.timeout_silence")

ReplySource = Callable[[], AsyncGenerator[StreamItem, None]]
Sleep = Callable[[float], Awaitable[None]]

_PERMANENT = ("model.dns", "model.tls", "model.stream_garbled", "network.")
"""Beginnings of the keys of failures that stay: a name, a certificate, a setting of the network."""


class Assembler(Protocol):
    """Port: makes one reply out of the objects of one stream. `ended` once nothing follows, `model` is the name of the
    model that served.
    """

    ended: bool
    model: str

    @property
    def stopped(self) -> bool:
        """Whether the reply has its finish reason: all of it is there, only counts may follow."""

    def feed(self, chunk: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Add one object and return the text or reasoning in it that can be shown. ModelError if it carries an error,
        or the reply is too long.
        """

    def flush(self) -> list[TextChunk | ReasoningChunk]:
        """Return the text and reasoning that were held back; call it at the end."""

    def finish(self, *, done_marker: bool) -> Reply:
        """Return the reply. ModelStreamBroken when the stream was cut; other kinds of ModelError when the server
        refused or filtered it.
        """


class Options(TypedDict, total=False):
    """Options of a model: time limits, retries, the longest reply in tokens for requests that name none, the reasoning
    effort, a function that stores facts which the server states in errors, and whether a person works with it in an
    editor, with pauses between the tasks of a session.
    """

    limits: TimeLimits | None
    policy: RetryPolicy | None
    max_tokens: int | None
    effort: str
    learn: Callable[[Facts], None] | None
    interactive: bool


class HttpModel:
    """Base of the models over HTTP: one model of one server, until `close`. `OPTIONAL` are parameters that a server may
    refuse: after a refusal they are left out, or sent under the other name given here.
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
        self._refused: set[str] = set()  # optional parameters that the server does not know
        self._http = Exchange(where, self._limits, self._headers())

    @property
    def info(self) -> ModelInfo:
        """The model's name, provider, URL and capabilities."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer, its `Reply` last; transient failures are retried before the first item, as the
        `RetryPolicy` allows, and an empty answer once. ModelError if it fails; a window that a server states in one is
        remembered. Closing the generator cancels the request.
        """
        once = partial(self._exchange, request)
        patiently = partial(patient, once, self._policy)
        try:
            async with aclosing(retry_if_empty(patiently, self._info.name)) as items:
                async for item in items:
                    yield item
        except ContextOverflow as overflow:
            # What a server says of its window is worth more than what we assume of it, also for the next run.
            if overflow.stated is not None:
                await self._learn_facts(Facts(context_window=overflow.stated))
            raise

    async def count_tokens(self, text: str) -> int:
        """Return an estimate that is rather too high, see `most_tokens`; no request is made."""
        return most_tokens(text)

    async def close(self) -> None:
        """Close the connections to the server."""
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
        return failures.unknown_model(error, self._info.name, ())

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
                # Before the optional parameters: such a refusal names one, and it must not be left out but be made
                # smaller.
                if (longest := reply_in(refusal(error), _asked_length(body))) is not None:
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
        # Held back in case a tag began there: at the end it is text.
        for item in assembler.flush():
            yield item
        reply = _finish(assembler, self._where, chunk, done_marker=done)
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


def _finish(assembler: Assembler, where: Endpoint, last: Mapping[str, Any], *, done_marker: bool) -> Reply:
    """Return the reply; in place of none, raise the error that the last object may have been."""
    # Some servers say in a last object, without a name for it, why they stop.
    told = failures.told_in(last, where)
    try:
        reply = assembler.finish(done_marker=done_marker)
    except ModelStreamBroken as broken:
        raise told or broken from None
    if told is not None and is_empty(reply):
        raise told
    return reply


def _asked_length(body: Mapping[str, Any]) -> int:
    """Return the length of the reply that a request asks for, in tokens, by any of its usual names; 0 for none."""
    places = (body, body.get("generationConfig"), body.get("options"))
    numbers = (place.get(name) for place in places if isinstance(place, Mapping) for name in _REPLY_NAMES)
    return next((number for number in numbers if type(number) is int), 0)


def refusal(error: ModelError) -> str:
    """Return why a server refused a request, with the name of the parameter; '' for other errors."""
    values = error.values if error.key == "model.rejected" else {}
    return f"{values.get('reason', '')} {values.get('param', '')}".strip()


def most_tokens(text: str) -> int:
    """Return an upper estimate of the tokens in a text, for all usual tokenizers: 1 for every 3 ASCII characters plus 5
    for every 4 others, each rounded up; 0 for ''.
    """
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 3) + -(-(len(text) - ascii_count) * 5 // 4)


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of retrying: the most attempts; the rest is in seconds: the wait before the first retry, the longest wait,
    a random addition of up to `jitter`, and the time after which no further attempt begins (`total`). If a server asks
    for a longer wait than `longest_asked`, there is no retry; limits per minute are renewed within that.
    """

    attempts: int = 3
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_asked: float = 65.0
    jitter: float = 0.5
    total: float = 150.0


async def patient(
    source: ReplySource, policy: RetryPolicy, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[StreamItem, None]:
    """Yield the items of `source`, which is opened again after a transient failure before the first item.

    Exponential backoff with jitter, or as the server asks; `sleep` waits the given seconds. The last failure is raised
    when the policy's attempts or time are used up, and at once if it is permanent; ModelBusy if the server asks for too
    long a wait.
    """
    waits = _Waits(policy)
    attempts = AsyncRetrying(
        retry=waits.passes,
        wait=waits.wait,
        stop=stop_any(stop_after_attempt(policy.attempts), stop_after_delay(policy.total)),
        sleep=sleep,
        reraise=True,
    )
    async for attempt in attempts:
        with attempt:
            items = source()
            # Only up to the first item: what was shown cannot be taken back by another attempt.
            first = await _first(items)
    async with aclosing(items):
        if first is not None:
            yield first
            async for item in items:
                yield item


async def retry_if_empty(source: ReplySource, name: str) -> AsyncGenerator[StreamItem, None]:
    """Yield the items of `source`, which is called once more if its reply is empty. ModelReplyInvalid if that is empty,
    too.
    """
    for _ in range(2):
        async with aclosing(source()) as items:
            async for item in items:
                if isinstance(item, Reply) and is_empty(item):
                    break
                yield item
            else:
                return
    raise ModelReplyInvalid("model.empty", name=name)


def is_empty(reply: Reply) -> bool:
    """Return whether a reply holds no text but white space, no call and no problem; reasoning does not count."""
    return not (reply.text.strip() or reply.tool_calls or reply.problem)


async def _first(items: AsyncGenerator[StreamItem, None]) -> StreamItem | None:
    try:
        return await anext(items, None)
    except BaseException:
        await items.aclose()
        raise


class _Waits:
    """The decision to retry, and the wait: as the server asks, else exponential backoff, with jitter."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy

    def passes(self, state: RetryCallState) -> bool:
        """Return whether the last failure is transient.

        Raises ModelBusy when the server asks for a longer wait than the policy allows.
        """
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, ModelBusy):
            self._refuse_too_long(error)
            return True
        if not isinstance(error, ModelUnreachable | ModelStreamBroken | ModelTimeout):
            return False
        # A proxy that is away may come back, unlike all other failures of the network's settings.
        return error.key == PROXY_AWAY or not error.key.startswith(_PERMANENT)

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds before the next attempt."""
        policy, error = self._policy, state.outcome.exception() if state.outcome else None
        # Several runs that were refused at once must not come back at once.
        chance = random.uniform(0, policy.jitter)
        if isinstance(error, ModelBusy) and error.retry_after is not None:
            return error.retry_after + chance
        return min(policy.longest_wait, policy.first_wait * 2.0 ** (state.attempt_number - 1) + chance)

    def _refuse_too_long(self, error: ModelBusy) -> None:
        if error.retry_after is not None and error.retry_after > self._policy.longest_asked:
            raise ModelBusy(
                "model.busy_wait",
                retry_after=error.retry_after,
                url=error.values.get("url", "?"),
                seconds=f"{error.retry_after:.0f}",
                reason=error.values.get("reason", "?"),
            ) from error
