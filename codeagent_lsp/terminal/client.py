"""A small LSP client: starts a run, shows its events, answers its prompts, writes accepted edits; or gets a decision
about what an earlier run has staged, or has that run's changes undone.

It is an editor without buffers: its documents are the files on disk. Not here: how things look (`screen.py`), the wire
(`lsp_client/connection.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from codeagent_lsp.language_servers.json_rpc import Refused
from codeagent_lsp.lsp_client.connection import LEAVE_SECONDS, Connection, ConnectionLost, server_command
from codeagent_lsp.lsp_client.disk import Disk, EditImpossible, FileWrite, commit, plan, reason
from codeagent_lsp.protocol import EVENT_METHOD, EXPERIMENTAL_KEY, INPUT_METHOD, TERMINAL_CLIENT
from codeagent_lsp.terminal.display import in_terminal, user_locale
from codeagent_lsp.terminal.options import RunOptions
from codeagent_lsp.terminal.questions import Decision
from codeagent_lsp.texts import pair
from codeagent_lsp.workspace.files import uris

CANCEL_SECONDS = 1.0
QUICK_SECONDS = 0.5
WARNED_SECONDS = 1.0
"""How long after a warning it is still waited for the outcome of changes, which the warning may not be about."""
CREATED, CHANGED, DELETED = 1, 2, 3
WARNING = 2

CAPABILITIES: dict[str, Any] = {
    # As Python counts, so that no position needs a conversion.
    "general": {"positionEncodings": ["utf-32"]},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "failureHandling": "transactional",
        },
        "workspaceFolders": True,
    },
    "window": {"showMessage": {"messageActionItem": {"additionalPropertiesSupport": False}}},
    "experimental": {EXPERIMENTAL_KEY: {"event": True, "input": True}},
}

Event = Mapping[str, Any]
_ENDED: Event = {"type": "run_completed", "status": "completed", "outcome": "none"}
AskAboutDiff = Callable[[str], Awaitable[Decision | None]]
"""Returns what becomes of the changes of a diff; None for no decision."""


class NothingStaged(Exception):
    """Raised if a run has no changes that wait for a decision."""


class Face(Protocol):
    """Port: shows one run to the user and asks them, on a terminal or for a program."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Show an event of the run, plain data in the form of the protocol (`events.to_dict`)."""

    def message(self, words: str) -> None:
        """Show a warning or an error, a sentence in the user's language, that is no event of the run."""

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """Ask the user and return the chosen title, one of `choices`; None if there is no user or none was chosen.
        About a diff they may choose `choice.singly`, which `decide` carries out.
        """

    async def decide(self, diff: str) -> Decision | None:
        """Ask the user about each part of a unified diff and return what is to be applied and discarded; None for no
        decision.
        """

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """Ask the user for a text and return it; None if there is no user or none was entered. A `secret` is not shown
        while it is typed.
        """


