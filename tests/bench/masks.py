"""How many marks code gets that holds no secrets: `python -m tests.bench.masks [FOLDER ...]`.

Without folders, the standard library and the installed packages. Prints lines, marks, and, with `--show`, every marked
line, so that two states of the code can be compared.
"""

from __future__ import annotations

import argparse
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.sanitizer import Sanitizer

LARGEST = 2_000_000  # characters; what is larger is data


def main() -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--ending", default=".py")
    parser.add_argument("--every", type=int, default=1, help="read only every n-th file")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    folders = given.folders or [Path(sysconfig.get_path("stdlib")), *map(Path, site.getsitepackages())]
    sanitizer = Sanitizer(identities=False, homes=())
    lines = marks = 0
    for text in _texts(folders, given.ending, given.every):
        masked = sanitizer.text(text)
        lines += text.count("\n")
        marks += len(MARK.findall(masked)) - len(MARK.findall(text))
        if given.show and masked != text:
            sys.stdout.writelines(MARK.sub("<secret>", line) + "\n" for line in masked.split("\n") if MARK.search(line))
    print(f"{lines} lines, {marks} marks, {marks * 1000 / max(1, lines):.3f} a thousand lines")
    return 0


def _texts(folders: list[Path], ending: str, every: int) -> Iterator[str]:
    files = sorted({path.resolve() for folder in folders for path in folder.rglob(f"*{ending}")})
    for path in files[::every]:
        if path.is_file() and path.stat().st_size <= LARGEST:
            yield path.read_text("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
