"""The messages to the client: their queue with the one thread that writes it, and our requests that it has not answered
yet. Their ids are separate from those of the client's requests.

A client that stops reading blocks this thread and nothing else. Some messages are merged or dropped while they are
queued: of the reports of one progress token only the last is kept, of other droppable messages the newest. All others
are kept up to a hard limit; past it the connection is closed. Behind an answer some clients lose what they read
together with it, so it waits until they have read that. Every request ends: with the answer, an error, or its time
limit, after which it is forgotten and a late answer is ignored. Not here: the content of messages, sending
(`protocol_guard.py`).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.errors import EditorError

HARD_LIMIT = 64 * 1024 * 1024
PASSING_LIMIT = 1024 * 1024
METHOD_NOT_FOUND = -32601  # the code of an EditorError where the client does not know the request

_LONGEST_MESSAGE = 300
_READ_SECONDS = 10.0  # a client that does not read an answer for longer does not wait for it
_UNKNOWN_SECONDS = 0.02


@dataclass(slots=True)
class _Item:
    data: bytes
    merge: Hashable | None
    passing: bool
    answer: bool


class Outgoing:
    """The thread-safe queue of messages to the client. `write` takes bytes and blocks until they are written; it is
    called on a thread of its own. `give_up` is called once, from any thread, with the reason why nothing more can be
    sent and the exit code: 1 when the client closed its end, 3 when it does not read. While `answers_alone` is set,
    nothing is written behind an answer before the client has read it; `unread` returns how many bytes it has not read,
    None if that is not known.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        give_up: Callable[[str, int], None],
        unread: Callable[[], int | None] = lambda: 0,
        *,
        hard_limit: int = HARD_LIMIT,
        passing_limit: int = PASSING_LIMIT,
    ) -> None:
        self.answers_alone = False
        self._write = write
        self._give_up = give_up
        self._unread = unread
        self._hard_limit = hard_limit
        self._passing_limit = passing_limit
        self._changed = threading.Condition()
        self._items: dict[int, _Item] = {}  # by number, in the order of sending
        self._merged: dict[Hashable, int] = {}
        self._next = 0
        self._size = 0
        self._passing_size = 0
        self._writing = False
        self._closed = False

    def start(self) -> None:
        """Start the writing thread, a daemon; it ends with the process. Call it once."""
        threading.Thread(target=self._run, name="lsp-writer", daemon=True).start()

    def send(
        self,
        body: bytes,
        *,
        merge: Hashable | None = None,
        seal: Hashable | None = None,
        passing: bool = False,
        answer: bool = False,
    ) -> None:
        """Queue one message: the bytes of its JSON, without a header. Nothing is sent any more once the client is given
        up.

        A queued message with the same `merge` key is replaced; `seal` ends that for a key, so that later messages go
        after this one. A `passing` message may be dropped when too many are queued. An `answer` is one to a request of
        the client.
        """
        data = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        with self._changed:
            if self._closed:
                return
            self._merged.pop(seal, None)
            if merge is not None and (place := self._merged.get(merge)) in self._items:
                self._replace(place, data)
                return
            # With `_size` 0 the client reads: a single message may be larger than the limit.
            if self._size and self._size + len(data) > self._hard_limit:
                self._closed = True
            else:
                self._append(_Item(data, merge, passing, answer))
                self._drop_passing()
            self._changed.notify_all()
            if not self._closed:
                return
        # Outside of the lock, as it runs code of others.
        self._give_up(f"the client has not read {self._hard_limit} bytes", 3)

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written, for `seconds` at most; return whether it is, True also once the client is
        given up. Blocks.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            return self._changed.wait_for(
                lambda: self._closed or not (self._items or self._writing), deadline - time.monotonic()
            )

    @property
    def waiting(self) -> int:
        """The number of bytes that are queued."""
        return self._size

    def _append(self, item: _Item) -> None:
        self._items[self._next] = item
        if item.merge is not None:
            self._merged[item.merge] = self._next
        self._next += 1
        self._size += len(item.data)
        self._passing_size += len(item.data) if item.passing else 0

    def _replace(self, place: int, data: bytes) -> None:
        item = self._items[place]
        self._size += len(data) - len(item.data)
        item.data = data

    def _remove(self, place: int) -> _Item:
        item = self._items.pop(place)
        if item.merge is not None and self._merged.get(item.merge) == place:
            del self._merged[item.merge]
        self._size -= len(item.data)
        self._passing_size -= len(item.data) if item.passing else 0
        return item

    def _drop_passing(self) -> None:
        if self._passing_size <= self._passing_limit:
            return
        for place in [place for place, item in self._items.items() if item.passing]:
            if self._passing_size <= self._passing_limit // 2:
                return  # half at once, so that a flood does not scan the queue for every message
            self._remove(place)

    def _run(self) -> None:
        while True:
            with self._changed:
                # Set here and not behind the write: `flush` must not see an empty queue while bytes are still on their
                # way.
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._items or self._closed)
                if self._closed:
                    return
                item = self._remove(next(iter(self._items)))
                self._writing = True
            try:
                self._write(item.data)
            except OSError:
                self._stop()
                return
            if item.answer and self.answers_alone:
                self._wait_until_read()

    def _wait_until_read(self) -> None:
        if self._unread() is None:
            time.sleep(_UNKNOWN_SECONDS)
        pause, deadline = 0.0005, time.monotonic() + _READ_SECONDS
        while self._unread() and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(2 * pause, _UNKNOWN_SECONDS)

    def _stop(self) -> None:
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
        self._give_up("the client does not listen any more", 1)


