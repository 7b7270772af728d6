"""Extraction of a page's text for the model, in a process of its own.

Not here: fetching (`http.py`), showing (`showing.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.tools.web.child import Program, answer_of
from codeagent_lsp.tools.web.http import Page
from codeagent_lsp.workspace.text.visible import one_line

EXTRACT = Program("extract", "Reading the page", 20.0)

_HTML = ("text/html", "application/xhtml+xml")
_PLAIN = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|x-ndjson)|")
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
    """Return whether the page is HTML, so that a selector can be applied."""
    return page.media in _HTML


async def words_of(page: Page, selector: str | None) -> PageText:
    """Return the text of a page. ToolRetry or ToolFailed if it has none that can be read."""
    if is_html(page):
        return await words_of_html(decoded(page), page.target.url, selector)
    if not _PLAIN.fullmatch(page.media):
        media = one_line(page.media, 80)
        raise ToolFailed(f"{page.target.url} is {media}, not text that could be read.", ErrorCode.PARSE_ERROR)
    if selector:
        raise ToolRetry(f"{page.target.url} is plain text; call web_scrape without a selector.")
    return PageText("", decoded(page))


async def words_of_html(html: str, url: str, selector: str | None) -> PageText:
    """Return the text of an HTML document."""
    answer = await answer_of(EXTRACT, {"html": html, "url": url, "selector": selector})
    return PageText(str(answer["title"]), str(answer["text"]), answer["hidden"], answer["thin"], answer["found"])


def decoded(page: Page) -> str:
    """Return the text of a page, decoded by the charset of its server, else of its `<meta>` element, else as UTF-8."""
    declared = _META.search(page.body[:_HEAD]) if is_html(page) else None
    named = page.charset or (declared[1].decode("ascii") if declared else "")
    charset = named if _CHARSETS.fullmatch(named) else "utf-8"
    try:
        return page.body.decode(charset, "replace")
    except LookupError:
        return page.body.decode("utf-8", "replace")
