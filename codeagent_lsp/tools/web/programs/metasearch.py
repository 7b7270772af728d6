"""A program that queries several search engines at once, with a library that needs no key.

It reads `{"query", "most", "pages", "seconds", "proxy"}` as JSON from standard input and writes `{"results": [{"title",
"url", "text"}]}`. All requests go through the proxy. It imports nothing of this package.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer one request."""
    question = json.load(sys.stdin)
    try:
        answer = search(question)
    except ImportError as error:
        answer = {"missing": error.name or "ddgs"}
    json.dump(answer, sys.stdout)


def search(question: dict[str, Any]) -> dict[str, Any]:
    """Return the results of all pages, each address once."""
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
