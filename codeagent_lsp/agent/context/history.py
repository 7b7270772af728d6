"""The conversation with the model: append-only between compactions, and well-formed whatever interrupts it.

Well-formed means: every tool call of an assistant message is answered by exactly one tool message before a message of
any other role, and there is no tool message without its call. Not here: fitting it into a window (`window.py`), and how
it is compacted (`compaction.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from codeagent_lsp.agent.context.focus import rendered
from codeagent_lsp.messages import Message, ToolCall

NOTE = "note"
SUMMARY = "summary"
INTERRUPTED = "(no result: the run was interrupted before this call finished; what it did is unknown)"

UNFINISHED = "(I was stopped before I could answer.)"
UNCHANGED = "Unchanged since you read it above"
WHOLE = "The whole file"
READING = "read_file"
# In characters: of a shorter text a reference would save little.
WORTH_REFERRING = 400


class History:
    """The messages of a conversation, in order. `on_append` gets each message before it is added, `on_replace` the
    whole conversation after a compaction.
    """

    def __init__(
        self,
        messages: Iterable[Message] = (),
        on_append: Callable[[Message], None] = lambda message: None,
        on_replace: Callable[[tuple[Message, ...]], None] = lambda messages: None,
    ) -> None:
        self._messages = list(well_formed(tuple(messages)))
        self._call_ids = {call.id for message in self._messages for call in message.tool_calls}
        self._on_append = on_append
        self._on_replace = on_replace

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return all messages."""
        return tuple(self._messages)

    @property
    def call_ids(self) -> frozenset[str]:
        """Return the ids of all tool calls ever made here, also of those that a compaction removed."""
        return frozenset(self._call_ids)

    def append(self, message: Message) -> None:
        """Add a message."""
        # Stored before it counts: after a crash the file has all that the model may have seen.
        self._on_append(message)
        self.add_stored(message)

    def add_stored(self, message: Message) -> None:
        """Add a message that has been recorded already."""
        self._messages.append(message)
        self._call_ids.update(call.id for call in message.tool_calls)

    def replace(self, messages: Sequence[Message]) -> None:
        """Replace the conversation by a compacted one."""
        compacted = well_formed(messages)
        self._on_replace(compacted)
        self._messages = list(compacted)

    def close_turn(self) -> None:
        """Complete the turn, however it ended: every call gets a result, and the last message is the assistant's."""
        self._close_open_calls()
        if self._messages and (self._messages[-1].role != "assistant" or self._messages[-1].tool_calls):
            self.append(Message("assistant", UNFINISHED))

    def _close_open_calls(self) -> None:
        for call_id, name in open_calls(self._messages):
            self.append(Message("tool", INTERRUPTED, tool_call_id=call_id, name=name))


def note(text: str) -> Message:
    """Return a message from the program to the model, in the user's role; it does not begin a turn."""
    return Message("user", text, name=NOTE)


def is_request(message: Message) -> bool:
    """Return whether a message is the user's own."""
    return message.role == "user" and message.name not in (NOTE, SUMMARY)


def reference(messages: Sequence[Message], call: ToolCall, text: str) -> str | None:
    """Return a short reply for a file that is read again unchanged while its text is still in the conversation; else
    None.

    Only the latest full text of the same call counts: a file that changed and changed back in between is sent anew.
    """
    if call.name != READING or len(text) < WORTH_REFERRING:
        return None
    path = str(call.arguments.get("path", ""))
    # Only calls with the same arguments: a range of lines is no reading of the whole file.
    same = {other.id for message in messages for other in message.tool_calls if _same_reading(other, call)}
    for message in reversed(messages):
        if message.tool_call_id in same and not message.content.startswith(UNCHANGED):
            return f"{UNCHANGED} (call {message.tool_call_id})." if message.content == text else None
        # One argument, the path: the whole file is asked for.
        if message.name == SUMMARY and len(call.arguments) == 1 and rendered(path, text) in message.content:
            return f"{UNCHANGED}: {path} stands in full in the summary of the conversation."
        if message.name == NOTE and len(call.arguments) == 1 and whole_file(path, text) in message.content:
            return f"{UNCHANGED}: {path} stands in full in the note before the task."
    return None


def whole_file(path: str, text: str) -> str:
    """Format a whole file that is put into the conversation before it is asked for."""
    return f"{WHOLE} {path}, as it is now:\n{text}"


def open_calls(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return id and tool name of the calls in the last assistant message that have no result."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return [(call.id, call.name) for call in message.tool_calls if call.id not in answered]
        else:
            return []
    return []


def well_formed(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation with missing results filled in and orphaned or duplicate ones removed."""
    result: list[Message] = []
    waiting: dict[str, str] = {}

    def answer_all() -> None:
        result.extend(
            Message("tool", INTERRUPTED, tool_call_id=call_id, name=name) for call_id, name in waiting.items()
        )
        waiting.clear()

    for message in messages:
        if message.role == "tool":
            # Else it is a second result, or one without its call: both are refused by servers.
            if message.tool_call_id in waiting:
                del waiting[message.tool_call_id]
                result.append(message)
            continue
        answer_all()
        result.append(message)
        waiting.update((call.id, call.name) for call in message.tool_calls)
    answer_all()
    return tuple(result)


def _same_reading(other: ToolCall, call: ToolCall) -> bool:
    return other.name == call.name and other.id != call.id and dict(other.arguments) == dict(call.arguments)
