"""The names of copies that editors and tools leave beside a file: `a.py~`, `~a.py`, `#a.py#`, `.#a.py`, `a.py.~1~`.

The name of the file is a part of each, so a search for it finds the copy as well. Not here: which file a name in a text
means (`agent/context/gather.py`, `direct/answer.py`).
"""

from __future__ import annotations

import re

_FILE_NAME = r"[\w.-]*\w\.[A-Za-z0-9]{1,10}"
COPY = re.compile(
    rf"(?<![\w./\\~#-])(?:[\w./\\-]*[/\\])?(?:~\$?{_FILE_NAME}|\.#{_FILE_NAME}|#{_FILE_NAME}#|{_FILE_NAME}(?:\.?~(?:\d+~)?|,v\b|;\d+))"
    r"(?![\w/\\-])"
)
"""Matches the path of a copy within a text."""


def is_copy(path: str) -> bool:
    """Return whether a path is that of a backup or lock file of an editor or tool, such as `a.py~` or `.#a.py`, by its
    name alone.
    """
    return COPY.fullmatch(path) is not None
