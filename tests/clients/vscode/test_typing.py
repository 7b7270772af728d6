"""An accepted change comes while the user types in another line of the file: nothing typed is lost, all of it lands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import STATUS, Editor, Window, window
from tests.clients.vscode.test_runs import call

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

NOTES = "# notes: "
WORDS = "the_quick_brown_fox_jumps_over_the_lazy_dog_"
RATES = (5, 8, 12, 20, 30, 60)
THINKING = 2.0  # seconds, so that the user is in the middle of typing
BREATHLESS = 40.0  # seconds without a pause: on a busy machine it lands in the one that follows
LANDS = 90.0
SETTINGS = {
    "codeagent.permissions.mode": "acceptEdits",
    "codeagent.edits.diagnostics": "off",
    "codeagent.transcript.reveal": False,
    "editor.wordWrap": "on",
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
}


def texts(hunks: int, end: str = "") -> tuple[str, str]:
    """A text of which the first line is the user's, and the same with so many hunks; some lines end with `end`."""
    base = [NOTES, *(f"line{at} = {at}{end if at % 12 == 4 else ''}" for at in range(1, 12 * hunks + 12))]
    text = [*base]
    for old, new in edits(hunks):
        text[text.index(old)] = new
    return "\n".join(base) + "\n", "\n".join(text) + "\n"


def edits(hunks: int) -> list[tuple[str, str]]:
    """Lines and what becomes of each, far enough apart to be hunks of their own."""
    places = [12 * number + 10 for number in range(hunks)]
    return [(f"line{place} = {place}", f"changed{place} = {place}\nmore{place} = {place}") for place in places]


def cases(end: str = "") -> list[tuple[str, int, int, str, str]]:
    """Name, keys a second, hunks and both texts of each case."""
    return [(f"at{rate}of{hunks}.py", rate, hunks, *texts(hunks, end)) for hunks in (1, 50) for rate in RATES]


def script_of(found: list[tuple[str, int, int, str, str]]) -> list[dict[str, Any]]:
    """For each case a reply that edits its file, after a while, and one that ends its run."""
    script: list[dict[str, Any]] = []
    for name, _, hunks, _, _ in found:
        calls = [call("edit_file", path=name, old_str=old, new_str=new) for old, new in edits(hunks)]
        script += [{"delay": THINKING, "tool_calls": calls}, {"text": "Done."}]
    return script


def type_while_it_lands(opened: Window, rate: int, saves: bool = False) -> tuple[str, float]:
    """Types at the end of the first line until the run is over and a little longer, with pauses after a while; what
    was typed, and how fast.
    """
    keyboard = opened.page.keyboard
    opened.page.locator(".monaco-editor .view-line").first.click()
    keyboard.press("Control+Home")
    keyboard.press("End")
    typed, landed, last = "", False, False
    began = time.monotonic()
    while not last:
        assert time.monotonic() < began + LANDS, f"not landed: {opened.status()}"
        last, landed = landed, landed or is_idle(opened)
        keys = "".join(WORDS[(len(typed) + number) % len(WORDS)] for number in range(max(3, rate // 3)))
        behind = time.monotonic() - began - len(typed) / rate
        keyboard.type(keys, delay=max(0.0, 1000 / rate - 1000 * behind / len(keys)))
        typed += keys
        if saves:
            keyboard.press("Control+s")
        if time.monotonic() > began + BREATHLESS:
            opened.page.wait_for_timeout(2000)
    return typed, len(typed) / (time.monotonic() - began)


def is_idle(opened: Window) -> bool:
    """Whether the run is over and nothing is left to decide on."""
    return bool(opened.page.locator(f"{STATUS}:has(.codicon-sparkle)").count())


def saved(opened: Window, name: str) -> str:
    """The text of a file's buffer, by saving it."""
    opened.page.keyboard.press("Control+s")
    opened.page.locator(f'.tab.active:not(.dirty)[data-resource-name="{name}"]').wait_for()
    return opened.disk(name) or ""


def play(opened: Window, name: str, rate: int, saves: bool = False) -> tuple[str, str]:
    """A run that changes the file while the user types in it; what was typed, and the text afterwards."""
    opened.open(name)
    opened.task(f"Change {name}")
    opened.page.locator(f"{STATUS}:has(.codicon-sync)").wait_for()
    typed, reached = type_while_it_lands(opened, rate, saves)
    print(f"{name}: {len(typed)} keys, {reached:.1f} a second")
    return typed, saved(opened, name)


@pytest.mark.timeout(1500)  # twelve cases, each of which may have to wait for a pause
@pytest.mark.volume
def test_what_is_typed_in_other_lines_stays_and_the_change_lands(tmp_path: Path, editor: Editor) -> None:
    found = cases()
    files = {name: base for name, _, _, base, _ in found}
    wrong = []
    with window(tmp_path, editor, files=files, script=script_of(found), settings=SETTINGS) as opened:
        for name, rate, _, _, text in found:
            typed, now = play(opened, name, rate)
            if now != text.replace(NOTES, f"{NOTES}{typed}", 1):
                wrong.append((name, typed, now.splitlines()[0], now.count("changed")))
    assert not wrong


def test_a_file_that_is_trimmed_at_each_save_meanwhile(tmp_path: Path, editor: Editor) -> None:
    (case,) = (case for case in cases("  \t") if case[1:3] == (12, 50))
    name, rate, _, base, text = case
    settings = SETTINGS | {"files.trimTrailingWhitespace": True}
    with window(tmp_path, editor, files={name: base}, script=script_of([case]), settings=settings) as opened:
        typed, now = play(opened, name, rate, saves=True)
        trimmed = "".join(f"{line.rstrip()}\n" for line in text.replace(NOTES, f"{NOTES}{typed}", 1).splitlines())
        assert now == trimmed
