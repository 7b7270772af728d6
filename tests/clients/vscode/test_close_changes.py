"""Changes near each other and changes of several files, in a real VS Code: each decided and undone by itself, in the
review and in the editor of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import Editor, Window, window
from tests.clients.vscode.test_runs import buffer, call, until

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

SOURCE = "one = 1\ntwo = 2\nthree = 3\nfour = 4\nfive = 5\n"
TWO, FOUR = ("two = 2", "two = 20"), ("four = 4", "four = 40")
CHANGED = SOURCE.replace(*TWO).replace(*FOUR)


def edits(*pairs: tuple[str, str], path: str = "a.py") -> list[dict[str, Any]]:
    """Calls that edit a file."""
    return [call("edit_file", path=path, old_str=old, new_str=new) for old, new in pairs]


def lenses(opened: Window, words: str) -> Any:
    """The lenses of the active editor with these words."""
    return opened.page.locator(".codelens-decoration a").filter(has_text=words)


def proposed(opened: Window) -> None:
    """Start a run on the open file, and leave its question open."""
    opened.task("Change both in a.py")
    opened.wait_status("waiting for you")
    opened.page.keyboard.press("Escape")


@pytest.mark.volume
def test_one_unchanged_line_between_two_changes_is_a_boundary(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [{"tool_calls": edits(TWO, FOUR)}, {"text": "Changed."}]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.open("a.py")
        proposed(opened)
        opened.in_bar("Review").click()
        opened.reviewed()
        lenses(opened, "Accept change").nth(1).wait_for()
        opened.page.screenshot(path=tmp_path / "two.png")
        assert lenses(opened, "Accept change").count() == 2
        lenses(opened, "Discard change").first.click()
        lenses(opened, "Accept change").first.wait_for(state="detached")  # one is left
        lenses(opened, "Accept file").click()
        opened.idle()
        assert buffer(opened) == SOURCE.replace(*FOUR)


def test_lenses_in_the_file_itself_once_and_where_the_changes_stand(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [{"tool_calls": edits(TWO, FOUR, ("five = 5", "five = 50"))}, {"text": "Changed."}]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        page = opened.page
        opened.open("a.py")
        proposed(opened)
        lenses(opened, "Accept change").nth(1).wait_for()
        page.screenshot(path=tmp_path / "in_code.png")
        expected = {"Accept change": 2, "Discard change": 2, "Accept file": 1, "Discard file": 1}
        until(lambda: {each: lenses(opened, each).count() for each in expected} == expected, "the lenses, each once")
        shown = page.locator(".codelens-decoration a").all_inner_texts()
        assert not [each for each in shown if "this change" in each or "changed file" in each], "said once more"
        page.locator(".view-line").filter(has_text="one = 1").click()
        page.keyboard.press("Control+Home")
        page.keyboard.type("zero = 0\n")
        lenses(opened, "Discard change").first.click()
        lenses(opened, "Accept file").wait_for(state="detached")
        lenses(opened, "Accept change").wait_for()
        assert lenses(opened, "Accept change").count() == 1
        page.keyboard.press("Control+Home")
        page.keyboard.press("Alt+F5")
        page.locator(".statusbar-item").filter(has_text="Ln 5,").wait_for()
        page.keyboard.press("Control+Alt+y")
        page.locator(".view-line").filter(has_text="five = 50").wait_for()
        opened.idle()
        assert buffer(opened) == f"zero = 0\n{SOURCE}".replace(*FOUR).replace("five = 5", "five = 50")


@pytest.mark.volume
def test_one_file_of_a_run_is_undone_and_the_other_stays(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [{"tool_calls": [*edits(TWO), *edits(FOUR, path="b.py")]}, {"text": "Changed."}]
    with window(tmp_path, editor, files={"a.py": SOURCE, "b.py": SOURCE}, script=script) as opened:
        opened.open("a.py")
        opened.task("Change both files")
        opened.pick("Apply")
        frame = opened.transcript()
        undo_a, undo_b = (
            frame.locator("button.undoFile").filter(has_text=f"Undo only {name}") for name in ("a.py", "b.py")
        )
        whole = frame.locator("button.undo").filter(has_text="Undo all")
        undo_b.wait_for()
        opened.page.screenshot(path=tmp_path / "undo.png")
        undo_a.click()
        frame.locator(".decision").filter(has_text="Undone: a.py").wait_for()
        until(undo_a.is_disabled, "it can be undone once more")
        assert undo_b.is_enabled() and whole.is_enabled()
        assert buffer(opened) == SOURCE
        opened.open("b.py")
        opened.page.locator(".view-line").filter(has_text="four = 40").wait_for()
        whole.click()
        opened.page.locator(".view-line").filter(has_text="four = 40").wait_for(state="detached")
        until(lambda: undo_b.is_disabled() and whole.is_disabled(), "it can be undone once more")
