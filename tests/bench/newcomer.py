"""The first accepted edit of somebody who has nothing: a real editor, no server, no model; actions and seconds.

    CODEAGENT_VSCODE_RIG=FOLDER python -m tests.bench.newcomer vscode [--built-in] [--pictures FOLDER]
    python -m tests.bench.newcomer neovim [--built-in] [--pictures FOLDER]

The extension or the plugin is there as its README has it, and a hosted model with a key, imitated on loopback; or the
built-in model, whose weights this machine has.
Actions are presses of the mouse, commands, and choices; typing is told apart. Seconds are the machine's: what a person
thinks and types is not in them, nor a download: the wheels of the server and of its dependencies lie ready, and the
weights.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from codeagent_lsp.llm.weights import models_dir
from tests.clients.neovim.support import environment as neovim_environment
from tests.clients.neovim.support import find_neovim
from tests.clients.neovim_plugin.support import PLUGIN, has_tmux, neovim
from tests.clients.scenarios import left_behind
from tests.clients.terminal.screen import Screen
from tests.clients.vscode import support
from tests.clients.vscode.support import EXTENSION, Editor, Window, install, missing, package, window
from tests.clients.vscode.wheels import own_wheel, wheels_of_dependencies
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import Said, serving_aside

FILE = "calc.py"
CODE = "def add(a, b):\n    return a - b\n"
EDIT = ("edit_file", {"path": "calc.py", "old_string": "a - b", "new_string": "a + b"})
KEY = "a-key-of-mine"
TASK = "add() subtracts. Mend it."
KNOWN_WINDOW = 128_000
"""What is known of the models of a hosted provider; of a server on this machine only itself could say."""
PATIENCE = 120_000
"""Milliseconds for what a slow machine needs."""


class Newcomer:
    """Somebody who acts and types, counted; `picture` is called with the number of each part that is done."""

    def __init__(self, picture: Callable[[int], object]) -> None:
        self.actions: list[str] = []
        self.typed: list[str] = []
        self.seconds: list[tuple[str, float]] = []
        self._picture = picture
        self._last = time.monotonic()

    def done(self, what: str) -> None:
        """Note that a part is done."""
        self.seconds.append((what, time.monotonic() - self._last))
        self._picture(len(self.seconds))
        self._last = time.monotonic()

    def told(self) -> str:
        """Return the table of what was done."""
        rows = [f"| {what} | {seconds:.1f} |" for what, seconds in self.seconds]
        together = sum(seconds for _, seconds in self.seconds)
        rows += [f"| together: {len(self.actions)} actions, {len(self.typed)} fields | {together:.1f} |"]
        return "\n".join(["| | seconds |", "|---|---|", *rows])


class Clicking(Newcomer):
    """A newcomer in VS Code."""

    def click(self, what: Any) -> None:
        """Press something, once it is there."""
        what.click(timeout=PATIENCE)
        self.actions.append(str(what))

    def type(self, field: Any, words: str) -> None:
        """Write into a field."""
        field.fill(words, timeout=PATIENCE)
        self.typed.append(words)


class Pressing(Newcomer):
    """A newcomer in Neovim."""

    def __init__(self, screen: Screen, picture: Callable[[int], object]) -> None:
        super().__init__(picture)
        self._screen = screen

    def wait(self, what: str | Callable[[str], bool]) -> None:
        """Wait until something is on the screen."""
        self._screen.wait(what, seconds=PATIENCE / 1000)

    def enter(self, words: str) -> None:
        """Give a command, or choose."""
        self._screen.keys(*([words] if words else []), "Enter")
        self.actions.append(words)

    def type(self, words: str) -> None:
        """Write into a field."""
        self._screen.keys(words, "Enter")
        self.typed.append(words)


def edit_in_vscode(opened: Window, url: str | None, somebody: Clicking) -> None:
    """Do what leads from nothing to an accepted edit, with the model at an address or the built-in one."""
    page = opened.page
    somebody.click(page.locator(".action-label[aria-label^='CodeAgent']").first)
    frame = opened.transcript()
    server = frame.locator(".server")
    somebody.click(server.locator("button").filter(has_text="Install it"))
    server.wait_for(state="hidden", timeout=PATIENCE)
    somebody.done("the server is installed and runs")
    somebody.click(frame.locator(".card").filter(has_text="Another server" if url else "Built in"))
    if url:
        somebody.type(frame.locator("#setup-url"), f"{url}/v1")
        somebody.type(frame.locator("#setup-key"), KEY)
    somebody.click(frame.locator("button").filter(has_text="Save and test"))
    frame.locator(".outcome.ok").wait_for(timeout=PATIENCE)
    somebody.done("the model is set up and answers")
    somebody.click(frame.locator("button").filter(has_text="Begin"))
    area = frame.locator("#composer textarea")
    somebody.type(area, TASK)
    area.press("Enter")
    frame.locator("button").filter(has_text="Apply").first.wait_for(timeout=PATIENCE)
    somebody.done("the task is done and waits")
    somebody.click(frame.locator("button").filter(has_text="Apply").first)
    opened.page.locator(".tab[aria-label^='calc.py']").first.wait_for(timeout=PATIENCE)
    shown = "() => document.querySelector('.view-lines')?.innerText.replaceAll('\\u00a0', ' ').includes('a + b')"
    page.wait_for_function(shown, timeout=PATIENCE)
    somebody.done("the edit is in the editor")


def edit_in_neovim(somebody: Pressing, url: str | None) -> None:
    """Do what leads from nothing to an accepted edit, with the model at an address or the built-in one."""
    somebody.wait(":CodeAgent install")
    somebody.enter(f":CodeAgent run {TASK}")
    somebody.wait("1: Install it now")
    somebody.enter("1")
    somebody.wait("Which model shall the agent use?")
    somebody.wait("Number, or q to end")
    somebody.done("the server is installed")
    if url:
        somebody.enter("7")
        somebody.wait("Its address")
        somebody.type(f"{url}/v1")
        somebody.wait("Key (not shown)")
        somebody.type(KEY)
        somebody.wait("Model: [m]")
        somebody.enter("")
    else:
        somebody.enter("8")
    somebody.wait("CodeAgent")
    somebody.wait(lambda shown: "The model" not in shown)
    somebody.done("the model is set up and answers, the server runs")
    somebody.wait("2: Apply")
    somebody.done("the task is done and waits")
    somebody.enter("2")
    somebody.wait(lambda shown: "return a + b" in shown and "return a - b" not in shown)
    somebody.done("the edit is in the buffer")


def without_server(folder: Path, *, built_in: bool) -> dict[str, str]:
    """Return variables with no server on the PATH, a Python there, and in a folder the wheels that a server needs; the
    weights of this machine where the model is the `built_in` one, else no model.
    """
    programs, links = folder / "programs", folder / "links"
    for made in (programs, links):
        made.mkdir()
    wheels_of_dependencies(links, "local" if built_in else "")
    (programs / "python3").symlink_to(str(getattr(sys, "_base_executable", sys.executable)))
    plain = [each for each in os.environ["PATH"].split(":") if not (Path(each) / "codeagent-lsp").exists()]
    return {
        "PATH": ":".join([str(programs), *plain]),
        "PYTHONPATH": "",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "CODEAGENT_MODELS_DIR": str(models_dir() if built_in else folder / "models"),
    }


@contextmanager
def bare_vscode(folder: Path, *, built_in: bool) -> Iterator[Window]:
    """A VS Code with the extension alone: no server on the PATH, no setting, wheels of what it needs in a folder."""
    source = folder / "source"
    shutil.copytree(EXTENSION, source, ignore=shutil.ignore_patterns("node_modules", "dist", "dist-test", "*.vsix"))
    (source / "node_modules").symlink_to(EXTENSION / "node_modules")
    own_wheel(source / "server")
    environment = without_server(folder, built_in=built_in)
    unset = ("server.command", "model.provider", "model.name", "foreign.watch")
    settings: dict[str, Any] = {
        **{f"codeagent.{name}": default for name, default in zip(unset, ([], "auto", "", "auto"), strict=True)},
        "workbench.secondarySideBar.defaultVisibility": "visible",
    }
    if not built_in:
        settings["codeagent.model.contextWindow"] = KNOWN_WINDOW
    with ExitStack() as stack:
        editor = stack.enter_context(Editor(folder / "editor", install(package(folder, source), folder / "extensions")))
        options = {"files": {FILE: CODE}, "script": [], "settings": settings, "environment": environment}
        yield stack.enter_context(window(folder, editor, **options))  # type: ignore[arg-type]


@contextmanager
def bare_neovim(folder: Path, *, built_in: bool) -> Iterator[Screen]:
    """A Neovim with the plugin as a repository of its own, the README's lines, and the server on an index alone."""
    shutil.copytree(PLUGIN, folder / "codeagent-lsp" / "editors" / "neovim")
    environment = without_server(folder, built_in=built_in)
    own_wheel(folder / "links")
    for made in ("home/config/nvim", "ws/.git"):
        (folder / made).mkdir(parents=True)
    (by_hand, *_) = re.findall(r"```lua\n(.*?)```", (PLUGIN / "README.md").read_text(), re.DOTALL)
    model = f"{{ model = {{ contextWindow = {KNOWN_WINDOW} }} }}"
    known = f'vim.lsp.config("codeagent", {{ settings = {{ codeagent = {model} }} }})\n'
    lines = by_hand.replace("/path/to", str(folder)) + ("" if built_in else known)
    (folder / "home" / "config" / "nvim" / "init.lua").write_text(lines)
    (folder / "ws" / FILE).write_text(CODE)
    variables = {**neovim_environment(folder / "home", folder / "state"), **environment, "TERM": "xterm-256color"}
    variables.pop("VIRTUAL_ENV", None)
    screen = Screen(folder, ["sh", "-c", f"cd {folder / 'ws'} && exec {neovim()} -n {FILE}"], variables)
    try:
        yield screen
        screen.keys(":qa!", "Enter")
        assert not left_behind(folder / "state"), "the server outlived the editor"
    finally:
        screen.close()


