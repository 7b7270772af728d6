"""The language servers of one session: started when they are first needed, shared by its runs, stopped when idle.

Every question is answered for one state of the texts, which a server has before it is asked. Not here: one server
(`language_server.py`), the copy that they see (`running_servers.py`), the servers of all sessions (`pool.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from codeagent_lsp.errors import AgentError, SettingError, ToolFailed
from codeagent_lsp.language_servers.answers import ServerAnswer, ServerQuestion, parameters, with_diagnostics
from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.language_servers.language_server import LanguageServer
from codeagent_lsp.language_servers.running_servers import Installed, OpenCopy, RunningServers, ServedCopy, servers_for
from codeagent_lsp.language_servers.server_connection import ServerFailed
from codeagent_lsp.shadow.wanted import UnsavedState
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.position import Encoding

ASK_SECONDS = 25.0
SPARE_SECONDS = 0.5
"""The time by which a question outlasts the limits of the servers: else it would not be known which of them is late."""

MAX_OPEN = 200
AGAIN_SECONDS = 0.5
TO_FIX_SECONDS = 2.0
"""The longest wait of a question for quick fixes for its lines' diagnostics; most of the time is for the answer."""

_EVERYWHERE = frozenset(
    (
        *("textDocument/references", "textDocument/implementation", "textDocument/rename", "workspace/symbol"),
        *("callHierarchy/incomingCalls", "typeHierarchy/subtypes"),
    )
)
"""Methods whose answer is complete only once the server knows the whole project."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundDiagnostics:
    """The diagnostics of one text by the server of this name: `items` are plain JSON of the protocol, with positions in
    `text` in `encoding`.
    """

    server: str
    items: Sequence[Any]
    text: str
    encoding: Encoding


class SessionServers:
    """The servers of one session and the copy that they see, from its first question until `close`. `known` returns the
    servers to choose from, `memory` limits one in bytes.
    """

    def __init__(
        self,
        open_copy: OpenCopy,
        known: Callable[[], tuple[KnownServer, ...]],
        memory: int,
    ) -> None:
        self.used = time.monotonic()
        self._known = known
        self._copy = ServedCopy(open_copy)
        self._running = RunningServers(self._copy, self._in_thread, memory)
        self._turn = asyncio.Lock()
        # One thread, as the copy takes one call at a time.
        self._thread = ThreadPoolExecutor(1, "language-servers")
        self._open: dict[str, None] = {}
        self._troubled: set[str] = set()
        self._troubles: list[str] = []
        self._impossible = False
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether a question is being answered, for which the next one has to wait."""
        return self._turn.locked()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers that are running or being started, one for each project of theirs."""
        return self._running.names

    def installed(self, view: FileView, path: str) -> tuple[Installed, ...]:
        """Return the servers for a file, by absolute path; () after `close`, or if the copy cannot be made. Blocks on
        the disk.
        """
        if self._impossible or self._closed:
            return ()
        try:
            known = self._known()
        except SettingError as problem:
            self._trouble("languageServers", str(problem))
            return ()
        return tuple(each for each in servers_for(view, path, known) if not self._running.gave_up(each))

    async def ask(
        self, view: FileView, question: ServerQuestion, seconds: float = ASK_SECONDS
    ) -> tuple[ServerAnswer, ...]:
        """Return the answers to the texts of `view` by the servers for the question's file, started if necessary; () if
        there are none. Servers that are late, fail or cannot answer such a question are left out, without an error.
        Waits at most about `seconds` for earlier questions and the answers together.
        """
        deadline = time.monotonic() + seconds
        found = await asyncio.to_thread(self.installed, view, question.path)
        asked = [each for each in found if question.server in ("", each.server.name)]
        if not asked:
            return ()
        try:
            async with asyncio.timeout(seconds + SPARE_SECONDS), self._turn:
                texts = await self._sync(view, [question.path])
                if texts is None:
                    return ()
                work = (self._answer(each, question, texts, deadline) for each in asked)
                answers = await asyncio.gather(*work)
        except TimeoutError:
            self._trouble(", ".join(each.server.name for each in asked), "no answer in time")
            return ()
        return tuple(answer for answer in answers if answer is not None)

    async def diagnostics(
        self, view: FileView, paths: Sequence[str], seconds: float
    ) -> dict[str, tuple[FoundDiagnostics, ...] | None]:
        """Return for each file that has servers (absolute path) the diagnostics of its text in `view`, within
        `seconds`; None if one of its servers does not give them in time. Starts servers if necessary.
        """
        deadline = time.monotonic() + seconds
        found = await asyncio.to_thread(lambda: {path: self.installed(view, path) for path in paths})
        asked = {path: servers for path, servers in found.items() if servers}
        known: dict[str, tuple[FoundDiagnostics, ...] | None] = dict.fromkeys(asked)
        if not asked:
            return known  # without a copy of the workspace, which takes time
        try:
            async with asyncio.timeout(seconds), self._turn:
                texts = await self._sync(view, list(asked)) or {}
                for path, servers in asked.items():
                    work = (self._diagnose(each, path, texts, deadline) for each in servers)
                    answers = await asyncio.gather(*work)
                    # Those of a linter alone would pass for all of them.
                    known[path] = None if None in answers else tuple(filter(None, answers))
        except TimeoutError:
            pass  # what is known is known
        return known

    async def look_at(
        self, view: FileView, path: str, text: str, seconds: float, found: Callable[[FoundDiagnostics], None]
    ) -> None:
        """Call `found` with the diagnostics that a file would have with `text` in place of its text in `view`, once for
        each server. Only servers that run already are asked, and none while another question is being answered.
        """
        deadline = time.monotonic() + seconds
        installed = await asyncio.to_thread(self.installed, view, path)
        running = [each for each in installed if self._running.is_up(each)]
        if not running or self._turn.locked():
            return

        async def look(each: Installed, texts: Mapping[str, str]) -> None:
            answer = await self._diagnose(each, path, texts, deadline)
            if answer is not None:
                found(answer)

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + SPARE_SECONDS), self._turn:
                texts = await self._sync(view, [path]) or {}
                # The next question shows the file's own text again.
                await asyncio.gather(*(look(each, {**texts, path: text}) for each in running))

    def take_troubles(self) -> list[str]:
        """Return the problems since the last call, as sentences in English; each server reports at most one in a
        session.
        """
        taken, self._troubles = self._troubles, []
        return taken

    async def rest(self) -> None:
        """Stop all servers and remove their copy of the workspace, once the question in progress is answered, and wait
        for that; the next question starts them again.
        """
        async with self._turn:
            await self._running.close()
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._copy.close))

    async def close(self) -> None:
        """Stop all servers and remove the copy for good, and wait for that; questions that wait get no answer."""
        self._closed = True
        await self._running.close()  # whoever waits for an answer of theirs waits no longer
        await self.rest()

    async def _sync(self, view: FileView, paths: Sequence[str]) -> dict[str, str] | None:
        """Bring the copy to the state of `view`, and return the texts that servers must have open; None if there is no
        copy.
        """

        async def update() -> UnsavedState:
            seen, changed = await self._in_thread(lambda: self._copy.update(view))
            self._running.note_changed(changed)
            return seen

        self.used = time.monotonic()
        try:
            seen = await asyncio.shield(update())  # the servers have to hear of it also if nobody waits any more
        except (ToolFailed, OSError) as problem:
            self._impossible = True
            self._trouble("", str(problem))
            return None
        staged = {path: file.text for path, file in seen.read.items() if path in seen.files}
        self._keep_open([*staged, *paths])
        return {**await asyncio.to_thread(_texts, view, list(self._open)), **staged}

    def _keep_open(self, paths: Sequence[str]) -> None:
        """Note files whose texts stay open: pyright leaves out uses of what is in a text that was closed and opened
        again unchanged.
        """
        for path in paths:
            self._open.pop(path, None)
            self._open[path] = None  # the one used last stands last
        while len(self._open) > max(MAX_OPEN, len(paths)):
            del self._open[next(iter(self._open))]

    async def _answer(
        self, each: Installed, question: ServerQuestion, texts: Mapping[str, str], deadline: float
    ) -> ServerAnswer | None:
        try:
            server = await self._running.get(each, texts)
            if not server.can(question.method):
                return None
            params = parameters(question, texts.get(question.path, ""), server.encoding)
            if question.method == "textDocument/codeAction":
                soon = min(deadline, time.monotonic() + TO_FIX_SECONDS)
                params = with_diagnostics(params, await server.diagnostics(question.path, soon) or ())
            if question.method in _EVERYWHERE:
                await server.settled(deadline - time.monotonic())
            result = await server.request(question.method, params, deadline - time.monotonic())
            if question.method in _EVERYWHERE:
                result = await _settled_result(server, question.method, params, result, deadline)
        except ServerFailed as problem:
            self._trouble(each.server.name, str(problem))
            return None
        return None if result is None else ServerAnswer(each.server.name, result, server.encoding)

    async def _diagnose(
        self, each: Installed, path: str, texts: Mapping[str, str], deadline: float
    ) -> FoundDiagnostics | None:
        if path not in texts:
            return None
        try:
            server = await self._running.get(each, texts)
            items = await server.diagnostics(path, deadline)
        except ServerFailed as problem:
            self._trouble(each.server.name, str(problem))
            return None
        if items is None:
            return None
        return FoundDiagnostics(each.server.name, items, texts[path], server.encoding)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise ServerFailed("The language servers of the session were stopped.")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _trouble(self, name: str, problem: str) -> None:
        """Note a trouble, each server's only once."""
        if name not in self._troubled:
            self._troubled.add(name)
            self._troubles.append(problem)


