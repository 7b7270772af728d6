"""The editor as an MCP server: lists its tools, and passes calls on to the server of the user's editor, which it finds
and asks to be let in.

That way is taken with the first call, and again with the next one after it broke. Not here: the tools
(`session/lending/lent_tools.py`), the other end (`server/lender.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from codeagent_lsp import __version__
from codeagent_lsp.lend import (
    PROTOCOL,
    Announcement,
    BadFrame,
    Frames,
    LendAnswer,
    Ticket,
    clean_name,
    find_editor,
    holding,
)
from codeagent_lsp.mcp_server.progress import Listener, report_of, telling
from codeagent_lsp.mcp_server.stdio import claim_stdio, stdio_streams
from codeagent_lsp.session.lending.lent_tools import LENT_TOOLS, LentTool, lent_tool

NAME = "codeagent-editor"
UNNAMED = "an MCP client"
PULSE_SECONDS = 5.0
"""After so long, and as often, a client that wants progress hears that a call is still going on."""
INSTRUCTIONS = (
    "The user's editor. read, diagnostics, definition, references and hover show the text as the user has it now, not "
    "saved or not; prefer them to the disk for files that open_files lists. edit, write and rename are staged: nothing "
    "is written until the user has reviewed it in the editor. Do not write the same files yourself, too. Call propose "
    "when your change is complete. run works in a private copy in which staged edits are present."
)

Context = ServerRequestContext[Any, Any]


async def over_stdio(attachment: Attachment) -> None:
    """Serve the parent process (the stdio transport of MCP) until it closes our standard input. Prints go to stderr
    from then on.
    """
    server = make_server(attachment)
    async with stdio_streams(*claim_stdio()) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def make_server(attachment: Attachment) -> Server[Any]:
    """Return an MCP server (the library's `Server`) for one client whose calls go to the editor of this attachment.
    Failures are answers; MCPError only for an unknown tool.
    """

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_list_tool(tool) for tool in LENT_TOOLS])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        if lent_tool(params.name) is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")
        async with telling(report_of(context)) as listener:
            pulse = asyncio.ensure_future(_pulse(listener))
            try:
                outcome = await attachment.call(_client(context), params.name, params.arguments or {})
            finally:
                pulse.cancel()
        return CallToolResult(content=[TextContent(type="text", text=outcome.text)], is_error=not outcome.ok)

    return Server(
        NAME, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


ANSWER_SECONDS = 45.0
"""How long a call waits for the user to allow this client: many agents give a call a minute."""
NOTICE_SECONDS = 10.0
"""How long the editor may take to notice a request."""
LOOK_SECONDS = 0.1
HELLO_SECONDS = 10.0

NONE_OPEN = (
    "No editor with codeagent-lsp has {folder} open, or a folder above it. Ask the user to open it there (VS Code, "
    "Neovim, or any other editor with codeagent-lsp as a language server) and try again."
)
SILENT = "The editor that has {folder} open does not answer. Try again; if that does not help, restart the editor."
ASKING = (
    "The user has not answered yet: their editor asks whether {client} may use it. Tell them to look there, and call "
    "again."
)
REFUSED = {
    "not_now": "The user does not want {client} to use the editor now. Go on without it, and do not ask again soon.",
    "never": (
        "The user never lets {client} use this editor. Go on without it. (They can change that with the command "
        "codeagent.lend.revoke.)"
    ),
    "workspace": NONE_OPEN,
}
BROKE = "The connection to the editor has ended: {reason} What was staged there waits for the user's decision."
NOT_LET_IN = "The editor did not let {client} in: {reason}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The text with which the editor answered a call, or why it could not be called, and whether the call succeeded."""

    text: str
    ok: bool = True


class Unattached(Exception):
    """Raised if no editor can be reached; the message is for the other agent."""


class Attachment:
    """The connection of one MCP client to the editor that has `folder` open, made by the first call, until `close`.
    `root` is the folder of all our state.
    """

    def __init__(self, root: Path, folder: str) -> None:
        self._root = root
        self._folder = folder
        self._line: _Line | None = None
        self._attaching = asyncio.Lock()
        self._ticket: tuple[Announcement, Ticket] | None = None

    async def call(self, client: str, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        """Have the editor run a tool and return its answer. If necessary the editor is found and its user asked first,
        which may wait 45 s. Never raises for failures: the outcome has the reason.
        """
        try:
            # Several calls can come at once, and the user must be asked one question. The call itself is outside of it:
            # calls do not wait for each other.
            async with self._attaching:
                if self._line is None or self._line.broken:
                    self._line = await self._attach(client)
                line = self._line
            return await line.call(tool, arguments)
        except Unattached as problem:
            return Outcome(str(problem), ok=False)

    async def close(self) -> None:
        """Close the connection to the editor and withdraw a request to its user; calls in progress end with a failed
        outcome.
        """
        if self._line is not None:
            await self._line.close()
        if self._ticket is not None:
            self._ticket[1].withdraw()

    async def _attach(self, client: str) -> _Line:
        """Return a connection that may be used. Unattached with the reason if there is none."""
        found = await asyncio.to_thread(find_editor, self._root, self._folder)
        if found is None:
            raise Unattached(NONE_OPEN.format(folder=self._folder))
        # The editor's own folder, not one of ours below it: that is what the user is asked about.
        workspace = holding(found.folders, os.path.realpath(self._folder)) or self._folder  # noqa: ASYNC240 (one link)
        # A ticket that waits is kept between calls, so that the user's late answer counts for the next; another server
        # needs one of its own.
        if self._ticket is None or self._ticket[0].place != found.place:
            self._ticket = (found, Ticket(found.place, client, workspace))
        ticket = self._ticket[1]
        try:
            answer = await self._answer(ticket, client)
        except OSError as problem:
            raise Unattached(NONE_OPEN.format(folder=self._folder)) from problem
        # Used up: the next one is asked for anew.
        self._ticket = None
        ticket.withdraw()
        if answer.state != "granted":
            reason = REFUSED.get(answer.reason, SILENT)
            raise Unattached(reason.format(client=client, folder=self._folder))
        return await _connect(answer, client, workspace)

    async def _answer(self, ticket: Ticket, client: str) -> LendAnswer:
        """Return the decision about a request. Unattached if there is none yet; the request then stays."""
        ticket.put()
        began = asyncio.get_running_loop().time()
        while True:
            answer = ticket.answer()
            if answer is not None and answer.state != "asking":
                return answer
            waited = asyncio.get_running_loop().time() - began
            # Nobody has even begun to ask the user: the server hangs.
            if answer is None and waited > NOTICE_SECONDS:
                raise Unattached(SILENT.format(folder=self._folder))
            if waited > ANSWER_SECONDS:
                raise Unattached(ASKING.format(client=client))
            # Looked for and not watched: files are all that the two share before they are connected.
            await asyncio.sleep(LOOK_SECONDS)


async def _connect(answer: LendAnswer, client: str, workspace: str) -> _Line:
    """Connect to the editor. Unattached with the reason if it does not let us in."""
    kind, _, address = answer.address.partition(":")
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            if sys.platform != "win32" and kind == "unix":
                reader, writer = await asyncio.open_unix_connection(address)
            else:
                host, _, port = address.rpartition(":")
                reader, writer = await asyncio.open_connection(host, int(port))
            frames = Frames(reader, writer)
            hello = {"protocol": PROTOCOL, "token": answer.token, "workspace": workspace, "client": client}
            with contextlib.suppress(OSError):  # turned away at once: the reason is there to be read
                await frames.write({"hello": hello})
            said = await frames.read() or {}
    except (OSError, ValueError, TimeoutError, BadFrame) as problem:
        raise Unattached(NOT_LET_IN.format(client=client, reason=problem)) from problem
    if "welcome" not in said:
        frames.abort()
        raise Unattached(NOT_LET_IN.format(client=client, reason=_message(said.get("refused"))))
    return _Line(frames)


def _message(value: Any) -> str:
    words = value.get("message") if isinstance(value, dict) else None
    return words if isinstance(words, str) else "it has closed the connection."


class _Line:
    """An open connection to an editor."""

    def __init__(self, frames: Frames) -> None:
        self.broken = False
        self._frames = frames
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[Outcome]] = {}
        self._why = _message(None)
        self._reading = asyncio.ensure_future(self._read())

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        """Have a call carried out. Unattached if the connection ends meanwhile."""
        number = next(self._numbers)
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        try:
            await self._frames.write({"call": {"id": number, "tool": tool, "arguments": dict(arguments)}})
            return await answer
        except OSError:
            self._end()
            raise Unattached(BROKE.format(reason=self._why)) from None
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                await self._frames.write({"cancel": number})
            raise
        finally:
            self._open.pop(number, None)

    async def close(self) -> None:
        """Close the connection."""
        self._reading.cancel()
        self._end()
        self._frames.close()
        with contextlib.suppress(asyncio.CancelledError):
            await self._frames.closed()

    async def _read(self) -> None:
        try:
            while (frame := await self._frames.read()) is not None:
                # Said before it closes, so that the other agent hears why and does not just see an end.
                if "closed" in frame:
                    self._why = _message(frame["closed"])
                    break
                self._take(frame.get("answer"))
        except (OSError, BadFrame) as problem:
            self._why = f"{problem}."
        finally:
            self._end()
            self._frames.abort()

    def _take(self, answer: Any) -> None:
        if isinstance(answer, dict):
            waiting = self._open.get(answer.get("id", 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(Outcome(str(answer.get("text", "")), ok=answer.get("ok") is True))

    def _end(self) -> None:
        # The next call attaches anew; what waits cannot be sent again, as it may have been carried out.
        self.broken = True
        for waiting in tuple(self._open.values()):
            if not waiting.done():
                waiting.set_exception(Unattached(BROKE.format(reason=self._why)))


async def _pulse(listener: Listener) -> None:
    """Tell again and again that a call goes on: the user may take their time, and clients give up on silence."""
    while True:
        await asyncio.sleep(PULSE_SECONDS)
        listener.note("Waiting for the editor …")


def _client(context: Context) -> str:
    """Return the name by which the client has introduced itself."""
    known = context.session.client_params
    return clean_name(known.client_info.name if known is not None else "") or UNNAMED


def _list_tool(tool: LentTool) -> Tool:
    hints = ToolAnnotations(read_only_hint=tool.reads, destructive_hint=False, open_world_hint=False)
    return Tool(name=tool.name, description=tool.description, input_schema=tool.schema(), annotations=hints)
