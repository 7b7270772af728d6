"""Shows in the editor that the index is being built: one progress bar, and only where there are many files.

Not here: the bars of runs, and the bar itself (`progress.py`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from codeagent_lsp.server.progress import Bar
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.index.service import Status
    from codeagent_lsp.server.client import Client

MANY_FILES = 100
STEP = 5  # percent between two reports, so that there are at most twenty


class IndexProgress:
    """The listener for the status of the index."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._bar: Bar | None = None
        self._number = 0
        self._task: asyncio.Task[None] | None = None

    def observe(self, status: Status) -> None:
        """Begin, update or end the progress bar."""
        if status.state == "building" and status.total >= MANY_FILES:
            self._report(status)
        elif self._bar is not None:
            key = "index.ready" if status.state == "ready" else "index.stopped"
            self._bar.end(text(key, self._client.language, files=status.files))
            self._bar = None

    def _report(self, status: Status) -> None:
        percentage = 100 * status.done // status.total
        bar = self._bar
        if bar is None:
            if not self._client.policy.progress:
                return
            self._number += 1
            title = text("index.building", self._client.language)
            bar = self._bar = Bar(self._client.server, f"codeagent-index-{self._number}", title, cancellable=False)
            bar.percentage = 0
            self._task = asyncio.ensure_future(bar.create())
        elif percentage < (bar.percentage or 0) + STEP:
            return
        bar.percentage = percentage - percentage % STEP
        bar.report(text("index.files", self._client.language, done=status.done, total=status.total))
