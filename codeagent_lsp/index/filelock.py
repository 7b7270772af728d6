"""An advisory lock on a file, which ends with the process that holds it, however it ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits until no other process or thread is inside. The file, made if missing, stays: it has no content."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
