"""The words that differ between two listings of a server's tool, for the user to read. Pure functions."""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher

from codeagent_lsp.tools.mcp.listing import RemoteTool
from codeagent_lsp.workspace.text.visible import ends_of, one_line

MAX_SHOWN = 1200
MAX_COMPARED = 4000
"""Most words of a listing that are compared; a longer one is shown as it is now."""


def changed_words(before: RemoteTool | None, now: RemoteTool) -> str:
    """Return the changed words as one line, `[-gone-] {+new+}`; all words of `now` if those before are unknown."""
    old, new = (_words(before) if before else []), _words(now)
    if not old or len(old) + len(new) > MAX_COMPARED:
        return _bounded(" ".join(new))
    parts = []
    for kind, first, end, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            parts += [f"[-{' '.join(old[first:end])}-]"] if end > first else []
            parts += [f"{{+{' '.join(new[start:stop])}+}}"] if stop > start else []
    return _bounded(" ".join(parts))


def _words(tool: RemoteTool) -> list[str]:
    schema = json.dumps(tool.schema, sort_keys=True, ensure_ascii=False, default=str)
    return re.findall(r"\S+", f"{tool.description} {schema}")


def _bounded(line: str) -> str:
    return ends_of(one_line(line, len(line) * 20 + 1), MAX_SHOWN)
