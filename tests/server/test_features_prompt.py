"""The prompt document in a stock editor: opened, completed, sent by a lens; attachments of commands."""

from __future__ import annotations

import os
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.files.uris import to_path
from tests.server.replies import say
from tests.server.stock_editor import StockEditor

CART = "class Cart:\n    def total(self):\n        return 0\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "cart.py").write_text(CART)
    (folder / "src" / "my notes.md").write_text("notes\n")
    (folder / ".claude" / "commands").mkdir(parents=True)
    (folder / ".claude" / "commands" / "greet.md").write_text("Greet $1 warmly.")
    return folder


def labels(editor: StockEditor, uri: str, words: str) -> list[str]:
    """What is offered behind these words, which are added to the end of the document."""
    end = place_of(editor, uri)
    after = (end[0], end[1] + len(words))
    editor.type(uri, end, end, words)
    about = {"textDocument": {"uri": uri}, "position": {"line": after[0], "character": after[1]}}
    found = editor.client.result("textDocument/completion", about)
    editor.type(uri, end, after, "")
    return [item["label"] for item in found["items"]] if found else []


def place_of(editor: StockEditor, uri: str) -> tuple[int, int]:
    """The end of a document."""
    lines = editor.buffers[uri].text.split("\n")
    return len(lines) - 1, len(lines[-1])


def until(wanted: str, look: Any) -> list[str]:
    for _ in range(200):
        found: list[str] = look()
        if wanted in found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{wanted} was never offered, but {found}")


def opened(editor: StockEditor, **arguments: Any) -> str:
    """Open a prompt document and return its URI."""
    count = len(editor.shown)
    editor.command("codeagent.prompt", **arguments)
    editor.wait_until(lambda: len(editor.shown) > count)
    return editor.open(Path(to_path(editor.shown[-1]) or ""))


def test_written_completed_and_sent(place: Path, tmp_path: Path) -> None:
    script = [{"text": "It adds up.", "expect": "Cart.total in src/cart.py:\n2|    def total(self):"}, say("Hello!")]
    with StockEditor(place, tmp_path / "state", script=script) as editor:
        cart = editor.open(place / "src" / "cart.py")
        span = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}
        uri = opened(editor, uri=cart, range=span)
        assert editor.buffers[uri].text.endswith("-->\n\n@src/cart.py#L2 ")
        assert (tmp_path / "state") in Path(uri.removeprefix("file://")).parents
        until("@src/cart.py", lambda: labels(editor, uri, "@car"))
        assert labels(editor, uri, "@di")[:2] == ["@diff", "@diagnostics"]
        until("#Cart.total", lambda: labels(editor, uri, "@src/cart.py#to"))
        assert "#Cart.total" in labels(editor, uri, "#tot")
        assert labels(editor, uri, "mail a@b") == []
        found = editor.command("codeagent.prompt.complete", text="Look\nat @src/ca")
        assert {"label": "@src/cart.py", "words": "@src/cart.py", "detail": "", "start": 8} in found
        assert editor.command("codeagent.prompt.complete", text="mail a@b") == []
        editor.type(uri, (0, 0), place_of(editor, uri), "What does @src/cart.py#Cart.total do?")
        (lens,) = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
        assert lens["command"]["title"] == "Task: Send to the agent"
        answer = editor.command(lens["command"]["command"], **lens["command"]["arguments"][0])
        editor.ended(answer["runId"])
        assert "It adds up." in editor.command("codeagent.session.export")["markdown"]
        assert editor.buffers[uri].text == "What does @src/cart.py#Cart.total do?", "what was written stays"
        assert labels(editor, cart, "@") == []


def test_what_is_written_into_a_document_stays_however_many_come_after_it(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[]) as editor:
        first = Path(to_path(opened(editor)) or "")
        first.write_text("what is not sent yet")
        os.utime(first, (time.time() - 29 * 86400,) * 2)
        others = [Path(to_path(opened(editor)) or "") for _ in range(52)]
        assert first.read_text() == "what is not sent yet"
        assert all(path.exists() for path in others)
        os.utime(first, (time.time() - 31 * 86400,) * 2)
        opened(editor)
        assert not first.exists() and all(path.exists() for path in others)


