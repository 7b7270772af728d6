"""Waits until changes that were sent to the client are in their texts.

Every version since the request counts: what is typed or formatted right behind a change may hide it in the next one.
Not here: the texts (`current_texts.py`), what is made of it (`outcomes.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from codeagent_lsp.server.current_texts import CurrentTexts
from codeagent_lsp.workspace.changes.changeset import FileChange
from codeagent_lsp.workspace.text.document import Document

POLL_SECONDS = 0.02  # the disk tells nothing by itself


class Arrivals:
    """A context manager that watches for `changes` in the client's texts; `missing` are those not seen yet.
    `is_out(change, text)` is a quick test: True only if `text` has nothing of the change, while False says nothing.
    """

    def __init__(
        self, texts: CurrentTexts, changes: Sequence[FileChange], is_out: Callable[[FileChange, str | None], bool]
    ) -> None:
        self.missing = list(changes)
        self._is_out = is_out
        self._texts = texts
        self._versions: list[tuple[str, str]] = []
        self._heard: dict[str, list[str]] = {}
        self._judged: dict[str, str | None] = {}
        self._told = asyncio.Event()

    def __enter__(self) -> Arrivals:
        """Begin to listen."""
        # Before the edit is sent: some clients tell the new text before they answer.
        self._end = self._texts.subscribe(self._note)
        for change in self.missing:
            now = self._texts.current(change.path).text
            self._heard[self._texts.uri(change.path)] = [] if now is None else [now]
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        self.look()
        self._end()

    async def until(self, enough: Callable[[], bool], seconds: float) -> None:
        """Wait until all changes have come, or it is `enough`; no longer than `seconds`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            self.look()
            left = deadline - loop.time()
            if not self.missing or enough() or left <= 0:
                return
            try:
                # Buffers tell of themselves; the short limit is for files that are not open.
                async with asyncio.timeout(min(left, POLL_SECONDS)):
                    await self._told.wait()
            except TimeoutError:
                continue
            self._told.clear()

    def heard(self, path: str) -> Sequence[str]:
        """Return the texts of a file since the beginning, the first of which is the one that was there then, with all
        steps between them.
        """
        return self._heard.get(self._texts.uri(path), ())

    def look(self) -> None:
        """Drop from `missing` what is in one of the texts that have been there since the last look."""
        versions, self._versions = self._versions, []
        self.missing = [change for change in self.missing if not self._has_come(change, versions)]

    def _has_come(self, change: FileChange, versions: Sequence[tuple[str, str]]) -> bool:
        if change.kind == "edit":
            uri = self._texts.uri(change.path)
            texts = [text for other, text in versions if other == uri]
            if any(not self._is_out(change, text) and self._texts.has(change, text) for text in texts):
                return True
            now = self._texts.current(change.path).text
            if self._judged.get(change.path, ...) == now or self._is_out(change, now):
                return False  # comparing long texts takes longer than the pause between two looks
            self._judged[change.path] = now
        return self._texts.holds(change)

    def _note(self, uri: str, document: Document | None) -> None:
        if document is not None:
            self._versions.append((document.uri, document.text))
            self._heard.setdefault(document.uri, []).extend((*self._texts.steps(), document.text))
        self._told.set()
