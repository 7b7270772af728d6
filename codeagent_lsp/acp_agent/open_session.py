"""One session of a client of the Agent Client Protocol: a server of ours in a child process, of which it is the editor.

Each session has its own server, so that mode, model and tool servers of one are not those of another. Prompts become
runs, events become updates, our questions become requests. Not here: the sessions of a client (`agent.py`), the parts
of the translation (`updates.py`, `questions.py`, `prompt_content.py`, `session_options.py`), the wire
(`session_server.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from acp import Client, RequestError, schema
from acp.helpers import text_block, tool_content, update_agent_message_text

from codeagent_lsp.acp_agent.client_files import FolderNames
from codeagent_lsp.acp_agent.prompt_content import Task
from codeagent_lsp.acp_agent.questions import Answer, AskInWords, OpenQuestion, Questions
from codeagent_lsp.acp_agent.session_options import (
    EFFORT,
    MODE,
    MODEL,
    SessionOptions,
    commands_of,
    models_of,
    window_of,
)
from codeagent_lsp.acp_agent.session_server import SessionServer
from codeagent_lsp.acp_agent.updates import Updates
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.language_servers.json_rpc import Refused
from codeagent_lsp.lsp_client.connection import ConnectionLost
from codeagent_lsp.session.request import short_title
from codeagent_lsp.texts import text

Event = Mapping[str, Any]

CANCEL_SECONDS = 5.0
SETTLE_SECONDS = 30.0
OUTPUT_SECONDS = 0.3
TOOLS_SECONDS = 10.0
POLL_SECONDS = 0.1
WARNING = 2
_NO_MODEL = (ErrorCode.NOT_FOUND.value, ErrorCode.PERMISSION_DENIED.value)
"""The codes with which a run fails that finds no model, or has no key for it."""
_RESOLVED = ("approval_resolved", "question_answered")
_ASKED = ("approval_requested", "question_asked")


class OpenSession:
    """One session, from `start` to `close`, with a server process of its own. `offered` is what the client can do,
    `names` are the folders of the session, the first one its working folder; `settings` is the first layer for the
    server.
    """

    def __init__(
        self,
        client: Client,
        names: FolderNames,
        offered: schema.ClientCapabilities | None,
        options: SessionOptions,
        settings: Mapping[str, Any],
    ) -> None:
        self.session_id = ""
        self.names = names
        self.options = options
        self._client = client
        self._offered = offered
        self._settings = settings
        self._updates = Updates(names.real[0], options.language, names.shown)
        self._server = SessionServer(client, names, offered, options.language, settings)
        self._events: deque[Event] = deque()  # those that have arrived and are not passed on yet
        self._arrived = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()
        self._asking: dict[str, asyncio.Task[None]] = {}  # open questions by their ids
        self._ended: dict[str, asyncio.Future[Event]] = {}
        self._in_words: tuple[str, str] | None = None  # a question that the next prompt answers, and its run
        self._turn = asyncio.Lock()
        self._cancels = 0  # so often was cancelled: a prompt that finds another number was meant by one
        self._left: set[str] = set()  # runs whose changes were asked about once
        self._asking_left: asyncio.Future[Answer] | None = None
        self._titled = False
        self._brings_tools = "mcp.servers" in settings
        self._told: list[str] = []  # warnings that came between prompts
        self._missing = False

    async def start(self) -> None:
        """Start the server, unless it runs; takes up to 60 s. ConnectionLost or Refused if it does not start; `close`
        must be called even then.
        """
        if self._pump is not None:
            return
        self._pump = asyncio.create_task(self._work())
        await self._server.start(self._arrives, self._message)

    @property
    def lost(self) -> bool:
        """Whether the server has ended, so that `again` has to replace this session."""
        return self._server.lost.is_set()

    def again(self) -> OpenSession:
        """Return a new session like this one, with a server that has not been started; this one stays to be closed."""
        made = OpenSession(self._client, self.names, self._offered, self.options, self._settings)
        # Its user was asked already, and a server that was started anew must not bring the question again.
        made._left |= self._left
        return made

    async def close(self) -> None:
        """End the server with its run, waiting some seconds before it is killed; prompts that wait end as cancelled."""
        self._tasks.cancel()
        for task in (*self._asking.values(), *([self._pump] if self._pump else [])):
            task.cancel()
        await self._server.close()
        for future in self._ended.values():
            if not future.done():  # its prompt still wants an answer
                future.set_result({"type": "run_completed", "status": "cancelled"})

    # Which session it is.

    async def new(self) -> None:
        """Begin a new session on the server and take its id. Refused if the server does not do it, ConnectionLost if it
        does not answer.
        """
        self._take_name((await self.command("codeagent.session.new"))["sessionId"])

    async def fork(self, session_id: str) -> None:
        """Begin a new session with the conversation of another one and take its id. Refused if that is unknown,
        ConnectionLost if the server does not answer.
        """
        self._take_name((await self.command("codeagent.session.fork", sessionId=session_id))["sessionId"])

    async def resume(self, session_id: str, *, shown: bool) -> None:
        """Continue a session and take its id; if it is to be `shown`, send its conversation to the client. Refused if
        it is unknown, or in use elsewhere, ConnectionLost if the server does not answer.
        """
        found = await self.command("codeagent.session.resume", sessionId=session_id)
        self._titled = bool(found["runs"])
        self._take_name(session_id)
        found = await self.command("codeagent.session.events", sessionId=session_id)
        for event in found["events"]:
            updates = self._updates.of(event)
            if shown:
                await self._send(updates)
        rows = await self.command("codeagent.pending")
        for row in rows:
            if row["kind"] == "question":  # of a run that has ended: what is said next is the answer
                question = OpenQuestion.of(row, {})
                if shown:
                    await self._questions.say(question)
                await self._respond(question, None)
        # The events tell what was staged; what is left of it, only the server knows.
        left = {item["runId"] for item in rows if item["kind"] == "changes"}
        for run_id in self._updates.staged.keys() - left:
            del self._updates.staged[run_id]

    def _take_name(self, session_id: str) -> None:
        self.session_id = session_id
        self._server.named(session_id)
        forms = bool(self._offered and self._offered.elicitation and self._offered.elicitation.form is not None)
        self._questions = Questions(self._client, session_id, self.options.language, forms=forms)
        self._tasks.start(self._tell_offers())

    async def _tell_offers(self) -> None:
        """Tell the client the commands and the models, which take a moment to find."""
        gone = Refused, ConnectionLost, ConnectionError
        with suppress(*gone):
            own = await self.command("codeagent.commands.list")
            await self._send([commands_of(own, self.options.language)])
        with suppress(*gone):
            rows = await self.command("codeagent.model.list", details=True)
            self.options.models = models_of(rows)
            self._updates.window = window_of(rows, self.options.model)
            await self._send([self.changed_options()])

    def changed_options(self) -> schema.ConfigOptionUpdate:
        """Return the update about changed options for the client, with all of them, as the protocol wants."""
        return schema.ConfigOptionUpdate(session_update="config_option_update", config_options=self.options.config())

    # Prompts.

    async def prompt(self, task: Task) -> schema.PromptResponse:
        """Run a task after the prompts before it, send its updates, and return why it ended. ConnectionLost if the
        server ends, Refused if it does not accept the task, RequestError if there is no model.
        """
        cancels = self._cancels
        async with self._turn:
            if self._cancels != cancels:
                return schema.PromptResponse(stop_reason="cancelled")
            self._missing = False
            for words in self._told:
                await self._send([update_agent_message_text(f"*{words}*\n\n")])
            self._told.clear()
            run_id = await self._take_answer(task) or await self._begin_run(task)
            if run_id is None:
                return schema.PromptResponse(stop_reason="end_turn" if self._cancels == cancels else "cancelled")
            if self._cancels != cancels:  # while it was being begun
                await self._cancel()
            end = await self._end_of(run_id)
        if end.get("status") == "failed" and self._missing:
            raise RequestError.auth_required({"details": end.get("error", "")})
        return _response(end)

    async def cancel(self) -> None:
        """Cancel the run in progress and all prompts that wait. Waits at most 5 s for the server's answer; never
        raises.
        """
        self._cancels += 1
        self._in_words = None
        if self._asking_left is not None:
            self._asking_left.cancel()
        await self._cancel()

    async def _cancel(self) -> None:
        with suppress(Refused, ConnectionLost):
            await self._server.command("codeagent.cancel", {}, CANCEL_SECONDS)

    async def _take_answer(self, task: Task) -> str | None:
        """Take the prompt as the answer to the question that was asked in words; return the run that goes on with it,
        None if there is no such question any more.
        """
        asked, self._in_words = self._in_words, None
        if asked is None:
            return None
        request_id, run_id = asked
        future = self._future_of(run_id)
        if future.done():
            return None
        try:
            await self.command("codeagent.respond", requestId=request_id, answer=task.words)
        except Refused:  # its time was over
            return None
        return run_id

    async def _begin_run(self, task: Task) -> str | None:
        """Begin the run of a task; None for a command that needs none."""
        await self._server.files.sync(task.files, again=True)
        match task.command:
            case "apply" | "discard" | "undo":
                await self._settle(task.command)
                return None
            case "ask":
                arguments = {"question": task.rest}
            case "plan":
                arguments = {"task": task.rest, "mode": "plan"}
            case _:
                arguments = {"task": task.words}
        cancels = self._cancels
        await self._ask_about_left()
        if self._cancels != cancels:
            return None
        await self._tools_started()
        await self._send(self._title(task))
        name = "codeagent.ask" if "question" in arguments else "codeagent.run"
        given = {**arguments, "attachments": list(task.attachments), "sessionId": self.session_id}
        run_id: str = (await self._server.command(name, given))["runId"]
        return run_id

    async def _tools_started(self) -> None:
        """Wait a few seconds for the servers of tools that the client brings: its user counts on them at once."""
        if not self._brings_tools:
            return
        self._brings_tools = False
        for _ in range(round(TOOLS_SECONDS / POLL_SECONDS)):
            rows = await self.command("codeagent.mcp.status")
            if not any(row["state"] in ("idle", "starting") for row in rows):
                return
            await asyncio.sleep(POLL_SECONDS)

    def _title(self, task: Task) -> list[Any]:
        """Return the title of a new session, which is its first task."""
        first, self._titled = not self._titled, True
        if not first or not task.words:
            return []
        return [schema.SessionInfoUpdate(session_update="session_info_update", title=short_title(task.words, str))]

    async def _end_of(self, run_id: str) -> Event:
        """Return the end of a run, or that it waits for words of the user. ConnectionLost if the server ends first."""
        future = self._future_of(run_id)
        lost: asyncio.Future[Any] = asyncio.ensure_future(self._server.lost.wait())
        try:
            await asyncio.wait([future, lost], return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost.cancel()
        if not future.done():
            raise ConnectionLost(self._server.last_line)
        event = future.result()
        self._ended = {name: each for name, each in self._ended.items() if not each.done()}
        if event["type"] != "run_completed":  # it goes on with the next prompt
            self._future_of(run_id)
        return event

    def _future_of(self, run_id: str) -> asyncio.Future[Event]:
        return self._ended.setdefault(run_id, asyncio.get_running_loop().create_future())

    async def _settle(self, name: str, run_id: str = "") -> None:
        """Apply or discard what a run has staged, the last one that has something, or undo; say what went wrong."""
        waiting = [each for each, staged in self._updates.staged.items() if staged]
        run_id = run_id or (waiting[-1] if waiting and name != "undo" else "")
        settled = self._future_of("")
        try:
            if name != "undo" and not run_id:
                raise Refused(text("acp.nothing_waits", self.options.language))
            await self._server.command(f"codeagent.{name}", {"runId": run_id} if run_id else {})
            if name != "discard":
                async with asyncio.timeout(SETTLE_SECONDS):
                    await settled
        except Refused as error:
            await self._send([update_agent_message_text(str(error))])
        except TimeoutError:
            await self._send([update_agent_message_text(text("acp.no_outcome", self.options.language))])
        finally:
            self._ended.pop("", None)

    async def _ask_about_left(self) -> None:
        """Ask, once each, about changes that earlier runs have left staged, before the next run begins."""
        language = self.options.language
        later, apply, discard = (text(f"choice.{name}", language) for name in ("later", "apply", "discard"))
        cancels = self._cancels
        for run_id, staged in [*self._updates.staged.items()]:
            if not staged or run_id in self._left:
                continue
            if self._cancels != cancels:
                return
            self._left.add(run_id)
            title = text("acp.left", language, count=len(staged))
            question = _about_changes(run_id, title, later, apply, discard)
            asking = self._asking_left = asyncio.ensure_future(self._ask_permission(question))
            await asyncio.wait([asking])  # a cancelled prompt does not wait for the client's answer
            match None if asking.cancelled() or asking.exception() else asking.result():
                case (chosen,) if chosen in (apply, discard):
                    await self._settle("apply" if chosen == apply else "discard", run_id)
                case _:
                    await self._send(self._updates.undecided(run_id))

    # Options.

    async def set_option(self, option: str, value: str) -> None:
        """Set one of the options (`mode`, `model` or `effort`). RequestError for a value that it does not have, Refused
        if the policy has another.
        """
        if not self.options.allows(option, value):
            raise RequestError.invalid_params({"details": f"{option} has no value {value!r}"})
        if option == MODE:
            await self.command("codeagent.mode.set", mode=value)
            self.options.mode = value
            mode = schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=value)
            await self._send([mode])
        elif option == MODEL:
            if value:
                await self.command("codeagent.model.select", name=value)
            self.options = replace(self.options, model=value)
            self._tasks.start(self._tell_offers())
        elif option == EFFORT:
            settings = {"settings": {"codeagent": {"model": {"effort": value}}}}
            self._server.notify("workspace/didChangeConfiguration", settings)
            self.options.effort = value

    # The server.

    async def command(self, name: str, /, **arguments: Any) -> Any:
        """Have the server execute a command with these arguments, and return its answer as plain JSON. Refused if it
        does not, ConnectionLost if it does not answer within 60 s.
        """
        return await self._server.command(name, arguments)

    def _message(self, params: Mapping[str, Any]) -> None:
        """Keep a warning for the next prompt; what belongs to a run comes as its events."""
        if params["type"] <= WARNING and not self._turn.locked():
            self._told.append(str(params["message"]))

    # Events.

    def _arrives(self, event: Event) -> None:
        self._events.append(event)
        self._arrived.set()

    async def _work(self) -> None:
        """Pass the events on, in order."""
        now, shown = asyncio.get_running_loop().time, 0.0
        printed = output = list[Any]()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if output == printed else OUTPUT_SECONDS):
                    await self._arrived.wait()
            self._arrived.clear()
            with suppress(ConnectionError):  # the client is gone, and this process ends
                while self._events:
                    await self._take(self._next())
                output = self._updates.output()
                # It comes in pieces without number, so all of it so far is sent now and then.
                if output != printed and now() >= shown + OUTPUT_SECONDS:
                    printed, shown = output, now()
                    await self._send(output)

    def _next(self) -> Event:
        """Return the next event; a piece of text with those behind it that have come, too."""
        event = self._events.popleft()
        kind, run_id = event["type"], event.get("run_id")
        if kind not in ("token", "thought"):
            return event
        pieces = [event["content"]]
        while self._events and (self._events[0]["type"], self._events[0].get("run_id")) == (kind, run_id):
            pieces.append(self._events.popleft()["content"])
        return {**event, "content": "".join(pieces)}

    async def _take(self, event: Event) -> None:
        if event.get("session_id") not in (self.session_id, None, ""):
            return  # of another session that the server knows: an attempt
        await self._send(self._updates.of(event))
        kind, run_id = event["type"], event.get("run_id", "")
        if kind in _ASKED:
            request_id = event["request_id"]
            self._asking[request_id] = asyncio.create_task(self._put(event))
            self._asking[request_id].add_done_callback(lambda _: self._asking.pop(request_id, None))
        elif kind in _RESOLVED and (task := self._asking.get(event["request_id"])) is not None:
            task.cancel()
        elif kind == "error":
            self._missing = event.get("code") in _NO_MODEL
        elif kind in ("changes_applied", "changes_discarded"):
            self._updates.decided(event)
            self._resolve("", event)
        elif kind == "run_completed":
            self._resolve(run_id, event)

    def _resolve(self, run_id: str, event: Event) -> None:
        future = self._ended.get(run_id) if not run_id else self._future_of(run_id)
        if future is not None and not future.done():
            future.set_result(event)

    async def _send(self, updates: Iterable[Any]) -> None:
        for update in updates:
            await self._client.session_update(session_id=self.session_id, update=update)

    # Questions.

    async def _put(self, event: Event) -> None:
        """Put a question to the user, and pass the answer on."""
        with suppress(Refused, ConnectionLost):  # answered otherwise meanwhile, or the server has ended
            rows = await self.command("codeagent.pending")
            row = next((row for row in rows if row.get("requestId") == event["request_id"]), None)
            # Resolved since the event was sent: by a command, or because its run was cancelled.
            if row is None:
                return
            question = OpenQuestion.of(row, event)
            try:
                answer = await self._ask(question)
            except AskInWords:
                await self._put_in_words(question)
                return
            except (RequestError, ConnectionError, ValueError):  # the client cannot, or answers nonsense: no answer
                answer = None
            await self._respond(question, answer)
            if answer is None and question.about_changes:
                await self._send(self._updates.undecided(question.run_id))

    async def _ask(self, question: OpenQuestion) -> Answer:
        if question.kind == "approval":
            return await self._ask_permission(question)
        return await self._questions.ask(question)

    async def _ask_permission(self, question: OpenQuestion) -> Answer:
        """Ask for a permission; one about changes is a tool call of its own, with all of them."""
        if not question.about_changes:
            return await self._questions.approve(question, question.call_id or question.request_id)
        diffs, places = self._updates.diffs(question.run_id), self._updates.places(question.run_id)
        self._updates.asked(question.run_id, question.request_id)
        shown: list[Any] = diffs or [tool_content(text_block(question.detail or question.title))]
        call = schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=question.request_id,
            title=question.title,
            kind="edit",
            status="pending",
            content=shown,
            locations=places,
        )
        await self._send([call])
        return await self._questions.approve(question, question.request_id, diffs, places)

    async def _respond(self, question: OpenQuestion, answer: Answer) -> None:
        arguments: dict[str, Any] = {"dismiss": True} if answer is None else {"answer": list(answer)}
        await self.command("codeagent.respond", requestId=question.request_id, **arguments)

    async def _put_in_words(self, question: OpenQuestion) -> None:
        """Ask in the conversation: the turn ends, and the next prompt is the answer. Never for a secret."""
        if question.secret:
            words = text("env.no_input", self.options.language, title=question.title)
            await self._send([update_agent_message_text(f"\n\n{words}\n")])
            await self._respond(question, None)
            return
        await self._questions.say(question)
        self._in_words = question.request_id, question.run_id
        self._resolve(question.run_id, {"type": "question_asked", "status": "waiting"})


def _about_changes(run_id: str, title: str, *choices: str) -> OpenQuestion:
    """Return a question of our own about changes that no run asks about any more."""
    given = {"requestId": f"left-{run_id}", "runId": run_id, "kind": "approval", "title": title, "choices": choices}
    return OpenQuestion.of(given, {})


def _response(end: Event) -> schema.PromptResponse:
    """Return the answer to a prompt for the end of its run."""
    used = end.get("usage") or {}
    usage = None
    if used:
        prompt, completion = used.get("prompt_tokens", 0), used.get("completion_tokens", 0)
        usage = schema.Usage(
            total_tokens=prompt + completion,
            input_tokens=prompt,
            output_tokens=completion,
            thought_tokens=used.get("reasoning_tokens"),
            cached_read_tokens=used.get("cached_tokens"),
            cached_write_tokens=used.get("written_tokens"),
        )
    reason: Any = "end_turn"
    if end.get("status") == "cancelled":
        reason = "cancelled"
    elif end.get("stopped_by") == "budget":
        reason = "max_tokens"
    return schema.PromptResponse(stop_reason=reason, usage=usage)
