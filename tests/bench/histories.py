"""Commits of a real repository as tasks: the message is the request, the sources it edits are what is to be found.

Reads any git repository, bare ones and partial clones too; what is missing from a partial clone is left out.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from codeagent_lsp.index.commits import LOG
from codeagent_lsp.index.grammars import is_source, is_test

LARGEST = 400_000
BEGINNING = "1990-01-01"
_TRAILER = re.compile(r"^(co-authored-by|signed-off-by|reviewed-by|acked-by):.*$", re.IGNORECASE | re.MULTILINE)
_BINARY = frozenset(
    (".png", ".jpg", ".jpeg", ".gif", ".ico", ".woff", ".woff2", ".mp4", ".mp3", ".pdf", ".zip", ".gz", ".svg", ".cast")
)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that edits one to five sources that exist and are no tests; `recent` weighs the edits before it."""

    name: str
    parent: str
    message: str
    edited: tuple[str, ...]
    recent: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Change:
    """A commit with one parent: its message without trailers, and the files it touches, each with git's letter."""

    name: str
    parent: str
    message: str
    files: tuple[tuple[str, str], ...]


class Repository:
    """A repository, read by git."""

    def __init__(self, folder: str) -> None:
        inside = Path(folder) / ".git"
        self.folder = str(inside if inside.exists() else folder)

    def tasks(self, most: int) -> list[Commit]:
        """The last suitable commits, the oldest first."""
        found: list[Commit] = []
        log = list(self._log())
        for at, (name, parents, message, changed) in enumerate(log):
            edited = tuple(path for kind, path in changed if kind == "M" and is_source(path) and not is_test(path))
            words = _TRAILER.sub("", message).strip()
            if len(parents) == 1 and 1 <= len(edited) <= 5 and len(words) > 10:
                found.append(Commit(name, parents[0], words, edited, _recent(log[at + 1 :])))
            if len(found) == most:
                break
        return found[::-1]

    def changes(self, since: str = BEGINNING) -> Iterator[Change]:
        """The commits with one parent since a day, the newest first, those that came by a merge among them."""
        for name, parents, message, changed in self._log(f"--since={since}"):
            if len(parents) == 1:
                yield Change(name, parents[0], _TRAILER.sub("", message).strip(), tuple(changed))

    def message(self, commit: str) -> str:
        """The message of a commit without trailers."""
        text = self._git("log", "-1", "--format=%B", commit).decode("utf-8", "replace")
        return _TRAILER.sub("", text).strip()

    def diff(self, commit: Commit | Change, path: str) -> str:
        """What a commit changes in a file, without lines around."""
        return self._git(
            "diff", "--unified=0", "--no-color", "--no-ext-diff", commit.parent, commit.name, "--", path
        ).decode("utf-8", "replace")

    def log_of_names(self, commit: str) -> str:
        """What the product reads of the commits up to one."""
        return self._git(*LOG, commit).decode("utf-8", "replace")

    def tree(self, commit: str) -> dict[str, str]:
        """The texts of a commit: paths, and the names of their blobs."""
        found = {}
        for line in self._git("ls-tree", "-r", "-l", "-z", commit).decode("utf-8", "replace").split("\0"):
            meta, _, path = line.partition("\t")
            mode, _, blob, size = meta.split() if meta else ("", "", "", "")
            if mode.startswith("100") and size.isdigit() and int(size) <= LARGEST and not _is_binary(path):
                found[path] = blob
        return found

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs."""
        wanted = list(names)
        out = self._git("cat-file", "--batch", given="".join(f"{name}\n" for name in wanted).encode())
        found, at = {}, 0
        for name in wanted:
            end = out.index(b"\n", at)
            size = int(out[at:end].split()[2])
            found[name] = out[end + 1 : end + 1 + size]
            at = end + size + 2
        return found

    def lay(self, folder: Path, before: Mapping[str, str], tree: Mapping[str, str]) -> list[str]:
        """Make a folder that holds the tree `before` hold another one; the paths in it with new contents."""
        changed = {path: blob for path, blob in tree.items() if before.get(path) != blob}
        contents = self.blobs(set(changed.values()))
        for path in before.keys() - tree.keys():
            (folder / path).unlink()
        for path, blob in changed.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(contents[blob])
        return list(changed)

    def _log(self, which: str = "--first-parent") -> Iterator[tuple[str, list[str], str, list[tuple[str, str]]]]:
        out = self._git(
            "log", which, "--no-merges", "--no-renames", "--name-status", "-n", "3000",
            "--format=%x01%H%x02%P%x02%B%x03",
        ).decode("utf-8", "replace")  # fmt: skip
        for block in out.split("\x01")[1:]:
            head, _, changes = block.partition("\x03")
            name, parents, message = head.split("\x02", 2)
            changed = [tuple(line.split("\t", 1)) for line in changes.splitlines() if "\t" in line]
            yield name, parents.split(), message, [(kind, path) for kind, path in changed]

    def _git(self, *arguments: str, given: bytes = b"") -> bytes:
        command = ("git", "--git-dir", self.folder, *arguments)
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def _recent(before: list[tuple[str, list[str], str, list[tuple[str, str]]]], most: int = 300) -> dict[str, float]:
    """How often files were edited in the commits before, the weight of a commit halved every hundred."""
    weights: dict[str, float] = {}
    for age, (_, _, _, changed) in enumerate(before[:most]):
        for _, path in changed if len(changed) <= 20 else ():
            weights[path] = weights.get(path, 0.0) + 0.5 ** (age / 100)
    return weights


def _is_binary(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _BINARY
