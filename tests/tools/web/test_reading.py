"""Pages as words: what is kept, what is left out, what cannot be read. The reading program runs for real."""

from __future__ import annotations

import asyncio
import time

import pytest

from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.tools.web.child import Program, answer_of
from codeagent_lsp.tools.web.http import Page
from codeagent_lsp.tools.web.programs import read
from codeagent_lsp.tools.web.scraping import decode_page, words_of
from codeagent_lsp.tools.web.urls import parse_url
from tests.children import children
from tests.examples import volume

URL = "https://docs.example.org/guide/"
STORY = "".join(f"<p>{'Paragraph number ' + str(number) + ' tells of engines. ' * 8}</p>" for number in range(8))


def page(body: str | bytes, media: str = "text/html", charset: str = "") -> Page:
    return Page(parse_url(URL), media, charset, body.encode() if isinstance(body, str) else body)


def text_of(html: str, selector: str | None = None) -> str:
    """Without a process of its own: quicker."""
    return str(read(html, URL, selector)["text"])


@pytest.mark.slow
def test_an_article_without_its_menus() -> None:
    html = f"<title> A\n title </title><body><nav><a href=/x>Menu</a></nav><article>{STORY}</article></body>"
    found = read(html, URL, None)
    assert found["title"] == "A title" and not found["thin"] and found["hidden"] == 0
    assert "Paragraph number 7" in found["text"] and "Menu" not in found["text"]


def test_a_page_that_is_no_article_is_read_whole() -> None:
    assert text_of("<body><h2>Release</h2><ul><li>one</li><li>two</li></ul><code>pip</code></body>").splitlines() == [
        "## Release", "", "- one", "- two", "", "`pip`",
    ]  # fmt: skip


def test_links_are_whole_and_of_the_web_only() -> None:
    links = [
        "../x",
        "http://a.example/",
        "javascript:alert(1)",
        "command:run",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://[",
        "vscode://x",
    ]
    text = text_of(
        "".join(f"<a href='{link}' title='t' onclick='x()'>l{number}</a> " for number, link in enumerate(links))
    )
    assert "[l0](https://docs.example.org/x)" in text and "[l1](http://a.example/)" in text
    assert text.count("](") == 2 and "l2" in text and "l7" in text


def test_pictures_are_words() -> None:
    text = text_of("<p>a <img src='https://evil.example/?d=1' alt='a cat'> <img src='//evil.example/'> b</p>")
    assert "[picture: a cat]" in text and "evil" not in text and "![" not in text


HIDDEN = (
    "style='display:none'",
    "style='display : NONE !important'",
    "style='color:red;visibility:hidden'",
    "style='opacity:0'",
    "style='font-size:0px'",
    "style='position:absolute;left:-9999px'",
    "hidden",
)


@pytest.mark.parametrize("how", HIDDEN)
def test_what_people_do_not_see_is_left_out_and_counted(how: str) -> None:
    found = read(f"<p>seen</p><div {how}>obey <b>me</b></div><p style='opacity:0.5'>pale</p>", URL, None)
    assert found["hidden"] == 1
    assert "obey" not in found["text"] and "seen" in found["text"] and "pale" in found["text"]


def test_scripts_comments_and_frames_are_left_out() -> None:
    unseen = "".join(f"<{name}>obey</{name}>" for name in ("script", "style", "iframe", "template", "noscript"))
    assert text_of(f"<p>seen</p><!-- obey -->{unseen}") == "seen"


def test_a_selector_names_parts() -> None:
    html = "<div class=a>one</div><div class=b>two</div><div class=a>three</div>"
    found = read(html, URL, "div.a")
    assert (found["text"], found["found"]) == ("one\n\nthree", 2)
    assert read(html, URL, ".nothing")["found"] == 0


