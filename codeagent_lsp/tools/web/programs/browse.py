"""A program that renders one page in a real browser and returns the resulting HTML.

It reads `{"url", "host", "browser", "proxy", "user", "token", "seconds", "selector"?, "sandbox"}` as JSON from standard
input and writes `{"html", "url"}`. The browser resolves no name and opens no connection itself: all requests go through
the proxy. It imports nothing of this package; playwright is imported late.
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


def main() -> None:
    """Answer one request."""
    question = json.load(sys.stdin)
    try:
        answer = browse(question)
    except ImportError as error:
        answer = {"missing": error.name or "playwright"}
    json.dump(answer, sys.stdout)


def browse(question: dict[str, Any]) -> dict[str, Any]:
    """Return the page after its scripts have finished, or a problem."""
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


def _routed(route: Any, host: str) -> None:
    """Abort requests for heavy resources and navigation to another site; let all others pass."""
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
