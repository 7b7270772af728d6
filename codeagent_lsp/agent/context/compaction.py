"""Compacts a long conversation: old exchanges become a summary, the rest stays word for word.

After a compaction the conversation is: the system message; the user's own messages so far; one note with the summary,
the todo list, the plan, the changed files and the focused files with their current text; then the latest exchanges, the
last one unchanged. Everything is pure but the summariser that is passed in; when it fails or says too much, a list of
the steps takes its place. Not here: when it is done (`window.py`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from codeagent_lsp.agent.context.history import (
    NOTE,
    SUMMARY,
    UNCHANGED,
    ConversationParts,
    Exchange,
    FocusedFiles,
    flat,
    is_request,
    note,
    render_focused_file,
    size,
    take_apart,
)
from codeagent_lsp.messages import Message, ToolCall, estimate_tokens
from codeagent_lsp.workspace.text.excerpts import excerpt

Summarise = Callable[[tuple[Message, ...], int], Awaitable[str]]
"""A function that asks the model: messages and a limit in tokens in, its answer out; '' when there is none."""

# By pressure, that is, by how many compactions in a row have not been enough.
TAIL_SHARE = (0.35, 0.2, 0.0)
WHOLE_TURN_SHARE = (0.5, 0.25, 0.0)
SUMMARY_SHARE = 0.2
LEAST_SUMMARY, MOST_SUMMARY = 96, 1024
# Well under the limit, so that the next compaction, which loses the prompt cache, is a while off.
AIM = 0.65
LEAST_ROOM = 200  # tokens; requests that fill the window by themselves are cut later, by `squeeze`

HEADER = "Summary of our work so far; the messages it tells of were removed to save room:"
END = "(end of the summary)"
SUMMARISE = (
    "The conversation gets too long: all but the user's own messages will be removed. In at most {words} words, write "
    "down what you need to go on: what you found out (names, paths, lines), what you changed, what failed, what is "
    "left to do. Plain text, no tool call."
)
NO_PICTURES = "(The pictures of this message were removed to save room.)"
GONE = "(Unchanged, but its text was removed to save room. If it is not in the summary, read it again.)"
# `Unchanged since you read it above (call call_7).`
REFERENCE = re.compile(re.escape(UNCHANGED) + r"(?: \(call (.+)\))?")
LONG_OUTPUT = 2000
SHORT = 240
LONGEST_LINE = 160
LONGEST_ARGUMENT, MOST_ITEMS = 400, 20  # characters and items of what stays of a call that is too long
LEFT_OUT = "… ({count} more characters of this call were removed to save room; it was carried out with them)"
SUBJECTS = ("path", "file", "command", "pattern", "query", "target", "name")


@dataclass(frozen=True, slots=True)
class KeptFacts:
    """The facts that every compaction repeats: todo list and plan as text, '' for none, paths of changed files relative
    to the workspace, files in focus (current texts). All are taken when the compaction is made.
    """

    todos: str = ""
    plan: str = ""
    changed_files: tuple[str, ...] = ()
    focused: FocusedFiles = field(default_factory=FocusedFiles)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The parts of a conversation that a compaction treats differently. `old` is summarised, `requests` and `tail`
    stay; `sent` are the unchanged messages before the tail, which a model has in its cache. `summary_tokens` and `aim`
    (for the whole conversation) are in tokens.
    """

    parts: ConversationParts
    sent: tuple[Message, ...]
    requests: tuple[Message, ...]
    old: tuple[Exchange, ...]
    tail: tuple[Message, ...]
    summary_tokens: int
    aim: int


def plan_compaction(messages: Sequence[Message], budget: int, *, fixed: int = 0, pressure: int = 0) -> CompactionPlan:
    """Choose what to summarise so that the conversation takes well under `budget` tokens. `fixed` tokens are taken by
    what is kept besides; with a higher `pressure` (0, 1 or 2) less stays. Pure; the plan may still be too long, which
    is for `compact` to see.

    The latest turn stays whole if it fits, else as many of its latest exchanges as fit, all but the last with shortened
    results; of the turns before it only the user's messages stay.
    """
    parts = take_apart(messages)
    latest = next(filter(is_request, reversed(messages)), None)
    asked = _seen([*parts.requests, *filter(is_request, flat(parts.exchanges))], latest)
    # What stays whatever is chosen is taken off first; the rest is shared.
    room = max(LEAST_ROOM, budget - fixed - size(parts.system) - size(asked))
    # Exchanges, not messages: a result without its call, or a call without its result, is refused by servers.
    start, last = _start(parts.exchanges, parts.latest_turn, room, pressure)
    old, stays = parts.exchanges[:start], parts.exchanges[start:]
    tail = (*flat(map(_short, parts.exchanges[start:last])), *flat(parts.exchanges[last:]))
    return CompactionPlan(
        parts,
        tuple(messages[: len(messages) - len(flat(stays))]),
        _seen([*parts.requests, *filter(is_request, flat(old))], latest),
        old,
        _without_loose_references(tail, messages),
        max(LEAST_SUMMARY, min(MOST_SUMMARY, int(room * SUMMARY_SHARE))),
        # Only of the room that can be shared: what stays in any case cannot be compacted below its size.
        budget - int(room * (1 - AIM)),
    )


