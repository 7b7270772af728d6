"""An editor that speaks the Agent Client Protocol by the official library's client, with the real agent as its child.

Every message of both sides is kept, and held against the published schema by the library's own models.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, schema
from acp.helpers import text_block
from pydantic import BaseModel, TypeAdapter

from codeagent_lsp.texts import pair
from tests.server.warm import quick_starts

COMMAND = (sys.executable, "-m", "codeagent_lsp.cli", "acp")
ALL = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    elicitation=schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()),
)
NOTHING = schema.ClientCapabilities()

Permit = Callable[[schema.RequestPermissionRequest], Awaitable[str | None] | str | None]
"""Returns the name of the chosen option; None for a cancelled question."""


def says(key: str) -> Permit:
    """A user who chooses this option wherever it is offered, and the first one elsewhere."""

    def chosen(request: schema.RequestPermissionRequest) -> str:
        names = [option.name for option in request.options]
        return next((name for name in names if name in pair(key)), names[0])

    return chosen


class Editor:
    """One agent and one user. `buffers` are the open files with their unsaved texts; what is written through the editor
    is in the buffer and on the disk.
    """

    seconds = 30.0

    def __init__(
        self,
        workspace: Path,
        state: Path,
        script: Sequence[Mapping[str, Any]],
        offers: schema.ClientCapabilities = ALL,
        settings: Sequence[str] = (),
        name: str = "test",
    ) -> None:
        self.workspace = workspace
        self.buffers: dict[Path, str] = {}
        self.read: list[Path] = []
        self.written: list[Path] = []
        self.updates: list[schema.SessionNotification] = []
        self.permissions: list[schema.RequestPermissionRequest] = []
        self.forms: list[schema.CreateFormSessionElicitationRequest] = []
        self.permit: Permit = says("choice.apply")
        self.fill: Callable[[Any], dict[str, Any] | None] = lambda mode: {}
        self.wrong: list[str] = []
        self._offers = offers
        self._info = schema.Implementation(name=name, version="1.0.0")
        self._settings = [word for setting in settings for word in ("--set", setting)]
        self._state = state
        self._place = state.parent / f"{state.name}-script.json"
        self._place.parent.mkdir(parents=True, exist_ok=True)
        self._place.write_text(json.dumps(list(script)))
        self._methods: dict[Any, str] = {}

    async def __aenter__(self) -> Self:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
        environ = {**kept, **quick_starts(), "CODEAGENT_STATE_DIR": str(self._state), "LANG": "C.UTF-8"}
        model = ("--set", "model.provider=scripted", "--set", f"model.name={self._place}")
        self.process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *model,
            *self._settings,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environ,
            cwd=self.workspace,
            limit=1 << 26,
        )
        assert self.process.stdin
        assert self.process.stdout
        client: Any = self
        self.agent: Any = connect_to_agent(
            client,
            self.process.stdin,
            self.process.stdout,
            use_unstable_protocol=True,
            observers=[self._observe],
        )
        self.hello: Any = await self.agent.initialize(
            protocol_version=PROTOCOL_VERSION, client_capabilities=self._offers, client_info=self._info
        )
        return self

    async def __aexit__(self, *reason: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            async with asyncio.timeout(10):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            raise
        finally:
            await self.agent.close()
        assert not self.wrong, "\n".join(self.wrong)

    # What a user does.

    async def new(self) -> str:
        """Begin a session in the workspace."""
        session_id: str = (await self.agent.new_session(cwd=str(self.workspace), mcp_servers=[])).session_id
        return session_id

    async def prompt(self, session_id: str, words: str | Sequence[Any]) -> schema.PromptResponse:
        """Send a prompt and wait for its end."""
        content = [text_block(words)] if isinstance(words, str) else list(words)
        async with asyncio.timeout(self.seconds):
            answer: schema.PromptResponse = await self.agent.prompt(session_id=session_id, prompt=content)
        return answer

    def children(self) -> list[int]:
        """The processes that work for the agent: all that have its state folder, but itself."""
        mark, found = f"CODEAGENT_STATE_DIR={self._state}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if mark in (folder / "environ").read_bytes() and b"serve" in words:
                    found.append(int(folder.name))
            except OSError:  # it has ended
                continue
        return found

    # What was shown.

    def said(self) -> str:
        """All text of the agent."""
        found = (note.update for note in self.updates)
        return "".join(each.content.text for each in found if isinstance(each, schema.AgentMessageChunk))

    def of(self, kind: type[Any]) -> list[Any]:
        """The updates of one kind."""
        return [note.update for note in self.updates if isinstance(note.update, kind)]

    def state_of(self, call_id: str) -> str | None:
        """The last state of a tool call."""
        calls = [*self.of(schema.ToolCallStart), *self.of(schema.ToolCallProgress)]
        states = [call.status for call in calls if call.tool_call_id == call_id and call.status]
        return states[-1] if states else None

    async def until(self, true: Callable[[], Any]) -> Any:
        """Wait until something is so, and return it."""
        async with asyncio.timeout(self.seconds):
            while not (found := true()):  # noqa: ASYNC110 - what is waited for tells nothing
                await asyncio.sleep(0.01)
            return found

    # The client's side of the protocol.

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(schema.SessionNotification(session_id=session_id, update=update))

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **kwargs: Any
    ) -> schema.RequestPermissionResponse:
        request = schema.RequestPermissionRequest(session_id=session_id, tool_call=tool_call, options=options)
        self.permissions.append(request)
        name = self.permit(request)
        chosen = await name if isinstance(name, Awaitable) else name
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        option = next(option.option_id for option in options if option.name == chosen)
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=option))

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        self.forms.append(mode)
        content = self.fill(mode)
        if content is None:
            return schema.DeclineElicitationResponse(action="decline")
        return schema.AcceptElicitationResponse(action="accept", content=content)

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> schema.ReadTextFileResponse:
        self.read.append(Path(path))
        if Path(path) in self.buffers:
            return schema.ReadTextFileResponse(content=self.buffers[Path(path)])
        if not Path(path).is_file():  # noqa: ASYNC240 - a small file of a test
            raise RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=Path(path).read_text())  # noqa: ASYNC240

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> None:
        self.written.append(Path(path))
        if Path(path) in self.buffers:
            self.buffers[Path(path)] = content
        saved = Path(path).read_bytes() if Path(path).is_file() else b""  # noqa: ASYNC240
        crlf = b"\r\n" in saved and "\r" not in content
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes((content.replace("\n", "\r\n") if crlf else content).encode())  # noqa: ASYNC240

    def on_connect(self, conn: Any) -> None: ...

    # The schema.

    def _observe(self, event: Any) -> None:
        """Hold a message against the schema."""
        message, ours = event.message, event.direction.value == "outgoing"
        method, name = message.get("method"), (ours, message.get("id"))
        if method is not None and "id" in message:
            self._methods[name] = method
        if method is None:
            method = self._methods.get((not ours, message.get("id")), "")
            model = None if "error" in message else _RESPONSES.get(method)
            content = message.get("result")
        else:
            model, content = _REQUESTS.get(method), message.get("params")
        if model is None or content is None:
            if model is None and "error" not in message:
                self.wrong.append(f"{method} is no method of the protocol")
            return
        try:
            strict(model, content)
        except ValueError as error:
            self.wrong.append(f"{method}: {error}\n{json.dumps(content)[:2000]}")


def strict(model: Any, content: Any) -> None:
    """Hold a value against a model of the schema, whose leniency towards the other side is not for what we send."""
    made = _ADAPTERS(model).validate_python(content)
    back = made.model_dump(mode="json", by_alias=True, exclude_none=True) if isinstance(made, BaseModel) else made
    lost = _lost(content, back)
    if lost:
        raise ValueError(f"not in the schema: {lost}")


def _lost(sent: Any, understood: Any, where: str = "") -> list[str]:
    """Return the places of a message that its model does not have."""
    if isinstance(sent, Mapping) and isinstance(understood, Mapping):
        gone = [f"{where}.{name}" for name in sent if name not in understood and sent[name] is not None]
        inner = [
            each
            for name in sent
            if name in understood
            for each in _lost(sent[name], understood[name], f"{where}.{name}")
        ]
        return gone + inner
    if isinstance(sent, list) and isinstance(understood, list):
        if len(sent) != len(understood):
            return [where]
        return [
            each
            for number, (one, other) in enumerate(zip(sent, understood, strict=True))
            for each in _lost(one, other, f"{where}[{number}]")
        ]
    return [] if sent == understood else [where]


_ADAPTERS = functools.cache(TypeAdapter)

_REQUESTS: dict[str, Any] = {
    "initialize": schema.InitializeRequest,
    "authenticate": schema.AuthenticateRequest,
    "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/list": schema.ListSessionsRequest,
    "session/resume": schema.ResumeSessionRequest,
    "session/fork": schema.ForkSessionRequest,
    "session/close": schema.CloseSessionRequest,
    "session/prompt": schema.PromptRequest,
    "session/cancel": schema.CancelNotification,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
    "elicitation/create": schema.CreateFormSessionElicitationRequest,
}
_RESPONSES: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/close": schema.CloseSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "session/request_permission": schema.RequestPermissionResponse,
    "fs/read_text_file": schema.ReadTextFileResponse,
    "fs/write_text_file": schema.WriteTextFileResponse,
    "elicitation/create": schema.CreateElicitationResponse,
}
