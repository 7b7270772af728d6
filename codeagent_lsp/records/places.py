"""Shortening of paths in records: the home folder becomes `~`, a deep path keeps its ends. URLs are kept.

Only for records, never for a model, which has to use the paths it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

DEEP = 8

_END = r"(?=[\\/\s\"'`:,;)\]}>]|$)"
_HOMES = re.compile(
    rf"/(?<![\w.~-]/)(?:home|Users|(?:var|export)/home|mnt/[a-z]/Users)/(?!Shared\b)[\w.@-]{{1,64}}+{_END}"
)
_WINDOWS_HOMES = re.compile(
    r":(?<=[A-Za-z]:)(?:\\{1,8}|/)(?:Users|Documents and Settings)(?:\\{1,8}|/)[^\\/:*?\"<>|\s]{1,64}" + _END
)
_PART = r"(?=[\w.~@…])[\w.@~…%-]{1,64}"
_LONG = re.compile(rf"/(?<![^\s\"'`=(\[{{,>~:.]/){_PART}(?:/{_PART}){{{DEEP},64}}+")
_LONG_WINDOWS = re.compile(rf":(?P<slash>\\{{1,8}}){_PART}(?:(?P=slash){_PART}){{{DEEP},64}}")


class Paths:
    """Shortens paths; `homes` are folders to be written as `~` besides the usual ones."""

    def __init__(self, homes: Iterable[str] = ()) -> None:
        known = sorted({home.rstrip("/\\") for home in homes if len(home.rstrip("/\\")) > 2}, key=len, reverse=True)
        self._own = [re.compile(rf"{re.escape(home)}(?<![\w.~-]{re.escape(home)}){_END}") for home in known]

    def shorten(self, text: str) -> str:
        """Return `text` with homes as `~` and deep paths as `/first/two/…/the/last/three`."""
        if "/" not in text and "\\" not in text:
            return text
        for own in self._own:
            text = own.sub("~", text)
        text = _LONG.sub(lambda match: _ends(match[0], "/"), _HOMES.sub("~", text))
        if "\\" in text or ":/" in text:
            text = _WINDOWS_HOMES.sub(":~", text)
            text = _LONG_WINDOWS.sub(lambda match: ":" + _ends(match[0][1:], match["slash"]), text)
        return text


def _ends(path: str, slash: str) -> str:
    parts = path.split(slash)[1:]
    if not any(part[:1].isalpha() for part in parts[:2]):
        return path
    return slash + slash.join((*parts[:2], "…", *parts[-3:]))
