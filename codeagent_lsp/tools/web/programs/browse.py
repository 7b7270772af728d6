"""Opens one page in a real browser and gives what its scripts made of it.

A program of its own: it takes `{"url", "host", "browser", "proxy", "user", "token", "seconds", "selector"?, "sandbox"}`
as JSON on standard input and answers `{"html", "url"}`. The browser resolves no name and opens no connection of its
own: all it asks for goes through the proxy. It imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

MAX_HTML = 5 << 20
_QUIET_SECONDS = 5.0
_HEAVY = ("image", "media", "font")
_ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--js-flags=--max-old-space-size=512",
)


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    try:
        answer = browse(question)
    except ImportError as error:
        answer = {"missing": error.name or "playwright"}
    json.dump(answer, sys.stdout)


def browse(question: dict[str, Any]) -> dict[str, Any]:
    """The page once its scripts have rested, or why there is none."""
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
            page.route("**/*", lambda route: _routed(route, question["host"]))
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
    """Wait for what was asked for, or until nothing more comes; a page that never rests is taken as it is."""
    from playwright.sync_api import Error  # late, see above

    patience = _QUIET_SECONDS * 1000
    with suppress(Error):
        page.wait_for_load_state("domcontentloaded", timeout=2 * patience)
    with suppress(Error):
        if selector:
            page.wait_for_selector(selector, timeout=patience, state="attached")
    with suppress(Error):
        page.wait_for_load_state("networkidle", timeout=patience)


def _routed(route: Any, host: str) -> None:
    """Nothing heavy, and no going away to another site."""
    request = route.request
    leaving = request.is_navigation_request() and request.frame.parent_frame is None and _host(request.url) != host
    if leaving or request.resource_type in _HEAVY:
        route.abort("aborted")  # as if the user had stopped it: what is shown stays
    else:
        route.continue_()


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


if __name__ == "__main__":
    main()
