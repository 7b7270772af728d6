"""Checks of commands whose arguments are small programs or sets of flags that no grammar describes. Pure functions.

`awk` only computes and prints, `find` and `test` only look, `ps` shows processes without their environment. Not here:
commands with a grammar (`grammar.py`), and `sed`, whose check stands with the table of all commands (`harmless.py`).
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from codeagent_lsp.tools.permissions.shell.grammar import Unknown, check_path
from codeagent_lsp.tools.permissions.shell.plain import Word

# A program of awk is split into tokens that every awk reads alike. Refused are one that could be read in two ways, and
# all that starts a program, writes or reads another file, or reaches the environment. Comparison by `>` is told from
# writing by its place: in a pattern, or inside parentheses.

# `a\/b[]/x]`: in brackets a slash or a first `]` is literal.
REGEX_BODY = r"(?:\\.|\[\^?\]?(?:\[:[a-z]+:\]|[^][\\/\n])*\]|[^][\\/\n])"
_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)|(?P<name>[A-Za-z_]\w*)|(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<string>\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<mark>&&|\|\||[=!<>]=|!~|[-+*/%^]=|\+\+|--|[-+*%^=<>!~?:,;(){}\[\]$\n])"
)
# Not before `=`: `/=` may be an assignment.
_REGEX = re.compile(f"(?P<regex>/(?!=){REGEX_BODY}+/)")
_SLASH = re.compile("(?P<mark>/)")
_AWK_REFUSED = frozenset(
    "getline system close fflush ENVIRON ARGV ARGC PROCINFO SYMTAB FUNCTAB extension load bindtextdomain".split()
)
_BEFORE_VALUES = frozenset(("print", "printf", "return"))
_AWK_WORDS = frozenset(
    """
    length next nextfile exit delete do else if while for in break continue switch case default function func BEGIN END
    BEGINFILE ENDFILE
    """.split()
)
_HEADS = frozenset(("if", "while", "for", "switch", "function", "func"))
_AWK_VALUE, _AWK_TEXT = "0", '"'
_AWK_MAX_CHARS = 2_000


def check_awk(program: str) -> None:
    """Check that an `awk` program only computes and prints. Unknown, with the reason, if that is not certain, as for
    one of more than 2,000 characters.
    """
    braces = parentheses = 0
    for piece in _tokens(program):
        if piece in _AWK_REFUSED:
            raise Unknown(f"{piece!r} in awk may do more than print.")
        braces += (piece == "{") - (piece == "}")
        parentheses += (piece == "(") - (piece == ")")
        if braces < 0 or parentheses < 0:
            raise Unknown("The awk program is not well-formed.")
        if piece in (">", ">=") and braces and not parentheses:
            raise Unknown("The awk program may write a file.")


def _tokens(program: str) -> Iterator[str]:
    """Yield the names and marks of a program. Unknown if one of its tokens is not clear."""
    if len(program) > _AWK_MAX_CHARS:
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
        before = _AWK_VALUE if kind == "number" or closes_value else piece if kind in ("name", "mark") else _AWK_TEXT


def _token(program: str, place: int, before: str) -> re.Match[str]:
    """Return the token at `place`, behind the token `before`, which decides what a slash is."""
    if program[place] != "/":
        pattern = _TOKEN
    elif before in _BEFORE_VALUES or before in ("", "&&", "||", "!~", "==", "!=", *"(,{};!~?:=<>\n*%^"):
        pattern = _REGEX
    elif before not in _AWK_WORDS and (before[:1].isalnum() or before[:1] in ("]", "_")):
        pattern = _SLASH
    else:
        raise Unknown("The awk program can be read in more than one way.")
    match = pattern.match(program, place)
    if match is None:
        raise Unknown("The awk program is not known to be harmless.")
    return match


# Left out on purpose: `-exec`, `-ok`, `-delete`, `-fprint`, and `-L` and `-follow`, which follow links out.
WITHOUT_VALUE = frozenset(
    """
    -empty -not ! -o -a -or -and ( ) , -print -print0 -prune -ls -quit -true -false -depth -xdev -mount -daystart
    -noleaf -nouser -nogroup -readable -writable -executable -nowarn -warn
    """.split()
)
WITH_TEXT = frozenset(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -size
    -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -fstype -printf -lname -ilname
    -newermt -used
    """.split()
)
WITH_FILE = frozenset(("-newer", "-anewer", "-cnewer", "-samefile"))
_FIND_START = re.compile(r"[-(!,]")

_OF_FILE = frozenset("-e -f -d -s -r -w -x -L -h -p -S -b -c -g -u -k -O -G -N".split())
_OF_TEXT = frozenset(("-n", "-z"))
_STRINGS = frozenset(("=", "==", "!="))
_NUMBERS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_FILES = frozenset(("-nt", "-ot", "-ef"))
_INTEGER = re.compile(r"[+-]?\d+")