def in_vscode(folder: Path, url: str | None, pictures: Path | None) -> Newcomer:
    """Measure in VS Code. SystemExit where it is not there."""
    if lacks := missing():
        sys.exit(lacks)
    support.SECONDS = max(support.SECONDS, 60)
    with bare_vscode(folder, built_in=url is None) as opened:

        def picture(number: int) -> None:
            if pictures is not None:
                opened.page.screenshot(path=pictures / f"{number}.png")

        somebody = Clicking(picture)
        edit_in_vscode(opened, url, somebody)
    return somebody


def in_neovim(folder: Path, url: str | None, pictures: Path | None) -> Newcomer:
    """Measure in Neovim. SystemExit where it is not there."""
    if find_neovim() is None or not has_tmux():
        sys.exit("There is no Neovim 0.11, which scripts/get-neovim.sh gets, or no tmux.")
    with bare_neovim(folder, built_in=url is None) as screen:

        def picture(number: int) -> None:
            if pictures is not None:
                (pictures / f"{number}.txt").write_text(screen.text())

        somebody = Pressing(screen, picture)
        edit_in_neovim(somebody, url)
    return somebody


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("editor", choices=("vscode", "neovim"))
    parser.add_argument("--built-in", action="store_true")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    measure, first = (in_vscode, []) if options.editor == "vscode" else (in_neovim, [Said("Rust")])
    fake = FakeChat(*first, Said(calls=(EDIT,)), Said("It adds now."), style="plain")
    with tempfile.TemporaryDirectory() as folder, serving_aside(fake) as url:
        somebody = measure(Path(folder), None if options.built_in else url, options.pictures)
    print(somebody.told())
    return 0


if __name__ == "__main__":
    sys.exit(main())
