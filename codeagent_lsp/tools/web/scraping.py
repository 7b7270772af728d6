"""Reading of one web page for a model: fetched, and opened in a browser if scripts build it.

Not here: permission (`tools/permissions/policy.py`), the cache (`cache.py`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.system import is_superuser
from codeagent_lsp.tools.web.child import USER, CheckingProxy, Program, answer_of
from codeagent_lsp.tools.web.dialing import Dialer
from codeagent_lsp.tools.web.http import Fetcher, Page
from codeagent_lsp.tools.web.urls import Target, WebRefused, covers, on_usual_port
from codeagent_lsp.workspace.text.visible import one_line

EXTRACT = Program("extract", "Reading the page", 20.0)

_HTML = ("text/html", "application/xhtml+xml")
_PLAIN = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|x-ndjson)|")
# Python's codecs have more names, some of which are no charsets of pages (`punycode`, `unicode_escape`).
_CHARSETS = re.compile(
    r"utf-?8|utf-?16(?:le|be)?|us-ascii|latin-?1|iso-?8859-\d{1,2}|windows-125\d|cp125\d|koi8-[ru]"
    r"|shift[_-]jis|euc-(?:jp|kr)|gb2312|gbk|gb18030|big5",
    re.IGNORECASE,
)
_META = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([A-Za-z0-9_-]{1,40})", re.IGNORECASE)
_HEAD = 4096


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's text as Markdown. `hidden` counts omitted parts that people do not see; `thin`: scripts probably build
    the page; `found` counts the parts that match the selector.
    """

    title: str
    text: str
    hidden: int = 0
    thin: bool = False
    found: int = 0


def is_html(page: Page) -> bool:
    """Return whether the page is HTML, so that a selector can be applied, by its media type alone."""
    return page.media in _HTML


async def words_of(page: Page, selector: str | None) -> PageText:
    """Return the text of a page, of HTML the main part or what a CSS `selector` finds. ToolRetry for a selector on
    plain text, ToolFailed for another kind of file, or as of `words_of_html`.
    """
    if is_html(page):
        return await words_of_html(decode_page(page), page.target.url, selector)
    if not _PLAIN.fullmatch(page.media):
        media = one_line(page.media, 80)
        raise ToolFailed(f"{page.target.url} is {media}, not text that could be read.", ErrorCode.PARSE_ERROR)
    if selector:
        raise ToolRetry(f"{page.target.url} is plain text; call web_scrape without a selector.")
    return PageText("", decode_page(page))


async def words_of_html(html: str, url: str, selector: str | None) -> PageText:
    """Return the main part of an HTML document from `url` as Markdown, or what a CSS `selector` finds ('' or None: the
    main part; empty text if it finds nothing); in a child process, within 20 s. ToolFailed if that fails, or for an
    invalid selector.
    """
    answer = await answer_of(EXTRACT, {"html": html, "url": url, "selector": selector})
    return PageText(str(answer["title"]), str(answer["text"]), answer["hidden"], answer["thin"], answer["found"])


def decode_page(page: Page) -> str:
    """Return the text of a page, decoded by the charset of its server, else of its `<meta>` element, else as UTF-8.
    Never raises: bytes that do not fit are replaced.
    """
    declared = _META.search(page.body[:_HEAD]) if is_html(page) else None
    named = page.charset or (declared[1].decode("ascii") if declared else "")
    charset = named if _CHARSETS.fullmatch(named) else "utf-8"
    try:
        return page.body.decode(charset, "replace")
    except LookupError:
        return page.body.decode("utf-8", "replace")


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSE = Program("browse", "Opening the page in a browser", 45.0, memory=2 << 30, processes=256)
PAGE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Web:
    """The network access of the tools. `path` is the PATH on which a browser is searched."""

    fetcher: Fetcher = field(default_factory=lambda: Fetcher(Dialer()))
    path: str = field(default_factory=lambda: os.environ.get("PATH", ""))

    @classmethod
    def over(cls, network: NetworkSettings) -> Web:
        """Return an access that connects by these settings, with their proxy and certificates. Nothing is connected
        yet.
        """
        return cls(Fetcher(Dialer(network=network)))


@dataclass(frozen=True, slots=True)
class Scraped:
    """A page that was read. `notes` are sentences for the reader on how, such as that it was opened in a browser."""

    url: str
    words: PageText
    notes: tuple[str, ...] = ()


async def scrape_page(
    web: Web,
    target: Target,
    selector: str | None,
    *,
    allowed_hosts: Iterable[str] = (),
    folders: Iterable[str] = (),
    opening: Callable[[], None] = lambda: None,
) -> Scraped:
    """Fetch a page and return its text, after opening it in a browser if scripts build it; `opening` is called before
    that, as it takes seconds. ToolFailed if it cannot be read, WebRefused if it may not, ToolRetry for a wrong
    selector.
    """
    if not on_usual_port(target) and not covers(allowed_hosts, target):
        raise WebRefused(f"{target.authority} is not on a usual port; the user can add it to web.allowedHosts.")
    page = await web.fetcher.get(target)
    words = await words_of(page, selector)
    notes = ["the page is longer than what is read"] if page.cut else []
    if is_html(page) and words.thin:
        opening()
        words, note = await _with_scripts(web, page, selector, words, folders)
        notes.append(note)
    if words.hidden:
        notes.append(f"{words.hidden} parts that the page hides from people are left out")
    if selector and not words.found:
        raise ToolFailed(f"Nothing in {page.target.url} matches {selector!r}{_because(notes)}.", ErrorCode.NOT_FOUND)
    return Scraped(page.target.url, words, tuple(notes))


async def _with_scripts(
    web: Web, page: Page, selector: str | None, words: PageText, folders: Iterable[str]
) -> tuple[PageText, str]:
    """Return the text after scripts have run, else the given one, and a note about which it is."""
    try:
        html = await browse_page(browser_of(web.path, folders), page.target, selector, web.fetcher.dialer)
        return await words_of_html(html, page.target.url, selector), "read in a browser, its scripts have run"
    except ToolFailed as error:
        return words, f"its scripts, which write the page, have not run: {error}"


def _because(notes: Iterable[str]) -> str:
    said = "; ".join(notes)
    return f" ({said})" if said else ""


# Rendering of a page in a real browser, for pages built by scripts; each page gets a browser of its own.


def browser_of(path: str, folders: Iterable[str] = ()) -> str | None:
    """Return the path of a Chromium or Chrome program on `path` (a PATH value), None if there is none. Relative entries
    and those inside `folders` (the workspace) are ignored. Blocks.
    """
    inside = tuple(f"{folder}{os.sep}" for folder in folders)
    entries = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
    outside = os.pathsep.join(entry for entry in entries if not f"{entry}{os.sep}".startswith(inside))
    return next(filter(None, (shutil.which(name, path=outside) for name in NAMES)), None) if outside else None


async def browse_page(program: str | None, target: Target, selector: str | None, dialer: Dialer) -> str:
    """Return the HTML of the page after its scripts have run in the browser `program`, within 20 s for each step.
    ToolFailed if there is no browser or it fails.
    """
    if program is None:
        raise ToolFailed("no Chromium is installed here", ErrorCode.NOT_FOUND)
    async with CheckingProxy(dialer) as proxy:
        question = {
            "url": target.url,
            "host": target.host.removeprefix("www."),
            "browser": program,
            "proxy": proxy.address,
            "user": USER,
            "token": proxy.token,
            "seconds": PAGE_SECONDS,
            "selector": selector,
            "sandbox": not is_superuser(),  # Chromium's own does not start for the superuser
        }
        return str((await answer_of(BROWSE, question))["html"])
