"""The check that an `awk` program only computes and prints. Pure functions.

The program is split into tokens that every awk reads alike; one that could be read in two ways is refused, and so is
all that starts a program, writes or reads another file, or reaches the environment. Comparison by `>` is told from
writing by its place: in a pattern, or inside parentheses.
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import re
from collections.abc import Iterator

from codeagent_lsp.tools.permissions.shell.grammar import Unknown

# `a\/b[]/x]`: in brackets a slash or a first `]` is literal.
REGEX_BODY = r"(?:\\.|\[\^?\]?(?:\[:[a-z]+:\]|[^][\\/\n])*\]|[^][\\/\n])"
_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)|(?P<name>[A-Za-z_]\w*)|(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<string>\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<mark>&&|\|\||[=!<>]=|!~|[-+*/%^]=|\+\+|--|[-+*%^=<>!~?:,;(){}\[\]$\n])"
)
# Not before `=`: `/=` may be an assignment.
_REGEX = re.compile(f"(?P<regex>/(?!=){REGEX_BODY}+/)")
_SLASH = re.compile("(?P<mark>/)")
_REFUSED = frozenset(
    "getline system close fflush ENVIRON ARGV ARGC PROCINFO SYMTAB FUNCTAB extension load bindtextdomain".split()
)
_BEFORE_VALUES = frozenset(("print", "printf", "return"))
_WORDS = frozenset(
    """
    length next nextfile exit delete do else if while for in break continue switch case default function func BEGIN END
    BEGINFILE ENDFILE
    """.split()
)
_HEADS = frozenset(("if", "while", "for", "switch", "function", "func"))
_VALUE, _TEXT = "0", '"'
_MAX_CHARS = 2_000


def check_awk(program: str) -> None:
    """Check that a program only computes and prints. Unknown if not."""
    braces = parentheses = 0
    for piece in _tokens(program):
        if piece in _REFUSED:
            raise Unknown(f"{piece!r} in awk may do more than print.")
        braces += (piece == "{") - (piece == "}")
        parentheses += (piece == "(") - (piece == ")")
        if braces < 0 or parentheses < 0:
            raise Unknown("The awk program is not well-formed.")
        if piece in (">", ">=") and braces and not parentheses:
            raise Unknown("The awk program may write a file.")


def _tokens(program: str) -> Iterator[str]:
    """Yield the names and marks of a program. Unknown if one of its tokens is not clear."""
    if len(program) > _MAX_CHARS:
        raise Unknown("The awk program is too long to be judged.")
    place, before = 0, ""
    openings: list[str] = []
    while place < len(program):
        match = _token(program, place, before)
        place = match.end()
        kind, piece = match.lastgroup, match[0]
        if kind == "blank":
            continue
        if kind in ("name", "mark"):
            yield piece
        # Behind `if (…)` a slash begins a pattern, behind `(…)` as a value it divides; so the word before each `(` is
        # kept.
        if piece == "(":
            openings.append(before)
        closes_value = piece == ")" and openings and openings.pop() not in _HEADS
        before = _VALUE if kind == "number" or closes_value else piece if kind in ("name", "mark") else _TEXT


def _token(program: str, place: int, before: str) -> re.Match[str]:
    """Return the token at `place`, behind the token `before`, which decides what a slash is."""
    if program[place] != "/":
        pattern = _TOKEN
    elif before in _BEFORE_VALUES or before in ("", "&&", "||", "!~", "==", "!=", *"(,{};!~?:=<>\n*%^"):
        pattern = _REGEX
    elif before not in _WORDS and (before[:1].isalnum() or before[:1] in ("]", "_")):
        pattern = _SLASH
    else:
        raise Unknown("The awk program can be read in more than one way.")
    match = pattern.match(program, place)
    if match is None:
        raise Unknown("The awk program is not known to be harmless.")
    return match