def test_commands_are_offered_at_the_beginning(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[say("Hi.")]) as editor:
        uri = opened(editor)
        until("/greet", lambda: labels(editor, uri, "/"))
        assert labels(editor, uri, "do /gr") == []
        assert "Nothing is written" in editor.refusal("codeagent.prompt.send", {"uri": uri})
        assert "no prompt document" in editor.refusal("codeagent.prompt.send", {"uri": "file:///etc/passwd"})


def test_every_command_is_offered(place: Path, tmp_path: Path) -> None:
    for number in range(30):
        (place / ".claude" / "commands" / f"c{number:02}.md").write_text("Do it.")
    (place / ".claude" / "commands" / "评审.md").write_text("评审$ARGUMENTS。")
    with StockEditor(place, tmp_path / "state", script=[say("Hi.")]) as editor:
        uri = opened(editor)
        assert len(until("/评审", lambda: labels(editor, uri, "/"))) == 32
        assert labels(editor, uri, "/29") == ["/c29"]


def test_the_editor_names_the_document_by_another_path(place: Path, tmp_path: Path) -> None:
    """The state folder may lie behind a link, which the editor follows."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with StockEditor(place, tmp_path / "link", script=[say("Hi.")]) as editor:
        editor.command("codeagent.prompt")
        editor.wait_until(lambda: bool(editor.shown))
        uri = editor.open(Path(to_path(editor.shown[-1]) or "").resolve())
        until("@src/cart.py", lambda: labels(editor, uri, "@cart"))
        editor.type(uri, (0, 0), place_of(editor, uri), "say hi")
        editor.run("codeagent.prompt.send", uri=uri)


def test_an_editor_that_keeps_us_out_of_other_folders_saves_and_sends(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[{"text": "Hi.", "expect": "say hi"}]) as editor:
        uri = editor.open(place / "src" / "cart.py")
        editor.command("codeagent.prompt")
        editor.wait_until(lambda: bool(editor.shown))
        with Path(to_path(editor.shown[-1]) or "").open("a") as file:
            file.write("say hi\n")
        assert editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}}) == []
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
        about = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
        found = {item["title"]: item for item in editor.client.result("textDocument/codeAction", about)}
        sending = found["Task: Send to the agent"]["command"]
        editor.run(sending["command"], **sending["arguments"][0])
        assert "Hi." in editor.command("codeagent.session.export")["markdown"]
        left = [item["title"] for item in editor.client.result("textDocument/codeAction", about)]
        assert "Task: Send to the agent" not in left


def test_attachments_of_commands(place: Path, tmp_path: Path) -> None:
    script = [
        {"text": "One.", "expect": "src/cart.py, lines 2-3, as they are now:\n2|    def total(self):"},
        {"text": "Two.", "expect": "notes"},
    ]
    with StockEditor(place, tmp_path / "state", script=script) as editor:
        cart = editor.open(place / "src" / "cart.py")
        span = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 4}}
        editor.run("codeagent.run", task="Why?", attachments=[{"uri": cart, "range": span}])
        notes = (place / "src" / "my notes.md").as_uri()
        editor.run("codeagent.ask", question="And this?", attachments=[{"uri": notes}])
        markdown = editor.command("codeagent.session.export")["markdown"]
        assert "One." in markdown and "Two." in markdown
        for wrong in ([{"uri": 7}], ["x"], [{"uri": cart, "range": {}}], [{"data": 7}]):
            assert "attachments" in editor.refusal("codeagent.run", {"task": "x", "attachments": wrong})
        picture = {"data": b64encode(b"\x89PNG\r\n\x1a\n").decode(), "name": "pasted.png"}
        large = {**picture, "data": b64encode(bytes(4 * 1024 * 1024 + 9)).decode()}
        for pictures, why in (
            ([{**picture, "data": "PGh0bWw+"}], "pasted.png is not a PNG"),
            ([{**picture, "data": "-"}], "pasted.png is not a PNG"),
            ([picture] * 9, "at most 8"),
            ([large], "larger than 4 MB"),
        ):
            assert why in editor.refusal("codeagent.run", {"task": "x", "attachments": pictures})
        assert "no pictures" in editor.refusal(
            "codeagent.edit", {"instruction": "x", "uri": cart, "range": span, "attachments": [picture]}
        )
        editor.run("codeagent.run", task="Look", attachments=[picture])
        assert "does not see pictures" in str(list(editor.notifications("window/showMessage")))
        assert "passwd" in editor.refusal(
            "codeagent.run", {"task": "x", "attachments": [{"uri": "file:///etc/passwd"}]}
        )


def test_two_documents_one_of_them_sent_twice_and_a_huge_one(place: Path, tmp_path: Path) -> None:
    """A second click is no second task; comments of the task's own are part of it; each document is its own task."""
    html = 'What is "<!-- header -->" in a.html?'
    script = [
        {"text": "One.", "expect": html},
        {"text": "Two.", "expect": "the second"},
        {"text": "Once more.", "expect": "the second, changed"},
        {"text": "Much.", "expect": "end of it"},
    ]
    with StockEditor(place, tmp_path / "state", script=script) as editor:
        first, second = opened(editor), opened(editor)
        assert first != second
        for uri, words in ((first, html), (second, "the second")):
            editor.type(uri, place_of(editor, uri), place_of(editor, uri), words)
        answers = [editor.command("codeagent.prompt.send", uri=uri) for uri in (first, first, second, second)]
        runs = dict.fromkeys(answer["runId"] for answer in answers)
        assert len(runs) == 2
        for run_id in runs:
            editor.ended(run_id)
        editor.type(second, place_of(editor, second), place_of(editor, second), ", changed")
        editor.ended(editor.command("codeagent.prompt.send", uri=second)["runId"])
        long = "".join(f"line {number} 行 🙂\n" for number in range(50_000)) + "end of it"
        editor.type(first, (0, 0), place_of(editor, first), long)
        assert "@src/cart.py" in until("@src/cart.py", lambda: labels(editor, first, "\n@car"))
        editor.ended(editor.command("codeagent.prompt.send", uri=first)["runId"])
        markdown = editor.command("codeagent.session.export")["markdown"]
        assert [markdown.count(said) for said in ("One.", "Two.", "Once more.")] == [1, 1, 1]


