"""What there is to do: a file to look into. Not here: finding it (`scan.py`) and doing it (`intake.py`)."""

from __future__ import annotations

from typing import NamedTuple


class Work(NamedTuple):
    """A file to look into: its path in the index and on disk, the digest known of it, its size in bytes."""

    path: str
    absolute: str
    digest: bytes
    size: int
