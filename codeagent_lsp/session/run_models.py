"""The models of one run: the main one, others by name, and the small one. All of them read no secrets, are recorded,
count in one budget, and have the stand-ins of the settings.

Not here: opening models (`server/models.py`), the wrappers themselves.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import size, tools_size
from codeagent_lsp.errors import BudgetSpent, ContextOverflow, ModelError, ModelReplyInvalid
from codeagent_lsp.llm.learned_facts import LOCAL_WINDOW, Prices
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, StreamItem, WrappedModel
from codeagent_lsp.messages import Usage
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session

MOST_STAND_INS = 3

OpenNamed = Callable[[str], Awaitable[Model]]
Opener = Callable[[], Awaitable[Model]]
Tell = Callable[[ModelError, ModelInfo], None]
"""Receives why the model before failed, and the one that takes over."""
LEAST_REPLY = 200
"""Tokens: for a shorter reply no call is made."""


class RunModels:
    """Opens and wraps the models of a run. All of them, however often they are opened, count in one budget."""

    def __init__(self, services: Services, output: RunOutput, session: Session, run_id: str) -> None:
        self._services = services
        self._output = output
        self._session = session
        self._run_id = run_id
        self._budget = Budget(Limits())

    def begin(self) -> None:
        """Start with the full budget that the settings have now, also when a run goes on after its end."""
        settings = self._services.user.settings().budget
        self._budget = Budget(Limits(settings.usd, settings.tokens))

    async def main(self) -> Model:
        """Return the model of the settings, or the first of its stand-ins that can be opened. ModelError if none can.
        It is not the caller's to close.
        """
        model = await self._wrap(self._services.models.open)
        self._tell_unknown(model.info)
        return model

    async def named(self, name: str) -> Model:
        """Return another model: a name at the same server, `NAME@URL`, or `embedded`; the main one for ''. ModelError
        if neither it nor a stand-in can be opened. It is not the caller's to close.
        """
        opened = self._services.models.open_named
        return await self._wrap(lambda: opened(name)) if name and opened is not None else await self.main()

    async def small(self, main: Model) -> Model:
        """Return the model for small work; `main` if none is set, or if it cannot be opened, which the user is shown.
        It is not the caller's to close.
        """
        name = self._services.user.settings().model.small
        if not name:
            return main
        try:
            return await self.named(name)
        except ModelError as error:
            self._say("model.small_failed", name=name, reason=self._output.explain(error))
            return main

    async def _wrap(self, opener: Opener) -> Model:
        names = self._services.user.settings().model.fallback[:MOST_STAND_INS]
        opened, redactor = self._services.models.open_named, self._services.redactor
        others = [_opener(opened, name) for name in names] if opened is not None else []
        model: Model = await StandInModel.open([opener, *others], self._stands_in) if others else await opener()
        # Outside of the stand-ins, which share its promise; the redactor outermost, so that it records what the model
        # costs.
        model = BudgetedModel(model, self._budget, self._session.session_id)
        return model if redactor is None else await redactor.before(model, self._session.session_id, self._run_id)

    def _stands_in(self, error: ModelError, info: ModelInfo) -> None:
        self._say("model.stand_in", name=info.name, reason=self._output.explain(error))

    def _tell_unknown(self, info: ModelInfo) -> None:
        """Say what is missed, once for each session: a small window that is only assumed, prices for a budget."""
        window, assumed = info.context_window or 0, info.facts.sources.get("context_window") == "assumed"
        if assumed and window <= LOCAL_WINDOW and info.name not in self._session.context.windows_told:
            self._session.context.windows_told.add(info.name)
            self._say("fact.assumed", name=info.name, count=f"{window:,}")
        local = info.provider in ("scripted", "embedded")
        if self._services.user.settings().budget.usd is not None and info.facts.prices is None and not local:
            self._say("budget.no_prices", name=info.name)

    def _say(self, key: str, **values: object) -> None:
        self._output.emit(events.StatusChanged(message=self._output.text(key, **values)))


def _opener(open_named: OpenNamed, name: str) -> Opener:
    return lambda: open_named(name)


# A model with stand-ins: when one fails before its first word, after its own retries, the next takes over for good.


class StandInModel(WrappedModel):
    """The `Model` port around the first of several models that works. It closes none of them: that is for their
    opener.
    """

    def __init__(self, model: Model, others: Sequence[Opener], tell: Tell) -> None:
        super().__init__(model)
        self._others = list(others)
        self._tell = tell

    @classmethod
    async def open(cls, openers: Sequence[Opener], tell: Tell) -> StandInModel:
        """Return the first model that can be opened, with the others behind it; `tell` gets the error of the first and
        the model that stands in. If none can be opened, the ModelError of the first is raised.
        """
        first, *others = openers
        try:
            return cls(await first(), others, tell)
        except ModelError as error:
            # It takes what it tries out of `others`, so that none is tried twice in a run.
            stand_in = await _next(others, error, tell)
            return cls(stand_in, others, tell)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Stream the reply of the first model that gives one, which is asked first from then on. If none does, the
        failure of the last that could be opened is raised, and at once a ContextOverflow, a ModelReplyInvalid, or a
        failure after the reply has begun.
        """
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


