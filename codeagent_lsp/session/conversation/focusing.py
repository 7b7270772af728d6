"""Tracks a session's focused files: those that the model has in its context in full, with their current text.

A file counts as seen only if the text in the conversation is all of its current text. Not here: which files fit
(`agent/context/focus.py`), their place in the prompt (`agent/context/compaction.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from codeagent_lsp.agent.context.focus import FocusedFiles
from codeagent_lsp.agent.context.history import READING, UNCHANGED, WHOLE, WORTH_REFERRING
from codeagent_lsp.errors import AgentError
from codeagent_lsp.messages import Message
from codeagent_lsp.session.session import Session
from codeagent_lsp.tools.files.read_tools import LARGE_FILE_LINES, render
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.lines import split_lines

_GIVEN = re.compile(rf"^{WHOLE} (.+), as it is now:$", re.MULTILINE)


class Focusing:
    """Updates the session's focused files during one run. `limit` is in characters; `hide` masks the secrets in a text;
    `edited` returns the absolute paths of the files that are being changed.
    """

    def __init__(
        self,
        session: Session,
        run_id: str,
        view: FileView,
        limit: int,
        hide: Callable[[str], str],
        edited: Callable[[], Iterable[str]],
    ) -> None:
        self._session = session
        self._run_id = run_id
        self._view = view
        self._limit = limit
        self._hide = hide
        self._edited = edited

    async def given(self, text: str) -> None:
        """Update the focus with the whole files in a text that was put into the conversation."""
        await self._look([(name, text) for name in _GIVEN.findall(text)])

    async def after(self, messages: Sequence[Message]) -> None:
        """Update the focus with the files read by the model's last calls, with whose results `messages` end."""
        results: dict[str, str] = {}
        for message in reversed(messages):
            if message.role == "assistant":
                await self._look([(path, results.get(call_id, "")) for call_id, path in _read(message)])
                return
            results[message.tool_call_id] = message.content

    async def refresh(self) -> None:
        """Reload the texts of the files in focus."""
        paths = self._session.context.focused.paths
        texts = await asyncio.to_thread(lambda: {path: self._text(path)[1] for path in paths})
        self._focus(replace(self._session.context.focused, limit=self._limit).refreshed(texts))

    def stands(self, messages: Sequence[Message], name: str, text: str) -> bool:
        """Return whether the conversation has this text of the file `name`, and the model has seen no other one since.
        A text of less than 400 characters does not count.
        """
        seen = self._session.context.focused.get(name)
        if len(text) < WORTH_REFERRING or (seen is not None and seen.text not in ("", text)):
            return False
        return any(text in message.content for message in messages)

    async def _look(self, shown: Sequence[tuple[str, str]]) -> None:
        """Update the focus with pairs of a file's name and the text that the model got; mark the files being edited."""
        now = await asyncio.to_thread(lambda: [self._text(name) for name, _ in shown])
        focused = replace(self._session.context.focused, limit=self._limit)
        for (_, text), (name, current) in zip(shown, now, strict=True):
            if current is not None and current in text:
                focused = focused.seen(name, current)
            elif text.startswith(UNCHANGED):
                focused = focused.used(name)
        roots = self._view.roots
        self._focus(focused.editing(map(roots.relative, self._edited())))

    def _focus(self, focused: FocusedFiles) -> None:
        self._session.focus(self._run_id, focused)

    def _text(self, name: str) -> tuple[str, str | None]:
        """Return a file's path in the workspace and its text as `read_file` shows it; None as the text if the file is
        large, cannot be read, or is secret, so that the user would be asked first.
        """
        roots = self._view.roots
        try:
            path = roots.resolve(name)
            if roots.is_secret(path):
                return name, None
            file = self._view.read(path)
        except AgentError:
            return name, None
        if len(split_lines(file.text)) > LARGE_FILE_LINES:
            return roots.relative(path), None
        return roots.relative(path), self._hide(render(file))


def _read(message: Message) -> list[tuple[str, str]]:
    """Return the call id and the path of every `read_file` call in a message."""
    calls = (call for call in message.tool_calls if call.name == READING)
    return [(call.id, str(call.arguments["path"])) for call in calls if "path" in call.arguments]
