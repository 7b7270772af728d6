"""Output of a run as one JSON event per line, for programs; messages go to stderr.

There is no user to ask: without `accept_all` every prompt is denied.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from codeagent_lsp.terminal.edits import FileWrite
from codeagent_lsp.terminal.questions import accepted
from codeagent_lsp.terminal.safe import visible
from codeagent_lsp.terminal.summary import Summary, account
from codeagent_lsp.texts import text


class JsonLines:
    """The `Face` for programs. `folder` is that of the run, None for the current one."""

    def __init__(
        self, language: str, folder: Path | None = None, *, accept_all: bool = False, out: TextIO | None = None
    ) -> None:
        self.summary = Summary()
        self._folder = folder or Path.cwd()
        self._language = language
        self._accept_all = accept_all
        self._out = out or sys.stdout

    def open(self, title: str, place: str) -> None:
        """Do nothing: `response_start` is the first line."""

    def close(self, note: str = "", written: Sequence[FileWrite] = ()) -> None:
        """Print `note` if the run had no proper end, and how to get what is staged; the rest is in the events."""
        if note:
            self.message(note)
        if self.summary.staged:
            for line in account(self.summary, written, self._folder, self._language):
                self.message(line.plain)

    def event(self, event: Mapping[str, Any]) -> None:
        """See `client.Face`."""
        self.summary = self.summary.after(event)
        print(json.dumps(event), file=self._out, flush=True)

    def message(self, words: str) -> None:
        """See `client.Face`."""
        print(visible(words), file=sys.stderr, flush=True)

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """See `client.Face`."""
        if self._accept_all:
            return accepted(choices)
        self._nobody()
        return None

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """See `client.Face`."""
        self._nobody()
        return None

    def _nobody(self) -> None:
        self.summary = self.summary.unasked()
        self.message(text("terminal.unasked", self._language))