class Client:
    """Starts a server for one run, by `run`, `decide` or `undo`, and ends it afterwards; use it once. Setting
    `interrupted` cancels the run. `environ` is the server's; `written` is all that was written to files, in order.
    """

    def __init__(
        self, options: RunOptions, interrupted: asyncio.Event, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.written: list[FileWrite] = []
        self._options = options
        self._face: Face
        self._interrupted = interrupted
        self._disk = Disk(options.workspace)
        self._started = False
        self._run_id: str | None = None
        self._ended: dict[str | None, Mapping[str, Any]] = {}
        self._completed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._applied: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Held while a decision is carried out, part by part: its run may end in the midst of that.
        self._deciding = asyncio.Lock()
        self._warned = asyncio.Event()
        # Held while the user is asked, and what they chose last.
        self._asking, self._asked = asyncio.Lock(), asyncio.Event()
        self._chosen: str | None = None
        self._connection = Connection(server_command(), environ)

    async def start(self) -> None:
        """Start the server, which takes a while in which other things can be made ready; without this call it is
        started when it is needed. ConnectionLost if it cannot be started.
        """
        self._listen()
        try:
            await self._connection.start()
        except OSError as error:
            raise ConnectionLost(str(error)) from error
        self._started = True

    async def run(self, face: Face) -> Event | None:
        """Start the run of the options, show it and answer its prompts until it ends. Return its `run_completed` event;
        None if interrupted before there was one.

        ConnectionLost if the server ends early, Refused if it does not accept the task.
        """
        return await self._serve(face, self._work)

    async def decide(self, face: Face, run_id: str, ask: AskAboutDiff) -> Event | None:
        """Let `ask` decide about the staged changes of an earlier run by their diff. Return the run's last event; None
        if interrupted. Raises as `run`, and NothingStaged if there are none.
        """
        return await self._serve(face, lambda: self._decide(run_id, ask))

    async def undo(self, face: Face, run_id: str) -> Event | None:
        """Take back what an earlier run has changed, but for what the user has changed since. Return the run's last
        event; None if interrupted. Raises as `run`, and Refused if there is nothing to undo.
        """
        return await self._serve(face, lambda: self._undo(run_id))

    async def _serve(self, face: Face, do: Callable[[], Coroutine[Any, Any, Event]]) -> Event | None:
        """Do something with the server and end it; None if interrupted before it was done."""
        self._face = face
        try:
            if not self._started:
                await self.start()
            work = asyncio.ensure_future(do())
            stop = asyncio.ensure_future(self._interrupted.wait())
            await asyncio.wait([work, stop], return_when=asyncio.FIRST_COMPLETED)
            # Interrupted: both futures were waited for, and it was the other.
            if not work.done():
                await self._cancel(work)
            stop.cancel()
            return None if work.cancelled() else work.result()
        finally:
            await self.close()

    async def close(self) -> None:
        """End the server, if it runs; it has some seconds, after an interruption fewer, before it is killed. Never
        raises.
        """
        await self._connection.close(QUICK_SECONDS if self._interrupted.is_set() else LEAVE_SECONDS)

    def _listen(self) -> None:
        connection = self._connection
        connection.notifications[EVENT_METHOD] = self._event
        connection.notifications["window/showMessage"] = self._message
        connection.requests["window/showMessageRequest"] = self._prompt
        connection.requests[INPUT_METHOD] = self._input
        connection.requests["workspace/applyEdit"] = self._apply

    async def _work(self) -> Event:
        await self._begin()
        options = self._options
        arguments = {"task": options.task, "mode": options.mode, "attempts": options.attempts, "untilProven": True}
        if options.session:
            arguments["sessionId"] = options.session
        self._run_id = (await self._command("codeagent.run", arguments))["runId"]
        self._settle()
        await self._until(self._completed)
        async with self._deciding:
            completed: Event = self._completed.result()
            return completed

    async def _decide(self, run_id: str, ask: AskAboutDiff) -> Event:
        await self._begin()
        ended: Event = {**_ENDED, "run_id": run_id, **await self._carry_out(run_id, ask)}
        self._event(ended)
        return ended

    async def _carry_out(self, run_id: str, ask: AskAboutDiff) -> Event:
        """Let `ask` decide about what a run has staged, and return in what its last event differs for that.
        NothingStaged if there is nothing.
        """
        review = await self._command("codeagent.review", {"runId": run_id})
        if not review["diff"]:
            raise NothingStaged(run_id)
        decision = await ask(review["diff"]) or Decision()
        # By its digest: exactly what was shown is applied, though the run may be changed from elsewhere meanwhile.
        exactly = {"runId": run_id, "digest": review["digest"]}
        ended: Event = {}
        if decision.apply is not None:
            ended = await self._outcome("codeagent.apply", {**exactly, **decision.apply})
        if decision.discard is not None:
            await self._command("codeagent.discard", {**exactly, **decision.discard})
        return {"status": "rejected"} if decision.discard == {} else ended

    async def _undo(self, run_id: str) -> Event:
        await self._begin()
        outcome = await self._outcome("codeagent.undo", {"runId": run_id})
        ended: Event = {**_ENDED, "run_id": run_id, **outcome, **await self._over_conflicts()}
        self._event(ended)
        return ended

    async def _over_conflicts(self) -> Event:
        """Wait for the answer to the question that an undo brings which has met lines that were changed since, and
        return in what the outcome differs for that.
        """
        if not (self._applied.done() and self._applied.result().get("conflicts")):
            return {}
        self._expect_outcome()
        with contextlib.suppress(TimeoutError):  # nobody is asked
            async with asyncio.timeout(WARNED_SECONDS):
                await self._asked.wait()
        async with self._asking:
            return await self._outcome_told() if self._chosen in pair("choice.earlier") else {}

    async def _outcome(self, command: str, arguments: Mapping[str, Any]) -> Event:
        """Have changes applied or undone, and return how they were."""
        self._expect_outcome()
        await self._command(command, arguments)
        return await self._outcome_told()

    def _expect_outcome(self) -> None:
        self._applied = asyncio.get_running_loop().create_future()
        self._warned.clear()

    async def _outcome_told(self) -> Event:
        """Wait for the outcome, which an event says after the command's reply, or else a warning, and return it."""
        warned = asyncio.ensure_future(self._warned.wait())
        await self._until(self._applied, warned)
        warned.cancel()
        await asyncio.wait([self._applied], timeout=WARNED_SECONDS)
        if not self._applied.done():
            return {"status": "failed"}
        return {name: self._applied.result()[name] for name in ("outcome", "files_changed")}

    async def _until(self, *one_of: asyncio.Future[Any]) -> None:
        """Wait for one of these. ConnectionLost if the server ends before."""
        lost: asyncio.Future[Any] = asyncio.ensure_future(self._connection.lost.wait())
        await asyncio.wait([*one_of, lost], return_when=asyncio.FIRST_COMPLETED)
        lost.cancel()
        if not any(future.done() for future in one_of):
            raise ConnectionLost(self._connection.log.last_line)

    async def _begin(self) -> None:
        await self._connection.request("initialize", self._hello(), seconds=60)
        self._connection.notify("initialized", {})

    async def _command(self, name: str, arguments: Mapping[str, Any], seconds: float = 60) -> Any:
        params = {"command": name, "arguments": [arguments]}
        return await self._connection.request("workspace/executeCommand", params, seconds)

    async def _cancel(self, work: asyncio.Task[Event]) -> None:
        """Ask the server to stop; wait at most `CANCEL_SECONDS`."""
        cancel = asyncio.ensure_future(self._command("codeagent.cancel", {}, CANCEL_SECONDS))
        await asyncio.wait([work], timeout=CANCEL_SECONDS)
        for task in (work, cancel):
            task.cancel()
        await asyncio.gather(work, cancel, return_exceptions=True)

    def _hello(self) -> dict[str, Any]:
        folder = self._options.workspace
        uri = uris.from_path(str(folder))
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": TERMINAL_CLIENT},
            "locale": user_locale(),
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": folder.name}],
            "capabilities": CAPABILITIES,
            "initializationOptions": dict(self._options.settings),
        }

    def _event(self, event: Mapping[str, Any]) -> None:
        # After the end of our run nothing is shown any more: its summary is the last word.
        if self._completed.done() and not self._deciding.locked():
            return
        try:
            self._face.event(event)
        except OSError:  # the output was closed
            self._interrupted.set()
        if event["type"] == "changes_applied" and not self._applied.done():
            self._applied.set_result(event)
        if event["type"] == "run_completed":
            self._ended[event.get("run_id", "")] = event
            self._settle()

    def _settle(self) -> None:
        """Note the end of our run; its attempts are runs, too, and the reply that names ours may come after its end."""
        if self._run_id in self._ended and not self._completed.done():
            self._completed.set_result(self._ended[self._run_id])

    def _message(self, params: Mapping[str, Any]) -> None:
        """Show warnings and errors; answers and outcomes arrive as events."""
        if params["type"] <= WARNING and not self._completed.done():
            self._face.message(in_terminal(params["message"]))
            self._warned.set()

    async def _prompt(self, params: Mapping[str, Any]) -> Mapping[str, str] | None:
        choices = tuple(action["title"] for action in params.get("actions") or ())
        async with self._asking:
            self._asked.set()
            self._chosen = chosen = await self._face.choose(params["message"], choices)
        if chosen in pair("choice.singly") and chosen not in choices:
            async with self._deciding:
                await self._decide_singly()
            return None  # the decision itself has closed the question
        return None if chosen is None else {"title": chosen}

    async def _decide_singly(self) -> None:
        try:
            await self._carry_out(self._run_id or "", self._face.decide)
        except NothingStaged:
            pass  # decided about from elsewhere meanwhile
        except Refused as error:
            self._face.message(in_terminal(str(error)))

    async def _input(self, params: Mapping[str, Any]) -> Mapping[str, str | None]:
        secret = bool(params.get("secret"))
        return {"value": await self._face.ask(params["title"], params.get("prompt") or "", secret=secret)}

    async def _apply(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write an edit, all or nothing, without awaiting, so that a cancel never leaves a part of it."""
        try:
            writes = plan(params["edit"], self._disk.read)
            commit(writes, self._disk)
            self.written.extend(writes)
        except (EditImpossible, OSError) as error:
            failed = error.failed if isinstance(error, EditImpossible) else None
            named = {} if failed is None else {"failedChange": failed}
            return {"applied": False, "failureReason": reason(error), **named}
        changes = [{"uri": uris.from_path(str(item.path)), "type": _kind(item.before, item.after)} for item in writes]
        self._connection.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        return {"applied": True}


def _kind(before: bytes | None, after: bytes | None) -> int:
    if before is None:
        return CREATED
    return DELETED if after is None else CHANGED
