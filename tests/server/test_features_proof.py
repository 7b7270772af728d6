"""Changes carry their proof: tests run by command on exactly this text, outdated when it moves, and what matters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pygls import uris

from tests.server.conftest import StartEditor
from tests.server.replies import edit, say
from tests.server.stock_editor import StockEditor

pytestmark = pytest.mark.slow  # whole servers at work, and real tests in the real shadow

GAP = "# far enough\n" * 8
CART = f"def total(items):\n    return 0\n\n\n{GAP}def name():\n    return 'cart'\n"
TESTS = """\
from cart import name, total


def test_total():
    assert total([2, 3]) == 5


def test_name():
    assert name()
"""
SCRIPT = [
    edit("cart.py", "    return 0\n", "    return sum(items)\n"),
    edit("cart.py", "    return 'cart'\n", "    return 'basket'\n"),
    say("Mended."),
]


def waiting(start: StartEditor, workspace: Path) -> tuple[StockEditor, str, str]:
    """An editor with changes that wait; the URI of the changed document, which is not saved."""

    def never(params: dict[str, Any]) -> None:
        """Close every prompt."""

    editor = start(*SCRIPT, choose=never)
    (workspace / "test_cart.py").write_text(TESTS)
    (workspace / "cart.py").write_text("raise SystemExit('the saved text is never run')\n")
    uri = editor.open(workspace / "cart.py", CART)
    run_id = editor.command("codeagent.run", task="mend it")["runId"]
    editor.ended(run_id)
    return editor, run_id, uri


def tried(editor: StockEditor, command: str, run_id: str, part: str) -> tuple[str, Any]:
    """What the user is told at the end, with this part in it, and the review."""
    editor.run(command, seconds=120.0, runId=run_id)
    return editor.told(part), editor.command("codeagent.review", runId=run_id)


def test_tests_on_exactly_this_text(start: StartEditor, workspace: Path) -> None:
    editor, run_id, uri = waiting(start, workspace)
    told, review = tried(editor, "codeagent.prove", run_id, "2 passed")
    assert "Failed before and pass now: 1" in told
    tests = [line for line in review["proof"] if line.startswith("Tests: 2 passed")]
    assert len(tests) == 1
    assert not review["unneeded"]
    editor.type(uri, (0, 0), (0, 0), "# typed\n")
    again = editor.command("codeagent.review", runId=run_id)["proof"]
    assert f"Outdated, the text has changed since: {tests[0]}" in again
    editor.command("codeagent.apply", runId=run_id)
    editor.told("Applied 1")
    mended = CART.replace("return 0", "return sum(items)").replace("'cart'", "'basket'")
    assert editor.text(workspace / "cart.py") == f"# typed\n{mended}"
    assert "the saved text" in (workspace / "cart.py").read_text()


@pytest.mark.volume
def test_what_matters_is_found_and_nothing_is_dropped(start: StartEditor, workspace: Path) -> None:
    editor, run_id, _ = waiting(start, workspace)
    told, review = tried(editor, "codeagent.minimize", run_id, "1 of 2 parts")
    assert told.endswith("Nothing was dropped.")
    needed, unneeded = re.findall(r"@@ (cart.py#\S+)$", review["diff"], re.MULTILINE)
    assert review["unneeded"] == [unneeded]
    assert review["diff"].count("@@ cart.py#") == 2
    editor.wait_until(lambda: any(uri.endswith(".diff") for uri in editor.shown))
    shown = Path(uris.to_fs_path(editor.shown[-1]) or "").read_text()
    head, blank, diff = shown.partition("\n\n")
    assert blank and diff == review["diff"]
    assert head.startswith("# Code actions and lenses apply or discard")
    assert head.splitlines()[1:] == [f"# {line}" for line in (*review["proof"], unneeded)]
    editor.command("codeagent.apply", runId=run_id, hunks=[needed])
    editor.told("Applied 1")
    assert editor.text(workspace / "cart.py") == CART.replace("return 0", "return sum(items)")


def test_what_cannot_be_tried_is_refused(start: StartEditor, workspace: Path) -> None:
    editor, run_id, _ = waiting(start, workspace)
    assert "nothing" in editor.refusal("codeagent.prove", {"runId": "nothing"})
    editor.command("codeagent.discard", runId=run_id)
    assert "do not wait any more" in editor.run("codeagent.prove", runId=run_id)["message"]
