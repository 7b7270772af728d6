"""Makes the moving picture of the extension at work: `python -m tests.clients.vscode.film FILE.gif`. Needs Pillow.

A task is typed, done, reviewed, one change accepted and the other discarded, in the real editor with a scripted model.
"""

from __future__ import annotations

import importlib
import io
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.vscode import pictures, support
from tests.clients.vscode.support import Window

SIZE = (1080, 640)
SCALE = 0.75
COLORS = 160
TASK = "Empty orders must ship for nothing"
_PAUSE = {"text": "Two places are wrong: `net` counts in whole numbers, and ", "chunks": 6, "delay": 0.4}
_EDITS = [
    pictures.edit("def net(items):\n    total = 0", "def net(items):\n    total = Decimal(0)"),
    pictures.edit("    weight = sum(", "    if not items:\n        return Decimal(0)\n    weight = sum("),
]
_SCRIPT: list[dict[str, Any]] = [
    _PAUSE | {"tool_calls": [pictures.call("read_file", path="prices.py"), pictures.call("grep", pattern="shipping")]},
    {"tool_calls": _EDITS},
    {"text": "An empty order ships for nothing now.", "chunks": 4, "delay": 0.3},
]


@dataclass
class Film:
    """Frames with the time in milliseconds that each is shown."""

    page: Any
    frames: list[tuple[bytes, int]] = field(default_factory=list)

    def take(self, shown_ms: int) -> None:
        """One frame of what is seen now."""
        self.frames.append((self.page.screenshot(), shown_ms))

    def write(self, target: Path) -> None:
        """The frames as a GIF that begins again after its end; frames that look alike become one."""
        images = importlib.import_module("PIL.Image")
        size = (int(SIZE[0] * SCALE), int(SIZE[1] * SCALE))
        drawn: list[tuple[Any, int]] = []
        for data, shown in self.frames:
            small = images.open(io.BytesIO(data)).convert("RGB").resize(size, images.Resampling.LANCZOS)
            if drawn and drawn[-1][0].tobytes() == small.tobytes():
                drawn[-1] = (small, drawn[-1][1] + shown)
            else:
                drawn.append((small, shown))
        everything = images.new("RGB", (size[0], size[1] * len(drawn)))
        for number, (image, _) in enumerate(drawn):
            everything.paste(image, (0, size[1] * number))
        palette = everything.quantize(COLORS, method=images.Quantize.MAXCOVERAGE)  # colours that are rare stay
        first, *others = [image.quantize(palette=palette, dither=images.Dither.NONE) for image, _ in drawn]
        times = [shown for _, shown in drawn]
        first.save(target, save_all=True, append_images=others, duration=times, loop=0, optimize=True, disposal=1)


def main(target: Path) -> None:
    """Play the scenario and write the file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        extensions = support.install(support.package(folder), folder / "extensions")
        (folder / "play").mkdir()
        settings = {
            "workbench.colorTheme": "Dark Modern",
            "editor.minimap.enabled": False,
            "editor.cursorBlinking": "solid",
        }
        files = {"prices.py": pictures.SOURCE}
        with (
            support.Editor(folder / "editor", extensions) as editor,
            support.window(
                folder / "play", editor, files=files, script=_SCRIPT, settings=settings, size=SIZE
            ) as opened,
        ):
            film = Film(opened.page)
            _ask(opened, film)
            _decide(opened, film)
            film.write(target)


def _ask(opened: Window, film: Film) -> None:
    page = opened.page
    opened.command("CodeAgent: Open the Chat")
    opened.transcript().locator("#composer textarea").wait_for()
    opened.open("prices.py")
    page.wait_for_timeout(1500)
    film.take(900)
    page.keyboard.press("Control+Alt+g")
    page.locator(".quick-input-widget input").first.wait_for(state="visible")
    for end in range(6, len(TASK) + 6, 6):
        page.keyboard.type(TASK[end - 6 : end])
        film.take(180)
    film.take(500)
    page.keyboard.press("Enter")
    for _ in range(12):
        page.wait_for_timeout(250)
        film.take(250)
    opened.wait_status("waiting for you")
    page.wait_for_timeout(800)
    film.take(1800)


def _decide(opened: Window, film: Film) -> None:
    page = opened.page
    lenses = page.locator(".codelens-decoration a")
    opened.pick("Review")
    lenses.filter(has_text="Accept change").first.wait_for()
    page.wait_for_timeout(1200)
    film.take(2200)
    lenses.filter(has_text="Accept change").last.hover()
    film.take(700)
    lenses.filter(has_text="Accept change").last.click()
    page.wait_for_timeout(1800)
    film.take(1500)
    lenses.filter(has_text="Discard file").first.hover()
    film.take(700)
    lenses.filter(has_text="Discard file").first.click()
    page.locator(".tab").filter(has_text="Agent's changes").wait_for(state="detached")
    opened.open("prices.py")
    page.wait_for_timeout(800)
    page.keyboard.press("Control+g")
    page.keyboard.type("28")
    page.keyboard.press("Enter")
    page.wait_for_timeout(1500)
    film.take(2500)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