# What the model calls of one run may cost together, subagents included: a call that could go beyond is not made.


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a run may spend, in USD and in tokens of prompts and replies; None for no limit."""

    usd: float | None = None
    tokens: int | None = None


class Budget:
    """The money and tokens of one run: spent, and promised to calls that have not ended."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._spent = Usage()
        self._promised = Usage()

    @property
    def limited(self) -> bool:
        """Whether there is any limit, of money or of tokens."""
        return self._limits != Limits()

    def promise(self, prompt: int, wanted: int | None, prices: Prices | None, lasting: int = 0) -> Usage:
        """Reserve for a call its prompt, at the most that it can cost, and a reply as long as the budget allows, at
        most `wanted` tokens; return both. `lasting` is the part of the prompt that a cache may keep for an hour. Token
        counts may be estimates; without `prices` only tokens count. BudgetSpent if less than a reply of 200 tokens (or
        `wanted`) is left.
        """
        least = min(LEAST_REPLY, wanted or LEAST_REPLY)
        room = [wanted] if wanted else []
        for limit, left in (("tokens", self._tokens_left(prompt)), ("usd", self._reply_paid(prompt, prices, lasting))):
            if left is not None and left < least:
                raise self._refusal(limit)
            room += [left] if left is not None else []
        reply = min(room, default=0)
        promised = Usage(prompt_tokens=prompt, completion_tokens=reply)
        if prices is not None:
            promised = replace(promised, cost=prices.at_most(prompt, lasting) + prices.cost(Usage(0, 0, reply)))
        self._promised += promised
        return promised

    def settle(self, promised: Usage, used: Usage | None) -> None:
        """Replace a reservation by what the call used; None if that is unknown: then all of it counts. Call it once for
        each reservation.
        """
        self._promised = Usage(
            self._promised.prompt_tokens - promised.prompt_tokens,
            completion_tokens=self._promised.completion_tokens - promised.completion_tokens,
            cost=(self._promised.cost or 0.0) - (promised.cost or 0.0),
        )
        # A stream that broke was served and is charged; counting all that was promised keeps the limit in any case.
        self._spent += promised if used is None else used

    def _tokens_left(self, prompt: int) -> int | None:
        """Return how many tokens a reply to this prompt may have; None without a limit."""
        if self._limits.tokens is None:
            return None
        taken = self._spent + self._promised
        return self._limits.tokens - taken.prompt_tokens - taken.completion_tokens - prompt

    def _reply_paid(self, prompt: int, prices: Prices | None, lasting: int) -> int | None:
        """Return how many tokens of a reply to this prompt are left to be paid; None without a limit or prices."""
        if self._limits.usd is None or prices is None:
            return None
        left = self._limits.usd - ((self._spent + self._promised).cost or 0.0) - prices.at_most(prompt, lasting)
        # A model whose replies are free: only the prompt can be too dear.
        if not prices.output:
            return None if left >= 0 else 0
        return int(left * 1_000_000 / prices.output)

    def _refusal(self, limit: str) -> BudgetSpent:
        tokens = f"{self._spent.prompt_tokens + self._spent.completion_tokens:,}"
        if limit == "tokens":
            return BudgetSpent("budget.tokens", limit=f"{self._limits.tokens:,}", spent=tokens)
        spent = f"{self._spent.cost or 0.0:.4f}"
        return BudgetSpent("budget.usd", limit=f"{self._limits.usd:g}", spent=spent, tokens=tokens)


class BudgetedModel(WrappedModel):
    """The `Model` port around another model whose calls count in a budget and belong to a session. Replies have their
    cost, if it is known.
    """

    def __init__(self, model: Model, budget: Budget, session: str = "") -> None:
        super().__init__(model)
        self._budget = budget
        self._session = session

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Stream the reply, cut at the end of the budget. BudgetSpent, before the call, if less than a short reply is
        left; ModelError as the wrapped model.
        """
        if not self._budget.limited:
            async with aclosing(self._with_prices(request)) as items:
                async for item in items:
                    yield item
            return
        tools = tools_size(request.tools)
        # What every prompt of the run begins with: some providers charge more for keeping it than for reading it.
        head = tools + size(message for message in request.messages if message.role == "system")
        prompt = tools + size(request.messages)
        promised = self._budget.promise(prompt, request.max_tokens, self.info.facts.prices, head)
        begun, used = False, None
        try:
            async with aclosing(
                self._with_prices(replace(request, max_tokens=promised.completion_tokens or None))
            ) as items:
                async for item in items:
                    begun = True
                    # A server that reports nothing sends zeros; its call then counts as what it was promised.
                    used = item.usage if isinstance(item, Reply) and item.usage.prompt_tokens else used
                    yield item
        finally:  # a call that failed before its first word is not counted
            self._budget.settle(promised, used if begun else Usage())

    async def _with_prices(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async with aclosing(self._model.stream(replace(request, session=self._session))) as items:
            async for item in items:
                yield _with_cost(item, self.info.facts.prices) if isinstance(item, Reply) else item


def _with_cost(reply: Reply, prices: Prices | None) -> Reply:
    """Return a reply with its cost: as the server says, else by the prices, else unknown."""
    if reply.usage.cost is not None or prices is None:
        return reply
    return replace(reply, usage=replace(reply.usage, cost=prices.cost(reply.usage)))
