"""The version of all that is released: `python -m scripts.version [X.Y.Z]` prints it, or sets it everywhere.

`codeagent_lsp/__init__.py` is where it is; all other places are copies that registries and stores read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "codeagent_lsp/__init__.py"
_VERSION = r"\d+\.\d+\.\d+"

PLACES = (
    (SOURCE, rf'(?<=^__version__ = "){_VERSION}'),
    ("editors/vscode/package.json", rf'(?<=^  "version": "){_VERSION}'),
    ("editors/vscode/package-lock.json", rf'(?<=^  "version": "){_VERSION}'),
    ("editors/vscode/package-lock.json", rf'(?<=^      "name": "codeagent",\n      "version": "){_VERSION}'),
    ("packaging/mason/package.yaml", rf"(?<=pkg:pypi/codeagent-lsp@){_VERSION}"),
    ("packaging/acp/agent.json", rf'(?<=^  "version": "){_VERSION}'),
    ("packaging/acp/agent.json", rf'(?<="package": "codeagent-lsp\[acp\]==){_VERSION}'),
    ("packaging/mcp/server.json", rf'(?<=^  "version": "){_VERSION}'),
    ("packaging/mcp/server.json", rf'(?<=^      "version": "){_VERSION}'),
)
"""Files from the root of the repository, and where in each a version is; in each it is once."""


def versions(root: Path = ROOT) -> list[tuple[str, list[str]]]:
    """Return what is found in each place."""
    return [(name, re.findall(form, (root / name).read_text("utf-8"), re.MULTILINE)) for name, form in PLACES]


def set_version(version: str, root: Path = ROOT) -> None:
    """Write a version into all places. ValueError if it is none, or a place has none or several; nothing is written."""
    if not re.fullmatch(_VERSION, version):
        raise ValueError(f"a version is of the form 1.2.3, not {version!r}")
    if odd := [name for name, found in versions(root) if len(found) != 1]:
        raise ValueError(f"there is not one version in {', '.join(odd)}")
    for name, form in PLACES:
        path = root / name
        path.write_text(re.sub(form, version, path.read_text("utf-8"), flags=re.MULTILINE), "utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the version or set it; return the exit code."""
    wanted = list(sys.argv[1:] if argv is None else argv)
    try:
        if wanted:
            set_version(wanted[0])
        found = {one for _, each in versions() for one in each}
        if len(found) != 1:
            raise ValueError(f"not one version everywhere: {', '.join(sorted(found))}")
    except ValueError as error:
        sys.stderr.write(f"version: {error}\n")
        return 1
    sys.stdout.write(f"{found.pop()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
