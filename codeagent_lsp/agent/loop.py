"""The page to read first: how a model with tools does a task.

Ask the model; if it answers, we are done; if it calls tools, run them, tell it the results, ask again; until an
answer, a limit, a stop or a failure. Everything else is elsewhere: what tools may do (`tools/executor.py`), what
fits the window (`context/window.py`), going in circles (`guards.py`), what becomes of the changes (`session/run.py`).

Cancelling is cancelling the task this runs in; however it ends, the history it leaves is well-formed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts
from codeagent_lsp.agent.context.history import UNFINISHED, History, note
from codeagent_lsp.agent.context.window import ConversationWindow, WindowLimits, nothing_kept
from codeagent_lsp.agent.guards import Anomaly, LoopGuard
from codeagent_lsp.errors import ContextOverflow, ModelError, ModelReplyInvalid, ModelStreamBroken
from codeagent_lsp.llm.model import Model, ModelRequest, Reply, TextChunk
from codeagent_lsp.messages import Message, ToolCall, ToolResult, ToolSpec

if TYPE_CHECKING:  # heavy, and others need no more of this page than its numbers
    from codeagent_lsp.tools.executor import ToolExecutor

Ending = Literal["answered", "limit", "anomaly", "handed_over", "unsolved"]

NUDGE = (
    "You are repeating yourself: {detail}. Step back. What do you know, and what is still missing? "
    "Do something different, or give your answer now."
)
EMPTY = "Your last reply was empty. Call a tool, or give your answer."
CUT = "Your last reply was cut at its length limit. Go on right where it stopped."
DEFAULT_WINDOW = 8192
KEPT_OF_REPETITION = 500
ANOTHER_TRY = 0.3
"""The least temperature after a spoilt reply: without any, a small model writes the same thing again."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """`iterations` are model calls; `messages` and `window` bound what is sent (window in tokens), `compact_at` is the
    share of the window at which old turns are summarised.
    """

    iterations: int = 20
    messages: int = 30
    window: int = DEFAULT_WINDOW
    reply_tokens: int = 2048
    temperature: float = 0.0
    compact_at: float = 0.8


@dataclass(frozen=True, slots=True)
class LoopResult:
    """How it ended, and the model's last words. After `handed_over` the turn is not over: somebody goes on with it.

    `unsolved` never comes from the loop: it is a step on the direct path that was not done (`agent/solving`).
    """

    ending: Ending
    text: str


async def nothing() -> str:
    """The default of `after_tools`."""
    return ""


class AgentLoop:
    """One run of the loop. `after_tools` is awaited when the calls of one reply are done; its text, if any, is told
    to the model. `kept` gives what stays word for word when the conversation is summarised. `handed_over` is asked
    after tools: whether they gave the work to somebody else. `allowed` are the tools that may be called now, None for
    all: the model is told of the others too, so that its prompts begin the same.
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
    ) -> None:
        self._model = model
        self._executor = executor
        self._history = history
        self._tools = tools
        self._emit = emit
        self._limits = limits
        self._after_tools = after_tools
        self._handed_over = handed_over
        self._allowed = allowed
        room = WindowLimits(limits.window, limits.reply_tokens, limits.compact_at, limits.messages)
        self._window = ConversationWindow(history, room, emit, kept, self._summarise)
        self._guard = LoopGuard()
        self._nudged = False
        self._was_empty = False
        self._spoilt = False
        self._repeated = ""

    async def run(self) -> LoopResult:
        """Work until an answer, the limit, or the second time the model goes in circles."""
        result: LoopResult | None = None
        try:
            result = await self._iterate()
            return result
        finally:
            if result is None or result.ending != "handed_over":
                self._history.close_turn()

    async def _iterate(self) -> LoopResult:
        text = ""
        for _ in range(self._limits.iterations):
            reply, anomaly = await self._ask()
            text = reply.text or text
            calls = self._with_ids(reply.tool_calls)
            self._spoilt = bool(reply.problem) or anomaly is not None
            if calls or _says_something(reply):
                self._history.append(Message("assistant", reply.text, calls))
            if calls:
                anomaly = await self._call_tools(calls) or anomaly
                self._tell(await self._after_tools())
                if self._handed_over():
                    return LoopResult("handed_over", text)
            if reply.problem:
                self._tell(reply.problem)
            elif not calls and anomaly is None and self._is_answer(reply):
                return LoopResult("answered", reply.text)
            if anomaly is not None and self._stop_after(anomaly):
                return LoopResult("anomaly", text)
        return LoopResult("limit", text)

    async def _ask(self) -> tuple[Reply, Anomaly | None]:
        """One model call; when the server finds it too long, once more for every time that it can be made shorter."""
        tools = self._tools()
        await self._window.fit(tools)
        while True:
            try:
                reply, anomaly = await self._stream(self._request(tools))
            except ContextOverflow:
                if not await self._window.shrink(tools):
                    raise
                continue
            self._window.told(tools, reply.usage.prompt_tokens)
            return reply, anomaly

    async def _stream(self, request: ModelRequest) -> tuple[Reply, Anomaly | None]:
        """The reply, its text passed on as it comes; cut short when it repeats itself."""
        self._guard.new_reply()
        shown: list[str] = []
        async with aclosing(self._model.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    self._emit(usage_event(item))
                    return item, None
                if isinstance(item, TextChunk):
                    shown.append(item.text)
                    self._emit(events.Token(content=item.text))
                anomaly = self._guard.observe_text(item.text)
                if anomaly is not None:
                    return Reply("".join(shown)[:KEPT_OF_REPETITION]), anomaly
        raise ModelStreamBroken("model.stream_cut", url=self._model.info.url or self._model.info.name)

    def _request(self, tools: tuple[ToolSpec, ...]) -> ModelRequest:
        limits = self._limits
        return ModelRequest(
            self._history.messages,
            tools,
            temperature=max(limits.temperature, ANOTHER_TRY if self._spoilt else 0.0),
            max_tokens=limits.reply_tokens,
            allowed=self._callable(tools),
        )

    def _callable(self, tools: tuple[ToolSpec, ...]) -> tuple[str, ...] | None:
        """What may be called now: not the tool that the model repeated, until it has called another one."""
        if not self._repeated:
            return self._allowed
        names = self._allowed if self._allowed is not None else tuple(tool["name"] for tool in tools)
        return tuple(name for name in names if name != self._repeated)

    async def _summarise(self, messages: tuple[Message, ...], tokens: int) -> str:
        """What the model says to `messages`, which begin like its last prompt; '' when it fails or calls a tool."""
        request = ModelRequest(messages, self._tools(), temperature=self._limits.temperature, max_tokens=tokens)
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for item in stream:
                    if isinstance(item, Reply):
                        self._emit(usage_event(item))
                        return "" if item.tool_calls or item.problem else item.text
        except ModelError:  # the plain list of what was done takes its place
            return ""
        return ""

    async def _call_tools(self, calls: tuple[ToolCall, ...]) -> Anomaly | None:
        self._emit(events.ToolCalls(calls=tuple(call_data(call) for call in calls)))
        results = await self._executor.execute_batch(calls)
        admitted = self._window.admit(calls, [result.text for result in results], self._tools())
        anomaly = None
        for call, result, text in zip(calls, results, admitted, strict=True):
            self._history.append(Message("tool", text, tool_call_id=call.id, name=call.name))
            self._emit(result_event(call, result))
            seen = self._guard.observe_call(call.name, call.arguments, result.text)
            self._repeated = call.name if seen is not None else ""
            anomaly = seen or anomaly
        return anomaly

    def _stop_after(self, anomaly: Anomaly) -> bool:
        """Nudge the first time; the second time it is over."""
        stop, self._nudged = self._nudged, True
        action: Literal["nudge", "stop"] = "stop" if stop else "nudge"
        self._emit(events.AnomalyDetected(kind=anomaly.kind, detail=anomaly.detail, action=action))
        if not stop:
            self._tell(NUDGE.format(detail=anomaly.detail))
        return stop

    def _is_answer(self, reply: Reply) -> bool:
        """Whether a reply without calls is complete; if not, the model is told. Empty twice is an error."""
        if reply.finish_reason == "length":
            self._tell(CUT)
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
        """The calls with an id each that no other call of this conversation has, nor had before a compaction."""
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
    """Small models repeat what stands where an answer of theirs was cut off."""
    return reply.text.strip() not in ("", UNFINISHED)


def call_data(call: ToolCall) -> dict[str, object]:
    """A tool call as the events carry it."""
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def result_event(call: ToolCall, result: ToolResult) -> events.ToolFinished:
    """A tool result as the events carry it."""
    error = None if result.error is None else result.error.message
    return events.ToolFinished(tool=call.name, success=result.ok, output=result.text, error=error, call_id=call.id)


def usage_event(reply: Reply) -> events.UsageReported:
    """The tokens of a reply as the events carry them."""
    usage = reply.usage
    return events.UsageReported(
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
    )
