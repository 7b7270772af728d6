"""The check that `ps` shows processes without their environment. Pure functions.

In the old BSD form, without a dash, an `e` shows the environment; with a dash it selects all processes. Linux' `ps`
reads words with a dash in the old form when they make no sense as they are, so that must not come about beside an `e`.
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codeagent_lsp.tools.permissions.shell.grammar import Unknown
from codeagent_lsp.tools.permissions.shell.plain import Word

_OLD = re.compile(r"[aAcfhjlrSuvwx]+")
_DASHED = re.compile(r"-(?:[aAcdefFHjlLMNPTwyZ]+|[aAcdfjlruwx]+)")
_SHOWING = re.compile(r"-[aAefFlLT]*o")
_CHOOSING = frozenset("-C -u -U -g -G -t -s --user".split())
_NUMBERED = frozenset("-p --pid --ppid".split())
_LONG = re.compile(r"--(?:no-headers?|headers?|forest)|--sort=[-+]?%?[a-z_]+(?:,[-+]?%?[a-z_]+)*")
_FIELDS = frozenset(
    """
    pid ppid pgid sid user uid group gid comm args cmd command pcpu %cpu pmem %mem etime etimes time cputime stat state
    rss vsz nice ni pri tty tt start stime lstart start_time nlwp psr wchan thcount
    """.split()
)
_VALUE = re.compile(r"\w[\w,-]*")


def check_ps(arguments: Sequence[Word]) -> None:
    """Check that the arguments of `ps` show no environment. Unknown if not."""
    words = [word.value for word in arguments]
    chooses = not _CHOOSING.isdisjoint(words)
    if not all(_is_known(word, chooses=chooses) for word in _without_values(words)):
        raise Unknown("What `ps` is to show is not known to be harmless.")


def _is_known(word: str, *, chooses: bool) -> bool:
    # Beside an option that chooses processes, a dashed word with `e` may be read in the old form.
    if word.startswith("-") and chooses and "e" in word:
        return False
    return any(form.fullmatch(word) for form in (_OLD, _DASHED, _LONG)) or word.isdecimal()


def _without_values(words: Sequence[str]) -> Iterator[str]:
    """Yield the words but options with their values. Unknown for a value that is odd."""
    place = 0
    while place < len(words):
        word, value = words[place], words[place + 1] if place + 1 < len(words) else ""
        place += 2
        if _SHOWING.fullmatch(word):
            fine = all(field.rstrip("=") in _FIELDS for field in value.split(","))
        elif word in _NUMBERED:
            fine = all(number.isdecimal() for number in value.split(","))
        elif word in _CHOOSING:
            fine = bool(_VALUE.fullmatch(value))
        else:
            yield word
            place, fine = place - 1, True
        if not fine:
            raise Unknown("What `ps` is to show is not known to be harmless.")
