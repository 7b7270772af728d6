r"""What a path means on Windows, judged by its text alone: there, many spellings lead elsewhere than they seem to.

By "Naming Files, Paths, and Namespaces" of the Win32 documentation. Pure, so it is the same on every system. Not here:
whether a path is in the workspace (`paths.py`), its URI (`uris.py`).
"""

from __future__ import annotations

import re

_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICE = re.compile(r"\\\\[?.](?:\\|$)|\\\?\?\\")
_FORBIDDEN = re.compile(r'[<>"|?*\x00-\x1f]')
_RESERVED = re.compile(r"(?:CON|PRN|AUX|NUL|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3]|CONIN\$|CONOUT\$)", re.IGNORECASE)


def has_drive(path: str) -> bool:
    """Return whether a path begins with the letter of a drive, which is no scheme of a URI."""
    return _DRIVE.match(path) is not None


def problem(path: str) -> str | None:
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


def key(path: str) -> str:
    """Return a text that is equal for all spellings of the same path: case and the kind of slash do not count."""
    return path.replace("\\", "/").casefold()


def _problem_of(part: str) -> str | None:
    if ":" in part:
        return "names a stream of a file"
    if _FORBIDDEN.search(part):
        return "has characters that no name may have"
    if part != part.rstrip(". "):
        return "ends in a dot or a blank, which is dropped"
    # Also with an ending: `nul.txt` is the null device on older versions.
    return "is a device" if _RESERVED.fullmatch(part.partition(".")[0].rstrip(" ")) else None
