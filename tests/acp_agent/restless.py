"""A client that sends what it likes, when it likes, and answers by chance, by nonsense or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from acp import RequestError, schema
from acp.helpers import resource_link_block, text_block

from codeagent_lsp.texts import pair
from tests.acp_agent.editor import ALL, NOTHING, Editor
from tests.terminal.scripts import call

CALC = "def add(a, b):\n    return a - b\n"
SCRIPT: list[dict[str, Any]] = [
    call("read_file", path="calc.py"),
    call("edit_file", path="calc.py", old_str="a - b", new_str="a + b"),
    {"text": "It was the sign.", "chunks": 5, "delay": 0.02},
    call("AskUser", questions=[{"text": "Which one?", "options": ["this", "that"]}], format="multi"),
    {"text": "As you like."},
    call("AskUser", questions=[{"text": "Which name?"}], format="single"),
    {"text": "A good one.", "chunks": 5, "delay": 0.2},
    call("run_cmd", command="echo hello; sleep 0.2; echo there"),
    call("write_file", path="new.py", content="x = 1\n"),
    {"text": "Ready.", "chunks": 3},
    {"loop": True},
]
STEPS = 25
MOST_SESSIONS = 3
_WORDS = ("Fix the sign in calc.py", "/plan Fix the sign in calc.py", "/discard", "/undo", "/ask why?", "word", "")
_AGREEING = ("/apply", "/apply", "Fix the sign in calc.py")


class Restless:
    """A client that does one thing after the other by chance, often without waiting for the end of the one before.
    Every other one agrees to no change, ever.
    """

    def __init__(self, editor: Editor, seed: int) -> None:
        self._editor = editor
        self._random = random.Random(seed)
        self._agrees = self._random.random() < 0.5
        self._sessions: list[str] = []
        self._work: list[asyncio.Task[None]] = []
        editor.permit = self._decides
        editor.fill = self._fills_in

    async def run(self) -> None:
        """Do so many steps, then wait for the end of everything."""
        self._begin(self._new())
        for _ in range(STEPS):
            self._begin(self._random.choice(self._steps())())
            await asyncio.sleep(self._random.choice([0, 0, 0.01, 0.1, 0.4]))
        for session_id in self._sessions:  # what still works, and what waits for words
            self._begin(self._editor.agent.cancel(session_id=session_id))
        _, left = await asyncio.wait(self._work, timeout=2 * self._editor.seconds)
        assert not left, [task.get_name() for task in left]
        for task in self._work:
            task.result()

    async def leave(self) -> None:
        """Show that the agent still works, and that nothing was written against the user's will."""
        editor = self._editor
        editor.permit = lambda request: None
        editor.fill = lambda mode: None
        last = await editor.new()
        work = asyncio.ensure_future(editor.prompt(last, "Read calc.py"))
        await editor.until(lambda: work.done() or editor.permissions)
        await editor.agent.cancel(session_id=last)
        assert (await work).stop_reason in ("end_turn", "cancelled")
        assert self._agrees or (editor.workspace / "calc.py").read_text() == CALC

    def _steps(self) -> list[Callable[[], Awaitable[Any]]]:
        agent, folder = self._editor.agent, str(self._editor.workspace)
        known = self._random.choice(self._sessions or ["unknown"])
        any_of = self._random.choice([known, known, known, "unknown"])
        modes = ["ask", "readOnly", "none", *(["acceptEdits", "bypass"] if self._agrees else [])]
        return [
            *[lambda: self._prompt(known)] * 5,
            *[lambda: agent.cancel(session_id=any_of)] * 2,
            self._new,
            self._types,
            lambda: self._prompt(any_of),
            lambda: agent.list_sessions(cwd=self._random.choice([folder, None])),
            lambda: agent.close_session(session_id=any_of),
            lambda: agent.load_session(cwd=folder, session_id=any_of, mcp_servers=[]),
            lambda: agent.resume_session(cwd=folder, session_id=any_of, mcp_servers=[]),
            lambda: self._fork(any_of),
            lambda: agent.set_session_mode(session_id=any_of, mode_id=self._random.choice(modes)),
            lambda: agent.set_config_option(session_id=any_of, config_id="effort", value="low"),
            lambda: agent.authenticate(self._random.choice(["setup", "unknown"])),
        ]

    def _begin(self, work: Awaitable[Any]) -> None:
        name = f"{len(self._work)}: {getattr(work, '__qualname__', work)}"
        self._work.append(asyncio.create_task(self._refusable(work), name=name))

    async def _refusable(self, work: Awaitable[Any]) -> None:
        """What is refused is answered as well."""
        with contextlib.suppress(RequestError):
            await work

    async def _new(self) -> None:
        if len(self._sessions) < MOST_SESSIONS:
            self._sessions.append(await self._editor.new())

    async def _fork(self, session_id: str) -> None:
        if len(self._sessions) < MOST_SESSIONS:
            folder = str(self._editor.workspace)
            forked = await self._editor.agent.fork_session(cwd=folder, session_id=session_id, mcp_servers=[])
            self._sessions.append(forked.session_id)

    async def _types(self) -> None:
        """Change the unsaved text, or save it as it was."""
        file = self._editor.workspace / "calc.py"
        if self._random.random() < 0.7:
            self._editor.buffers[file] = f"{CALC}# {self._random.randrange(1000)}\n"
        else:
            self._editor.buffers.pop(file, None)

    async def _prompt(self, session_id: str) -> None:
        words = self._random.choice((*_WORDS, *(_AGREEING if self._agrees else ())))
        content: list[Any] = [text_block(words)]
        if self._random.random() < 0.2:
            content.append(resource_link_block("calc.py", (self._editor.workspace / "calc.py").as_uri()))
        await self._editor.agent.prompt(session_id=session_id, prompt=content)

    async def _decides(self, request: schema.RequestPermissionRequest) -> str | None:
        await asyncio.sleep(self._random.choice([0, 0.05, 0.3]))
        names = [option.name for option in request.options]
        if not self._agrees:
            names = [name for name in names if name not in pair("choice.apply")]
        chosen = self._random.choice([None, RequestError.internal_error(), *names])
        if isinstance(chosen, RequestError):
            raise chosen
        return chosen

    def _fills_in(self, mode: Any) -> dict[str, Any] | None:
        filled: list[Any] = [
            None,
            {},
            {"answer": "this"},
            {"answer": ["that"]},
            {"other": "mine"},
            {"answer": "none such"},
        ]
        return self._random.choice(filled)  # type: ignore[no-any-return]


def offers(seed: int) -> schema.ClientCapabilities:
    """What such a client can do: all, or nothing."""
    return ALL if seed % 2 else NOTHING


def workspace_in(folder: Path) -> Path:
    """Make the workspace of such a client."""
    workspace = folder / "work"
    workspace.mkdir(parents=True)
    (workspace / "calc.py").write_text(CALC)
    return workspace
