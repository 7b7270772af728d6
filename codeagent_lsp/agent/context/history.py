"""The conversation with the model, append-only between compactions, and well-formed whatever interrupts it; its parts
and about how many tokens they take; and the files that the model has seen in full, up to a total size.

Well-formed means: every tool call of an assistant message is answered by exactly one tool message before a message of
any other role, and there is no tool message without its call. The files in focus are an immutable value; when there is
not enough room, the least recently used one is removed, files that are being edited last. Not here: fitting it into a
window (`window.py`), how it is compacted, and where the files are put (`compaction.py`).
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

from codeagent_lsp.messages import Message, ToolCall, ToolSpec, estimate_tokens, without_forms

NOTE = "note"
SUMMARY = "summary"
INTERRUPTED = "(no result: the run was interrupted before this call finished; what it did is unknown)"

UNFINISHED = "(I was stopped before I could answer.)"
UNCHANGED = "Unchanged since you read it above"
WHOLE = "The whole file"
READING = "read_file"
# In characters: of a shorter text a reference would save little.
WORTH_REFERRING = 400
DEFAULT_LIMIT = 100_000
Exchange = tuple[Message, ...]

# The role and the marks that a chat template puts around each message.
OVERHEAD_PER_MESSAGE = 6
PER_IMAGE = 1600
"""About what the providers count for a large picture, in tokens."""

# A count beyond these is no tokenizer but a mistake of the server, such as one that leaves out the cached part.
LOWEST_RATIO, HIGHEST_RATIO = 0.25, 4.0


class History:
    """The messages of a conversation, in order, always well-formed. `on_append` gets each message before it is added,
    `on_replace` the whole conversation before it replaces the old one; if one raises, nothing is changed. For one event
    loop, not thread-safe.
    """

    def __init__(
        self,
        messages: Iterable[Message] = (),
        on_append: Callable[[Message], None] = lambda message: None,
        on_replace: Callable[[tuple[Message, ...]], None] = lambda messages: None,
    ) -> None:
        self._messages = list(well_formed(tuple(messages)))
        # Of all calls ever made: an id of one that a compaction removed must not come again either.
        self._call_ids = {call.id for message in self._messages for call in message.tool_calls}
        self._on_append = on_append
        self._on_replace = on_replace

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order, as an immutable copy."""
        return tuple(self._messages)

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of all tool calls ever made here, also of those that a compaction removed."""
        return frozenset(self._call_ids)

    def append(self, message: Message) -> None:
        """Add a message as the last one, after `on_append` has recorded it; if that raises, it is not added."""
        # Stored before it counts: after a crash the file has all that the model may have seen.
        self._on_append(message)
        self.add_stored(message)

    def add_stored(self, message: Message) -> None:
        """Add a message that is recorded already, without calling `on_append`."""
        self._messages.append(message)
        self._call_ids.update(call.id for call in message.tool_calls)

    def replace(self, messages: Sequence[Message]) -> None:
        """Replace the conversation by a compacted one, made well-formed (see `well_formed`), after `on_replace` has
        recorded it. The ids of removed calls stay in `call_ids`.
        """
        compacted = well_formed(messages)
        self._on_replace(compacted)
        self._messages = list(compacted)

    def close_turn(self) -> None:
        """Complete the turn, however it ended: every call without a result gets one that says it was interrupted, and
        if the last message is then not an answer of the assistant, one is appended. Nothing if the turn is complete.
        """
        self._close_open_calls()
        if self._messages and (self._messages[-1].role != "assistant" or self._messages[-1].tool_calls):
            self.append(Message("assistant", UNFINISHED))

    def _close_open_calls(self) -> None:
        for call_id, name in open_calls(self._messages):
            self.append(Message("tool", INTERRUPTED, tool_call_id=call_id, name=name))


def note(text: str) -> Message:
    """Return a message from the program to the model, of role `user` and name `note`, so that `is_request` is False for
    it.
    """
    return Message("user", text, name=NOTE)


def is_request(message: Message) -> bool:
    """Return whether a message is the user's own, and neither a note nor a summary by the program."""
    return message.role == "user" and message.name not in (NOTE, SUMMARY)


