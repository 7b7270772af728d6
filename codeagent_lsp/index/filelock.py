"""An advisory file lock (flock), released when its process ends in any way."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`, waiting for other processes and threads. The empty file is created and kept."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