async def compact(
    messages: Sequence[Message],
    budget: int,
    kept: KeptFacts,
    summarise: Summarise | None = None,
    *,
    pressure: int = 0,
    keywords: Sequence[str] = (),
) -> tuple[Message, ...]:
    """Return the conversation in fewer tokens than before, if possible at most `budget`; unchanged when it cannot be
    made smaller; so it may be longer than `budget`. `summarise` gets messages that end with the request, and the most
    tokens of the summary; without it, or if it returns '', the old steps are listed. With `pressure` 2 even the last
    results, requests and the system message are cut.
    """
    # Measured without the files in focus: these get only what room is left in the end.
    spoken = size([note(_kept_text(kept))])
    plan = plan_compaction(messages, budget, fixed=spoken, pressure=pressure)
    told = await _summary(plan, summarise)
    before, best = size(messages), tuple(messages)
    # The first that fits is the best; if none does, the smallest is better than nothing.
    for candidate in _candidates(plan, told, kept):
        made = squeeze(candidate, budget, keywords) if pressure > 1 else candidate
        if size(made) < min(before, size(best)):
            best = made
        if best is made and size(made) <= budget:
            break
    return best


def squeeze(messages: Sequence[Message], budget: int, keywords: Sequence[str] = ()) -> tuple[Message, ...]:
    """Return the messages with their longest texts cut until they fit: results first, then the model's text, notes,
    older requests, the latest request, the system message. Tool calls stay unchanged, but for those that take more than
    a quarter of the budget: their results have been given already. `budget` is in estimated tokens; the result may be
    longer, as each text keeps at least about 80 tokens. `keywords` (lower case) mark the lines to keep.
    """
    made = [_with_short_calls(message, budget // 4) for message in messages]
    # The longest of a kind first, so that few texts are cut, and those can spare it.
    for index in sorted(range(len(made)), key=lambda index: (_rank(made, index), -len(made[index].content))):
        if size(made) <= budget:
            break
        message = made[index] = _without_pictures(made[index])
        over = size(made) - budget
        if over <= 0:
            break
        tokens = estimate_tokens(message.content)
        made[index] = replace(message, content=within(message.content, max(80, tokens - over), keywords))
    return tuple(made)


def _with_short_calls(message: Message, most: int) -> Message:
    """Return the message with the values of its tool calls cut, if these take more than `most` tokens."""
    if not message.tool_calls or size([replace(message, content="")]) <= most:
        return message
    calls = tuple(replace(call, arguments=_short_value(dict(call.arguments))) for call in message.tool_calls)
    return replace(message, tool_calls=calls)


def _short_value(value: Any) -> Any:
    """Return a value of a tool call with long texts and lists cut."""
    if isinstance(value, str) and len(value) > LONGEST_ARGUMENT:
        return f"{value[:LONGEST_ARGUMENT]}{LEFT_OUT.format(count=len(value) - LONGEST_ARGUMENT)}"
    if isinstance(value, list | tuple):
        return [_short_value(item) for item in value[:MOST_ITEMS]]
    if isinstance(value, dict):
        return {key[:LONGEST_ARGUMENT]: _short_value(item) for key, item in list(value.items())[:MOST_ITEMS]}
    return value


def within(text: str, tokens: int, keywords: Sequence[str] = ()) -> str:
    """Return `text`, or of one with more than `tokens` estimated tokens an excerpt that takes about as many, at least
    200 characters: whole lines with gaps marked, those with `keywords` (lower case) preferred.
    """
    needed, limit = estimate_tokens(text), len(text)
    if needed <= tokens:
        return text
    shown = text
    # Tokens do not follow characters exactly: it comes closer by steps of at least a tenth, and gives up rather than
    # loop.
    for _ in range(12):
        limit = int(limit * min(0.9, tokens / needed))
        shown = excerpt(text, limit, keywords)
        needed = estimate_tokens(shown)
        if needed <= tokens:
            break
    return shown if len(shown) < len(text) else text


def _start(exchanges: Sequence[Exchange], turn: int, room: int, pressure: int) -> tuple[int, int]:
    """Return the index of the first exchange of the tail, and of the first one that stays unchanged."""
    # Without its first message, the user's, which stays in any case.
    if turn > 0 and size(flat(exchanges[turn:])[1:]) <= room * WHOLE_TURN_SHARE[pressure]:
        return turn, turn
    # The last exchange stays word for word: the model has asked for these results and not seen them yet.
    spoken = max((at for at, exchange in enumerate(exchanges) if exchange[0].role == "assistant"), default=0)
    last = start = max(turn, spoken)
    left = room * TAIL_SHARE[pressure] - size(flat(exchanges[last:]))
    while start > turn and (left := left - size(_short(exchanges[start - 1]))) >= 0:
        start -= 1
    return start, last


def _short(exchange: Exchange) -> Exchange:
    """Return the exchange with its tool results shortened."""
    calls = {call.id: call for call in exchange[0].tool_calls}
    return tuple(
        replace(message, content=short_result(calls[message.tool_call_id], message.content), images=())
        if message.role == "tool" and message.tool_call_id in calls
        else message
        for message in exchange
    )


def _seen(requests: Sequence[Message], latest: Message | None) -> tuple[Message, ...]:
    """Return the requests without their pictures, which take much room; the latest one keeps its own."""
    return tuple(message if message is latest else _without_pictures(message) for message in requests)


def _without_pictures(message: Message) -> Message:
    if not message.images:
        return message
    return replace(message, content=f"{message.content}\n{NO_PICTURES}", images=())


def _without_loose_references(messages: Sequence[Message], before: Sequence[Message]) -> tuple[Message, ...]:
    """Replace references to a text that is no longer in `messages` by a note that says so."""
    # "Unchanged since you read it above" is a lie once the reading was shortened or removed.
    full = {message.tool_call_id: message.content for message in before if message.role == "tool"}
    standing = {message.tool_call_id for message in messages if full.get(message.tool_call_id) == message.content}
    return tuple(
        replace(message, content=GONE)
        if (found := REFERENCE.match(message.content)) and message.role == "tool" and found[1] not in standing
        else message
        for message in messages
    )


async def _summary(plan: CompactionPlan, summarise: Summarise | None) -> str:
    """Return the model's summary of the old exchanges; '' when the model gave none, or when it has done too little in
    them: notes of the program are made anew, and there is nothing to tell of them.
    """
    worked = [exchange for exchange in plan.old if exchange[0].role == "assistant"]
    # A summary that is half as long as what it tells of is not worth a call.
    if summarise is None or size(flat(worked)) < 2 * plan.summary_tokens:
        return ""
    # About three words are four tokens; a little less, as models overrun.
    question = note(SUMMARISE.format(words=plan.summary_tokens * 2 // 3))
    told = await summarise((*plan.sent, question), plan.summary_tokens)
    # A summary with the mark in it would be cut there when it is read back.
    return told.replace(END, "").strip()


def _candidates(plan: CompactionPlan, told: str, kept: KeptFacts) -> Iterator[tuple[Message, ...]]:
    """Yield possible compacted conversations, the best first."""
    if not plan.old and not plan.parts.summary:
        yield _rebuild(plan, "", kept) if kept.focused.files else _rebuild(plan, "", None)
        yield _rebuild(plan, "", None)
        return
    # Characters: about three to a token.
    limit = plan.summary_tokens * 3
    listed = digest(plan.old, _earlier(plan.parts), limit)
    for words in filter(None, (excerpt(told, limit) if told else "", listed)):
        bare = _rebuild(plan, words, replace(kept, focused=FocusedFiles()))
        # Two characters for a token, fewer than code has: the files must not fill what was just made free.
        chosen = kept.focused.newest((plan.aim - size(bare)) * 2)
        yield _rebuild(plan, words, replace(kept, focused=replace(kept.focused, files=chosen)))
        yield bare
    yield _rebuild(plan, "", replace(kept, focused=FocusedFiles()))


def _rebuild(plan: CompactionPlan, summary: str, kept: KeptFacts | None) -> tuple[Message, ...]:
    said = f"{HEADER}\n{summary}\n{END}" if summary else ""
    text = "\n\n".join(filter(None, (said, _kept_text(kept) if kept else "", _focus_text(kept) if kept else "")))
    told = (Message("user", text, name=SUMMARY),) if text else ()
    return (*plan.parts.system, *plan.requests, *told, *plan.tail)


def _kept_text(kept: KeptFacts) -> str:
    changed = f"Files changed so far: {', '.join(kept.changed_files)}" if kept.changed_files else ""
    todos = f"Todo list:\n{kept.todos}" if kept.todos else ""
    plan = f"Plan:\n{kept.plan}" if kept.plan else ""
    return "\n\n".join(filter(None, (todos, plan, changed)))


def _focus_text(kept: KeptFacts) -> str:
    files = [render_focused_file(file.path, file.text) for file in kept.focused.files]
    return "\n".join(["Files as they are now:", *files]) if files else ""


def _earlier(parts: ConversationParts) -> str:
    """Return the text of the last summary, without the facts that were kept besides."""
    # Todos, plan and files are told anew each time; repeated as part of the summary they would be outdated.
    content = parts.summary[0].content if parts.summary else ""
    _, header, rest = content.partition(HEADER)
    return rest.partition(END)[0].strip() if header else ""


def _rank(messages: Sequence[Message], index: int) -> int:
    """Return the order in which texts are cut: lower ranks first."""
    message = messages[index]
    if message.role == "system":
        return 5
    if is_request(message):
        return 3 if any(map(is_request, messages[index + 1 :])) else 4
    if message.role == "user":
        return 2 if message.name == NOTE else 1
    return 0 if message.role == "tool" else 1


# Summarises old exchanges without a model: which tool was called, on what, and with which outcome. Pure functions.


def digest(exchanges: Sequence[Exchange], earlier: str, limit: int) -> str:
    """Return the steps of the exchanges as text, one line each: after an excerpt of `earlier` in a third of `limit`
    characters (at least 200) as many of the latest lines as fit into the rest, and before them the number of those left
    out.
    """
    before = excerpt(earlier, limit // 3) if earlier else ""
    lines = [line for exchange in exchanges for line in _lines(exchange)]
    room, kept = limit - len(before), list[str]()
    for line in reversed(lines):
        room -= len(line) + 1
        # A shorter rest would hold half a line.
        if room < 40:
            break
        kept.append(line)
    left_out = [f"({len(lines) - len(kept)} earlier steps)"] if len(kept) < len(lines) else []
    return "\n".join(filter(None, (before, *left_out, *reversed(kept))))


def short_result(call: ToolCall, text: str) -> str:
    """Return an old tool result, shortened: the text of a file longer than 240 characters as a sentence that names the
    call, output of commands as an excerpt of 2,000 characters, others unchanged.
    """
    from codeagent_lsp.tools.catalogue import result_of  # late: it loads all tools, which a run has done by now

    kind = result_of(call.name)
    if kind == "printed":
        return excerpt(text, LONG_OUTPUT)
    if kind != "file" or len(text) <= SHORT:
        return text
    short = f"({_call_line(call)}: {_length(text)}, removed to save room; read it again if you need it)"
    return short if len(short) < len(text) else text


def _lines(exchange: Exchange) -> list[str]:
    first, results = exchange[0], {message.tool_call_id: message for message in exchange[1:]}
    if first.role != "assistant":
        return []  # the user's messages are kept in full elsewhere, notes are no longer needed
    said = [f"- I said: {_line(first.content)}"] if first.content.strip() else []
    return said + [f"- {_call_line(call)}: {_outcome(call, results.get(call.id))}" for call in first.tool_calls]


def _outcome(call: ToolCall, result: Message | None) -> str:
    if result is None:
        return "no result"
    return f"read {_length(result.content)}" if call.name == "read_file" else _line(result.content) or "done"


def _call_line(call: ToolCall) -> str:
    subject = next((str(call.arguments[key]) for key in SUBJECTS if call.arguments.get(key)), "")
    lines = _range(call.arguments)
    return f"{call.name} {_line(subject)}{lines}".strip()


def _range(arguments: Mapping[str, object]) -> str:
    start, end = arguments.get("start_line"), arguments.get("end_line")
    return f" lines {start or 1}-{end or ''}" if start or end else ""


def _length(text: str) -> str:
    return f"{text.count(chr(10)) + 1} lines"


def _line(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= LONGEST_LINE else f"{first[:LONGEST_LINE]}…"