def reference(messages: Sequence[Message], call: ToolCall, text: str) -> str | None:
    """Return a short reply for a `read_file` call whose result `text` is still in the conversation, unchanged; None for
    other tools and for texts of fewer than 400 characters. Only the latest full text of the same call counts, so a file
    that changed and changed back is sent again.
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
        if message.name == SUMMARY and len(call.arguments) == 1 and render_focused_file(path, text) in message.content:
            return f"{UNCHANGED}: {path} stands in full in the summary of the conversation."
        if message.name == NOTE and len(call.arguments) == 1 and whole_file(path, text) in message.content:
            return f"{UNCHANGED}: {path} stands in full in the note before the task."
    return None


def whole_file(path: str, text: str) -> str:
    """Return the text of a whole file below a heading with its path (relative to the workspace), as it is put into the
    conversation and found again by `reference`.
    """
    return f"{WHOLE} {path}, as it is now:\n{text}"


def open_calls(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return (call id, tool name) of each call in the last assistant message that has no result; [] if another message
    follows its results.
    """
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
    """Return the conversation with a result, "interrupted", for every call that has none, and without results that have
    no call or come twice. Pure.
    """
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


@dataclass(frozen=True, slots=True)
class FocusedFile:
    """One file: its path relative to the workspace, and the full text that the model read. `editing` says that the run
    changes it; such files are kept before others.
    """

    path: str
    text: str
    editing: bool = False


