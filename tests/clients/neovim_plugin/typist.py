"""A real Neovim that gets its keys one after the other, as from a keyboard, and is asked in Lua what it shows."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.neovim.support import environment
from tests.clients.neovim_plugin.support import neovim, prepare
from tests.clients.scenarios import left_behind

SECONDS = 20.0


@dataclass(frozen=True)
class Typist:
    """One editor, reached by its socket."""

    socket: Path
    workspace: Path

    def press(self, keys: str) -> None:
        """Press keys, written as in a mapping."""
        self._remote("--remote-send", keys)

    def lua(self, expression: str) -> Any:
        """The value of a Lua expression."""
        code = f"vim.json.encode({{ value = {expression} }})".replace("'", "''")
        return json.loads(self._remote("--remote-expr", f"luaeval('{code}')")).get("value")

    def wait(self, expression: str, wanted: Any) -> None:
        """Wait until a Lua expression has a value."""
        end = time.monotonic() + SECONDS
        while (found := self.lua(expression)) != wanted:
            assert time.monotonic() < end, f"{expression} is {found!r}, not {wanted!r}"
            time.sleep(0.02)

    def text(self) -> str:
        """The text of the buffer."""
        return "\n".join(self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, true)")) + "\n"

    def shown(self) -> list[str]:
        """The lines of the suggestion at the cursor; none where none is shown."""
        return list(self.lua("Shown()") or [])

    def _remote(self, *arguments: str) -> str:
        command = [neovim(), "--clean", "--headless", "--server", str(self.socket), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
        return done.stdout or done.stderr


_SHOWN = """
function Shown()
  local space = vim.api.nvim_get_namespaces()["codeagent.suggestion"]
  local marks = space and vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true }) or {}
  if not marks[1] then return {} end
  local details = marks[1][4]
  local lines = { details.virt_text and details.virt_text[1][1] or "" }
  for _, line in ipairs(details.virt_lines or {}) do lines[#lines + 1] = line[1][1] end
  return lines
end
"""


@contextmanager
def typist(folder: Path, text: str, settings: Mapping[str, Any], init: str = "", early: str = "") -> Iterator[Typist]:
    """An editor on a file with this text, once the server completes in it; `early` are keys that are pressed before.
    Nothing is left of it afterwards.
    """
    place = prepare(folder, files={"a.py": text}, script=[], settings=settings)
    with place.open("a") as more:
        more.write(f"{_SHOWN}\n{init}\n")
    socket = folder / "s"
    process = subprocess.Popen(
        [neovim(), "--clean", "--headless", "-u", str(place), "--listen", str(socket), "a.py"],
        cwd=folder / "ws",
        env=environment(folder / "home", folder / "state"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + SECONDS
        while not socket.exists():
            assert time.monotonic() < end, "Neovim did not start"
            time.sleep(0.02)
        editor = Typist(socket, folder / "ws")
        if early:
            editor.press(early)
        editor.wait('require("codeagent.inline").status().state', "ready")
        editor.wait('require("codeagent.inline").offered(0)', wanted=True)
        yield editor
        with suppress(subprocess.CalledProcessError):  # it may be gone before it has answered
            editor.press("<Esc>:qa!<CR>")
        process.wait(SECONDS)
        assert not left_behind(folder / "state"), "the server outlived the editor"
    finally:
        process.kill()
        process.wait()
