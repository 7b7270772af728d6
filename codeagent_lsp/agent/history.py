"""The conversation with the model: append-only, and well-formed whatever interrupts it.

Well-formed means: every tool call of an assistant message is answered by exactly one tool message before any
other role speaks, and no tool message stands without its call. Not here: fitting it into a window
(`context.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from codeagent_lsp.messages import Message

NOTE = "note"
INTERRUPTED = "(no result: the run was interrupted before this call finished; what it did is unknown)"

UNFINISHED = "(I was stopped before I could answer.)"


class History:
    """Messages in order. `on_append` is told each one before anything is done about it."""

    def __init__(
        self, messages: Iterable[Message] = (), on_append: Callable[[Message], None] = lambda message: None
    ) -> None:
        self._messages = list(well_formed(tuple(messages)))
        self._on_append = on_append

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything said so far."""
        return tuple(self._messages)

    def append(self, message: Message) -> None:
        """Add a message."""
        self._on_append(message)
        self._messages.append(message)

    def close_turn(self) -> None:
        """Leave a whole turn behind, however it ended: every call answered, and a last word of the assistant."""
        self._close_open_calls()
        if self._messages and (self._messages[-1].role != "assistant" or self._messages[-1].tool_calls):
            self.append(Message("assistant", UNFINISHED))

    def _close_open_calls(self) -> None:
        for call_id, name in open_calls(self._messages):
            self.append(Message("tool", INTERRUPTED, tool_call_id=call_id, name=name))


def note(text: str) -> Message:
    """What the program itself tells the model in the user's place; it begins no turn of its own."""
    return Message("user", text, name=NOTE)


def open_calls(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Id and tool name of the calls in the last assistant message that nobody has answered."""
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
    """The same conversation with missing results filled in and orphaned or doubled ones left out."""
    result: list[Message] = []
    waiting: dict[str, str] = {}

    def answer_all() -> None:
        result.extend(
            Message("tool", INTERRUPTED, tool_call_id=call_id, name=name) for call_id, name in waiting.items()
        )
        waiting.clear()

    for message in messages:
        if message.role == "tool":
            if message.tool_call_id in waiting:
                del waiting[message.tool_call_id]
                result.append(message)
            continue
        answer_all()
        result.append(message)
        waiting.update((call.id, call.name) for call in message.tool_calls)
    answer_all()
    return tuple(result)
