"""The first accepted edit of somebody who has nothing: a real VS Code, no server, no model; clicks and seconds.

    CODEAGENT_VSCODE_RIG=FOLDER python -m tests.bench.newcomer [--pictures FOLDER]

The packaged extension is there, and a hosted model with a key, imitated on loopback. Clicks are presses of the mouse;
typing is told apart. Seconds are the machine's: what a person thinks and types is not in them, nor a download, as the
wheels of the server's dependencies lie ready.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.clients.vscode import support
from tests.clients.vscode.support import EXTENSION, Editor, Window, install, missing, package, window
from tests.clients.vscode.wheels import own_wheel, wheels_of_dependencies
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import Said, serving_aside

CODE = "def add(a, b):\n    return a - b\n"
EDIT = ("edit_file", {"path": "calc.py", "old_string": "a - b", "new_string": "a + b"})
PATIENCE = 120_000
"""Milliseconds for what a slow machine needs."""


class Newcomer:
    """Somebody who clicks and types, counted; `say` is called with each thing done."""

    def __init__(self, opened: Window, pictures: Path | None) -> None:
        self.clicks = 0
        self.typed: list[str] = []
        self.seconds: list[tuple[str, float]] = []
        self._opened = opened
        self._pictures = pictures
        self._begun = self._last = time.monotonic()

    def click(self, what: Any) -> None:
        """Press something, once it is there."""
        what.click(timeout=PATIENCE)
        self.clicks += 1

    def type(self, field: Any, words: str) -> None:
        """Write into a field."""
        field.fill(words, timeout=PATIENCE)
        self.typed.append(words)

    def done(self, what: str) -> None:
        """Note that a part is done."""
        now = time.monotonic()
        self.seconds.append((what, now - self._last))
        if self._pictures is not None:
            self._opened.page.screenshot(path=self._pictures / f"{len(self.seconds)}.png")
        self._last = time.monotonic()


def first_edit(opened: Window, url: str, pictures: Path | None) -> Newcomer:
    """Do what leads from nothing to an accepted edit."""
    somebody = Newcomer(opened, pictures)
    page = opened.page
    somebody.click(page.locator(".action-label[aria-label^='CodeAgent']").first)
    frame = opened.transcript()
    server = frame.locator(".server")
    somebody.click(server.locator("button").filter(has_text="Install it"))
    server.wait_for(state="hidden", timeout=PATIENCE)
    somebody.done("the server is installed and runs")
    somebody.click(frame.locator(".card").filter(has_text="Another server"))
    somebody.type(frame.locator("#setup-url"), f"{url}/v1")
    somebody.type(frame.locator("#setup-key"), "a-key-of-mine")
    somebody.click(frame.locator("button").filter(has_text="Save and test"))
    frame.locator(".outcome.ok").wait_for(timeout=PATIENCE)
    somebody.done("the model is set up and answers")
    somebody.click(frame.locator("button").filter(has_text="Begin"))
    area = frame.locator("#composer textarea")
    somebody.type(area, "add() subtracts. Mend it.")
    area.press("Enter")
    frame.locator("button").filter(has_text="Apply").first.wait_for(timeout=PATIENCE)
    somebody.done("the task is done and waits")
    somebody.click(frame.locator("button").filter(has_text="Apply").first)
    opened.page.locator(".tab[aria-label^='calc.py']").first.wait_for(timeout=PATIENCE)
    shown = "() => document.querySelector('.view-lines')?.innerText.replaceAll('\\u00a0', ' ').includes('a + b')"
    page.wait_for_function(shown, timeout=PATIENCE)
    somebody.done("the edit is in the editor")
    return somebody


@contextmanager
def nothing_installed(folder: Path) -> Iterator[Window]:
    """A VS Code with the extension alone: no server on the PATH, no setting, wheels of what it needs in a folder."""
    source = folder / "source"
    shutil.copytree(EXTENSION, source, ignore=shutil.ignore_patterns("node_modules", "dist", "dist-test", "*.vsix"))
    (source / "node_modules").symlink_to(EXTENSION / "node_modules")
    own_wheel(source / "server")
    programs, links = folder / "programs", folder / "links"
    for made in (programs, links):
        made.mkdir()
    wheels_of_dependencies(links)
    (programs / "python3").symlink_to(str(getattr(sys, "_base_executable", sys.executable)))
    plain = [each for each in os.environ["PATH"].split(":") if not (Path(each) / "codeagent-lsp").exists()]
    environment = {
        "PATH": ":".join([str(programs), *plain]),
        "PYTHONPATH": "",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "CODEAGENT_MODELS_DIR": str(folder / "models"),
    }
    unset = ("server.command", "model.provider", "model.name", "foreign.watch")
    settings: dict[str, Any] = {
        **{f"codeagent.{name}": default for name, default in zip(unset, ([], "auto", "", "auto"), strict=True)},
        "workbench.secondarySideBar.defaultVisibility": "visible",
        # What is known of the models of a hosted provider; of a server on this machine only itself could say.
        "codeagent.model.contextWindow": 128_000,
    }
    with ExitStack() as stack:
        editor = stack.enter_context(Editor(folder / "editor", install(package(folder, source), folder / "extensions")))
        options = {"files": {"calc.py": CODE}, "script": [], "settings": settings, "environment": environment}
        yield stack.enter_context(window(folder, editor, **options))  # type: ignore[arg-type]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    if lacks := missing():
        sys.stderr.write(f"{lacks}\n")
        return 2
    support.SECONDS = max(support.SECONDS, 60)
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    fake = FakeChat(Said(calls=(EDIT,)), Said("It adds now."), style="plain")
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_aside(fake) as url,
        nothing_installed(Path(folder)) as opened,
    ):
        somebody = first_edit(opened, url, options.pictures)
        text = opened.disk("calc.py")
    print("| | seconds |\n|---|---|")
    for what, seconds in somebody.seconds:
        print(f"| {what} | {seconds:.1f} |")
    together = sum(seconds for _, seconds in somebody.seconds)
    print(f"| together: {somebody.clicks} clicks, {len(somebody.typed)} fields | {together:.1f} |")
    print(f"\non the disk: {text!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
