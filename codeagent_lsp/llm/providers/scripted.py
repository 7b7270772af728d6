"""The provider `scripted`: replies read from a file, for tests, demonstrations and a first look.

A script is a JSON list or one JSON object per line. Each entry is one reply:

    {"text": "…", "tool_calls": [{"name": "…", "arguments": {…}}], "chunks": 5, "delay": 0.01,
     "reasoning": "…", "error": "busy|broken|timeout|overflow", "expect": "part of the last user message"}

`{"loop": true}` among them starts again after the last reply; otherwise "Done." follows for ever. Not here: any
randomness, any clock but the pauses that the script asks for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelNotFound,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
)
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, StreamItem, TextChunk
from codeagent_lsp.messages import Message, ToolCall, Usage

ERRORS = ("busy", "broken", "timeout", "overflow")
CONTEXT_WINDOW = 32_768


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply of a script. Its `text` comes in `chunks` pieces, each after `delay` seconds; `error` ends it with an
    error, only `broken` after its text; `expect` is text that the last user message must contain; `problem` is as in
    `Reply`.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    chunks: int = 1
    delay: float = 0.0
    reasoning: str = ""
    problem: str = ""
    error: str = ""
    expect: str = ""


_DONE = ScriptedReply("Done.")


class ScriptedModel:
    """A `Model` that replays scripted replies, and records the requests in `requests`. After the last reply it begins
    anew with `loop`, else it answers "Done.".
    """

    def __init__(
        self,
        replies: Iterable[ScriptedReply] = (),
        *,
        loop: bool = False,
        info: ModelInfo | None = None,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.closed = False
        self._replies = tuple(replies)
        self._loop = loop
        self._info = info or ModelInfo(
            "scripted", "scripted", facts=window_known(CONTEXT_WINDOW), tool_calling="native"
        )

    @property
    def info(self) -> ModelInfo:
        """The description of the model; native tool calls unless given otherwise."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the next reply of the script in pieces of reasoning and text, and whole as the last item; a reply
        "Done." after the last one. Raises its scripted error; ModelReplyInvalid, before anything is yielded, if the
        last message of the user lacks the text that the reply expects.
        """
        turn = len(self.requests)
        self.requests.append(request)
        reply = self._pick(turn)
        _check_expectation(reply, request, turn)
        # "broken" breaks behind its text; the other errors come in place of an answer.
        if reply.error and reply.error != "broken":
            _fail(reply.error)
        if reply.reasoning:
            yield ReasoningChunk(reply.reasoning)
        for piece in _pieces(reply.text, reply.chunks):
            await asyncio.sleep(reply.delay)
            yield TextChunk(piece)
        if not reply.text:
            await asyncio.sleep(reply.delay)
        if reply.error:
            _fail(reply.error)
        yield _reply_of(reply, request, turn)

    async def count_tokens(self, text: str) -> int:
        """Return the number of characters divided by four, rounded up."""
        return -(-len(text) // 4)

    async def close(self) -> None:
        """Set `closed` to True, which tests look at."""
        self.closed = True

    def _pick(self, turn: int) -> ScriptedReply:
        if self._loop and self._replies:
            return self._replies[turn % len(self._replies)]
        return self._replies[turn] if turn < len(self._replies) else _DONE


def load_script(path: Path) -> ScriptedModel:
    """Return the model of a script file. ModelNotFound when it cannot be read or is not a script (the form is in this
    module's docstring). Blocks.
    """
    try:
        # Editors on Windows put a byte order mark before the text.
        source = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelNotFound("model.script_unreadable", path=path, reason=error) from error
    try:
        entries = _entries(source)
        loop = any(entry.get("loop") is True and len(entry) == 1 for entry in entries)
        replies = [_reply(entry, number) for number, entry in enumerate(entries, 1) if set(entry) != {"loop"}]
    except ValueError as error:
        raise ModelNotFound("model.script_bad", path=path, reason=error) from error
    return ScriptedModel(replies, loop=loop)


def _entries(source: str) -> list[dict[str, Any]]:
    try:
        whole = json.loads(source)
        entries = whole if isinstance(whole, list) else [whole]
    except ValueError:
        entries = [_line(text, number) for number, text in enumerate(source.split("\n"), 1) if text.strip()]
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise ValueError(f"entry {number} is not an object")
    return entries


def _line(source: str, number: int) -> Any:
    try:
        return json.loads(source)
    except ValueError as error:
        raise ValueError(f"line {number} is not JSON: {error}") from error


def _reply(entry: Mapping[str, Any], number: int) -> ScriptedReply:
    """Parse one entry; ValueError names the entry and what is wrong with it."""
    types: dict[str, Any] = {"chunks": int, "delay": (int, float), "tool_calls": list}
    known = [item.name for item in fields(ScriptedReply)]
    for key, value in entry.items():
        if key not in known:
            raise ValueError(f"entry {number} has an unknown key {key!r}; known: {', '.join(known)}")
        if not isinstance(value, types.get(key, str)):
            raise ValueError(f"entry {number}: {key!r} has the wrong type")
    if entry.get("error", "") not in ("", *ERRORS):
        raise ValueError(f"entry {number}: 'error' must be one of {', '.join(ERRORS)}")
    calls = tuple(_call(call, number) for call in entry.get("tool_calls", []))
    return ScriptedReply(**{**entry, "tool_calls": calls})


def _call(call: Any, number: int) -> ToolCall:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ValueError(f"entry {number}: a tool call needs a 'name'")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ValueError(f"entry {number}: the 'arguments' of {call['name']} must be an object")
    return ToolCall(call["name"], arguments, str(call.get("id", "")))


def _check_expectation(reply: ScriptedReply, request: ModelRequest, turn: int) -> None:
    said = _last_words(request.messages)
    if reply.expect and reply.expect not in said:
        raise ModelReplyInvalid("model.script_expected", number=turn + 1, expected=reply.expect, got=said[:200])


def _last_words(messages: Iterable[Message]) -> str:
    """Return the last user messages up to the one before another role, joined as a server gets them."""
    said: list[str] = []
    for message in reversed(tuple(messages)):
        if message.role == "user":
            said.insert(0, message.content)
        elif said:
            break
    return "\n\n".join(said)


def _fail(error: str) -> NoReturn:
    url = "scripted"
    match error:
        case "busy":
            raise ModelBusy("model.busy", url=url, reason="429", retry_after=0.0)
        case "timeout":
            raise ModelTimeout("model.timeout_first", url=url, seconds=0)
        case "overflow":
            raise ContextOverflow("model.overflow", reason="scripted")
        case _:
            raise ModelStreamBroken("model.stream_cut", url=url)


def _pieces(text: str, count: int) -> list[str]:
    if not text:
        return []
    size = max(1, -(-len(text) // max(1, count)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _reply_of(reply: ScriptedReply, request: ModelRequest, turn: int) -> Reply:
    calls = tuple(
        ToolCall(call.name, call.arguments, call.id or f"call_{turn + 1}_{position}")
        for position, call in enumerate(reply.tool_calls, 1)
    )
    prompt = sum(len(message.content) for message in request.messages) // 4
    return Reply(
        text=reply.text,
        tool_calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        usage=Usage(prompt_tokens=prompt, completion_tokens=-(-len(reply.text) // 4)),
        reasoning=reply.reasoning,
        problem=reply.problem,
    )