@dataclass(frozen=True, slots=True)
class FocusedFiles:
    """The files that the model has seen in full, from the least to the most recently used, as an immutable value;
    `limit` is in characters over all of them.
    """

    files: tuple[FocusedFile, ...] = ()
    limit: int = DEFAULT_LIMIT

    @property
    def size(self) -> int:
        """The number of characters of all files together."""
        return sum(len(file.text) for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files, relative to the workspace, the most recently used last."""
        return tuple(file.path for file in self.files)

    def get(self, path: str) -> FocusedFile | None:
        """Return the file with that path relative to the workspace; None when it is not in focus."""
        return next((file for file in self.files if file.path == path), None)

    def seen(self, path: str, text: str) -> FocusedFiles:
        """Return the files with one (path relative to the workspace) that the model has just seen in full as the last;
        the least recently used are dropped to stay within the limit, those being edited last, and one that is larger
        than it is not added.
        """
        known = self.get(path)
        return self._with(FocusedFile(path, text, known is not None and known.editing))

    def used(self, path: str) -> FocusedFiles:
        """Return the files with `path` (relative to the workspace) as the most recently used one; unknown paths change
        nothing.
        """
        known = self.get(path)
        return self if known is None else self._with(known)

    def editing(self, paths: Iterable[str]) -> FocusedFiles:
        """Return the files with exactly `paths` (relative to the workspace) marked as being edited; paths not among
        them are ignored.
        """
        chosen = frozenset(paths)
        return replace(self, files=tuple(replace(file, editing=file.path in chosen) for file in self.files))

    def without(self, path: str) -> FocusedFiles:
        """Return the files without the one with this path (relative to the workspace); unknown paths change nothing."""
        return replace(self, files=tuple(file for file in self.files if file.path != path))

    def refreshed(self, current: Mapping[str, str | None]) -> FocusedFiles:
        """Return the files with the texts in `current` (by path relative to the workspace); a file whose text is None
        is removed, and the least recently used are dropped if they have outgrown the limit. Files that are not in
        `current` stay unchanged.
        """
        fresh = [replace(file, text=current.get(file.path, file.text) or "") for file in self.files]
        left = tuple(file for file in fresh if current.get(file.path, file.text) is not None)
        # Texts may have grown since.
        return replace(self, files=left)._evicted()

    def newest(self, room: int) -> tuple[FocusedFile, ...]:
        """Return the files that fit into `room` characters together, rendered: those being edited first, then the most
        recently used; one that does not fit is skipped.
        """
        latest_first = self.files[::-1]
        chosen = []
        for file in sorted(latest_first, key=lambda file: not file.editing):
            if (cost := len(render_focused_file(file.path, file.text))) <= room:
                chosen.append(file)
                room -= cost
        return tuple(chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return the files as plain JSON data, `{limit, files: [{path, text, editing}]}`, from which `from_dict` makes
        them again.
        """
        return {"limit": self.limit, "files": [asdict(file) for file in self.files]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FocusedFiles:
        """Return the files from the data of `to_dict`. KeyError or TypeError when it is something else."""
        return cls(tuple(FocusedFile(**file) for file in data["files"]), data["limit"])

    def _with(self, file: FocusedFile) -> FocusedFiles:
        # The order is that of use, so a file that is used again moves to the end.
        others = self.without(file.path).files
        return replace(self, files=(*others, file))._evicted()

    def _evicted(self) -> FocusedFiles:
        """Return the files within the limit; the most recently used one stays if it fits by itself."""
        files = [file for file in self.files if len(file.text) <= self.limit]
        size = sum(len(file.text) for file in files)
        # A stable sort: among files that are not edited, the least recently used goes first.
        for victim in sorted(files[:-1], key=lambda file: file.editing):
            if size <= self.limit:
                break
            files.remove(victim)
            size -= len(victim.text)
        return replace(self, files=tuple(files))


def render_focused_file(path: str, text: str) -> str:
    """Return a focused file in the form that prompts have: its path in a line of its own, then the text."""
    return f"{path}:\n{text}\n"


def size(messages: Iterable[Message]) -> int:
    """Return the estimated tokens of a conversation (see `estimate_tokens`): texts and calls, 6 for each message, 1,600
    for each picture.
    """
    return sum(map(_cost, messages))


class Sizes:
    """Estimates the tokens of one conversation and its tools while it grows; only what is new is counted each time."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._total = 0
        self._tools: tuple[ToolSpec, ...] = ()
        self._of_tools = 0

    def of(self, messages: tuple[Message, ...]) -> int:
        """Return what `size` returns for these messages; if they continue those of the last call, only the new ones are
        counted.
        """
        known = len(self._seen)
        # Cheap, though it compares all: tuples compare by identity first, and the messages are the same objects.
        if messages[:known] == self._seen:
            self._total += size(messages[known:])
        else:
            self._total = size(messages)
        self._seen = messages
        return self._total

    def of_tools(self, tools: Iterable[ToolSpec]) -> int:
        """Return the estimated tokens of these tools; kept from the last call if they are the same."""
        if (now := tuple(tools)) != self._tools:
            self._tools, self._of_tools = now, tools_size(now)
        return self._of_tools


def tools_size(tools: Iterable[ToolSpec]) -> int:
    """Return the estimated tokens of tool descriptions (see `estimate_tokens`), as they are sent, without their
    `forms`.
    """
    return sum(estimate_tokens(str(without_forms(tool))) for tool in tools)


def composition(messages: Iterable[Message], tools: Iterable[ToolSpec], counted: int) -> dict[str, int]:
    """Return the tokens of a prompt by kind (`tools`, `system`, `talk`, `notes`, `summary`, `files`, `output`,
    `results`, `pictures`): estimates, scaled to the number that the server has `counted` (0 if it stated none). Kinds
    without tokens are left out.
    """
    kinds = Counts[str]({"tools": tools_size(tools)})
    for message in messages:
        pictures = PER_IMAGE * len(message.images)
        kinds["pictures"] += pictures
        kinds[_kind(message)] += _cost(message) - pictures
    ratio = counted / kinds.total() if counted and kinds.total() else 1.0
    return {kind: round(tokens * ratio) for kind, tokens in kinds.items() if tokens}


@dataclass(frozen=True, slots=True)
class TokenMeter:
    """Converts estimates into tokens; an immutable value, calibrated by the server's last token count of a prompt that
    was estimated here.

    The counted prompt is exact; text added since is scaled by the same ratio, but never below the middle between that
    and the estimate, since new text may be denser than the old.
    """

    estimated: int = 0
    counted: int = 0

    @property
    def ratio(self) -> float:
        """The tokens per estimated token, from 0.25 to 4; 1 before anything was counted."""
        if not self.estimated or not self.counted:
            return 1.0
        return min(HIGHEST_RATIO, max(LOWEST_RATIO, self.counted / self.estimated))

    def told(self, estimated: int, counted: int) -> TokenMeter:
        """Return a meter with the server's count of a prompt that was estimated here; a count of 0 is ignored."""
        return TokenMeter(estimated, counted) if estimated > 0 and counted > 0 else self

    def tokens(self, estimated: int) -> int:
        """Return the tokens of a prompt from its estimate, rounded up: at least the last count, if the estimate is at
        least that of the counted prompt.
        """
        # A shorter prompt than the counted one was compacted: what is left may be of another kind, so the count says
        # less.
        if self.counted and estimated >= self.estimated:
            return self.counted + ceil((estimated - self.estimated) * self._careful)
        return ceil(estimated * self._careful)

    def estimate(self, tokens: int) -> int:
        """Return the largest estimate, rounded down, of a new prompt that takes no more than `tokens` by the server's
        count, as far as is known.
        """
        return int(tokens / self._careful)

    @property
    def _careful(self) -> float:
        return max(self.ratio, (1 + self.ratio) / 2)


@dataclass(frozen=True, slots=True)
class ConversationParts:
    """A conversation split up.

    `requests` are the user's messages that an earlier compaction kept, `summary` its note; `exchanges` is everything
    after it: each one message with the results of its tool calls.
    """

    system: tuple[Message, ...]
    requests: tuple[Message, ...]
    summary: tuple[Message, ...]
    exchanges: tuple[Exchange, ...]

    @property
    def latest_turn(self) -> int:
        """The index of the exchange that begins the user's latest request; 0 if the request is before all exchanges."""
        starts = [index for index, exchange in enumerate(self.exchanges) if is_request(exchange[0])]
        return starts[-1] if starts else 0


def take_apart(messages: Sequence[Message]) -> ConversationParts:
    """Return a conversation split into its parts (see `ConversationParts`); no message is changed or lost, and tool
    results stay with the message that made the calls.
    """
    system = tuple(message for message in messages if message.role == "system")
    rest = [message for message in messages if message.role != "system"]
    last = max((index for index, message in enumerate(rest) if message.name == SUMMARY), default=-1)
    requests = tuple(message for message in rest[: max(last, 0)] if is_request(message))
    exchanges: list[list[Message]] = []
    for message in rest[last + 1 :]:
        if message.role == "tool" and exchanges:
            exchanges[-1].append(message)
        else:
            exchanges.append([message])
    summary = tuple(rest[last : last + 1]) if last >= 0 else ()
    return ConversationParts(system, requests, summary, tuple(map(tuple, exchanges)))


def flat(exchanges: Iterable[Exchange]) -> tuple[Message, ...]:
    """Return the messages of all exchanges, in their order, as one tuple."""
    return tuple(message for exchange in exchanges for message in exchange)


def _same_reading(other: ToolCall, call: ToolCall) -> bool:
    return other.name == call.name and other.id != call.id and dict(other.arguments) == dict(call.arguments)


def _kind(message: Message) -> str:
    if message.role == "system":
        return "system"
    if message.role == "tool":
        from codeagent_lsp.tools.catalogue import result_of  # late: it loads all tools, which such a run has done

        return {"file": "files", "printed": "output"}.get(result_of(message.name), "results")
    return {NOTE: "notes", SUMMARY: "summary"}.get(message.name, "talk")


def _cost(message: Message) -> int:
    calls = "".join(f"{call.name}{dict(call.arguments)}" for call in message.tool_calls)
    return estimate_tokens(message.content + calls) + OVERHEAD_PER_MESSAGE + PER_IMAGE * len(message.images)