def check_find(arguments: Sequence[Word]) -> None:
    """Check that the arguments of `find`, without its name, only read: starting points and known predicates. Unknown,
    with the reason, if not.
    """
    place = 0
    while place < len(arguments) and not _FIND_START.match(arguments[place].value):
        check_path(arguments[place], globs="none")
        place += 1
    while place < len(arguments):
        word = arguments[place]
        if word.value in WITH_TEXT or word.value in WITH_FILE:
            _check_value(arguments[place + 1 : place + 2], "file" if word.value in WITH_FILE else "text")
            place += 2
        elif word.value in WITHOUT_VALUE:
            place += 1
        else:
            raise Unknown(f"{word.value!r} is not known to be harmless in find.")


def check_test(arguments: Sequence[Word]) -> None:
    """Check that the arguments of `test`, without its name, are one simple test, with or without `!`. Unknown, with the
    reason, if not, also for `-v` and `-R`, whose operand can run a command.
    """
    words = list(arguments[1:] if arguments and arguments[0].value == "!" else arguments)
    values = [word.value for word in words]
    if len(words) == 2 and values[0] in _OF_FILE | _OF_TEXT:
        _check_value(words[1:], "file" if values[0] in _OF_FILE else "text")
    elif len(words) == 3 and values[1] in _STRINGS:
        _check_value(words[:1], "text")
        _check_value(words[2:], "text")
    # Plain numbers only: any other word is arithmetic, where `a[$(x)]` runs x.
    elif len(words) == 3 and values[1] in _NUMBERS and _INTEGER.fullmatch(values[0]) and _INTEGER.fullmatch(values[2]):
        return
    elif len(words) == 3 and values[1] in _FILES:
        _check_value(words[:1], "file")
        _check_value(words[2:], "file")
    else:
        raise Unknown("The test is not known to be harmless.")


def _check_value(words: Sequence[Word], kind: Literal["text", "file"]) -> None:
    if not words or words[0].glob:
        raise Unknown("A value is missing, or made of file names.")
    if kind == "file":
        check_path(words[0], globs="none")


# In the old BSD form of `ps`, without a dash, an `e` shows the environment; with a dash it selects all processes. The
# `ps` of Linux reads words with a dash in the old form when they make no sense as they are, so that must not come about
# beside an `e`.
_PS_OLD = re.compile(r"[aAcfhjlrSuvwx]+")
_PS_DASHED = re.compile(r"-(?:[aAcdefFHjlLMNPTwyZ]+|[aAcdfjlruwx]+)")
_SHOWING = re.compile(r"-[aAefFlLT]*o")
_CHOOSING = frozenset("-C -u -U -g -G -t -s --user".split())
_NUMBERED = frozenset("-p --pid --ppid".split())
_PS_LONG = re.compile(r"--(?:no-headers?|headers?|forest)|--sort=[-+]?%?[a-z_]+(?:,[-+]?%?[a-z_]+)*")
_PS_FIELDS = frozenset(
    """
    pid ppid pgid sid user uid group gid comm args cmd command pcpu %cpu pmem %mem etime etimes time cputime stat state
    rss vsz nice ni pri tty tt start stime lstart start_time nlwp psr wchan thcount
    """.split()
)
_PS_VALUE = re.compile(r"\w[\w,-]*")


def check_ps(arguments: Sequence[Word]) -> None:
    """Check that the arguments of `ps` show no environment. Unknown, with the reason, if that is not certain."""
    words = [word.value for word in arguments]
    chooses = not _CHOOSING.isdisjoint(words)
    if not all(_is_known(word, chooses=chooses) for word in _without_values(words)):
        raise Unknown("What `ps` is to show is not known to be harmless.")


def _is_known(word: str, *, chooses: bool) -> bool:
    # Beside an option that chooses processes, a dashed word with `e` may be read in the old form.
    if word.startswith("-") and chooses and "e" in word:
        return False
    return any(form.fullmatch(word) for form in (_PS_OLD, _PS_DASHED, _PS_LONG)) or word.isdecimal()


def _without_values(words: Sequence[str]) -> Iterator[str]:
    """Yield the words but options with their values. Unknown for a value that is odd."""
    place = 0
    while place < len(words):
        word, value = words[place], words[place + 1] if place + 1 < len(words) else ""
        place += 2
        if _SHOWING.fullmatch(word):
            fine = all(field.rstrip("=") in _PS_FIELDS for field in value.split(","))
        elif word in _NUMBERED:
            fine = all(number.isdecimal() for number in value.split(","))
        elif word in _CHOOSING:
            fine = bool(_PS_VALUE.fullmatch(value))
        else:
            yield word
            place, fine = place - 1, True
        if not fine:
            raise Unknown("What `ps` is to show is not known to be harmless.")
