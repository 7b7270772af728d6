"""The value for what a command runs besides itself. Not here: which commands do (`wrappers.py`, `git_words.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Inner:
    """The target of a wrapper: either the words of a command or the text of a script with its `$0`, `$1` and so on."""

    words: tuple[str, ...] = ()
    script: str = ""
    parameters: tuple[str, ...] = ()
