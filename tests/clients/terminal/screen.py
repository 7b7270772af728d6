"""A real terminal in tmux: keys in, what stands on the screen out. Not here: what runs in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.clients.terminal.svg import Frame


class Screen:
    """One tmux server of its own, with one program in it; `size` is columns and rows."""

    def __init__(
        self, folder: Path, command: Sequence[str], variables: Mapping[str, str], *, size: tuple[int, int] = (100, 40)
    ) -> None:
        self._tmux = ["tmux", "-u", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        columns, rows = size
        started = ["new-session", "-d", "-x", str(columns), "-y", str(rows), *command]
        subprocess.run([*self._tmux, *started], env=dict(variables), check=True, timeout=10)

    def keys(self, *keys: str) -> None:
        """Press keys by their names in tmux; what is no name is typed."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True, timeout=10)

    def text(self) -> str:
        """What stands on the screen, without colours."""
        return self._ask("capture-pane", "-p")

    def frame(self, seconds: float = 1.0) -> Frame:
        """What stands on the screen, with colours and the cursor."""
        column, row, visible = self._ask("display", "-p", "#{cursor_x} #{cursor_y} #{cursor_flag}").split()
        return Frame(
            self._ask("capture-pane", "-p", "-e", "-N"), seconds, (int(column), int(row)) if visible == "1" else None
        )

    def wait(self, what: str | Callable[[str], bool], seconds: float = 60.0) -> str:
        """The screen once it shows `what`."""
        deadline = time.monotonic() + seconds
        while True:
            shown = self.text()
            if what in shown if isinstance(what, str) else what(shown):
                return shown
            assert time.monotonic() < deadline, f"never shown: {what}\n{shown}"
            time.sleep(0.05)

    def close(self) -> None:
        """End tmux and what runs in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=10, check=False)

    def _ask(self, *command: str) -> str:
        done = subprocess.run([*self._tmux, *command], capture_output=True, text=True, timeout=10, check=False)
        return done.stdout
