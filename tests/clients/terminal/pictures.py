"""Takes pictures of editors in a terminal by playing scenarios in the real ones, for `scripts/terminal-pictures.sh`.

Not here: drawing (`svg.py`), checking anything but that the scenario went well.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.clients.emacs import support as emacs
from tests.clients.neovim.support import call, edit, environment
from tests.clients.neovim_plugin.support import neovim, prepare
from tests.clients.terminal.screen import Screen
from tests.clients.terminal.svg import Frame, draw

SIZE = (104, 28)
MOST_BYTES = 500_000

SOURCE = '''\
"""Prices of orders."""


def net(items):
    total = 0
    for price, count in items:
        total += price * count
    return total


def count(items):
    return sum(count for _, count in items)


def shipping(items):
    if count(items) > 10:
        return 9.9
    return 4.9
'''

SCRIPT: list[dict[str, Any]] = [
    {"text": "I look at how the sums are made.", "chunks": 8, "delay": 0.12} | call("read_file", path="prices.py"),
    edit("def shipping(items):\n", "def shipping(items):\n    if not items:\n        return 0\n", path="prices.py"),
    edit("    total = 0\n", "    total = Decimal(0)\n", path="prices.py"),
    edit('orders."""\n', 'orders."""\n\nfrom decimal import Decimal\n', path="prices.py"),
    {
        "text": "Empty orders now **ship for nothing**, and `net` adds up exact decimals.",
        "chunks": 14,
        "delay": 0.12,
    },
]

TASK = "Empty orders must ship for nothing, amounts must be exact"

INIT = """
vim.o.termguicolors = true
vim.o.number = true
vim.o.laststatus = 3
vim.o.showcmd = false
vim.o.ruler = false
vim.o.fillchars = "eob: "
vim.o.statusline = " %f %m%= %{v:lua.require'codeagent'.statusline()} "
"""


BEGUN = """def net(items):
    return sum(price * count for price, count in items)


def gross(items, tax):
    return net(items) * (1 + tax)


def weight(items):
    return sum(grams * count for grams, count in items)

"""

TAKEN_BY_TAB = """
vim.keymap.set("i", "<Tab>", function()
  return require("codeagent.inline").visible() and "<Plug>(codeagent-inline-accept)" or "<Tab>"
end, { expr = true, remap = true })
"""


class Film:
    """What a screen shows, frame by frame; a frame that is the same as the one before makes that one longer."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.frames: list[Frame] = []

    def take(self, seconds: float) -> None:
        """One frame that stays for some seconds."""
        frame = self._screen.frame(seconds)
        if self.frames and replace(self.frames[-1], seconds=0) == replace(frame, seconds=0):
            frame = replace(frame, seconds=self.frames.pop().seconds + seconds)
        self.frames.append(frame)

    def typed(self, words: str) -> None:
        """Keys one after the other, some in a frame."""
        for first in range(0, len(words), 3):
            self._screen.keys("-l", words[first : first + 3])
            time.sleep(0.05)
            self.take(0.14)

    def until(self, what: str | Callable[[str], bool], *, stay: float = 1.5, seconds: float = 30) -> None:
        """Frames, five a second, until something is shown; that stays."""
        deadline = time.monotonic() + seconds
        while True:
            shown = self._screen.text()
            if what in shown if isinstance(what, str) else what(shown):
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"never shown: {what}\n{shown}")
            self.take(0.2)
            time.sleep(0.2)
        time.sleep(0.3)
        self.take(stay)


