"""A program that answers one request, with libraries that read what strangers wrote: a page shown by a browser, the
words of a page, the results of search engines. It imports nothing of this package.

`python programs.py NAME` reads the request as JSON from standard input and writes the answer, `{"missing"}` without its
library, or `{"problem", "code"}`:
`browse`: `{"url", "host", "browser", "proxy", "user", "token", "seconds", "selector"?, "sandbox"}` → `{"html", "url"}`,
the HTML once its scripts have run. The browser resolves no name and opens no connection itself: all goes through the
proxy.
`extract`: `{"html", "url", "selector"?}` → `{"title", "text", "hidden", "thin", "found"}`, as Markdown without scripts
or embedded content. `hidden` counts parts that are not shown to people, `thin` is true if scripts probably build the
page, `found` counts the parts that match the selector.
`metasearch`: `{"query", "most", "pages", "seconds", "proxy"}` → `{"results": [{"title", "url", "text"}]}`, of several
search engines at once, with a library that needs no key; all requests go through the proxy.

Not here: starting it, and what it may do (`child.py`).
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin, urlsplit

MAX_HTML = 5 << 20
_QUIET_SECONDS = 5.0
_HEAVY = ("image", "media", "font")
_ARGUMENTS = (
    # Chromium would else look names up itself, past the proxy that checks them.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    # By default, addresses of this machine are reached without the proxy.
    "--proxy-bypass-list=<-loopback>",
    # UDP does not go through the proxy: none for WebRTC, none for QUIC.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--dns-prefetch-disable",
    "--no-pings",
    # In containers /dev/shm is often too small for it.
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--js-flags=--max-old-space-size=512",
)
MAX_TITLE = 300
MAX_PARTS = 200
THIN = 200
_DROPPED = (
    "script",
    "style",
    "template",
    "iframe",
    "object",
    "embed",
    "svg",
    "canvas",
    "video",
    "audio",
    "link",
    "meta",
)
# Styles by which a page hides words from people, such as `display: none` or `left: -9999px`.
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|(?:^|;)\s*opacity\s*:\s*0*(?:\.0+)?\s*(?:;|$)"
    r"|font-size\s*:\s*0|(?:text-indent|left|top)\s*:\s*-\d{3,}|clip-path\s*:\s*inset\(\s*(?:50|100)%",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"\n{3,}")


def main() -> None:
    """Read one request from standard input and write its answer to standard output, as JSON; a problem is an answer,
    too. `sys.argv[1]` names the work: `browse`, `extract`, `metasearch`.
    """
    question = json.load(sys.stdin)
    try:
        match sys.argv[1]:
            case "browse":
                answer = browse(question)
            case "extract":
                answer = read(question["html"], question["url"], question.get("selector"))
            case _:
                answer = metasearch(question)
    except ImportError as error:
        answer = {"missing": error.name or "a library"}
    except RecursionError:
        answer = {"problem": "The page is nested too deeply to be read.", "code": "PARSE_ERROR"}
    json.dump(answer, sys.stdout)


def browse(question: dict[str, Any]) -> dict[str, Any]:
    """Open the page `url` of `question` in a browser and return `{"html", "url"}` once its scripts are quiet, the HTML
    cut to 5 MiB of characters. It is taken as it is after 5 s without quiet; `{"problem", "code"}` if it leads to
    another site or the browser fails. `question` also has `browser` (the program's path), `sandbox`, `host`, `seconds`,
    `proxy` with `user` and `token`, and perhaps `selector`.
    """
    from playwright.sync_api import Error, sync_playwright  # late: a missing library is an answer, not a crash

    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=question["browser"],
                chromium_sandbox=question["sandbox"],
                args=list(_ARGUMENTS),
                proxy={"server": question["proxy"], "username": question["user"], "password": question["token"]},
                timeout=15_000,
            )
            context = browser.new_context(service_workers="block", accept_downloads=False)
            context.set_default_timeout(question["seconds"] * 1000)
            page = context.new_page()
            page.route("**/*", lambda route: _route(route, question["host"]))
            page.goto(question["url"], wait_until="commit")
            _settle(page, question.get("selector"))
            if _host(page.url) != question["host"]:
                return {"problem": f"The page leads to another site: {page.url[:300]}", "code": "NOT_FOUND"}
            return {"html": page.content()[:MAX_HTML], "url": page.url}
    except Error as error:
        return {
            "problem": f"The browser could not show the page: {str(error).splitlines()[0]}",
            "code": "NETWORK_ERROR",
        }


def _settle(page: Any, selector: str | None) -> None:
    """Wait for the selector or for network silence, each with a time limit after which the page is taken as it is."""
    from playwright.sync_api import Error  # late, see above

    patience = _QUIET_SECONDS * 1000
    with suppress(Error):
        page.wait_for_load_state("domcontentloaded", timeout=2 * patience)
    with suppress(Error):
        if selector:
            page.wait_for_selector(selector, timeout=patience, state="attached")
    with suppress(Error):
        page.wait_for_load_state("networkidle", timeout=patience)


def _route(route: Any, host: str) -> None:
    """Abort requests for heavy resources and navigation to another site; let all others pass."""
    request = route.request
    leaving = request.is_navigation_request() and request.frame.parent_frame is None and _host(request.url) != host
    if leaving or request.resource_type in _HEAVY:
        route.abort("aborted")  # as if the user had stopped it: what is shown stays
    else:
        route.continue_()


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def read(html: str, url: str, selector: str | None) -> dict[str, Any]:
    """Return `title`, `text` (Markdown of the main part, or of what a CSS selector matches), `hidden`, `thin` and
    `found`, as in `PageText`; or a `problem` for an invalid selector.
    """
    import soupsieve  # late, as all here: a missing library is an answer, not a crash
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "lxml")
    scripts = len(soup.find_all("script"))
    hidden = _clean(soup)
    title = " ".join(soup.title.get_text(" ").split())[:MAX_TITLE] if soup.title else ""
    _resolve_links(soup, url)
    try:
        parts = soup.select(selector, limit=MAX_PARTS) if selector else []
    except soupsieve.SelectorSyntaxError:
        return {"problem": f"The selector is not valid CSS: {selector!r}", "code": "INVALID_PARAM"}
    text = "\n\n".join(map(_markdown, map(str, parts))) if selector else _main_text(soup)
    whole = len(" ".join(soup.get_text(" ").split()))
    thin = scripts > 0 and (whole < THIN or bool(selector and not parts))
    return {"title": title, "text": text, "hidden": hidden, "thin": thin, "found": len(parts)}


def _clean(soup: Any) -> int:
    """Remove parts that are not for readers and return how many hidden parts with text there were."""
    from bs4 import Comment  # late, see above

    for part in soup.find_all(string=lambda text: isinstance(text, Comment)):
        part.extract()
    for part in soup.find_all(_DROPPED):
        part.decompose()
    hidden = [part for part in soup.find_all(True) if _is_hidden(part)]
    words = sum(1 for part in hidden if part.get_text(strip=True))
    for part in hidden:
        if not part.decomposed:
            part.decompose()
    return words


def _is_hidden(part: Any) -> bool:
    return part.name == "noscript" or part.has_attr("hidden") or bool(_UNSEEN.search(str(part.get("style", ""))))


def _resolve_links(soup: Any, url: str) -> None:
    """Make links absolute web addresses or remove them; replace pictures by their alternative text."""
    for link in soup.find_all("a"):
        there = _whole(url, str(link.get("href", "")))
        link.attrs = {"href": there} if there else {}
    for picture in soup.find_all(["img", "picture", "source"]):
        words = str(picture.get("alt", "")).strip()
        picture.replace_with(f"[picture: {words}]" if words else "")


def _whole(url: str, link: str) -> str:
    try:
        there = urljoin(url, link.strip())
    except ValueError:
        return ""
    return there if there.lower().startswith(("https://", "http://")) else ""


def _main_text(soup: Any) -> str:
    """Return the main text of the page; the whole text if that looks too short."""
    from readability import Document  # late, see above
    from readability.readability import Unparseable

    everything = soup.body or soup
    try:
        found = _markdown(Document(str(soup)).summary(html_partial=True))
    except (Unparseable, ValueError):
        found = ""
    length = len(" ".join(everything.get_text(" ").split()))
    return found if len(found) > max(THIN, length // 4) else _markdown(str(everything))


def _markdown(html: str) -> str:
    from markdownify import markdownify  # late, see above

    text = markdownify(html, heading_style="ATX", bullets="-", strip=["img", "input", "button", "form"])
    return _BLANKS.sub("\n\n", "\n".join(line.rstrip() for line in text.splitlines())).strip()


def metasearch(question: dict[str, Any]) -> dict[str, Any]:
    """Ask search engines by the `query`, `pages`, `most` (results), `seconds` and `proxy` of `question` and return
    `{"results"}`, rows with `title`, `url` and `text`, each address once; `{"problem", "code"}` if no engine answers.
    """
    from ddgs import DDGS  # late: a missing library is an answer, not a crash
    from ddgs.exceptions import DDGSException

    engines = DDGS(proxy=question["proxy"], timeout=question["seconds"])
    found: dict[str, dict[str, str]] = {}
    try:
        for page in range(1, question["pages"] + 1):
            for item in engines.text(question["query"], max_results=question["most"], page=page):
                url = str(item.get("href", ""))
                found.setdefault(
                    url, {"title": str(item.get("title", "")), "url": url, "text": str(item.get("body", ""))}
                )
    except DDGSException as error:
        if not found:
            return _nothing(str(error))
    return {"results": list(found.values())[: question["most"]]}


def _nothing(reason: str) -> dict[str, Any]:
    if "No results" in reason:
        return {"results": []}
    return {"problem": f"No search engine answered: {' '.join(reason.split())[:200]}", "code": "NETWORK_ERROR"}


if __name__ == "__main__":
    main()
