"""A unit of indexing work: one file to process. Not here: finding it (`scan.py`) and processing it (`intake.py`)."""

from __future__ import annotations

from typing import NamedTuple


class Work(NamedTuple):
    """A file to process: its path in the index and on disk, the digest known of it, its size in bytes."""

    path: str
    absolute: str
    digest: bytes
    size: int