def film_neovim(folder: Path) -> str:
    """A task in the Neovim plugin: asked, reviewed hunk by hunk."""
    init = prepare(folder, files={"prices.py": SOURCE}, script=SCRIPT)
    (folder / "ws" / ".git").mkdir()
    with init.open("a") as more:
        more.write(INIT)
    variables = {**environment(folder / "home", folder / "state"), "TERM": "tmux-256color", "COLORTERM": "truecolor"}
    command = ["sh", "-c", f"cd {folder / 'ws'} && exec {neovim()} --clean -u {init} prices.py"]
    screen = Screen(folder, command, variables, size=SIZE)
    try:
        screen.wait("shipping")
        time.sleep(2.5)
        film = Film(screen)
        film.take(1)
        film.typed(f":CodeAgent run {TASK}")
        screen.keys("Enter")
        film.until("3: Discard", stay=2.5)
        film.typed("1")
        screen.keys("Enter")
        film.until("prices.py#", stay=2.5)
        for left in ("2", "1"):
            screen.keys("a")
            film.until(f"{left} change{'' if left == '1' else 's'}", stay=1.5)
        screen.keys("a")
        film.until("Every change is decided", stay=4)
        screen.keys(":qa!", "Enter")
    finally:
        screen.close()
    title = "A task in the Neovim plugin, from the command to the last accepted change"
    return draw(film.frames, columns=SIZE[0], rows=SIZE[1], title=title)


def film_neovim_inline(folder: Path) -> str:
    """Completion in the Neovim plugin by the embedded model: typed along, then taken by a key."""
    init = prepare(folder, files={"prices.py": BEGUN}, script=[], settings={"model": {"provider": "embedded"}})
    with init.open("a") as more:
        more.write(INIT + TAKEN_BY_TAB)
    variables = {**environment(folder / "home", folder / "state"), "TERM": "tmux-256color", "COLORTERM": "truecolor"}
    variables["XDG_CACHE_HOME"] = str(Path.home() / ".cache")  # where the model is
    command = ["sh", "-c", f"cd {folder / 'ws'} && exec {neovim()} --clean -u {init} prices.py"]
    screen = Screen(folder, command, variables, size=(SIZE[0], 22))
    try:
        screen.wait("grams")
        time.sleep(4)
        film = Film(screen)
        film.take(1)
        screen.keys("G", "o")
        film.typed("def total(items, tax, shipping):")
        screen.keys("Enter")
        film.until(lambda shown: "return" in shown.rpartition("shipping):")[2], stay=2, seconds=90)
        film.typed("retu")
        film.take(1.5)
        screen.keys("Tab")
        time.sleep(0.5)
        film.take(3)
        screen.keys("Escape", ":qa!", "Enter")
    finally:
        screen.close()
    title = "Completion in the Neovim plugin: shown at the cursor, typed along, taken by Tab"
    frames = [replace(frame, seconds=min(frame.seconds, 3)) for frame in film.frames]  # without waiting for the model
    return draw(frames, columns=SIZE[0], rows=22, title=title)


TOGETHER: list[dict[str, Any]] = [
    {"text": "I look at how it is computed, and by whom.", "chunks": 10, "delay": 1.2}
    | call("read_file", path="prices.py"),
    {"text": "With a parameter, then.", "chunks": 5, "delay": 0.3}
    | edit(
        "def gross(items):\n    return net(items) * 1.19",
        "def gross(items, tax=0.19):\n    return net(items) * (1 + tax)",
        path="prices.py",
    ),
    {"text": "The tax is a parameter of `gross` now.", "chunks": 6, "delay": 0.3},
    {"delay": 1.5} | edit('"""Prices of orders."""', '"""Prices of orders, with and without tax."""', path="prices.py"),
    {"text": "The docstring says it.", "chunks": 4, "delay": 0.3},
]

TAXED = '''\
"""Prices of orders."""


def net(items):
    return sum(price * count for price, count in items)


def gross(items):
    return net(items) * 1.19


# Notes
'''


