"""The expressions of `find` and `test` that only read. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from codeagent_lsp.tools.permissions.shell.grammar import Unknown, check_path
from codeagent_lsp.tools.permissions.shell.plain import Word

# Left out on purpose: `-exec`, `-ok`, `-delete`, `-fprint`, and `-L` and `-follow`, which follow links out.
WITHOUT_VALUE = frozenset(
    """
    -empty -not ! -o -a -or -and ( ) , -print -print0 -prune -ls -quit -true -false -depth -xdev -mount -daystart
    -noleaf -nouser -nogroup -readable -writable -executable -nowarn -warn
    """.split()  # noqa: SIM905 - a word list reads better as text
)
WITH_TEXT = frozenset(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -size
    -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -fstype -printf -lname -ilname
    -newermt -used
    """.split()  # noqa: SIM905
)
WITH_FILE = frozenset(("-newer", "-anewer", "-cnewer", "-samefile"))
_START = re.compile(r"[-(!,]")

_OF_FILE = frozenset("-e -f -d -s -r -w -x -L -h -p -S -b -c -g -u -k -O -G -N".split())  # noqa: SIM905
_OF_TEXT = frozenset(("-n", "-z"))
_STRINGS = frozenset(("=", "==", "!="))
_NUMBERS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_FILES = frozenset(("-nt", "-ot", "-ef"))
_INTEGER = re.compile(r"[+-]?\d+")


def check_find(arguments: Sequence[Word]) -> None:
    """Check that every predicate of `find` only reads. Unknown if not."""
    place = 0
    while place < len(arguments) and not _START.match(arguments[place].value):
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
    """Check that the arguments are a simple test. Unknown if not, also for `-v` and `-R`, whose operand can run a
    command.
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
