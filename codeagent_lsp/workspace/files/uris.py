"""Conversion between `file:` URIs (RFC 8089) and paths, equality of URIs, and what a path means on Windows, where many
spellings lead elsewhere than they seem to.

Editors spell the same URI differently (`c%3A` or `c:`, escaped or plain letters), so URIs are compared by `spelling` or
`key`, never as strings. Paths on Windows are judged by their text alone, by "Naming Files, Paths, and Namespaces" of
the Win32 documentation, the same on every system. Not here: access control (`files/paths.py`).
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

_FILE = re.compile(r"file:(?://([^/?#]*))?([^?#]*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"/[A-Za-z]:(?:/|$)")
_DRIVE_LETTER = re.compile(r"[A-Za-z]:")
_DEVICE = re.compile(r"\\\\[?.](?:\\|$)|\\\?\?\\")
_FORBIDDEN = re.compile(r'[<>"|?*\x00-\x1f]')
_RESERVED = re.compile(r"(?:CON|PRN|AUX|NUL|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3]|CONIN\$|CONOUT\$)", re.IGNORECASE)


def to_path(uri: str, system: str = sys.platform) -> str | None:
    """Return the absolute path of a `file:` URI on a system, in the terms of `sys.platform`; None for any other scheme
    and for what cannot be a path. A host other than `localhost` stays in it (`//host/path`). The letter of a drive is a
    capital one, however the editor writes it.
    """
    match = _FILE.match(uri)
    if match is None:
        return None
    host, path = match[1] or "", _decode(match[2])
    if "\0" in path or not path.startswith("/"):
        return None
    if host and host.lower() != "localhost":
        # The two slashes stay, so that it is not taken for a file of this machine.
        return f"//{_decode(host)}{path}"
    return path[1].upper() + path[2:] if system == "win32" and _DRIVE.match(path) else path


def real_path(uri: str) -> str | None:
    """Return the absolute path of a `file:` URI with all symbolic links resolved, as the workspace names files; None as
    for `to_path`.
    """
    path = to_path(uri)
    return None if path is None else os.path.realpath(path)


def is_nameless(uri: str) -> bool:
    """Return whether a URI is only `file://`, as Neovim gives it to buffers without a name, of which several may be
    open.
    """
    match = _FILE.fullmatch(uri)
    return match is not None and not match[1] and not match[2]


def from_path(path: str | os.PathLike[str], system: str = sys.platform) -> str:
    """Return the `file:` URI of an absolute path. Bytes that are not UTF-8 become percent escapes."""
    name = os.fspath(path).replace("\\", "/") if system == "win32" else os.fspath(path)
    if name.startswith("//"):
        return "file:" + _encode(name)
    return "file://" + _encode(name if name.startswith("/") else f"/{name}")


def named_by(path: str, folders: Iterable[str]) -> str:
    """Return the absolute real `path` as it is named below the innermost of these folders that holds it, which may lead
    there by symbolic links; unchanged if none does.
    """
    holders = ((os.path.realpath(folder), folder) for folder in folders)
    real, folder = max((pair for pair in holders if Path(path).is_relative_to(pair[0])), default=("", ""))
    return str(Path(folder, Path(path).relative_to(real))) if real not in ("", folder) else path


def spelling(uri: str, system: str = sys.platform) -> str:
    """Return a text that is equal for all spellings of the same `file:` URI on a system; other URIs are returned as
    they are.
    """
    path = to_path(uri, system)
    return uri if path is None else f"file:{_same(path, system)}"


def key(uri: str) -> str:
    """Return a key that is equal for all `file:` URIs of the same file, also those that lead to it by symbolic links;
    other URIs are returned as they are. Reads the disk.
    """
    path = real_path(uri)
    return uri if path is None else f"file:{_same(path, sys.platform)}"


def has_drive(path: str) -> bool:
    """Return whether a path begins with the letter of a Windows drive, such as `C:`, which is not the scheme of a
    URI.
    """
    return _DRIVE_LETTER.match(path) is not None


def windows_problem(path: str) -> str | None:
    """Return why Windows does not take a path for a plain name, in words that follow the path; None if it does."""
    text = path.replace("/", "\\")
    if _DEVICE.match(text):
        return "is the path of a device"
    if text.startswith("\\\\"):
        return "is on another machine"
    rest = text[2:] if has_drive(text) else text
    if rest != text and not rest.startswith("\\"):
        return "is relative to the current folder of a drive"
    parts = [part for part in rest.split("\\") if part not in ("", ".", "..")]
    return next((found for part in parts if (found := _problem_of(part)) is not None), None)


def windows_key(path: str) -> str:
    """Return a text that is equal for all spellings of the same path on Windows: case and the kind of slash do not
    count.
    """
    return path.replace("\\", "/").casefold()


def _same(path: str, system: str) -> str:
    """Return a text that is equal for the spellings of a path that are one file on a system whatever its disks.

    macOS finds a name in any composition of its letters. Whether it tells capitals apart depends on the disk, so they
    count here; for a name that a model writes, `paths.py` looks how it is spelt.
    """
    if system == "win32":
        return windows_key(path)
    return unicodedata.normalize("NFC", path) if system == "darwin" else path


def _decode(part: str) -> str:
    return unquote_to_bytes(part.encode("utf-8", "replace")).decode("utf-8", "surrogateescape")


def _encode(name: str) -> str:
    try:
        return quote_from_bytes(name.encode("utf-8", "surrogateescape"), safe="/~")
    except UnicodeEncodeError:  # half a surrogate pair: no file has this name, but a model may ask for it
        return quote_from_bytes(name.encode("utf-8", "surrogatepass"), safe="/~")


def _problem_of(part: str) -> str | None:
    if ":" in part:
        return "names a stream of a file"
    if _FORBIDDEN.search(part):
        return "has characters that no name may have"
    if part != part.rstrip(". "):
        return "ends in a dot or a blank, which is dropped"
    # Also with an ending: `nul.txt` is the null device on older versions.
    return "is a device" if _RESERVED.fullmatch(part.partition(".")[0].rstrip(" ")) else None
