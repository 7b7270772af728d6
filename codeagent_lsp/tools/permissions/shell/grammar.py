"""The grammar of harmless command arguments, as data, and its check. Pure functions.

The check is strict: an option that is not in the grammar, or is abbreviated, is unknown. Not here: the grammars
(`harmless.py`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codeagent_lsp.tools.permissions.shell.plain import Word
from codeagent_lsp.workspace.files.sensitive import fold, holds_secrets

Operands = Literal["paths", "text", "pattern", "none"]

_NUMBER = re.compile(r"-\d+")
Globs = Literal["none", "source", "any"]

_MAX_BRANCHES = 16
_BRACES = re.compile(r"\{([^{}]*)\}")
_KIND = re.compile(r"\*(?:\.\w+)+")
_EXAMPLES = (
    *(".env", ".env.local", ".npmrc", ".netrc", ".pgpass", ".pypirc", ".git-credentials", ".htpasswd", ".secrets"),
    *("id_rsa", "id_ed25519", "server.key", "server.pem", "credentials", "credentials.json", "secrets.yml"),
)
# Files of such names hold text for people or machines to compile; what holds data may be a secret by any name.
# `src/*.py`, `./a/b*.test.ts`: one star, with an ending, in folders without one.
_GLOB = re.compile(r"(?:\./)?(?:[\w][\w.-]*/)*[\w-]*\*(?:\.[\w]+)*\.[a-zA-Z][\w]*")
_DATA_NAME = re.compile(
    r".*\.(?:txt|json|ya?ml|toml|ini|cfg|conf|csv|env|properties|xml|plist|tfvars|db|sqlite|kdbx|bak|old)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Grammar:
    """The arguments that may follow a command's name.

    `flags` and `values` are short options without and with a value; `long` and `long_values` long ones (a long flag may
    have `=value`). `operands`: files to read, or any text, or one text and then files (unless an option in `patterns`
    gave the text), at most `most`. `numbers`: `-5` is an option. `globs`: the names that a pattern may match.
    `filters`: options that choose files by a pattern of names. `responses`: an operand `@file` stands for the words in
    that file. `ordered`: an option after an operand would be an operand. `attached`: a value may directly follow its
    option letter.
    """

    flags: str = ""
    values: str = ""
    long: frozenset[str] = frozenset()
    long_values: frozenset[str] = frozenset()
    operands: Operands = "paths"
    most: int | None = None
    patterns: frozenset[str] = frozenset()
    filters: frozenset[str] = frozenset()
    responses: bool = False
    numbers: bool = False
    globs: Globs = "none"
    ordered: bool = False
    attached: bool = True


def grammar(
    flags: str = "",
    values: str = "",
    long: str = "",
    long_values: str = "",
    *,
    operands: Operands = "paths",
    most: int | None = None,
    patterns: str = "",
    filters: str = "",
    responses: bool = False,
    numbers: bool = False,
    globs: Globs = "none",
    ordered: bool = False,
    attached: bool = True,
) -> Grammar:
    """Return a grammar whose `long`, `long_values`, `patterns` and `filters` are given as words with blanks between
    them; the others are as of `Grammar`.
    """
    named, valued, given, chosen = (frozenset(text.split()) for text in (long, long_values, patterns, filters))
    return Grammar(
        flags, values, named, valued, operands, most, given, chosen, responses, numbers, globs, ordered, attached
    )


class Unknown(Exception):
    """Raised for arguments that the grammar does not know; the message is the reason in English."""


def check(rules: Grammar, arguments: Sequence[Word]) -> None:
    """Check that the arguments, without the command's name, are within the grammar and their files may be read.
    Unknown, with the reason, if not.
    """
    operands, options = _divide(rules, arguments)
    if rules.operands == "pattern" and not options & rules.patterns:
        if not operands:
            raise Unknown("An operand is missing.")
        pattern, *operands = operands
        _check_text(pattern)
    most = 0 if rules.operands == "none" else rules.most
    if most is not None and len(operands) > most:
        raise Unknown("It has more operands than are known to be harmless.")
    for word in operands:
        if rules.operands == "text":
            _check_text(word)
        else:
            check_path(word, globs=rules.globs)


def check_path(word: Word, *, globs: Globs) -> None:
    """Check that a file may be read without asking. Unknown, with the reason, if not; `globs` is as for
    `unreadable`.
    """
    if (reason := unreadable(word, globs=globs)) is not None:
        raise Unknown(reason)


def _check_text(word: Word) -> None:
    if word.glob:
        raise Unknown("It names files by a pattern.")


def _divide(rules: Grammar, arguments: Sequence[Word]) -> tuple[list[Word], set[str]]:
    """Return the operands and the names of the options; options count at any position, as in GNU programs."""
    operands: list[Word] = []
    options: set[str] = set()
    place = 0
    while place < len(arguments):
        word = arguments[place]
        place += 1
        if rules.responses and word.value.startswith("@"):
            raise Unknown("Its words may be in another file.")
        if not word.value.startswith("-") or word.value == "-":
            operands.append(word)
            continue
        # Such a program takes it for one more operand.
        if rules.ordered and operands:
            raise Unknown("An option stands behind an operand.")
        if word.value == "--":
            rest = list(arguments[place:])
            if rules.responses and any(each.value.startswith("@") for each in rest):
                raise Unknown("Its words may be in another file.")
            return operands + rest, options
        # A file named like an option would become one.
        if word.glob and "*" in word.value.partition("=")[0]:
            raise Unknown("It names files by a pattern.")
        if rules.numbers and _NUMBER.fullmatch(word.value):
            continue
        names, wants = _long(rules, word.value) if word.value.startswith("--") else _short(rules, word.value)
        options |= names
        if names & rules.filters and chooses_secrets(_filter_pattern(arguments, place, names & rules.filters)):
            raise Unknown("It names files that may hold secrets.")
        if wants:
            _check_value(arguments, place)
            place += 1
    return operands, options


def _filter_pattern(arguments: Sequence[Word], place: int, names: set[str]) -> str:
    """Return the pattern of file names in the option before `place`: of a long one, or the last of a cluster."""
    option = arguments[place - 1].value
    given = option.partition("=")[2] if option.startswith("--") else option[1:].partition(next(iter(names)))[2]
    return given or (arguments[place].value if place < len(arguments) else "")


def _long(rules: Grammar, word: str) -> tuple[set[str], bool]:
    """Return the name of a long option, and whether the next word is its value."""
    name, equals, _ = word[2:].partition("=")
    if name in rules.long_values:
        return {name}, not equals
    if name in rules.long:
        return {name}, False
    raise Unknown(f"The option --{name} is not known to be harmless.")


def _short(rules: Grammar, word: str) -> tuple[set[str], bool]:
    """Return the names of a cluster of short options (`-la`, `-n5`), and whether the next word is a value."""
    found: set[str] = set()
    for place, letter in enumerate(word[1:], 1):
        found.add(letter)
        if letter in rules.values and (rules.attached or place + 1 == len(word)):
            return found, place + 1 == len(word)
        if letter not in rules.flags:
            raise Unknown(f"The option -{letter} is not known to be harmless.")
    return found, False


def _check_value(arguments: Sequence[Word], place: int) -> None:
    """Refuse a value that looks like an option: another implementation of the program may take no value there."""
    word = arguments[place] if place < len(arguments) else None
    if word is None or word.glob or (word.value.startswith("-") and not _NUMBER.fullmatch(word.value)):
        raise Unknown("The value of an option is missing.")


# The check whether a word, as a path, may be read without asking: inside the workspace and no secret. Pure functions.


def unreadable(word: Word, *, globs: Globs) -> str | None:
    """Return the reason, in English, why a path may not be read without asking; None if it may.

    `globs`: the names that a pattern may match: none, those of source files, or any (for commands that do not show the
    text).
    """
    path = word.value
    if path == "/dev/null":
        return None
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        return "It names a place outside the workspace."
    if word.glob:
        return None if _is_open(path, globs) else "It names files by a pattern."
    return "It names a file that may hold secrets." if is_secret(path) else None


def is_secret(path: str) -> bool:
    """Return whether the name of a file or of one of its folders marks it as a secret, such as `.env` or `.ssh`. The
    disk is not looked at.
    """
    return holds_secrets([part for part in path.split("/") if part not in ("", ".")])


def chooses_secrets(pattern: str) -> bool:
    """Return whether a filter by names selects files for being secrets: it names them, or hidden files, or nearly all.

    A pattern that leaves files out narrows a search; one for an ending, such as `*.json`, is about that kind of file.
    """
    if pattern.startswith("!"):
        return False
    names = [name.rsplit("/", 1)[-1] for name in _branches(pattern)]
    return len(names) > _MAX_BRANCHES or any(map(_selects_secrets, names))


def _selects_secrets(name: str) -> bool:
    # A name that the pattern matches: `.env.*` finds `.env.x`.
    example = name.replace("*", "x")
    if is_secret(example) or is_secret(name):
        return True
    if _KIND.fullmatch(name):
        return False
    return any(fnmatch.fnmatchcase(secret, fold(name)) for secret in _EXAMPLES)


def _branches(pattern: str) -> list[str]:
    """Return what `{a,b}` in a pattern stands for; more than are looked at if there are too many, or odd ones."""
    found = [pattern]
    for _ in range(_MAX_BRANCHES):
        place = next((at for at, name in enumerate(found) if _BRACES.search(name)), None)
        if place is None:
            return [""] * (_MAX_BRANCHES + 1) if any("{" in name or "}" in name for name in found) else found
        name = found.pop(place)
        match = _BRACES.search(name)
        if match is not None:
            found += [name[: match.start()] + part + name[match.end() :] for part in match[1].split(",")]
    return [""] * (_MAX_BRANCHES + 1)


def _is_open(path: str, globs: Globs) -> bool:
    """Return whether a pattern selects files by their ending, in folders that are named in full."""
    example = path.replace("*", "x")
    if globs == "any" and path in ("*", "./*", "*/"):
        return True
    if globs == "none" or not _GLOB.fullmatch(path) or is_secret(example):
        return False
    return globs == "any" or not _DATA_NAME.fullmatch(example)