def test_attachments_that_cannot_be_shown(place: Path, tmp_path: Path) -> None:
    """A link out of the workspace, a secret, a range beyond the end, a binary: told, and never shown."""
    (tmp_path / "far.txt").write_text("far away\n")
    (place / "link.txt").symlink_to(tmp_path / "far.txt")
    (place / ".env").write_text("KEY=close\n")
    (place / "data.bin").write_bytes(bytes(range(256)))
    with StockEditor(place, tmp_path / "state", script=[say(f"Said {number}.") for number in range(4)]) as editor:
        for name in ("link.txt", "../far.txt"):
            about = {"task": "x", "attachments": [{"uri": f"file://{place}/{name}"}]}
            assert "far.txt" in editor.refusal("codeagent.run", about) or "link" in editor.refusal(
                "codeagent.run", about
            )
        beyond = {"start": {"line": 90, "character": 0}, "end": {"line": 99, "character": 0}}
        for attachment in (
            {"uri": (place / ".env").as_uri()},
            {"uri": (place / "data.bin").as_uri()},
            {"uri": (place / "src" / "cart.py").as_uri(), "range": beyond},
            {"uri": (place / "gone.txt").as_uri()},
        ):
            editor.run("codeagent.ask", question="What?", attachments=[attachment])
        markdown = editor.command("codeagent.session.export")["markdown"]
        assert "Said 3." in markdown
        assert "close" not in markdown and "far away" not in markdown
