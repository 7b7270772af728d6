"""What is remembered of endpoints in the state folder, above all what they told in errors: the window when a prompt was
too long, the longest reply when one was asked for that is longer. For each endpoint and model.

Not here: which errors are overflows (`failures.py`), what a run does then (`agent/context/window.py`).
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from codeagent_lsp.llm.facts import Facts
from codeagent_lsp.state import replace_json

FILE = "windows.json"
REPLY = "reply"
LEAST_REPLY = 256
LEAST, MOST = 1024, 20_000_000
"""Tokens: smaller and larger numbers in an error are something else."""

_REPLY = re.compile(
    r"max_?(?:completion_|output_|new_)?tokens|(?:completion|output) tokens|maximum tokens", re.IGNORECASE
)
_NUMBER = r"(\d[\d,_.]*\d|\d)\s*(k\b)?"
_TOLD = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"maximum (?:context|model|sequence|input) (?:length|window|size)[^\d.]{0,20}N",
        r"context (?:length|window|size)[^\d.]{0,20}N",
        r"> N maximum",
        r"context limit: \d+ \+ \d+ > N",
        r"\"?n_ctx\"?\s*[:=]\s*N",
        r"maximum number of tokens allowed[^\d.]{0,5}N",
        r"token limit[^\d.]{0,10}N",
        r"tokens`? \+ [`\w]+ must be <= N",
        r"\bN maximum context length",
        r"range of input length should be \[\d+, ?N\]",
    )
)
"""The wordings of OpenAI and its likes, Anthropic, llama.cpp, vLLM, Gemini, Moonshot, TGI, LM Studio and Qwen."""


def window_in(error: str) -> int | None:
    """Return the window in tokens that the text of an overflow tells; None if it tells none that can be one."""
    found = (_value(match) for pattern in _TOLD for match in pattern.finditer(error))
    return next((value for value in found if value is not None), None)


def reply_in(error: str, asked: int) -> int | None:
    """Return the longest reply in tokens that the text of a refusal of `asked` tells; None if it is about other things:
    the largest number below `asked` beside a word for the length of replies, as `[1, 8192]` or `at most 16384`.
    """
    if not _REPLY.search(error):
        return None
    numbers = (int(re.sub(r"[,_.]", "", digits)) for digits in re.findall(r"\d[\d,_]*\d", error))
    return max((number for number in numbers if LEAST_REPLY <= number < asked), default=None)


class LearnedFacts:
    """What was learned of the models of one state folder. Blocking, with small files."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE

    def get(self, url: str, name: str) -> Facts:
        """Return what this endpoint once told of this model."""
        known = read(self._path)
        window, reply = known.get(f"{url} {name}"), known.get(f"{url} {name} {REPLY}")
        return Facts(
            context_window=window if type(window) is int and LEAST <= window <= MOST else None,
            longest_reply=reply if type(reply) is int and LEAST_REPLY <= reply <= MOST else None,
        )

    def learn(self, url: str, name: str, learned: Facts) -> None:
        """Remember what was told."""
        if learned.context_window is not None:
            remember(self._path, f"{url} {name}", learned.context_window)
        if learned.longest_reply is not None:
            remember(self._path, f"{url} {name} {REPLY}", learned.longest_reply)


def _value(match: re.Match[str]) -> int | None:
    digits = re.sub(r"[,_.]", "", match[1])
    # More digits are an id or a time.
    value = int(digits) * (1024 if match[2] else 1) if len(digits) < 12 else 0
    return value if LEAST <= value <= MOST else None


# A JSON file of facts about models, by key. A damaged or missing file counts as an empty object.


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object in a text; an empty one if it has none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read(path: Path) -> dict[str, Any]:
    """Return all facts in a file."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def remember(path: Path, key: str, value: object) -> None:
    """Store one fact and replace the file atomically. Errors of the file system are ignored."""
    with contextlib.suppress(OSError):
        # Read again right before: other processes learn, too.
        replace_json(path, {**read(path), key: value})
