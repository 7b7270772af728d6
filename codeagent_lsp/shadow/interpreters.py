"""Recognition of Python interpreters behind links of a repository, by what is installed around them.

A repository may name anything `.venv/bin/python`, so neither the name nor the `pyvenv.cfg` beside it is evidence: the
real file must be a program in `bin` of a prefix that has Python's own library. Reads only. Not here: what else of a
home is shown (`hiding.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

# `python3.13td`: free-threaded, debug build.
_NAME = re.compile(r"(?:python|pypy|graalpy)[\d.]*[dt]{0,2}")
_LIBRARY = re.compile(r"(?:python|pypy|graalpy)\d[\d.]*t?")
_PROGRAM_HEADS = (b"\x7fELF", b"#!")
_PARTS = ("bin", "include", "lib", "lib64", "libexec", "share", "ssl")
_PERSONAL = frozenset(
    """
    Desktop Documents Downloads Music Pictures Public Templates Videos Dropbox Mail
    .ssh .gnupg .aws .kube .config .local .cache .mozilla .thunderbird .var .local/share .local/state
    """.split()  # noqa: SIM905
)
"""Folders of a home that hold too much else, whatever is installed there."""

_MAX_LINKS = 16
_MAX_NAMES = 5000


def behind(link: str, home: str) -> Iterator[str]:
    """Yield the absolute paths that a link to an interpreter needs: folders of its installation, and the links on the
    way to it, as written and as resolved. Nothing if it does not lead to an interpreter.
    """
    real = os.path.realpath(link)
    if not is_interpreter(real, home):
        return
    folder = str(Path(real).parent)
    yield from parts(str(Path(folder).parent))
    for hop in _hops(link):
        if os.path.realpath(Path(hop).parent) == folder:
            yield from parts(str(Path(hop).parent.parent))
        else:
            yield hop


def is_interpreter(real: str, home: str) -> bool:
    """Return whether a real path is a Python with its own library that is not installed in a home or personal folder.
    Decided by the files around it, not by its name alone.
    """
    path = Path(real)
    if path.parent.name != "bin" or not _NAME.fullmatch(path.name) or not _is_program(real):
        return False
    prefix = str(path.parent.parent)
    return not _is_personal(prefix, home) and _has_library(prefix)


def _is_program(real: str) -> bool:
    try:
        if not Path(real).is_file() or not os.access(real, os.X_OK):
            return False
        with Path(real).open("rb") as file:
            return file.read(4).startswith(_PROGRAM_HEADS)
    except OSError:
        return False


def _is_personal(prefix: str, home: str) -> bool:
    """Return whether a folder is `home` or a parent of it, or one in which people keep all kinds of things."""
    inside = prefix.removeprefix(home.rstrip("/") + "/")
    return f"{home}/".startswith(prefix.rstrip("/") + "/") or (inside != prefix and inside in _PERSONAL)


def _has_library(prefix: str) -> bool:
    folders = (Path(prefix, "lib", name) for name in _names(f"{prefix}/lib") if _LIBRARY.fullmatch(name))
    return any((folder / "os.py").is_file() and _is_inside(str(folder), prefix) for folder in folders)


def parts(prefix: str) -> Iterator[str]:
    """Yield the absolute paths of the known folders of an installation, such as `bin` and `lib`, that exist and are
    really inside the folder `prefix`.
    """
    for name in _PARTS:
        path = f"{prefix}/{name}"
        if os.path.isdir(path) and _is_inside(path, prefix):  # noqa: PTH112 - a look, no more
            yield path


def _is_inside(path: str, prefix: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(prefix).rstrip("/") + "/")


def _hops(link: str) -> Iterator[str]:
    """Yield the places that a chain of links leads to, the last one included."""
    for _ in range(_MAX_LINKS):
        try:
            target = os.readlink(link)  # noqa: PTH115 - a path stays text
        except OSError:
            return
        link = os.path.normpath(Path(os.path.realpath(Path(link).parent), target))
        yield link


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _MAX_NAMES)]
    except OSError:
        return []
