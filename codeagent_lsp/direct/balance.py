"""Brackets and elements of markup that lose the other one of their pair, in languages without a grammar here.

Only kinds that were all in pairs before are judged. Pure functions. Not here: languages with a grammar, and data
(`definitions.py`).
"""

from __future__ import annotations

import re
from collections import Counter

MARKUP = (".html", ".htm", ".xml", ".vue", ".svg")
"""Endings of files whose elements are looked at."""

_STRINGS = r'"""(?:.|\n)*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*(?:.|\n)*?\*/'
_BRACKETED = {
    (".css",): re.compile(_STRINGS),
    (".sql",): re.compile(rf"{_STRINGS}|--[^\n]*"),
    (".kt", ".kts", ".swift", ".scala", ".sc", ".proto"): re.compile(rf"{_STRINGS}|//[^\n]*"),
}
"""Endings of files in whose code each bracket has another one, and what is no code there."""
_UNCLEAR = re.compile(r"\$\{[^}\"\n]*\"|\\\([^)\"\n]*\"|\$\$|\\'")  # quotes within quotes
_TEMPLATE = re.compile(r"\{\{[#/^]|\{%|\{[#:/]|<%|<\?php")
_WITHOUT_END = frozenset(
    "p li td th tr option optgroup dt dd thead tbody tfoot colgroup caption html head body rt rp".split()  # noqa: SIM905
)
"""Elements of HTML whose end may be left out."""
_NO_MARKUP = re.compile(
    r"<!--(?:.|\n)*?-->|<!\[CDATA\[(?:.|\n)*?\]\]>|<(script|style|textarea)\b(?:.|\n)*?</\1>|<[!?][^>]*>"
)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)(?:\s(?:\"[^\"]*\"|'[^']*'|[^<>\"'])*?)?(/?)>")
_MOST_SKIPPED = 100
"""Scripts, styles and comments of a text; the end of each may be looked for up to the end of the text."""


def lost_partner(path: str, before: str, after: str) -> str:
    """Return which bracket or element of markup stands alone in `after`, in English, where none of its kind did in
    `before`; '' for none, and for files of other kinds and texts in which it cannot be told.
    """
    if path.endswith(MARKUP):
        return "" if _TEMPLATE.search(after) else _lost_tag(path, before, after)
    said = next((pattern for endings, pattern in _BRACKETED.items() if path.endswith(endings)), None)
    if said is None or _UNCLEAR.search(after):
        return ""
    old, new = (Counter(said.sub("", text)) for text in (before, after))
    for opening, closing in ("{}", "()", "[]"):
        if old[opening] == old[closing] and new[opening] != new[closing]:
            lone, missing = (opening, closing) if new[opening] > new[closing] else (closing, opening)
            return f"a `{lone}` has no `{missing}`"
    return ""


def _lost_tag(path: str, before: str, after: str) -> str:
    """Return which element, all of which had an end, has one no more."""
    html = path.endswith((".html", ".htm"))
    old, new = (_tags(text.lower() if html else text) for text in (before, after))
    for name in old:
        if old[name] == 0 != new.get(name, 0) and not (html and name in _WITHOUT_END):
            return f"a `<{'/' if new[name] < 0 else ''}{name}>` stands alone"
    return ""


def _tags(text: str) -> dict[str, int]:
    """Return the names of the elements of a text with how many more begin than end."""
    found: dict[str, int] = {}
    if text.count("<script") + text.count("<style") + text.count("<!--") > _MOST_SKIPPED:
        return found
    for end, name, closed in _TAG.findall(_NO_MARKUP.sub("", text)):
        if not closed:
            found[name] = found.get(name, 0) + (-1 if end else 1)
    return found