@dataclass(frozen=True, slots=True)
class _Waiting:
    method: str
    future: Future[Any]


class ClientRequests:
    """The requests to the client that are not answered yet. `structure(method, result)` converts an answer and raises
    ValueError for a bad one. For the event loop's thread.
    """

    def __init__(self, structure: Callable[[str, Any], Any]) -> None:
        self._structure = structure
        self._waiting: dict[str, _Waiting] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, method: str) -> tuple[str, Future[Any]]:
        """Return (id, future) for a new request: the future gets the result, or an EditorError."""
        identity, future = f"server-{next(self._numbers)}", Future[Any]()
        self._waiting[identity] = _Waiting(method, future)
        return identity, future

    def forget(self, identity: str) -> None:
        """Remove a request, whose answer is then ignored; nothing for an unknown id."""
        self._waiting.pop(identity, None)

    def expire(self, identity: str, seconds: float) -> None:
        """End a request that was not answered in time, within these seconds, with an EditorError; nothing for an
        unknown id.
        """
        waiting = self._waiting.pop(identity, None)
        if waiting is not None:
            _fail(waiting.future, EditorError("editor.timeout", method=waiting.method, seconds=f"{seconds:g}"))

    def answer(self, identity: Any, raw: dict[str, Any]) -> None:
        """Resolve the request that a response (`raw`, the whole message) belongs to: with its result, or an EditorError
        for an error or a result of another type. An unknown id is ignored.
        """
        # The id is the client's word and may be a list, which no dict can look up.
        waiting = self._waiting.pop(identity, None) if isinstance(identity, str) else None
        if waiting is None or waiting.future.done():
            return
        if raw.get("error") is not None:
            _fail(waiting.future, _refusal(waiting.method, raw["error"]))
            return
        try:
            waiting.future.set_result(self._structure(waiting.method, raw.get("result")))
        except ValueError as error:
            _fail(waiting.future, EditorError("editor.error", method=waiting.method, message=str(error)))

    def close(self) -> None:
        """End all requests with an EditorError, because the connection is gone."""
        for identity in tuple(self._waiting):
            waiting = self._waiting.pop(identity)
            _fail(waiting.future, EditorError("editor.gone", method=waiting.method))


def _refusal(method: str, error: Any) -> EditorError:
    fields = error if isinstance(error, dict) else {}
    message = fields.get("message")
    text = message if isinstance(message, str) and message else "unknown error"
    return EditorError("editor.error", method=method, message=text[:_LONGEST_MESSAGE], code=fields.get("code"))


def _fail(future: Future[Any], error: EditorError) -> None:
    if not future.done():
        future.set_exception(error)
