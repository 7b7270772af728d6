"""The test results on the user's own text, for one run: taken once, in the background, beside what the model does.

They run in a private view of their own, so that no command of the run waits for them, and where commands are isolated
and may run without asking; elsewhere nothing is known of before. Not here: comparing (`tools/testing/baseline.py`),
what follows from it (`../finish.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import AgentError, CodeAgentError
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.tools.testing.baseline import Compared, Results, compared
from codeagent_lsp.tools.testing.reports import TestReport, report_from

RUN_SECONDS = 120.0
"""How long the tests of one file may take, in the background."""
WAIT_SECONDS = 20.0
"""How long a comparison waits for results that are not there yet."""
ALL = ""
"""The name that stands for all tests."""

Execute = Callable[[ToolCall], Awaitable[ToolResult]]


class Baselines:
    """Implements `Baseline` for one run. `opened` returns what executes a call on the user's own text, None where that
    cannot or must not be done unasked; `close` removes the private view; `touched` returns whether the run has changed
    something, applied or staged.
    """

    def __init__(
        self,
        opened: Callable[[], Awaitable[Execute | None]],
        close: Callable[[], Coroutine[Any, Any, None]],
        touched: Callable[[], bool],
    ) -> None:
        self._opened = opened
        self._close = close
        self._touched = touched
        self._results = Results()
        self._asked: set[str] = set()
        self._waiting: deque[str] = deque()
        self._work: asyncio.Task[None] | None = None
        self._execute: Execute | None = None
        self._beside: Callable[[Sequence[str]], Sequence[str]] | None = None
        self._followed: set[str] = set()
        self._tasks = BackgroundTasks()
        self._ending = BackgroundTasks()

    @property
    def changed(self) -> bool:
        """Return whether the run has changed something: results are then not those of the user's own text."""
        return self._touched()

    def begin(self, names: Iterable[str]) -> None:
        """Begin to run the tests of these files (relative paths, `ALL` for all tests) that have not run yet."""
        new = [name for name in dict.fromkeys(names) if name not in self._asked]
        self._asked.update(new)
        self._waiting.extend(new)
        if self._waiting and (self._work is None or self._work.done()):
            self._work = self._tasks.start(self._run_all())

    def follow(self, beside: Callable[[Sequence[str]], Sequence[str]]) -> None:
        """Begin to take the results for each file that changes from now on: `beside` returns the tests of files, and
        blocks.
        """
        self._beside = beside

    def changing(self, names: Iterable[str]) -> None:
        """Take the results for these files, which the run has changed, if they are followed; returns at once."""
        new = [name for name in names if name not in self._followed]
        self._followed.update(new)
        if new and self._beside is not None:
            self._tasks.start(self._follow(self._beside, new))

    def record(self, reports: Sequence[TestReport], *, whole: bool) -> None:
        """Keep the results of a run on the user's own text."""
        self._results = self._results.with_reports(reports, whole=whole)
        if whole:
            self._asked |= self._results.files

    async def compare(self, reports: Sequence[TestReport]) -> Compared:
        """Return how these results differ from those on the user's own text; failures of which nothing is known have
        the tests of their files run there, for which this waits 20 s at most.
        """
        differs = compared(reports, self._results)
        if differs.unknown:
            self.begin(case.file or ALL for case in differs.unknown)
        if differs.unknown and self._work is not None:
            await asyncio.wait((self._work,), timeout=WAIT_SECONDS)
            differs = compared(reports, self._results)
        return differs

    def close(self) -> None:
        """End what runs, and remove the private view in the background."""
        self._tasks.cancel()
        self._waiting.clear()
        if self._execute is not None:
            self._execute = None
            self._ending.start(self._close())

    async def _follow(self, beside: Callable[[Sequence[str]], Sequence[str]], names: Sequence[str]) -> None:
        self.begin(await asyncio.to_thread(beside, names))

    async def _run_all(self) -> None:
        if self._execute is None:
            with suppress(CodeAgentError):
                self._execute = await self._opened()
        while self._waiting and self._execute is not None:
            name = self._waiting.popleft()
            with suppress(TimeoutError, AgentError):
                async with asyncio.timeout(RUN_SECONDS):
                    await self._run(self._execute, name)
        self._waiting.clear()

    async def _run(self, execute: Execute, name: str) -> None:
        result = await execute(ToolCall("run_tests", {"path": name} if name else {}, f"baseline_{name}"))
        if result.ok:
            self.record([report_from(each) for each in result.data["reports"]], whole=True)
        elif result.status == "retry":  # there is no such file: its tests are all new
            self._results = Results(self._results.cases, self._results.files | {name})
