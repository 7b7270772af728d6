"""The patch of a task: exactly what was written by the edits of its run, as git reads it.

It comes from the edits and not from the folder, so that nothing which a setup or a build wrote is in it. Not here: how
edits are written (`terminal/disk.py`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.terminal.edits import FileWrite

_SECONDS = 60
_UNCONFIGURED = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_CHANGED = 1  # git's exit code for "there are differences"


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch for `git apply`, the files in it by relative path, and how many lines are added and removed."""

    text: bytes = b""
    files: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0


def patch_of(writes: Iterable[FileWrite], folder: Path) -> Patch:
    """Return the patch of all writes of a run below `folder`, in their order; an empty one if nothing is left of them.

    OSError if git is not there.
    """
    first: dict[str, bytes | None] = {}
    last: dict[str, bytes | None] = {}
    root = folder.resolve()
    for write in writes:
        name = Path(os.path.abspath(write.path)).relative_to(root).as_posix()  # noqa: PTH100 - links stay links
        first.setdefault(name, write.before)
        last[name] = write.after
    changed = tuple(name for name in sorted(last) if first[name] != last[name])
    if not changed:
        return Patch()
    with tempfile.TemporaryDirectory(prefix="codeagent-patch-") as place:
        for side, texts in (("a", first), ("b", last)):
            _lay(Path(place, side), {name: texts[name] for name in changed})
        text = _diff(place, "--binary")
        counts = [line.split(b"\t")[:2] for line in _diff(place, "--numstat").splitlines()]
    added, removed = (sum(int(count[side]) for count in counts if count[side].isdigit()) for side in (0, 1))
    return Patch(text, changed, added, removed)


def _lay(folder: Path, texts: Mapping[str, bytes | None]) -> None:
    folder.mkdir()
    for name, content in texts.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _diff(place: str, form: str) -> bytes:
    """Return what git says of the folders `a` and `b`, without the settings of this user."""
    command = ("git", "-c", "core.quotePath=true", "diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color")
    done = subprocess.run(
        (*command, "--no-prefix", "--no-renames", form, "a", "b"),
        cwd=place,
        env={**os.environ, **_UNCONFIGURED, "GIT_CEILING_DIRECTORIES": place},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode not in (0, _CHANGED):
        raise OSError(f"git diff: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout
