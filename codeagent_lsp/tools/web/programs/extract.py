"""A program that extracts a page's title and readable text, as Markdown without scripts or embedded content.

It reads `{"html", "url", "selector"?}` as JSON from standard input and writes `{"title", "text", "hidden", "thin",
"found"}`. `hidden` counts parts that are not shown to people, `thin` is true if scripts probably build the page,
`found` counts the parts that match the selector. It imports nothing of this package.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any
from urllib.parse import urljoin

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
    """Answer one request."""
    question = json.load(sys.stdin)
    try:
        answer = read(question["html"], question["url"], question.get("selector"))
    except ImportError as error:
        answer = {"missing": error.name or "a library"}
    except RecursionError:
        answer = {"problem": "The page is nested too deeply to be read.", "code": "PARSE_ERROR"}
    json.dump(answer, sys.stdout)


def read(html: str, url: str, selector: str | None) -> dict[str, Any]:
    """Return the answer for one page."""
    import soupsieve  # late, as all here: a missing library is an answer, not a crash
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "lxml")
    scripts = len(soup.find_all("script"))
    hidden = _cleaned(soup)
    title = " ".join(soup.title.get_text(" ").split())[:MAX_TITLE] if soup.title else ""
    _resolved(soup, url)
    try:
        parts = soup.select(selector, limit=MAX_PARTS) if selector else []
    except soupsieve.SelectorSyntaxError:
        return {"problem": f"The selector is not valid CSS: {selector!r}", "code": "INVALID_PARAM"}
    text = "\n\n".join(map(_markdown, map(str, parts))) if selector else _main_text(soup)
    whole = len(" ".join(soup.get_text(" ").split()))
    thin = scripts > 0 and (whole < THIN or bool(selector and not parts))
    return {"title": title, "text": text, "hidden": hidden, "thin": thin, "found": len(parts)}


def _cleaned(soup: Any) -> int:
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


def _resolved(soup: Any, url: str) -> None:
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


if __name__ == "__main__":
    main()
