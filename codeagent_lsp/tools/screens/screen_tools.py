"""The tools `terminal` and `desktop`: start, stop and check what the user opens in a browser.

Files written in one become staged changes when it is stopped. The URL that opens it contains a token and is given only
to the user; without a user, to the caller. Not here: running them (`environments/`), variables
(`../variables/variable_tools.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, Shape
from codeagent_lsp.config import Settings
from codeagent_lsp.environments.environment import (
    DISPLAY,
    PORTS,
    RESOLUTION,
    ScreenKind,
    ScreenRequest,
    Screens,
    ScreenStatus,
    Stopped,
)
from codeagent_lsp.errors import ErrorCode, SettingError, ToolFailed
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.text.excerpts import join_names

MAX_NAMED = 20

Action = Literal["start", "stop", "restart", "status"]
_NAMES = {"terminal": "web terminal", "desktop": "desktop"}


class TerminalParameters(Parameters):
    """Parameters of `terminal`: what to do with it; `port` is by default the usual one, or the next that is free."""

    action: Action = "start"
    port: int | None = Field(None, ge=1024, le=65535)


class DesktopParameters(TerminalParameters):
    """Parameters of `desktop`: those of `terminal`, the size in pixels (`WIDTHxHEIGHT`), and the number of the X
    display.
    """

    resolution: str = Field(RESOLUTION, pattern=r"^\d{3,4}x\d{3,4}$")
    display: int = Field(DISPLAY, ge=0, le=99)


def _display(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the display as a number."""
    value = given.get("display")
    return {**given, "display": value.removeprefix(":")} if isinstance(value, str) else given


class Terminal(Tool[TerminalParameters]):
    """The tool `terminal`: a shell in the user's browser, at most one for a session."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "terminal",
        "A web terminal for the user: a shell in a private view of the workspace, in the browser. Text files written "
        "in it become staged changes when it is stopped.",
        "run",
        "environment",
        timeout=None,
        subject_parameter="action",
        errors=(
            ErrorCode.NOT_FOUND,
            ErrorCode.TIMEOUT,
        ),
    )
    parameters = TerminalParameters
    example: ClassVar[Example] = {"action": "start"}
    output = dict[str, Any]

    def approves(self, arguments: TerminalParameters, settings: Settings) -> bool:
        """Return True: a start is asked about by the tool itself, in its own words; nothing else has to be."""
        return True

    async def run(self, arguments: TerminalParameters, context: ToolContext) -> ToolOutput:
        """Perform the action, of a start and restart only if the user agrees, and return the state afterwards; a
        refusal is no error, and starts nothing. ToolFailed if it cannot be started. Waits until it can be opened.
        """
        return await _done("terminal", arguments.action, ScreenRequest(arguments.port), context)


class Desktop(Tool[DesktopParameters]):
    """The tool `desktop`: graphical programs in the user's browser, at most one desktop for a session."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "desktop",
        "A desktop for the user in the browser, with a terminal, to run graphical programs in a private view of the "
        "workspace, without network. Text files written in it become staged changes when it is stopped.",
        "run",
        "environment",
        timeout=None,
        subject_parameter="action",
        errors=(
            ErrorCode.NOT_FOUND,
            ErrorCode.TIMEOUT,
        ),
    )
    parameters = DesktopParameters
    example: ClassVar[Example] = {"action": "restart", "resolution": "1600x900"}
    forms: ClassVar[CallForms] = CallForms(
        shapes=(
            Shape(
                "`display` as X writes it, `:1`",
                _display,
                {"display": {"type": ["integer", "string"], "description": "A number, 0 to 99, or :1; default 1"}},
            ),
        )
    )
    output = dict[str, Any]

    def approves(self, arguments: DesktopParameters, settings: Settings) -> bool:
        """Return True: a start is asked about by the tool itself, in its own words; nothing else has to be."""
        return True

    async def run(self, arguments: DesktopParameters, context: ToolContext) -> ToolOutput:
        """Perform the action, of a start and restart only if the user agrees, and return the state afterwards; a
        refusal is no error, and starts nothing. ToolFailed if it cannot be started. Waits until it can be opened.
        """
        wanted = ScreenRequest(arguments.port, arguments.resolution, arguments.display)
        return await _done("desktop", arguments.action, wanted, context)


async def _done(kind: ScreenKind, action: Action, wanted: ScreenRequest, context: ToolContext) -> ToolOutput:
    screens = context.need(Screens, f"There is no {_NAMES[kind]} here.")
    # before the stop, so that a restart which is not wanted leaves what runs
    if action in ("start", "restart") and screens.shows and not await _is_wanted(kind, context):
        text = f"The user does not want the {_NAMES[kind]} now, so nothing was started. Do not ask again."
        return ToolOutput(text, _data(screens.status(kind), screens))
    said = []
    if action in ("stop", "restart"):
        said.append(_end_words(kind, await screens.stop(kind), context))
    if action in ("start", "restart"):
        context.note(context.words(f"screen.starting.{kind}"))
        status = await _start(kind, wanted, screens, context)
        said.append(_runs(status, screens))
        if screens.shows:
            opened = await screens.show(status.url)
            said.append("It was opened in the user's browser." if opened else "The user was told its address.")
    elif action == "status":
        said.append(_runs(screens.status(kind), screens))
    return ToolOutput(" ".join(said), _data(screens.status(kind), screens))


async def _start(kind: ScreenKind, wanted: ScreenRequest, screens: Screens, context: ToolContext) -> ScreenStatus:
    """Start a screen; a wrong setting is also shown to the user. ToolFailed."""
    try:
        return await screens.start(kind, wanted)
    except SettingError as problem:
        context.note(context.words(problem.key, **problem.values))
        raise ToolFailed(str(problem)) from problem


async def _is_wanted(kind: ScreenKind, context: ToolContext) -> bool:
    """Return whether the user agrees to a start, which opens the screen in the browser."""
    words = context.words
    later, now = words("screen.later"), words("screen.open")
    return await context.asker.ask(Question("question", words(f"screen.ask.{kind}"), (later, now))) == (now,)


def _runs(status: ScreenStatus, screens: Screens) -> str:
    name = _NAMES[status.kind].capitalize()
    if not status.running:
        return f"{name}: not running. {status.why}".rstrip()
    address = status.address if screens.shows else status.url
    size = f"Resolution: {status.resolution}" if status.kind == "desktop" else f"Port: {status.port}"
    state = f"running at {address} (isolation {status.isolation}, {status.seconds:.0f} s)"
    return f"{name}: {state} | URL: {address} | {size}."


def _end_words(kind: ScreenKind, stopped: Stopped, context: ToolContext) -> str:
    roots = context.view.roots
    parts = [f"The {_NAMES[kind]} was stopped." if stopped.was_running else f"The {_NAMES[kind]} did not run."]
    if stopped.staged:
        names = join_names(map(roots.relative, stopped.staged), MAX_NAMED)
        parts.append(f"Staged from what was written in it: {names}.")
    parts += [f"Not staged: {roots.relative(path)}: {why}" for path, why in stopped.left_out[:MAX_NAMED]]
    return " ".join(parts)


def _data(status: ScreenStatus, screens: Screens) -> dict[str, Any]:
    data: dict[str, Any] = {"running": status.running, "port": status.port or PORTS[status.kind]}
    if status.kind == "desktop":
        data |= {"resolution": status.resolution, "display": status.display}
    if status.running:
        url = status.address if screens.shows else status.url
        data |= {"url": url, "pid": status.pid, "seconds": round(status.seconds, 1)}
        data["isolation"] = status.isolation
    elif status.why:
        data["why"] = status.why
    return data
