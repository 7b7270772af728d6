"""The changelog and a version: `python -m scripts.changelog X.Y.Z` prints its words, `--cut X.Y.Z DATE` makes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
_NEXT = "## [Unreleased]"


def section(text: str, version: str) -> str:
    """Return what the changelog says of a version, without its heading. ValueError if it says nothing."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ValueError(f"CHANGELOG.md says nothing of {version}")
    return found[1].strip() + "\n"


def cut(text: str, version: str, day: str) -> str:
    """Return the changelog with what is unreleased under a version of a day. ValueError if that is nothing, or the
    version is there already.
    """
    section(text, "Unreleased")
    if f"## [{version}]" in text:
        raise ValueError(f"CHANGELOG.md has a version {version} already")
    return text.replace(_NEXT, f"{_NEXT}\n\n## [{version}] - {day}", 1)


def main(argv: Sequence[str] | None = None) -> int:
    """Print or cut; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    text = CHANGELOG.read_text("utf-8")
    try:
        if words[:1] == ["--cut"]:
            CHANGELOG.write_text(cut(text, *words[1:3]), "utf-8")
        else:
            sys.stdout.write(section(text, words[0]))
    except ValueError as error:
        sys.stderr.write(f"changelog: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