def test_pages_that_scripts_write_are_known() -> None:
    assert read("<body><div id=root></div><script src=app.js></script></body>", URL, None)["thin"]
    assert read(f"<body>{STORY}<script></script></body>", URL, ".late")["thin"]
    assert not read(f"<body>{STORY}<script></script></body>", URL, None)["thin"]
    assert not read("<body>short</body>", URL, None)["thin"]


@pytest.mark.slow
async def test_a_page_in_a_process_of_its_own() -> None:
    before = children()
    words = await words_of(page("<title>T</title><p>Gr\u00fc\u00dfe</p>"), None)
    assert (words.title, words.text, words.thin) == ("T", "Gr\u00fc\u00dfe", False)
    assert children() <= before


@pytest.mark.slow
async def test_a_selector_that_is_no_css_is_told() -> None:
    with pytest.raises(ToolFailed, match="valid CSS") as raised:
        await words_of(page("<p>x"), "p[[")
    assert raised.value.code is ErrorCode.INVALID_PARAM


@pytest.mark.slow
@pytest.mark.parametrize(
    "html",
    [
        "<div>" * volume(50_000) + "x",
        "<table>" * volume(20_000),
        "<a href=x>" * volume(30_000),
        "\0" * 1000,
        "<!" * 100_000,
    ],
    ids=("div", "table", "a", "nul", "declaration"),
)
async def test_hostile_pages_end(html: str) -> None:
    started = time.monotonic()
    try:
        assert isinstance((await words_of(page(html), None)).text, str)
    except ToolFailed:
        pass
    assert time.monotonic() - started < 40


@pytest.mark.slow
async def test_cancelling_ends_the_process() -> None:
    before = children()
    task = asyncio.ensure_future(words_of(page("<div>" * 50_000), None))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() <= before


@pytest.mark.slow
async def test_a_process_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ToolFailed) as raised:
        await answer_of(Program("extract", "Reading", 0.05), {"html": "x", "url": URL})
    assert raised.value.code is ErrorCode.TIMEOUT


@pytest.mark.slow
async def test_a_program_that_says_nothing_is_a_failure() -> None:
    with pytest.raises(ToolFailed, match="cannot be read"):
        await answer_of(Program("extract", "Reading", 20), {})


@pytest.mark.parametrize(
    "media", ["text/plain", "application/json", "application/ld+json", "text/markdown", "image/svg+xml"]
)
async def test_text_is_taken_as_it_is(media: str) -> None:
    if media.startswith("image/"):
        with pytest.raises(ToolFailed, match="not text"):
            await words_of(page("<svg>", media), None)
    else:
        assert (await words_of(page("<b>x</b>", media), None)).text == "<b>x</b>"


@pytest.mark.parametrize(
    "media", ["application/pdf", "image/png", "application/octet-stream", "video/mp4", "\u202egnp"]
)
async def test_what_is_no_text_is_refused(media: str) -> None:
    with pytest.raises(ToolFailed, match="not text"):
        await words_of(page(b"%PDF", media), None)


async def test_plain_text_has_no_parts() -> None:
    with pytest.raises(ToolRetry, match="without a selector"):
        await words_of(page("x", "text/plain"), "p")


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("\u00fc".encode(), "", "\u00fc"),
        ("\u00fc".encode("latin-1"), "ISO-8859-1", "\u00fc"),
        ("<meta charset='windows-1251'>\u0416".encode("cp1251"), "", "<meta charset='windows-1251'>\u0416"),
        ("\u4f60".encode("gbk"), "gb2312", "\u4f60"),
        (b"\xff", "utf-8", "\ufffd"),
        (b"x", "no-such-thing", "x"),
        (b"x" * 10, "zlib", "x" * 10),
        (b"+AGE-", "utf-7", "+AGE-"),
        (b"\\x41", "unicode_escape", "\\x41"),
        (b"x", "iso-8859-99", "x"),
    ],
)
def test_characters(body: bytes, charset: str, text: str) -> None:
    assert decode_page(page(body, charset=charset)) == text
