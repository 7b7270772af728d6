"""The user's language from the environment, and texts as a terminal may show them: no control sequences and no
invisible direction marks, and paths by `~`; and printing them.

Not here: what is said (`texts.py`).
"""

from __future__ import annotations

import locale
import os
import re
import sys
from pathlib import Path

from codeagent_lsp.workspace.text.visible import cut, shown


def user_locale() -> str:
    """Return the user's locale from the environment (LC_ALL, LC_MESSAGES, LANG), such as `de_DE`; `en` by default."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return value.partition(".")[0]
    return locale.getlocale()[0] or "en"


def visible(text: str) -> str:
    """Return `text` with LF line ends, and every other control or invisible character replaced by its number, such as
    `<U+001B>`, so that it is safe on a terminal.
    """
    return shown(text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 200) -> str:
    """Return `text` on one line of at most `width` characters, cut with a "…", safe on a terminal."""
    return cut(" ".join(visible(text).split()), width)


def short_path(path: Path) -> str:
    """Return a path with `~` for the home folder, for display; one outside of it as it is."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


_COMMANDS = {
    "codeagent.session.list": "codeagent-lsp sessions list",
    "codeagent.pending": "codeagent-lsp sessions list",
    "codeagent.doctor": "codeagent-lsp doctor",
    "codeagent.trust": "codeagent-lsp trust",
    "codeagent.mode.set": "--set permissions.mode=ask",
    "codeagent.review": "codeagent-lsp apply",
    "codeagent.apply": "codeagent-lsp apply",
}
_COMMAND = re.compile(r"`?(codeagent\.[A-Za-z.]*[A-Za-z])`?")


def in_terminal(words: str) -> str:
    """Return a sentence of the server with the commands of editors in it (`codeagent.…` in backticks) replaced by those
    of the terminal, where there are such.
    """
    return _COMMAND.sub(lambda found: f"`{_COMMANDS[found[1]]}`" if found[1] in _COMMANDS else found[0], words)


def say(words: str) -> None:
    """Print `words`, one or several lines, and a line end on stdout and flush; characters outside its encoding become
    question marks. BrokenPipeError if the reader is gone.
    """
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(words.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()
