"""Pictures in the chat's input, in a real VS Code: pasted, dropped, taken off, sent; and what fills the context."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import Editor, Window, window
from tests.clients.vscode.test_runs import until
from tests.llm.providers.fake_ollama import FakeOllama
from tests.llm.providers.fake_server import FakeServer, Said, serving_aside

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

COPY = """async data => {
    const blob = new Blob([Uint8Array.from(atob(data), char => char.charCodeAt(0))], {type: "image/png"});
    await navigator.clipboard.write([new ClipboardItem({"image/png": blob})]);
}"""
DROP = """(form, files) => {
    const given = new DataTransfer();
    for (const [name, type, data] of files) {
        given.items.add(new File([Uint8Array.from(atob(data), char => char.charCodeAt(0))], name, {type}));
    }
    form.dispatchEvent(new DragEvent("drop", {dataTransfer: given, bubbles: true, cancelable: true}));
}"""
DRAWN = "image => image.complete && image.naturalWidth > 0"


def png(red: int, green: int, blue: int, size: int = 40) -> str:
    """A picture of one colour, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes((red, green, blue)) * size) * size
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
    return b64encode(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")).decode()


def seeing(fake: FakeServer, url: str) -> dict[str, Any]:
    """The settings for a model server."""
    assert isinstance(fake, FakeOllama)
    model = {"provider": "auto", "baseUrl": url, "name": fake.model}
    return {"codeagent.agent.answerForm": "tools", **{f"codeagent.model.{key}": value for key, value in model.items()}}


def composer(opened: Window) -> tuple[Any, Any, Any]:
    """The chat's input, its form, and the small pictures in it."""
    opened.command("CodeAgent: Open the Chat")
    frame = opened.transcript()
    area = frame.locator("#composer textarea")
    area.wait_for()
    return area, frame.locator("#composer"), frame.locator("#composer .thumb")


def test_pictures_are_pasted_and_dropped_taken_off_and_seen(tmp_path: Path, editor: Editor) -> None:
    red, blue, green = png(200, 30, 30), png(30, 30, 200), png(30, 160, 30)
    fake = FakeOllama(Said("A red and a green square."), capabilities=("completion", "tools", "vision"))
    with (
        serving_aside(fake) as url,
        window(tmp_path, editor, files={"a.py": "x = 1\n"}, script=[], settings=seeing(fake, url)) as opened,
    ):
        area, form, thumbs = composer(opened)
        area.focus()
        opened.page.evaluate(COPY, red)
        opened.page.keyboard.press("Control+v")
        thumbs.nth(0).wait_for()
        form.evaluate(DROP, [["blue.png", "image/png", blue], ["green.png", "image/png", green]])
        thumbs.nth(2).wait_for()
        until(lambda: all(image.evaluate(DRAWN) for image in thumbs.locator("img").all()), "not drawn")
        form.evaluate(DROP, [["notes.txt", "text/plain", b64encode(b"x").decode()]])
        form.locator("[role=status]").filter(has_text="notes.txt is not a PNG").wait_for()
        thumbs.nth(1).locator("button").click()
        thumbs.nth(2).wait_for(state="detached")
        opened.command("View: Toggle Secondary Side Bar Visibility")
        opened.transcript().locator("#composer").wait_for(state="detached")
        area, form, thumbs = composer(opened)
        assert [image.get_attribute("alt") for image in thumbs.locator("img").all()][1:] == ["green.png"]
        opened.page.screenshot(path=tmp_path / "pictures.png")
        area.fill("What is on them?")
        area.press("Enter")
        opened.transcript().locator(".markdown").filter(has_text="A red and a green square.").wait_for()
        kept = opened.transcript().locator(".run .thumbs.sent img")
        assert [image.get_attribute("alt") for image in kept.all()][1:] == ["green.png"]
        assert form.locator(".thumb").count() == 0
        until(lambda: all(image.evaluate(DRAWN) for image in kept.all()), "not drawn")
        opened.page.screenshot(path=tmp_path / "sent.png")
        sent = [message.get("images") for body in fake.bodies for message in body.get("messages", ())]
        (images,) = [each for each in sent if each]
        # The clipboard encodes anew.
        assert len(images) == 2 and images[1] == green and images[0] != blue
        assert area.input_value() == ""


@pytest.mark.volume
def test_a_model_that_does_not_see_says_so_and_they_go_along_again(tmp_path: Path, editor: Editor) -> None:
    with window(tmp_path, editor, files={"a.py": "x = 1\n"}, script=[]) as opened:
        area, form, thumbs = composer(opened)
        form.evaluate(DROP, [[f"{number}.png", "image/png", png(number, 0, 0)] for number in range(9)])
        thumbs.nth(7).wait_for()
        form.locator("[role=status]").filter(has_text="At most 8").wait_for()
        area.press("Enter")
        assert thumbs.count() == 8, "without words nothing is sent"
        area.fill("What is on them?")
        area.press("Enter")
        log = opened.transcript().locator("#log")
        log.locator(".problem").filter(has_text="does not see pictures").wait_for()
        log.locator(".problem button").filter(has_text="Try again").click()
        log.locator(".problem").filter(has_text="does not see pictures").nth(1).wait_for()


@pytest.mark.volume
def test_the_ring_says_what_fills_the_context(tmp_path: Path, editor: Editor) -> None:
    fake = FakeOllama(Said("I look.", calls=(("read_file", {"path": "a.py"}),)), Said("It is long."))
    files = {"a.py": "".join(f"x{number} = {number}\n" for number in range(200))}
    with (
        serving_aside(fake) as url,
        window(tmp_path, editor, files=files, script=[], settings=seeing(fake, url)) as opened,
    ):
        area, _, _ = composer(opened)
        area.fill("Fix the names in a.py")
        area.press("Enter")
        frame = opened.transcript()
        frame.locator(".markdown").filter(has_text="It is long.").wait_for()
        ring, panel = frame.locator("button.ring"), frame.locator("#contents")
        assert "Files read" in (ring.get_attribute("title") or "")
        assert not panel.is_visible()
        ring.click()
        for kind in ("Tools", "Instructions", "Conversation", "Files read"):
            panel.locator("li").filter(has_text=kind).wait_for()
        shares = [int(each.split("·")[1].strip(" %")) for each in panel.locator(".count").all_inner_texts()]
        assert 95 <= sum(shares) <= 105
        opened.page.screenshot(path=tmp_path / "ring.png")
        area.press("Escape")
        panel.wait_for(state="hidden")
