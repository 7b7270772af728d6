"""The agent loop, the module to read first: how a model with tools does a task.

Ask the model; when it calls tools, run them, append the results and ask again; end at an answer, a limit, a
cancellation or a failure. Everything else is elsewhere: what tools may do (`tools/executor.py`), what fits the window
(`context/window.py`), detecting repetition (`limits.py`), what becomes of the changes (`session/run.py`).

To cancel, cancel the asyncio task that runs the loop; however it ends, the history it leaves is well-formed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts
from codeagent_lsp.agent.context.history import UNFINISHED, History, composition, note, size
from codeagent_lsp.agent.context.window import ConversationWindow, nothing_kept
from codeagent_lsp.agent.limits import DEFAULT_WINDOW, Anomaly, LoopGuard, LoopLimits
from codeagent_lsp.errors import ContextOverflow, ModelError, ModelReplyInvalid, ModelStreamBroken
from codeagent_lsp.events.call_words import subject_of
from codeagent_lsp.llm.calls.bare_calls import own_spelling
from codeagent_lsp.llm.model import Model, ModelRequest, Reply, TextChunk
from codeagent_lsp.messages import Message, ToolCall, ToolResult, ToolSpec, estimate_tokens
from codeagent_lsp.workspace.text.visible import one_line

if TYPE_CHECKING:  # heavy to import, and most importers of this module need only its constants
    from codeagent_lsp.tools.executor import ToolExecutor

Ending = Literal["answered", "limit", "anomaly", "handed_over", "unsolved"]

NUDGE = (
    "You are repeating yourself: {detail}. Step back. What do you know, and what is still missing? "
    "Do something different, or give your answer now."
)
EMPTY = "Your last reply was empty. Call a tool, or give your answer."
CUT = "Your last reply was cut at its length limit of {limit:,} tokens. Go on right where it stopped.{more}"
CUT_CALL = "{problem} The limit was {limit:,} tokens.{more}"
MORE = " Your next reply may have {tokens:,}."
OVERTHOUGHT = "You thought until the room for a reply was full, without an answer. Answer now, without thinking first."
CLOSING = (
    "{left} model calls are left for this task. Bring what you are doing to an end and check it; the last reply has to "
    "be your answer."
)
LAST = "This is your last reply: nothing can be looked at after it. Answer now: what is done, and what is not."
LONGEST_SUBJECT = 200
# Enough to finish an edit, check it and answer.
CLOSING_CALLS = 3
UNSEEN = "(A picture, which you cannot see: nothing says that this model sees pictures.)"
# The model has to see that it repeated itself, but a long piece of the repetition would invite it to go on.
KEPT_OF_REPETITION = 500
ANOTHER_TRY = 0.3
"""The lowest temperature after an unusable reply: at 0, a small model writes the same reply again."""


@dataclass(frozen=True, slots=True)
class LoopResult:
    """How a run of the loop ended, and the model's last text. After `handed_over` the turn continues elsewhere.
    `unsolved` never comes from the loop: it is a step on the direct path that was not done (`direct/solver.py`).
    """

    ending: Ending
    text: str


async def nothing() -> str:
    """Return '', the default of `after_tools` of `AgentLoop`."""
    return ""


def silence() -> tuple[Message, ...]:
    """Return no messages: the default of `hear` of `AgentLoop`."""
    return ()


class AgentLoop:
    """One run of the loop; call `run` once. `after_tools` is awaited after the calls of one reply; its text is sent to
    the model. `kept` returns the facts that a compaction keeps word for word. `handed_over` returns whether a tool
    passed the work on, which ends the loop. `allowed` returns the names of the tools that may be called now, None for
    all: the others are described to the model too, so that all prompts begin with the same bytes (prompt cache); `also`
    are tools that it may call although they are not described. `small` is a cheaper model for summaries. `hear` returns
    the messages of the user since the last call, recorded already; an answer of the model that does not know them does
    not end the loop.
    """

    def __init__(
        self,
        model: Model,
        executor: ToolExecutor,
        history: History,
        tools: Callable[[], tuple[ToolSpec, ...]],
        emit: Callable[[events.Event], None],
        limits: LoopLimits,
        after_tools: Callable[[], Awaitable[str]] = nothing,
        kept: Callable[[], Awaitable[KeptFacts]] = nothing_kept,
        handed_over: Callable[[], bool] = lambda: False,
        allowed: tuple[str, ...] | None = None,
        small: Model | None = None,
        hear: Callable[[], tuple[Message, ...]] = silence,
        also: Callable[[], tuple[ToolSpec, ...]] = tuple,
    ) -> None:
        self._model = model
        self._hear = hear
        self._small = small or model
        self._executor = executor
        self._history = history
        self._tools = tools
        self._also = also
        self._emit = emit
        self._limits = limits
        self._after_tools = after_tools
        self._handed_over = handed_over
        self._allowed = allowed
        self._window = ConversationWindow(history, limits, emit, kept, self._summarise)
        self._reply_tokens = limits.reply_tokens  # grows when a reply was cut
        self._thinks = True  # off for good once a reply was thoughts alone
        self._guard = LoopGuard()
        self._nudged = False
        self._was_empty = False  # a second empty reply ends the run
        self._unclear = False  # the reply before had what only looked like a call
        self._spoilt = False  # the reply before was unusable: the next one is asked for less strictly
        self._repeated = ""  # the tool that may not be called now, as it was repeated

    async def run(self) -> LoopResult:
        """Call model and tools until an answer, the limit of model calls, or the second detected repetition. ModelError
        if the model fails, ContextOverflow if the conversation cannot be made to fit. Cancel the task to stop it; the
        conversation is well-formed in any case.
        """
        result: LoopResult | None = None
        try:
            result = await self._iterate()
            return result
        finally:
            # A plan goes on in the same turn: a closing message would make the model think that it has answered.
            if result is None or result.ending != "handed_over":
                self._history.close_turn()

    async def _iterate(self) -> LoopResult:
        text, before = "", ""
        # `left` is how many calls may still come after this one.
        for left in reversed(range(self._limits.iterations)):
            # Before the call that it is about: a note after it would come with the reply that should have been the
            # last.
            self._tell(self._closing(left + 1))
            reply, anomaly = await self._ask()
            # The last text that was said, as the result where later replies are calls alone.
            text = before + reply.text if reply.text else text
            tools = (*self._tools(), *self._also())
            # Before the message is stored: results refer to these ids, also after a restart.
            calls = self._with_ids(tuple(own_spelling(call, tools) for call in reply.tool_calls))
            self._spoilt = bool(reply.problem) or anomaly is not None
            # An empty assistant message is refused by several servers.
            if calls or _says_something(reply):
                self._history.append(Message("assistant", reply.text, calls, carried=reply.carried))
            if calls:
                anomaly = await self._call_tools(calls) or anomaly
                # Also before the work is handed over: what it says of the changes is for whoever goes on with them.
                self._tell(await self._after_tools())
                if self._handed_over():
                    return LoopResult("handed_over", text)
            # What only looked like a call is asked about once; written again in the same way, it is taken for the
            # answer.
            unclear, self._unclear = self._unclear, reply.unclear
            if reply.finish_reason == "length":
                reply = self._cut(reply)
            refused = bool(reply.problem) and not (reply.unclear and unclear)
            anomaly = self._guard.observe_reply(understood=bool(calls) or not refused) or anomaly
            if refused:
                anomaly = self._refuse(reply) or anomaly
            # Words that came while the answer was written are heard first, unless no call is left to react to them.
            elif not calls and anomaly is None and self._is_answer(reply) and not (left and self._add_heard_words()):
                return LoopResult("answered", before + reply.text)
            before = before + reply.text if reply.finish_reason == "length" and not calls else ""  # it is continued
            if anomaly is not None and self._stop_after(anomaly):
                return LoopResult("anomaly", text)
        return LoopResult("limit", text)

    def _closing(self, left: int) -> str:
        """Return what the model is told before a call that is one of its last ones, '' before all others."""
        if not self._limits.closes or left not in (1, CLOSING_CALLS):
            return ""
        return LAST if left == 1 else CLOSING.format(left=left)

    async def _ask(self) -> tuple[Reply, Anomaly | None]:
        """Make one model call; repeat it while the server finds the prompt too long and it can be shortened."""
        self._add_heard_words()
        tools = self._tools()
        await self._window.fit(tools)
        while True:
            try:
                reply, anomaly = await self._stream(self._request(tools))
            except ContextOverflow as overflow:
                # The server's count is what decides; ours is an estimate, and many servers do not say what window
                # they have.
                if not await self._window.shrink(tools, overflow.stated):
                    raise
                continue
            # Before the reply is appended: the count is that of the prompt alone.
            self._window.told(tools, reply.usage.prompt_tokens)
            return reply, anomaly

    def _add_heard_words(self) -> bool:
        """Add what the user has said meanwhile; return whether there was something. The model may then begin anew."""
        said = self._hear()
        for message in said:
            self._history.add_stored(message)
        if said:
            self._nudged = False
        return bool(said)

    async def _stream(self, request: ModelRequest) -> tuple[Reply, Anomaly | None]:
        """Return the reply, emitting its text as it comes; stop early when it repeats itself."""
        self._guard.new_reply()
        shown: list[str] = []
        thought = 0
        async with aclosing(self._model.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    self._emit(usage_event(item, request))
                    return item, None
                if isinstance(item, TextChunk):
                    shown.append(item.text)
                    self._emit(events.Token(content=item.text))
                else:
                    thought += estimate_tokens(item.text)
                    self._emit(events.Thought(content=item.text))
                # Counted only until the first word: a model that has begun to answer has come out of its thoughts.
                # Without a limit the comparison is with itself, and false.
                if not shown and request.thinks and thought > (self._limits.thought_tokens or thought):
                    # As if the server had cut it: `_cut` then asks again without thoughts.
                    return Reply("", finish_reason="length", reasoning="…"), None
                anomaly = self._guard.observe_text(item.text)
                if anomaly is not None:
                    return Reply("".join(shown)[:KEPT_OF_REPETITION]), anomaly
        # A stream without its final item was cut; what came may be half of a call.
        raise ModelStreamBroken("model.stream_cut", url=self._model.info.url or self._model.info.name)

    def _request(self, tools: tuple[ToolSpec, ...]) -> ModelRequest:
        limits = self._limits
        return ModelRequest(
            self._history.messages,
            tools,
            temperature=max(limits.temperature, ANOTHER_TRY if self._spoilt else 0.0),
            max_tokens=self._window.reply_room(tools, self._reply_tokens),
            allowed=self._callable(tools),
            also=self._also(),
            thinks=self._thinks,
        )

    def _callable(self, tools: tuple[ToolSpec, ...]) -> tuple[str, ...] | None:
        """Return the names of the tools that may be called now; a tool that was repeated is blocked until another was
        called.
        """
        if not self._repeated:
            return self._allowed
        names = self._allowed if self._allowed is not None else tuple(tool["name"] for tool in tools)
        return tuple(name for name in names if name != self._repeated)

    async def _summarise(self, messages: tuple[Message, ...], tokens: int) -> str:
        """Return the reply to `messages`, which begin like the last prompt; '' if it fails or calls a tool. The main
        model has most of them in its cache; a small one is asked where they fit into its window, and without tools.
        """
        model, tools = self._small, self._tools()
        # A prompt that fits the main model's window may be too long for the cheaper one.
        if model is not self._model:
            fits = size(messages) + tokens < (model.info.context_window or DEFAULT_WINDOW)
            # The main model gets its tools although it may call none: without them its prompt would not be the cached
            # one.
            model, tools = (model, ()) if fits else (self._model, tools)
        request = ModelRequest(messages, tools, temperature=self._limits.temperature, max_tokens=tokens)
        try:
            async with aclosing(model.stream(request)) as stream:
                async for item in stream:
                    if isinstance(item, Reply):
                        self._emit(usage_event(item))
                        return "" if item.tool_calls or item.problem else item.text
        except ModelError:  # the compaction then lists the steps without a model
            return ""
        return ""

    async def _call_tools(self, calls: tuple[ToolCall, ...]) -> Anomaly | None:
        self._emit(events.ToolCalls(calls=tuple(call_data(call, self._executor.shown) for call in calls)))
        # The events are emitted as each call ends, the messages stored in the order in which the model wrote the calls.
        results = await self._executor.execute_batch(calls, lambda call, result: self._emit(result_event(call, result)))
        # All results of a reply at once, since they share one room.
        admitted = self._window.admit(calls, [result.told for result in results], self._tools())
        anomaly = None
        sees = self._model.info.facts.vision is True
        for call, result, text in zip(calls, results, admitted, strict=True):
            text = f"{text}\n{UNSEEN}" if result.images and not sees else text
            images = result.images if sees else ()
            self._history.append(Message("tool", text, tool_call_id=call.id, name=call.name, images=images))
            # The whole result: what was admitted may be alike where only the part that was left out differs.
            seen = self._guard.observe_call(call.name, call.arguments, result.text)
            # The last call decides: another tool in between takes the block away.
            self._repeated = call.name if seen is not None else ""
            anomaly = seen or anomaly
        return anomaly

    def _refuse(self, reply: Reply) -> Anomaly | None:
        """Tell the model what was wrong with calls that could not be understood. They count as any failed call does."""
        self._tell(reply.problem)
        anomaly = None
        if calls := self._with_ids(reply.unusable):
            self._emit(events.ToolCalls(calls=tuple(call_data(call, self._executor.shown) for call in calls)))
        for call in calls:
            self._emit(result_event(call, self._executor.reject(call, reply.problem)))
            anomaly = self._guard.observe_call(call.name, call.arguments, reply.problem) or anomaly
        return anomaly

    def _stop_after(self, anomaly: Anomaly) -> bool:
        """Report an anomaly; nudge the model the first time, return True (stop) the second time."""
        stop, self._nudged = self._nudged, True
        action: Literal["nudge", "stop"] = "stop" if stop else "nudge"
        words = f"{anomaly.kind}: {anomaly.detail}"
        self._emit(events.AnomalyDetected(kind=anomaly.kind, detail=anomaly.detail, action=action, anomaly=words))
        if not stop:
            self._tell(NUDGE.format(detail=anomaly.detail))
        return stop

    def _cut(self, reply: Reply) -> Reply:
        """Return a reply that was cut, with the limit in what the model is told of a call in it. The next one may be
        twice as long, as far as the model and the window allow; one that was all thoughts is asked for without them.
        """
        limit, self._reply_tokens = self._reply_tokens, min(self._limits.longest_reply, 2 * self._reply_tokens)
        if self._thinks and reply.reasoning and not (reply.text.strip() or reply.tool_calls):
            self._thinks = False
            return replace(reply, problem=OVERTHOUGHT)
        more = MORE.format(tokens=self._reply_tokens) if self._reply_tokens > limit else ""
        if reply.problem:
            return replace(reply, problem=CUT_CALL.format(problem=reply.problem, limit=limit, more=more))
        if not reply.tool_calls:
            self._tell(CUT.format(limit=limit, more=more))
        return reply

    def _is_answer(self, reply: Reply) -> bool:
        """Return whether a reply without calls is complete; if not, append a note for the model. ModelReplyInvalid when
        a reply is empty for the second time.
        """
        if reply.finish_reason == "length":
            return False
        if _says_something(reply):
            return True
        if self._was_empty:
            raise ModelReplyInvalid("model.empty", name=self._model.info.name)
        self._was_empty = True
        self._tell(EMPTY)
        return False

    def _tell(self, text: str) -> None:
        if text:
            self._history.append(note(text))

    def _with_ids(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """Return the calls, each with an id that no other call of this conversation has or had before a compaction."""
        # Some servers number the calls of each reply anew (`call_0`), and two results with one id are refused.
        taken = set(self._history.call_ids)
        unique = []
        for call in calls:
            name, number = call.id or "call", 0 if call.id else 1
            while (fresh := f"{name}_{number}" if number else name) in taken:
                number += 1
            taken.add(fresh)
            unique.append(replace(call, id=fresh))
        return tuple(unique)


def _says_something(reply: Reply) -> bool:
    """Return whether a reply has text of its own; small models copy the placeholder of an earlier unfinished answer."""
    # Also characters that nobody sees are no answer.
    return "".join(filter(str.isprintable, reply.text)).strip() not in ("", UNFINISHED)


def call_data(call: ToolCall, name: Callable[[str], str] = str) -> dict[str, object]:
    """Return a tool call as plain data for events: `{id, name, arguments, subject}`, the subject being the path,
    command or the like that it is about, at most 200 characters; `name` returns a path as users know it.
    """
    subject = one_line(subject_of(call.arguments, name), LONGEST_SUBJECT)
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments), "subject": subject}


def result_event(call: ToolCall, result: ToolResult) -> events.ToolFinished:
    """Return the event with the result of a tool call; a tool that ran but failed has `success` False and no error."""
    error = result.error
    return events.ToolFinished(
        tool=call.name,
        success=result.ok and not result.failed,
        output=result.text,
        error=(result.failed or None) if error is None else error.message,
        call_id=call.id,
        status=result.status,
        error_code=None if error is None else error.code,
        error_type=None if error is None else error.type,
        time_ms=result.stats.get("time_ms"),
        artifacts=result.artifacts or None,
        summary=result.summary or None,
        todos=result.todos,
    )


def usage_event(reply: Reply, request: ModelRequest | None = None) -> events.UsageReported:
    """Return the event for the token usage of a reply. `cost` is in USD, if known. With its `request` it also has the
    tokens of the prompt by kind; give that only for requests of the conversation.
    """
    usage = reply.usage
    context = composition(request.messages, request.tools, usage.prompt_tokens) if request is not None else None
    return events.UsageReported(
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        written_tokens=usage.written_tokens or None,
        reasoning_tokens=usage.reasoning_tokens or None,
        cost=usage.cost,
        context=context,
    )


async def complete(
    model: Model,
    instructions: str,
    text: str,
    emit: Callable[[events.Event], None],
    reply_tokens: int,
    schema: dict[str, Any] | None = None,
) -> str:
    """Ask the model one question (`text`, under the system message `instructions`) outside of the conversation and
    return its answer, at most `reply_tokens` long, as JSON if a `schema` is given. The usage is emitted as an event.
    ModelError if there is no complete answer.
    """
    messages = (Message("system", instructions), Message("user", text))
    request = ModelRequest(messages, max_tokens=reply_tokens, response_schema=schema)
    async with aclosing(model.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                emit(usage_event(item))
                return item.text
    raise ModelStreamBroken("model.stream_cut", url=model.info.url or model.info.name)