def film_neovim_together(folder: Path) -> str:
    """In the Neovim plugin: words to a run at work, a queued task, and back to before both; what was typed stays."""
    settings = {"edits": {"apply": "auto"}}
    init = prepare(folder, files={"prices.py": TAXED}, script=TOGETHER, settings=settings)
    (folder / "ws" / ".git").mkdir()
    with init.open("a") as more:
        more.write(INIT)
    variables = {**environment(folder / "home", folder / "state"), "TERM": "tmux-256color", "COLORTERM": "truecolor"}
    command = ["sh", "-c", f"cd {folder / 'ws'} && exec {neovim()} --clean -u {init} prices.py"]
    screen = Screen(folder, command, variables, size=SIZE)
    try:
        screen.wait("# Notes")
        time.sleep(2.5)
        film = Film(screen)
        film.take(1)
        film.typed(":CodeAgent run move the tax out of gross")
        screen.keys("Enter")
        film.until("I look at how", stay=1)
        film.typed(":CodeAgent steer as a parameter, please")
        screen.keys("Enter")
        film.take(1)
        film.typed(":CodeAgent run mention the tax in the docstring")
        screen.keys("Enter")
        film.until("tax=0.19", stay=2, seconds=60)
        film.until("The docstring says it", stay=2.5)
        screen.keys("G", "o")
        film.typed("# Ask about the reduced rate.")
        screen.keys("Escape")
        film.take(1.5)
        film.typed(":CodeAgent back")
        screen.keys("Enter")
        film.until("move the tax", stay=2)
        _chosen(screen, film, "move the tax out")
        film.until("Changes and talk", stay=2.5)
        _chosen(screen, film, "Changes and talk")
        film.until(lambda shown: "* 1.19" in shown and "reduced rate" in shown, stay=4)
        screen.keys(":qa!", "Enter")
    finally:
        screen.close()
    title = "In the Neovim plugin: words to a run at work, a queued task, and back to before both"
    return draw(film.frames, columns=SIZE[0], rows=SIZE[1], title=title)


def _chosen(screen: Screen, film: Film, words: str) -> None:
    """Type the number of the choice that has these words."""
    line = next(line for line in reversed(screen.text().splitlines()) if words in line and line.strip()[:1].isdigit())
    film.typed(line.strip().partition(":")[0])
    screen.keys("Enter")


def shoot_emacs(folder: Path) -> str:
    """The question about a change in Emacs with eglot."""
    init = emacs.prepare(folder, "eglot", files={"prices.py": SOURCE}, script=SCRIPT[1:])
    program = emacs.find_emacs()
    if program is None:
        raise FileNotFoundError("no Emacs here")
    file = str(folder / "ws" / "prices.py")
    command = [program, "-Q", "-nw", *emacs.packages(), "-l", str(init), "--eval", "(menu-bar-mode -1)", file]
    variables = {**emacs.variables_of(folder), "TERM": "tmux-256color", "COLORTERM": "truecolor"}
    screen = Screen(folder, command, variables, size=(90, 22))
    try:
        screen.wait("shipping")
        screen.keys("M-x", "eglot", "Enter")
        screen.wait("Connected!")
        screen.keys("M-x", "codeagent-run", "Enter")
        screen.wait("Task:")
        screen.keys(TASK, "Enter")
        screen.wait("Choose an option")
        screen.keys("C-a", "C-k", "Tab")
        screen.wait("Possible completions")
        frame = screen.frame()
    finally:
        screen.close()
    return draw([frame], columns=90, rows=22, title="Emacs with eglot asks whether to apply the changes")


PICTURES: dict[str, Callable[[Path], str]] = {
    "neovim": film_neovim,
    "neovim-inline": film_neovim_inline,
    "neovim-together": film_neovim_together,
    "emacs": shoot_emacs,
}


def main(folder: Path, names: list[str]) -> None:
    """Take the pictures named, or all, into a folder; one that is too big is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or PICTURES:
        with tempfile.TemporaryDirectory() as work:
            picture = PICTURES[name](Path(work))
        if work in picture or len(picture) > MOST_BYTES:
            raise ValueError(f"{name}: {len(picture)} bytes, or a path of this machine in it")
        (folder / f"{name}.svg").write_text(picture)
        print(f"{name}.svg: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
