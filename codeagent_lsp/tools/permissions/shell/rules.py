"""The user's rules about commands: globs over the text of one simple command. Pure functions.

`pytest *` covers `pytest` and `pytest -q`, never `pytester`. Not here: rules about tools and paths (`policy.py` of
permissions).
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from codeagent_lsp.tools.permissions.shell.git_words import unknown_subcommand

_MAX_WORDS = 64
_BLANKS = re.compile(r"[ \t\n]+")


def allows(rules: Iterable[str], written: str, words: Sequence[str]) -> bool:
    """Return whether an allow rule covers a plain command, as written or with minimal quoting. A program path with `..`
    is covered only by a rule with `..`, a git alias only by a rule that names it.
    """
    texts = {written, shlex.join(words)}
    climbs = ".." in words[0].split("/")
    alias = unknown_subcommand(words)
    fitting = [rule for rule in rules if (".." in rule or not climbs) and (not alias or alias in rule.split())]
    return any(_covers(rule, text) for rule in fitting for text in texts)


def covering(rules: Iterable[str], texts: Sequence[str]) -> str | None:
    """Return the first ask or deny rule that covers one of the spellings; a final `*` needs no blank before it."""
    for rule in rules:
        loose = _pattern(_BLANKS.sub(" ", rule).strip())
        if any(loose.fullmatch(text) or _covers(rule, text) for text in texts):
            return rule
    return None


def spellings(written: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the spellings of a command to match ask and deny rules with: as written, without quotes, without its
    folder, without the options before its subcommand.
    """
    bare = " ".join(words)
    name = words[0].rsplit("/", 1)[-1] if words else ""
    behind = () if name == "git" else _behind_options(words[:_MAX_WORDS])  # git's options are known
    short = (" ".join((name, *rest)) for rest in (words[1:], *behind))
    return tuple(dict.fromkeys((_BLANKS.sub(" ", written).strip(), bare, *short)))


def _behind_options(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words behind each option that stands first, with and without a word that may be its value."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 1
        yield words[place:]
        if place + 1 < len(words) and not words[place].startswith("-") and "=" not in words[place - 1]:
            place += 1
            yield words[place:]


def _covers(rule: str, text: str) -> bool:
    rule = _BLANKS.sub(" ", rule).strip()
    if not rule:
        return False
    stem = rule.rstrip("*")
    if stem == rule or not re.search(r"\w[ ]?$", stem):
        return bool(_pattern(rule).fullmatch(text))
    stem = stem.rstrip(" ")
    return bool(_pattern(stem).fullmatch(text) or _pattern(f"{stem} *").fullmatch(text))


@lru_cache(maxsize=512)
def _pattern(rule: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(rule))