async def _settled_result(
    server: LanguageServer, method: str, params: Mapping[str, Any], result: Any, deadline: float
) -> Any:
    """Ask a server that has just been started again until it says the same twice: some answer before they have seen
    all files, and do not say so.
    """
    while server.is_young and time.monotonic() + AGAIN_SECONDS < deadline:
        await asyncio.sleep(AGAIN_SECONDS)
        again = await server.request(method, params, deadline - time.monotonic())
        # Answers of a large project take long to compare.
        if await asyncio.to_thread(_is_same, again, result):
            break
        result = again
    return result


def _is_same(one: Any, other: Any) -> bool:
    try:
        return _order_free(one) == _order_free(other)
    except RecursionError:  # nested as no answer is
        return True


def _order_free(value: Any) -> str:
    """Return a text that is equal for equal answers, whatever the order of their parts: gopls has none."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{name}:{_order_free(value[name])}' for name in sorted(value))}}}"
    if isinstance(value, list):
        return f"[{','.join(sorted(map(_order_free, value)))}]"
    return repr(value)


def _texts(view: FileView, paths: Sequence[str]) -> dict[str, str]:
    found = {}
    for path in paths:
        try:
            found[path] = view.read(path).text
        except AgentError:  # deleted, or no text
            continue
    return found
