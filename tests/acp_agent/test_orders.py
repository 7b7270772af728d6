"""A client that sends what it likes, when it likes: nothing hangs, everything is answered, nothing is written that was
not agreed to.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, schema
from acp.helpers import text_block

from codeagent_lsp.texts import pair
from tests.acp_agent.editor import ALL, NOTHING, Editor
from tests.terminal.scripts import call

pytestmark = pytest.mark.slow

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
SEEDS = range(int(os.environ.get("CODEAGENT_TEST_ORDERS", "4")))
STEPS = 25
SECONDS = 60.0


class Restless:
    """A client that does one thing after the other by chance, often without waiting for the end of the one before."""

    def __init__(self, editor: Editor, seed: int) -> None:
        self.agreed = False
        self._editor = editor
        self._random = random.Random(seed)
        self._sessions: list[str] = []
        self._work: list[asyncio.Task[None]] = []
        editor.permit = self._decides
        editor.fill = lambda mode: self._random.choice([None, {}, {"answer": "this"}, {"answer": ["that"]}])

    async def run(self) -> None:
        """Do so many steps, then wait for the end of everything."""
        self._begin(self._new())
        for _ in range(STEPS):
            self._begin(self._random.choice(self._steps())())
            await asyncio.sleep(self._random.choice([0, 0, 0.01, 0.1, 0.4]))
        for session_id in self._sessions:  # what still works, and what waits for words
            self._begin(self._editor.agent.cancel(session_id=session_id))
        _, left = await asyncio.wait(self._work, timeout=SECONDS)
        assert not left, [task.get_name() for task in left]
        for task in self._work:
            task.result()

    def _steps(self) -> list[Callable[[], Awaitable[Any]]]:
        agent, folder = self._editor.agent, str(self._editor.workspace)
        known = self._random.choice(self._sessions or ["unknown"])
        any_of = self._random.choice([known, known, known, "unknown"])
        return [
            *[lambda: self._prompt(known)] * 4,
            *[lambda: agent.cancel(session_id=any_of)] * 2,
            self._new,
            lambda: self._prompt(any_of),
            lambda: agent.list_sessions(cwd=folder),
            lambda: agent.close_session(session_id=any_of),
            lambda: agent.load_session(cwd=folder, session_id=any_of, mcp_servers=[]),
            lambda: agent.resume_session(cwd=folder, session_id=any_of, mcp_servers=[]),
            lambda: agent.set_session_mode(session_id=any_of, mode_id=self._random.choice(["ask", "readOnly", "none"])),
            lambda: agent.set_config_option(session_id=any_of, config_id="effort", value="low"),
        ]

    def _begin(self, work: Awaitable[Any]) -> None:
        name = f"{len(self._work)}: {getattr(work, '__qualname__', work)}"
        self._work.append(asyncio.create_task(self._refusable(work), name=name))

    async def _refusable(self, work: Awaitable[Any]) -> None:
        """What is refused is answered as well."""
        with contextlib.suppress(RequestError):
            await work

    async def _new(self) -> None:
        if len(self._sessions) < 3:
            self._sessions.append(await self._editor.new())

    async def _prompt(self, session_id: str) -> None:
        words = self._random.choice(["Fix the sign in calc.py", "/apply", "/discard", "/undo", "/ask why?", "word"])
        self.agreed = self.agreed or words == "/apply"
        await self._editor.agent.prompt(session_id=session_id, prompt=[text_block(words)])

    async def _decides(self, request: schema.RequestPermissionRequest) -> str | None:
        await asyncio.sleep(self._random.choice([0, 0.05, 0.3]))
        chosen = self._random.choice([None, *(option.name for option in request.options)])
        self.agreed = self.agreed or chosen in pair("choice.apply")
        return chosen


@pytest.mark.parametrize("seed", SEEDS)
async def test_any_order_is_answered(tmp_path: Path, seed: int) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "calc.py").write_text(CALC)
    async with Editor(workspace, tmp_path / "state", SCRIPT, ALL if seed % 2 else NOTHING) as editor:
        restless = Restless(editor, seed)
        await restless.run()
        editor.permit = lambda request: None
        editor.fill = lambda mode: None
        last = await editor.new()
        work = asyncio.ensure_future(editor.prompt(last, "Read calc.py"))
        await editor.until(lambda: work.done() or editor.permissions)
        await editor.agent.cancel(session_id=last)
        assert (await work).stop_reason in ("end_turn", "cancelled")
    assert restless.agreed or (workspace / "calc.py").read_text() == CALC
