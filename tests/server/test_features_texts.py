"""Odd texts through a whole run: line ends, separators, characters beyond the basic plane, in every encoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.conftest import StartEditor
from tests.server.replies import edit, say
from tests.server.stock_editor import STOCK

pytestmark = pytest.mark.slow  # whole servers at work

ENCODINGS = [pytest.param("utf-8", marks=pytest.mark.slow), "utf-16", pytest.param("utf-32", marks=pytest.mark.slow)]
TEXTS = {
    "crlf": "a = 1\r\nx = 1\r\nb = 1\r\n",
    "mixed": "a = 1\nx = 1\r\nb = 1\rc = 1\n",
    "no newline at the end": "a = 1\nx = 1",
    "form feed": "a\x0c\n\x0c\nx = 1\n",
    "line separator": "a\u2028b\u2029c\x85d\nx = 1\n",
    "emoji before it": "s = '🎉👩‍💻é'; x = 1; t = '🎈'\n",
    "byte order mark inside": "a\ufeffb\nx = 1\n",
    "tabs and blanks": "\ta = 1  \n\t\tx = 1\t\n\n\n",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_only_the_changed_characters_change(start: StartEditor, workspace: Path, encoding: str) -> None:
    names = {f"{number}.py": text for number, text in enumerate(TEXTS.values())}
    script = [reply for name in names for reply in (edit(name, "x = 1", "x = 22"), say("Done."))]
    editor = start(*script, capabilities={**STOCK, "general": {"positionEncodings": [encoding]}})
    assert editor.encoding == encoding
    for name, text in names.items():
        path, before = workspace / name, len(editor.edits)
        editor.open(path, text)
        assert editor.run("codeagent.run", task="go")["message"] == "Applied 1 file.", text
        assert editor.text(path) == text.replace("x = 1", "x = 22")
        (params,) = editor.edits[before:]
        (change,) = params["edit"]["documentChanges"]
        assert len(change["edits"]) == 1, text
        assert len(change["edits"][0]["newText"]) <= 2, text
        editor.command("codeagent.undo")
        editor.wait_until(lambda path=path, text=text: editor.text(path) == text)  # type: ignore[misc]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfx = 1\r\n", "x = 1\nü\n".encode("utf-16"), b"x = 1\n\xfc\xe4\n"])
def test_a_file_that_is_not_open_keeps_its_bytes_until_it_is_saved(
    start: StartEditor, workspace: Path, data: bytes
) -> None:
    (workspace / "a.py").write_bytes(data)
    editor = start(edit("a.py", "x = 1", "x = 2"), say("Done."), choose=lambda params: None)
    run_id = editor.command("codeagent.run", task="go")["runId"]
    editor.ended(run_id)
    diff = editor.command("codeagent.review", runId=run_id)["diff"]
    assert "x = 2" in diff
    assert (workspace / "a.py").read_bytes() == data
