"""The heads of messages in harmony, the format of gpt-oss, as servers pass them on that do not know it.

A head is `<|start|>assistant to=NAME<|channel|>commentary to=NAME <|constrain|>json<|message|>`, of which all parts but
the last may be missing, and the recipient stands in one place or the other. Not here: calls that lost their tokens
(`calls/dialects.py`).
"""

from __future__ import annotations

import re

LONGEST_HEAD = 200
"""Characters; longer texts that begin like a head are none."""
HEAD = re.compile(
    r"(?:<\|start\|>\s*)?(?:assistant\s*)?(?:to=(?P<first>[\w.\-]+)\s*)?"
    r"(?:<\|channel\|>\s*)?(?P<channel>analysis|commentary|final)?\s*(?:to=(?P<second>[\w.\-]+)\s*)?"
    r"(?:<\|constrain\|>\s*\w*|json|code)?\s*<\|message\|>"
)
_BEGUN = re.compile(
    r"(?:(?:assistant|analysis|commentary|final)\s*(?:t|to|to=[\w.\-]*\s*(?:\s[a-z]{0,4}\s*)?)?)?"
    # Behind a token all may come; without one, words that an answer begins with are not held back.
    r"(?:<\|(?:start|channel|constrain)\|>(?:<\|(?:channel|constrain)\|>|[\w.=\-]+|\s+)*)?(?:<[|a-z]*>?)?"
)


def recipient(head: re.Match[str]) -> str:
    """Return the tool that a message is for, '' for one that is text."""
    return head["second"] or head["first"] or ""


def begins_head(text: str) -> bool:
    """Return whether a text is the beginning of a head, so that it can become one."""
    return len(text) < LONGEST_HEAD and _BEGUN.fullmatch(text) is not None


def call_head(name: str) -> str:
    """Return the head of a message for a tool, in the one spelling that the parser of calls is given."""
    return f"<|channel|>commentary to={name}<|message|>"
