"""Says what a tool has done in words for the clients of a sandbox, which has no user who decides and nothing staged."""

from __future__ import annotations

import re

_INSTEAD = {
    "Staged for the user's decision:": "Changed in the sandbox:",
    "Staged from what it wrote:": "Changed in the sandbox by it:",
    "Not staged:": "Not kept:",
    "(left out, as reading them needs the user's approval:": "(left out, as they may hold secrets:",
}
_PHRASE = re.compile("|".join(rf"^{re.escape(phrase)}" for phrase in _INSTEAD), re.MULTILINE)


def in_own_words(text: str) -> str:
    """Return a result's text with the sentences about a user's decision put into the sandbox's words."""
    return _PHRASE.sub(lambda match: _INSTEAD[match.group()], text)
