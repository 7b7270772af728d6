"""Reading of one web page for a model: fetched, and opened in a browser if scripts build it.

Not here: permission (`tools/permissions/policy.py`), the cache (`cache.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.web.browser import browsed, browser_of
from codeagent_lsp.tools.web.dialing import Dialer
from codeagent_lsp.tools.web.http import Fetcher, Page
from codeagent_lsp.tools.web.problems import WebRefused
from codeagent_lsp.tools.web.reading import PageText, is_html, words_of, words_of_html
from codeagent_lsp.tools.web.urls import Target, covers, on_usual_port


@dataclass(frozen=True, slots=True)
class Web:
    """The network access of the tools. `path` is the PATH on which a browser is searched."""

    fetcher: Fetcher = field(default_factory=lambda: Fetcher(Dialer()))
    path: str = field(default_factory=lambda: os.environ.get("PATH", ""))

    @classmethod
    def over(cls, network: NetworkSettings) -> Web:
        """Return the access by these settings."""
        return cls(Fetcher(Dialer(network=network)))


@dataclass(frozen=True, slots=True)
class Scraped:
    """A page that was read. `notes` tell the reader how."""

    url: str
    words: PageText
    notes: tuple[str, ...] = ()


async def scraped(
    web: Web,
    target: Target,
    selector: str | None,
    *,
    allowed_hosts: Iterable[str] = (),
    folders: Iterable[str] = (),
    opening: Callable[[], None] = lambda: None,
) -> Scraped:
    """Return the page's text. `opening` is called before a browser is opened, which takes seconds. ToolFailed,
    ToolRetry.
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
        raise ToolFailed(f"Nothing in {page.target.url} matches {selector!r}{_because(notes)}.")
    return Scraped(page.target.url, words, tuple(notes))


async def _with_scripts(
    web: Web, page: Page, selector: str | None, words: PageText, folders: Iterable[str]
) -> tuple[PageText, str]:
    """Return the text after scripts have run, else the given one, and a note about which it is."""
    try:
        html = await browsed(browser_of(web.path, folders), page.target, selector, web.fetcher.dialer)
        return await words_of_html(html, page.target.url, selector), "read in a browser, its scripts have run"
    except ToolFailed as error:
        return words, f"its scripts, which write the page, have not run: {error}"


def _because(notes: Iterable[str]) -> str:
    said = "; ".join(notes)
    return f" ({said})" if said else ""
