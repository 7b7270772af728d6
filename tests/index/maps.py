"""Reads the text of a repo map. Not here: making one (`codeagent_lsp/index/repomap.py`)."""

from __future__ import annotations


def paths_in(text: str) -> list[str]:
    """Return the files that the text of a map names, in its order."""
    found: list[str] = []
    folder = ""
    for line in text.splitlines():
        if line.startswith(("  ", "… ")):
            continue
        head, colon, names = line.partition(": ")
        if colon and (head == "." or head.endswith("/")):
            folder = "" if head == "." else head
            found += (folder + name for name in names.split(" | "))
        elif line:
            found.append(line.removesuffix(":"))
    return found
