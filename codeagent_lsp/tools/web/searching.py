"""Web search: by a search service with a key, else by several engines without one.

The key is sent to its service in a header and nowhere else. Not here: permission, the cache, how results are shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from codeagent_lsp.config import WebSettings
from codeagent_lsp.errors import ErrorCode, ReplyUnreadable, ToolFailed
from codeagent_lsp.tools.web.child import USER, CheckingProxy, Program, answer_of
from codeagent_lsp.tools.web.http import Fetcher
from codeagent_lsp.tools.web.urls import BadUrl, parse_url
from codeagent_lsp.workspace.text.visible import one_line

Depth = Literal["basic", "advanced"]
METASEARCH = Program("metasearch", "Searching", 40.0)
TAVILY = "https://api.tavily.com/search"

_TAVILY_MOST = 20
_ENGINE_SECONDS = 8
_MAX_TITLE, _MAX_TEXT = 200, 2000


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search request; `most` is the number of results, 1 to 50. Results are of the domains in `only`, if there are
    any, and of none in `without`; a domain includes those below it.
    """

    query: str
    most: int
    depth: Depth
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def admits(self, host: str) -> bool:
        """Return whether results of a host are wanted, by `only` and `without`."""
        return not _below(host, self.without) and (not self.only or _below(host, self.only))


@dataclass(frozen=True, slots=True)
class Result:
    """One result of a search: its title, its address and an excerpt. Untrusted text: invisible characters are escaped,
    and long text is cut.
    """

    title: str
    url: str
    text: str


def provider_of(settings: WebSettings) -> Literal["tavily", "metasearch"]:
    """Return the search provider to use: the one of the settings, else `tavily` if there is a key for it, else
    `metasearch`. ToolFailed if the settings name `tavily` without a key.
    """
    if settings.search_provider == "metasearch":
        return "metasearch"
    if settings.search_api_key:
        return "tavily"
    if settings.search_provider == "tavily":
        message = "web.searchProvider is tavily, but it has no key: the user can set TAVILY_API_KEY."
        raise ToolFailed(message, ErrorCode.NOT_FOUND)
    return "metasearch"


async def search_web(wanted: SearchRequest, settings: WebSettings, fetcher: Fetcher) -> tuple[Result, ...]:
    """Search and return the results, best first, at most `most`; () if nothing was found. The query leaves this
    machine. ToolFailed if no provider answers.
    """
    if provider_of(settings) == "tavily":
        rows = await _by_tavily(wanted, settings.search_api_key or "", fetcher)
    else:
        rows = await _by_metasearch(wanted, fetcher)
    # judged here as well, since engines take `site:` as a wish
    return tuple(result for result in _results(rows) if wanted.admits(parse_url(result.url).host))[: wanted.most]


async def _by_tavily(wanted: SearchRequest, key: str, fetcher: Fetcher) -> Iterable[Mapping[str, Any]]:
    question: dict[str, Any] = {
        "query": wanted.query,
        "max_results": min(wanted.most, _TAVILY_MOST),
        "search_depth": wanted.depth,
    }
    domains = {"include_domains": wanted.only, "exclude_domains": wanted.without}
    question |= {name: list(value) for name, value in domains.items() if value}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    page = await fetcher.post(parse_url(TAVILY), json.dumps(question).encode(), headers)
    try:
        rows = json.loads(page.body)["results"]
    except (ValueError, LookupError, TypeError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise ReplyUnreadable("The search service gave an answer that cannot be read.")
    return [{**row, "text": row.get("content", "")} for row in rows if isinstance(row, dict)]


async def _by_metasearch(wanted: SearchRequest, fetcher: Fetcher) -> Iterable[Mapping[str, Any]]:
    async with CheckingProxy(fetcher.dialer) as proxy:
        question = {
            "query": _with_sites(wanted),
            "most": wanted.most,
            "pages": 2 if wanted.depth == "advanced" else 1,
            "seconds": _ENGINE_SECONDS,
            "proxy": proxy.address.replace("http://", f"http://{USER}:{proxy.token}@"),
        }
        answer = await answer_of(METASEARCH, question)
    rows = answer.get("results")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _with_sites(wanted: SearchRequest) -> str:
    """Return the query with the domains as search engines read them."""
    only = " OR ".join(f"site:{domain}" for domain in map(_domain, wanted.only))
    without = "".join(f" -site:{domain}" for domain in map(_domain, wanted.without))
    return f"{wanted.query}{f' ({only})' if only else ''}{without}"


def _below(host: str, domains: Iterable[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in map(_domain, domains))


def _domain(spelt: str) -> str:
    """Return the host of a domain as it may be written: `https://Example.org/`, `*.example.org`."""
    return spelt.strip().lower().rpartition("//")[2].partition("/")[0].removeprefix("*.").removeprefix("www.")


def _results(rows: Iterable[Mapping[str, Any]]) -> Iterable[Result]:
    """Yield the results with a valid address, normalised."""
    for row in rows:
        try:
            url = parse_url(str(row.get("url", ""))).url
        except BadUrl:
            continue
        yield Result(
            one_line(str(row.get("title", "")), _MAX_TITLE), url, one_line(str(row.get("text", "")), _MAX_TEXT)
        )
